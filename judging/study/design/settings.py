"""``study.toml``, checked: the choices of whoever runs a study.

A study of judges, of participants who answer a set, of online tests or of interrogations has a model each;
:func:`read_settings` finds out which. The templates in ``judging/study/templates`` have a comment beside each choice.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from agents.errors import InputError, Problem
from agents.stimuli import Asked
from judging.study.design.tables import (
    OBJECT,
    OBJECT_TASKS,
    TOPIC,
    Analysis,
    Answers,
    End,
    Exclude,
    MachineAgents,
    Machines,
    People,
    Questions,
    Roles,
    RolesOfAll,
    StudyTable,
    TalkSettings,
    Tests,
    Texts,
    TimedTests,
    Trials,
    refuse,
)
from judging.study.design.writing_tables import Checks, Traces, refuse_unfit
from serving.conversations.scenario import DelaySettings
from serving.files.row_problems import as_problems
from serving.files.written_texts import read_written

FILE = "study.toml"
"""The name of the file in a study's folder."""


class _Study(StudyTable):
    """What all kinds of ``study.toml`` have."""

    schema_: Annotated[Literal["turinglike.study/1"], Field(alias="schema")]
    task: Asked
    """What was asked of those who are judged, or is asked of the participants."""
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")] = "en"
    """The pages' language, as browsers name it."""
    phrases: Annotated[str, Field(max_length=1000)] = ""
    """A TOML file with the pages' own words, relative to the study; "" for English."""
    texts: Texts
    judges: People
    """The people who take part, also those who judge nothing."""
    questions: Questions = Field(default_factory=Questions)
    end: End = Field(default_factory=End)


class JudgesSettings(_Study):
    """A study of people who judge trials."""

    source: Annotated[str, Field(alias="trial_set", min_length=1)]
    """The folder of `turinglike trials`, relative to the study."""
    trials: Trials
    """How many trials a judge gets, and what their page asks for."""
    exclude: Exclude = Field(default_factory=Exclude)
    """Which verdicts are marked as excluded."""
    analysis: Analysis = Field(default_factory=Analysis)
    """What the verdicts decide, stated before the study."""

    @model_validator(mode="after")
    def _fits_the_task(self) -> Self:
        trials = self.trials
        control = self.trials.control
        special: dict[str, tuple[Asked, ...]] = {TOPIC: ("conversation",), OBJECT: OBJECT_TASKS}
        tasks = special.get(control, (self.task,))
        needs_control = self.exclude.controls > 0 or self.exclude.wrong_control
        is_talk = self.task == "conversation"
        is_path = self.task == "attention_prediction"
        refuse(trials.choices != "one" and not is_talk, f"trials.choices: {trials.choices} is for conversations")
        refuse(trials.play_once and not is_path, "trials.play_once: only scanpaths are played")
        refuse(self.task not in tasks, f"trials.control: {control} is not for {self.task}")
        refuse(
            needs_control and not control,
            "exclude: controls and wrong_control need control questions; set trials.control",
        )
        return self


class _Written(_Study):
    """A study in which participants write."""

    traces: Traces = Field(default_factory=Traces)
    """What is recorded of how participants write."""
    checks: Checks = Field(default_factory=Checks)
    """What tells of answers that participants have not written."""

    @model_validator(mode="after")
    def _fits_what_is_written(self) -> Self:
        meets = self.task == "conversation"
        refuse_unfit(self.traces, self.checks, self.task, self.texts.consent, meets=meets)
        return self


class AnswersSettings(_Written):
    """A study of people who answer a stimulus set, or converse about its topics."""

    judges: Annotated[People, Field(alias="participants")]
    """Who takes part: the table ``participants``."""
    source: Annotated[str, Field(alias="stimulus_set", min_length=1)]
    """The set, relative to the study."""
    answers: Answers
    """How many stimuli a participant gets, and what becomes of answers that the form refuses."""
    talk: TalkSettings = Field(default_factory=TalkSettings)
    """The conversations' own settings; other tasks do without."""
    delays: DelaySettings = Field(default_factory=DelaySettings)
    """How long the agent takes over a message."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        is_lacking = self.talk.machines > 0 and not self.talk.agent
        refuse(is_lacking, "talk.agent: name the agent, because talk.machines is above 0")
        refuse(self.task == "attention_prediction", f"task: people's answers to {self.task} are imported")
        return self


class _Tests(_Written):
    """A study of live tests: a judge asks two agents who do not see each other."""

    task: Literal["conversation"] = "conversation"
    judges: Annotated[People, Field(alias="participants")]
    delays: DelaySettings = Field(default_factory=DelaySettings)
    """How long a machine takes over what it writes."""
    source: ClassVar[str] = "."
    """There is no set: the study's own folder."""


class OnlineSettings(_Tests):
    """A study of online tests, by questions that both agents answer."""

    roles: Roles
    """What people are told of their part before a test."""
    tests: Tests
    """How many tests are held, how long they are, and how their parts are drawn."""
    agents: MachineAgents
    """The machines, by who poses as the other, and the server that answers for them."""

    def machines(self) -> dict[str, str]:
        """The names of the machines that tests need, by their place in ``study.toml``; "" for one that is not named."""
        deceives = self.tests.person_deceives
        needed = [("machine_argues", deceives > 0), ("machine_deceives", deceives < 1)]
        return {f"agents.{name}": getattr(self.agents, name) for name, is_needed in needed if is_needed}


class InterrogationSettings(_Tests):
    """A study of interrogations, by the clock, with both conversations at once."""

    roles: RolesOfAll
    """What people are told of their part before a test."""
    tests: TimedTests
    """How many tests are held, for how many minutes, and how their parts are drawn."""
    agents: Machines
    """The machines, and the server that answers for them."""

    def machines(self) -> dict[str, str]:
        """The names of the machines, by their place in ``study.toml``; "" where none is named."""
        names = self.agents.machines or [""]
        return {f"agents.machines {number}": name for number, name in enumerate(names, start=1)}


TestsSettings = OnlineSettings | InterrogationSettings
StudySettings = JudgesSettings | AnswersSettings | TestsSettings
WRITTEN = (AnswersSettings, OnlineSettings, InterrogationSettings)
"""The settings of studies in which participants write."""


def read_settings(folder: Path) -> StudySettings:
    """The settings of the study in a folder. Raises InputError with all that is wrong, each with its line."""
    path = folder / FILE
    try:
        text = read_written(path)
    except FileNotFoundError:
        raise InputError(
            f"{folder} is not a study: the folder has no {FILE}; `turinglike study new` makes one"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return parse_settings(text, path)


def parse_settings(text: str, path: Path) -> StudySettings:
    """The settings in the text of ``study.toml``; ``path`` names it in messages. Raises InputError as
    :func:`read_settings`."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
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
