"""A sweep over batch sizes, seen from the command: each agent is measured in a process of its own
(:mod:`serving.bench.apart`), by :mod:`serving.bench.meter`; here is what it tells, and what its death means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.contract import Agent
from agents.entry import Entry
from agents.errors import AgentStoppedError
from serving.bench import apart
from serving.bench.best import LONG, best
from serving.bench.meter import Job, Loaded, Trying, measure, measure_again
from serving.bench.results import Differing, Limits, Measured, Size, Stopped
from serving.bench.table import rate
from serving.runs.run import digest
from serving.scheduling.interrupts import Interrupted


@dataclass
class Sweep:
    """What is known of one agent so far, on the command's side; complete after :meth:`run`."""

    job: Job
    problem: str | None = None  # why not everything could be measured
    _agent: Agent[Any] = field(init=False)
    _loaded: Loaded | None = None
    _sizes: list[Size] = field(default_factory=list)
    _stopped: Stopped | None = None
    _differing: Differing | None = None
    _trying: int = 1

    def __post_init__(self) -> None:
        self._agent = self.job.entry.make(self.job.settings)

    @property
    def unit(self) -> str:
        """What a size is a number of."""
        return "calls at once" if self._agent.continuous() else "batch size"

    def run(self, say: Callable[[str], None]) -> None:
        """Measure, in another process. Raises AgentStoppedError if nothing could be measured, and Interrupted."""
        name = self.job.entry.name
        say(f"{name}: loading")
        with closing(apart.run(measure, self.job)) as messages:
            try:
                for message in messages:
                    self._note(message)
                    if isinstance(message, Size):
                        say(f"{name}: {self.unit} {message.batch_size}: {rate(message.stimuli_s)} stimuli/s")
                    elif isinstance(message, Stopped):
                        say(f"{name}: {message.message}")
            except AgentStoppedError as error:
                self._end(error)
                say(f"{name}: {error}")
            except Interrupted:
                if self._stopped is None and self._trying not in [one.batch_size for one in self._sizes]:
                    message = f"{self.unit} {self._trying}: ended before it was measured"
                    self._stopped = Stopped(self._trying, "interrupted", message)
                raise
        if not self._sizes:  # there was no memory even for the first
            raise AgentStoppedError(self._stopped.message if self._stopped else "it ended without a figure")

    def _note(self, message: object) -> None:
        match message:
            case Loaded():
                self._loaded = message
            case Trying():
                self._trying = message.size
            case Size():
                self._sizes.append(message)
            case Stopped():
                self._stopped = message
                if message.why == "error":
                    self.problem = message.message
            case Differing():
                self._differing = message

    def _end(self, error: AgentStoppedError) -> None:
        """The process ended early. Killed while it tried a size, it had too little memory for that."""
        if not self._sizes:
            raise error
        if isinstance(error, apart.DiedError) and error.killed and self._trying > self._sizes[-1].batch_size:
            self._stopped = Stopped(self._trying, "out_of_memory", f"{self.unit} {self._trying}: {error}")
        else:
            self.problem = self.problem or str(error)
            self._stopped = self._stopped or Stopped(self._trying, "error", str(error))

    def measured(self) -> Measured | None:
        """What is known so far; None before there was an answer."""
        job, loaded = self.job, self._loaded
        if loaded is None or not self._sizes:
            return None
        about = digest([(job.entry, self._agent)])
        return Measured(
            agent=job.entry.name,
            task=job.task,
            mode=job.mode,
            digest=about["digest"],
            settings=about["settings"],
            device=job.device,
            random_weights=loaded.random_weights,
            continuous=self._agent.continuous(),
            load_s=loaded.load_s,
            first_answer_s=loaded.first_answer_s,
            sizes=tuple(self._sizes),
            stopped=self._stopped,
            best=best(self._sizes, 0.0 if self._agent.continuous() else LONG),
            differing=self._differing,
        )


def again(one: Measured, entry: Entry, settings: Mapping[str, Any], source: Path, size: int, seconds: float) -> float:
    """The bare agent's stimuli per second at one size now: for what is held against it, measured right beside it,
    because a machine is not as fast all the time. Raises AgentStoppedError."""
    limits = Limits(None, None)
    job = Job(entry, settings, one.device, one.task, one.mode, source, seconds, (size,), limits)
    return apart.figure(measure_again, job)
