"""Judges that look at one cue beside what an answer says: the least that any judge should be compared with.

A judge who does better than the best cue has seen something in the answers; one who does not may have gone by it. What
each cue is:

- constant: nothing; so that every answer is a person's.
- length: of a text its letters and words, how many texts there are; of a scanpath how many fixations.
- punctuation: of a text its capitals, punctuation, digits and letters beyond ASCII.
- frequency: how common the words are in English (Zipf frequency by wordfreq, their mean and least), and of how many
  other trials the answer is the same.
- path-length: of a scanpath its length and its saccades' mean, in widths of the frame.
- center: of a scanpath the mean distance from the frame's centre, and its deviation, in widths of the frame.
- metadata: the order of trials, ids and files, their sizes and times; a well made set has nothing there.

Each is given to a support vector machine with a radial kernel over scaled numbers, so that a cue may tell people by
being in the middle, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict

from agents.contract import GIB
from agents.stimuli import TASKS, Asked
from judging.cue_numbers import Trial, center, frequencies, length, metadata, path_length, punctuation
from judging.features import Features
from judging.trained import TrainedJudge, TrainedSettings

Cue = Literal["constant", "length", "punctuation", "frequency", "path-length", "center", "metadata"]
PATHS: tuple[Asked, ...] = ("attention_prediction",)
TEXTS: tuple[Asked, ...] = tuple(task for task in TASKS if task not in PATHS)
OF_TASKS: Mapping[Cue, tuple[Asked, ...]] = {
    "constant": TASKS,
    "length": TASKS,
    "punctuation": TEXTS,
    "frequency": TEXTS,
    "path-length": PATHS,
    "center": PATHS,
    "metadata": TASKS,
}


class CueSettings(TrainedSettings):
    """Which cue, and how its folds are made."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    cue: Cue
    """What the judge goes by."""


class CueJudge(TrainedJudge[CueSettings]):
    """A classifier that is given one cue alone."""

    Settings = CueSettings
    packages = ("sklearn", "wordfreq")
    memory = GIB
    batch_size = 1 << 16  # all verdicts are found at once, by one worker
    settings: CueSettings

    def __init__(self, settings: CueSettings, name: str) -> None:
        super().__init__(settings, name)
        self.judges = OF_TASKS[settings.cue]

    def features(self, asked: Asked, trials: Sequence[dict[str, Any]], device: str) -> Features:
        cue = self.settings.cue
        if cue == "metadata":
            assert self.settings.trials is not None
            folder = self.settings.trials.parent
            rows = [metadata(folder, trial, at) for at, trial in enumerate(trials)]
        elif cue == "frequency":
            rows = frequencies(trials)
        else:
            rows = [NUMBERS[cue](trial) for trial in trials]
        return Features(np.array(rows, dtype=np.float64), np.arange(len(rows)))

    def new_model(self) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        return make_pipeline(StandardScaler(), SVC(class_weight="balanced"))


NUMBERS: Mapping[str, Callable[[Trial], list[float]]] = {
    "constant": lambda _: [0.0],
    "length": length,
    "punctuation": punctuation,
    "path-length": path_length,
    "center": center,
}
