"""What ``turinglike bench SET`` measures: an agent over a set, with one number of workers after the other.

Names that end in ``_s`` are seconds or, of rates, a number in a second; names that end in ``_bytes`` are bytes. Shares
are from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from serving.bench.record_window import RecordWindow
from serving.bench.usage import Usage
from serving.runs.estimates import Estimate

Limit = Literal["preparing", "device", "calls", "queue", "cores", "disk", "scheduler", "server", "client", "unclear"]
"""What limits a rate; "unclear" where nothing was busy enough to be it."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How busy the parts of a run were while it answered."""

    workers: dict[str, list[float]]
    """By agent: the share of the time in which each worker was in the agent's ``respond``. Of an agent that batches by
    itself: calls under way over the number that it takes at once."""
    preparing: float
    """The share of the threads that prepare stimuli which was busy."""
    writing: float | None
    """The share of the time in which records were written and synced; None by HTTP, where the server alone knows."""
    process: float
    """CPU time over time of the process that forms batches (of HTTP: the server's): 1 is one core."""
    cores: float
    """The share of this machine's cores that was busy, with whatever else runs on it."""
    run_cores: float
    """The share of this machine's cores that the run itself kept busy."""
    gpus: list[float] = field(default_factory=list)
    """The share of the time in which each GPU computed, as NVML says; empty without one."""
    client: float | None = None
    """Of HTTP: CPU time over time of the program that asks."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """One run that was measured."""

    rate_s: float
    """Answers in a second after the warm-up, by the records' ``created``."""
    seconds: float
    """The time that the rate is taken of."""
    answers: int
    """The records in that time."""
    rejected: int
    """Those among them that filters rejected."""
    failed: int
    """Those among them that failed."""
    start_s: float
    """From the checked set to the first loaded agent: Ray's start and loading."""
    waiting_s: float
    """Mean seconds of an answer in the queue."""
    preparing_s: float
    """Mean seconds of an answer's preparation."""
    responding_s: float
    """Mean seconds of the agent's call that an answer was part of, the whole batch."""
    record_bytes: float
    """Mean length of a record."""
    shares: Shares
    """How busy the parts were."""
    memory_bytes: int
    """The largest memory of the run's processes on this machine, without what they share with one another."""
    gpu_bytes: list[int] = field(default_factory=list)
    """The largest memory in use on each GPU."""
    tokens_s: float | None = None
    """Tokens written in a second; None where the agent counts none."""
    fixations_s: float | None = None
    """Fixations in a second; None for other tasks."""

    @classmethod
    def of(cls, window: RecordWindow, shares: Shares, usage: Usage, start_s: float) -> Repeat:
        """The run whose records are those of ``window``."""
        return cls(
            rate_s=window.rate_s,
            seconds=window.seconds,
            answers=window.answers,
            rejected=window.rejected,
            failed=window.failed,
            start_s=start_s,
            waiting_s=window.waiting_s,
            preparing_s=window.preparing_s,
            responding_s=window.responding_s,
            record_bytes=window.record_bytes,
            shares=shares,
            memory_bytes=usage.memory_bytes,
            gpu_bytes=[*usage.gpu_bytes],
            tokens_s=window.tokens_s,
            fixations_s=window.fixations_s,
        )


@dataclass(frozen=True, slots=True)
class WholeSet:
    """What all of the set takes at the measured rate."""

    answers: int
    """How many stimuli of the set the agent is asked."""
    hours: Estimate
    """Hours, with the start of one run."""
    gpu_hours: Estimate | None
    """Hours times the GPUs in use; None without GPUs."""
    record_bytes: Estimate
    """The size of the records."""
    cost: Estimate | None
    """By the prices that were given; None without any."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """An agent with one number of workers."""

    replicas: int
    """Workers of the agent."""
    repeats: list[Repeat]
    """The runs, in their order."""
    limited_by: Limit
    """What limits the rate, by the run with the median rate."""
    why: str
    """The same as a sentence, with the shares that it follows from."""
    devices: int = 0
    """GPUs in use by all workers; 0 on the CPU."""
    efficiency: float | None = None
    """The rate per worker over that of the smallest number of workers; None for the smallest."""
    forecast: WholeSet | None = None
    """What the whole set takes; None where the program's own stimuli were asked."""

    @property
    def rates(self) -> list[float]:
        """The repeats' rates, the smallest first."""
        return sorted(repeat.rate_s for repeat in self.repeats)

    @property
    def median(self) -> float:
        """The rate of :func:`median_run`."""
        return median_run(self.repeats).rate_s


def median_run(repeats: Sequence[Repeat]) -> Repeat:
    """The run with the median rate; of an even number the faster one of the two in the middle."""
    in_order = sorted(repeats, key=lambda repeat: repeat.rate_s)
    return in_order[len(in_order) // 2]


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """An agent, or a pair of agents, over a set."""

    agent: str
    """The agent's name, or a pair's."""
    task: str
    """The task that was asked."""
    digest: str
    """The hash of settings and checkpoint, as in ``run.json``."""
    settings: dict[str, Any]
    """All settings in effect, as in ``run.json``."""
    source: str
    """The set; "made stimuli" for the program's own."""
    way: Literal["generate", "serve"]
    """The way by which it was asked: a run, or HTTP."""
    scaling: list[Scaled] = field(default_factory=list)
    """One after the other, fewest workers first."""
