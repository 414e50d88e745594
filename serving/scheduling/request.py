"""What goes through the scheduler: an item goes in, the same item with its outcome comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from agents import seeds

Status = Literal["ok", "rejected", "failed", "unanswered"]


class Sink(Protocol):
    """Where finished items go."""

    def put(self, item: AgentRequest) -> None: ...


@dataclass(slots=True, eq=False)
class AgentRequest:
    """One stimulus to be answered by one agent.

    ``row`` is the stimulus's canonical JSON and ``stimulus`` its id. ``name`` is what the seed is derived for and the
    record is kept under: the agent, or the pair for a turn of a conversation. Items with the smaller ``order`` go
    first. ``deadline`` is in seconds of the event loop's clock.
    """

    agent: str
    row: bytes
    stimulus: str
    sample: int = 0
    run_seed: int = 0
    name: str = ""
    turn: int | None = None
    options: Mapping[str, Any] | None = None
    order: int = 0
    deadline: float | None = None
    sink: Sink | None = None
    files: Mapping[str, bytes] | None = None  # the images that the row names, where they come with a request

    # kept by the scheduler
    attempt: int = 0
    first_attempt: int = 0  # of these: the number that this one's first attempt has in seeds and records
    seed: int = 0
    attempts: list[dict[str, Any]] = field(default_factory=list)
    deaths: int = 0
    since: float = 0.0
    waiting: float = 0.0
    dropped: bool = False

    # the outcome; answer and raw are JSON
    status: Status = "unanswered"
    answer: bytes | None = None
    raw: bytes | None = None
    error: tuple[str, str] | None = None
    sha256: str | None = None
    preparing: float = 0.0
    responding: float = 0.0
    worker: Mapping[str, Any] | None = None
    created: float = 0.0  # seconds since 1970

    def draw_seed(self) -> int:
        """Derive the seed of the present attempt."""
        self.seed = seeds.derive(
            self.run_seed,
            self.name or self.agent,
            self.stimulus,
            self.sample,
            self.turn,
            self.first_attempt + self.attempt,
        )
        return self.seed

    def rejected_attempt(self, verdicts: list[dict[str, Any]]) -> dict[str, Any]:
        """The present attempt as it stands in a record's ``attempts``."""
        return {
            "attempt": self.first_attempt + self.attempt,
            "turn": self.turn,
            "seed": self.seed,
            "answer": None if self.answer is None else orjson.Fragment(self.answer),
            "raw": None if self.raw is None else orjson.Fragment(self.raw),
            "verdicts": verdicts,
        }
