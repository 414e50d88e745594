"""Measures an agent with one batch size after the other, each in the same fresh process."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from agents.capabilities import provenance_of
from agents.errors import AgentStoppedError
from serving.bench.bare import BareAgent, DiedError, Setup, in_child
from serving.bench.figures import rate
from serving.bench.results import BatchSizeResult, Measured
from serving.runs.run_json import run_entry
from serving.scheduling import machine
from serving.scheduling.recovery import FatalDeviceError, release_memory

LARGEST = 1024  # the last batch size without --batch-sizes
NEARLY = 0.97  # this part of the highest throughput counts as just as good


def sweep(setup: Setup, sizes: Sequence[int] | None, log: Callable[[str], None]) -> Iterator[Measured]:
    """Measure an agent in another process, and yield its result after each batch size.

    ``sizes`` None doubles the batch size until that brings nothing. ``log`` gets sentences about what is done. If the
    process is killed while it tries a size, that size was too large, and the result says so. Raises AgentStoppedError
    where not even the first size could be measured.
    """
    agent = setup.agent()
    name = setup.entry.name
    entry = run_entry([(setup.entry, agent)])
    measured = Measured(
        agent=name,
        task=setup.task,
        mode=setup.mode,
        digest=entry["digest"],
        settings=entry["settings"],
        device=setup.device,
        continuous=agent.declaration().batches_by_itself,
    )
    log(f"{name}: loading")
    logged = 0
    try:
        for message in in_child(measure_sizes, setup, measured, sizes):
            measured = message
            for size in measured.sizes[logged:]:
                log(f"{name}: {_unit(measured)} {size.batch_size}: {rate(size.stimuli_s)} stimuli/s")
            logged = len(measured.sizes)
            yield measured
    except DiedError as error:
        # Killed while it tried a size, it had too little memory for that.
        if not error.killed or not measured.sizes:
            raise
        measured.stopped = f"more than {_unit(measured)} {measured.sizes[-1].batch_size}: {error}"
        yield measured
    if measured.stopped is not None:
        log(f"{name}: {measured.stopped}")


def measure_sizes(
    send: Callable[[Measured], None], setup: Setup, measured: Measured, sizes: Sequence[int] | None
) -> None:
    """Measure one batch size after the other in this process, adding to ``measured``, and ``send`` it after each.
    Raises the agent's own errors, and AgentStoppedError where nothing is answered."""
    with closing(BareAgent(setup)) as bare:
        measured.load_s = bare.load_s
        measured.first_answer_s = bare.first_answer_s
        measured.random_weights = bool(provenance_of(bare.agent).get("random_weights"))
        batch_sizes = _doubling(bare) if sizes is None else sizes
        for size in batch_sizes:
            try:
                measured.sizes.append(_measure(setup, bare, size))
            except MemoryError as error:
                measured.stopped = f"{_unit(measured)} {size}: out of memory ({error})"
                if not measured.sizes:
                    raise AgentStoppedError(measured.stopped) from None
            else:
                measured.best = best(measured.sizes)
                if sizes is None and gained_nothing(measured.sizes):
                    measured.stopped = f"{_unit(measured)} {size}: nothing gained by two doublings"
            send(measured)
            if measured.stopped is not None:
                break


def best(sizes: Sequence[BatchSizeResult]) -> BatchSizeResult:
    """The smallest batch size whose throughput is nearly (:data:`NEARLY`) the highest."""
    highest = max(size.stimuli_s for size in sizes)
    return min((size for size in sizes if size.stimuli_s >= NEARLY * highest), key=lambda size: size.batch_size)


def _doubling(bare: BareAgent) -> Iterator[int]:
    most = bare.agent.declaration().max_in_flight or LARGEST
    size = 1
    while size < most:
        yield size
        size *= 2
    yield most


def gained_nothing(sizes: Sequence[BatchSizeResult]) -> bool:
    """Whether the last two batch sizes brought hardly more than the best before them."""
    rates = [size.stimuli_s for size in sizes]
    return len(rates) > 2 and NEARLY * max(rates[-2:]) <= max(rates[:-2])


def _unit(measured: Measured) -> str:
    return "calls at once" if measured.continuous else "batch size"


def _measure(setup: Setup, bare: BareAgent, size: int) -> BatchSizeResult:
    release_memory()
    torch: Any = sys.modules.get("torch")
    cuda = torch.cuda if torch is not None and setup.device.startswith("cuda") else None
    if cuda is not None:
        cuda.reset_peak_memory_stats()
    try:
        tally = bare.measure(size, setup.seconds)
    except FatalDeviceError as error:
        raise (MemoryError if error.of_memory else AgentStoppedError)(str(error)) from error
    if not tally.answered:
        raise AgentStoppedError(f"batch size {size}: no stimulus is answered: {tally.failure}")
    seconds = tally.seconds
    return BatchSizeResult(
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
        busy=None if bare.agent.declaration().batches_by_itself else min(1.0, tally.responding / seconds),
    )
