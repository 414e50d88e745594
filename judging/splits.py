"""Folds for cross-validation in which a group (a stimulus, a conversation) is never on both sides."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def grouped_folds(groups: Sequence[Hashable], classes: Sequence[Hashable], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold (from 0) of each item: all items of a group in one fold.

    Groups are shuffled by the seed and dealt one after the other, within each kind of group: those with the same
    classes in the same numbers. So each fold has nearly its share of each class, where groups are alike; where they
    differ greatly in size it has less. Raises ValueError if there are fewer groups than folds.
    """
    kinds: dict[Hashable, Counter[Hashable]] = {}
    for group, cls in zip(groups, classes, strict=True):
        kinds.setdefault(group, Counter())[cls] += 1
    if not 2 <= folds <= len(kinds):
        raise ValueError(f"{folds} folds of {len(kinds)} groups")
    strata: dict[frozenset[tuple[Hashable, int]], list[Hashable]] = {}
    for group, counts in kinds.items():
        strata.setdefault(frozenset(counts.items()), []).append(group)
    chance = random.Random(seed)
    fold_of: dict[Hashable, int] = {}
    for members in strata.values():
        chance.shuffle(members)
        for group in members:  # goes on where the last kind ended, so that small kinds do not all fall to fold 0
            fold_of[group] = len(fold_of) % folds
    return np.array([fold_of[group] for group in groups], dtype=np.int64)
