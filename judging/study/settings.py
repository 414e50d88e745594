"""``study.toml``: the choices of a study, checked before anybody takes part."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agents.errors import InputError, Problem
from agents.stimuli import Asked
from judging.study.controls import OBJECT, OBJECT_TASKS, TOPIC
from serving.conversations.pair_settings import QUIET_S, DelaySettings
from serving.runs.row_problems import as_problems

SCHEMA = "turinglike.study/1"
FILE = "study.toml"
FIELDS = ("age", "gender", "education", "country", "native_language", "ai_experience")
CLOSING = ("engaging", "difficult", "comments")
Text = Annotated[str, Field(max_length=20_000)]
Count = Annotated[int, Field(ge=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=3600)]
Choices = Literal["one", "both", "four"]
Key = Annotated[str, Field(pattern=r"^[a-z0-9]$")]
Name = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9._-]*)?$")]
Server = Annotated[str, Field(pattern=r"^https?://\S+$")]


def _no_rule(value: float) -> float:
    if value:
        raise PydanticCustomError(
            "right",
            "is no rule: it keeps judges by the very verdicts that are scored, so that mere chance looks like skill; "
            "ask a control question instead (trials.control, exclude.controls)",
        )
    return value


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Texts(_Table):
    """Texts of pages; an empty line begins a paragraph, an empty text leaves its page out."""

    title: Text
    consent: Text = ""
    instructions: Text
    thanks: Text = ""


class People(_Table):
    """Who may take part: ``wanted`` are to finish, ``most`` may have finished or be at it.

    After ``hours`` the trials of a judge who has not finished go to others. ``entry``: everybody, or by personal links.
    ``reload``: a judge who loads the page again goes on, begins anew, or is shut out. ``worker``: a panel's parameter.
    """

    wanted: Annotated[int, Field(ge=1, le=100_000)]
    most: Annotated[int, Field(ge=1, le=100_000)]
    entry: Literal["open", "links"] = "open"
    reload: Literal["resume", "restart", "block"] = "resume"
    hours: Annotated[float, Field(gt=0, le=10_000)] = 2.0
    worker: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")] = ""


class Questions(_Table):
    """Questions to judges about themselves, before and after; nobody must answer."""

    before: list[Literal["age", "gender", "education", "country", "native_language", "ai_experience"]] = Field(
        default_factory=list
    )
    after: list[Literal["engaging", "difficult", "comments"]] = Field(default_factory=list)


class Trials(_Table):
    """The trials of a judge: ``number`` are drawn, after ``practice`` that does not count.

    Of the ``number`` the first ``feedback`` reveal what was right. ``catch`` and ``repeats`` are added, as shares of
    ``number``. ``choices`` of conversations: one speaker a page, both, or which of four pairs.
    """

    number: Annotated[int, Field(ge=1, le=1000)]
    practice: Count = 0
    feedback: Count = 0
    catch: Share = 0.0
    repeats: Share = 0.0
    choices: Choices = "one"
    prior_told: bool = False
    confidence: bool = False
    reason: bool = False
    seconds_before: Seconds = 0.0
    play_once: bool = False
    control: Annotated[str, Field(max_length=1000)] = ""
    sample: bool = True
    keys: Annotated[list[Key], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: ["f", "j"])

    @model_validator(mode="after")
    def _can_be(self) -> Trials:
        if self.keys[0] == self.keys[1]:
            raise PydanticCustomError("keys", "keys: must be two different ones")
        if self.feedback > self.number:
            raise PydanticCustomError("feedback", "feedback: there are only {number} trials", {"number": self.number})
        return self


class End(_Table):
    """A ``code``, the same for all or (empty) a random one, and an address, where ``{code}`` and ``{worker}`` are
    filled in."""

    code: Annotated[str, Field(max_length=100)] = ""
    redirect: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=2000)] = ""


class Exclude(_Table):
    """Rules that mark verdicts; none is removed, and no rule looks at whether a scored verdict is right.

    Of a judge: a smaller share of ``controls`` right or of ``catch`` trials caught, not ``finished``, the same verdict
    always (``one_sided``), another first language (``native``). Of a trial: under ``fastest`` seconds, its control
    question wrong. ``right`` was a rule of version 0.1 and must be 0.
    """

    finished: bool = True
    controls: Share = 0.0
    catch: Share = 0.0
    right: Annotated[float, AfterValidator(_no_rule)] = Field(0.0, exclude=True)
    one_sided: bool = False
    native: bool = False
    fastest: Seconds = 0.0
    wrong_control: bool = False


class Answers(_Table):
    """``number`` stimuli for each participant. ``checks``: what the papers' form rejects is to be answered anew
    (``tell``), or kept with a flag (``note``)."""

    number: Annotated[int, Field(ge=1, le=1000)]
    checks: Literal["tell", "note"] = "tell"


class Talk(_Table):
    """Conversations: ``machines`` is the probability with which two who wait get ``agent`` each, of ``server``.

    In a burst dialogue the agent is asked after ``quiet_s`` seconds without a message. ``guess`` asks afterwards
    whether the partner was a machine.
    """

    agent: Name = ""
    server: Server = "http://127.0.0.1:8001/"
    machines: Share = 0.0
    quiet_s: Seconds = QUIET_S
    seconds_in_lobby: Seconds = 300.0
    seconds_away: Seconds = 45.0
    guess: bool = True


class _Study(_Table):
    """What all kinds of ``study.toml`` have; ``judges`` are the people who take part."""

    schema_: Annotated[Literal["turinglike.study/1"], Field(alias="schema")]
    task: Asked
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")] = "en"
    phrases: Annotated[str, Field(max_length=1000)] = ""
    texts: Texts
    judges: People
    questions: Questions = Field(default_factory=Questions)
    end: End = Field(default_factory=End)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.judges.most < self.judges.wanted:
            raise PydanticCustomError("most", "most: must not be below wanted")
        return self


class JudgesSettings(_Study):
    """Of people who judge the trials of ``trial_set``."""

    source: Annotated[str, Field(alias="trial_set", min_length=1)]
    trials: Trials
    exclude: Exclude = Field(default_factory=Exclude)

    @model_validator(mode="after")
    def _fits_the_task(self) -> Self:
        if self.trials.choices != "one" and self.task != "conversation":
            raise PydanticCustomError("choices", "trials.choices: {value} is for conversations", {
                "value": self.trials.choices,
            })  # fmt: skip
        if self.trials.play_once and self.task != "attention_prediction":
            raise PydanticCustomError("play", "trials.play_once: only scanpaths are played")
        control = self.trials.control
        if (control == TOPIC and self.task != "conversation") or (control == OBJECT and self.task not in OBJECT_TASKS):
            raise PydanticCustomError("control", "trials.control: {value} is not for {task}", {
                "value": control, "task": self.task,
            })  # fmt: skip
        if (self.exclude.controls or self.exclude.wrong_control) and not control:
            raise PydanticCustomError("controls", "exclude: there are no control questions; see trials.control")
        return self


class AnswersSettings(_Study):
    """Of people who answer the stimuli of ``stimulus_set``."""

    judges: Annotated[People, Field(alias="participants")]
    source: Annotated[str, Field(alias="stimulus_set", min_length=1)]
    answers: Answers
    talk: Talk = Field(default_factory=Talk)
    delays: DelaySettings = Field(default_factory=DelaySettings)

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.talk.machines and not self.talk.agent:
            raise PydanticCustomError("agent", "talk.agent: name the agent that a share of conversations is with")
        if self.task == "attention_prediction":
            raise PydanticCustomError("task", "task: people's answers to {task} are imported", {"task": self.task})
        return self


class Roles(_Table):
    """Texts about each part, before a test begins."""

    judge: Text
    person_deceives: Text
    person_argues: Text


class Tests(_Table):
    """Online tests: ``wanted`` are to be held to their end, a participant may take part in ``each`` of them.

    Each number of ``exchanges`` is equally frequent. ``person_deceives`` is the share in which the person poses as a
    machine; in the others the machine poses as a person. In ``two_machines`` and ``two_people`` both agents are of one
    kind. Answers have fewer than ``words_below`` words. ``verdicts``: after ``each`` exchange, or at the ``end``.
    """

    wanted: Annotated[int, Field(ge=1, le=100_000)]
    each: Annotated[int, Field(ge=1, le=100)] = 1
    exchanges: Annotated[list[Annotated[int, Field(ge=1, le=100)]], Field(min_length=1, max_length=20)] = Field(
        default_factory=lambda: [1, 5, 10, 20]
    )
    person_deceives: Share = 0.5
    two_machines: Share = 0.0
    two_people: Share = 0.0
    verdicts: Literal["each", "end"] = "end"
    words_below: Annotated[int, Field(ge=2, le=1000)] = 15
    seed: Annotated[int, Field(ge=0, lt=2**53)]
    seconds_in_lobby: Seconds = 300.0
    seconds_away: Seconds = 45.0
    seconds_to_act: Seconds = 180.0

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Tests:
        if len(set(self.exchanges)) < len(self.exchanges):
            raise PydanticCustomError("exchanges", "exchanges: has a number twice")
        if self.two_machines + self.two_people > 1:
            raise PydanticCustomError("shares", "two_machines, two_people: are more than all tests together")
        return self


class MachineAgents(_Table):
    """The machines of ``server``, by condition: it argues that it is a machine, or it poses as a person."""

    server: Server = "http://127.0.0.1:8001/"
    machine_argues: Name = ""
    machine_deceives: Name = ""


class Batch(_Table):
    """The agents that take the people's parts in `turinglike study batch`."""

    server: Server = "http://127.0.0.1:8001/"
    questions: Name = ""
    verdicts: Name = ""
    person_deceives: Name = ""
    person_argues: Name = ""


class OnlineSettings(_Study):
    """Of online tests: a judge asks two agents who do not see each other."""

    task: Literal["conversation"] = "conversation"
    judges: Annotated[People, Field(alias="participants")]
    roles: Roles
    tests: Tests
    agents: MachineAgents
    batch: Batch = Field(default_factory=Batch)
    delays: DelaySettings = Field(default_factory=DelaySettings)
    source: ClassVar[str] = "."

    @model_validator(mode="after")
    def _goes_on(self) -> OnlineSettings:
        if self.judges.reload == "restart":
            raise PydanticCustomError(
                "reload", "participants.reload: what others have seen of a test cannot begin anew"
            )
        return self


StudySettings = JudgesSettings | AnswersSettings | OnlineSettings


def read_settings(folder: Path) -> StudySettings:
    """The settings of the study in ``folder``. Raises InputError with everything that is wrong."""
    path = folder / FILE
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} is no study: it has no {FILE}; `turinglike study new` makes one") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        kind = OnlineSettings if "tests" in tables else AnswersSettings if "stimulus_set" in tables else JudgesSettings
        return kind.model_validate(tables)
    except ValidationError as error:
        raise InputError(f"{path} cannot be used", _problems(error, path)) from None


def _problems(error: ValidationError, path: Path) -> list[Problem]:
    names = [line.split("=")[0].strip() for line in path.read_text("utf-8").splitlines()]
    problems = []
    for problem in as_problems(error, str(path)):
        name = (problem.field or "").rpartition(".")[2]
        line = names.index(name) + 1 if name in names and name else None
        problems.append(Problem(problem.where, line, problem.field, problem.message))
    return problems


def source_of(folder: Path, settings: StudySettings) -> Path:
    """The trial set or stimulus set, which may be relative to the study's folder; of online tests the folder."""
    return (folder / settings.source).resolve()


def kept_settings(settings: StudySettings) -> dict[str, Any]:
    """The settings as the events have them, without the texts of pages."""
    return settings.model_dump(mode="json", by_alias=True, exclude={"texts"})
