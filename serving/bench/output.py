"""What was measured, for people: a table, and a picture of throughput, latency and busy time by batch size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from agents.contract import GIB, MIB
from agents.errors import UnavailableError
from serving.bench.results import BenchResult, EndToEnd, Measured, Size

MARKERS = "osD^vP*Xph"
LINES = ("-", "--", ":", "-.")  # the next one for every ten agents, whose colours begin anew
COLUMNS: tuple[tuple[str, Callable[[Size], str]], ...] = (
    ("stimuli/s", lambda size: rate(size.stimuli_s)),
    ("tokens/s", lambda size: _optional(size.tokens_s, rate)),
    ("fix/s", lambda size: _optional(size.fixations_s, rate)),
    ("p50", lambda size: _seconds(size.p50_s)),
    ("p95", lambda size: _seconds(size.p95_s)),
    ("busy", lambda size: _optional(size.busy, _share)),
    ("host", lambda size: _memory(size.peak_host_bytes)),
    ("device", lambda size: _optional(size.peak_device_bytes, _memory)),
)


def print_result(console: Console, result: BenchResult) -> None:
    for part in _parts(result):
        console.print(part, highlight=False, markup=False, soft_wrap=isinstance(part, str))


def _parts(result: BenchResult) -> Iterator[RenderableType]:
    host, device = result.host, result.device
    yield f"{host.name}: {host.cpu}, {host.cores} cores, {host.memory / GIB:.0f} GiB; Turinglike {result.version}"
    yield f"{device.name}, {device.memory / GIB:.0f} GiB"
    for measured in result.agents:
        yield from _agent(measured)
    for failed in result.failed:
        yield f"{failed.agent} failed ({failed.part.replace('_', ' ')}): {failed.message}"
    if not result.complete:
        yield "ended before everything was measured"


def _agent(measured: Measured) -> Iterator[RenderableType]:
    kind = measured.task if measured.mode is None else f"{measured.task}, {measured.mode}"
    weights = ", random weights" if measured.random_weights else ""
    times = f"loaded in {_seconds(measured.load_s)}, first answer after {_seconds(measured.first_answer_s)}"
    yield f"\n{measured.agent} ({kind}; {measured.device}{weights}): {times}"
    rows = [
        (f"{size.batch_size}{'*' * (size == measured.best)}", *(cell(size) for _, cell in COLUMNS))
        for size in measured.sizes
    ]
    yield _table(("calls" if measured.continuous else "batch", *(head for head, _ in COLUMNS)), rows)
    if measured.stopped is not None:
        yield f"  {measured.stopped.message}"
    best = measured.at_best()
    yield f"  best: {best.batch_size}, {rate(best.stimuli_s)} stimuli/s"
    if (differing := measured.differing) is not None:
        share = _share(differing.share)
        yield f"  {differing.count} of {differing.of} answers differ between 1 and {differing.batch_size} ({share})"
    yield from (f"  {end_to_end_line(rates)}" for rates in measured.end_to_end)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The columns that have a value in at least one row."""
    filled = [at for at in range(len(heads)) if any(row[at] != "-" for row in rows)]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=True)
    for at in filled:
        table.add_column(heads[at], justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[at] for at in filled))
    return table


def end_to_end_line(rates: EndToEnd) -> str:
    workers = f"{rates.replicas} worker{'s' * (rates.replicas > 1)}"
    return f"end to end, {workers}: {rate(rates.stimuli_s)} stimuli/s, {rates.ratio:.2f} of the bare agent"


def _optional(value: float | None, formatted: Callable[[float], str]) -> str:
    return "-" if value is None else formatted(value)


def rate(value: float) -> str:
    """A number per second: four digits, and never a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms" if value >= 0.001 else f"{1e6 * value:.3g} µs"


def _memory(value: float) -> str:
    return f"{value / GIB:.1f} GiB" if value >= GIB else f"{value / MIB:.0f} MiB"


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
    throughput, latency, busy = figure.subplots(1, 3)
    for number, measured in enumerate(result.agents):
        style: dict[str, Any] = {"color": f"C{number % 10}", "marker": MARKERS[number % 10], "markersize": 5}
        style["linestyle"] = LINES[number // 10 % len(LINES)]
        name = f"{measured.agent} (random weights)" if measured.random_weights else measured.agent
        sizes = [size.batch_size for size in measured.sizes]
        medians = [size.p50_s for size in measured.sizes]
        throughput.plot(sizes, [size.stimuli_s for size in measured.sizes], label=name, **style)
        ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none", "color": style["color"]}
        throughput.plot([measured.at_best().batch_size], [measured.at_best().stimuli_s], linestyle="none", **ring)
        latency.plot(sizes, medians, **style)
        latency.vlines(sizes, medians, [size.p95_s for size in measured.sizes], color=style["color"], alpha=0.5)
        if not measured.continuous:
            busy.plot(sizes, [size.busy for size in measured.sizes], **style)
    throughput.set(title="throughput (ringed: the best batch size)", ylabel="stimuli per second", yscale="log")
    latency.set(title="latency of a batch: median to 95th percentile", ylabel="seconds", yscale="log")
    busy.set(title="share of the time in which the agent answers", ylabel="share", ylim=(0, 1.05))
    _batch_size_axes((throughput, latency, busy), result)
    if result.agents:
        figure.legend(*throughput.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"{result.device.name} · {result.host.name} · Turinglike {result.version} · {result.created[:10]}")
    figure.savefig(file, format="png", dpi=110)


def _batch_size_axes(all_axes: tuple[Any, ...], result: BenchResult) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    sizes = sorted({size.batch_size for measured in result.agents for size in measured.sizes})
    calls = any(measured.continuous for measured in result.agents)
    for axes in all_axes:
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel("batch size (or calls at once)" if calls else "batch size")
        axes.grid(alpha=0.3)
        if axes.get_yscale() == "log":  # powers of ten alone would be two labels at the most, or none
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
