"""Variances of sums of verdicts, where judges, stimuli and the people who answered are all drawn, without floors.

**Why not the jackknife's.** :mod:`judging.statistics.jackknife` is made so that it is never too bold: each part of the
variance has a floor, the intervals of rates are exact, and those of sums reach at least as far as these. For rates that
is right. A change of detectability between two versions of the same answers is mostly noise: what judges and stimuli
have in common stands in both versions, and is taken away. There floors add up. In simulations of
``scripts/simulate_tells.py`` these intervals held the true change in 96 to 100 % of studies, and missed tells that
others find. The end of a line of verdicts (:mod:`judging.contamination.line`) is no share of verdicts, either. So here
nothing has a floor, and the degrees of freedom carry what is not known of the variance.

**The method.** Each verdict has an error: its weight in the sum of rates, times how far it lies from its own rate. Such
errors are added up within each judge, each stimulus and each person who answered, and squared. The variances of these
dimensions are added, those of the intersections of each two are subtracted, and that of all three is added again
(Cameron, Gelbach, Miller 2011).

**Rates are estimated from the same verdicts**, so that errors lie too near to them. With one dimension of G clusters
(the effective number, Kish 1965) the sum of squares is too small by V / G, where V is the whole variance. That is what
the usual factor G / (G - 1) mends. With several dimensions each sum of squares lacks 1 / G of the *whole* variance, and
not of its own part: what judges have in common beside their stimuli is in V, and the rate takes it out of each judge's
errors. So V is the total of the sums of squares with their signs, divided by 1 minus the total of 1 / G with the same
signs. With a factor G / (G - 1) on each dimension V was 3 to 7 % too small with ten judges and ten blocks. Where judges
and stimuli are fully crossed, the divisor is the product of (G - 1) / G of both. Weights that are very unequal could
bring it near 0, and so it is never taken below that product. Only people's answers have people. This dimension and its
intersections keep the factor G / (G - 1): their sum, with signs, is near 0. The divisor is that of verdicts that all
have the same clusters. So V stays too small where the rates of a change are of few clusters, and of others each: by 15
to 25 % where each of two to four judges sees few of many versions.

The degrees of freedom are Satterthwaite's (1946): 2 V² / var(V). Of independent errors var(V) is added up from its
parts with the signs that V has, as two parts have that of their intersection in common. So 2 P² / (G - 1) of each part
P is added or subtracted; the sum is no smaller than its largest single dimension. Two parts are taken for what they are
in expectation, as chance would else decide how poor a variance is. In place of V stands the largest single dimension
where that is more: V contains each of them. And the parts of judges and of stimuli contain what single trials vary. So
a part that is less is taken for its mean with that of single trials, which counts as PRIOR degrees of freedom. Without
the first, 2 % of tests were false alarms with ten judges who see all versions; without the second, 12 % with two.

**Two exceptions.** Parts that are subtracted may leave nothing, or less. The variance is never below LEAST_SHARE of
that between single trials' clusters, which is part of all others: by 0.25, 6 % of tests were false alarms, by 1, 3 %.
And where no verdict on people's answers, or none on an agent's, shows an error, by chance, this side counts as if half
an answer had (Agresti and Min 2005 add a half to each count): else the interval would have no width. Without that 8 to
11 % of intervals missed small changes. Of trained judges' changes more is known (:mod:`judging.statistics.flips`).

**No figure** where all verdicts on people's answers, or all on an agent's, are at one stimulus: what stimuli vary
cannot be seen there. At two or three of 20 stimuli the variance is a quarter too small, and 9 to 11 % of intervals
miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from judging.statistics.jackknife import CONFIDENCE, DIMENSIONS, ROUNDING, Clusters, Codes, Floats

PRIOR = 2.0  # degrees of freedom for which the part of single trials counts beside that of judges or stimuli
LEAST_SHARE = 0.5  # of the variance between the clusters of judges and stimuli together


@dataclass(frozen=True, slots=True)
class Crossed:
    """Sums of rates with their errors. Fields are [sums]; NaN where a sum is not known, or has no error."""

    value: Floats
    """The sums."""
    variance: Floats
    """The squares of their standard errors."""
    freedom: Floats
    """The degrees of freedom of these."""

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
        """The lower and upper ends [sums] of Student's intervals."""
        reach = stdtrit(self.freedom, (1 + confidence) / 2) * np.sqrt(self.variance)
        return self.value - reach, self.value + reach

    def p(self, null: float = 0.0) -> Floats:
        """p [sums] of the hypothesis that they are ``null``, two-sided."""
        return np.asarray(2 * stdtr(self.freedom, -np.abs(self.value - null) / np.sqrt(self.variance)))

    def where(self, chosen: NDArray[np.bool_], others: Crossed) -> Crossed:
        """These sums where ``chosen`` [sums], and those of ``others`` elsewhere."""
        return Crossed(
            np.where(chosen, self.value, others.value),
            np.where(chosen, self.variance, others.variance),
            np.where(chosen, self.freedom, others.freedom),
        )

    def with_added(self, variance: Floats) -> Crossed:
        """The same with a further ``variance`` [sums], which is known, and so has no degrees of freedom of its own."""
        total = self.variance + variance
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = self.freedom * (total / self.variance) ** 2
        return Crossed(self.value, total, freedom)


def crossed(value: Floats, weights: Floats, errors: Floats, clusters: Clusters, added: Floats) -> Crossed:
    """The errors of sums of rates whose values [sums] are known.

    ``weights`` [sums, verdicts] are those of verdicts in the sums, with their signs, ``errors`` [sums, verdicts] the
    same times how far each verdict lies from its rate. ``added`` [sums] is what variances have more, such as
    :func:`unseen`."""
    size = np.abs(weights)
    is_used = size.sum(axis=1) > 0
    drawn = clusters.drawn()[:, 0]
    of_people = clusters.people >= 0
    total = np.zeros(len(value))
    divisor = np.ones(len(value))
    least_divisor = np.ones(len(value))
    finest = np.full(len(value), np.nan)
    fewest = np.full(len(value), np.inf)
    parts: list[tuple[tuple[int, ...], Floats, Floats]] = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for dimensions in DIMENSIONS:
            if not drawn[list(dimensions)].all():
                continue
            sign = 1 if len(dimensions) % 2 else -1
            codes, verdicts = clusters.intersections(dimensions)
            number = _effective(_added(size, codes, verdicts))
            squares = (_added(errors, codes, verdicts) ** 2).sum(axis=1)
            is_part = number > 0  # none of people where all answers of a sum are machines'
            part = np.where(is_part, squares * number / (number - 1), 0.0)
            parts.append((dimensions, np.where(is_part, number - 1, np.inf), part))
            if 2 in dimensions:
                total += sign * part
            else:
                total += sign * squares
                divisor -= sign / number
                finest = part
            if len(dimensions) == 1:
                fewest = np.where(is_part, np.minimum(fewest, number - 1), fewest)
                if 2 not in dimensions:
                    least_divisor *= 1 - 1 / number
        total = np.maximum(total / np.maximum(divisor, least_divisor), LEAST_SHARE * finest)
        freedom = _freedom(total, parts, finest, fewest)
        total += added
        of_sides = [_effective(_added(size * side, *clusters.intersections((1,)))) for side in (of_people, ~of_people)]
    is_known = is_used & (total > ROUNDING**2) & (fewest > ROUNDING)
    if drawn[1]:  # of an agent that answered a single stimulus nothing is known
        for number in of_sides:
            is_known &= np.isnan(number) | (number > 1 + ROUNDING)
    value = np.where(np.abs(value) < ROUNDING, 0.0, value)
    return Crossed(
        np.where(is_used, value, np.nan), np.where(is_known, total, np.nan), np.where(is_known, freedom, np.nan)
    )


def _freedom(
    total: Floats, parts: Sequence[tuple[tuple[int, ...], Floats, Floats]], finest: Floats, fewest: Floats
) -> Floats:
    """The degrees of freedom [sums] of the variances ``total``, of their ``parts``: dimensions, degrees, and part."""
    of_freedom = np.zeros(len(total))
    of_largest = np.zeros(len(total))
    largest = np.zeros(len(total))
    for dimensions, degrees, part in parts:
        sign = 1 if len(dimensions) % 2 else -1
        expected = part
        if len(dimensions) == 1 and 2 not in dimensions:
            expected = np.maximum(part, (degrees * part + PRIOR * finest) / (degrees + PRIOR))
        of_part = expected**2 / degrees
        of_freedom += sign * of_part
        if len(dimensions) == 1:
            largest = np.maximum(largest, part)
            of_largest = np.maximum(of_largest, of_part)
    freedom = np.maximum(total, largest) ** 2 / np.maximum(of_freedom, of_largest)
    return np.asarray(np.where(of_largest > 0, freedom, fewest))  # without an error what is added is all there is


def unseen(weights: Floats, errors: Floats, of_people: NDArray[np.bool_], units: Codes) -> Floats:
    """What is added to the variances [sums] for a side, people's answers or machines', on which no unit shows an error:
    the square of half a unit's largest weight; where the errors are less than that, what they lack.

    ``units`` [verdicts] number a judge's verdicts on the same answer, those on its other versions, too."""
    added = np.zeros(len(weights))
    every = np.arange(len(units))
    for side in (of_people, ~of_people):
        shown = (_added(errors * side, units, every) ** 2).sum(axis=1)
        half = (np.abs(weights * side).max(axis=1, initial=0.0) / 2) ** 2
        added += np.maximum(half - shown, 0.0)
    return added


def _added(values: Floats, codes: Codes, verdicts: Codes) -> Floats:
    """Sums [rows, clusters] of ``values`` [rows, verdicts] of the ``verdicts`` in the clusters with these ``codes``."""
    size = int(codes.max(initial=-1)) + 1
    return np.array([np.bincount(codes, row[verdicts], size) for row in values]).reshape(len(values), size)


def _effective(size: Floats) -> Floats:
    """The effective number of clusters [rows] whose weights are ``size`` [rows, clusters] (Kish 1965)."""
    return np.asarray(size.sum(axis=1) ** 2 / (size**2).sum(axis=1))
