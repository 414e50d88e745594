"""Whether a trial set gives truth away by anything but what was answered: a classifier that is given only metadata.

Two classifiers see each trial without reading the answer. One is given what a set should hide and does hide if it is
made well: the order of trials and files, names, sizes of pictures and of everything beside the answer. The other is
given what no format can hide, because the answer has it: its length, how many words, labels, fixations or messages,
capitals and punctuation, bytes and frames of a clip. The first must be at chance; what the second reaches, every judge
can reach without understanding anything.

Each is a logistic regression over scaled features, asked by cross-validation in folds that share no stimulus.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.cue_numbers import length, metadata, punctuation
from judging.splits import grouped_folds

FOLDS = 10
LEAST = 40  # trials of each kind; below that nothing could be told
Features = NDArray[np.float64]


def tell(folder: Path, rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], seed: int) -> list[dict[str, Any]]:
    """By task, what the two classifiers reach: (trial, row of the key) of every trial are given.

    Each entry has ``asked``, ``trials``, and for ``hidden`` and ``shown`` the detectability with its 95 % interval
    (null where there are too few trials). Catch trials, repeats and control pairs are left out. Needs scikit-learn.
    """
    entries = []
    order = {trial["id"]: at for at, (trial, _) in enumerate(rows)}
    for asked in dict.fromkeys(trial["asked"] for trial, _ in rows):
        rows_of_task = [
            (trial, key)
            for trial, key in rows
            if trial["asked"] == asked and not key["catch"] and not key["repeat_of"]
            if key["truth"] != key.get("beside_truth")
        ]
        is_machine = np.array([key["truth"] == "machine" for _, key in rows_of_task])
        entry: dict[str, Any] = {"asked": asked, "trials": len(rows_of_task), "hidden": None, "shown": None}
        groups = [trial["shown"] for trial, _ in rows_of_task]
        if min(is_machine.sum(), (~is_machine).sum()) >= LEAST and len(set(groups)) >= FOLDS:
            hidden = np.array(
                [metadata(folder, trial, order[trial["id"]]) for trial, _ in rows_of_task], dtype=np.float64
            )
            shown = np.array([_of_the_answer(folder, trial) for trial, _ in rows_of_task], dtype=np.float64)
            entry["hidden"] = detected(hidden, is_machine, groups, seed)
            entry["shown"] = detected(shown, is_machine, groups, seed)
        entries.append(entry)
    return entries


def detected(features: Features, is_machine: NDArray[np.bool_], groups: Sequence[str], seed: int) -> dict[str, float]:
    """Detectability, the mean of p(H|H) and p(M|M), of what a logistic regression says of each item that it was not
    trained on, with a 95 % interval: normal, answers to one stimulus being alike, and as much wider as Nadeau and
    Bengio (2003) have it because the folds' models are trained on nearly the same items."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = min(FOLDS, len(set(groups)))
    fold = grouped_folds(groups, is_machine.tolist(), folds, seed)
    predicted = np.zeros_like(is_machine)
    for number in range(folds):
        test = fold == number
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
        predicted[test] = model.fit(features[~test], is_machine[~test]).predict(features[test])
    right = (predicted == is_machine).astype(np.float64)
    rates = [float(right[is_machine == truth].mean()) for truth in (False, True)]
    # What each answer adds to the mean of both rates beyond its expectation, summed by stimulus.
    expected = np.where(is_machine, rates[1], rates[0])
    added = (right - expected) / np.where(is_machine, is_machine.sum(), (~is_machine).sum())
    clusters = np.unique(groups, return_inverse=True)[1]
    wider = math.sqrt(1 + folds / (folds - 1))
    middle, half = sum(rates) / 2, wider * 1.96 * math.sqrt((np.bincount(clusters, added) ** 2).sum()) / 2
    return {"detectability": round(middle, 4), "low": round(middle - half, 4), "high": round(middle + half, 4)}


def _of_the_answer(folder: Path, trial: Mapping[str, Any]) -> list[float]:
    from PIL import Image as PILImage

    size, frames = 0, 0
    if "clip" in trial:
        size = (folder / trial["clip"]).stat().st_size
        with PILImage.open(folder / trial["clip"]) as clip:
            frames = getattr(clip, "n_frames", 1)
    numbers = [*length(trial), *punctuation(trial)]
    if "beside" in trial:
        other = {"answer": trial["beside"]}
        pairs = zip(numbers, [*length(other), *punctuation(other)], strict=True)
        numbers = [first - second for first, second in pairs]
    return [*numbers, size, frames]
