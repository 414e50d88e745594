"""The events of a study and of its participants: they come, answer their steps, and leave.

Times ``at`` are UTC with milliseconds, such as ``2026-11-28T12:00:00.123Z``. Times ``clock`` are seconds since a
meeting began. ``judge`` is the code of a participant, also of one who judges nothing; ``who`` is a participant's code
or an agent's name.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from judging.study.log.logged import HumanOrMachine, Logged, LoggedEvent, ParticipantCode, Sex, Time
from judging.study.log.steps import Step
from judging.study.log.traces import TypingTraces

# the study as a whole


class Consent(Logged):
    """A text that participants agree to."""

    sha256: str
    """The SHA-256 of the text, in hexadecimal."""
    text: str
    """As the page shows it; an empty line begins a paragraph."""


class SettingsChosen(LoggedEvent):
    """The study is served for the first time, or with other settings than before. Written by the study's server."""

    event: Literal["settings"] = "settings"
    """Tells this kind of line from the others in the log."""
    at: Time
    """When the server started with these settings."""
    settings: dict[str, Any]
    """``study.toml`` without its texts."""
    consent: Consent | None = None
    """The text in force from now on; versions up to 0.2.0 did not keep it."""
    sha256: str
    """The SHA-256 of what the study shows, which must not change while it goes on."""


class StudyClosed(LoggedEvent):
    """Nobody may answer any more. Written by ``turinglike study close``, and by the server for whoever is at /admin."""

    event: Literal["closed"] = "closed"
    """Tells this kind of line from the others in the log."""
    at: Time
    """From when on no answer is taken."""


class EntryChanged(LoggedEvent):
    """Nobody new may begin, or may so again; who has begun goes on. Written by the server for whoever is at /admin."""

    event: Literal["entry"] = "entry"
    """Tells this kind of line from the others in the log."""
    at: Time
    """From when on it is so."""
    open: bool
    """Whether somebody new may begin."""


# people come and go


class Joined(LoggedEvent):
    """Somebody new. Written by the server when they begin, and by ``turinglike study kit`` for each list of a kit."""

    event: Literal["joined"] = "joined"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code drawn for the participant, which stands in all later events and in exports."""
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
    """All that is drawn for the participant, which never changes."""
    end_code: str
    """The code that is shown at the end, by which a panel pays."""
    codeword: str | None = None
    """The word of the hidden instruction on this participant's pages; None where the study has none."""
    at: Time
    """When they began, or when the kit was made."""


class SessionBegan(LoggedEvent):
    """A participant has come back with another browser, or without the cookie. Written by the server."""

    event: Literal["session"] = "session"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever was known again, by a personal link or a panel's id."""
    session: str
    """The SHA-256 of the token in the browser's cookie."""
    at: Time
    """When the new session began; earlier ones stay valid."""


class PageLoaded(LoggedEvent):
    """A participant has loaded the page again. Written by the server."""

    event: Literal["loaded"] = "loaded"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever reloaded."""
    at: Time
    """When the server sent the page."""


class Blocked(LoggedEvent):
    """A participant is out, for loading the page again ends taking part. Written where ``judges.reload`` is "block"."""

    event: Literal["blocked"] = "blocked"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever is out."""
    at: Time
    """When the server refused to go on."""


class Left(LoggedEvent):
    """A participant has left and wants all deleted. Written by the server; once it ends, this line goes, too."""

    event: Literal["left"] = "left"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever left, by which all that is theirs is found and deleted."""
    at: Time
    """When they asked for it; from then on none of their answers and meetings counts."""


class Restarted(LoggedEvent):
    """A participant begins anew with other steps. Only version 0.2.0 wrote it."""

    event: Literal["restarted"] = "restarted"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever began anew."""
    kept: int = Field(alias="from")
    """The number of answers that stay."""
    steps: list[Step]
    """All that is drawn for the participant, in place of what was drawn before."""
    at: Time
    """When they began anew."""


# answers


class AnswerReturned(LoggedEvent):
    """An answer that the form's checks refuse, and that is to be replaced. Written by the server."""

    event: Literal["told"] = "told"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever is to answer anew."""
    at: Time
    """When the answer came; from a kit, when it was given there."""
    step: int
    """The step's position among those of the participant, counted from 0."""
    kind: str
    """The step's kind, such as ``ask``."""
    said: str
    """The answer; several texts are parted by a comma."""
    flags: list[str]
    """The checks that refuse it."""


class StepDone(LoggedEvent):
    """A participant has done a step. Written by the server, or by ``turinglike study import`` for a kit."""

    event: Literal["step"] = "step"
    """Tells this kind of line from the others in the log."""
    judge: ParticipantCode
    """The code of whoever answered."""
    at: Time
    """When the answer came; from a kit, when it was given there."""
    step: int
    """The step's position among those of the participant, counted from 0."""


class ConsentAnswered(StepDone):
    """Somebody agrees or declines."""

    kind: Literal["consent"]
    """Tells which kind of step was answered."""
    consent: str | None = None
    """The SHA-256 of the text; versions up to 0.2.0 did not keep it."""
    agree: bool
    """Who does not agree takes no part."""


class QuestionsAnswered(StepDone):
    """The questions before or after are answered; what was said stands in ``personal.jsonl``."""

    kind: Literal["questions", "after"]
    """``questions`` before the study's own steps, ``after`` behind them."""
    screened: bool = False
    """Whether the participant is out because of an answer."""


class ScreenSeen(Logged):
    """What a browser tells of its device."""

    touch: bool
    """Whether its main pointer is a finger."""
    screen: list[int]
    """Width and height in CSS pixels."""


class InstructionsRead(StepDone):
    """A participant goes on from the instructions to the study's own steps."""

    kind: Literal["instructions"]
    """Tells which kind of step was answered."""
    device: ScreenSeen | None = None
    """What the browser tells of its device; versions up to 0.2.0 did not ask."""


class BreakOver(StepDone):
    """A break has ended."""

    kind: Literal["break"]
    """Tells which kind of step was answered."""
    seconds: float
    """Since the answer before."""


class TrialJudged(StepDone):
    """Verdicts on the trials of a page. Which of the later fields there are is the settings' choice."""

    kind: Literal["trial"]
    """Tells which kind of step was answered."""
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
    """Tells which kind of step was answered."""
    answer: list[str]
    """A text, or three objects."""
    rt: float | None
    """Milliseconds from when the page could be answered, by the browser."""
    away: bool
    """Whether the page was hidden meanwhile."""
    flags: list[str]
    """The form's checks that the answer does not meet; it is kept nevertheless."""
    traces: TypingTraces | None = None
    """How it was written; None where the study does not record it, or the page did not tell."""
    traces_refused: str | None = None
    """Why there are no traces, where the page sent some that break a rule; the rest counts all the same."""


class CheckAnswered(StepDone):
    """An answer to a question of the study's own, of its ``checks.questions``."""

    kind: Literal["check"]
    """Tells which kind of step was answered."""
    answer: str
    """The answer, on a single line."""
    passed: bool | None
    """Whether it fits the question's pattern; None where the question has none, or its pattern took too long."""
    rt: float | None
    """Milliseconds from when the page could be answered, by the browser."""
    away: bool
    """Whether the page was hidden meanwhile."""
    traces: TypingTraces | None = None
    """How it was written; None where the study does not record it, or the page did not tell."""
    traces_refused: str | None = None
    """Why there are no traces, where the page sent some that break a rule; the rest counts all the same."""


class TalkLeft(StepDone):
    """A participant has ended a conversation, and says for whom they take the other."""

    kind: Literal["talk"]
    """Tells which kind of step was answered."""
    talk: str | None
    """The conversation's id; None where nobody came."""
    guess: HumanOrMachine | None = None
    """For whom the participant takes the other."""
    sex: Sex | None = None
    """For a woman or a man."""
    age: str | None = None
    """How old, in the participant's own words; "" where they say nothing."""


class TestEnded(StepDone):
    """A participant has ended a live test."""

    kind: Literal["test"]
    """Tells which kind of step was answered."""
    test: str | None
    """The test's id; None where nobody came."""


StepAnswer = Annotated[
    ConsentAnswered
    | QuestionsAnswered
    | InstructionsRead
    | BreakOver
    | TrialJudged
    | StimulusAnswered
    | CheckAnswered
    | TalkLeft
    | TestEnded,
    Field(discriminator="kind"),
]
