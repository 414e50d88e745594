"""What was measured as one picture: throughput, latency, and what limits, by batch size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from agents.errors import UnavailableError
from serving.bench.results import BenchResult, Measured, Size

MARKERS = "osD^vP*Xph"
LINES = ("-", "--", ":", "-.")  # the next one for every ten agents, whose colours begin anew


def plot(result: BenchResult, file: BinaryIO) -> None:
    """Write a PNG. Raises UnavailableError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnavailableError(
            "no plot was written: matplotlib is not installed; pip install 'turinglike[bench]'"
        ) from None
    figure = Figure(figsize=(15, 5.2 + 0.25 * -(-len(result.agents) // 3)), layout="constrained")
    FigureCanvasAgg(figure)
    throughput, latency, limits = figure.subplots(1, 3)
    for number, one in enumerate(result.agents):
        style = {"color": f"C{number % 10}", "marker": MARKERS[number % 10], "markersize": 5}
        style["linestyle"] = LINES[number // 10 % len(LINES)]
        name = f"{one.agent} (random weights)" if one.random_weights else one.agent
        _line(throughput, one, style | {"label": name}, lambda size: size.stimuli_s)
        ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none", "color": style["color"]}
        throughput.plot([one.at_best().batch_size], [one.at_best().stimuli_s], linestyle="none", **ring)
        _line(latency, one, style, lambda size: size.p50_s)
        sizes = [size.batch_size for size in one.sizes]
        ends = [size.p50_s for size in one.sizes], [size.p95_s for size in one.sizes]
        latency.vlines(sizes, *ends, color=style["color"], alpha=0.5)
        _line(limits, one, style, lambda size: size.busy)
        _line(limits, one, style | {"alpha": 0.4, "linestyle": ":"}, lambda size: size.flop_share)
    throughput.set(title="throughput (ringed: the best batch size)", ylabel="stimuli per second", yscale="log")
    latency.set(title="latency of a batch: median to 95th percentile", ylabel="seconds", yscale="log")
    limits.set(title="busy; pale and dotted: operations of the device's limit", ylabel="share", ylim=(0, 1.05))
    _batch_size_axes((throughput, latency, limits), result)
    handles, labels = throughput.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"{result.device.name} · {result.host.name} · Turinglike {result.version} · {result.created[:10]}")
    figure.savefig(file, format="png", dpi=110)


def _line(axes: Any, one: Measured, style: dict[str, Any], value: Callable[[Size], float | None]) -> None:
    points = [(size.batch_size, found) for size in one.sizes if (found := value(size)) is not None]
    axes.plot([size for size, _ in points], [found for _, found in points], **style)


def _batch_size_axes(all_axes: tuple[Any, ...], result: BenchResult) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    sizes = sorted({size.batch_size for one in result.agents for size in one.sizes})
    calls = any(one.continuous for one in result.agents)
    for axes in all_axes:
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel("batch size (or calls at once)" if calls else "batch size")
        axes.grid(alpha=0.3)
        if axes.get_yscale() == "log":  # powers of ten alone would be two labels at the most, or none
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
