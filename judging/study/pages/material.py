"""What people of a study meet, step by step: what all kinds have."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judging.study.events import Judge, State, Step
from judging.study.pages.page_answers import BadAnswer
from judging.study.pages.pool import Seen
from judging.study.results.exclusions import VerdictRow
from judging.study.settings import StudySettings

TYPES = {"jpeg": "jpeg", "jpg": "jpeg", "png": "png", "gif": "gif", "webp": "webp", "bmp": "bmp", "tiff": "tiff"}
INSTRUCTIONS: Step = {"kind": "instructions"}


class Material:
    """What a study shows, in ``number`` steps of a ``kind``; ``sha256`` is of what must not change meanwhile."""

    kind: str
    number: int
    sha256: str
    source: Path

    def __init__(self, settings: StudySettings) -> None:
        self.settings = settings

    def problems(self) -> list[str]:
        return []

    def warnings(self) -> list[str]:
        return []

    def served_problems(self) -> list[str]:
        """The agents that their server does not answer for, if the material has any."""
        return []

    def about(self) -> str:
        return f"{self.settings.task}: {self.number:,} for each participant"

    def steps(self, seen: Seen, chance: random.Random) -> list[Step]:
        """A person's steps from the instructions on; ``seen`` counts how many had each page."""
        return [INSTRUCTIONS, *(self.step() for _ in range(self.number))]

    def step(self, *trials: str, phase: str = "test", again: bool = False) -> Step:
        return {"kind": self.kind, "trials": list(trials), "phase": phase, "again": again}

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        """What is kept of an answer. Raises BadAnswer, and ToldError."""
        if answer:
            raise BadAnswer("has parts that no page sends")
        return {}

    def instructions(self, judge: Judge, step: Step) -> dict[str, Any]:
        about = {"practice": 0, "feedback": 0, "samples": [], "four": True}
        return {"trials": judge.counted(), "of": self.kind, **about}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        return {"practice": False}

    def truth(self, step: Step) -> list[str] | None:
        """Of a step after which the truth is shown."""
        return None

    def files(self, step: Step) -> dict[str, Path]:
        """A step's files by name."""
        return {}

    def rows(self, state: State, personal: Mapping[str, Mapping[str, Any]]) -> list[VerdictRow]:
        return []
