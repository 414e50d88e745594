"""The events of meetings: conversations of two, and live tests of a judge and two agents.

Times ``at`` are UTC with milliseconds, such as ``2026-11-28T12:00:00.123Z``. Times ``clock`` are seconds since a
meeting began. ``judge`` is the code of a participant, also of one who judges nothing; ``who`` is a participant's code
or an agent's name.
"""

from typing import Literal

from judging.study.log.logged import Clock, HumanOrMachine, LoggedEvent, ParticipantCode, TalkId, TestId, Time, Who
from judging.study.log.traces import TypingTraces

Speaker = Literal["A", "B"]
Condition = Literal["person_deceives", "machine_deceives"]
"""Who poses as the other: the person as a machine, or the machine as a person."""
PersonOrMachine = Literal["person", "machine"]
"""What an agent of a live test is."""
WhyWithdrawn = Literal["interrupted", "ended"]
"""``interrupted``: somebody else wrote first. ``ended``: the conversation was over before."""

# conversations


class TalkBegan(LoggedEvent):
    """Two participants, or a participant and an agent, begin to converse. Written by the lobby of conversations."""

    event: Literal["paired"] = "paired"
    """Tells this kind of line from the others in the log."""
    talk: TalkId
    """The id of the conversation, drawn when it begins."""
    stimulus: str
    """The id of the stimulus, which has the topic."""
    speakers: list[str]
    """A and B, each a participant's code or an agent's name; "nobody" for somebody who had all deleted."""
    at: Time
    """When the two were brought together."""


class TalkSaid(LoggedEvent):
    """A message of a conversation. Written by the lobby before the other one sees it."""

    event: Literal["said"] = "said"
    """Tells this kind of line from the others in the log."""
    talk: TalkId
    """The id of the conversation in which it is said."""
    turn: int
    """The message's position in the conversation, counted from 0."""
    speaker: Speaker
    """A or B, as ``speakers`` of the conversation's beginning has them."""
    text: str
    """As it was sent, on a single line."""
    traces: TypingTraces | None = None
    """How a person wrote it; None for machines, and where the study does not record it."""
    traces_refused: str | None = None
    """Why there are no traces, where the page sent some that break a rule; the rest counts all the same."""
    at: Time
    """When the lobby took the message."""


class TalkWithdrawn(LoggedEvent):
    """Messages that an agent had ready and did not send. Written by the lobby."""

    event: Literal["withdrawn"] = "withdrawn"
    """Tells this kind of line from the others in the log."""
    talk: TalkId
    """The id of the conversation in which they would have stood."""
    turn: int
    """The position at which the first of them would have stood."""
    speaker: Speaker
    """The agent's letter."""
    texts: list[str]
    """The messages, in their order."""
    at: Time
    """When the agent gave them up."""


class TalkVoid(LoggedEvent):
    """A conversation does not count. Written by the lobby, and where somebody has all deleted."""

    event: Literal["void"] = "void"
    """Tells this kind of line from the others in the log."""
    talk: TalkId
    """The id of the conversation that does not count."""
    why: str
    """"CODE left", "forgotten", or what is wrong with an agent or its server."""
    at: Time
    """When it ceased to count; where somebody had all deleted, when the conversation began."""


# live tests


class _TestBegan(LoggedEvent):
    """A judge and two agents, who are participants or machines, begin. Written by the lobby of tests."""

    event: Literal["test"] = "test"
    """Tells the beginning of a test from other lines of the log; only an interrogation's has ``seconds``."""
    test: TestId
    """The id of the test, numbered from 1 as tests begin."""
    judge: ParticipantCode
    """The code of the participant who judges; "nobody" for one who had all deleted."""
    parts: list[PersonOrMachine]
    """What agents 1 and 2 are."""
    agents: list[str]
    """Agents 1 and 2, each a participant's code or a machine's name; "nobody" for somebody who had all deleted."""


class OnlineTestBegan(_TestBegan):
    """A test by questions, which both agents answer."""

    condition: Condition
    """Who poses as the other, where one agent is a person and the other a machine."""
    exchanges: int
    """The number of questions."""
    verdicts: Literal["each", "end"]
    """Whether the judge gives a verdict after each exchange, or after the last alone."""
    at: Time
    """When the parts were drawn; the meeting's clock begins here."""


class InterrogationBegan(_TestBegan):
    """A test by the clock, with both conversations at once."""

    seconds: float
    """How long the test goes on once all are ready."""
    at: Time
    """When the parts were drawn. The meeting's clock begins later, once all are ready."""


class TestReady(LoggedEvent):
    """Somebody has read their part. Written by the lobby of tests."""

    event: Literal["test_ready"] = "test_ready"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the test that they are to begin."""
    who: Who
    """The participant; machines need not be ready."""
    at: Time
    """When they went on from the text of their part. The latest of them starts an interrogation's clock."""


class TestAsked(LoggedEvent):
    """A question of the judge, to both agents. Written by the lobby of online tests."""

    event: Literal["test_asked"] = "test_asked"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the test in which it is asked."""
    who: Who
    """The judge, by their code."""
    text: str
    """The question."""
    clock: Clock
    """When the question was sent, in seconds of the meeting's clock."""
    delay_s: float
    """Seconds since the answers before were shown."""
    raw: str | None
    """None: people's texts are not cut."""
    traces: TypingTraces | None = None
    """How a person wrote it; None for machines, and where the study does not record it."""
    traces_refused: str | None = None
    """Why there are no traces, where the page sent some that break a rule; the rest counts all the same."""
    at: Time
    """When the lobby took the question."""


class TestAnswered(LoggedEvent):
    """The answer of an agent to the last question. Written by the lobby of online tests."""

    event: Literal["test_answered"] = "test_answered"
    """Tells this kind of line from the others in the log."""
    side: int
    """Which agent answers, 1 or 2."""
    test: TestId
    """The id of the test in which the question was asked."""
    who: Who
    """The agent, as ``agents`` of the test's beginning has it."""
    text: str
    """The answer as the judge sees it."""
    clock: Clock
    """When the answer is shown, in seconds of the meeting's clock; a machine's may lie ahead."""
    delay_s: float
    """Seconds since the question."""
    raw: str | None
    """The machine's text where it was longer than ``text``."""
    traces: TypingTraces | None = None
    """How a person wrote it; None for machines, and where the study does not record it."""
    traces_refused: str | None = None
    """Why there are no traces, where the page sent some that break a rule; the rest counts all the same."""
    at: Time
    """When the lobby took the answer; a machine's may be shown later, at ``clock``."""


class TestSaid(LoggedEvent):
    """A message of an interrogation. Written by the lobby of interrogations."""

    event: Literal["test_said"] = "test_said"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the interrogation."""
    side: int
    """The agent in whose conversation it is said, 1 or 2."""
    who: Who
    """The judge or the agent of ``side``."""
    text: str
    """The message."""
    clock: Clock
    """When the message was sent, in seconds of the meeting's clock."""
    id: str | None
    """The message's number in the page that sent it, so that it is taken once; None for a machine's."""
    traces: TypingTraces | None = None
    """How a person wrote it; None for machines, and where the study does not record it."""
    traces_refused: str | None = None
    """Why there are no traces, where the page sent some that break a rule; the rest counts all the same."""
    at: Time
    """When the lobby took the message."""


class TestWithdrawn(LoggedEvent):
    """A message that a machine had ready and did not send. Written by the lobby of interrogations."""

    event: Literal["test_withdrawn"] = "test_withdrawn"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the interrogation."""
    side: int
    """The agent in whose conversation it would have stood, 1 or 2."""
    who: Who
    """The name of the machine."""
    text: str
    """The message that was not sent."""
    clock: Clock
    """When the machine gave the message up, in seconds of the meeting's clock."""
    turn: int
    """The position at which it would have stood, counted from 0."""
    why: WhyWithdrawn
    """Somebody else wrote first, or the clock stopped."""
    at: Time
    """When the lobby noted it."""


class TestJudged(LoggedEvent):
    """A verdict of the judge. Written by the lobby of tests."""

    event: Literal["test_judged"] = "test_judged"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the test on which the verdict is."""
    who: Who
    """The judge, by their code."""
    verdict: HumanOrMachine
    """"human": agent 1 is the human; "machine": agent 2 is."""
    reason: str | None
    """In the judge's own words; None where they give none."""
    confidence: float | None = None
    """From 0 to 1; interrogations ask for it."""
    codes: list[str] | None = None
    """Why, as the judge chose among the study's ``codes``; interrogations ask for it."""
    clock: Clock
    """When the verdict was given, in seconds of the meeting's clock."""
    at: Time
    """When the lobby took the verdict."""


class TestVoid(LoggedEvent):
    """A test does not count. Written by the lobby of tests, and where somebody has all deleted."""

    event: Literal["test_void"] = "test_void"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the test that does not count."""
    why: str
    """"CODE left", "CODE did nothing", "forgotten", or what is wrong with a machine or its server."""
    at: Time
    """When it ceased to count; where somebody had all deleted, when the test began."""


class TestLeft(LoggedEvent):
    """Somebody has seen that their test is void, and goes back to the lobby. Written by the lobby of tests."""

    event: Literal["test_left"] = "test_left"
    """Tells this kind of line from the others in the log."""
    test: TestId
    """The id of the void test."""
    who: Who
    """The participant, who may be given another test now."""
    at: Time
    """When they went back."""
