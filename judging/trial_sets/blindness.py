"""Whether a trial set gives truth away by anything but the answers.

Two linear discriminants (Fisher 1936) try to tell machines from people. One goes by what a set should hide
(``hidden``: orders, names, sizes), the other by what no format hides (``shown``: length, capitals, fixations).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.trial_sets.cues import Trial, delays, grouped_folds, has_delays, length, metadata, punctuation
from judging.trial_sets.tells import tells

FOLDS = 10
PERMUTATIONS = 99
ROUNDING = 1e-9  # of shares
LEAST = 40  # trials of each kind; with fewer nothing can be concluded


def measure_blindness(
    folder: Path, rows: Sequence[tuple[Trial, Mapping[str, Any]]], seed: int, lists: Sequence[Sequence[str]] = ()
) -> list[dict[str, Any]]:
    """Detectability by task and version, None of too few trials, and ``tells``, in which the form of answers differs
    (:mod:`judging.trial_sets.tells`). Where the trials show delays, these count in ``shown``, and ``delays`` is true.
    ``rows`` are trials with their rows of the key, ``lists`` the judges' lists of trials' ids."""
    entries = []
    places = defaultdict[str, list[tuple[float, ...]]](list)
    for ids in lists:
        for place, name in enumerate(ids):
            places[name].append((place / len(ids), place % 2, place == 0))
    # Within a version: further versions of an answer are no further evidence.
    found = dict.fromkeys((trial["asked"], key.get("version")) for trial, key in rows)
    tasks = list(dict.fromkeys(task for task, _ in found))
    for task, version in sorted(found, key=lambda entry: (tasks.index(entry[0]), entry[1] or "")):
        of_task = [
            (trial, key)
            for trial, key in rows
            if trial["asked"] == task and key.get("version") == version and not key["catch"] and not key["repeat_of"]
            if key["truth"] != key.get("beside_truth")
        ]
        is_machine = np.array([key["truth"] == "machine" for _, key in of_task], dtype=np.bool_)
        entry: dict[str, Any] = {"asked": task, "trials": len(of_task), "hidden": None, "shown": None, "tells": []}
        if version is not None:
            entry["version"] = version
        if of_task and "beside" not in of_task[0][0]:
            entry["tells"] = tells([trial for trial, _ in of_task], is_machine)
        # Answers that were matched with each other are held out together. Those as drawn were not.
        groups = [str((version and key.get("block")) or trial["shown"]) for trial, key in of_task]
        if shows_delays := any(has_delays(trial) for trial, _ in of_task):
            entry["delays"] = True
        if min(is_machine.sum(), (~is_machine).sum()) >= LEAST and len(set(groups)) >= FOLDS:
            hidden = [
                [*metadata(folder, trial), *np.mean(places[trial["id"]] or [(0, 0, 0)], axis=0)] for trial, _ in of_task
            ]
            visible = [_numbers(folder, trial, with_delays=shows_delays) for trial, _ in of_task]
            for name, inputs in (("hidden", hidden), ("shown", visible)):
                entry[name] = detected(np.array(inputs, dtype=np.float64), is_machine, groups, seed)
        entries.append(entry)
    return entries


def detected(
    inputs: NDArray[np.float64], is_machine: NDArray[np.bool_], groups: Sequence[str], seed: int
) -> dict[str, float]:
    """The cross-validated ``detectability`` of items [n, dimensions], its 95 % interval ``low`` to ``high``, and ``p``.

    ``groups`` are the items' stimuli. The interval is after Nadeau and Bengio (2003), within 0 and 1, and exact where
    no item varies. ``p`` is the share of permutations of truth that reach the detectability.

    A permutation keeps what the design fixes. Truth changes places within a stimulus, and whole stimuli change places
    with others that have as many items. ``of_size`` lists the items by that size, stimulus by stimulus; ``drawn`` lists
    them with stimuli of a size, and items of a stimulus, in drawn order. To permute over all items would take a set
    with many machines at one stimulus for a set that gives truth away. Column 0 of ``truths`` is the truth itself.
    """
    clusters = np.unique(groups, return_inverse=True)[1]
    chance = np.random.default_rng(seed)
    size = np.bincount(clusters)[clusters]
    folds = min(FOLDS, len(set(groups)))
    fold = grouped_folds(groups, [True] * len(groups), folds, seed)  # which know no truth
    truths = np.repeat(is_machine[:, None], 1 + PERMUTATIONS, axis=1)
    of_size = np.lexsort((clusters, size))
    for column in range(1, 1 + PERMUTATIONS):
        drawn = np.lexsort((chance.random(len(size)), chance.random(len(size))[clusters], size))
        truths[of_size, column] = is_machine[drawn]
    right = _recognized(inputs, truths, fold)
    rates = np.array([(right & is_kind).sum(axis=0) / is_kind.sum(axis=0) for is_kind in (~truths, truths)])
    reached = rates.mean(axis=0)
    # What each answer adds to the mean of both rates beyond its expectation, summed by stimulus.
    expected = np.where(is_machine, rates[1, 0], rates[0, 0])
    added = (right[:, 0] - expected) / np.where(is_machine, is_machine.sum(), (~is_machine).sum())
    wider = math.sqrt(1 + folds / (folds - 1))
    half = wider * 1.96 * math.sqrt((np.bincount(clusters, added) ** 2).sum()) / 2
    if half < ROUNDING:  # no item shows an error: a share of others may (Clopper and Pearson 1934)
        half = 1 - 0.025 ** (1 / len(set(groups)))
    values = {"detectability": reached[0], "low": max(reached[0] - half, 0), "high": min(reached[0] + half, 1)}
    values["p"] = float((reached >= reached[0] - ROUNDING).mean())
    return {name: round(float(value), 4) for name, value in values.items()}


def _recognized(inputs: NDArray[np.float64], truths: NDArray[np.bool_], fold: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the discriminant of the other folds recognizes each item, for each column of ``truths``."""
    spread = inputs.std(axis=0)
    inputs = (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1)
    right = np.empty_like(truths)
    for held in np.unique(fold):
        learned = inputs[fold != held].T
        is_machine = truths[fold != held]
        machines = learned @ (is_machine / np.maximum(is_machine.sum(axis=0), 1))
        people = learned @ (~is_machine / np.maximum((~is_machine).sum(axis=0), 1))
        away = np.linalg.pinv(np.cov(learned), rcond=1e-9, hermitian=True) @ (machines - people)
        middle = ((machines + people) / 2 * away).sum(axis=0)
        right[fold == held] = (inputs[fold == held] @ away > middle) == truths[fold == held]
    return right


def _numbers(folder: Path, trial: Trial, *, with_delays: bool) -> list[float]:
    from PIL import Image as PILImage

    size = 0
    frames = 0
    if "clip" in trial:
        size = (folder / trial["clip"]).stat().st_size
        with PILImage.open(folder / trial["clip"]) as clip:
            frames = getattr(clip, "n_frames", 1)
    numbers = _of_answer(trial, with_delays=with_delays)
    if "beside" in trial:
        others = _of_answer({"answer": trial["beside"]}, with_delays=with_delays)
        numbers = [first - second for first, second in zip(numbers, others, strict=True)]
    return [*numbers, size, frames]


def _of_answer(trial: Trial, *, with_delays: bool) -> list[float]:
    numbers = [*length(trial), *punctuation(trial)]
    return [*numbers, *delays(trial)] if with_delays else numbers
