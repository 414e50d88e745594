"""What was measured as a table for people, and beside what was measured before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from agents.contract import GIB, MIB
from serving.bench.results import BenchResult, EndToEnd, Measured, Peer, Size

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


def show(console: Console, result: BenchResult, old: BenchResult | None = None) -> None:
    """Print the table, and then ratios to an ``old`` result."""
    for part in (*_parts(result), *([] if old is None else _comparison(result, old))):
        console.print(part, highlight=False, markup=False, soft_wrap=isinstance(part, str))


def _parts(result: BenchResult) -> Iterator[RenderableType]:
    host, device = result.host, result.device
    yield f"{host.name}: {host.cpu}, {host.cores} cores, {host.memory / GIB:.0f} GiB; Turinglike {result.version}"
    limits = ", ".join(f"{flops / 1e9:,.4g} GFLOP/s {name}" for name, flops in result.limits.items())
    yield f"{device.name}, {device.memory / GIB:.0f} GiB: {limits or 'its limits are not known'}"
    for one in result.agents:
        yield from _agent(one)
    if result.packed is not None:
        yield "together on one device, and alone:"
        for name in result.packed.agents:
            both, alone = result.packed.stimuli_s[name], result.packed.alone[name]
            yield f"  {name}: {rate(both)} and {rate(alone)} stimuli/s ({_ratio(both, alone)})"
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
    yield from map(beside, one.peers)


def whole(one: EndToEnd) -> str:
    """What so many workers reached, in words."""
    workers = f"{one.replicas} worker{'s' * (one.replicas > 1)}"
    return f"end to end, {workers}: {rate(one.stimuli_s)} stimuli/s, {one.ratio:.2f} of the bare agent"


def beside(peer: Peer) -> str:
    """What another program reached, in words."""
    ours = f"we {rate(peer.our_stimuli_s)}, {peer.ratio:.3g} times that"
    return f"{peer.name}, batch {peer.batch_size}: {rate(peer.stimuli_s)} stimuli/s; {ours}"


def _comparison(new: BenchResult, old: BenchResult) -> Iterator[RenderableType]:
    """The new figures over the old ones: above 1 is faster; for latencies, memory and loading below 1 is better."""
    yield f"\nbeside {old.created}, {old.device.name}, Turinglike {old.version}: new / old"
    if (old.device.name, old.host.name) != (new.device.name, new.host.name):
        yield f"  that was another machine or device: {old.host.name}, {old.device.name}"
    for name, limit in new.limits.items():
        yield f"limit of {name}: {_ratio(limit, old.limits.get(name))}"
    before = {(one.agent, one.task, one.mode): one for one in old.agents}
    for one in new.agents:
        if (other := before.get((one.agent, one.task, one.mode))) is None:
            yield f"{one.agent}: was not measured then"
            continue
        now, then = one.at_best(), other.at_best()
        note = "" if one.digest == other.digest else " (other settings or another checkpoint then)"
        best = f"best {_ratio(now.stimuli_s, then.stimuli_s)} (batch {then.batch_size} then, {now.batch_size} now)"
        yield f"{one.agent}{note}: load {_ratio(one.load_s, other.load_s)}, {best}"
        fields = ("stimuli_s", "p50_s", "p95_s", "peak_host_bytes", "peak_device_bytes")
        rows = [
            (str(size.batch_size), *(_ratio(getattr(size, name), getattr(earlier, name)) for name in fields))
            for size in one.sizes
            if (earlier := other.at(size.batch_size)) is not None
        ]
        yield _table(("calls" if one.continuous else "batch", "stimuli/s", "p50", "p95", "host", "device"), rows)


def _ratio(new: float | None, old: float | None) -> str:
    return "-" if new is None or not old else f"{new / old:.3g}"


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
