"""What travels through the scheduler: a :class:`Request` goes in, an :class:`Outcome` comes out.

A request never changes. What happens to it on its way (its place in the queue, its attempts, the deaths of workers) the
scheduler notes in a book of its own, :class:`serving.scheduling.under_way.UnderWay`, which nobody else reads. The
outcome is made once, at the end, and never changes either.

Both are named tuples and no frozen dataclasses, because there are as many as answers: a frozen dataclass of twelve
fields takes five times as long to make. Whoever wants another one than he has takes ``_replace``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from agents.contract import Finding, derive_seed
from serving.sets.stimulus_row import StimulusRow

OutcomeStatus = Literal["ok", "rejected", "failed", "unanswered"]
"""How a request ended. "rejected": a filter rejected the last attempt. "unanswered": its agent stopped before."""
Listener = Callable[[str], None]
"""Is called with the whole text of an answer so far, each time that it has grown."""


class Request(NamedTuple):
    """One question to one agent, made by keywords."""

    agent: str
    """The agent that answers."""
    row: StimulusRow
    """What is asked: the stimulus as a row of JSON, with its pictures."""
    name: str = ""
    """Whose answer it is in seeds and records: the agent or the pair ``a~b``. Empty: the agent."""
    sample: int = 0
    """The number of the answer to this stimulus, from 0."""
    run_seed: int = 0
    """The run's seed, from which each attempt's is derived."""
    turn: int | None = None
    """The number of the message in a conversation, from 0; None outside."""
    options: Mapping[str, Any] | None = None
    """What the agent gets in ``Draw.options``; in a conversation ``speaker`` and ``turn``."""
    first_attempt: int = 0
    """The number that the first attempt has in seeds and records. Conversations ask again with later numbers."""
    order: int = 0
    """Requests with a smaller number go first. 0: after all that came before."""
    deadline: float | None = None
    """Seconds that :meth:`serving.scheduling.scheduler.Scheduler.answer` waits; None: as long as it takes."""
    failed_before: str = ""
    """The code of the failure that is tried again; empty for a first try."""
    listener: Listener | None = None
    """Is called while the answer is made, by agents that can."""

    @property
    def answerer(self) -> str:
        """The agent or pair whose answer it is, as the record's key has it."""
        return self.name or self.agent

    def seed(self, attempt: int) -> int:
        """The seed (53 bits) of the attempt that has this number in records."""
        return derive_seed(self.run_seed, self.name or self.agent, self.row.id, self.sample, self.turn, attempt)


class Failure(NamedTuple):
    """Why there is no answer."""

    code: str
    """For programs: one of ``docs/records.md``, or an agent's own."""
    message: str
    """For people."""


class Timing(NamedTuple):
    """Seconds, summed over all attempts."""

    waiting: float = 0.0
    """In the queue."""
    preparing: float = 0.0
    """In the agent's ``prepare``: reading and decoding."""
    responding: float = 0.0
    """In the agent's ``respond``, of the whole batch."""


class Where(NamedTuple):
    """The worker that made an answer."""

    host: str
    """The machine's name."""
    device: str
    """"cpu", or a GPU as "cuda:0"."""
    batch_size: int
    """How many stimuli were answered at once; of a conversation the mean over its turns."""


class Attempt(NamedTuple):
    """One try at an answer of which filters noted something. An attempt without findings leaves no trace."""

    number: int
    """In seeds and records, from the request's ``first_attempt``."""
    turn: int | None
    """The message's number in a conversation; None outside, and for the conversation as a whole."""
    seed: int
    """What the agent drew with."""
    answer: bytes | None
    """The answer as JSON; None where there is none."""
    raw: bytes | None
    """The agent's raw output as JSON."""
    findings: tuple[Finding, ...]
    """What the filters noted. One that is ``rejected`` rejects the attempt."""

    @property
    def is_rejected(self) -> bool:
        """Whether a filter rejected it."""
        return any(finding.rejected for finding in self.findings)


class Outcome(NamedTuple):
    """What became of a request. Outside of the scheduler it is made by keywords."""

    request: Request
    """What was asked, of whom."""
    status: OutcomeStatus
    """How it ended; "ok" has an answer, "failed" an error."""
    seed: int
    """The last attempt's."""
    attempt: int
    """The number of the last attempt in seeds and records."""
    answer: bytes | None = None
    """The answer as JSON, in the form of its task."""
    raw: bytes | None = None
    """The agent's raw output as JSON."""
    error: Failure | None = None
    """Why it failed."""
    sha256: str | None = None
    """Of what the agent saw: the picture's bytes, or the row. None where that could not be read."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts of which filters noted something, in order."""
    timing: Timing = Timing()
    """How long it took."""
    worker: Where | None = None
    """Who answered last; None where nobody was asked."""
    created: str = ""
    """The time of the answer (ISO 8601, UTC); empty where nobody was asked."""

    @classmethod
    def failed(cls, request: Request, code: str, message: str, sha256: str | None = None) -> Outcome:
        """The outcome of a request that no worker gets."""
        number = request.first_attempt
        error = Failure(code, message)
        seed = request.seed(number)
        return cls(request=request, status="failed", seed=seed, attempt=number, error=error, sha256=sha256)

    def as_attempt(self, findings: tuple[Finding, ...]) -> Attempt:
        """Its last attempt, with what filters found in it since."""
        return Attempt(
            number=self.attempt,
            turn=self.request.turn,
            seed=self.seed,
            answer=self.answer,
            raw=self.raw,
            findings=findings,
        )
