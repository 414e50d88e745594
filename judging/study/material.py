"""What people of a study are shown and asked, step by step: the trials of judges here, stimuli of participants in
:mod:`judging.study.asking`, online tests in :mod:`judging.study.online`."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from agents.errors import InputError
from judging.study.controls import Control, read_controls
from judging.study.page_answers import read_verdict
from judging.study.pool import Page, TrialPool
from judging.study.settings import AnswersSettings, JudgesSettings, OnlineSettings, StudySettings
from judging.study.state import Judge, Step
from judging.trial_set import key_path

MEDIA = ("image", "target_image", "clip")
Seen = Mapping[tuple[str, ...], int]


class ToldError(Exception):
    """An answer that is to be given anew; ``flags`` are the names of phrases that say why, ``said`` what it was."""

    def __init__(self, flags: list[str], said: str) -> None:
        super().__init__(", ".join(flags))
        self.flags = flags
        self.said = said


class Material(Protocol):
    """``sha256`` is of what must not change while people take part."""

    sha256: str

    @property
    def settings(self) -> StudySettings: ...

    def problems(self) -> list[str]:
        """Why people cannot be asked as the settings say, in sentences."""

    def steps(self, seen: Seen, chance: random.Random, known: Collection[str]) -> list[Step]:
        """One person's steps; ``seen`` counts how many had each, ``known`` are stimuli that this one has seen."""

    def stimulus_of(self, step: Step) -> str: ...

    def read(self, judge: Judge, step: Step, said: dict[str, Any]) -> dict[str, Any]:
        """What is kept of an answer. Raises BadAnswer, and ToldError."""

    def instructions(self, judge: Judge) -> dict[str, Any]: ...

    def show(self, judge: Judge, step: Step) -> dict[str, Any]: ...

    def truth(self, step: Step) -> list[str] | None:
        """What was right, where that is told."""

    def files(self, step: Step) -> list[str]:
        """The names of a step's files."""

    def common_files(self) -> list[str]:
        """The names of files that everybody may have."""

    def path(self, name: str) -> Path: ...


class TrialMaterial:
    """The trials of judges."""

    def __init__(self, pool: TrialPool, study: Path) -> None:
        self.pool = pool
        self.settings: JudgesSettings = pool.settings
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

    def read(self, judge: Judge, step: Step, said: dict[str, Any]) -> dict[str, Any]:
        return read_verdict(said, self.settings.trials, len(step["trials"]), self.control(step))

    def instructions(self, judge: Judge) -> dict[str, Any]:
        asked = self.settings.trials
        return {
            "trials": judge.counted(),
            "practice": asked.practice,
            "feedback": asked.feedback,
            "keys": judge.keys,
            "four": asked.choices == "four" and not self.pool.of_pairs,
            "pairs": self.pool.of_pairs,
            "prior_told": asked.prior_told,
            "samples": [self._sample(page) for page in self.pool.sample],
        }

    def _sample(self, page: Page) -> dict[str, Any]:
        return {**self._shown(page.trials), "truth": [self.pool.key[name]["truth"] for name in page.trials]}

    def show(self, judge: Judge, step: Step) -> dict[str, Any]:
        asked, control = self.settings.trials, self.control(step)
        pairs = [("human", judge.keys[0]), ("machine", judge.keys[1])]
        return {
            **self._shown(step["trials"]),
            "practice": step["phase"] == "practice",
            # in the order of the keys, which is each judge's own
            "options": sorted(pairs, key=lambda pair: pair[1] != asked.keys[0]),
            "choices": asked.choices,
            "confidence": asked.confidence,
            "reason": asked.reason,
            "seconds_before": asked.seconds_before,
            "play_once": asked.play_once,
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

    def _shown(self, trials: list[str] | tuple[str, ...]) -> dict[str, Any]:
        one = self.pool.trials[trials[0]]
        found: dict[str, Any] = {
            "asked": one.asked,
            "speakers": [self.pool.trials[name].speaker for name in trials],
            "answer": one.answer.model_dump(mode="json", exclude_none=True),
        }
        if one.beside is not None:
            found["beside"] = one.beside.model_dump(mode="json", exclude_none=True)
        if one.cue is not None:
            found |= {"cue": one.cue, "examples": [list(pair) for pair in one.examples]}
        if one.asked == "attention_prediction":
            del found["answer"]  # the clip shows it
        return found | {field: f"media/{name}" for field, name in self._named(trials[0])}

    def _named(self, trial: str) -> Iterator[tuple[str, str]]:
        images = self.pool.trials[trial].images_by_field()
        wanted = ("clip",) if "clip" in images else MEDIA  # the clip shows the picture and the target
        for field in wanted:
            if field in images:
                yield field, images[field].name.rpartition("/")[2]


def material_of(folder: Path, settings: StudySettings, source: Path) -> Material:
    """What the study in ``folder`` shows. Raises InputError."""
    if isinstance(settings, AnswersSettings):
        from judging.study.asking import StimulusMaterial

        return StimulusMaterial(source, settings)
    if isinstance(settings, OnlineSettings):
        from judging.study.online.material import OnlineMaterial

        return OnlineMaterial(settings)
    return TrialMaterial(TrialPool(source, settings), folder)
