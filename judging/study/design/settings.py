"""``study.toml``, checked; its ``templates`` say what each choice means."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agents.catalogue.named_models import is_model_name, plain_name
from agents.errors import InputError, Problem
from agents.stimuli import Asked
from serving.conversations.scenario import QUIET_S, DelaySettings
from serving.files.row_problems import as_problems

FILE = "study.toml"
TOPIC = "topic"
OBJECT = "object"
"""Words of ``trials.control``: what a conversation is about, what is in a picture or clip."""
OBJECT_TASKS: tuple[Asked, ...] = ("color_estimation", "object_detection", "attention_prediction", "image_captioning")
Before = Literal["age", "gender", "education", "country", "native_language", "ai_experience"]
After = Literal["engaging", "difficult", "comments"]
FIELDS: tuple[str, ...] = get_args(Before)
CLOSING: tuple[str, ...] = get_args(After)
Text = Annotated[str, Field(max_length=20_000)]
Count = Annotated[int, Field(ge=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=3600)]
Number = Annotated[int, Field(ge=1, le=1000)]
Exchanges = Annotated[int, Field(ge=1, le=100)]
Code = Annotated[str, Field(max_length=100)]
Parameter = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Key = Annotated[str, Field(pattern=r"^[a-z0-9]$")]


def _plain(name: object) -> object:
    try:
        return plain_name(name) if isinstance(name, str) and is_model_name(name) else name
    except InputError as error:
        raise ValueError(str(error)) from None


Name = Annotated[str, BeforeValidator(_plain), Field(pattern=r"^([a-z0-9][a-z0-9._-]*)?$")]
Server = Annotated[str, Field(pattern=r"^https?://\S+$")]


def _refuse(is_broken: bool, why: str) -> None:
    if is_broken:
        raise PydanticCustomError("choices", "{why}", {"why": why})


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Texts(_Table):
    """Texts of pages; an empty line begins a paragraph, an empty text leaves its page out."""

    title: Text
    consent: Text = ""
    instructions: Text
    thanks: Text = ""


class People(_Table):
    wanted: Annotated[int, Field(ge=1, le=100_000)]
    most: Annotated[int, Field(ge=1, le=100_000)]
    entry: Literal["open", "links"] = "open"
    reload: Literal["resume", "block"] = "resume"
    hours: Annotated[float, Field(gt=0, le=10_000)] = 2.0
    worker: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")] = ""
    parameters: Annotated[list[Parameter], Field(max_length=10)] = Field(default_factory=list)
    screen: Count = 0
    break_every: Count = 0

    @model_validator(mode="after")
    def _can_be(self) -> People:
        is_taken = not {"worker", "code", *FIELDS, *CLOSING}.isdisjoint(self.parameters)
        _refuse(is_taken, "parameters: has the name of a column of participants.csv")
        _refuse(self.most < self.wanted, "most: must not be below wanted")
        return self


class Questions(_Table):
    """Those ``required`` must be answered; who gives an answer of ``out`` is screened out. Exports have the answers
    where they are ``public``, to which the judges have consented."""

    before: list[Before] = Field(default_factory=list)
    after: list[After] = Field(default_factory=list)
    required: list[Before | After] = Field(default_factory=list)
    out: dict[Before, list[str]] = Field(default_factory=dict)
    public: bool = False

    @model_validator(mode="after")
    def _are_there(self) -> Questions:
        _refuse(not {*self.required} <= {*self.before, *self.after}, "required: has a question that is in no list")
        _refuse(not self.out.keys() <= {*self.before}, "out: has a question that is not in before")
        return self


class Trials(_Table):
    number: Number
    practice: Count = 0
    feedback: Count = 0
    catch: Share = 0.0
    repeats: Share = 0.0
    choices: Literal["one", "both", "four"] = "one"
    prior_told: bool = False
    sex: bool = False
    confidence: bool = False
    reason: bool = False
    seconds_before: Seconds = 0.0
    play_once: bool = False
    control: Annotated[str, Field(max_length=1000)] = ""
    sample: bool = True
    keys: list[Key] = Field(default_factory=lambda: ["f", "j"], min_length=2, max_length=2)

    @model_validator(mode="after")
    def _can_be(self) -> Trials:
        _refuse(self.keys[0] == self.keys[1], "keys: must be two different ones")
        _refuse(self.feedback > self.number, f"feedback: there are only {self.number} trials")
        return self


class End(_Table):
    """A code for each outcome (``code``: of who finished; empty: a random code for each) and an address, with
    ``{code}``, ``{worker}`` and the names of ``parameters``."""

    code: Code = ""
    failed_checks: Code = ""
    screened_out: Code = ""
    no_consent: Code = ""
    redirect: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=2000)] = ""


class Exclude(_Table):
    """Rules that mark verdicts; none is removed. ``right`` was a rule of version 0.1 and must be 0."""

    finished: bool = True
    controls: Share = 0.0
    catch: Share = 0.0
    right: Annotated[float, Field(ge=0, le=0, exclude=True)] = 0.0
    one_sided: bool = False
    native: bool = False
    fastest: Seconds = 0.0
    wrong_control: bool = False


class Analysis(_Table):
    """``bounds`` around a detectability of 0.5, within which an agent passes; 0: none were stated."""

    bounds: Annotated[float, Field(ge=0, lt=0.5)] = 0.0


class Answers(_Table):
    number: Number
    checks: Literal["tell", "note"] = "tell"


class Talk(_Table):
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


class JudgesSettings(_Study):
    """Of people who judge the trials of ``trial_set``."""

    source: Annotated[str, Field(alias="trial_set", min_length=1)]
    trials: Trials
    exclude: Exclude = Field(default_factory=Exclude)
    analysis: Analysis = Field(default_factory=Analysis)

    @model_validator(mode="after")
    def _fits_the_task(self) -> Self:
        trials = self.trials
        control = self.trials.control
        special: dict[str, tuple[Asked, ...]] = {TOPIC: ("conversation",), OBJECT: OBJECT_TASKS}
        tasks = special.get(control, (self.task,))
        needs_control = self.exclude.controls > 0 or self.exclude.wrong_control
        is_talk = self.task == "conversation"
        is_path = self.task == "attention_prediction"
        _refuse(trials.choices != "one" and not is_talk, f"trials.choices: {trials.choices} is for conversations")
        _refuse(trials.play_once and not is_path, "trials.play_once: only scanpaths are played")
        _refuse(self.task not in tasks, f"trials.control: {control} is not for {self.task}")
        _refuse(needs_control and not control, "exclude: there are no control questions; see trials.control")
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
        is_lacking = self.talk.machines > 0 and not self.talk.agent
        _refuse(is_lacking, "talk.agent: name the agent that a share of conversations is with")
        _refuse(self.task == "attention_prediction", f"task: people's answers to {self.task} are imported")
        return self


class RolesOfAll(_Table):
    """Texts about each part, before a test."""

    judge: Text
    person_argues: Text


class Roles(RolesOfAll):
    person_deceives: Text


class TestsOfAll(_Table):
    wanted: Annotated[int, Field(ge=1, le=100_000)]
    each: Exchanges = 1
    two_machines: Share = 0.0
    two_people: Share = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**53)]
    seconds_in_lobby: Seconds = 300.0
    seconds_away: Seconds = 45.0
    seconds_to_act: Seconds = 180.0

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        alike = self.two_machines + self.two_people
        _refuse(alike > 1, "two_machines, two_people: are more than all tests together")
        return self


class Tests(TestsOfAll):
    exchanges: list[Exchanges] = Field(default_factory=lambda: [1, 5, 10, 20], min_length=1, max_length=20)
    person_deceives: Share = 0.5
    verdicts: Literal["each", "end"] = "end"
    words_below: Annotated[int, Field(ge=2, le=1000)] = 15

    @model_validator(mode="after")
    def _differ(self) -> Tests:
        _refuse(len(set(self.exchanges)) < len(self.exchanges), "exchanges: has a number twice")
        return self


class TimedTests(TestsOfAll):
    """An agent is asked after ``quiet_s`` without a message; judges choose among ``codes`` why they decided so."""

    minutes: Annotated[float, Field(gt=0, le=120)]
    quiet_s: Seconds = 2.0
    codes: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=30)] = Field(
        default_factory=list
    )


class MachineAgents(_Table):
    """The machines of ``server``, by condition: it argues that it is a machine, or poses as a person."""

    server: Server = "http://127.0.0.1:8001/"
    machine_argues: Name = ""
    machine_deceives: Name = ""


class Machines(_Table):
    """The machines of ``server``, each in equally many tests."""

    server: Server = "http://127.0.0.1:8001/"
    machines: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list)


class _Tests(_Study):
    """A judge asks two agents who do not see each other."""

    task: Literal["conversation"] = "conversation"
    judges: Annotated[People, Field(alias="participants")]
    delays: DelaySettings = Field(default_factory=DelaySettings)
    source: ClassVar[str] = "."


class OnlineSettings(_Tests):
    """By questions, which both agents answer."""

    roles: Roles
    tests: Tests
    agents: MachineAgents

    def machines(self) -> dict[str, str]:
        """The names of the machines that tests need, by their place here."""
        deceives = self.tests.person_deceives
        needed = [("machine_argues", deceives > 0), ("machine_deceives", deceives < 1)]
        return {f"agents.{name}": getattr(self.agents, name) for name, is_needed in needed if is_needed}


class InterrogationSettings(_Tests):
    """By the clock, with both conversations at once."""

    roles: RolesOfAll
    tests: TimedTests
    agents: Machines

    def machines(self) -> dict[str, str]:
        return {f"agents.machines {at}": name for at, name in enumerate(self.agents.machines or [""], start=1)}


TestsSettings = OnlineSettings | InterrogationSettings
StudySettings = JudgesSettings | AnswersSettings | TestsSettings


def read_settings(folder: Path) -> StudySettings:
    """The settings of the study. Raises InputError with everything that is wrong."""
    path = folder / FILE
    try:
        text = path.read_text("utf-8")
        tables = tomllib.loads(text)
    except FileNotFoundError:
        raise InputError(f"{folder} is no study: it has no {FILE}; `turinglike study new` makes one") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    kind: type[StudySettings] = AnswersSettings if "stimulus_set" in tables else JudgesSettings
    if "tests" in tables:
        is_timed = isinstance(tables["tests"], dict) and "minutes" in tables["tests"]
        kind = InterrogationSettings if is_timed else OnlineSettings
    try:
        return kind.model_validate(tables)
    except ValidationError as error:
        names = [line.split("=")[0].strip() for line in text.splitlines()]
        problems = []
        for problem in as_problems(error, str(path)):
            name = (problem.field or "none").rpartition(".")[2]
            line = names.index(name) + 1 if name in names else None
            problems.append(Problem(problem.where, line, problem.field, problem.message))
        raise InputError(f"{path} cannot be used", problems) from None
