"""Rates of right verdicts on people's answers, corrected for answers that the participants did not write.

**With traces.** An answer with the marks x is foreign with the probability pi(x), and judges see no marks. So the
expected verdict is (1 - pi) mu_own + pi mu_foreign, a line in pi; its value at pi = 0 is p(H|H) of own answers. The
line is fitted by least squares. Weights 1 - pi alone would not do: an answer with pi = 0.3 would enter as an own one,
with a weight of 0.7. At a rate of 0 verdicts do not depend on marks, and the mean correction is 0.

**With a known rate** c nobody knows which answers are foreign. They are then taken to be judged as the answers of
stated agents are: p(H|H) = (observed - c p(H|M)) / (1 - c), as for a prevalence with a known error (Rogan, Gladen
1978).

**Intervals.** The line is the estimate of :func:`judging.statistics.jackknife.jackknife`, with judges, stimuli and
people drawn, as for the plain rates: where all pi are 0 both are the same. Else its interval is that of Student's t on
the scale of log odds, as a line's end is no share of verdicts. What is not known about the rate comes on
top: how far the ends of the interval of the share of foreign answers move the corrected figure (:func:`_shifts`). Both
distances are joined by the root of the sum of squares (MOVER; Zou, Donner 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit, stdtrit

from judging.statistics.jackknife import CONFIDENCE, Cells, Clusters, Codes, Floats, Jackknife, jackknife, of_judges
from judging.statistics.measures import DETECTABILITY
from judging.statistics.tables import NO_FIGURE, Estimate

NARROWEST = 0.8  # an interval is at least this part of that without the rate's uncertainty
FLAT = 1e-9  # a smaller variance of pi is none
WITHIN = 2 * CONFIDENCE - 1  # by whose interval an agent passes


@dataclass(frozen=True, slots=True)
class Corrected:
    """p(H|H) and detectability of an agent, corrected."""

    p_human: Estimate
    """Of people's own answers."""
    detectability: Estimate
    """With p(M|M) as it is."""
    within: Estimate
    """Detectability with its 90 % interval."""
    p_foreign: float
    """p(H|foreign): how often foreign answers are judged human, 0 to 1; NaN where no answer seems foreign."""
    at_ends: tuple[float, float, float, float]
    """p(H|H) at the lower and at the upper end of the rate's interval, then detectability likewise."""


def by_traces(
    right: Floats, cells: Cells, clusters: Clusters, posterior: Floats, *, by_judge: bool = False
) -> list[Corrected]:
    """The figures of each agent, from ``right`` verdicts [verdicts] in ``cells`` [1 + agents, verdicts], people's
    first.

    ``posterior`` [7, verdicts] are the probabilities that the judged answer is foreign, at the rates of
    :attr:`judging.contamination.rate.Rate.rates`; of machines' answers 0. With ``by_judge`` each judge counts once."""
    weights = of_judges(cells, clusters.judges) if by_judge else cells.astype(np.float64)
    fitted = jackknife(_terms(weights, right, posterior[0]), own_rate, clusters)
    is_corrected = _has_slope(_terms(weights, right, posterior[0]).sum(axis=-1))
    lines = [_terms(weights[:1], right, of_rate).sum(axis=-1) for of_rate in posterior]
    own = [float(own_rate(line)[0]) for line in lines]
    shifts = _shifts(weights[0], right, clusters, posterior[0], posterior[3:])
    result = _within_borders(fitted, is_corrected)
    has_slope = bool(is_corrected[0])
    foreign = np.nan
    if has_slope:
        foreign = float(np.clip(own[0] + _slope(lines[0])[0], 0, 1))
    low, high = np.clip(own[1:3], 0, 1).tolist()
    rows = []
    for agent in range(1, len(cells)):
        pair = np.array([0, agent])
        machine = float(result.value[agent])
        rows.append(
            Corrected(
                _joined(result, pair[:1], np.ones(1), has_slope, shifts[:2]),
                _joined(result, pair, DETECTABILITY, has_slope, shifts[:2]),
                _joined(result, pair, DETECTABILITY, has_slope, shifts[2:], WITHIN),
                foreign,
                (low, high, (low + machine) / 2, (high + machine) / 2),
            )
        )
    return rows


def by_known_rate(
    right: Floats,
    cells: Cells,
    clusters: Clusters,
    bounds: tuple[float, float],
    alike: Cells,
    *,
    by_judge: bool = False,
) -> list[Corrected]:
    """The figures of each agent at a rate between ``bounds``; at their middle the values. ``alike`` [1, verdicts] are
    the verdicts on agents whose answers are taken to be judged as foreign ones are.

    A rate that is known only by its bounds has no distribution: an interval reaches from its lowest end at either bound
    to the highest. Where the whole interval at a bound lies beyond 1 or below 0, the rate does not fit the verdicts,
    and there are no figures: NaN."""
    both = np.concatenate([cells, alike])
    weights = of_judges(both, clusters.judges) if by_judge else both.astype(np.float64)
    result = jackknife(_terms(weights, right, np.zeros(len(right))), own_rate, clusters)
    like = len(both) - 1
    rates = (sum(bounds) / 2, *bounds)
    rows = []
    for agent in range(1, len(cells)):
        own = [_known(result, np.array([0, like]), rate, 1.0) for rate in rates]
        if any(np.isnan(estimate.value) for estimate in own):
            rows.append(Corrected(NO_FIGURE, NO_FIGURE, NO_FIGURE, np.nan, (np.nan,) * 4))
            continue
        whole = [_known(result, np.array([0, like, agent]), rate, 0.5) for rate in rates]
        narrow = [_known(result, np.array([0, like, agent]), rate, 0.5, WITHIN) for rate in rates]
        at_ends = (own[1].value, own[2].value, whole[1].value, whole[2].value)
        rows.append(Corrected(_over(own), _over(whole), _over(narrow), 1 - float(result.value[like]), at_ends))
    return rows


def _shifts(
    weights: Floats, right: Floats, clusters: Clusters, foreign: Floats, at_ends: Floats
) -> list[tuple[float, float]]:
    """How far p(H|H) moves from its value with ``foreign`` to those with ``at_ends`` [ends, verdicts], by verdicts with
    ``weights`` above 0: the way, and the square that it adds to an interval.

    The slope of the line is known with an error. So p(H|H) seems to move where verdicts do not depend on marks at all.
    The interval of the line has that error already, and so its variance is taken out of the square of the way. The rest
    may be below 0: cut at 0 it would be too large on average."""
    is_used = weights > 0
    used = clusters.where(is_used)
    number = len(at_ends)
    first = _terms(np.tile(weights[is_used], (number, 1)), right[is_used], foreign[is_used])
    both = np.concatenate([first, _terms(first[0], right[is_used], at_ends[:, is_used])])
    moved = jackknife(both, lambda sums: own_rate(sums[5:]) - own_rate(sums[:5]), used)
    error, _ = moved.deviation(np.arange(number)[:, None], np.ones(1))
    return list(zip(moved.value.tolist(), (moved.value**2 - error**2).tolist(), strict=True))


def own_rate(sums: Floats) -> Floats:
    """The line's value at pi = 0, from ``sums`` [5, …] of weights w, of w pi, w pi², w right and w pi right; the mean
    where pi does not vary. It may lie outside 0 to 1."""
    weight, _, _, right, _ = sums
    slope = np.where(_has_slope(sums), _slope(sums), 0.0)
    return np.asarray((right - slope * sums[1]) / weight)


def _slope(sums: Floats) -> Floats:
    weight, foreign, square, right, product = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weight * product - foreign * right) / (weight * square - foreign**2))


def _has_slope(sums: Floats) -> Cells:
    weight, foreign, square, _, _ = sums
    return np.asarray(weight * square - foreign**2 > FLAT * weight**2)


def _terms(weights: Floats, right: Floats, foreign: Floats) -> Floats:
    return np.stack([weights, weights * foreign, weights * foreign**2, weights * right, weights * foreign * right])


def _within_borders(result: Jackknife, is_corrected: Cells) -> Jackknife:
    """The result with rates from 0 to 1, as a line may end beyond.

    A corrected rate is no share of independent verdicts, and its interval has a width even where the line ends at 1. So
    it stays half a verdict away from 0 and 1."""
    least = np.where(is_corrected, 0.5 / np.maximum(result.number, 1), 0.0)
    return replace(result, value=np.clip(result.value, least, 1 - least), is_exact=result.is_exact & ~is_corrected)


def _joined(
    result: Jackknife,
    cells: Codes,
    weights: Floats,
    is_corrected: bool,
    shifts: Sequence[tuple[float, float]],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A figure with its interval: what verdicts leave open, and what the rate does, by ``shifts`` of p(H|H)."""
    value = float(result.sum(cells, weights))
    if is_corrected:
        low, high = _of_line(result, cells, weights, value, confidence)
    else:
        low, high = map(float, result.interval(cells, weights, confidence))
    if math.isnan(low):  # a single judge of several, or a single person
        return Estimate(value)
    ends = []
    for distance, side in ((value - low, -1), (high - value, 1)):
        added = max((square for way, square in shifts if way * side > 0), default=0.0)
        reach = math.sqrt(max(distance**2 + float(weights[0]) ** 2 * added, (NARROWEST * distance) ** 2))
        ends.append(min(1.0, max(0.0, value + side * reach)))
    return Estimate(value, ends[0], ends[1])


def _of_line(result: Jackknife, cells: Codes, weights: Floats, value: float, confidence: float) -> tuple[float, float]:
    """The interval of a line's end, or of its sum with another rate, by Student's t; on the scale of log odds, which
    stays within 0 to 1. The exact intervals of shares would be too wide for it, by a twentieth."""
    error, freedom = map(float, result.deviation(cells, weights))
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * error / (value * (1 - value))
    return float(expit(logit(value) - half)), float(expit(logit(value) + half))


def _known(result: Jackknife, cells: Codes, rate: float, part: float, confidence: float = CONFIDENCE) -> Estimate:
    """(p(H|H) - c (1 - p(M|M))) / (1 - c) times ``part``, and with a third cell half of its rate.

    ``cells`` are those of people, of agents whose answers are judged as foreign ones are, and of the agent."""
    weights = np.array([1.0, rate, 1 - rate])[: len(cells)] * part / (1 - rate)
    less = part * rate / (1 - rate)
    if rate == 0:  # nothing depends on the second cell
        cells = np.delete(cells, 1)
        weights = np.delete(weights, 1)
    low, high = result.interval(cells, weights, confidence)
    if float(low) - less > 1 or float(high) - less < 0:
        return NO_FIGURE
    ends = np.clip([float(low) - less, float(high) - less], 0, 1)
    value = float(result.sum(cells, weights)) - less
    if part == 1:
        value = float(np.clip(value, 0, 1))
    else:  # p(H|H) is within 0 to 1, and the other half stays as it is
        machine = float(result.value[cells[-1]])
        value = float(np.clip(value, machine / 2, (1 + machine) / 2))
    return Estimate(value, *ends.tolist())


def _over(estimates: Sequence[Estimate]) -> Estimate:
    """The first value with the widest interval."""
    low = min(estimate.low for estimate in estimates)
    return Estimate(estimates[0].value, low, max(estimate.high for estimate in estimates))
