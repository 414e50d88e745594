"""Every kind of event of a study, one a line in ``events.jsonl``.

Fields stand in the order in which they are written. To add a kind, write a class with a value of ``event`` of its own,
and name it in ``Event``; then :meth:`judging.study.log.state.State.apply` says what it changes. Never rename a field or
a value of ``event``: logs of people who took part could not be read any more. A field that comes later needs a default.

Times ``at`` are UTC with milliseconds, such as ``2026-11-28T12:00:00.123Z``. Times ``clock`` are seconds since a
meeting began. ``judge`` is the code of a participant, also of one who judges nothing; ``who`` is a participant's code
or an agent's name.
"""

from typing import Annotated, Any, Literal

import orjson
from pydantic import Discriminator, Field, Tag, TypeAdapter

from judging.study.log.logged import Logged
from judging.study.log.steps import Step

HumanOrMachine = Literal["human", "machine"]
Sex = Literal["female", "male"]
Speaker = Literal["A", "B"]
Condition = Literal["person_deceives", "machine_deceives"]
"""Who poses as the other: the person as a machine, or the machine as a person."""
Part = Literal["person", "machine"]
"""What an agent of a live test is."""
WhyWithdrawn = Literal["interrupted", "ended"]
"""``interrupted``: somebody else wrote first. ``ended``: the conversation was over before."""


class _Event(Logged):
    """A line of the log."""

    @property
    def line(self) -> bytes:
        """The event as JSON with a newline.

        It has the fields that were given, and no others. So an event that was read is written as it was, without
        nulls for what its version did not know.
        """
        kind = self.event  # type: ignore[attr-defined]  # each class of Event has its own
        fields = self.model_dump(exclude_unset=True, by_alias=True)
        return orjson.dumps({"event": kind, **fields}, option=orjson.OPT_APPEND_NEWLINE)


# the study as a whole


class Consent(Logged):
    """A text that participants agree to."""

    sha256: str
    """The SHA-256 of the text, in hexadecimal."""
    text: str


class SettingsChosen(_Event):
    """The study is served for the first time, or with other settings than before. Written by the study's server."""

    event: Literal["settings"] = "settings"
    at: str
    settings: dict[str, Any]
    """``study.toml`` without its texts."""
    consent: Consent | None = None
    """The text in force from now on; versions up to 0.2.0 did not keep it."""
    sha256: str
    """The SHA-256 of what the study shows, which must not change while it goes on."""


class StudyClosed(_Event):
    """Nobody may answer any more. Written by ``turinglike study close``."""

    event: Literal["closed"] = "closed"
    at: str


# people come and go


class Joined(_Event):
    """Somebody new. Written by the server when they begin, and by ``turinglike study kit`` for each list of a kit."""

    event: Literal["joined"] = "joined"
    judge: str
    session: str
    """The SHA-256 of the token in the browser's cookie."""
    number: int
    """How many have joined, this one included."""
    link: str | None
    """The SHA-256 of a personal link's token."""
    kit: str | None
    """The id of the kit that has this list."""
    keys: list[str]
    """The keys for "human" and "machine", in this order; of pairs for the second conversation and the first. Empty
    where nothing is judged."""
    steps: list[Step]
    end_code: str
    """The code that is shown at the end, by which a panel pays."""
    at: str


class SessionBegan(_Event):
    """A participant has come back with another browser, or without the cookie. Written by the server."""

    event: Literal["session"] = "session"
    judge: str
    session: str
    """The SHA-256 of the token in the browser's cookie."""
    at: str


class PageLoaded(_Event):
    """A participant has loaded the page again. Written by the server."""

    event: Literal["loaded"] = "loaded"
    judge: str
    at: str


class Blocked(_Event):
    """A participant is out, for loading the page again ends taking part. Written where ``judges.reload`` is "block"."""

    event: Literal["blocked"] = "blocked"
    judge: str
    at: str


class Left(_Event):
    """A participant has left and wants all deleted. Written by the server; once it ends, this line goes, too."""

    event: Literal["left"] = "left"
    judge: str
    at: str


class Restarted(_Event):
    """A participant begins anew with other steps. Only version 0.2.0 wrote it."""

    event: Literal["restarted"] = "restarted"
    judge: str
    kept: int = Field(alias="from")
    """The number of answers that stay."""
    steps: list[Step]
    at: str


# answers


class AnswerReturned(_Event):
    """An answer that the form's checks refuse, and that is to be replaced. Written by the server."""

    event: Literal["told"] = "told"
    judge: str
    at: str
    step: int
    kind: str
    said: str
    """The answer; several texts are parted by a comma."""
    flags: list[str]
    """The checks that refuse it."""


class StepDone(_Event):
    """A participant has done a step. Written by the server, or by ``turinglike study import`` for a kit."""

    event: Literal["step"] = "step"
    judge: str
    at: str
    """When the answer came; from a kit, when it was given there."""
    step: int
    """The step's position among those of the participant, counted from 0."""


class ConsentAnswered(StepDone):
    """Somebody agrees or declines."""

    kind: Literal["consent"]
    consent: str | None = None
    """The SHA-256 of the text; versions up to 0.2.0 did not keep it."""
    agree: bool


class QuestionsAnswered(StepDone):
    """The questions before or after are answered; what was said stands in ``personal.jsonl``."""

    kind: Literal["questions", "after"]
    screened: bool = False
    """Whether the participant is out because of an answer."""


class ScreenSeen(Logged):
    """What a browser tells of its device."""

    touch: bool
    """Whether its main pointer is a finger."""
    screen: list[int]
    """Width and height in CSS pixels."""


class InstructionsRead(StepDone):
    """The instructions are read."""

    kind: Literal["instructions"]
    device: ScreenSeen | None = None


class BreakOver(StepDone):
    """A break has ended."""

    kind: Literal["break"]
    seconds: float
    """Since the answer before."""


class TrialJudged(StepDone):
    """Verdicts on the trials of a page. Which of the later fields there are is the settings' choice."""

    kind: Literal["trial"]
    rt: float | None = None
    """Milliseconds from when the page could be answered, by the browser."""
    away: bool
    """Whether the page was hidden meanwhile."""
    verdicts: list[HumanOrMachine]
    """One for each trial of the step."""
    key: bool
    """Whether the verdict was given by the keyboard."""
    confidence: float | None = None
    """From 0 to 1."""
    reason: str | None = None
    """In the participant's own words; "" where they gave none."""
    sexes: list[Sex] | None = None
    """For whom the participant takes who answered, one for each trial."""
    control: str | None = None
    """The answer to the control question."""
    right: bool | None = None
    """Whether that answer is right."""


class StimulusAnswered(StepDone):
    """An answer to a stimulus, as agents give them."""

    kind: Literal["ask"]
    answer: list[str]
    rt: float | None
    """Milliseconds from when the page could be answered, by the browser."""
    away: bool
    """Whether the page was hidden meanwhile."""
    flags: list[str]
    """The form's checks that the answer does not meet; it is kept nevertheless."""


class TalkLeft(StepDone):
    """A participant has ended a conversation, and says for whom they take the other."""

    kind: Literal["talk"]
    talk: str | None
    """The conversation's id; None where nobody came."""
    guess: HumanOrMachine | None = None
    sex: Sex | None = None
    age: str | None = None
    """In the participant's own words."""


class TestEnded(StepDone):
    """A participant has ended a live test."""

    kind: Literal["test"]
    test: str | None
    """The test's id; None where nobody came."""


Answered = Annotated[
    ConsentAnswered
    | QuestionsAnswered
    | InstructionsRead
    | BreakOver
    | TrialJudged
    | StimulusAnswered
    | TalkLeft
    | TestEnded,
    Field(discriminator="kind"),
]


# conversations


class TalkBegan(_Event):
    """Two participants, or a participant and an agent, begin to converse. Written by the lobby of conversations."""

    event: Literal["paired"] = "paired"
    talk: str
    """The conversation's id."""
    stimulus: str
    """The id of the stimulus, which has the topic."""
    speakers: list[str]
    """A and B, each a participant's code or an agent's name; "nobody" for somebody who had all deleted."""
    at: str


class TalkSaid(_Event):
    """A message of a conversation. Written by the lobby before the other one sees it."""

    event: Literal["said"] = "said"
    talk: str
    turn: int
    """The message's position in the conversation, counted from 0."""
    speaker: Speaker
    text: str
    at: str


class TalkWithdrawn(_Event):
    """Messages that an agent had ready and did not send. Written by the lobby."""

    event: Literal["withdrawn"] = "withdrawn"
    talk: str
    turn: int
    """The position at which the first of them would have stood."""
    speaker: Speaker
    texts: list[str]
    at: str


class TalkVoid(_Event):
    """A conversation does not count. Written by the lobby, and where somebody has all deleted."""

    event: Literal["void"] = "void"
    talk: str
    why: str
    """"CODE left", "forgotten", or what is wrong with an agent or its server."""
    at: str


# live tests


class _TestBegan(_Event):
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


class TestReady(_Event):
    """Somebody has read their part. Written by the lobby of tests."""

    event: Literal["test_ready"] = "test_ready"
    test: str
    who: str
    at: str


class TestAsked(_Event):
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


class TestAnswered(_Event):
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


class TestSaid(_Event):
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


class TestWithdrawn(_Event):
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


class TestJudged(_Event):
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


class TestVoid(_Event):
    """A test does not count. Written by the lobby of tests, and where somebody has all deleted."""

    event: Literal["test_void"] = "test_void"
    test: str
    why: str
    """"CODE left", "CODE did nothing", "forgotten", or what is wrong with a machine or its server."""
    at: str


class TestLeft(_Event):
    """Somebody has seen that their test is void, and goes back to the lobby. Written by the lobby of tests."""

    event: Literal["test_left"] = "test_left"
    test: str
    who: str
    at: str


def _form(value: Any) -> str:
    """Which of the two tests an event begins: only an interrogation has ``seconds``."""
    return "clock" if isinstance(value, InterrogationBegan) or "seconds" in value else "questions"


TestBegan = Annotated[
    Annotated[OnlineTestBegan, Tag("questions")] | Annotated[InterrogationBegan, Tag("clock")], Discriminator(_form)
]
InTalk = TalkSaid | TalkWithdrawn | TalkVoid
"""What happens in a conversation."""
InTest = TestReady | TestAsked | TestAnswered | TestSaid | TestWithdrawn | TestJudged | TestVoid
"""What happens in a live test, until its people go on."""
OfJudge = SessionBegan | PageLoaded | Blocked | Left | Restarted | AnswerReturned | Answered
"""What happens to a participant who has joined."""
Event = Annotated[
    SettingsChosen | StudyClosed | Joined | OfJudge | TalkBegan | InTalk | TestBegan | InTest | TestLeft,
    Field(discriminator="event"),
]
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def read_event(line: bytes) -> Event:
    """The event of a line. Raises pydantic's ValidationError, also for what is no JSON."""
    return _EVENT.validate_json(line)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line of ``events.jsonl``."""
    schema = _EVENT.json_schema()
    for part in schema["$defs"].values():
        if "event" in part["properties"]:  # always written, though classes have it by themselves
            part["required"] = ["event", *(name for name in part["required"] if name != "event")]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "turinglike.study/1 event", **schema}
