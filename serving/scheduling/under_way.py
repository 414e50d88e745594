"""The scheduler's notebook of a request that it works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.contract import Finding
from serving.scheduling.batch import NO_REPLY, PackedReply, PackedRequest
from serving.scheduling.request import Attempt, Outcome, Request, Where


@dataclass(slots=True, eq=False)
class UnderWay:
    """A request with what has happened to it so far. Only the scheduler and its dispatchers see this."""

    request: Request
    """What was asked."""
    deliver: Callable[[UnderWay, Outcome], None]
    """Takes this and its outcome, once; not called after :meth:`cancel`."""
    order: int = 0
    """Its place in the queue: smaller numbers go first."""
    attempt: int = 0
    """The attempts before the present one."""
    seed: int = 0
    """The present attempt's, once it was sent."""
    deaths: int = 0
    """How many workers died while they had this request alone."""
    queued_at: float = 0.0
    """When it came into the queue, on the event loop's clock."""
    is_cancelled: bool = False
    """Nobody waits for it."""

    reply: PackedReply = NO_REPLY
    """A worker's last reply."""
    attempts: tuple[Attempt, ...] = ()
    """Those of which filters noted something."""
    waiting: float = 0.0
    """Seconds in the queue so far."""
    preparing: float = 0.0
    """Seconds of preparing so far."""
    responding: float = 0.0
    """Seconds in agents so far."""
    worker: Where | None = None
    """Who replied last."""
    created: str = ""
    """When that was."""

    @property
    def number(self) -> int:
        """The present attempt's number in seeds and records."""
        return self.request.first_attempt + self.attempt

    def packed(self) -> PackedRequest:
        """The present attempt for a worker; draws its seed."""
        request = self.request
        self.seed = request.seed(request.first_attempt + self.attempt)
        return PackedRequest(request.row, self.seed, request.sample, self.attempt, request.options)

    def take(self, reply: PackedReply, responding: float, worker: Where, created: str) -> None:
        """Note a worker's reply, which took ``responding`` seconds."""
        self.reply = reply
        self.preparing += reply.preparing
        self.responding += responding
        self.worker = worker
        self.created = created

    def note(self, findings: tuple[Finding, ...]) -> Attempt:
        """Note what filters found in the last reply."""
        noted = Attempt(
            number=self.number,
            turn=self.request.turn,
            seed=self.seed,
            answer=self.answer,
            raw=self.reply.raw,
            findings=findings,
        )
        self.attempts = (*self.attempts, noted)
        return noted

    @property
    def answer(self) -> bytes | None:
        """The last reply's answer as JSON; None after a failure."""
        return self.reply.content if isinstance(self.reply.content, bytes) else None

    def listen(self, text: str) -> None:
        """Pass the answer's text so far on to whoever listens."""
        if self.request.listener is not None and not self.is_cancelled:
            self.request.listener(text)

    def cancel(self) -> None:
        """Deliver nothing any more. It may stay in a queue for long, but not its pictures."""
        self.is_cancelled = True
        if self.request.row.files is not None:
            self.request = self.request._replace(row=replace(self.request.row, files=None, stimulus=None))
