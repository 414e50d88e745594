"""Rates of verdicts, their sums and differences, where judges and stimuli are both drawn.

The variance is that between judges and that between stimuli less that of their intersections (Cameron, Gelbach, Miller
2011), at least the larger of the first two, each with G / (G - 1) for G clusters. A rate's interval is the exact
interval of so many independent verdicts as vary as much, with t of the fewest clusters less 1 (Clopper, Pearson 1934;
Korn, Graubard 1998). Intervals of sums and differences are made from those of the rates by MOVER (Zou, Donner 2008);
p is 1 less the confidence of the interval that ends at the null hypothesis. A single judge is not drawn: what is
estimated is of this judge. So it is with a single stimulus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

CONFIDENCE = 0.95
ROUNDING = 1e-9  # of rates, whose scale is 1: a smaller deviation is rounding, and none
LEAST_P = 1e-15  # less counts as so much

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Cells = NDArray[np.bool_]  # [cells, verdicts]


@dataclass(frozen=True, slots=True)
class TwoWay:
    """Estimates [cells] of so many verdicts; ``products`` [3, cells, cells] are of their errors, summed over judges,
    stimuli and intersections. In methods ``cells`` [..., m] are summed with ``weights`` [m]."""

    value: Floats
    number: Floats
    clusters: Floats  # [2, cells] of judges, of stimuli
    products: Floats
    is_exact: NDArray[np.bool_]  # independent verdicts

    def sum(self, cells: Codes, weights: Floats) -> Floats:
        return np.asarray(self.value[cells] @ weights)

    def deviation(self, cells: Codes, weights: Floats) -> Floats:
        """The standard error of the sum."""
        return np.sqrt(_total(np.einsum("g...ij,i,j->g...", self._products(cells), weights, weights)))

    def freedom(self, cells: Codes) -> Floats:
        """The fewest clusters of a cell less 1, NaN of a single verdict."""
        fewest = np.where(self.clusters > 1, self.clusters, np.inf).min(axis=0)
        return np.where(np.isinf(fewest), np.nan, fewest - 1)[cells]

    def interval(
        self, cells: Codes, weights: Floats, confidence: float = CONFIDENCE, probits: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Low and high of sums of rates, or of these ``probits`` [cells] of rates."""
        tail = np.full(cells.shape[:-1], (1 - confidence) / 2)
        return self._interval(cells, weights, tail, self._correlations(cells, np.sign(weights)), probits)

    def p(self, cells: Codes, weights: Floats, null: float) -> Floats:
        """p of the hypothesis that sums of rates [...] are ``null``, two-sided."""
        alike = self._correlations(cells, np.sign(weights))
        narrow, wide = (np.full(cells.shape[:-1], tail) for tail in (0.5, LEAST_P / 2))
        for _ in range(30):
            tail = np.sqrt(narrow * wide)
            low, high = self._interval(cells, weights, tail, alike)
            is_outside = (low > null) | (high < null)
            narrow, wide = np.where(is_outside, tail, narrow), np.where(is_outside, wide, tail)
        return np.where(np.isnan(low), np.nan, 2 * narrow)

    def _rates_interval(self, cells: Codes, tail: Floats) -> tuple[Floats, Floats]:
        rate, number, freedom = self.value[cells], self.number[cells], self.freedom(cells)
        variance = _total(np.einsum("gii->gi", self.products))[cells]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = stdtrit(number - 1, tail) / stdtrit(freedom, tail)
            worth = np.minimum(rate * (1 - rate) / variance * ratio**2, number)
        worth = np.where(variance > 0, worth, freedom + 1)
        return exact(rate, np.where(self.is_exact[cells], number, worth), tail)

    def _interval(
        self, cells: Codes, weights: Floats, tail: Floats, alike: Floats, probits: Floats | None = None
    ) -> tuple[Floats, Floats]:
        low, high = self._rates_interval(cells, tail[..., None])
        value = self.value[cells]
        if probits is not None:  # the correction moves them towards 0, perhaps beyond an end
            value = probits[cells]
            low, high = np.minimum(ndtri(low), value), np.maximum(ndtri(high), value)
        middle, reach = value @ weights, []
        for end, other in ((low, high), (high, low)):
            parts = np.abs(weights * np.where(weights > 0, end - value, other - value))
            is_open = np.isinf(parts).any(axis=-1)
            known = np.where(is_open[..., None], 0.0, parts)
            square = np.einsum("...i,...ij,...j->...", known, alike, known)
            reach.append(np.where(is_open, np.inf, np.sqrt(np.maximum(square, 0))))
        return middle - reach[0], middle + reach[1]

    def _correlations(self, cells: Codes, signs: Floats) -> Floats:
        products = self._products(cells) * np.outer(signs, signs)
        single = np.einsum("g...ii->g...i", products)
        with_other = _total(single[..., :, None] + single[..., None, :] + 2 * products)
        variance = np.einsum("...ii->...i", with_other) / 4
        size = np.sqrt(variance[..., :, None] * variance[..., None, :])
        with np.errstate(invalid="ignore", divide="ignore"):
            alike = (with_other - variance[..., :, None] - variance[..., None, :]) / (2 * size)
        known = np.where(size > 0, np.clip(alike, -1, 1), 0.0)
        return np.where(np.eye(len(signs), dtype=bool), 1.0, known)

    def _products(self, cells: Codes) -> Floats:
        return self.products[:, cells[..., :, None], cells[..., None, :]]


def _total(variances: Floats) -> Floats:
    """Of judges, stimuli and intersections [3, ...]."""
    judges, stimuli, both = variances
    total = np.fmax(judges + stimuli - both, np.fmax(judges, stimuli))
    return np.where(total < ROUNDING**2, 0.0, total)


def rates(right: Floats, cells: Cells, judges: Codes, stimuli: Codes, wider: Floats | float = 1.0) -> TwoWay:
    """The rates of ``right`` verdicts [verdicts] in ``cells``, which may overlap; NaN of none."""
    number = cells.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = (cells @ right) / number
        errors = np.where(cells, (right - value[:, None]) / number[:, None], 0.0)
    return two_way(value, errors, cells, judges, stimuli, wider)


def two_way(
    value: Floats, errors: Floats, cells: Cells, judges: Codes, stimuli: Codes, wider: Floats | float = 1.0
) -> TwoWay:
    """Estimates ``value`` [cells], to whose errors each verdict adds ``errors`` [cells, verdicts], times ``wider``
    [verdicts], 1 of independent verdicts."""
    both = np.unique(judges * (stimuli.max(initial=0) + 1) + stimuli, return_inverse=True)[1]
    sizes = [int(codes.max(initial=-1)) + 1 for codes in (judges, stimuli, both)]
    groups = list(zip((judges, stimuli, both), sizes, strict=True))
    clusters = np.array([[(np.bincount(codes[cell], minlength=size) > 0).sum() for cell in cells]
                         for codes, size in groups], dtype=np.float64)  # fmt: skip
    clusters[2, clusters[:2].min(axis=0) < 2] = 1  # a single judge or stimulus, as it is not drawn, has none
    products = []
    for (codes, size), drawn in zip(groups, clusters, strict=True):
        with np.errstate(divide="ignore"):
            correction = np.where(drawn > 1, np.sqrt(drawn / (drawn - 1)), 0.0)
        sums = np.array([np.bincount(codes, row, size) for row in errors * wider]) * correction[:, None]
        products.append(sums @ sums.T)
    number = cells.sum(axis=1).astype(np.float64)
    is_exact = (clusters[1] == number) & ((clusters[0] == 1) | (clusters[0] == number)) & bool(np.all(wider == 1))
    return TwoWay(value, number, clusters[:2], np.array(products), is_exact)


def exact(rate: Floats, number: Floats, tail: Floats) -> tuple[Floats, Floats]:
    """Low and high of a ``rate`` of ``number`` independent verdicts with ``tail`` beyond each (Clopper, Pearson 1934);
    NaN of none."""
    right, wrong = rate * number, (1 - rate) * number
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, betaincinv(right, wrong + 1, tail), 0.0)
        high = np.where(wrong > 0, betainccinv(right + 1, wrong, tail), 1.0)
    is_known = number > 0
    return np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)
