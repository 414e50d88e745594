"""What goes through the scheduler: an item goes in, the same item with its outcome comes out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from agents import seeds

Status = Literal["ok", "rejected", "failed", "unanswered"]
SCHEMA = "turinglike.record/1"


class Sink(Protocol):
    """Where finished items go."""

    def put(self, item: Item) -> None: ...


@dataclass(slots=True, eq=False)
class Item:
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
    created: str = ""

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


@dataclass(frozen=True, slots=True)
class Header:
    """The part of a record that all of one agent's records in a run share."""

    run: str
    kind: str
    digest: str
    checkpoint: str | None
    revision: str | None
    _provenance: orjson.Fragment = field(init=False, repr=False)

    def __post_init__(self) -> None:
        about = {"digest": self.digest, "checkpoint": self.checkpoint, "revision": self.revision}
        object.__setattr__(self, "_provenance", orjson.Fragment(orjson.dumps(about)))

    def record(self, item: Item, task: str) -> bytes:
        """The item's record: one line of JSON with its newline."""
        return orjson.dumps(
            {
                "schema": SCHEMA,
                "run": self.run,
                "task": task,
                "stimulus": item.stimulus,
                "stimulus_sha256": item.sha256,
                "agent": item.name or item.agent,
                "kind": self.kind,
                "sample": item.sample,
                "seed": item.seed,
                "status": item.status,
                "answer": None if item.answer is None else orjson.Fragment(item.answer),
                "raw": None if item.raw is None else orjson.Fragment(item.raw),
                "attempts": item.attempts,
                "error": None if item.error is None else {"code": item.error[0], "message": item.error[1]},
                "provenance": self._provenance,
                "timing": {
                    "waiting": round(item.waiting, 6),
                    "preparing": round(item.preparing, 6),
                    "responding": item.responding,
                },
                "worker": item.worker,
                "created": item.created or now(),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )


def now() -> str:
    """The time as records write it: ISO 8601, UTC, milliseconds."""
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"
