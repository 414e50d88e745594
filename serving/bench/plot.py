"""What was measured as one picture: throughput and latency by batch size, and where each agent stands under the roof.

The roof is what the device was seen to do: with few operations for each byte that is read it is the memory that limits,
with many the arithmetic. An agent stands at the operations per byte and operations per second of its best batch. Its
bytes are a lower bound (see :mod:`serving.bench.work`), so that it stands too far to the right rather than to the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from agents.errors import UnavailableError
from serving.bench.results import Limits, Measured, Result

SHAPES = "osD^vP*Xph"
NAMED = 10  # agents after which the colours begin anew, with another shape and line
LINES = ("-", "--", ":", "-.")
MARGIN = 10.0  # times, from the outermost point to the edge of the roof's picture


def plot(result: Result, file: BinaryIO) -> None:
    """Write a PNG. Raises UnavailableError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnavailableError(
            "no plot was written: matplotlib is not installed; pip install 'turinglike[bench]'"
        ) from None
    agents = [one for one in result.agents if one.sizes]
    rows = -(-max(1, len(agents)) // 3)  # of the legend
    figure = Figure(figsize=(15, 5.2 + 0.25 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    throughput, latency, roof = figure.subplots(1, 3)
    styles = [_style(place) for place in range(len(agents))]
    for one, style in zip(agents, styles, strict=True):
        _throughput(throughput, one, style)
        _latency(latency, one, style)
    for axes in (throughput, latency):
        _by_batch_size(axes, agents)
    throughput.set(title="throughput (ringed: the best batch size)", ylabel="stimuli per second")
    latency.set(title="latency of a batch: median to 95th percentile", ylabel="seconds")
    _roof(roof, result.limits, agents, styles)
    handles, labels = throughput.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"{result.device.name} · {result.host.name} · Turinglike {result.version} · {result.created[:10]}")
    figure.savefig(file, format="png", dpi=110)


def _style(place: int) -> dict[str, Any]:
    turn = place // NAMED
    return {
        "color": f"C{place % NAMED}",
        "marker": SHAPES[(place + turn) % len(SHAPES)],
        "linestyle": LINES[turn % len(LINES)],
    }


def _throughput(axes: Any, one: Measured, style: dict[str, Any]) -> None:
    name = f"{one.agent} (random weights)" if one.random_weights else one.agent
    sizes = [size.batch_size for size in one.sizes]
    axes.plot(sizes, [size.stimuli_s for size in one.sizes], label=name, markersize=5, **style)
    if one.best is not None:
        ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none", "color": style["color"]}
        axes.plot([one.best.batch_size], [one.best.stimuli_s], linestyle="none", **ring)


def _latency(axes: Any, one: Measured, style: dict[str, Any]) -> None:
    sizes = [size.batch_size for size in one.sizes]
    middle = [size.p50_s for size in one.sizes]
    high = [size.p95_s for size in one.sizes]
    axes.plot(sizes, middle, markersize=5, **style)
    if len(sizes) > 1:
        axes.fill_between(sizes, middle, high, color=style["color"], alpha=0.15, linewidth=0)
    else:
        axes.vlines(sizes, middle, high, color=style["color"], alpha=0.5)


def _by_batch_size(axes: Any, agents: Sequence[Measured]) -> None:
    sizes = sorted({size.batch_size for one in agents for size in one.sizes})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    calls = any(one.continuous for one in agents)
    axes.set_xlabel("batch size (or calls at once)" if calls else "batch size")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_on()
    axes.xaxis.set_tick_params(which="minor", bottom=False)
    axes.grid(alpha=0.3)
    bottom, top = axes.get_ylim()
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:,.10g}")
    # Powers of ten alone would be two labels at the most, or none; over less than a decade other ticks are any numbers.
    digits = "123456789" if top / bottom < 5 else "25" if top / bottom < 100 else ""
    axes.yaxis.set_minor_formatter(lambda value, place: f"{value:,.10g}" if f"{value:e}"[0] in digits else "")


def points(agents: Sequence[Measured]) -> Iterator[tuple[int, float, float]]:
    """(place of the agent, operations per byte, operations per second) at the best batch size of each agent whose
    operations and bytes are known."""
    for place, one in enumerate(agents):
        size = None if one.best is None else one.at(one.best.batch_size)
        if size is not None and size.flops and size.bytes:
            batches = (size.stimuli + size.failed) / size.seconds / size.batch_size
            yield place, size.flops / size.bytes, size.flops * batches


def _roof(axes: Any, limits: Limits, agents: Sequence[Measured], styles: Sequence[dict[str, Any]]) -> None:
    found = list(points(agents))
    without = len(agents) - len(found)
    note = f"\n({without} without counted operations: not shown)" if without else ""
    axes.set(title="under the roof", xlabel=f"operations per byte of weights{note}", ylabel="operations per second")
    copy, matrix = limits.copy_bytes_s, limits.matrix_flop_s
    ridge = matrix / copy if copy and matrix else None
    if ridge is None and not found:
        axes.text(0.5, 0.5, "neither limits nor operations\ncould be measured", ha="center", va="center")
        axes.set(xticks=[], yticks=[])
        return
    axes.set(xscale="log", yscale="log")
    across = [intensity for _, intensity, _ in found] + ([ridge] if ridge else [])
    left, right = min(across) / MARGIN, max(across) * MARGIN
    if copy and matrix and ridge:
        axes.plot([left, ridge, right], [left * copy, matrix, matrix], color="black", linewidth=1.5)
        slope = f"{_short(copy)}B/s copied"
        middle = math.sqrt(left * ridge)
        axes.annotate(
            slope, (middle, middle * copy), xytext=(6, -6), textcoords="offset points", ha="left", va="top", fontsize=9
        )
        top = f"{_short(matrix)}FLOP/s {limits.precision}"
        axes.annotate(top, (right, matrix), xytext=(-4, 5), textcoords="offset points", ha="right", fontsize=9)
    for precision, rate in limits.others.items():
        axes.axhline(rate, color="black", linewidth=0.8, linestyle=":")
        label = f"{_short(rate)}FLOP/s {precision}"
        axes.annotate(label, (right, rate), xytext=(-4, 3), textcoords="offset points", ha="right", fontsize=8)
    for place, intensity, rate in found:
        style = {**styles[place], "linestyle": "none"}
        axes.plot([intensity], [rate], markersize=9, **style)
    axes.set_xlim(left, right)
    bottom, top_rate = axes.get_ylim()
    axes.set_ylim(bottom / 2, top_rate * 2)
    axes.grid(alpha=0.3)


def _short(rate: float) -> str:
    """A rate with three digits and the prefix of its unit."""
    power = min(5, max(0, int(math.log10(rate) // 3)))
    return f"{rate / 1000**power:.3g} {('', 'k', 'M', 'G', 'T', 'P')[power]}"
