"""Conversations and online tests of people who meet, as a study's events make them.

An exchange of an online test is a question of the judge's and an answer of each agent, 1 and 2. Times (``clock``) are
seconds from when the test began; both answers appear at the later. In an interrogation both conversations are open at
once, for a time, and everybody writes when they like."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Condition = Literal["person_deceives", "machine_deceives"]
Pair = Literal["person machine", "two machines", "two people"]
Part = Literal["person", "machine"]
Act = Literal["ready", "ask", "answer", "judge"]
Move = tuple[str, int, Act]  # of whom, the side of an agent or 0 of the judge, what
OF_TALKS = ("paired", "said", "withdrawn", "void")
OF_TESTS = (
    "test", "test_ready", "test_asked", "test_answered", "test_said", "test_withdrawn", "test_judged", "test_void",
    "test_left",
)  # fmt: skip
SIDES = (1, 2)
PARTS: Mapping[Pair, tuple[Part, Part]] = {
    "person machine": ("person", "machine"),
    "two machines": ("machine", "machine"),
    "two people": ("person", "person"),
}


@dataclass(slots=True)
class Meeting(ABC):
    """``people`` are participants' codes and agents' names."""

    id: str
    at: str
    people: list[str]
    void: str | None = field(default=None, kw_only=True)

    @abstractmethod
    def apply(self, event: dict[str, Any]) -> None: ...


@dataclass(slots=True)
class Talk(Meeting):
    stimulus: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    withdrawn: list[dict[str, Any]] = field(default_factory=list)

    def apply(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "said":
                self.messages.append(event)
            case "withdrawn":
                self.withdrawn.append(event)
            case "void":
                self.void = event["why"]


@dataclass(slots=True)
class TimedText:
    """``raw`` is a machine's text before it was cut, ``delay_s`` what it took."""

    text: str
    clock: float
    delay_s: float
    raw: str | None = None


@dataclass(slots=True)
class VerdictOnTest:
    """``human`` is that agent 1 is the human, ``machine`` that agent 2 is."""

    who: str
    exchanges: int
    verdict: str
    reason: str | None
    clock: float


@dataclass(slots=True)
class JudgedMeeting(Meeting):
    """``people`` are the judge and two agents, whose ``parts`` are told apart by the judge."""

    parts: list[Part]
    ready: set[str] = field(default_factory=set, kw_only=True)

    @property
    def pair(self) -> Pair:
        return next(pair for pair, parts in PARTS.items() if sorted(parts) == sorted(self.parts))

    @abstractmethod
    def began(self) -> str | None:
        """When the clock began; None before it."""

    @abstractmethod
    def clocks(self) -> list[float]:
        """The clock of what the judge did, which no later act may precede."""

    @abstractmethod
    def is_over(self) -> bool: ...

    @abstractmethod
    def due(self, clock: float, participants: Collection[str]) -> list[Move]:
        """What is awaited, and of whom."""


@dataclass(slots=True)
class OnlineTest(JudgedMeeting):
    """``answers`` are of each exchange, by side."""

    condition: Condition
    exchanges: int
    verdicts: Literal["each", "end"]
    questions: list[TimedText] = field(default_factory=list)
    answers: list[dict[int, TimedText]] = field(default_factory=list)
    judged: list[VerdictOnTest] = field(default_factory=list)

    def apply(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "test_ready":
                self.ready.add(event["who"])
            case "test_asked":
                self.questions.append(_timed_text(event))
                self.answers.append({})
            case "test_answered":
                self.answers[-1][event["side"]] = _timed_text(event)
            case "test_judged":
                number = len(self.questions)
                self.judged.append(
                    VerdictOnTest(event["who"], number, event["verdict"], event["reason"], event["clock"])
                )
            case "test_void":
                self.void = event["why"]

    def began(self) -> str:
        return self.at

    def clocks(self) -> list[float]:
        return [*(question.clock for question in self.questions), *(judged.clock for judged in self.judged)]

    def shown_at(self, exchange: int) -> float:
        return max(answer.clock for answer in self.answers[exchange].values())

    def shown(self, clock: float) -> int:
        return sum(len(both) == len(SIDES) and self.shown_at(at) <= clock for at, both in enumerate(self.answers))

    def is_over(self) -> bool:
        return bool(self.judged) and self.judged[-1].exchanges == self.exchanges

    def due(self, clock: float, participants: Collection[str]) -> list[Move]:
        """What is awaited; the judge does not wait until the ``participants`` have read their part."""
        if self.void is not None or self.is_over():
            return []
        reading = {who for who in self.people if who in participants and who not in self.ready}
        due: list[Move] = [(who, side, "ready") for side, who in enumerate(self.people) if who in reading]
        number = len(self.questions)
        if number and len(self.answers[-1]) < len(SIDES):
            left = [(self.people[side], side) for side in SIDES if side not in self.answers[-1]]
            return [*due, *((who, side, "answer") for who, side in left if who not in reading)]
        if self.shown(clock) < number or self.people[0] in reading:
            return due
        is_judging = number == self.exchanges or (number and self.verdicts == "each" and len(self.judged) < number)
        return [*due, (self.people[0], 0, "judge" if is_judging else "ask")]

    def messages(self, side: int, exchanges: int | None = None) -> list[dict[str, str]]:
        """The first ``exchanges`` (all) with an agent, who is B."""
        messages = []
        for question, answers in zip(self.questions[:exchanges], self.answers, strict=False):
            messages.append({"speaker": "A", "text": question.text})
            if side in answers:
                messages.append({"speaker": "B", "text": answers[side].text})
        return messages


def _timed_text(event: dict[str, Any]) -> TimedText:
    return TimedText(event["text"], event["clock"], event["delay_s"], event["raw"])


@dataclass(slots=True)
class Interrogation(JudgedMeeting):
    """Jones and Bergen's three-party test (arXiv 2503.23674), of ``seconds``. ``messages`` are of both conversations,
    each with its ``side``."""

    seconds: float
    messages: list[dict[str, Any]] = field(default_factory=list)
    withdrawn: list[dict[str, Any]] = field(default_factory=list)
    judged: dict[str, Any] | None = None
    all_ready: str | None = None

    def apply(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "test_ready":
                self.ready.add(event["who"])
                if self.ready.issuperset(self.persons()):
                    self.all_ready = event["at"]
            case "test_said":
                self.messages.append(event)
            case "test_withdrawn":
                self.withdrawn.append(event)
            case "test_judged":
                self.judged = event
            case "test_void":
                self.void = event["why"]

    def persons(self) -> list[str]:
        parts = ("person", *self.parts)
        return [who for who, part in zip(self.people, parts, strict=True) if part == "person"]

    def began(self) -> str | None:
        return self.all_ready

    def clocks(self) -> list[float]:
        return [message["clock"] for message in self.messages]

    def is_over(self) -> bool:
        return self.judged is not None

    def is_open(self, clock: float) -> bool:
        """Whether anybody may write."""
        return self.void is None and self.all_ready is not None and clock < self.seconds

    def due(self, clock: float, participants: Collection[str]) -> list[Move]:
        if self.void is not None or self.is_over() or self.is_open(clock):
            return []
        if self.all_ready is not None:
            return [(self.people[0], 0, "judge")]
        waited_for = {*self.persons()} - self.ready
        return [(who, side, "ready") for side, who in enumerate(self.people) if who in waited_for]

    def chat(self, side: int) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["side"] == side]

    def letter(self, message: dict[str, Any]) -> Literal["A", "B"]:
        """The speaker; the judge is A."""
        return "A" if message["who"] == self.people[0] else "B"


def begun_test(event: dict[str, Any]) -> JudgedMeeting:
    """The test that an event begins."""
    of_all = (event["test"], event["at"], [event["judge"], *event["agents"]], event["parts"])
    if "seconds" in event:
        return Interrogation(*of_all, event["seconds"])
    return OnlineTest(*of_all, event["condition"], event["exchanges"], event["verdicts"])
