"""Rates of right verdicts on people's answers, corrected for answers that the participants did not write.

**With traces** each answer has a probability to be foreign. The corrected p(H|H) is that of own answers, the end of a
line (:mod:`judging.contamination.line`). Where no answer may be foreign it is the plain one, with its interval.

**With a known rate** c nobody knows which answers are foreign. They are then taken to be judged as the answers of
stated agents are: p(H|H) = (observed - c p(H|M)) / (1 - c), as for a prevalence with a known error (Rogan, Gladen
1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judging.contamination.line import Line, fitted_line, joined, shifts, student, with_errors
from judging.statistics.jackknife import (
    CONFIDENCE,
    Cells,
    Clusters,
    Codes,
    Floats,
    Jackknife,
    jackknife,
    mean,
    of_judges,
)
from judging.statistics.measures import DETECTABILITY
from judging.statistics.tables import NO_FIGURE, Estimate

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
    plain = jackknife(np.stack([weights, weights * right]), mean, clusters)
    lines = [fitted_line(weights[0], right, of_rate) for of_rate in posterior]
    moves = shifts(lines, cells[0], clusters)
    line = lines[0]
    human = line.within(float(plain.number[0]))
    low, high = np.clip([of_end.own for of_end in lines[1:3]], 0, 1).tolist()
    foreign = float(np.clip(line.foreign, 0, 1))
    rows = []
    for agent in range(1, len(cells)):
        machine = float(plain.value[agent])
        whole = (human + machine) / 2
        p_human = _interval(plain, np.array([0]), np.ones(1))
        pair = np.array([0, agent])
        detectability = _interval(plain, pair, DETECTABILITY)
        within = _interval(plain, pair, DETECTABILITY, WITHIN)
        if line.has_slope:
            both = _half_of_both(line, fitted_line(weights[agent], right))
            result = with_errors((human, whole), (line, both), clusters)
            if not math.isnan(p_human[0]):
                p_human = student(result, 0, CONFIDENCE)
            if not math.isnan(detectability[0]):
                detectability = student(result, 1, CONFIDENCE)
                within = student(result, 1, WITHIN)
        rows.append(
            Corrected(
                joined(human, p_human, moves[:2]),
                joined(whole, detectability, moves[:2], 0.5),
                joined(whole, within, moves[2:], 0.5),
                foreign,
                (low, high, (low + machine) / 2, (high + machine) / 2),
            )
        )
    return rows


def _half_of_both(line: Line, of_agent: Line) -> Line:
    """The mean of both values at 0, which is detectability."""
    weights = (line.weights + of_agent.weights) / 2
    errors = (line.errors + of_agent.errors) / 2
    return Line((line.own + of_agent.own) / 2, math.nan, weights, errors)


def _interval(plain: Jackknife, cells: Codes, weights: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """That of a plain sum; NaN where it has none, as of a single judge among several."""
    low, high = plain.interval(cells, weights, confidence)
    return float(low), float(high)


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
    result = jackknife(np.stack([weights, weights * right]), mean, clusters)
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
