"""Tests of rates and detectability where judges, stimuli and people are all drawn.

The variance is that of :mod:`judging.statistics.jackknife`.

They hold for others like these, and for these agents. Each judge counts once in a rate. Without a test, ``test`` says
why ("no test: …") and ``p`` is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from scipy.special import stdtr, stdtrit

from judging.statistics.jackknife import CONFIDENCE, ROUNDING, Cells, Codes, Floats, Jackknife, jackknife, of_judges
from judging.statistics.measures import BETWEEN, DETECTABILITY, clusters, is_right, on_common_trials, rates_of_judges
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.statistics.verdict_table import AND, by_judge
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05


@dataclass(slots=True, kw_only=True)
class Test:
    """``judges``, ``stimuli`` and ``people`` who answered are the fewest of a rate that is tested, ``holm`` is p
    corrected by Holm (1979) for a ``family`` of so many tests."""

    judge: str | None = None
    test: str = ""
    judges: int | None = None
    stimuli: int | None = None
    people: int | None = None
    p: float | None = None
    holm: float | None = None
    family: int | None = None

    def fails(self, why: str) -> Self:
        self.test = f"no test: {why}"
        return self


T = TypeVar("T", bound=Test)


@dataclass(slots=True, kw_only=True)
class AgainstPeople(Test):
    """The share of an agent's answers that are taken for a person's less that of people's, which is 1 less twice the
    detectability. ``bounds`` are the smallest around 0.5 that hold the 90 % interval of detectability,
    ``holm_within`` is p of a detectability beyond the stated bounds, corrected as ``holm``."""

    agent: str
    difference: Estimate
    bounds: float
    holm_within: float | None = None
    passes: bool | None = None


@dataclass(slots=True, kw_only=True)
class AgainstHalf(Test):
    of: str
    measure: str
    rate: Estimate
    result: str = ""


@dataclass(slots=True, kw_only=True)
class Difference(Test):
    """Of p(M|M) between agents, of detectability between judges on ``trials`` of both."""

    first: str
    second: str
    difference: Estimate
    trials: int | None = None


@dataclass(slots=True, kw_only=True)
class ByColumn(Test):
    """Detectability at a ``value`` less that ``beside`` it, or its slope: by how much it grows with 1 of the column."""

    column: str
    value: str
    beside: str
    difference: Estimate


def of_agents(verdicts: pd.DataFrame, agents: Sequence[str], bounds: float | None = None) -> dict[str, Sequence[Test]]:
    """Each agent beside people; p(H|H) and p(M|M) beside a half; every two agents by p(M|M). An agent passes whose
    detectability is within ``bounds`` of 0.5 by two tests at 0.05, a side each (Schuirmann 1987), corrected by Holm
    over agents."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    is_machine = (judged["truth"] == "machine").to_numpy()
    whose = {agent: is_machine & (judged["agent"] == agent).to_numpy() for agent in agents}
    cells = {"people": ~is_machine} | {agent: cell for agent, cell in whose.items() if cell.any()}
    names = list(cells)
    is_known = np.arange(len(cells)) if (~is_machine).any() else np.arange(1, len(cells))
    result = rates_of_judges(is_right(judged), np.array(list(cells.values())), clusters(judged))
    halves = [
        AgainstHalf(of=names[at], measure="p(M|M)" if at else "p(H|H)", **figures)
        for at, figures in zip(is_known, _tested(result, is_known[:, None], np.ones(1), 0.5, of="rate"), strict=True)
    ]
    both = np.array([(0, at) for at in range(1, len(names))], dtype=np.int64).reshape(-1, 2)
    low, high = result.interval(both, DETECTABILITY, 1 - 2 * ALPHA)
    people = [
        AgainstPeople(agent=name, bounds=float(reach), **figures)
        for name, reach, figures in zip(
            names[1:], np.fmax(0.5 - low, high - 0.5), _tested(result, both, -np.ones(2), plus=1), strict=True
        )
    ]
    for half in corrected(halves):
        word = "human" if half.of == "people" else "machine"
        side = "more" if half.rate.value > 0.5 else "less"
        is_open = half.holm is None or half.holm >= ALPHA
        half.result = "not decided" if is_open else f"says {word} of {side} than half"
    corrected(people)
    if bounds is not None:
        sides = [result.p(both, DETECTABILITY, 0.5 + end) / 2 for end in (-bounds, bounds)]
        is_within = np.abs(result.sum(both, DETECTABILITY) - 0.5) < bounds
        beyond = np.where(is_within, np.maximum(*sides), 1 - np.minimum(*sides)).tolist()
        for test, p in zip(people, holm([None if math.isnan(p) else p for p in beyond]), strict=True):
            test.holm_within = p
            test.passes = None if p is None else p <= ALPHA
    pairs = np.array(list(combinations(range(1, len(names)), 2)), dtype=np.int64).reshape(-1, 2)
    between = [
        Difference(first=names[first], second=names[second], **figures)
        for (first, second), figures in zip(pairs, _tested(result, pairs, np.array([1.0, -1.0])), strict=True)
    ]
    corrected(between)
    return {"against_people": people, "against_half": halves, "between_agents": between}


def _tested(
    result: Jackknife, cells: Codes, weights: Floats, null: float = 0.0, plus: float = 0.0, of: str = "difference"
) -> list[dict[str, Any]]:
    """The sums [n] of rates in ``cells`` [n, m], ``plus`` a constant, tested against ``null``; fields of tests."""
    figures = np.array([result.sum(cells, weights), *result.interval(cells, weights)]) + plus
    tested = zip(figures.T, result.p(cells, weights, null - plus), cells, strict=True)
    form = "+.2f" if null == 0 else ".2f"
    return [
        {of: Estimate(float(value), float(low), float(high), form)} | _figures(float(p), result, of_sum)
        for (value, low, high), p, of_sum in tested
    ]


def _figures(p: float, result: Jackknife, cells: Codes) -> dict[str, Any]:
    judges, stimuli = map(int, result.clusters[:2, cells].min(axis=-1))
    of_people = result.clusters[2, cells]
    people = int(of_people[of_people > 0].min(initial=np.inf)) if of_people.any() else None
    drawn = {"judges": judges > 1, "stimuli": stimuli > 1, "people": (people or 0) > 1}
    test = " and ".join(name for name, is_drawn in drawn.items() if is_drawn)
    if judges == 1:
        test += ", of this judge"
    if np.isnan(p):
        is_single = np.isnan(result.freedom[:, cells]).any() and not all(drawn.values()) and any(drawn.values())
        single = "judge" if judges == 1 else "stimulus" if stimuli == 1 else "person"
        test = f"no test: a single {single} of several" if is_single else "no test: too few verdicts"
    return {"judges": judges, "stimuli": stimuli, "people": people, "test": test, "p": None if np.isnan(p) else p}


def between_judges(verdicts: pd.DataFrame) -> list[Difference]:
    """Every two judges, people together, by detectability on the trials of both."""
    of_judge = dict(by_judge(verdicts[verdicts["verdict"].isin(VERDICTS)]))
    tests = []
    for first, second in combinations(of_judge, 2):
        result, number = on_common_trials(of_judge[first], of_judge[second])
        [figures] = _tested(result, np.arange(4)[None], BETWEEN)
        tests.append(Difference(first=first, second=second, trials=number, **figures))
    return corrected(tests)


def by_column(verdicts: pd.DataFrame, column: str) -> list[ByColumn]:
    """Detectability at each value less that at the others, or, of more than two numbers, its slope: the mean of the
    least-squares slopes of p(H|H) and of p(M|M). Each agent is compared with itself, so that other agents at a value
    are no difference, unless the column is of agents."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()]
    values = list(judged[column].unique())
    name = column.removeprefix("meta.")
    are_numbers = all(isinstance(value, Real) and not isinstance(value, bool) for value in values)
    values.sort(key=None if are_numbers else str)
    sides = _sides(judged, apart="agent" not in column.split(AND))
    if len(values) > 2 and are_numbers:
        return [_slope(judged, sides, judged[column].to_numpy(dtype=np.float64), name)]
    tests = []
    for value in values[: len(values) if len(values) > 2 else len(values) - 1]:
        is_it = (judged[column] == value).to_numpy()
        compared = [[of for of in side if (of & is_it).any() and (of & ~is_it).any()] for side in sides]
        test = ByColumn(
            column=name,
            value=str(value),
            beside=str(values[1]) if len(values) == 2 else "the others",
            difference=NO_FIGURE,
        )
        if all(compared):
            weights = _weights(compared)
            masks = [mask for side in compared for mask in side]
            cells = np.array([mask & part for part in (is_it, ~is_it) for mask in masks])
            result = rates_of_judges(is_right(judged), cells, clusters(judged))
            [figures] = _tested(result, np.arange(len(cells))[None], np.concatenate([weights, -weights]))
            test = replace(test, **figures)
        else:
            test.fails("no agent is at both values" if compared[0] else "no people are at both values")
        tests.append(test)
    return tests


def _sides(judged: pd.DataFrame, apart: bool) -> list[list[Cells]]:
    """The verdicts on people's answers, and on each agent's; of pairs both are of each agent."""
    is_machine = (judged["truth"] == "machine").to_numpy()
    agent = judged["agent"].to_numpy()
    is_pair = "beside_agent" in judged.columns and judged["beside_agent"].notna().any()
    return [
        [truth & (agent == name) for name in np.unique(agent[truth])] if apart and (is_pair or at) else [truth]
        for at, truth in enumerate((~is_machine, is_machine))
    ]


def _weights(sides: Sequence[Sequence[Cells]]) -> Floats:
    return np.concatenate(
        [np.full(len(side), weight / len(side)) for side, weight in zip(sides, DETECTABILITY, strict=True)]
    )


def _slope(judged: pd.DataFrame, sides: Sequence[Sequence[Cells]], places: Floats, name: str) -> ByColumn:
    """Over the numbers ``places`` [verdicts] of a column. They are counted from the least, in parts of their range, and
    the slope is put back into the column's units: by the millisecond it is 1e-10, which would count as rounding."""
    compared = [[of for of in side if np.ptp(places[of])] for side in sides]
    test = ByColumn(column=name, value="slope", beside="", difference=NO_FIGURE)
    if not all(compared):
        return test.fails("each agent, or people, at a single value")
    reach = float(np.ptp(places))
    parts = (places - places.min()) / reach
    drawn_from = clusters(judged)
    right = is_right(judged)
    cells = of_judges(np.array([of for side in compared for of in side]), drawn_from.judges)
    away = parts - (cells @ parts)[:, None] / cells.sum(axis=1, keepdims=True)
    terms = np.stack([cells * away**2, cells, cells * away, cells * right, cells * away * right])
    result = jackknife(terms, slopes, drawn_from)
    every = np.arange(len(cells))
    weights = _weights(compared)
    value = float(result.sum(every, weights))
    (error, freedom) = map(float, result.deviation(every, weights))
    if error == 0:
        slope = 0.0 if abs(value) < ROUNDING else value / reach
        difference = Estimate(slope, form="+.3f").significant()
        test = replace(test, difference=difference, **_figures(np.nan, result, every))
        return test.fails("the slope is the same without any judge, stimulus or person")
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(value) / error))
    difference = Estimate(value / reach, (value - half) / reach, (value + half) / reach, "+.3f").significant()
    return replace(test, difference=difference, **_figures(p, result, every))


def slopes(sums: Floats) -> Floats:
    """By least squares, of sums of squares, weights, places, right verdicts and their places; NaN of a single place."""
    square, number, place, right, product = sums
    spread = number * square - place**2
    return np.where(spread > ROUNDING * number * square, (number * product - place * right) / spread, np.nan)


def corrected(tests: list[T]) -> list[T]:
    """The tests with Holm's correction (1979) of those that have a p."""
    family = sum(test.p is not None for test in tests)
    for test, p in zip(tests, holm([test.p for test in tests]), strict=True):
        test.holm = p
        test.family = None if p is None else family
    return tests


def holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """Each p, or None, corrected by Holm (1979) for the number of those that are known."""
    known = sorted((p, at) for at, p in enumerate(probabilities) if p is not None)
    least = 0.0
    each = list[float | None]([None] * len(probabilities))
    for rank, (p, at) in enumerate(known):
        each[at] = least = min(max(least, (len(known) - rank) * p), 1.0)
    return each
