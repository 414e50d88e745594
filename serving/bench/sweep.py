"""One agent: bare over batch sizes 1, 2, 4, … until memory runs out or more brings nothing, and then all of
``turinglike generate`` at the best size with 1, 2 and 4 workers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from agents.contract import Agent, Reply
from agents.entry import Entry
from agents.errors import AgentStoppedError
from serving.bench import made_stimuli
from serving.bench.bare import BareAgent, DiedError, Setup, Window, in_child, loaded
from serving.bench.results import Differing, EndToEnd, Measured, Size, Stopped, StopReason, rate
from serving.runs.run import digest
from serving.scheduling import machine
from serving.scheduling.interrupts import Interrupted
from serving.scheduling.recovery import describe, is_out_of_memory, release_memory

LARGEST = 1024  # where a sweep without --batch-sizes ends
NEARLY = 0.97  # of the highest throughput is as good
ABOUT = 0.9  # is good enough, where a batch of what is better takes hardly any time
LONG = 0.05  # seconds of a batch beside which the few milliseconds that a scheduler needs for it do not count
COMPARED, FEWEST = 64, 8  # answers that are compared with those one at a time; fewer where that takes too long
REPLICAS = (1, 2, 4)
MOST = 200_000  # stimuli of a set for ``generate``, unless these are too few rounds
ROUNDS = 10  # of batches that it has at the least for each worker
STARTING = 2.0  # seconds in which Ray's own processes are still busy
ROOM = 1.1  # of the device memory that the measured batch took: allocations are not quite the same every time
LOOK = 0.5  # seconds between two looks at the records


def sweep(setup: Setup, sizes: Sequence[int] | None, log: Callable[[str], None]) -> Iterator[Measured]:
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
        for message in in_child(measure_sizes, setup, measured, sizes):
            measured = message
            for size in measured.sizes[logged:]:
                log(f"{name}: {_unit(measured)} {size.batch_size}: {rate(size.stimuli_s)} stimuli/s")
            logged = len(measured.sizes)
            if measured.sizes:
                yield measured
    except DiedError as error:
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


def measure_sizes(
    send: Callable[[Measured], None], setup: Setup, measured: Measured, sizes: Sequence[int] | None
) -> None:
    """Measure the sizes in turn; sends ``measured`` each time that there is more in it. Raises what the agent raises
    while it is loaded or makes its first answer."""
    with loaded(setup) as (bare, measured.load_s, measured.first_answer_s):
        measured.random_weights = bool(bare.agent.provenance().get("random_weights"))
        for size in _doubling(bare) if sizes is None else sizes:
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


def _doubling(bare: BareAgent) -> Iterator[int]:
    most = max(1, bare.agent.max_in_flight) if bare.agent.continuous() else LARGEST
    size = 1
    while size < most:
        yield size
        size *= 2
    yield most


def gained_nothing(sizes: Sequence[Size], long: float) -> bool:
    """Whether the last two sizes brought nothing, and larger ones would not help a scheduler either."""
    rates = [size.stimuli_s for size in sizes]
    return len(rates) > 2 and NEARLY * max(rates[-2:]) <= max(rates[:-2]) and sizes[-1].p50_s >= long


def _unit(measured: Measured) -> str:
    return "calls at once" if measured.continuous else "batch size"


def _long(measured: Measured) -> float:
    return 0.0 if measured.continuous else LONG  # calls are not handed over together


def _measure(setup: Setup, bare: BareAgent, size: int, measured: Measured) -> Stopped | None:
    """Add a size in the steady state to ``measured``; returns why it cannot be measured."""

    def stop(why: StopReason, message: str) -> Stopped:
        return Stopped(size, why, f"{_unit(measured)} {size}: {message}")

    release_memory()
    torch: Any = sys.modules.get("torch")
    cuda = torch.cuda if torch is not None and setup.device.startswith("cuda") else None
    if cuda is not None:
        cuda.reset_peak_memory_stats()
    try:
        tally = bare.measure(size, setup.seconds)
    except Exception as error:
        if is_out_of_memory(error):
            return stop("out_of_memory", f"out of memory ({describe(error)})")
        return stop("error", describe(error))
    if not tally.answered:
        return stop("error", f"no stimulus is answered: {tally.failure}")
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
    until = time.perf_counter() + seconds
    alone: list[str] = []
    for stimulus in islice(cycle(bare.stimuli), max(COMPARED, size)):
        if len(alone) >= FEWEST and time.perf_counter() > until:
            break
        alone += map(_text, bare.answer([stimulus]))
    source, batched = cycle(bare.stimuli), list[str]()
    while len(batched) < len(alone):
        batched += map(_text, bare.answer(list(islice(source, size))))
    count = sum(single != other for single, other in zip(alone, batched, strict=False))
    return Differing(count / len(alone), count, len(alone), size)


def _text(reply: Reply | Exception) -> str:
    return reply.answer.model_dump_json() if isinstance(reply, Reply) else str(getattr(reply, "code", repr(reply)))


@dataclass(frozen=True, kw_only=True)
class BestEntry(Entry):
    """The catalogue's line of an agent, which is made as it was measured: with its best batch size, and one attempt, as
    nobody filters the bare agent's answers."""

    measured: Measured

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        agent = super().make(overrides)
        best = self.measured.at_best()
        if agent.continuous():
            agent.max_in_flight = best.batch_size
        else:
            agent.batch_size = best.batch_size
        if agent.device_memory and best.peak_device_bytes:
            agent.device_memory = max(agent.device_memory, int(ROOM * best.peak_device_bytes))
        agent.attempts = 1
        if self.measured.mode is not None:
            agent.modes = (self.measured.mode,)  # type: ignore[misc]
        return agent


def end_to_end(measured: Measured, setup: Setup, folder: Path) -> Iterator[EndToEnd]:
    """An agent behind all of ``generate`` at its best batch size, as far as there are cores or GPUs for more workers.

    The ratio is to the mean of the bare agent right before and right after: no machine is as fast all the time. Raises
    AgentStoppedError.
    """
    size = measured.at_best().batch_size
    [after] = in_child(measure_bare, setup, size)
    for replicas in replica_counts(measured):
        before, stimuli_s = after, measure_generate(measured, setup, replicas, folder)
        [after] = in_child(measure_bare, setup, size)
        mean = (before + after) / 2
        yield EndToEnd(replicas, size, stimuli_s, mean, stimuli_s / mean, (before, after))


def measure_bare(send: Callable[[object], None], setup: Setup, size: int) -> None:
    """Sends the stimuli per second at one size."""
    with loaded(setup) as (bare, _, _):
        tally = bare.measure(size, setup.seconds)
        send(tally.answered / tally.seconds)


def replica_counts(measured: Measured) -> list[int]:
    """The numbers of workers to measure. Without a GPU an engine that batches by itself has a limit of calls at once
    for all its workers, so that more of them mean nothing."""
    if measured.device == "cpu":
        most = 1 if measured.continuous else machine.cores()
    else:
        import torch

        most = torch.cuda.device_count()
    return [count for count in REPLICAS if count <= max(1, most)]


def measure_generate(measured: Measured, setup: Setup, replicas: int, folder: Path) -> float:
    """Answers per second of so many workers, over a set that keeps them busy for three times as long as is measured."""
    best = measured.at_best()
    count = round(3 * replicas * best.stimuli_s * (setup.seconds + STARTING))
    count = max(min(count, MOST), ROUNDS * replicas * best.batch_size)
    source = made_stimuli.write(folder / "end-to-end.jsonl", {(measured.task, measured.mode): count})
    with TemporaryDirectory(dir=folder) as out:
        [stimuli_s] = in_child(_generate, measured, setup, replicas, source, Path(out))
        return float(stimuli_s)


def _generate(
    send: Callable[[object], None], measured: Measured, setup: Setup, replicas: int, source: Path, out: Path
) -> None:
    """Call ``generate``, and end it when there are records enough; sends answers per second."""
    from serving.generate import GenerateOptions, generate

    is_pair = measured.task == "conversation"
    name = f"{measured.agent}~{measured.agent}" if is_pair else measured.agent
    catalogued = {field.name: getattr(setup.entry, field.name) for field in fields(setup.entry)}
    entry = BestEntry(**{**catalogued, "tasks": (measured.task,)}, measured=measured)
    options = GenerateOptions(
        source, [name], out / "run", {measured.agent: entry}, seed=0, replicas=replicas,
        settings={measured.agent: setup.settings} | ({name: {"attempts": 1}} if is_pair else {}),
        device="cpu" if measured.device == "cpu" else "cuda",
    )  # fmt: skip
    records = out / "run" / "records" / f"{name}.jsonl"
    together = replicas * measured.at_best().batch_size

    def end_in_time() -> None:
        while True:
            began = time.perf_counter()
            if record_rate(records, together, setup.seconds, enough=True) is not None:
                return os.kill(os.getpid(), signal.SIGTERM)  # which ends ``generate`` in order
            time.sleep(max(LOOK, 20 * (time.perf_counter() - began)))  # looking takes hardly anything away

    signal.signal(signal.SIGTERM, lambda *_: None)  # should ``generate`` have just ended by itself
    threading.Thread(target=end_in_time, daemon=True).start()
    with (out / "progress").open("w") as progress:
        os.dup2(progress.fileno(), 2)
    messages: list[str] = []
    with suppress(Interrupted):
        generate(options, messages.append)
    if (stimuli_s := record_rate(records, together, setup.seconds)) is None:
        raise AgentStoppedError(f"`turinglike generate` wrote too few records for a rate: {'; '.join(messages)}")
    send(stimuli_s)


def record_rate(records: Path, together: int, seconds: float, enough: bool = False) -> float | None:
    """Answers per second by the times in records, of which ``together`` come at once; None if they are too few, or,
    where they must be ``enough``, do not span ``seconds`` yet."""
    written = records.read_bytes().splitlines(keepends=True) if records.exists() else []
    lines = [orjson.loads(line) for line in written if line.endswith(b"\n")]
    if not lines:
        return None
    ends = sorted(datetime.fromisoformat(line["created"]).timestamp() for line in lines)
    answered = sum(line["status"] != "failed" for line in lines) / len(lines)
    first = ends[0] + STARTING
    window = Window(seconds, first, together)
    for end in ends:
        if end >= first and not window.over:
            window.add(end)
    stimuli_s = window.rate()
    return None if stimuli_s is None or (enough and not window.over) else stimuli_s * answered
