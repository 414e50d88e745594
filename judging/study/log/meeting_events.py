"""The events of meetings: conversations of two, and live tests of a judge and two agents.

Times ``at`` are UTC with milliseconds, such as ``2026-11-28T12:00:00.123Z``. Times ``clock`` are seconds since a
meeting began. ``judge`` is the code of a participant, also of one who judges nothing; ``who`` is a participant's code
or an agent's name.
"""

from typing import Literal

from judging.study.log.logged import Clock, Code, HumanOrMachine, LoggedEvent, TalkId, TestId, Time, Who

Speaker = Literal["A", "B"]
Condition = Literal["person_deceives", "machine_deceives"]
"""Who poses as the other: the person as a machine, or the machine as a person."""
Part = Literal["person", "machine"]
"""What an agent of a live test is."""
WhyWithdrawn = Literal["interrupted", "ended"]
"""``interrupted``: somebody else wrote first. ``ended``: the conversation was over before."""

# conversations


class TalkBegan(LoggedEvent):
    """Two participants, or a participant and an agent, begin to converse. Written by the lobby of conversations."""

    event: Literal["paired"] = "paired"
    talk: TalkId
    stimulus: str
    """The id of the stimulus, which has the topic."""
    speakers: list[str]
    """A and B, each a participant's code or an agent's name; "nobody" for somebody who had all deleted."""
    at: Time


class TalkSaid(LoggedEvent):
    """A message of a conversation. Written by the lobby before the other one sees it."""

    event: Literal["said"] = "said"
    talk: TalkId
    turn: int
    """The message's position in the conversation, counted from 0."""
    speaker: Speaker
    """A or B, as ``speakers`` of the conversation\'s beginning has them."""
    text: str
    """As it was sent, on a single line."""
    at: Time


class TalkWithdrawn(LoggedEvent):
    """Messages that an agent had ready and did not send. Written by the lobby."""

    event: Literal["withdrawn"] = "withdrawn"
    talk: TalkId
    turn: int
    """The position at which the first of them would have stood."""
    speaker: Speaker
    """The agent\'s letter."""
    texts: list[str]
    """The messages, in their order."""
    at: Time


class TalkVoid(LoggedEvent):
    """A conversation does not count. Written by the lobby, and where somebody has all deleted."""

    event: Literal["void"] = "void"
    talk: TalkId
    why: str
    """"CODE left", "forgotten", or what is wrong with an agent or its server."""
    at: Time


# live tests


class _TestBegan(LoggedEvent):
    """A judge and two agents, who are participants or machines, begin. Written by the lobby of tests."""

    event: Literal["test"] = "test"
    test: TestId
    judge: Code
    parts: list[Part]
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


class InterrogationBegan(_TestBegan):
    """A test by the clock, with both conversations at once."""

    seconds: float
    """How long the test goes on once all are ready."""
    at: Time


class TestReady(LoggedEvent):
    """Somebody has read their part. Written by the lobby of tests."""

    event: Literal["test_ready"] = "test_ready"
    test: TestId
    who: Who
    at: Time


class TestAsked(LoggedEvent):
    """A question of the judge, to both agents. Written by the lobby of online tests."""

    event: Literal["test_asked"] = "test_asked"
    test: TestId
    who: Who
    text: str
    """The question."""
    clock: Clock
    delay_s: float
    """Seconds since the answers before were shown."""
    raw: str | None
    """None: people's texts are not cut."""
    at: Time


class TestAnswered(LoggedEvent):
    """The answer of an agent to the last question. Written by the lobby of online tests."""

    event: Literal["test_answered"] = "test_answered"
    side: int
    """Which agent answers, 1 or 2."""
    test: TestId
    who: Who
    text: str
    """The answer as the judge sees it."""
    clock: Clock
    """When the answer is shown; a machine's may lie ahead."""
    delay_s: float
    """Seconds since the question."""
    raw: str | None
    """The machine's text where it was longer than ``text``."""
    at: Time


class TestSaid(LoggedEvent):
    """A message of an interrogation. Written by the lobby of interrogations."""

    event: Literal["test_said"] = "test_said"
    test: TestId
    side: int
    """The agent in whose conversation it is said, 1 or 2."""
    who: Who
    text: str
    """The message."""
    clock: Clock
    id: str | None
    """The message's number in the page that sent it, so that it is taken once; None for a machine's."""
    at: Time


class TestWithdrawn(LoggedEvent):
    """A message that a machine had ready and did not send. Written by the lobby of interrogations."""

    event: Literal["test_withdrawn"] = "test_withdrawn"
    test: TestId
    side: int
    """The agent in whose conversation it would have stood, 1 or 2."""
    who: Who
    text: str
    """The message that was not sent."""
    clock: Clock
    turn: int
    """The position at which it would have stood, counted from 0."""
    why: WhyWithdrawn
    """Somebody else wrote first, or the clock stopped."""
    at: Time


class TestJudged(LoggedEvent):
    """A verdict of the judge. Written by the lobby of tests."""

    event: Literal["test_judged"] = "test_judged"
    test: TestId
    who: Who
    verdict: HumanOrMachine
    """"human": agent 1 is the human; "machine": agent 2 is."""
    reason: str | None
    """In the judge's own words; None where they give none."""
    confidence: float | None = None
    """From 0 to 1; interrogations ask for it."""
    codes: list[str] | None = None
    """Why, as the judge chose among the study's ``codes``; interrogations ask for it."""
    clock: Clock
    at: Time


class TestVoid(LoggedEvent):
    """A test does not count. Written by the lobby of tests, and where somebody has all deleted."""

    event: Literal["test_void"] = "test_void"
    test: TestId
    why: str
    """"CODE left", "CODE did nothing", "forgotten", or what is wrong with a machine or its server."""
    at: Time


class TestLeft(LoggedEvent):
    """Somebody has seen that their test is void, and goes back to the lobby. Written by the lobby of tests."""

    event: Literal["test_left"] = "test_left"
    test: TestId
    who: Who
    at: Time
