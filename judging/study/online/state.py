"""What has happened in each online test, read from the study's events and from nothing else.

A test is a list of exchanges: a question of the judge's and an answer of each agent, whom the judge knows as 1 and 2.
Times (``clock``) are seconds from when the test began: in a test with people the wall's, without them what the model of
delays says that it would have taken. An answer's ``clock`` may lie ahead; both of an exchange are shown when the later
one is over.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Condition = Literal["person_deceives", "machine_deceives"]
Pair = Literal["person machine", "two machines", "two people"]
Part = Literal["person", "machine"]
Act = Literal["ready", "ask", "answer", "judge"]
EVENTS = ("test", "test_ready", "test_asked", "test_answered", "test_judged", "test_void", "test_left")
SIDES = (1, 2)


@dataclass(slots=True)
class Said:
    """A question or an answer; ``raw`` is what a machine said before it was cut, ``delay_s`` what it took."""

    text: str
    clock: float
    delay_s: float
    raw: str | None = None


@dataclass(slots=True)
class Judged:
    """A verdict after so many ``exchanges``, as on the trial in which agent 1 stands for the answer and agent 2 beside
    it: ``human`` is that 1 is the human, ``machine`` that 2 is."""

    who: str
    exchanges: int
    verdict: str
    reason: str | None
    clock: float


@dataclass(slots=True)
class OnlineTest:
    """One test. ``judge`` and the two ``agents`` are participants' codes or agents' names; ``parts`` say whose part
    each of the two takes."""

    id: str
    at: str
    judge: str
    agents: list[str]
    parts: list[Part]
    condition: Condition
    exchanges: int
    verdicts: Literal["each", "end"]
    ready: set[str] = field(default_factory=set)
    asked: list[Said] = field(default_factory=list)
    answers: list[dict[int, Said]] = field(default_factory=list)  # of each exchange, by side
    judged: list[Judged] = field(default_factory=list)
    void: str | None = None

    @property
    def pair(self) -> Pair:
        if len(set(self.parts)) == 2:
            return "person machine"
        return "two people" if self.parts[0] == "person" else "two machines"

    @property
    def people(self) -> list[str]:
        return [self.judge, *self.agents]

    def began(self) -> float:
        """When, in seconds of the epoch."""
        return datetime.fromisoformat(self.at).timestamp()

    def last_clock(self) -> float:
        """The clock of the last question or verdict."""
        return max([*(one.clock for one in self.asked), *(one.clock for one in self.judged)], default=0.0)

    def shown_at(self, exchange: int) -> float:
        """The clock at which both answers of an exchange, which are there, are shown."""
        return max(said.clock for said in self.answers[exchange].values())

    def shown(self, clock: float) -> int:
        """How many exchanges the judge may see whole."""
        return sum(len(both) == len(SIDES) and self.shown_at(at) <= clock for at, both in enumerate(self.answers))

    def is_over(self) -> bool:
        return bool(self.judged) and self.judged[-1].exchanges == self.exchanges

    def due(self, clock: float, participants: Collection[str]) -> list[tuple[str, int, Act]]:
        """What is awaited: (of whom, the side of an agent or 0 of the judge, what). Only ``participants`` have to say
        that they have read their part; the judge may ask before the others have, lest their time tell that they are
        people. Nothing where the test is over or void, or answers are there that are not yet shown."""
        if self.void is not None or self.is_over():
            return []
        sides: list[tuple[str, int]] = [(self.judge, 0), *zip(self.agents, SIDES, strict=True)]
        found: list[tuple[str, int, Act]] = [
            (who, side, "ready") for who, side in sides if who in participants and who not in self.ready
        ]
        reading = {who for who, _, _ in found}
        number = len(self.asked)
        if number and (lacking := [side for side in SIDES if side not in self.answers[-1]]):
            return found + [(who, side, "answer") for who, side in sides if side in lacking and who not in reading]
        if self.shown(clock) < number or self.judge in reading:
            return found
        if number == self.exchanges or (number and self.verdicts == "each" and len(self.judged) < number):
            return [*found, (self.judge, 0, "judge")]
        return [*found, (self.judge, 0, "ask")]


@dataclass(slots=True)
class Tests:
    """All tests by id, in the order in which they began, and which one each participant is in until they leave it."""

    by_id: dict[str, OnlineTest] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)

    def apply(self, event: dict[str, Any]) -> None:
        """Take one event in. Raises KeyError for what no server of ours has written."""
        if event["event"] == "test":
            names = ("at", "judge", "agents", "parts", "condition", "exchanges", "verdicts")
            test = OnlineTest(event["test"], **{name: event[name] for name in names})
            self.by_id[test.id] = test
            self.of.update(dict.fromkeys(test.people, test.id))
            return
        test = self.by_id[event["test"]]
        match event["event"]:
            case "test_ready":
                test.ready.add(event["who"])
            case "test_asked":
                test.asked.append(_said(event))
                test.answers.append({})
            case "test_answered":
                test.answers[-1][event["side"]] = _said(event)
            case "test_judged":
                test.judged.append(_judged(event, len(test.asked)))
            case "test_void":
                test.void = event["why"]
            case "test_left":
                self.leave(event["who"])

    def test_of(self, code: str) -> OnlineTest | None:
        """The test that a participant is in."""
        return self.by_id.get(self.of.get(code, ""))

    def leave(self, code: str) -> None:
        self.of.pop(code, None)

    def counted(self) -> list[OnlineTest]:
        """Those that are not void."""
        return [test for test in self.by_id.values() if test.void is None]


def _said(event: dict[str, Any]) -> Said:
    return Said(event["text"], event["clock"], event["delay_s"], event["raw"])


def _judged(event: dict[str, Any], exchanges: int) -> Judged:
    return Judged(event["who"], exchanges, event["verdict"], event["reason"], event["clock"])
