"""The line of verdicts on the probability that an answer is foreign: its value at 0, with its interval.

An answer with the marks x is foreign with the probability pi(x), and judges see no marks. So the expected verdict is
(1 - pi) mu_own + pi mu_foreign, a line in pi; its value at pi = 0 is the rate of own answers. The line is fitted by
least squares. Weights 1 - pi alone would not do: an answer with pi = 0.3 would enter as an own one, with a weight of
0.7. At a rate of 0 verdicts do not depend on marks, and the mean correction is 0.

**Intervals.** The line's value at 0 is a sum of verdicts with weights, and each verdict has an error: how far it lies
from the line, times its weight. :func:`judging.statistics.crossed.crossed` adds these errors up, with judges, stimuli
and people drawn. The floors of :mod:`judging.statistics.jackknife` are made for shares of verdicts, which a line's end
is not. With them 95 % intervals of studies with 6 or 10 judges held the true value in 97 to 99 %. The interval is that
of Student's t on the scale of log odds. What is not known about the rate comes on top: how far the ends of the interval
of the share of foreign answers move the value (:func:`shifts`). Both distances are joined by the root of the sum of
squares (MOVER; Zou, Donner 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from judging.statistics.crossed import Crossed, crossed, unseen
from judging.statistics.jackknife import Cells, Clusters, Codes, Floats
from judging.statistics.tables import Estimate

NARROWEST = 0.8  # an interval is at least this part of that without the rate's uncertainty
FLAT = 1e-9  # a smaller variance of pi is none
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of least squares of verdicts on the probability that the answer is foreign."""

    own: float
    """Its value at 0; it may lie outside 0 to 1. The mean where the probability does not vary."""
    foreign: float
    """Its value at 1; NaN where the probability does not vary."""
    weights: Floats
    """[verdicts] with which weights verdicts are summed to ``own``."""
    errors: Floats
    """[verdicts] these weights times how far each verdict lies from the line."""

    @property
    def has_slope(self) -> bool:
        """Whether the probability varies."""
        return not math.isnan(self.foreign)

    def within(self, number: float) -> float:
        """``own`` from 0 to 1. Of a line with a slope through a ``number`` of verdicts it stays half a verdict away
        from both, as its interval has a width even where the line ends at 1."""
        least = 0.5 / max(number, 1.0) if self.has_slope else 0.0
        return min(max(self.own, least), 1 - least)


def fitted_line(weights: Floats, right: Floats, foreign: Floats | None = None) -> Line:
    """The line through ``right`` verdicts with ``weights`` [verdicts]; without ``foreign`` [verdicts] their mean."""
    total = float(weights.sum())
    if foreign is None:
        foreign = np.zeros(len(right))
    first = float(weights @ foreign)
    square = float(weights @ foreign**2)
    spread = total * square - first**2
    if spread <= FLAT * total**2:
        shares = weights / total
        own = float(shares @ right)
        return Line(own, math.nan, shares, shares * (right - own))
    shares = weights * (square - first * foreign) / spread
    own = float(shares @ right)
    slope = float((weights * (total * foreign - first)) @ right) / spread
    return Line(own, own + slope, shares, shares * (right - own - slope * foreign))


def with_errors(values: Sequence[float], sums: Sequence[Line], clusters: Clusters) -> Crossed:
    """``values`` with the errors of the ``sums`` of verdicts that they are of."""
    weights = np.array([of_sum.weights for of_sum in sums])
    errors = np.array([of_sum.errors for of_sum in sums]) * clusters.wider
    added = unseen(weights, errors, clusters.people >= 0, _units(clusters))
    return crossed(np.array(values), weights, errors, clusters, added)


def student(result: Crossed, at: int, confidence: float) -> Ends:
    """The interval of a value from 0 to 1 by Student's t, on the scale of log odds, which stays within these."""
    value = float(result.value[at])
    reach = float(stdtrit(result.freedom[at], (1 + confidence) / 2)) * math.sqrt(result.variance[at])
    half = reach / (value * (1 - value))
    return float(expit(logit(value) - half)), float(expit(logit(value) + half))


def shifts(lines: Sequence[Line], used: Cells, clusters: Clusters) -> list[tuple[float, float]]:
    """How far the value at 0 moves from the first of ``lines`` to those at the ends of intervals, from the fourth on:
    the way, and the square that it adds to an interval. ``used`` [verdicts] are those with a weight.

    The slope of the line is known with an error. So the value seems to move where verdicts do not depend on marks at
    all. The interval of the line has that error already, and so its variance is taken out of the square of the way. The
    rest may be below 0: cut at 0 it would be too large on average."""
    moves = []
    for line in lines[3:]:
        weights = line.weights - lines[0].weights
        errors = line.errors - lines[0].errors
        moves.append(Line(line.own - lines[0].own, math.nan, weights[used], errors[used]))
    ways = [move.own for move in moves]
    variance = np.nan_to_num(with_errors(ways, moves, clusters.where(used)).variance)
    return [(way, way**2 - of_way) for way, of_way in zip(ways, variance.tolist(), strict=True)]


def joined(value: float, interval: Ends, moves: Sequence[tuple[float, float]], weight: float = 1.0) -> Estimate:
    """A figure with its interval: what verdicts leave open, and what the rate does, by ``moves`` of a value that has
    this ``weight`` in the figure. Without an interval there is none."""
    low, high = interval
    if math.isnan(low):
        return Estimate(value)
    ends = []
    for distance, side in ((value - low, -1), (high - value, 1)):
        added = max((square for way, square in moves if way * side > 0), default=0.0)
        reach = math.sqrt(max(distance**2 + weight**2 * added, (NARROWEST * distance) ** 2))
        ends.append(min(1.0, max(0.0, value + side * reach)))
    return Estimate(value, ends[0], ends[1])


def _units(clusters: Clusters) -> Codes:
    """Numbers of judges' trials [verdicts]."""
    if clusters.trials is None:
        return np.arange(len(clusters.judges), dtype=np.int64)
    return clusters.trials
