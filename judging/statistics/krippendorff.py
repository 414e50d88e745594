"""Krippendorff's alpha: how far judges agree beyond chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from judging.statistics.jackknife import CONFIDENCE, ROUNDING, Codes, Floats
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import verdicts_by_trial

if TYPE_CHECKING:
    import pandas as pd

LEAST_JUDGES = 6  # below that Wilcoxon's test cannot reach 0.05

Counts = NDArray[np.int64]


def alpha_of_people(verdicts: pd.DataFrame) -> Estimate:
    """Krippendorff's alpha of people's verdicts, with an interval by the jackknife over stimuli; NaN without."""
    counts, stimuli = verdicts_by_trial(verdicts[verdicts["judge_kind"] == "human"])
    return krippendorff_alpha(counts, stimuli)


def krippendorff_alpha(counts: NDArray[np.int64], clusters: Codes) -> Estimate:
    """Krippendorff's alpha (2011) of nominal values: how often a unit [row] of a cluster has each [column]. A single
    cluster has no interval. There is none either where it does not matter which cluster is left out: with equal
    verdicts everywhere it would have no width, as if alpha were sure to be 1."""
    is_pairable = counts.sum(axis=1) >= 2
    pairable = counts[is_pairable].astype(np.float64)
    codes = np.unique(clusters[is_pairable], return_inverse=True)[1]
    number = pairable.sum(axis=1)
    differ = (number**2 - (pairable**2).sum(axis=1)) / (number - 1)  # pairs that differ, weighted
    sums = np.array([np.bincount(codes, column) for column in (differ, *pairable.T)])
    total = sums.sum(axis=1)
    size = sums.shape[1]
    left = _alpha(total[:, None] - sums)
    value = float(_alpha(total))
    if size < 2 or np.ptp(left) < ROUNDING:
        return Estimate(value)
    error = np.sqrt((size - 1) / size * ((left - left.mean()) ** 2).sum())
    half = float(stdtrit(size - 1, (1 + CONFIDENCE) / 2) * error)
    return Estimate(value, value - half, min(value + half, 1.0))


def _alpha(sums: Floats) -> Floats:
    number = sums[1:].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - sums[0] * (number - 1) / (number**2 - (sums[1:] ** 2).sum(axis=0)))
