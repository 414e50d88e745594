"""Conversations and live tests of people who meet, as a study's events make them.

An exchange of an online test is a question of the judge and an answer of each agent, 1 and 2. Both answers appear at
the later of the two. In an interrogation both conversations are open at once, for a time, and everybody writes when
they like. Times ``clock`` and ``at`` of lines are seconds from when the meeting began.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from judging.study.log.events import InTalk, InTest
from judging.study.log.logged import HumanOrMachine
from judging.study.log.meeting_events import (
    Condition,
    InterrogationBegan,
    OnlineTestBegan,
    PersonOrMachine,
    Speaker,
    TalkSaid,
    TalkVoid,
    TalkWithdrawn,
    TestAnswered,
    TestAsked,
    TestJudged,
    TestReady,
    TestSaid,
    TestVoid,
    TestWithdrawn,
)
from judging.study.log.traces import TypingTraces

Pair = Literal["person machine", "two machines", "two people"]
ActKind = Literal["ready", "ask", "answer", "judge"]
Move = tuple[str, int, ActKind]
"""Who is to do something; the side, which is 0 for the judge and 1 or 2 for an agent; what."""
VoidCause = Literal["fault", "left", "away", "deleted"]
"""Why a meeting is void: a machine failed, somebody else left, one left oneself, somebody had all deleted."""
AGENT_SIDES = (1, 2)
# words of ``why`` in TalkVoid and TestVoid
LEFT = "left"
IDLE = "did nothing"
FORGOTTEN = "forgotten"
PARTS_OF_PAIR: Mapping[Pair, tuple[PersonOrMachine, PersonOrMachine]] = {
    "person machine": ("person", "machine"),
    "two machines": ("machine", "machine"),
    "two people": ("person", "person"),
}


@dataclass(slots=True)
class Meeting(ABC):
    """People, or a person and machines, who meet. What is void counts for nothing and stays void.

    ``people`` has participants' codes and agents' names. In a conversation these are A and B, in a live test the judge
    and agents 1 and 2: everywhere the position in ``people`` is somebody's number, or side.
    """

    id: str
    """The name that its events have, such as talk-bcdfghjkmn or test-00001."""
    at: str
    """The time of the event that began it."""
    people: list[str]
    void: str | None = field(default=None, kw_only=True)
    """Why it does not count, as :class:`judging.study.log.events.TalkVoid` has it; None where it does."""
    void_at: str | None = field(default=None, kw_only=True)
    """Since when it does not count; None where it does."""
    latest: float = field(default=0.0, kw_only=True)
    """The clock of the last act; no later act may precede it, even if the machine's clock is set back."""

    @abstractmethod
    def apply(self, event: InTalk | InTest) -> None:
        """Take an event in. Raises TypeError for one that this kind of meeting does not have."""

    @abstractmethod
    def lines(self, number: int) -> list[Line]:
        """What the first of the people and the one with a number said to each other."""

    def make_void(self, why: str, at: str) -> None:
        """It does not count from a time on."""
        self.void = why
        self.void_at = at

    def began(self) -> str | None:
        """When the clock began, as events tell the time; None before it."""
        return self.at

    def left_by(self) -> str | None:
        """The code of the person because of whom it is void, for they left or did nothing; None for other reasons."""
        who, _, what = (self.void or "").partition(" ")
        return who if who in self.people and what in (LEFT, IDLE) else None

    def cause(self) -> VoidCause | None:
        """Why it is void; None where it is not. What is no person's doing is a fault of a machine or its server."""
        if self.void is None:
            return None
        if self.void == FORGOTTEN:
            return "deleted"
        return "fault" if self.left_by() is None else "left"

    def void_to(self, code: str) -> VoidCause | None:
        """As :meth:`cause`, told to one of its people: ``away`` where it was they who left."""
        return "away" if self.left_by() == code else self.cause()

    def reason(self) -> str:
        """Why it is void, told to whoever runs the study; "" where it is not. No participant is named, a machine is."""
        who = self.left_by()
        if who is None:
            return "a participant deleted it" if self.void == FORGOTTEN else self.void or ""
        return f"{self.part_of(who)} {(self.void or '').partition(' ')[2]}"

    def part_of(self, code: str) -> str:
        """What somebody is in the meeting, with an article."""
        return "a participant"


@dataclass(slots=True)
class Line:
    """What A (in a live test the judge) or B says to the other."""

    speaker: Speaker
    """Who says it; in a live test A is the judge and B an agent."""
    text: str
    """As the other one sees it."""
    at: float = 0.0
    """Seconds from when the meeting began; 0 in conversations, whose events have the time of day."""
    delay_s: float = 0.0
    """Seconds that it took, from what it follows."""
    raw: str | None = None
    """A machine's text before it was cut; None where it was not."""
    traces: TypingTraces | None = None
    """How a person wrote it; None for machines, and where it is not known."""
    traces_refused: str | None = None
    """Why that is not known, where their page sent traces that break a rule."""


@dataclass(slots=True)
class Talk(Meeting):
    """A conversation of two."""

    stimulus: str
    """The id of the stimulus, which has the topic."""
    messages: list[TalkSaid] = field(default_factory=list, kw_only=True)
    """What was said, in order; an event's ``turn`` is its position here."""
    withdrawn: list[TalkWithdrawn] = field(default_factory=list, kw_only=True)
    """What an agent had ready and did not send. No participant sees it."""

    def apply(self, event: InTalk | InTest) -> None:
        """Take a message, a withdrawal or the end as void. Raises TypeError for events of live tests."""
        match event:
            case TalkSaid():
                self.messages.append(event)
            case TalkWithdrawn():
                self.withdrawn.append(event)
            case TalkVoid():
                self.make_void(event.why, event.at)
            case _:
                raise TypeError(f"{event.event} in a conversation")

    def lines(self, number: int) -> list[Line]:
        """All messages, whichever ``number``, for there are only two people. Their events tell no seconds."""
        return [
            Line(message.speaker, message.text, traces=message.traces, traces_refused=message.traces_refused)
            for message in self.messages
        ]


@dataclass(slots=True)
class VerdictOnTest:
    """A verdict of the judge."""

    who: str
    """The code of the judge."""
    exchanges: int | None
    """After how many exchanges it was given; None in an interrogation, which has none."""
    seconds: float
    """Seconds after the last answers, or after the clock stopped."""
    verdict: HumanOrMachine
    """"human": agent 1 is the human; "machine": agent 2 is."""
    reason: str | None
    """In the judge's own words; None where they give none."""
    confidence: float | None
    """From 0 to 1; None where the test does not ask for it."""
    codes: list[str] | None
    """Why, among the study's ``codes``; None where the test does not ask for it."""


@dataclass(slots=True)
class JudgedMeeting(Meeting):
    """A live test: a judge and two agents, whom the judge is to tell apart."""

    parts: list[PersonOrMachine]
    """What agents 1 and 2 are."""
    condition: Condition
    """Who poses as the other; in interrogations always the machine."""
    ready: dict[str, str] = field(default_factory=dict, kw_only=True)
    """Who has read their part, with the time."""
    questions: list[Line] = field(default_factory=list, kw_only=True)
    """The judge's; an interrogation has none."""
    judged: list[VerdictOnTest] = field(default_factory=list, kw_only=True)
    """The verdicts in order: one at the end, or one after each exchange."""

    def apply(self, event: InTalk | InTest) -> None:
        """Take what both kinds of live tests have: who is ready, verdicts, the end as void. Raises TypeError."""
        match event:
            case TestReady():
                self.ready[event.who] = event.at
            case TestJudged():
                verdict = VerdictOnTest(
                    who=event.who,
                    exchanges=len(self.questions) or None,
                    seconds=round(event.clock - self.answered_at(), 3),
                    verdict=event.verdict,
                    reason=event.reason,
                    confidence=event.confidence,
                    codes=event.codes,
                )
                self.judged.append(verdict)
                self.latest = max(self.latest, event.clock)
            case TestVoid():
                self.make_void(event.why, event.at)
            case _:
                raise TypeError(f"{event.event} in a test of another kind")

    @property
    def pair(self) -> Pair:
        """What the two agents are together, in whichever order."""
        return next(pair for pair, parts in PARTS_OF_PAIR.items() if sorted(parts) == sorted(self.parts))

    def part_of(self, code: str) -> str:
        """``the judge`` or ``an agent``."""
        return "the judge" if code == self.people[0] else "an agent"

    def persons(self) -> list[str]:
        """The codes of the participants: the judge, and the agents who are persons."""
        parts = ("person", *self.parts)
        return [who for who, part in zip(self.people, parts, strict=True) if part == "person"]

    def is_over(self) -> bool:
        """Whether the test came to its end, which is the last verdict."""
        return bool(self.judged)

    def due(self, clock: float) -> list[Move]:
        """What is awaited at a time, and of whom. The judge need not wait until the agents have read their part."""
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
        """What is awaited of those who are not ``reading`` their part any more."""


@dataclass(slots=True)
class OnlineTest(JudgedMeeting):
    """A test by questions, which both agents answer."""

    exchanges: int
    """The number of questions."""
    verdicts: Literal["each", "end"]
    """Whether the judge gives a verdict after each exchange, or after the last alone."""
    answers: list[dict[int, Line]] = field(default_factory=list)
    """For each question the answers by side, 1 and 2; one lacks while it is awaited."""

    def apply(self, event: InTalk | InTest) -> None:
        """Take a question or an answer, too. Raises IndexError for an answer before any question."""
        match event:
            case TestAsked():
                self.questions.append(_line("A", event))
                self.answers.append({})
                self.latest = event.clock
            case TestAnswered():
                # A machine's answer is shown after a delay: its clock may be later than what comes next.
                self.answers[-1][event.side] = _line("B", event)
            case _:
                JudgedMeeting.apply(self, event)

    def answered_at(self) -> float:
        """When both answers to the last question are shown."""
        return self.shown_at(-1)

    def shown_at(self, exchange: int) -> float:
        """The clock at which the judge sees the answers of an exchange, counted from 0: the later of the two."""
        return max(answer.at for answer in self.answers[exchange].values())

    def shown(self, clock: float) -> int:
        """The number of exchanges whose answers the judge sees at a time."""
        complete = [number for number, answers in enumerate(self.answers) if len(answers) == len(AGENT_SIDES)]
        return sum(self.shown_at(number) <= clock for number in complete)

    def is_over(self) -> bool:
        """Whether there is a verdict after the last exchange."""
        return bool(self.judged) and self.judged[-1].exchanges == self.exchanges

    def due_of_readers(self, clock: float, reading: Collection[str]) -> list[Move]:
        """Answers to the last question; then a verdict or the next question, once both answers are shown."""
        number = len(self.questions)
        if number and len(self.answers[-1]) < len(AGENT_SIDES):
            left = [(self.people[side], side) for side in AGENT_SIDES if side not in self.answers[-1]]
            return [(who, side, "answer") for who, side in left if who not in reading]
        if self.shown(clock) < number or self.people[0] in reading:
            return []
        is_judging = number == self.exchanges or (number and self.verdicts == "each" and len(self.judged) < number)
        return [(self.people[0], 0, "judge" if is_judging else "ask")]

    def lines(self, number: int) -> list[Line]:
        """Questions and the answers of one agent, in turn; the last answer may lack."""
        lines = list[Line]()
        for question, answers in zip(self.questions, self.answers, strict=True):
            lines.append(question)
            if number in answers:
                lines.append(answers[number])
        return lines


def _line(speaker: Speaker, event: TestAsked | TestAnswered) -> Line:
    return Line(speaker, event.text, event.clock, event.delay_s, event.raw, event.traces, event.traces_refused)


@dataclass(slots=True)
class Interrogation(JudgedMeeting):
    """Jones and Bergen's three-party test (arXiv 2503.23674): two conversations at once, until the clock stops."""

    seconds: float
    """How long both conversations are open."""
    messages: list[TestSaid] = field(default_factory=list, kw_only=True)
    """The messages of both conversations, in the order in which they were sent."""
    withdrawn: list[TestWithdrawn] = field(default_factory=list, kw_only=True)
    """What machines had ready and did not send, in both conversations. No participant sees it."""

    def apply(self, event: InTalk | InTest) -> None:
        """Take a message or a withdrawal, too."""
        match event:
            case TestSaid():
                self.messages.append(event)
                self.latest = max(self.latest, event.clock)
            case TestWithdrawn():
                self.withdrawn.append(event)
                self.latest = max(self.latest, event.clock)
            case _:
                JudgedMeeting.apply(self, event)

    def began(self) -> str | None:
        """When the last of all was ready; None before it."""
        return [*self.ready.values()][-1] if self.ready.keys() >= {*self.persons()} else None

    def answered_at(self) -> float:
        """When the clock stops."""
        return self.seconds

    def is_open(self, clock: float) -> bool:
        """Whether anybody may write."""
        return self.void is None and self.began() is not None and clock < self.seconds

    def due_of_readers(self, clock: float, reading: Collection[str]) -> list[Move]:
        """The verdict, once the clock has stopped; nobody is waited for while both conversations are open."""
        return [] if reading or self.is_open(clock) else [(self.people[0], 0, "judge")]

    def lines(self, number: int) -> list[Line]:
        """The messages between the judge and one agent; a delay is counted from the message before."""
        lines = list[Line]()
        before = 0.0
        for message in self.messages:
            if message.side == number:
                speaker: Speaker = "A" if message.who == self.people[0] else "B"
                delay = round(max(0.0, message.clock - before), 3)
                line = Line(speaker, message.text, message.clock, delay, traces=message.traces)
                line.traces_refused = message.traces_refused
                lines.append(line)
                before = message.clock
        return lines


def begun_test(event: OnlineTestBegan | InterrogationBegan) -> JudgedMeeting:
    """The test that an event begins."""
    people = [event.judge, *event.agents]
    if isinstance(event, InterrogationBegan):
        return Interrogation(event.test, event.at, people, event.parts, "machine_deceives", event.seconds)
    return OnlineTest(event.test, event.at, people, event.parts, event.condition, event.exchanges, event.verdicts)
