"""Whether a trial set gives truth away by anything but the answers: logistic regressions of what it should hide
(``hidden``: order, names, sizes) and of what no format hides (``shown``: length, capitals, fixations)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.features import grouped_folds, length, metadata, punctuation

FOLDS = 10
LEAST = 40  # trials of each kind; with fewer nothing can be concluded
Trial = Mapping[str, Any]


def measure_blindness(folder: Path, rows: Sequence[tuple[Trial, Mapping[str, Any]]], seed: int) -> list[dict[str, Any]]:
    """Detectability by task, None of too few trials; ``rows`` are trials with their rows of the key."""
    entries = []
    for task in dict.fromkeys(trial["asked"] for trial, _ in rows):
        of_task = [
            (trial, key)
            for trial, key in rows
            if trial["asked"] == task and not key["catch"] and not key["repeat_of"]
            if key["truth"] != key.get("beside_truth")
        ]
        is_machine = np.array([key["truth"] == "machine" for _, key in of_task])
        entry: dict[str, Any] = {"asked": task, "trials": len(of_task), "hidden": None, "shown": None}
        groups = [trial["shown"] for trial, _ in of_task]
        if min(is_machine.sum(), (~is_machine).sum()) >= LEAST and len(set(groups)) >= FOLDS:
            hidden = [metadata(folder, trial) for trial, _ in of_task]
            visible = [_numbers(folder, trial) for trial, _ in of_task]
            entry["hidden"] = detected(np.array(hidden, dtype=np.float64), is_machine, groups, seed)
            entry["shown"] = detected(np.array(visible, dtype=np.float64), is_machine, groups, seed)
        entries.append(entry)
    return entries


def detected(
    inputs: NDArray[np.float64], is_machine: NDArray[np.bool_], groups: Sequence[str], seed: int
) -> dict[str, float]:
    """Cross-validated detectability of items [n, dimensions]; 95 % interval after Nadeau and Bengio (2003)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = min(FOLDS, len(set(groups)))
    fold = grouped_folds(groups, is_machine.tolist(), folds, seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
    predicted = cross_val_predict(model, inputs, is_machine, cv=PredefinedSplit(fold))
    right = (predicted == is_machine).astype(np.float64)
    rates = [float(right[is_machine == truth].mean()) for truth in (False, True)]
    # What each answer adds to the mean of both rates beyond its expectation, summed by stimulus.
    expected = np.where(is_machine, rates[1], rates[0])
    added = (right - expected) / np.where(is_machine, is_machine.sum(), (~is_machine).sum())
    clusters = np.unique(groups, return_inverse=True)[1]
    wider = math.sqrt(1 + folds / (folds - 1))
    middle, half = sum(rates) / 2, wider * 1.96 * math.sqrt((np.bincount(clusters, added) ** 2).sum()) / 2
    return {"detectability": round(middle, 4), "low": round(middle - half, 4), "high": round(middle + half, 4)}


def _numbers(folder: Path, trial: Trial) -> list[float]:
    from PIL import Image as PILImage

    size, frames = 0, 0
    if "clip" in trial:
        size = (folder / trial["clip"]).stat().st_size
        with PILImage.open(folder / trial["clip"]) as clip:
            frames = getattr(clip, "n_frames", 1)
    numbers = [*length(trial), *punctuation(trial)]
    if "beside" in trial:
        other = {"answer": trial["beside"]}
        both = zip(numbers, [*length(other), *punctuation(other)], strict=True)
        numbers = [first - second for first, second in both]
    return [*numbers, size, frames]
