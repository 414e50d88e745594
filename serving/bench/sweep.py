"""The bare agent over batch sizes: 1, 2, 4, … until memory runs out, or more brings nothing.

:func:`measure_sizes` runs in a process of its own, which has the agent; :func:`measure` is the command's side of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from agents.contract import Reply
from agents.errors import AgentStoppedError
from serving.bench import child_process
from serving.bench.bare import BareAgent, Setup, loaded
from serving.bench.results import Differing, Measured, Size, Stopped, StopReason
from serving.bench.table import rate
from serving.runs.run import digest
from serving.scheduling import machine
from serving.scheduling.device_errors import is_out_of_memory, release_memory
from serving.scheduling.worker import describe

LARGEST = 1024  # where a sweep without --batch-sizes ends
NEARLY = 0.97  # of the highest throughput is as good
ABOUT = 0.9  # is good enough, where a batch of what is better takes hardly any time
LONG = 0.05  # seconds of a batch beside which the few milliseconds that a scheduler needs for one do not count
COUNTED = 10.0  # times the measured seconds: a batch that takes longer is not run once more to count its operations
COMPARED, FEWEST = 64, 8  # answers that are compared with those one at a time; fewer where that takes too long
TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def measure(
    setup: Setup, sizes: Sequence[int] | None, limits: Mapping[str, float], say: Callable[[str], None]
) -> Iterator[Measured]:
    """Measure an agent in another process: ``sizes``, or None for doubling. Yields what is known of it, each time more.

    Raises AgentStoppedError with what kept anything from being measured.
    """
    agent, name = setup.agent(), setup.entry.name
    about = digest([(setup.entry, agent)])
    one = Measured(
        name, setup.task, setup.mode, about["digest"], about["settings"], setup.device, agent.continuous()
    )  # fmt: skip
    say(f"{name}: loading")
    told = 0
    try:
        for message in child_process.run(measure_sizes, setup, one, sizes, limits):
            one = message
            for size in one.sizes[told:]:
                say(f"{name}: {_unit(one)} {size.batch_size}: {rate(size.stimuli_s)} stimuli/s")
            told = len(one.sizes)
            if one.sizes:
                yield one
    except child_process.DiedError as error:
        # Killed while it tried a size, it had too little memory for that.
        if not error.killed or not one.sizes or one.stopped is not None:
            raise
        last = one.sizes[-1].batch_size
        one.stopped = Stopped(last, "out_of_memory", f"more than {_unit(one)} {last}: {error}")
        yield one
    if one.stopped is not None:
        if one.stopped.why == "error" or not one.sizes:
            raise AgentStoppedError(one.stopped.message)
        say(f"{name}: {one.stopped.message}")


def best(sizes: Sequence[Size], long: float = LONG) -> Size:
    """The smallest size whose throughput is :data:`NEARLY` the highest and of which a batch takes ``long`` at least; if
    none takes so long, the same with :data:`ABOUT`; if there is none either, the largest of that throughput."""
    highest = max(one.stimuli_s for one in sizes)
    for share in (NEARLY, ABOUT):
        good = [one for one in sorted(sizes, key=lambda one: one.batch_size) if one.stimuli_s >= share * highest]
        if found := next((one for one in good if one.p50_s >= long), None):
            return found
    return good[-1]


def measure_sizes(
    send: Callable[[Measured], None], setup: Setup, one: Measured, sizes: Sequence[int] | None,
    limits: Mapping[str, float],
) -> None:  # fmt: skip
    """Measure one size after the other; sends ``one`` each time that there is more in it. Raises what the agent raises
    while it is loaded or first asked."""
    with loaded(setup) as (bare, one.load_s, one.first_answer_s):
        one.random_weights = bool(bare.agent.provenance().get("random_weights"))
        for size in doubling(bare) if sizes is None else sizes:
            one.stopped = _measure(setup, bare, size, one, limits)
            if one.stopped is None and sizes is None and gained_nothing(one.sizes, _long(one)):
                one.stopped = Stopped(size, "no_gain", f"{_unit(one)} {size}: nothing gained by two doublings")
            send(one)
            if one.stopped is not None:
                break
        else:
            if sizes is None:
                one.stopped = Stopped(size, "largest", f"{_unit(one)} {size}: the largest tried")
        if one.best is not None and one.best.batch_size > 1:
            one.differing = _compare(bare, one.best.batch_size, 2 * setup.seconds)
        send(one)


def doubling(bare: BareAgent) -> Iterator[int]:
    """The sizes to try, up to the most calls that the engine takes at once."""
    most = max(1, bare.agent.max_in_flight) if bare.agent.continuous() else LARGEST
    size = 1
    while size < most:
        yield size
        size *= 2
    yield most


def gained_nothing(found: Sequence[Size], long: float) -> bool:
    """Whether the last two sizes brought nothing, and larger ones would not help a scheduler either (see
    :func:`best`)."""
    rates = [one.stimuli_s for one in found]
    return len(rates) > 2 and NEARLY * max(rates[-2:]) <= max(rates[:-2]) and found[-1].p50_s >= long


def _unit(one: Measured) -> str:
    return "calls at once" if one.continuous else "batch size"


def _long(one: Measured) -> float:
    """See :func:`best`; calls are not handed over together."""
    return 0.0 if one.continuous else LONG


def _measure(setup: Setup, bare: BareAgent, size: int, one: Measured, limits: Mapping[str, float]) -> Stopped | None:
    """Add one size in the steady state to ``one``; returns why it cannot be measured."""

    def stop(why: StopReason, message: str) -> Stopped:
        return Stopped(size, why, f"{_unit(one)} {size}{message}")

    release_memory()
    torch: Any = sys.modules.get("torch")
    cuda = torch.cuda if torch is not None and setup.device.startswith("cuda") else None
    if cuda is not None:
        cuda.reset_peak_memory_stats()
    try:
        tally = bare.measure(size, setup.seconds)
    except Exception as error:
        if is_out_of_memory(error):
            return stop("out_of_memory", f": out of memory ({describe(error)})")
        return stop("error", f": {describe(error)}")
    if not tally.answered:
        return stop("error", f": no stimulus is answered: {tally.failure}")
    seconds, p50, host = tally.seconds, tally.percentile(0.5), machine.peak()
    # An agent that chooses by itself tells what it chose; the others compute in fp32 unless they are told.
    chosen = TYPES.get(str(getattr(bare.agent.settings, "precision", "fp32")), "float32")
    precision = str(bare.agent.provenance().get("dtype", chosen))
    device = None if cuda is None else int(cuda.max_memory_reserved())
    flops = _flops(bare, size) if p50 <= COUNTED * setup.seconds else None
    limit = limits.get(precision)
    found = Size(
        batch_size=size,
        stimuli_s=tally.answered / seconds,
        p50_s=p50,
        p95_s=tally.percentile(0.95),
        peak_host_bytes=host,
        seconds=seconds,
        stimuli=tally.answered,
        failed=tally.failed,
        tokens_s=None if tally.tokens is None else tally.tokens / seconds,
        fixations_s=None if tally.fixations is None else tally.fixations / seconds,
        peak_device_bytes=device,
        busy=None if one.continuous else min(1.0, tally.responding / seconds),
        flops=flops,
        flop_share=flops * len(tally.latencies) / seconds / limit if flops and limit else None,
        precision=precision if flops else None,
    )
    one.sizes.append(found)
    one.best = best(one.sizes, _long(one))
    return None


def _flops(bare: BareAgent, size: int) -> int | None:
    """The operations of one batch by torch's own counter; None where torch does not compute in this process."""
    if "torch" not in sys.modules or bare.agent.continuous():
        return None
    import torch
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    def attention(query: Any, key: Any, value: Any, *others: Any, **options: Any) -> int:
        return int(sdpa_flop_count(query, key, value))

    # torch has no formula for attention as the CPU computes it
    formulas = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention}
    try:
        with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
            bare.ask(list(islice(cycle(bare.shown), size)))
    except Exception as error:  # counting takes a little memory, and is not possible for every module
        print(f"operations are not counted: {describe(error)}", file=sys.stderr)
        return None
    return int(counter.get_total_flops()) or None


def _compare(bare: BareAgent, size: int, seconds: float) -> Differing:
    """How many answers in batches of ``size`` are not those one at a time, for which there are ``seconds``."""
    release_memory()
    count, until = max(COMPARED, size), time.perf_counter() + seconds
    alone: list[Reply | Exception] = []
    for stimulus in islice(cycle(bare.shown), count):
        if len(alone) >= FEWEST and time.perf_counter() > until:
            break
        alone += bare.ask([stimulus])
    source, count = cycle(bare.shown), len(alone)
    together: list[Reply | Exception] = []
    while len(together) < count:
        together += bare.ask(list(islice(source, size)))
    differ = sum(_text(one) != _text(other) for one, other in zip(alone, together, strict=False))
    return Differing(differ / count, differ, count, size)


def _text(reply: Reply | Exception) -> str:
    """An answer as text: everything that is in it, or why there is none."""
    return reply.answer.model_dump_json() if isinstance(reply, Reply) else str(getattr(reply, "code", repr(reply)))
