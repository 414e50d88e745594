"""The same agents behind all of ``turinglike generate``: check, scheduler, Ray workers, filters, records on disk.

Each measurement is one call of ``generate`` over a large set, ended once its records show enough of the steady state.
The rate is that of the records, by the time in each. Of agents that converse one turn is asked for each stimulus.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from agents.contract import Agent, Entry
from agents.errors import AgentStoppedError
from serving.bench import child_process, stimuli
from serving.bench.bare import Setup, Window, measure_once
from serving.bench.results import EndToEnd, Measured
from serving.scheduling import machine
from serving.scheduling.interrupts import Interrupted

REPLICAS = (1, 2, 4)
MOST = 200_000  # stimuli of a set, unless these are too few rounds
ROUNDS = 10  # of batches that a set has at the least for each worker
STARTING = 2.0  # seconds in which Ray's own processes are still busy
ROOM = 1.1  # of the device memory that the measured batch took: allocations are not quite the same every time
LOOK = 0.5  # seconds between two looks at the records


@dataclass(frozen=True, kw_only=True)
class BestEntry(Entry):
    """The catalogue's line of an agent, which is made as it was measured: one task, its best batch size, and nothing
    asked twice, as nobody filters the bare agent's answers."""

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


def measure(measured: Measured, setup: Setup, folder: Path) -> Iterator[EndToEnd]:
    """An agent at its best batch size with 1, 2 and 4 workers, as far as there are cores or GPUs for them.

    The ratio is to the bare agent at the same batch size, measured right before and right after: on a machine that is
    not as fast all the time, the mean of the two is nearest to what it was meanwhile. Raises AgentStoppedError.
    """
    size = measured.at_best().batch_size
    after = child_process.figure(measure_once, setup, size) or 0.0
    for replicas in replica_counts(measured):
        before, stimuli_s = after, measure_generate(measured, setup, replicas, folder)
        after = child_process.figure(measure_once, setup, size) or 0.0
        mean = (before + after) / 2
        yield EndToEnd(replicas, size, stimuli_s, mean, stimuli_s / mean, (before, after))


def replica_counts(measured: Measured) -> list[int]:
    """The numbers of workers that there are cores or GPUs for. An engine that batches by itself without a GPU has a
    limit of calls at once for all its workers, so that more of them mean nothing."""
    if measured.device == "cpu":
        most = 1 if measured.continuous else machine.cores()
    else:
        import torch

        most = torch.cuda.device_count()
    return [count for count in REPLICAS if count <= max(1, most)]


def measure_generate(measured: Measured, setup: Setup, replicas: int, folder: Path) -> float:
    """Answers per second of so many workers, over a set that keeps them busy for three times as long as is measured.
    Raises AgentStoppedError."""
    best = measured.at_best()
    count = round(3 * replicas * best.stimuli_s * (setup.seconds + STARTING))
    count = max(min(count, MOST), ROUNDS * replicas * best.batch_size)
    source = stimuli.write(folder / "end-to-end.jsonl", {(measured.task, measured.mode): count})
    with TemporaryDirectory(dir=folder) as out:
        [stimuli_s] = child_process.run(generate, measured, setup, replicas, source, Path(out))
        return float(stimuli_s)


def generate(
    send: Callable[[object], None], measured: Measured, setup: Setup, replicas: int, source: Path, out: Path
) -> None:
    """Call ``generate``, and end it when there are records enough; in a process of its own. Sends answers per second.
    Raises what ``generate`` raises, and AgentStoppedError if there are too few records."""
    from serving.generate import GenerateOptions
    from serving.generate import generate as answer

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
            if rate(records, together, setup.seconds, enough=True) is not None:
                return os.kill(os.getpid(), signal.SIGTERM)  # which ends ``generate`` in order
            time.sleep(max(LOOK, 20 * (time.perf_counter() - began)))  # looking takes hardly anything away

    signal.signal(signal.SIGTERM, lambda *_: None)  # should ``generate`` have just ended by itself
    threading.Thread(target=end_in_time, daemon=True).start()
    with (out / "progress").open("w") as progress:
        os.dup2(progress.fileno(), 2)
    messages: list[str] = []
    with suppress(Interrupted):
        answer(options, messages.append)
    if (stimuli_s := rate(records, together, setup.seconds)) is None:
        raise AgentStoppedError(f"`turinglike generate` wrote too few records to tell a rate: {'; '.join(messages)}")
    send(stimuli_s)


def rate(records: Path, together: int, seconds: float, enough: bool = False) -> float | None:
    """Answers per second; None if there are too few records, or, where they must be ``enough``, if that was not yet as
    long as it should be. ``together`` is how many answers come at once."""
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
