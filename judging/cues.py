"""Judges that go by one cue beside what an answer says: the least that any judge should be compared with.

A judge who does no better than the best cue may have gone by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict

from agents.contract import GIB
from agents.stimuli import TASKS, Asked
from judging import features
from judging.features import Features, Trial
from judging.trained import TrainedJudge, TrainedSettings

Cue = Literal["constant", "length", "punctuation", "frequency", "path-length", "center", "metadata"]
PATHS: tuple[Asked, ...] = ("attention_prediction",)
TEXTS: tuple[Asked, ...] = tuple(task for task in TASKS if task not in PATHS)
TASKS_OF_CUES: Mapping[Cue, tuple[Asked, ...]] = {
    "constant": TASKS,
    "length": TASKS,
    "punctuation": TEXTS,
    "frequency": TEXTS,
    "path-length": PATHS,
    "center": PATHS,
    "metadata": TASKS,
}
NUMBERS: Mapping[str, Callable[[Trial], list[float]]] = {
    "length": features.length,
    "punctuation": features.punctuation,
    "path-length": features.path_length,
    "center": features.center,
}


class CueSettings(TrainedSettings):
    """Which cue, and how its folds are made."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    cue: Cue
    """What the judge goes by."""


class CueJudge(TrainedJudge[CueSettings]):
    """A classifier of one cue alone, with a radial kernel, so that people may be in the middle."""

    Settings = CueSettings
    packages = ("sklearn", "wordfreq")
    memory = GIB
    settings: CueSettings

    def __init__(self, settings: CueSettings, name: str) -> None:
        super().__init__(settings, name)
        self.judges = TASKS_OF_CUES[settings.cue]

    def features(self, task: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        match self.settings.cue:
            case "constant":
                rows = [[0.0] for _ in trials]
            case "metadata":
                assert self.settings.trials is not None
                folder = self.settings.trials.parent
                rows = [features.metadata(folder, trial, at) for at, trial in enumerate(trials)]
            case "frequency":
                rows = features.frequencies(trials)
            case cue:
                rows = [NUMBERS[cue](trial) for trial in trials]
        return Features(np.array(rows, dtype=np.float64), np.arange(len(rows)))

    def new_model(self) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        return make_pipeline(StandardScaler(), SVC(class_weight="balanced"))
