"""Histograms of answers, with intervals by a bootstrap over stimuli whose memory does not grow with their number.

Each of ``DRAWS`` draws has every stimulus, and all answers to it, as often as a Poisson variable of mean 1 says (the
bootstrap for data that pass by once, Hanley and MacGibbon 2006). The draws are those of the stimulus's number and
``SEED``, the same for all who answered it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 400
SEED = 0
BLOCK = 256  # stimuli that are taken in at once
HOW = f"95 % of {DRAWS} bootstrap draws of the stimuli (seed {SEED})"

Key = tuple[str, str]  # a histogram's name, and whose it is
Floats = NDArray[np.float64]


class Histograms:
    """Counts by name and by who answered: :meth:`add` while stimuli pass, then :meth:`shares`."""

    def __init__(self) -> None:
        self.block = 0
        self.pending: dict[Key, Floats] = {}  # [stimulus of the block, cell]
        self.sums: dict[Key, Floats] = {}  # [cell, what was counted and then each draw]
        self.stimuli: Counter[Key] = Counter()

    def add(self, key: Key, stimulus: int, cells: Sequence[int] | NDArray[np.integer], size: int) -> None:
        """Count the ``cells``, below ``size``, of an answer to the stimulus of a number."""
        if not len(cells):
            return
        if stimulus // BLOCK != self.block:
            self._take_in()
            self.block = stimulus // BLOCK
        if key not in self.pending:
            self.pending[key] = np.zeros((BLOCK, size))
        self.pending[key][stimulus % BLOCK] += np.bincount(cells, minlength=size)

    def _take_in(self) -> None:
        draws = np.random.default_rng((SEED, self.block)).poisson(1, (BLOCK, DRAWS))
        times = np.hstack([np.ones((BLOCK, 1)), draws])
        for key, counts in self.pending.items():
            cells, stimuli = np.nonzero(counts.T)  # few; a product with the whole would start threads of BLAS
            drawn = times[stimuli] * counts[stimuli, cells, None]
            found, starts = np.unique(cells, return_index=True)
            sums = self.sums.setdefault(key, np.zeros((counts.shape[1], DRAWS + 1)))
            sums[found] += np.add.reduceat(drawn, starts)
            self.stimuli[key] += len(np.unique(stimuli))
        self.pending = {}

    def shares(self, key: Key) -> tuple[Floats, tuple[Floats, Floats] | None, int] | None:
        """Each cell's share of the counts; the low and the high ends of its interval of 95 % (None of one stimulus);
        how many were counted. None where nothing was."""
        self._take_in()
        if key not in self.sums:
            return None
        observed, *draws = self.sums[key].T
        drawn = np.array([draw / draw.sum() for draw in draws if draw.any()])
        ends = None
        if self.stimuli[key] > 1:
            low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
            ends = (low, high)
        return observed / observed.sum(), ends, int(observed.sum())
