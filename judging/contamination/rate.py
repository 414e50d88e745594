"""The contamination rate: which share of participants' answers was not written by the participant, and how sure we are.

**How it reads.** Each answer has a few marks, yes or no (:mod:`judging.contamination.marks`). A *class* is a kind of
answer: "own" or "foreign". :func:`estimate_rate` fits the two classes (:mod:`judging.contamination.latent_classes`) at
all rates of a grid at once, and finds those that fit.

**Why this way.** A person who pastes often, and one who often leaves the page, is one person: their answers are no
independent ones. So the likelihood of single answers gives the estimates alone. Its ratio is divided by how much more
the score varies between persons than between independent answers (Rotnitzky, Jewell 1990), rate by rate. What is
within, by Student's t, is the interval. Its degrees of freedom are the effective number of persons with foreign answers
(Kish 1965) minus 1: where 15 of 150 persons paste, 15 say how often.

**At rate 0** the s_k mean nothing, and the ratio has no chi-squared distribution. The best foreign class is sought,
and found where there is none. The ratio is compared with that of a mixture of chi-squared distributions
(chi-bar-squared; Chernoff 1954; Self, Liang 1987): one for each two marks that may go together, and with a laboratory
one more for each mark. :func:`least_ratio_at_zero` is the threshold. With that of other rates contamination would be
found where there is none. Who changes a line here runs ``scripts/simulate_contamination.py``.

**For corrections** it matters which of these answers are foreign, not which share of all answers that might be. The
rate's interval holds both. :attr:`Rate.posterior` has the first by itself: its rates lie as much closer to the estimate
as the estimate lies closer to the share of these answers than to that of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, gammaincinv, stdtrit

from judging.contamination.latent_classes import (
    Counts,
    Fit,
    Floats,
    Marks,
    between,
    efficient_score,
    fitted,
    maximum,
)
from judging.statistics.tables import NO_FIGURE, Estimate

CONFIDENCE = 0.95
NARROW = 2 * CONFIDENCE - 1
# Rates that are tried: from 0, close together where rates are small.
GRID: Floats = np.concatenate([[0.0], np.geomspace(0.002, 0.02, 7)[:-1], np.geomspace(0.02, 0.95, 40)])
LEAST_PERSONS = 10
LEAST_MARKED = 5  # answers with a mark, and without it: otherwise the mark tells nothing
WIDEST = 0.8  # a wider interval of the rate says nothing, and no figure is given


@dataclass(frozen=True, slots=True)
class Rate:
    """The contamination rate with its interval, and the probability of each pattern of marks to be foreign."""

    estimate: Estimate = NO_FIGURE
    """The rate, 0 to 1, with its 95 % interval; NaN where it cannot be estimated."""
    narrow: Estimate = NO_FIGURE
    """The same with its 90 % interval."""
    own: Floats = field(default_factory=lambda: np.zeros(0))
    """[marks] f_k, the share of own answers with the mark."""
    foreign: Floats = field(default_factory=lambda: np.zeros(0))
    """[marks] s_k, the share of foreign answers with the mark."""
    rates: Floats = field(default_factory=lambda: np.zeros(0))
    """[7] the rate itself, the ends of its 95 % interval, then those of the 95 % and of the 90 % interval of the share
    of these answers that is foreign."""
    posterior: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """[7, patterns] the probability of answers with each pattern to be foreign, at each of ``rates``."""
    why: str = ""
    """Why there is no figure; "" where there is one."""

    @property
    def is_contaminated(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.estimate.low > 0


def estimate_rate(counts: Counts) -> Rate:
    """The contamination rate of the answers in ``counts``; without a figure where marks cannot tell."""
    persons = int((counts.field.sum(axis=1) > 0).sum())
    if persons < LEAST_PERSONS:
        return Rate(why=f"fewer than {LEAST_PERSONS} participants have answers with traces")
    used = telling(counts)
    if used.sum() < 2:
        return Rate(why="fewer than two marks tell answers apart: two are needed at least")
    marks = Marks(counts, used)
    grid = fitted(marks, GRID)
    best = maximum(marks, grid)
    ratio = np.maximum(2 * (best.likelihood - grid.likelihood), 0.0)
    foreign = grid.foreign.copy()
    foreign[0] = best.foreign[0]  # at rate 0 there are none of its own
    scaled = ratio / efficient_score(marks, counts, grid, foreign).spread
    freedom = _freedom(counts.field @ best.posterior[0])
    nothing = least_ratio_at_zero(int(used.sum()), bool(counts.laboratory.any()))
    nothing *= _threshold(freedom, CONFIDENCE) / _threshold(np.inf, CONFIDENCE)
    value = float(best.rate[0])
    ends = []
    for confidence in (CONFIDENCE, NARROW):
        threshold = _threshold(freedom if scaled[0] > nothing else persons - 1, confidence)
        ends += [*_ends(scaled, threshold, nothing, value)]
    low, high, low_90, high_90 = ends
    if high - low > WIDEST:
        why = f"the marks do not tell apart: any rate from {100 * low:.0f} to {100 * high:.0f} % fits"
        return Rate(why=why)
    closer = value + _of_these(marks, counts, best) * (np.array(ends) - value)
    rates = np.concatenate([[value, low, high], closer])
    near = np.abs(GRID - rates[1:, None]).argmin(axis=1)
    start = Fit(rates[1:], grid.own[near], grid.foreign[near], grid.likelihood[near], grid.posterior[near])
    at_ends = fitted(marks, rates[1:], start=start)
    own = np.full(len(used), np.nan)
    foreign = np.full(len(used), np.nan)
    own[used] = best.own[0]
    foreign[used] = best.foreign[0]
    posterior = np.concatenate([best.posterior, at_ends.posterior])
    return Rate(Estimate(value, low, high), Estimate(value, low_90, high_90), own, foreign, rates, posterior)


def _threshold(freedom: float, confidence: float) -> float:
    """The square of Student's t."""
    return float(stdtrit(freedom, (1 + confidence) / 2)) ** 2


def _of_these(marks: Marks, counts: Counts, best: Fit) -> float:
    """How far the estimate lies from the share of these answers that is foreign, in parts of how far it lies from
    that of all answers that might be: 0 where marks tell each answer's class, 1 where they tell little.

    The estimate's error is the sum of scores over answers, divided by the information. That of the share of these
    answers is the sum of (class - c) / n. Given the marks, a class has mean pi and variance pi (1 - pi)."""
    rate = float(best.rate[0])
    if rate == 0:
        return 1.0
    score = efficient_score(marks, counts, best, best.foreign)
    if score.variance[0] <= 0:
        return 1.0
    information = score.information[0]
    number = marks.number.sum()
    share = best.posterior[0]
    apart = score.field / information - (share - rate) / number
    variance = between(apart, counts.field) + between(score.laboratory / information, counts.laboratory)
    variance += marks.number @ (share * (1 - share)) / number**2
    return float(np.sqrt(min(1.0, float(variance[0]) * information**2 / float(score.variance[0]))))


def telling(counts: Counts) -> NDArray[np.bool_]:
    """Which marks [marks] stand on some answers and are missing on others, so that they may tell answers apart."""
    number = counts.field.sum(axis=0)
    with_mark = number @ np.nan_to_num(counts.patterns)
    known = number @ ~np.isnan(counts.patterns)
    return np.asarray((with_mark >= LEAST_MARKED) & (known - with_mark >= LEAST_MARKED))


def least_ratio_at_zero(marks: int, has_laboratory: bool) -> float:
    """The likelihood ratio from which a rate of 0 is left out, at 0.05.

    With independent marks each of the 2^K - 1 - K interactions of K marks may seem positive by chance, half of the
    time. A laboratory adds the K marks themselves. The ratio is at most the sum of the squares of positive ones, which
    is chi-squared of m degrees of freedom with the probability of m heads (Self, Liang 1987, case 9)."""
    directions = marks * (marks - 1) // 2
    if has_laboratory:
        directions += marks
    heads = np.arange(1, directions + 1)
    weights = np.array([math.comb(directions, m) for m in heads]) / 2.0**directions
    low = 0.0
    high = 2 * float(gammaincinv(directions / 2, CONFIDENCE))
    for _ in range(60):
        middle = (low + high) / 2
        if weights @ chdtrc(heads, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _freedom(foreign: Floats) -> float:
    """The degrees of freedom: the effective number of persons with answers that seem foreign, minus 1.

    ``foreign`` [persons] are their numbers of such answers. One person with several answers of two marks each is no
    evidence that others paste."""
    if not foreign.any():
        return float(len(foreign) - 1)
    return max(float(foreign.sum() ** 2 / (foreign**2).sum()) - 1, 1.0)


def _ends(scaled: Floats, threshold: float, at_zero: float, best: float) -> tuple[float, float]:
    """The least and largest rate that fit: where the square root of the ratio crosses that of the threshold."""
    root = np.sqrt(scaled)
    limit = math.sqrt(threshold)
    inside = np.flatnonzero(root <= limit)
    if len(inside) == 0:  # the best rate lies between two rates of the grid
        nearest = int(np.argmin(np.abs(GRID - best)))
        inside = np.array([nearest])
        root = root.copy()
        root[nearest] = 0.0
    first = int(inside[0])
    last = int(inside[-1])
    low = 0.0 if first == 0 or scaled[0] <= at_zero else _crossing(first, first - 1, root, limit)
    high = GRID[-1] if last == len(GRID) - 1 else _crossing(last, last + 1, root, limit)
    return min(low, best), max(float(high), best)


def _crossing(inside: int, outside: int, root: Floats, limit: float) -> float:
    part = (limit - root[inside]) / (root[outside] - root[inside])
    return float(GRID[inside] + part * (GRID[outside] - GRID[inside]))
