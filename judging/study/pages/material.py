"""What people of a study meet, step by step: what all kinds have.

Below are :class:`judging.study.pages.trial_material.TrialMaterial`, ``AskMaterial`` in
:mod:`judging.study.pages.stimulus_material`, ``TalkMaterial`` and ``TestsMaterial`` in
:mod:`judging.study.meetings.material`. To add a kind of study, add a class here and name it in
:func:`judging.study.kinds.material_of`.
"""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import InputError
from judging.study.design.settings import StudySettings
from judging.study.log.participant_events import ConsentAnswered, StepAnswer
from judging.study.log.state import Judge, State
from judging.study.log.steps import Instructions, MaterialKind, MaterialStep, Phase, Step
from judging.study.pages.pool import TimesSeen

MEDIA_TYPES = {"jpeg": "jpeg", "jpg": "jpeg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp", "tiff": "tiff"}
"""Media types of pictures (after ``image/``) by the ending of their names."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What a participant does in the study's own steps, and how much of it."""

    unit: str
    """What a step is about, such as "pictures"."""
    number: int
    """Steps that count, with catch trials and repeats."""
    practice: int
    """Steps before them, for practice."""
    seconds_each: float
    """How long a step is assumed to take."""
    phrase: str
    """The phrase that says what is done with each."""


class Material(ABC):
    """What a study shows: ``number`` steps of its kind for each participant."""

    kind: MaterialKind
    number: int
    sha256: str
    """The SHA-256 of what must not change while the study goes on, in hexadecimal."""
    source: Path
    """The file or folder that the material comes from."""

    def __init__(self, settings: StudySettings) -> None:
        self.settings = settings
        self.traces_consent: str | None = None
        """The SHA-256 of the consent text that tells of traces of writing; None where the study records none."""

    def records_traces(self, judge: Judge) -> bool:
        """Whether traces of what a participant writes are kept: they have agreed to the text that tells of them.

        Who agreed to an earlier text goes on as they agreed to, without traces.
        """
        agreed = judge.answer_of(ConsentAnswered)
        return self.traces_consent is not None and agreed is not None and agreed.consent == self.traces_consent

    def problems(self) -> list[str]:
        """All because of which the study cannot be served, without asking any other program."""
        return []

    def warnings(self) -> list[str]:
        """What can be done, but hardly is what is wanted."""
        return []

    def sha256_on_disk(self) -> str:
        """``sha256`` of what lies there now: a server may have read the set long before. Raises InputError."""
        return self.sha256

    def refuse_other_set(self, state: State) -> None:
        """Refuse to count what people did with another set than there is now. Raises InputError.

        Answers name trials and stimuli by their ids, and another set has the same ids for others: each verdict would
        count for an answer that its judge has not seen. A study that nobody has begun may still change its set.
        """
        if not state.judges and not state.meetings:
            return
        began_with = (state.settings or {}).get("task", self.settings.task)
        if began_with != self.settings.task:
            raise InputError(
                f"{self.settings.source}: the people of this study began with the task {began_with}, not with "
                f"{self.settings.task}: change `task` of study.toml back, or make a new study (turinglike study new)"
            )
        if state.sha256 not in (None, self.sha256_on_disk()):
            raise InputError(
                f"{self.settings.source}: the people of this study began with another set, and nothing of theirs can "
                f"be counted with this one. Put back {self.to_put_back()}, or make a new study of this set (turinglike "
                "study new)"
            )

    def to_put_back(self) -> str:
        """What must lie where it was for what people did to count, in words."""
        return f"{self.source} as it was when the study began"

    def served_problems(self) -> list[str]:
        """The agents that their server does not answer for; this asks the server."""
        return []

    def summary(self) -> str:
        """What each participant does, in a line for whoever runs the study."""
        return f"{self.settings.task}: {self.number:,} for each participant"

    def steps(self, seen: TimesSeen, chance: random.Random) -> list[Step]:
        """A participant's steps from the instructions on; ``seen`` counts how many had each page."""
        return [Instructions(kind="instructions"), *(self.step() for _ in range(self.number))]

    def step(self, *trials: str, phase: Phase = "test", again: bool = False) -> MaterialStep:
        """A step of this kind, with the ids of its trials or stimulus."""
        return MaterialStep(kind=self.kind, trials=list(trials), phase=phase, again=again)

    @abstractmethod
    def extent(self) -> Extent:
        """How much there is to do, told on the first page."""

    @abstractmethod
    def read(
        self, judge: Judge, number: int, answer: dict[str, Any], at: str, meeting: str | None = None
    ) -> StepAnswer:
        """The event of an answer to a step of this kind, which is checked.

        ``number`` is the step's position and ``at`` the time of the answer. ``meeting`` is the id of the meeting that
        the answer ends. Raises BadAnswer for what no page sends, and ToldError for what is to be answered anew.
        """

    def instructions(self, judge: Judge, step: Instructions) -> dict[str, Any]:
        """What the page of instructions shows beside the study's own text, as JSON."""
        page = {"practice": 0, "feedback": 0, "samples": [], "four": True}
        return {"trials": judge.counted(), "of": self.kind, **page}

    def show(self, judge: Judge, step: MaterialStep) -> dict[str, Any]:
        """What the page of a step shows, as JSON; never the truth."""
        return {"practice": False}

    def truth(self, step: Step) -> list[str] | None:
        """What was right, where it is shown after the step; None elsewhere."""
        return None

    def files(self, step: Step) -> dict[str, Path]:
        """A step's pictures and clips, by the name that the page asks for."""
        return {}
