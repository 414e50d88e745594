"""What a study asks of people, who judge, answer or both: ``study.toml``, checked before anybody is asked."""

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
    """What judges read; an empty line begins a paragraph. An empty text leaves its page out."""

    title: Text
    consent: Text = ""
    instructions: Text
    thanks: Text = ""


class People(_Table):
    """Who may take part. ``wanted`` is how many are to finish, ``most`` how many may be at it or have finished at once,
    ``hours`` how long one who has not finished keeps their trials from others. ``entry``: who has the address, or who
    has a link of their own. ``reload``: a judge who loads the page again goes on, begins anew, or is shut out."""

    wanted: Annotated[int, Field(ge=1, le=100_000)]
    most: Annotated[int, Field(ge=1, le=100_000)]
    entry: Literal["open", "links"] = "open"
    reload: Literal["resume", "restart", "block"] = "resume"
    hours: Annotated[float, Field(gt=0, le=10_000)] = 2.0
    worker: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")] = ""


class Questions(_Table):
    """What judges are asked about themselves, before and after; nobody must answer any of it."""

    before: list[Literal["age", "gender", "education", "country", "native_language", "ai_experience"]] = Field(
        default_factory=list
    )
    after: list[Literal["engaging", "difficult", "comments"]] = Field(default_factory=list)


class Trials(_Table):
    """The trials of one judge. ``number`` of them are drawn, ``practice`` come before them and do not count; of the
    ``number`` the first ``feedback`` say what was right. ``catch`` and ``repeats`` are shares of ``number`` that come
    to it. ``choices`` of conversations: one speaker a page, both, or which of four pairs they are."""

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
    """What a judge gets at the end: a ``code``, the same for all or (empty) one of their own, and the address to
    go on to, in which ``{code}`` and ``{worker}`` are filled in."""

    code: Annotated[str, Field(max_length=100)] = ""
    redirect: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=2000)] = ""


class Exclude(_Table):
    """Rules, by which verdicts are marked and not removed. Of a judge: fewer ``controls`` right, fewer catch trials
    caught (``catch``), not ``finished``, the same verdict in all trials (``one_sided``), a first language other than
    the study's (``native``). Of a trial: faster than ``fastest`` seconds, its control question wrong
    (``wrong_control``). No rule looks at whether a verdict that is scored is right; ``right`` was one, and is 0."""

    finished: bool = True
    controls: Share = 0.0
    catch: Share = 0.0
    right: Annotated[float, AfterValidator(_no_rule)] = Field(0.0, exclude=True)
    one_sided: bool = False
    native: bool = False
    fastest: Seconds = 0.0
    wrong_control: bool = False


class Answers(_Table):
    """What participants answer: ``number`` stimuli each. ``checks``: what the papers' form, or an agent's filters,
    reject is told at once and to be answered anew (``tell``), or kept with a flag (``note``)."""

    number: Annotated[int, Field(ge=1, le=1000)]
    checks: Literal["tell", "note"] = "tell"


class Talk(_Table):
    """Conversations: with whom, and when one has left. ``machines`` is the probability with which two who wait get
    ``agent`` each, whom the ``server`` of `turinglike serve` answers for; in a burst dialogue it is asked after
    ``quiet_s`` seconds without a message. ``guess`` asks afterwards whether the other one was a machine."""

    agent: Name = ""
    server: Server = "http://127.0.0.1:8001/"
    machines: Share = 0.0
    quiet_s: Seconds = QUIET_S
    seconds_in_lobby: Seconds = 300.0
    seconds_away: Seconds = 45.0
    guess: bool = True


class _Study(_Table):
    """What all kinds of ``study.toml`` have. ``judges`` are those who take part, whatever they are asked."""

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
    """All of ``study.toml`` where people judge the trials of ``trial_set``."""

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
    """All of ``study.toml`` where people answer the stimuli of ``stimulus_set``."""

    judges: Annotated[People, Field(alias="participants")]
    source: Annotated[str, Field(alias="stimulus_set", min_length=1)]
    answers: Answers
    talk: Talk = Field(default_factory=Talk)
    delays: DelaySettings = Field(default_factory=DelaySettings)

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.talk.machines and not self.talk.agent:
            raise PydanticCustomError("agent", "talk.agent: name the one that a share of conversations is with")
        if self.task == "attention_prediction":
            raise PydanticCustomError("task", "task: people's answers to {task} are imported", {"task": self.task})
        return self


class Roles(_Table):
    """What each is told of their part before a test begins."""

    judge: Text
    person_deceives: Text
    person_argues: Text


class Tests(_Table):
    """Online tests. ``wanted`` is how many are to be held to their end, ``each`` how many one participant may take part
    in, one after the other. Of each number of ``exchanges`` there are equally many. ``person_deceives`` is the share in
    which the person poses as a machine; in the others the machine poses as a person. ``two_machines`` and
    ``two_people`` are shares in which both agents are of one kind. Answers have fewer than ``words_below`` words.
    ``verdicts``: after ``each`` exchange, or at the ``end``."""

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
    """Who answers as the machine, by condition: the one that argues that it is one, while the person poses as one, and
    the one that poses as a person. The ``server`` of `turinglike serve` answers for them."""

    server: Server = "http://127.0.0.1:8001/"
    machine_argues: Name = ""
    machine_deceives: Name = ""


class Batch(_Table):
    """Who takes the people's parts where there are none (`turinglike study batch`): the judge's questions and verdicts,
    and the person's answers by condition."""

    server: Server = "http://127.0.0.1:8001/"
    questions: Name = ""
    verdicts: Name = ""
    person_deceives: Name = ""
    person_argues: Name = ""


class OnlineSettings(_Study):
    """All of ``study.toml`` where a judge asks two agents who do not see each other."""

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
    lines = path.read_text("utf-8").splitlines()
    found = []
    for one in as_problems(error, str(path)):
        name = (one.field or "").rpartition(".")[2]
        at = next((number for number, line in enumerate(lines, 1) if name and line.split("=")[0].strip() == name), None)
        found.append(Problem(one.where, at, one.field, one.message))
    return found


def source_of(folder: Path, settings: StudySettings) -> Path:
    """The trial set, or the stimulus set, which may be told relative to the study's folder; the folder of online tests,
    which have no set."""
    return (folder / settings.source).resolve()


def told(settings: StudySettings) -> dict[str, Any]:
    """The settings as they are kept among the events, without the texts of pages."""
    return settings.model_dump(mode="json", by_alias=True, exclude={"texts"})
