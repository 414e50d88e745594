"""Rates of verdicts, their sums and differences, where judges, stimuli and the people who answered are all drawn.

**How it reads.** A *cell* is a set of verdicts with one rate: people's answers, or an agent's. Detectability is half
the sum of two cells' rates, so that most figures are sums over cells with weights. Cells share judges and stimuli, and
so their errors are correlated. So the variance of a sum takes a matrix [cells, cells] of products of errors. There is
one for each of the seven sets of dimensions in :data:`DIMENSIONS` (judges; stimuli; both at once; people; …), as
two-way and three-way clustering adds some and subtracts the others. :func:`jackknife` makes these matrices once for all
cells, and the methods of :class:`Jackknife` read from them any sum. In its ``einsum`` texts "g" runs over the seven
sets, "d" over the three dimensions alone, "i" and "j" over the cells of a sum, and "..." over sums.

**What breaks otherwise.** Verdicts taken for independent make intervals too narrow, so that judges who guess seem to
detect agents. Normal intervals leave [0, 1] at rates near 1. ``scripts/calibrate_scores.py`` draws 1,000 studies of
each design and counts: who changes a line here runs it, and compares with the table in docs/judging.md.

**The method.** The variances between judges, between stimuli and between people are added. Those of the intersections
of each two are subtracted, and that of all three is added again (Cameron, Gelbach, Miller 2011). It is never below one
of its parts. Each part is a jackknife that leaves out one cluster at a time (MacKinnon, Nielsen, Webb 2024).

The degrees of freedom of a rate are the effective number of clusters (Kish 1965) minus 1, of the dimension with the
fewest. A sum has joint ones (Satterthwaite 1946), and never fewer than its rates. Over rates they are the smaller of
two numbers: as if all clusters varied alike, and by the rates' estimated variances (Welch 1947). Rates of the same
clusters count as a single one. Over dimensions they go by the estimated variances, each at least LEAST_SHARE of the
sum's.

The interval of a rate is an exact one (Clopper, Pearson 1934; Korn, Graubard 1998): that of a number of independent
verdicts which vary as much, with t of these degrees of freedom. Intervals of sums and differences are made from those
of the rates by MOVER (Zou, Donner 2008). They reach at least as far as t times the standard error, or as what single
verdicts cannot show (``_unseen``). p is 1 minus the confidence of the interval that ends at the null hypothesis.

Where all verdicts are a single judge's, figures are of this judge, who is not drawn. But a single judge in a cell,
where there are several in all, tells nothing of others: there is no interval. So it is with stimuli, and with people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtri, stdtrit

CONFIDENCE = 0.95
ROUNDING = 1e-9  # of rates, whose scale is 1: a smaller deviation is rounding, and none
LEAST_SHARE = 0.85  # of the variance: a dimension counts with at least this, as few clusters may show too little
JEFFREYS = 0.5  # of a verdict: exact intervals are too wide, which would add up in sums of more than two rates
LEAST_P = 1e-15  # a smaller p counts as this

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Cells = NDArray[np.bool_]  # [cells, verdicts]
Drawn = NDArray[np.bool_]  # [3, cells or 1] whether judges, stimuli and people are several
Estimator = Callable[[Floats], Floats]
# What the variance is of: judges, stimuli, people, by place, and their intersections.
DIMENSIONS = ((0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2))


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which verdicts belong together: each judge, stimulus and person has a number from 0. Fields are [verdicts]."""

    judges: Codes
    """Who judged."""
    stimuli: Codes
    """What was answered."""
    people: Codes
    """Who answered; -1 for a machine's answers."""
    wider: Floats
    """[verdicts] by what errors are multiplied: 1 for independent verdicts, more for a trained judge's."""
    partners: Codes | None = None
    """The other person where two have answered together, -1 elsewhere; None where nobody has."""
    trials: Codes | None = None
    """Each judge's trials, where a trained judge has several verdicts on one, by as many partitions. None where every
    verdict is on a trial of its own."""

    def where(self, cell: Cells) -> Clusters:
        """The clusters of the verdicts in ``cell`` [verdicts] alone."""
        partners = None if self.partners is None else self.partners[cell]
        trials = None if self.trials is None else self.trials[cell]
        return Clusters(self.judges[cell], self.stimuli[cell], self.people[cell], self.wider[cell], partners, trials)

    def trials_in(self, cells: Cells) -> Floats:
        """How many trials of judges the verdicts in each of ``cells`` [cells, verdicts] are on."""
        if self.trials is None:
            return np.asarray(cells.sum(axis=1), dtype=np.float64)
        size = int(self.trials.max(initial=-1)) + 1
        verdicts = np.array([np.bincount(self.trials, cell, size) for cell in cells]).reshape(len(cells), size)
        return np.asarray((verdicts > 0).sum(axis=1), dtype=np.float64)

    def drawn(self) -> Drawn:
        """Whether each dimension has several clusters."""
        return np.array([[self.intersections((at,))[0].max(initial=0) > 0] for at in range(3)])

    def intersections(self, dimensions: Sequence[int]) -> tuple[Codes, Codes]:
        """Numbers of clusters, and the verdicts in them: those on an answer of two people are in clusters of both
        (Aronow, Samii, Assenova 2015)."""
        codes = np.stack([self.judges, self.stimuli, self.people])[[*dimensions]]
        verdicts = np.arange(len(self.judges))
        if 2 in dimensions and self.partners is not None:
            with_partners = np.stack([self.judges, self.stimuli, self.partners])[[*dimensions]]
            codes = np.hstack([codes, with_partners])
            verdicts = np.tile(verdicts, 2)
        is_known = np.all(codes >= 0, axis=0)
        first, *others = codes[:, is_known]
        for other in others:
            first = first * (other.max(initial=0) + 1) + other
        return np.unique(first, return_inverse=True)[1].astype(np.int64), verdicts[is_known]


@dataclass(frozen=True, slots=True)
class Jackknife:
    """Estimates of rates in cells, with all that their sums need for intervals.

    Methods take ``cells`` [..., m], numbers of cells, and ``weights`` [m]: each row of m cells is summed with these
    weights, and the result is [...]. So ``cells`` [[0, 1], [0, 2]] and ``weights`` [0.5, 0.5] are two detectabilities.
    """

    value: Floats
    """[cells] the rates, 0 to 1."""
    number: Floats
    """[cells] how many verdicts."""
    trials: Floats
    """[cells] how many trials of judges these are on."""
    clusters: Floats
    """[3, cells] how many judges, stimuli and people."""
    freedom: Floats
    """[3, cells] degrees of freedom; infinite of a dimension that is not drawn, NaN of a rate without an interval."""
    shared: Floats
    """[3, cells, cells] how far two cells have the same clusters: sums over clusters of the products of their
    shares."""
    products: Floats
    """[7, cells, cells] products of the errors of two cells, summed over the clusters of each of :data:`DIMENSIONS`."""
    is_exact: NDArray[np.bool_]
    """[cells] whether the verdicts are independent, so that the exact interval of their number holds."""

    def sum(self, cells: Codes, weights: Floats) -> Floats:
        """The sums of rates [...]."""
        return np.asarray(self.value[cells] @ weights)

    def deviation(self, cells: Codes, weights: Floats) -> tuple[Floats, Floats]:
        """The standard errors of sums [...], and their degrees of freedom [...].

        A rate alone has the fewest degrees of its dimensions. A sum has them jointly, in two steps. First over rates,
        for each dimension: the smaller of what they would be if all clusters varied alike (``as_if_alike``), and of
        what the estimated variances say (``as_estimated``). ``overlap`` counts rates of the same clusters once. Then
        over dimensions, each with its share of the variance, but at least LEAST_SHARE: few clusters may show too little
        variance by chance, and would then not count. Without that floor judges who guess seem to detect agents.
        """
        variances = np.einsum("g...ij,i,j->g...", self._products(cells), weights, weights)
        total = _total(variances)
        freedom = self.freedom[:, cells]
        fewest = freedom.min(axis=(0, -1))
        if len(weights) == 1:
            return np.sqrt(total), fewest
        shared = self.shared[:, cells[..., :, None], cells[..., None, :]]
        size = np.einsum("d...ii->d...i", shared)
        own = np.einsum("d...ii->d...i", self._products(cells)[[0, 1, 3]])
        with np.errstate(invalid="ignore", divide="ignore"):
            overlap = np.nan_to_num(shared / np.sqrt(size[..., :, None] * size[..., None, :]))
            as_if_alike = _joint(weights**2 * size, freedom, overlap)
            as_estimated = _joint(weights**2 * own, freedom, overlap)
            freedom_by_dimension = np.fmin(as_if_alike, as_estimated)
            is_drawn = (size > 0).any(axis=-1)
            share = np.where(is_drawn, np.maximum(variances[[0, 1, 3]] / total, LEAST_SHARE), 0.0)
            joint = 1 / (share**2 / np.where(is_drawn, freedom_by_dimension, np.inf)).sum(axis=0)
        return np.sqrt(total), np.where(total > 0, np.maximum(joint, fewest), fewest)

    def interval(
        self, cells: Codes, weights: Floats, confidence: float = CONFIDENCE, probits: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The lower and upper ends [...] of the intervals of sums of rates; with ``probits`` [cells], of sums of these,
        which are z of the rates."""
        tail = np.full(cells.shape[:-1], (1 - confidence) / 2)
        correlations = self._correlations(cells, np.sign(weights))
        deviation = self.deviation(cells, weights)
        return self._interval(cells, weights, tail, correlations, deviation, probits)

    def p(self, cells: Codes, weights: Floats, null: float) -> Floats:
        """p of the hypothesis that sums of rates [...] are ``null``, two-sided.

        It is twice the tail at which the interval ends at ``null``, found by halving on a logarithmic scale."""
        correlations = self._correlations(cells, np.sign(weights))
        deviation = self.deviation(cells, weights)
        narrow = np.full(cells.shape[:-1], 0.5)
        wide = np.full(cells.shape[:-1], LEAST_P / 2)
        for _ in range(30):
            tail = np.sqrt(narrow * wide)
            low, high = self._interval(cells, weights, tail, correlations, deviation)
            is_outside = (low > null) | (high < null)
            narrow = np.where(is_outside, tail, narrow)
            wide = np.where(is_outside, wide, tail)
        return np.where(np.isnan(low), np.nan, 2 * narrow)

    def _rates_interval(self, cells: Codes, tail: Floats, freedom: Floats) -> tuple[Floats, Floats]:
        rate = self.value[cells]
        number = self.number[cells]
        fewest = self.freedom[:, cells].min(axis=0)
        variance = _total(np.einsum("gii->gi", self.products))[cells]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = stdtrit(number - 1, tail) / stdtrit(freedom, tail)
            worth = np.minimum(rate * (1 - rate) / variance * ratio**2, number)
        worth = np.where(variance > 0, worth, fewest + 1)
        beyond = 0.0 if cells.shape[-1] <= 2 else JEFFREYS
        return exact(rate, np.where(self.is_exact[cells], number, worth), tail, beyond)

    def _interval(
        self,
        cells: Codes,
        weights: Floats,
        tail: Floats,
        correlations: Floats,
        deviation: tuple[Floats, Floats],
        probits: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """MOVER: how far the ends of the sum lie from its value follows from how far those of each rate do.

        With weights above 0 the lower end of the sum comes from the lower ends of rates, with weights below 0 from the
        upper ones. ``tail`` [...] is the probability beyond each end."""
        error, freedom = deviation
        low, high = self._rates_interval(cells, tail[..., None], freedom[..., None])
        value = self.value[cells]
        least = self._unseen(cells, weights, tail)
        ends = np.array([-np.inf, np.inf])
        if probits is not None:  # the correction moves them towards 0, perhaps beyond an end
            value = probits[cells]
            low = np.minimum(ndtri(low), value)
            high = np.maximum(ndtri(high), value)
            least = least * math.sqrt(2 * math.pi)  # the least slope of probits
        elif len(weights) > 1:
            least = np.maximum(least, -stdtrit(freedom, tail) * error)
            ends = np.array([weights[weights < 0].sum(), weights[weights > 0].sum()])
        middle = value @ weights
        reach = []
        for end, other in ((low, high), (high, low)):
            distances = np.abs(weights * np.where(weights > 0, end - value, other - value))
            is_open = np.isinf(distances).any(axis=-1)
            finite = np.where(is_open[..., None], 0.0, distances)
            square = np.einsum("...i,...ij,...j->...", finite, correlations, finite)
            reach.append(np.where(is_open, np.inf, np.maximum(np.sqrt(np.maximum(square, 0)), least)))
        return np.maximum(middle - reach[0], ends[0]), np.minimum(middle + reach[1], ends[1])

    def _unseen(self, cells: Codes, weights: Floats, tail: Floats) -> Floats:
        """How far a sum may be off though no cluster shows it; 0 of a rate alone, and where clusters have several
        trials.

        Take G clusters with a single trial on each rate, none of which shows a difference. By chance ``tail`` this
        happens even if a share of up to 1 - tail ** (1 / G) of all clusters shows one (Clopper, Pearson 1934, of 0
        among G). The standard error is 0 there, so that without this the interval would have no width.
        """
        clusters = self.clusters[:2, cells].max(axis=0)
        are_single = (self.trials[cells] == clusters).all(axis=-1) & (len(weights) > 1)
        share = 1 - tail ** (1 / np.maximum(clusters.min(axis=-1), 1))
        return np.where(are_single, np.abs(weights).max() * share, 0.0)

    def _correlations(self, cells: Codes, signs: Floats) -> Floats:
        """Correlations [..., m, m] of the errors of each two rates in a sum, -1 to 1, with the signs of their weights.

        The covariance is half of what the variance of both together exceeds their own variances by. So it comes from
        variances, which are never below 0, and not from the products themselves, whose sign may flip when clustered
        variances are added and subtracted."""
        products = self._products(cells) * np.outer(signs, signs)
        single = np.einsum("g...ii->g...i", products)
        with_other = _total(single[..., :, None] + single[..., None, :] + 2 * products)
        variance = np.einsum("...ii->...i", with_other) / 4
        size = np.sqrt(variance[..., :, None] * variance[..., None, :])
        with np.errstate(invalid="ignore", divide="ignore"):
            correlations = (with_other - variance[..., :, None] - variance[..., None, :]) / (2 * size)
        clipped = np.where(size > 0, np.clip(correlations, -1, 1), 0.0)
        return np.where(np.eye(len(signs), dtype=bool), 1.0, clipped)

    def _products(self, cells: Codes) -> Floats:
        return self.products[:, cells[..., :, None], cells[..., None, :]]


def _joint(variances: Floats, freedom: Floats, overlap: Floats) -> Floats:
    """Satterthwaite's degrees of freedom [...] of a sum of ``variances`` [..., m] with ``freedom`` [..., m].

    ``overlap`` [..., m, m] is 0 of two rates without a common cluster, 1 of rates of the same clusters, which then
    count as a single one."""
    part = variances / np.sqrt(freedom)
    return np.asarray(variances.sum(axis=-1) ** 2 / np.einsum("...i,...ij,...j->...", part, overlap, part))


def _total(variances: Floats) -> Floats:
    """The variance [...] from its parts [7, ...] in the order of :data:`DIMENSIONS`, never below one of judges, stimuli
    or people."""
    judges, stimuli, both, people, by_judge, on_stimulus, of_all_three = variances
    total = np.maximum(judges + stimuli - both, np.maximum(judges, stimuli))
    total = np.maximum(total + people - by_judge - on_stimulus + of_all_three, np.maximum(total, people))
    return np.where(total < ROUNDING**2, 0.0, total)


def mean(sums: Floats) -> Floats:
    """The weighted mean, from sums [2, cells] of weights and of weighted verdicts."""
    return np.asarray(sums[1] / sums[0])


def rates(right: Floats, cells: Cells, clusters: Clusters, drawn: Drawn | None = None) -> Jackknife:
    """The rates of ``right`` verdicts [verdicts] in ``cells``, which may overlap; NaN of none."""
    return jackknife(np.stack([cells, cells * right]), mean, clusters, drawn)


def of_judges(cells: Cells, judges: Codes) -> Floats:
    """Weights [cells, verdicts] with which each judge counts once in a cell, whatever the number of verdicts."""
    number = np.array([np.bincount(judges, cell)[judges] for cell in cells])
    return np.asarray(cells / np.maximum(number, 1))


def jackknife(terms: Floats, estimate: Estimator, clusters: Clusters, drawn: Drawn | None = None) -> Jackknife:
    """What ``estimate`` makes of sums over verdicts, and how it changes when one cluster is left out.

    ``terms`` [terms, cells, verdicts] are summed over verdicts; the first term is a verdict's weight in a cell.
    ``estimate`` takes sums [terms, cells] and gives values [cells]; it also gets sums [terms, cells, clusters], each
    without one cluster. ``drawn`` [3, cells or 1] says which dimensions have several clusters; by default it is as in
    these verdicts."""
    cells: Cells = np.asarray(terms.any(axis=0))
    total = terms.sum(axis=-1)
    is_drawn_in = np.broadcast_to(clusters.drawn() if drawn is None else drawn, (3, terms.shape[1]))
    wide = np.where(cells, clusters.wider, 1.0).max(axis=1, initial=1.0)
    numbers = []
    freedom = []
    products = []
    shared = []
    with np.errstate(invalid="ignore", divide="ignore"):
        value = estimate(total)
        for dimensions in DIMENSIONS:
            is_drawn = np.all(is_drawn_in[list(dimensions)], axis=0)
            if len(dimensions) > 1 and not is_drawn.any():
                products.append(np.zeros((len(value), len(value))))
                continue
            codes, verdicts = clusters.intersections(dimensions)
            size = int(codes.max(initial=-1)) + 1
            sums = np.array([[np.bincount(codes, row[verdicts], size) for row in term] for term in (*terms, cells)])
            number = (sums[-1] > 0).sum(axis=1)
            is_drawn &= number > 0
            left = estimate(total[..., None] - sums[:-1]) - value[:, None]
            left = np.where(is_drawn[:, None], left * (wide * np.sqrt(1 - 1 / number))[:, None], 0.0)
            products.append(left @ left.T)
            if len(dimensions) == 1:
                shares = np.where(is_drawn[:, None], sums[0] / sums[0].sum(axis=1, keepdims=True), 0.0)
                shared.append(shares @ shares.T)
                effective = np.where(number > 1, np.maximum(1 / np.diag(shared[-1]) - 1, 1), np.nan)
                freedom.append(np.where(is_drawn, effective, np.inf))
                numbers.append(number.astype(np.float64))
    freedom_by_dimension = np.array(freedom)
    number = cells.sum(axis=1)
    clusters_by_dimension = np.array(numbers)
    # verdicts of a judge, on a stimulus, on a person's answers
    are_single = (clusters_by_dimension == number) & (number > 1)
    exact_by_dimension = ~is_drawn_in | are_single | (clusters_by_dimension == 0)
    is_exact = exact_by_dimension.all(axis=0) & are_single[:2].any(axis=0) & (wide == 1)
    freedom_by_dimension[:, np.isinf(freedom_by_dimension).all(axis=0)] = np.nan
    return Jackknife(
        value,
        number.astype(np.float64),
        clusters.trials_in(cells),
        clusters_by_dimension,
        freedom_by_dimension,
        np.array(shared),
        np.array(products),
        is_exact,
    )


def exact(rate: Floats, number: Floats, tail: Floats, less: float = 0.0) -> tuple[Floats, Floats]:
    """The ends of the interval of a ``rate`` of ``number`` independent verdicts, with ``tail`` beyond each (Clopper,
    Pearson 1934); NaN of no verdicts. With ``less`` 0.5 they are Jeffreys' (Brown, Cai, DasGupta 2001)."""
    right = rate * number
    wrong = (1 - rate) * number
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, betaincinv(right + less, wrong + 1 - less, tail), 0.0)
        high = np.where(wrong > 0, betainccinv(right + 1 - less, wrong + less, tail), 1.0)
    is_known = number > 0
    return np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)
