"""What goes through the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import orjson

from agents.contract import derive_seed

Status = Literal["ok", "rejected", "failed", "unanswered"]
Listener = Callable[[str], None]  # called with the text of an answer so far
Listeners = Mapping[int, Listener]  # by the places of requests in a batch
NOBODY: Listeners = {}


def in_loop(listeners: Listeners) -> Listeners:
    """The same callbacks for other threads, called in the running loop."""
    loop = asyncio.get_running_loop()

    def call(listener: Listener, text: str) -> None:
        loop.call_soon_threadsafe(listener, text)

    return {place: partial(call, listener) for place, listener in listeners.items()}


@dataclass(slots=True, eq=False)
class AgentRequest:
    """``row`` is canonical JSON. ``name`` (agent or pair) is for seed and record. Smaller ``order`` goes first.
    ``position`` is the stimulus's in its set."""

    agent: str
    row: bytes
    stimulus: str
    sample: int = 0
    run_seed: int = 0
    name: str = ""
    turn: int | None = None
    options: Mapping[str, Any] | None = None
    order: int = 0
    deliver: Callable[[AgentRequest], None] | None = None
    files: Mapping[str, bytes] | None = None  # the images that the row names, where they come with a request
    failed_before: str = ""  # the code of the failure that is tried again
    say: Callable[[str], None] | None = None  # called with the answer's text so far, while it is made
    position: int = 0

    # kept by the scheduler
    attempt: int = 0
    first_attempt: int = 0  # the number that attempt 0 of this request has in seeds and records
    seed: int = 0
    attempts: list[dict[str, Any]] = field(default_factory=list)
    deaths: int = 0
    queued_at: float = 0.0
    cancelled: bool = False

    # the outcome; answer and raw are JSON
    status: Status = "unanswered"
    answer: bytes | None = None
    raw: bytes | None = None
    error: tuple[str, str] | None = None
    sha256: str | None = None
    waiting: float = 0.0
    preparing: float = 0.0
    responding: float = 0.0
    worker: Mapping[str, Any] | None = None
    created: str = ""

    def draw_seed(self) -> int:
        name, attempt = self.name or self.agent, self.first_attempt + self.attempt
        self.seed = derive_seed(self.run_seed, name, self.stimulus, self.sample, self.turn, attempt)
        return self.seed

    def fail(self, code: str, message: str) -> None:
        self.status, self.answer, self.error = "failed", None, (code, message)

    def finish(self) -> None:
        if self.deliver is not None and not self.cancelled:
            self.deliver(self)

    def pass_on(self, text: str) -> None:
        if self.say is not None and not self.cancelled:
            self.say(text)

    def attempt_record(self, verdicts: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "attempt": self.first_attempt + self.attempt,
            "turn": self.turn,
            "seed": self.seed,
            "answer": None if self.answer is None else orjson.Fragment(self.answer),
            "raw": None if self.raw is None else orjson.Fragment(self.raw),
            "verdicts": verdicts,
        }
