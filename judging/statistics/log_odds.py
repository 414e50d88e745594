"""The slope of the log odds of being right over a number: logistic regression of verdicts on one covariate."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, gammaln, log_expit

from judging.statistics.jackknife import CONFIDENCE, LEAST_P, Floats
from judging.statistics.tables import Estimate

FORM = "+.4f"
TAIL = (1 - CONFIDENCE) / 2
HALF = 0.5  # of a trial's verdicts, above which it counts as right where verdicts are counted
CERTAIN = 60.0  # log odds beyond which a share is 0 or 1 in double precision


class Slope(NamedTuple):
    """How the log odds of being right go with a covariate."""

    change: Estimate
    """The change by 1 of the covariate; infinite where it separates right from wrong verdicts."""
    p: float
    """The two-sided p of no slope."""
    is_separated: bool
    """Whether a value of the covariate separates right from wrong verdicts, so that ``p`` is exact."""


class CountsByPlace(NamedTuple):
    """Verdicts by distinct place of the covariate, ascending; all three are [places].

    A place is a value of the covariate minus the least, in parts of their range."""

    places: Floats
    """From 0 to 1; from -1 to 0 where they are mirrored."""
    right: Floats
    """How many verdicts are right there; a mean of several verdicts adds its share."""
    total: Floats
    """How many verdicts there are."""


def slope_of_log_odds(values: Floats, right: Floats) -> Slope | None:
    """The slope over ``values`` [trials] of ``right`` [trials]: 1 or 0 of a verdict, or the share of those that a
    trained judge gave by several partitions. None where all verdicts are right, or all wrong, and at a single value.

    Without separation it is the maximum likelihood estimate with Wald's interval and p, as the papers have it. A share
    counts as a single verdict (as fractions in Papke and Wooldridge 1996). If each partition counted as a verdict, a
    slope would get surer with every further seed.

    Where all verdicts above some value are right and all below are wrong (or the reverse; at the value itself there may
    be both, which is quasi-complete separation), the likelihood grows with the slope without end (Albert and Anderson
    1984). Least squares then stop anywhere, with a standard error of thousands: the strongest effect that there can be
    has p near 1.

    There the inference is exact, given how many verdicts are right (Cox 1970, section 4.2; Mehta and Patel 1995): the
    sum of the values of right verdicts is the largest that it could be. So p without a slope is a count of orders. The
    interval has one end; the estimate and the other end are infinite. Two other ways were not taken. The likelihood
    ratio's chi-squared distribution does not hold for few verdicts: three wrong below three right give 0.004, where all
    20 orders give 0.1. Firth's penalised likelihood (Heinze and Schemper 2002) has a finite slope, but the penalty
    makes it: such verdicts say only that the slope is at least the interval's end. Orders are of verdicts, so that a
    share at the value itself is a right verdict if it is above a half.

    Separation is found exactly, by the order of values, and not by a warning of the fit. One covariate separates if no
    wrong verdict lies above a right one, or no right one above a wrong one; otherwise it does not.

    All is reckoned over places from 0 to 1, and only the slope is put back into the covariate's units. Milliseconds
    since 1970 are nearly a constant: least squares then drop one of the two, and the strongest trend has a p of
    0.65."""
    if not len(values) or np.ptp(values) == 0:
        return None
    counts = _counts(values, right)
    if _is_separated(counts) or _is_separated(_mirrored(counts)):
        counts = _counts(values, (right > HALF).astype(np.float64))
        if not 0 < counts.right.sum() < counts.total.sum():
            return None
        is_rising = _is_separated(counts)
        slope = _exact(counts, sign=1) if is_rising else _exact(_mirrored(counts), sign=-1)
    else:
        slope = _fitted(counts)
    change = slope.change
    reach = float(np.ptp(values))
    in_units = Estimate(change.value / reach, change.low / reach, change.high / reach, FORM)
    return slope._replace(change=in_units.significant())


def _counts(values: Floats, right: Floats) -> CountsByPlace:
    distinct, place = np.unique(values, return_inverse=True)
    size = len(distinct)
    number_right = np.bincount(place, right, size).astype(np.float64)
    total = np.bincount(place, minlength=size).astype(np.float64)
    return CountsByPlace((distinct - distinct[0]) / (distinct[-1] - distinct[0]), number_right, total)


def _mirrored(counts: CountsByPlace) -> CountsByPlace:
    return CountsByPlace(-counts.places[::-1], counts.right[::-1], counts.total[::-1])


def _is_separated(counts: CountsByPlace) -> bool:
    """Whether no wrong verdict lies above a right one; true as well where all are right, or all wrong."""
    lowest_right = counts.places[counts.right > 0].min(initial=np.inf)
    highest_wrong = counts.places[counts.right < counts.total].max(initial=-np.inf)
    return bool(highest_wrong <= lowest_right)


def _fitted(counts: CountsByPlace) -> Slope:
    from statsmodels.genmod import families
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning
    from statsmodels.tools.tools import add_constant

    both = np.column_stack([counts.right, counts.total - counts.right])
    with warnings.catch_warnings():  # a few shares may lie on the line: that is no separation
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        fit = GLM(both, add_constant(counts.places), family=families.Binomial()).fit()
    low, high = map(float, fit.conf_int()[1])
    return Slope(Estimate(float(fit.params[1]), low, high), float(fit.pvalues[1]), False)


def _exact(counts: CountsByPlace, sign: int) -> Slope:
    """The exact slope of verdicts that are separated with a positive slope; ``sign`` is -1 for mirrored verdicts."""
    orders = _log_ways(counts.right.sum(), counts.total.sum())
    without_slope = float(np.exp(_log_ways(counts.right, counts.total).sum() - orders))
    # The chance grows with the slope, from 0 to 1, and so is TAIL at one slope.
    if without_slope < TAIL:
        lower = 0.0
        upper = 1.0
        while _chance(counts, upper) < TAIL:
            lower = upper
            upper = 2 * upper
    else:
        lower = -1.0
        upper = 0.0
        while _chance(counts, lower) > TAIL:
            upper = lower
            lower = 2 * lower
    low = float(brentq(lambda slope: _chance(counts, slope) - TAIL, lower, upper, xtol=1e-12))
    ends = (low, np.inf) if sign > 0 else (-np.inf, -low)
    return Slope(Estimate(sign * np.inf, *ends), min(max(2 * without_slope, LEAST_P), 1.0), True)


def _chance(counts: CountsByPlace, slope: float) -> float:
    """The probability, given ``slope`` and the number of right verdicts, that the right ones are at the largest values.

    Any intercept gives the same. This one makes the expected number right equal the observed, so the divisor is never
    tiny."""
    places, right, total = counts
    sloped = slope * (places - places.mean())
    number = int(right.sum())

    def surplus(intercept: float) -> float:
        return float((total * expit(intercept + sloped)).sum() - number)

    widest = CERTAIN + float(np.abs(sloped).max())
    odds = brentq(surplus, -widest, widest) + sloped
    certain = int(total[odds > CERTAIN].sum())  # right; below -CERTAIN none is
    of_others = np.ones(1)
    is_open = np.abs(odds) <= CERTAIN
    for size, odd in zip(total[is_open].astype(np.int64), odds[is_open], strict=True):
        of_others = np.convolve(of_others, np.exp(_log_binomial(np.arange(size + 1.0), size, odd)))
    return float(np.exp(_log_binomial(right, total, odds).sum()) / of_others[number - certain])


def _log_binomial(right: Floats, total: Floats | int, log_odds: Floats | float) -> Floats:
    ways = _log_ways(right, total)
    return np.asarray(ways + right * log_expit(log_odds) + (total - right) * log_expit(-log_odds))


def _log_ways(right: Floats, total: Floats | int) -> Floats:
    return np.asarray(gammaln(total + 1) - gammaln(right + 1) - gammaln(total - right + 1))
