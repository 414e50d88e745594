"""The bare agent over batch sizes: 1, 2, 4, … until memory runs out, or more brings nothing.

:func:`measure_sizes` runs in a process of its own, which has the agent; :func:`measure` is the command's side of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

from agents.contract import Reply
from agents.errors import AgentStoppedError
from serving.bench import child_process
from serving.bench.bare import BareAgent, Setup, loaded
from serving.bench.output import rate
from serving.bench.results import Differing, Measured, Size, Stopped, StopReason
from serving.runs.run_json import digest
from serving.scheduling import machine
from serving.scheduling.device_errors import is_out_of_memory, release_memory
from serving.scheduling.worker import describe

LARGEST = 1024  # where a sweep without --batch-sizes ends
NEARLY = 0.97  # of the highest throughput is as good
ABOUT = 0.9  # is good enough, where a batch of what is better takes hardly any time
LONG = 0.05  # seconds of a batch beside which the few milliseconds that a scheduler needs for one do not count
COMPARED, FEWEST = 64, 8  # answers that are compared with those one at a time; fewer where that takes too long


def measure(setup: Setup, sizes: Sequence[int] | None, log: Callable[[str], None]) -> Iterator[Measured]:
    """Measure an agent in another process: ``sizes``, or None for doubling. Yields what is known of it, each time more.

    Raises AgentStoppedError with what kept anything from being measured.
    """
    agent, name = setup.agent(), setup.entry.name
    about = digest([(setup.entry, agent)])
    measured = Measured(
        agent=name,
        task=setup.task,
        mode=setup.mode,
        digest=about["digest"],
        settings=about["settings"],
        device=setup.device,
        continuous=agent.continuous(),
    )
    log(f"{name}: loading")
    logged = 0
    try:
        for message in child_process.run(measure_sizes, setup, measured, sizes):
            measured = message
            for size in measured.sizes[logged:]:
                log(f"{name}: {_unit(measured)} {size.batch_size}: {rate(size.stimuli_s)} stimuli/s")
            logged = len(measured.sizes)
            if measured.sizes:
                yield measured
    except child_process.DiedError as error:
        # Killed while it tried a size, it had too little memory for that.
        if not error.killed or not measured.sizes or measured.stopped is not None:
            raise
        last = measured.sizes[-1].batch_size
        measured.stopped = Stopped(last, "out_of_memory", f"more than {_unit(measured)} {last}: {error}")
        yield measured
    if measured.stopped is not None:
        if measured.stopped.why == "error" or not measured.sizes:
            raise AgentStoppedError(measured.stopped.message)
        log(f"{name}: {measured.stopped.message}")


def best(sizes: Sequence[Size], long: float = LONG) -> Size:
    """The smallest size whose throughput is :data:`NEARLY` the highest and of which a batch takes ``long`` at least; if
    none takes so long, the same with :data:`ABOUT`; if there is none either, the largest of that throughput."""
    highest = max(size.stimuli_s for size in sizes)
    for share in (NEARLY, ABOUT):
        good = sorted((size for size in sizes if size.stimuli_s >= share * highest), key=lambda size: size.batch_size)
        slow = [size for size in good if size.p50_s >= long]
        if slow:
            return slow[0]
    return good[-1]


def measure_sizes(
    send: Callable[[Measured], None], setup: Setup, measured: Measured, sizes: Sequence[int] | None
) -> None:
    """Measure the sizes in turn; sends ``measured`` each time that there is more in it. Raises what the agent raises
    while it is loaded or first asked."""
    with loaded(setup) as (bare, measured.load_s, measured.first_answer_s):
        measured.random_weights = bool(bare.agent.provenance().get("random_weights"))
        for size in doubling(bare) if sizes is None else sizes:
            measured.stopped = _measure(setup, bare, size, measured)
            if measured.stopped is None and sizes is None and gained_nothing(measured.sizes, _long(measured)):
                message = f"{_unit(measured)} {size}: nothing gained by two doublings"
                measured.stopped = Stopped(size, "no_gain", message)
            send(measured)
            if measured.stopped is not None:
                break
        else:
            if sizes is None:
                measured.stopped = Stopped(size, "largest", f"{_unit(measured)} {size}: the largest tried")
        if measured.best is not None and measured.best.batch_size > 1:
            measured.differing = _compare(bare, measured.best.batch_size, 2 * setup.seconds)
        send(measured)


def doubling(bare: BareAgent) -> Iterator[int]:
    """The sizes to try, up to the most calls that the engine takes at once."""
    most = max(1, bare.agent.max_in_flight) if bare.agent.continuous() else LARGEST
    size = 1
    while size < most:
        yield size
        size *= 2
    yield most


def gained_nothing(sizes: Sequence[Size], long: float) -> bool:
    """Whether the last two sizes brought nothing, and larger ones would not help a scheduler either (see
    :func:`best`)."""
    rates = [size.stimuli_s for size in sizes]
    return len(rates) > 2 and NEARLY * max(rates[-2:]) <= max(rates[:-2]) and sizes[-1].p50_s >= long


def _unit(measured: Measured) -> str:
    return "calls at once" if measured.continuous else "batch size"


def _long(measured: Measured) -> float:
    """See :func:`best`; calls are not handed over together."""
    return 0.0 if measured.continuous else LONG


def _measure(setup: Setup, bare: BareAgent, size: int, measured: Measured) -> Stopped | None:
    """Add a size in the steady state to ``measured``; returns why it cannot be measured."""

    def stop(why: StopReason, message: str) -> Stopped:
        return Stopped(size, why, f"{_unit(measured)} {size}{message}")

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
    seconds = tally.seconds
    measured.sizes.append(
        Size(
            batch_size=size,
            stimuli_s=tally.answered / seconds,
            p50_s=tally.percentile(0.5),
            p95_s=tally.percentile(0.95),
            peak_host_bytes=machine.peak(),
            seconds=seconds,
            stimuli=tally.answered,
            failed=tally.failed,
            tokens_s=None if tally.tokens is None else tally.tokens / seconds,
            fixations_s=None if tally.fixations is None else tally.fixations / seconds,
            peak_device_bytes=None if cuda is None else int(cuda.max_memory_reserved()),
            busy=None if measured.continuous else min(1.0, tally.responding / seconds),
        )
    )
    measured.best = best(measured.sizes, _long(measured))
    return None


def _compare(bare: BareAgent, size: int, seconds: float) -> Differing:
    """How many answers in batches of ``size`` are not those made singly, for which there are ``seconds``."""
    release_memory()
    count, until = max(COMPARED, size), time.perf_counter() + seconds
    alone: list[Reply | Exception] = []
    for stimulus in islice(cycle(bare.stimuli), count):
        if len(alone) >= FEWEST and time.perf_counter() > until:
            break
        alone += bare.ask([stimulus])
    source, count = cycle(bare.stimuli), len(alone)
    batched: list[Reply | Exception] = []
    while len(batched) < count:
        batched += bare.ask(list(islice(source, size)))
    differ = sum(_text(first) != _text(second) for first, second in zip(alone, batched, strict=False))
    return Differing(differ / count, differ, count, size)


def _text(reply: Reply | Exception) -> str:
    """An answer as text: everything that is in it, or why there is none."""
    return reply.answer.model_dump_json() if isinstance(reply, Reply) else str(getattr(reply, "code", repr(reply)))
