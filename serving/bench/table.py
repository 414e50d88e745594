"""What was measured as a table for people, and beside what was measured before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agents.contract import GIB, MIB
from serving.bench.results import Measured, Result, Size

SWING = 1.1  # of the bare agent before and after: beyond it, both are told beside the ratio
INSTANT = 50e-6  # seconds of an answer beside which those that a record takes are not small
HEAD = ("stimuli/s", "tokens/s", "fix/s", "p50", "p95", "busy", "waiting", "FLOP", "bytes", "host", "device")


def lines(result: Result) -> Iterator[str]:
    """The table, a line at a time."""
    host, device, limits = result.host, result.device, result.limits
    yield f"{host.name}: {host.cpu}, {host.cores} cores, {host.memory / GIB:.0f} GiB; Turinglike {result.version}"
    copy = "-" if limits.copy_bytes_s is None else f"{limits.copy_bytes_s / 1e9:.4g} GB/s copied"
    matrix = "-" if limits.matrix_flop_s is None else f"{limits.matrix_flop_s / 1e9:.4g} GFLOP/s {limits.precision}"
    further = "".join(f", {flops / 1e9:.4g} {precision}" for precision, flops in limits.others.items())
    yield f"{device.name}, {device.memory / GIB:.0f} GiB: {copy}, {matrix}{further}"
    for one in result.agents:
        yield ""
        yield from _agent(one)
    if result.packed is not None:
        yield ""
        yield "together on one device, and alone:"
        for name in result.packed.agents:
            both, alone = result.packed.stimuli_s[name], result.packed.alone[name]
            yield f"  {name}: {rate(both)} and {rate(alone)} stimuli/s ({_ratio(both, alone)})"
    if result.failed:
        yield ""
        for failed in result.failed:
            yield f"{failed.agent} failed ({failed.part.replace('_', ' ')}): {failed.message}"
    if not result.complete:
        yield ""
        yield "ended before everything was measured"


def _agent(one: Measured) -> Iterator[str]:
    kind = one.task if one.mode is None else f"{one.task}, {one.mode}"
    random = ", random weights" if one.random_weights else ""
    yield f"{one.agent} ({kind}; {one.device}{random}): loaded in {_seconds(one.load_s)}, first answer after " + (
        _seconds(one.first_answer_s)
    )
    unit = "calls" if one.continuous else "batch"
    chosen = one.best.batch_size if one.best is not None else None
    rows = [(unit, *HEAD), *(_row(size, size.batch_size == chosen) for size in one.sizes)]
    yield from columns(_filled(rows))
    if one.stopped is not None:
        yield f"  {one.stopped.message}"
    if one.best is not None:
        yield f"  best: {one.best.batch_size}, {rate(one.best.stimuli_s)} stimuli/s"
    if one.differing is not None:
        found = one.differing
        yield f"  {found.count} of {found.of} answers differ between 1 and {found.batch_size} ({_share(found.share)})"
    for whole in one.end_to_end:
        swing = ""
        if whole.bare and max(whole.bare) > SWING * min(whole.bare):
            swing = f", which did {rate(whole.bare[0])} before and {rate(whole.bare[-1])} after"
        reached = f"{workers(whole.replicas)}: {rate(whole.stimuli_s)} stimuli/s"
        yield f"  end to end, {reached}, {whole.ratio:.2f} of the bare agent{swing}"
    if one.end_to_end and one.best is not None and one.best.stimuli_s * INSTANT > 1:
        yield (
            f"  (an answer takes the bare agent {_seconds(1 / one.best.stimuli_s)}, less than reading a stimulus and "
            "writing a record: the ratio says what those cost)"
        )
    for peer in one.peers:
        theirs, ours = rate(peer.stimuli_s), rate(peer.our_stimuli_s)
        yield f"  {peer.name}, batch {peer.batch_size}: {theirs} stimuli/s; we {ours}, {peer.ratio:.3g} times that"


def _row(size: Size, is_best: bool) -> tuple[str, ...]:
    busy = _share(size.busy)
    if size.device_busy is not None:
        busy += f" ({_share(size.device_busy)})"
    return (
        f"{size.batch_size}{'*' * is_best}",
        rate(size.stimuli_s),
        _number(size.tokens_s),
        _number(size.fixations_s),
        _seconds(size.p50_s),
        _seconds(size.p95_s),
        busy,
        _share(size.waiting),
        _share(size.flop_share),
        _share(size.byte_share),
        _memory(size.peak_host_bytes),
        _memory(size.peak_device_bytes),
    )


def _filled(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The columns, below their heads, in which there is anything."""
    shown = [at for at in range(len(rows[0])) if any(row[at] != "-" for row in rows[1:])]
    return [[row[at] for at in shown] for row in rows]


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows whose columns end at the same places."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))


def comparison(new: Result, old: Result) -> Iterator[str]:
    """The new figures over the old ones: above 1 is faster; for latencies, memory and loading below 1 is better."""
    yield f"beside {old.created}, {old.device.name}, Turinglike {old.version}: new / old"
    if (old.device.name, old.host.name) != (new.device.name, new.host.name):
        yield f"  that was another machine or device: {old.host.name}, {old.device.name}"
    copied = _ratio(new.limits.copy_bytes_s, old.limits.copy_bytes_s)
    multiplied = _ratio(new.limits.matrix_flop_s, old.limits.matrix_flop_s)
    if new.limits.precision == old.limits.precision and {copied, multiplied} != {"-"}:
        yield f"limits: copied {copied}, {new.limits.precision} {multiplied}"
    before = {(one.agent, one.task, one.mode): one for one in old.agents}
    for one in new.agents:
        other = before.get((one.agent, one.task, one.mode))
        if other is None:
            yield f"{one.agent}: was not measured then"
            continue
        note = "" if one.digest == other.digest else " (other settings or another checkpoint then)"
        yield f"{one.agent}{note}: load {_ratio(one.load_s, other.load_s)}" + (
            f", best {_ratio(one.best.stimuli_s, other.best.stimuli_s)} "
            f"(batch {other.best.batch_size} then, {one.best.batch_size} now)"
            if one.best is not None and other.best is not None
            else ""
        )
        both = [(size, then) for size in one.sizes if (then := other.at(size.batch_size)) is not None]
        if both:
            heads = ("calls" if one.continuous else "batch", "stimuli/s", "p50", "p95", "host", "device")
            yield from columns([heads, *(_compared(size, then) for size, then in both)])


def _compared(now: Size, then: Size) -> tuple[str, ...]:
    ratios: list[Callable[[Size], float | None]] = [
        lambda size: size.stimuli_s,
        lambda size: size.p50_s,
        lambda size: size.p95_s,
        lambda size: size.peak_host_bytes,
        lambda size: size.peak_device_bytes,
    ]
    return str(now.batch_size), *(_ratio(of(now), of(then)) for of in ratios)


def _ratio(new: float | None, old: float | None) -> str:
    return "-" if new is None or not old else f"{new / old:.3g}"


def _number(value: float | None) -> str:
    return "-" if value is None else rate(value)


def rate(value: float) -> str:
    """A number per second: four digits, and never a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def workers(count: int) -> str:
    """So many workers, in words."""
    return f"{count} worker{'s' * (count > 1)}"


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms" if value >= 0.001 else f"{1e6 * value:.3g} µs"


def _memory(value: int | None) -> str:
    if value is None:
        return "-"
    return f"{value / GIB:.1f} GiB" if value >= GIB else f"{value / MIB:.0f} MiB"
