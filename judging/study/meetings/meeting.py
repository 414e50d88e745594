"""Conversations and online tests of people who meet, as a study's events make them.

An exchange of an online test is a question of the judge's and an answer of each agent, 1 and 2. Times (``clock``,
``at``) are seconds from when the test began; both answers appear at the later. In an interrogation both conversations
are open at once, for a time, and everybody writes when they like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Condition = Literal["person_deceives", "machine_deceives"]
Pair = Literal["person machine", "two machines", "two people"]
Part = Literal["person", "machine"]
Act = Literal["ready", "ask", "answer", "judge"]
Move = tuple[str, int, Act]  # of whom, the side of an agent or 0 of the judge, what
Cause = Literal["fault", "left", "away", "deleted"]  # of a void meeting: a machine, a person, oneself, a deletion
SIDES = (1, 2)
# words of ``void``
LEFT = "left"
IDLE = "did nothing"
FORGOTTEN = "forgotten"
PARTS: Mapping[Pair, tuple[Part, Part]] = {
    "person machine": ("person", "machine"),
    "two machines": ("machine", "machine"),
    "two people": ("person", "person"),
}


@dataclass(slots=True)
class Meeting(ABC):
    """``people`` are participants' codes and agents' names; ``messages`` and ``withdrawn`` are events. No later act may
    precede the clock ``latest``."""

    id: str
    at: str
    people: list[str]
    void: str | None = field(default=None, kw_only=True)
    messages: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    withdrawn: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    latest: float = field(default=0.0, kw_only=True)

    def apply(self, event: dict[str, Any]) -> None:
        """Raises KeyError for an unknown event."""
        match event["event"].removeprefix("test_"):
            case "said":
                self.messages.append(event)
            case "withdrawn":
                self.withdrawn.append(event)
            case "void":
                self.void = event["why"]
            case kind:
                raise KeyError(kind)

    def began(self) -> str | None:
        """When the clock began; None before it."""
        return self.at

    def left_by(self) -> str | None:
        """The code of the person who left, or did nothing, so that it is void."""
        who, _, what = (self.void or "").partition(" ")
        return who if who in self.people and what in (LEFT, IDLE) else None

    def cause(self) -> Cause | None:
        """Why it is void; None where it is not. What is no person's doing is a fault of a machine or its server."""
        if self.void is None:
            return None
        if self.void == FORGOTTEN:
            return "deleted"
        return "fault" if self.left_by() is None else "left"

    def void_to(self, code: str) -> Cause | None:
        """As :meth:`cause`, for one of its people: ``away`` where it was they who left."""
        return "away" if self.left_by() == code else self.cause()

    def reason(self) -> str:
        """Why it is void, for who runs the study: nobody is named, but an agent is. "" where it is not void."""
        who = self.left_by()
        if who is None:
            return "a participant deleted it" if self.void == FORGOTTEN else self.void or ""
        return f"{self.part_of(who)} {(self.void or '').partition(' ')[2]}"

    def part_of(self, code: str) -> str:
        """What somebody is in the meeting, with an article."""
        return "a participant"

    @abstractmethod
    def lines(self, number: int) -> list[Line]:
        """What the first of the people and that of a number said to each other."""


@dataclass(slots=True)
class Line:
    """What A (in a test the judge) or B says to the other; ``raw`` is a machine's text before it was cut, ``delay_s``
    what it took."""

    speaker: Literal["A", "B"]
    text: str
    at: float = 0.0
    delay_s: float = 0.0
    raw: str | None = None


@dataclass(slots=True)
class Talk(Meeting):
    stimulus: str

    def lines(self, number: int) -> list[Line]:
        return [Line(message["speaker"], message["text"]) for message in self.messages]


@dataclass(slots=True)
class VerdictOnTest:
    """After so many ``exchanges``, and ``seconds`` after the last answers or the clock's end. ``human`` is that agent
    1 is the human, ``machine`` that agent 2 is."""

    who: str
    exchanges: int | None
    seconds: float
    verdict: str
    reason: str | None
    confidence: float | None
    codes: list[str] | None


@dataclass(slots=True)
class JudgedMeeting(Meeting):
    """``people`` are the judge and two agents, whose ``parts`` are told apart by the judge. Who is ``ready`` has read
    their part, at a time. An interrogation has no ``questions``."""

    parts: list[Part]
    condition: Condition
    ready: dict[str, str] = field(default_factory=dict, kw_only=True)
    questions: list[Line] = field(default_factory=list, kw_only=True)
    judged: list[VerdictOnTest] = field(default_factory=list, kw_only=True)

    def apply(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "test_ready":
                self.ready[event["who"]] = event["at"]
            case "test_judged":
                seconds = round(event["clock"] - self.answered_at(), 3)
                said = event["verdict"], event["reason"], event.get("confidence"), event.get("codes")
                self.judged.append(VerdictOnTest(event["who"], len(self.questions) or None, seconds, *said))
            case _:
                Meeting.apply(self, event)
        self.latest = max(self.latest, event.get("clock", 0.0))

    @property
    def pair(self) -> Pair:
        return next(pair for pair, parts in PARTS.items() if sorted(parts) == sorted(self.parts))

    def part_of(self, code: str) -> str:
        return "the judge" if code == self.people[0] else "an agent"

    def persons(self) -> list[str]:
        parts = ("person", *self.parts)
        return [who for who, part in zip(self.people, parts, strict=True) if part == "person"]

    def is_over(self) -> bool:
        return bool(self.judged)

    def due(self, clock: float) -> list[Move]:
        """What is awaited, and of whom; the judge does not wait until the agents have read their part."""
        if self.void is not None or self.is_over():
            return []
        reading = {*self.persons()} - self.ready.keys()
        due: list[Move] = [(who, side, "ready") for side, who in enumerate(self.people) if who in reading]
        return [*due, *self.due_of_readers(clock, reading)]

    @abstractmethod
    def answered_at(self) -> float:
        """The clock from when on the judge may give a verdict."""

    @abstractmethod
    def due_of_readers(self, clock: float, reading: Collection[str]) -> list[Move]:
        """What is awaited of those who are not ``reading`` their part."""


@dataclass(slots=True)
class OnlineTest(JudgedMeeting):
    """``answers`` are of each exchange, by side."""

    exchanges: int
    verdicts: Literal["each", "end"]
    answers: list[dict[int, Line]] = field(default_factory=list)

    def apply(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "test_asked":
                self.questions.append(_line("A", event))
                self.answers.append({})
                self.latest = event["clock"]
            case "test_answered":  # a machine's, after a delay, may be later than what comes next
                self.answers[-1][event["side"]] = _line("B", event)
            case _:
                JudgedMeeting.apply(self, event)

    def answered_at(self) -> float:
        return self.shown_at(-1)

    def shown_at(self, exchange: int) -> float:
        return max(answer.at for answer in self.answers[exchange].values())

    def shown(self, clock: float) -> int:
        return sum(len(both) == len(SIDES) and self.shown_at(at) <= clock for at, both in enumerate(self.answers))

    def is_over(self) -> bool:
        return bool(self.judged) and self.judged[-1].exchanges == self.exchanges

    def due_of_readers(self, clock: float, reading: Collection[str]) -> list[Move]:
        number = len(self.questions)
        if number and len(self.answers[-1]) < len(SIDES):
            left = [(self.people[side], side) for side in SIDES if side not in self.answers[-1]]
            return [(who, side, "answer") for who, side in left if who not in reading]
        if self.shown(clock) < number or self.people[0] in reading:
            return []
        is_judging = number == self.exchanges or (number and self.verdicts == "each" and len(self.judged) < number)
        return [(self.people[0], 0, "judge" if is_judging else "ask")]

    def lines(self, number: int) -> list[Line]:
        exchanges = zip(self.questions, self.answers, strict=True)
        return [line for question, answers in exchanges for line in (question, answers.get(number)) if line is not None]


def _line(speaker: Literal["A", "B"], event: Mapping[str, Any]) -> Line:
    return Line(speaker, event["text"], event["clock"], event["delay_s"], event["raw"])


@dataclass(slots=True)
class Interrogation(JudgedMeeting):
    """Jones and Bergen's three-party test (arXiv 2503.23674), of ``seconds``. ``messages`` are of both conversations,
    each with its ``side``."""

    seconds: float

    def began(self) -> str | None:
        """When the last of all was ready."""
        return [*self.ready.values()][-1] if self.ready.keys() >= {*self.persons()} else None

    def answered_at(self) -> float:
        return self.seconds

    def is_open(self, clock: float) -> bool:
        """Whether anybody may write."""
        return self.void is None and self.began() is not None and clock < self.seconds

    def due_of_readers(self, clock: float, reading: Collection[str]) -> list[Move]:
        return [] if reading or self.is_open(clock) else [(self.people[0], 0, "judge")]

    def lines(self, number: int) -> list[Line]:
        lines = list[Line]()
        before = 0.0
        for message in self.messages:
            if message["side"] == number:
                speaker: Literal["A", "B"] = "A" if message["who"] == self.people[0] else "B"
                delay = round(max(0.0, message["clock"] - before), 3)
                lines.append(Line(speaker, message["text"], message["clock"], delay))
                before = message["clock"]
        return lines


def begun_test(event: dict[str, Any]) -> JudgedMeeting:
    """The test that an event begins."""
    people = [event["judge"], *event["agents"]]
    condition = event.get("condition", "machine_deceives")
    of_all = event["test"], event["at"], people, event["parts"], condition
    if "seconds" in event:
        return Interrogation(*of_all, event["seconds"])
    return OnlineTest(*of_all, event["exchanges"], event["verdicts"])
