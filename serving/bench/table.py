"""What was measured as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from agents.contract import GIB, MIB
from serving.bench.results import BenchResult, EndToEnd, Measured, Size

Figure = Callable[[Size], str]
COLUMNS: tuple[tuple[str, Figure], ...] = (
    ("stimuli/s", lambda size: rate(size.stimuli_s)),
    ("tokens/s", lambda size: _if(size.tokens_s, rate)),
    ("fix/s", lambda size: _if(size.fixations_s, rate)),
    ("p50", lambda size: _seconds(size.p50_s)),
    ("p95", lambda size: _seconds(size.p95_s)),
    ("busy", lambda size: _if(size.busy, _share)),
    ("FLOP", lambda size: _if(size.flop_share, _share)),
    ("host", lambda size: _memory(size.peak_host_bytes)),
    ("device", lambda size: _if(size.peak_device_bytes, _memory)),
)


def show(console: Console, result: BenchResult) -> None:
    """Print the table."""
    for part in _parts(result):
        console.print(part, highlight=False, markup=False, soft_wrap=isinstance(part, str))


def _parts(result: BenchResult) -> Iterator[RenderableType]:
    host, device = result.host, result.device
    yield f"{host.name}: {host.cpu}, {host.cores} cores, {host.memory / GIB:.0f} GiB; Turinglike {result.version}"
    limits = ", ".join(f"{flops / 1e9:,.4g} GFLOP/s {name}" for name, flops in result.limits.items())
    yield f"{device.name}, {device.memory / GIB:.0f} GiB: {limits or 'its limits are not known'}"
    for one in result.agents:
        yield from _agent(one)
    for failed in result.failed:
        yield f"{failed.agent} failed ({failed.part.replace('_', ' ')}): {failed.message}"
    if not result.complete:
        yield "ended before everything was measured"


def _agent(one: Measured) -> Iterator[RenderableType]:
    kind = one.task if one.mode is None else f"{one.task}, {one.mode}"
    weights = ", random weights" if one.random_weights else ""
    first = f"loaded in {_seconds(one.load_s)}, first answer after {_seconds(one.first_answer_s)}"
    yield f"\n{one.agent} ({kind}; {one.device}{weights}): {first}"
    rows = [
        (f"{size.batch_size}{'*' * (size == one.best)}", *(cell(size) for _, cell in COLUMNS)) for size in one.sizes
    ]
    yield _table(("calls" if one.continuous else "batch", *(head for head, _ in COLUMNS)), rows)
    yield from (f"  {note}" for note in _notes(one))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The columns in which there is anything, to the right."""
    shown = [at for at in range(len(heads)) if any(row[at] != "-" for row in rows)]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=True)
    for at in shown:
        table.add_column(heads[at], justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[at] for at in shown))
    return table


def _notes(one: Measured) -> Iterator[str]:
    if one.stopped is not None:
        yield one.stopped.message
    best = one.at_best()
    yield f"best: {best.batch_size}, {rate(best.stimuli_s)} stimuli/s"
    if (found := one.differing) is not None:
        yield f"{found.count} of {found.of} answers differ between 1 and {found.batch_size} ({_share(found.share)})"
    yield from map(whole, one.end_to_end)


def whole(one: EndToEnd) -> str:
    """What so many workers reached, in words."""
    workers = f"{one.replicas} worker{'s' * (one.replicas > 1)}"
    return f"end to end, {workers}: {rate(one.stimuli_s)} stimuli/s, {one.ratio:.2f} of the bare agent"


def _if(value: float | None, written: Callable[[float], str]) -> str:
    return "-" if value is None else written(value)


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
