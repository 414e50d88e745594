"""The same agents behind all of ``turinglike generate``: check, scheduler, Ray workers, filters, records on disk.

Each measurement is one call of ``generate`` over a large set, ended once its records show enough of the steady state.
The rate is that of the records, by the time in each. Of agents that converse one turn is asked for each stimulus.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from agents.contract import Agent
from agents.entry import Entry
from agents.errors import AgentStoppedError
from agents.tasks import Mode, Task
from serving.bench import child_process, stimuli
from serving.bench.bare import Setup, Window, measure_once
from serving.bench.results import EndToEnd, Measured, Packed
from serving.runs import batch_sizes
from serving.scheduling import machine
from serving.scheduling.interrupts import Interrupted

REPLICAS = (1, 2, 4)
MOST = 200_000  # stimuli of a set, unless these are too few rounds
ROUNDS = 10  # of batches that a set has at the least for each worker
STARTING = 2.0  # seconds in which Ray's own processes are still busy
LOOK = 0.5  # seconds between two looks at the records


@dataclass(frozen=True, kw_only=True)
class BestEntry(Entry):
    """The catalogue's line of an agent, which is made as it was measured: one task, its best batch size, and nothing
    asked twice, as nobody filters the bare agent's answers."""

    measured: Measured

    def make(self, overrides: Mapping[str, Any] | None = None) -> Agent[Any]:
        agent = super().make(overrides)
        best = self.measured.at_best()
        batch_sizes.fit(agent, best.batch_size, best.peak_device_bytes)
        agent.attempts = 1
        if self.measured.mode is not None:
            agent.modes = (self.measured.mode,)  # type: ignore[misc]
        return agent


def measure(one: Measured, setup: Setup, folder: Path) -> Iterator[EndToEnd]:
    """An agent at its best batch size with 1, 2 and 4 workers, as far as there are cores or GPUs for them.

    The ratio is to the bare agent at the same batch size, measured right before and right after: on a machine that is
    not as fast all the time, the mean of the two is nearest to what it was meanwhile. Raises AgentStoppedError.
    """
    size = one.at_best().batch_size
    after = child_process.figure(measure_once, setup, size) or 0.0
    for replicas in replica_counts(one):
        before, found = after, rates_together([one], {one.agent: setup}, replicas, folder)[one.agent]
        after = child_process.figure(measure_once, setup, size) or 0.0
        mean = (before + after) / 2
        yield EndToEnd(replicas, size, found, mean, found / mean, (before, after))


def packed(measured: Sequence[Measured], setups: Mapping[str, Setup], folder: Path) -> Packed | None:
    """The agents that were measured with one worker, all rates_together; None if there are fewer than two."""
    alone = {one.agent: whole.stimuli_s for one in measured for whole in one.end_to_end if whole.replicas == 1}
    if len(alone) < 2:
        return None
    rates = rates_together([one for one in measured if one.agent in alone], setups, 1, folder)
    return Packed(tuple(alone), rates, alone)


def replica_counts(one: Measured) -> list[int]:
    """The numbers of workers that there are cores or GPUs for. An engine that batches by itself without a GPU has one
    limit of calls at once for all its workers, so that more of them mean nothing."""
    if one.device == "cpu":
        most = 1 if one.continuous else machine.cores()
    else:
        import torch

        most = torch.cuda.device_count()
    return [count for count in REPLICAS if count <= max(1, most)]


def rates_together(
    measured: Sequence[Measured], setups: Mapping[str, Setup], replicas: int, folder: Path
) -> dict[str, float]:
    """Answers per second of each agent while all are at work, over one set that keeps each of them busy for three times
    as long as is measured. Raises AgentStoppedError."""
    counts: dict[tuple[Task, Mode | None], int] = {}
    for one in measured:
        best, seconds = one.at_best(), setups[one.agent].seconds + STARTING
        count = max(min(round(3 * replicas * best.stimuli_s * seconds), MOST), ROUNDS * replicas * best.batch_size)
        counts[one.task, one.mode] = max(count, counts.get((one.task, one.mode), 0))
    source = stimuli.write(folder / "end-to-end.jsonl", counts)
    with TemporaryDirectory(dir=folder) as out:
        [found] = child_process.run(generate, measured, setups, replicas, source, Path(out))
        return dict(found)


def generate(
    send: Callable[[object], None], measured: Sequence[Measured], setups: Mapping[str, Setup], replicas: int,
    source: Path, out: Path,
) -> None:  # fmt: skip
    """Call ``generate``, and end it when there are records enough; in a process of its own. Sends answers per second by
    agent. Raises what ``generate`` raises, and AgentStoppedError if there are too few records."""
    from serving.generate import GenerateOptions
    from serving.generate import generate as answer

    names = {one.agent: f"{one.agent}~{one.agent}" if one.task == "conversation" else one.agent for one in measured}
    pairs = {name: {"attempts": 1} for name in names.values() if "~" in name}
    entries = {}
    for one in measured:
        entry = setups[one.agent].entry
        kept = {each.name: getattr(entry, each.name) for each in fields(entry)}
        entries[one.agent] = BestEntry(**{**kept, "tasks": (one.task,)}, measured=one)
    options = GenerateOptions(
        source, list(names.values()), out / "run", entries, seed=0, replicas=replicas,
        settings={**{name: setups[name].settings for name in names}, **pairs},
        device="cpu" if all(one.device == "cpu" for one in measured) else "cuda",
    )  # fmt: skip
    records = {name: out / "run" / "records" / f"{kept}.jsonl" for name, kept in names.items()}
    rounds = {one.agent: replicas * one.at_best().batch_size for one in measured}
    seconds = max(setups[one.agent].seconds for one in measured)

    def end_in_time() -> None:
        while True:
            began = time.perf_counter()
            if rates(records, rounds, seconds, enough=True) is not None:
                return os.kill(os.getpid(), signal.SIGTERM)  # which ends ``generate`` in order
            time.sleep(max(LOOK, 20 * (time.perf_counter() - began)))  # looking takes hardly anything away

    signal.signal(signal.SIGTERM, lambda *_: None)  # should ``generate`` have just ended by itself
    threading.Thread(target=end_in_time, daemon=True).start()
    with (out / "progress").open("w") as progress:
        os.dup2(progress.fileno(), 2)
    told: list[str] = []
    with suppress(Interrupted):
        answer(options, told.append)
    if (found := rates(records, rounds, seconds)) is None:
        raise AgentStoppedError(f"`turinglike generate` wrote too few records to tell a rate: {'; '.join(told)}")
    send(found)


def rates(
    records: Mapping[str, Path], rounds: Mapping[str, int], seconds: float, enough: bool = False
) -> dict[str, float] | None:
    """Answers per second by agent, while all are at work; None if there are too few records, or, where they must be
    ``enough``, if that was not yet as long as it should be. ``rounds`` is how many answers come rates_together."""
    times: dict[str, list[float]] = {}
    answered: dict[str, float] = {}
    for name, path in records.items():
        written = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        lines = [orjson.loads(line) for line in written if line.endswith(b"\n")]
        if not lines:
            return None
        times[name] = sorted(datetime.fromisoformat(line["created"]).timestamp() for line in lines)
        answered[name] = sum(line["status"] != "failed" for line in lines) / len(lines)
    first, last = max(ends[0] for ends in times.values()) + STARTING, min(ends[-1] for ends in times.values())
    found = {}
    for name, ends in times.items():
        window = Window(seconds, first, rounds[name])
        for end in ends:
            if first <= end <= last and not window.over:
                window.add(end)
        if (rate := window.rate()) is None or (enough and not window.over):
            return None
        found[name] = rate * answered[name]
    return found
