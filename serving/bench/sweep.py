"""Measures an agent: bare over doubling sizes, then ``generate`` at the best."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from agents.errors import AgentStoppedError
from serving.bench import made_stimuli
from serving.bench.bare import BareAgent, DiedError, Setup, in_child
from serving.bench.results import EndToEnd, Measured, Size, rate
from serving.runs.run_json import run_entry
from serving.scheduling import machine
from serving.scheduling.recovery import FatalDeviceError, release_memory

LARGEST = 1024  # where a sweep without --batch-sizes ends
NEARLY = 0.97  # of the highest throughput is as good
REPLICAS = (1, 2, 4)
MOST = 200_000  # stimuli of a set for ``generate``, unless these are too few rounds
ROUNDS = 10  # of batches that it has at the least for each worker, and times that a rate is taken of
STARTING = 2.0  # seconds in which Ray's own processes are still busy


def sweep(setup: Setup, sizes: Sequence[int] | None, log: Callable[[str], None]) -> Iterator[Measured]:
    """Measure in another process (``sizes`` None: doubling); yields the growing result. Raises AgentStoppedError."""
    agent, name = setup.agent(), setup.entry.name
    about = run_entry([(setup.entry, agent)])
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
    """Measure the sizes in turn, sending each result. Raises the agent's errors and AgentStoppedError."""
    with closing(BareAgent(setup)) as bare:
        measured.load_s, measured.first_answer_s = bare.load_s, bare.first_answer_s
        measured.random_weights = bool(bare.agent.provenance().get("random_weights"))
        for size in _doubling(bare) if sizes is None else sizes:
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


def best(sizes: Sequence[Size]) -> Size:
    """The smallest size whose throughput is :data:`NEARLY` the highest."""
    highest = max(size.stimuli_s for size in sizes)
    return min((size for size in sizes if size.stimuli_s >= NEARLY * highest), key=lambda size: size.batch_size)


def _doubling(bare: BareAgent) -> Iterator[int]:
    most = max(1, bare.agent.max_in_flight) if bare.agent.continuous() else LARGEST
    size = 1
    while size < most:
        yield size
        size *= 2
    yield most


def gained_nothing(sizes: Sequence[Size]) -> bool:
    rates = [size.stimuli_s for size in sizes]
    return len(rates) > 2 and NEARLY * max(rates[-2:]) <= max(rates[:-2])


def _unit(measured: Measured) -> str:
    return "calls at once" if measured.continuous else "batch size"


def _measure(setup: Setup, bare: BareAgent, size: int) -> Size:
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
    return Size(
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
        busy=None if bare.agent.continuous() else min(1.0, tally.responding / seconds),
    )


def end_to_end(measured: Measured, setup: Setup, folder: Path) -> Iterator[EndToEnd]:
    """``generate`` at the best size with 1, 2, 4 workers, if they fit. Raises AgentStoppedError."""
    bare = measured.at_best()
    size = setup.agent().max_in_flight if measured.continuous else bare.batch_size
    for replicas in replica_counts(measured):
        [stimuli_s] = in_child(_measure_generate, measured, setup, size, replicas, folder)
        yield EndToEnd(replicas, size, stimuli_s, stimuli_s / bare.stimuli_s)


def replica_counts(measured: Measured) -> list[int]:
    """The numbers of workers to measure: 1 for a server."""
    if measured.device == "cpu":
        most = 1 if measured.continuous else machine.cores()
    else:
        import torch

        most = torch.cuda.device_count()
    return [count for count in REPLICAS if count <= max(1, most)]


def _measure_generate(
    send: Callable[[object], None], measured: Measured, setup: Setup, size: int, replicas: int, folder: Path
) -> None:
    from serving.generate import GenerateOptions, generate

    agent, is_pair = measured.agent, measured.task == "conversation"
    name = f"{agent}~{agent}" if is_pair else agent
    count = round(replicas * measured.at_best().stimuli_s * (2 * setup.seconds + STARTING))
    count = max(min(count, MOST), ROUNDS * replicas * size)
    source = made_stimuli.write(folder / "end-to-end.jsonl", measured.task, measured.mode, count)
    messages: list[str] = []
    with TemporaryDirectory(dir=folder) as out:
        options = GenerateOptions(
            source,
            [name],
            Path(out) / "run",
            entries={agent: setup.entry},
            settings={agent: setup.settings} | ({name: {"attempts": 1}} if is_pair else {}),
            seed=0,
            replicas=replicas,
            batch_size=size,
            device="cpu" if measured.device == "cpu" else "cuda",
            quiet=True,
        )
        generate(options, messages.append)
        records = Path(out) / "run" / "records" / f"{name}.jsonl"
        if (stimuli_s := record_rate(records)) is None:
            raise AgentStoppedError(f"`turinglike generate` wrote too few records for a rate: {'; '.join(messages)}")
    send(stimuli_s)


def record_rate(records: Path) -> float | None:
    """Answers per second by the records' times, or None."""
    lines = [orjson.loads(line) for line in records.read_bytes().splitlines()]
    ends = sorted(datetime.fromisoformat(line["created"]).timestamp() for line in lines)
    steady = [end for end in ends if end >= ends[0] + STARTING]
    if len({*steady}) < ROUNDS:
        return None
    answered: float = sum(line["status"] != "failed" for line in lines) / len(lines)
    after_first = sum(end > steady[0] for end in steady)
    return answered * after_first / (steady[-1] - steady[0])
