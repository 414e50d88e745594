"""Rates of verdicts, their sums and differences, where judges and stimuli are both drawn.

The variance is that between judges and that between stimuli less that of their intersections (Cameron, Gelbach, Miller
2011), at least the larger of the first two; each is a jackknife that leaves out a cluster at a time (MacKinnon,
Nielsen, Webb 2024). Its freedom is the effective number of clusters (Carter, Schnepel, Steigerwald 2017) less 1. A
rate's interval is the exact interval of so many independent verdicts as vary as much, with t of that freedom (Clopper,
Pearson 1934; Korn, Graubard 1998). Those of sums and differences are made from the rates' by MOVER (Zou, Donner 2008),
and reach at least as far as t times the standard error, or as what single verdicts cannot show (``_unseen``); p is 1
less the confidence of the interval that ends at the null hypothesis. Of a single judge in all verdicts, who is not
drawn, figures are of this judge; but a single one where there are several tells nothing of others, and has no
interval. So it is with stimuli.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
Drawn = NDArray[np.bool_] | None  # [2, cells or 1] whether judges, and stimuli, are several; None: as in all verdicts
Estimator = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class TwoWay:
    """Estimates [cells] of so many verdicts; ``products`` [3, cells, cells] are of their errors, summed over judges,
    stimuli and intersections. In methods ``cells`` [..., m] are summed with ``weights`` [m]."""

    value: Floats
    number: Floats
    clusters: Floats  # [2, cells] of judges, of stimuli
    freedom: Floats  # NaN of what has no interval
    products: Floats
    is_exact: NDArray[np.bool_]  # independent verdicts

    def sum(self, cells: Codes, weights: Floats) -> Floats:
        return np.asarray(self.value[cells] @ weights)

    def deviation(self, cells: Codes, weights: Floats) -> Floats:
        """The standard error of the sum."""
        return np.sqrt(_total(np.einsum("g...ij,i,j->g...", self._products(cells), weights, weights)))

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
        rate, number, freedom = self.value[cells], self.number[cells], self.freedom[cells]
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
        value, least, ends = self.value[cells], self._unseen(cells, weights, tail), np.array([-np.inf, np.inf])
        if probits is not None:  # the correction moves them towards 0, perhaps beyond an end
            value = probits[cells]
            low, high = np.minimum(ndtri(low), value), np.maximum(ndtri(high), value)
            least = least * math.sqrt(2 * math.pi)  # the least slope of probits
        elif len(weights) > 1:
            of_freedom = -stdtrit(self.freedom[cells].min(axis=-1), tail) * self.deviation(cells, weights)
            least = np.maximum(least, of_freedom)
            ends = np.array([weights[weights < 0].sum(), weights[weights > 0].sum()])
        middle, reach = value @ weights, []
        for end, other in ((low, high), (high, low)):
            parts = np.abs(weights * np.where(weights > 0, end - value, other - value))
            is_open = np.isinf(parts).any(axis=-1)
            known = np.where(is_open[..., None], 0.0, parts)
            square = np.einsum("...i,...ij,...j->...", known, alike, known)
            reach.append(np.where(is_open, np.inf, np.maximum(np.sqrt(np.maximum(square, 0)), least)))
        return np.maximum(middle - reach[0], ends[0]), np.minimum(middle + reach[1], ends[1])

    def _unseen(self, cells: Codes, weights: Floats, tail: Floats) -> Floats:
        """How far a sum may be off though no cluster shows it. Of G clusters that all cancel, each of a single verdict
        on each rate, a share 1 - tail ** (1 / G) may not. 0 of a rate alone, and of larger clusters."""
        clusters = self.clusters[:, cells].max(axis=0)
        are_single = (self.number[cells] == clusters).all(axis=-1) & (len(weights) > 1)
        share = 1 - tail ** (1 / np.maximum(clusters.min(axis=-1), 1))
        return np.where(are_single, np.abs(weights).max() * share, 0.0)

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
    total = np.maximum(judges + stimuli - both, np.maximum(judges, stimuli))
    return np.where(total < ROUNDING**2, 0.0, total)


def mean(sums: Floats) -> Floats:
    return np.asarray(sums[1] / sums[0])


def several(judges: Codes, stimuli: Codes) -> Cells:
    """Whether these verdicts are of several judges, and on several stimuli [2, 1]."""
    return np.array([[bool((codes != codes[:1]).any())] for codes in (judges, stimuli)])


def rates(
    right: Floats, cells: Cells, judges: Codes, stimuli: Codes, wider: Floats | float = 1.0, drawn: Drawn = None
) -> TwoWay:
    """The rates of ``right`` verdicts [verdicts] in ``cells``, which may overlap; NaN of none."""
    return two_way(np.stack([cells, cells * right]), mean, judges, stimuli, wider, drawn)


def two_way(
    terms: Floats, estimate: Estimator, judges: Codes, stimuli: Codes, wider: Floats | float = 1.0, drawn: Drawn = None
) -> TwoWay:
    """What ``estimate`` makes of sums of ``terms`` [terms, cells, verdicts], of which the first is a verdict's weight;
    its errors are multiplied by ``wider`` [verdicts], 1 of independent verdicts."""
    cells, total = terms.any(axis=0), terms.sum(axis=-1)
    both = np.unique(judges * (stimuli.max(initial=0) + 1) + stimuli, return_inverse=True)[1]
    of_cells = np.broadcast_to(several(judges, stimuli) if drawn is None else drawn, (2, terms.shape[1]))
    wide = np.where(cells, wider, 1.0).max(axis=1, initial=1.0)
    clusters, freedom, products = [], [], []
    with np.errstate(invalid="ignore", divide="ignore"):
        value = estimate(total)
        for codes, is_drawn in zip((judges, stimuli, both), (*of_cells, of_cells.all(axis=0)), strict=True):
            size = int(codes.max(initial=-1)) + 1
            sums = np.array([[np.bincount(codes, row, size) for row in term] for term in (*terms, cells)])
            number = (sums[-1] > 0).sum(axis=1)
            effective = sums[0].sum(axis=1) ** 2 / (sums[0] ** 2).sum(axis=1)
            left = estimate(total[..., None] - sums[:-1]) - value[:, None]
            left = np.where(is_drawn[:, None], left * (wide * np.sqrt(1 - 1 / number))[:, None], 0.0)
            clusters.append(number.astype(np.float64))
            freedom.append(np.where(is_drawn, np.where(number > 1, np.maximum(effective - 1, 1), np.nan), np.inf))
            products.append(left @ left.T)
    fewest, number = np.minimum(*freedom[:2]), cells.sum(axis=1)
    are_single = np.array(clusters[:2]) == number  # verdicts of a judge, on a stimulus
    is_exact = (~of_cells | are_single & (number > 1)).all(axis=0) & are_single.any(axis=0) & (wide == 1)
    fewest[np.isinf(fewest)] = np.nan
    return TwoWay(value, number.astype(np.float64), np.array(clusters[:2]), fewest, np.array(products), is_exact)


def exact(rate: Floats, number: Floats, tail: Floats) -> tuple[Floats, Floats]:
    """Low and high of a ``rate`` of ``number`` independent verdicts with ``tail`` beyond each (Clopper, Pearson 1934);
    NaN of none."""
    right, wrong = rate * number, (1 - rate) * number
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, betaincinv(right, wrong + 1, tail), 0.0)
        high = np.where(wrong > 0, betainccinv(right + 1, wrong, tail), 1.0)
    is_known = number > 0
    return np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)
