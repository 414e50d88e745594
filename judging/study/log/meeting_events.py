"""The events of meetings: conversations of two, and live tests of a judge and two agents.

Times ``at`` are UTC with milliseconds, such as ``2026-11-28T12:00:00.123Z``. Times ``clock`` are seconds since a
meeting began. ``judge`` is the code of a participant, also of one who judges nothing; ``who`` is a participant's code
or an agent's name.
"""

from typing import Literal

from judging.study.log.logged import HumanOrMachine, LoggedEvent

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
    talk: str
    """The conversation's id."""
    stimulus: str
    """The id of the stimulus, which has the topic."""
    speakers: list[str]
    """A and B, each a participant's code or an agent's name; "nobody" for somebody who had all deleted."""
    at: str


class TalkSaid(LoggedEvent):
    """A message of a conversation. Written by the lobby before the other one sees it."""

    event: Literal["said"] = "said"
    talk: str
    turn: int
    """The message's position in the conversation, counted from 0."""
    speaker: Speaker
    text: str
    at: str


class TalkWithdrawn(LoggedEvent):
    """Messages that an agent had ready and did not send. Written by the lobby."""

    event: Literal["withdrawn"] = "withdrawn"
    talk: str
    turn: int
    """The position at which the first of them would have stood."""
    speaker: Speaker
    texts: list[str]
    at: str


class TalkVoid(LoggedEvent):
    """A conversation does not count. Written by the lobby, and where somebody has all deleted."""

    event: Literal["void"] = "void"
    talk: str
    why: str
    """"CODE left", "forgotten", or what is wrong with an agent or its server."""
    at: str


# live tests


class _TestBegan(LoggedEvent):
    """A judge and two agents, who are participants or machines, begin. Written by the lobby of tests."""

    event: Literal["test"] = "test"
    test: str
    """The test's id, such as ``test-00001``."""
    judge: str
    parts: list[Part]
    """What agents 1 and 2 are."""
    agents: list[str]
    """Agents 1 and 2, each a participant's code or a machine's name; "nobody" for somebody who had all deleted."""


class OnlineTestBegan(_TestBegan):
    """A test by questions, which both agents answer."""

    condition: Condition
    exchanges: int
    """The number of questions."""
    verdicts: Literal["each", "end"]
    """Whether the judge gives a verdict after each exchange, or after the last alone."""
    at: str


class InterrogationBegan(_TestBegan):
    """A test by the clock, with both conversations at once."""

    seconds: float
    """How long the test goes on once all are ready."""
    at: str


class TestReady(LoggedEvent):
    """Somebody has read their part. Written by the lobby of tests."""

    event: Literal["test_ready"] = "test_ready"
    test: str
    who: str
    at: str


class TestAsked(LoggedEvent):
    """A question of the judge, to both agents. Written by the lobby of online tests."""

    event: Literal["test_asked"] = "test_asked"
    test: str
    who: str
    text: str
    clock: float
    delay_s: float
    """Seconds since the answers before were shown."""
    raw: str | None
    """None: people's texts are not cut."""
    at: str


class TestAnswered(LoggedEvent):
    """The answer of an agent to the last question. Written by the lobby of online tests."""

    event: Literal["test_answered"] = "test_answered"
    side: int
    """Which agent answers, 1 or 2."""
    test: str
    who: str
    text: str
    clock: float
    """When the answer is shown; a machine's may lie ahead."""
    delay_s: float
    """Seconds since the question."""
    raw: str | None
    """The machine's text where it was longer than ``text``."""
    at: str


class TestSaid(LoggedEvent):
    """A message of an interrogation. Written by the lobby of interrogations."""

    event: Literal["test_said"] = "test_said"
    test: str
    side: int
    """The agent in whose conversation it is said, 1 or 2."""
    who: str
    text: str
    clock: float
    id: str | None
    """The message's number in the page that sent it, so that it is taken once; None for a machine's."""
    at: str


class TestWithdrawn(LoggedEvent):
    """A message that a machine had ready and did not send. Written by the lobby of interrogations."""

    event: Literal["test_withdrawn"] = "test_withdrawn"
    test: str
    side: int
    """The agent in whose conversation it would have stood, 1 or 2."""
    who: str
    text: str
    clock: float
    turn: int
    """The position at which it would have stood, counted from 0."""
    why: WhyWithdrawn
    at: str


class TestJudged(LoggedEvent):
    """A verdict of the judge. Written by the lobby of tests."""

    event: Literal["test_judged"] = "test_judged"
    test: str
    who: str
    verdict: HumanOrMachine
    """"human": agent 1 is the human; "machine": agent 2 is."""
    reason: str | None
    confidence: float | None = None
    """From 0 to 1; interrogations ask for it."""
    codes: list[str] | None = None
    """Why, as the judge chose among the study's ``codes``; interrogations ask for it."""
    clock: float
    at: str


class TestVoid(LoggedEvent):
    """A test does not count. Written by the lobby of tests, and where somebody has all deleted."""

    event: Literal["test_void"] = "test_void"
    test: str
    why: str
    """"CODE left", "CODE did nothing", "forgotten", or what is wrong with a machine or its server."""
    at: str


class TestLeft(LoggedEvent):
    """Somebody has seen that their test is void, and goes back to the lobby. Written by the lobby of tests."""

    event: Literal["test_left"] = "test_left"
    test: str
    who: str
    at: str
