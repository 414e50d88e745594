"""What people of a study are shown and asked, step by step: the trials of judges are here, stimuli of participants in
:mod:`judging.study.asking`, online tests in :mod:`judging.study.online.material`."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.errors import InputError
from judging.study.controls import Control, read_controls
from judging.study.page_answers import read_verdict
from judging.study.pool import Page, TrialPool
from judging.study.settings import JudgesSettings, StudySettings
from judging.study.state import Judge, Step
from judging.trial_set import key_path

MEDIA = ("image", "target_image", "clip")
Seen = Mapping[tuple[str, ...], int]


class ToldError(Exception):
    """The answer ``said`` is to be given anew; ``flags`` are the names of phrases that say why."""

    def __init__(self, flags: list[str], said: str) -> None:
        super().__init__(", ".join(flags))
        self.flags = flags
        self.said = said


class Material(ABC):
    """What a study shows. ``sha256`` is of what must not change while people take part."""

    settings: StudySettings
    sha256: str

    @abstractmethod
    def problems(self) -> list[str]:
        """Why people cannot be asked as the settings say, in sentences."""

    @abstractmethod
    def steps(self, seen: Seen, chance: random.Random, known: Collection[str]) -> list[Step]:
        """A person's steps; ``seen`` counts how many had each page, ``known`` are stimuli that this person has seen."""

    @abstractmethod
    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        """What is kept of an answer. Raises BadAnswer, and ToldError."""

    @abstractmethod
    def instructions(self, judge: Judge) -> dict[str, Any]: ...

    @abstractmethod
    def show(self, judge: Judge, step: Step) -> dict[str, Any]: ...

    def stimulus_of(self, step: Step) -> str:
        return ""

    def truth(self, step: Step) -> list[str] | None:
        """What was right, where a page tells it."""
        return None

    def files(self, step: Step) -> list[str]:
        """The names of a step's files."""
        return []

    def common_files(self) -> list[str]:
        """The names of files that everybody may have."""
        return []

    def path(self, name: str) -> Path:
        """Raises KeyError for a name that is not among the files."""
        raise KeyError(name)


class TrialMaterial(Material):
    """The trials of judges."""

    settings: JudgesSettings

    def __init__(self, pool: TrialPool, study: Path) -> None:
        self.pool = pool
        self.settings = pool.settings
        self.sha256 = hashlib.sha256(key_path(pool.folder).read_bytes()).hexdigest()
        self._controls: dict[str, Control] = {}
        self._lacking: list[str] = []
        try:
            self._controls = read_controls(pool.settings.trials.control, study, pool.key, self.sha256)
        except InputError as error:
            self._lacking = [*map(str, error.problems), str(error)]

    def problems(self) -> list[str]:
        return [*self.pool.problems(), *self._lacking]

    def steps(self, seen: Seen, chance: random.Random, known: Collection[str]) -> list[Step]:
        return [
            {"kind": "trial", "trials": list(turn.page.trials), "phase": turn.phase, "again": turn.again}
            for turn in self.pool.draw(seen, chance, known)
        ]

    def stimulus_of(self, step: Step) -> str:
        return str(self.pool.key[step["trials"][0]]["stimulus"])

    def control(self, step: Step) -> Control | None:
        """The control question of a trial's page."""
        return self._controls.get(self.stimulus_of(step))

    def read(self, judge: Judge, step: Step, answer: dict[str, Any]) -> dict[str, Any]:
        return read_verdict(answer, self.settings.trials, len(step["trials"]), self.control(step))

    def instructions(self, judge: Judge) -> dict[str, Any]:
        trials = self.settings.trials
        return {
            "trials": judge.counted(),
            "practice": trials.practice,
            "feedback": trials.feedback,
            "keys": judge.keys,
            "four": trials.choices == "four" and not self.pool.of_pairs,
            "pairs": self.pool.of_pairs,
            "prior_told": trials.prior_told,
            "samples": [self._sample(page) for page in self.pool.sample],
        }

    def _sample(self, page: Page) -> dict[str, Any]:
        return {**self._trial(page.trials), "truth": [self.pool.key[name]["truth"] for name in page.trials]}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        trials, control = self.settings.trials, self.control(step)
        pairs = [("human", judge.keys[0]), ("machine", judge.keys[1])]
        return {
            **self._trial(step["trials"]),
            "practice": step["phase"] == "practice",
            # in the order of the keys, which differs from judge to judge
            "options": sorted(pairs, key=lambda pair: pair[1] != trials.keys[0]),
            "choices": trials.choices,
            "confidence": trials.confidence,
            "reason": trials.reason,
            "seconds_before": trials.seconds_before,
            "play_once": trials.play_once,
            "control": None if control is None else control.shown,
        }

    def truth(self, step: Step) -> list[str] | None:
        return None if step["phase"] == "test" else [self.pool.key[name]["truth"] for name in step["trials"]]

    def files(self, step: Step) -> list[str]:
        return [name for trial in step["trials"] for _, name in self._named(trial)]

    def common_files(self) -> list[str]:
        return [name for page in self.pool.sample for trial in page.trials for _, name in self._named(trial)]

    def path(self, name: str) -> Path:
        return self.pool.folder / "media" / name

    def _trial(self, names: Sequence[str]) -> dict[str, Any]:
        trial = self.pool.trials[names[0]]
        page: dict[str, Any] = {
            "asked": trial.asked,
            "speakers": [self.pool.trials[name].speaker for name in names],
            "answer": trial.answer.model_dump(mode="json", exclude_none=True),
        }
        if trial.beside is not None:
            page["beside"] = trial.beside.model_dump(mode="json", exclude_none=True)
        if trial.cue is not None:
            page |= {"cue": trial.cue, "examples": [list(pair) for pair in trial.examples]}
        if trial.asked == "attention_prediction":
            del page["answer"]  # the clip shows it
        return page | {field: f"media/{name}" for field, name in self._named(names[0])}

    def _named(self, trial: str) -> Iterator[tuple[str, str]]:
        images = self.pool.trials[trial].images_by_field()
        fields = ("clip",) if "clip" in images else MEDIA  # the clip shows the picture and the target
        for field in fields:
            if field in images:
                yield field, images[field].name.rpartition("/")[2]
