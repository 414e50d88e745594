"""Tests of rates and detectability where judges and stimuli are both drawn, by :mod:`judging.two_way`.

They hold for other judges and stimuli like these. Without a test, ``test`` says why ("no test: …") and ``p`` is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from scipy.special import stdtr, stdtrit

from judging.measures import BETWEEN, DETECTABILITY, clusters, detectabilities, is_right, on_common_trials
from judging.tables import Estimate
from judging.trial_set import VERDICTS
from judging.two_way import CONFIDENCE, ROUNDING, Codes, Floats, TwoWay, rates, two_way
from judging.verdicts import by_judge

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05


@dataclass(slots=True, kw_only=True)
class Test:
    """``judges`` and ``stimuli`` are the fewest of a rate that is tested, ``holm`` is p corrected by Holm (1979) for a
    ``family`` of so many tests."""

    judge: str | None = None
    test: str = ""
    judges: int | None = None
    stimuli: int | None = None
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
    detectability. ``bounds`` are the smallest around 0.5 that hold the 90 % interval of detectability."""

    agent: str
    difference: Estimate
    bounds: float
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
    detectability is within ``bounds`` of 0.5 by two tests at 0.05, a side each (Schuirmann 1987)."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    is_machine = (judged["truth"] == "machine").to_numpy()
    whose = {agent: is_machine & (judged["agent"] == agent).to_numpy() for agent in agents}
    cells = {"people": ~is_machine} | {agent: cell for agent, cell in whose.items() if cell.any()}
    names, is_known = list(cells), np.arange(len(cells)) if (~is_machine).any() else np.arange(1, len(cells))
    result = rates(is_right(judged), np.array(list(cells.values())), *clusters(judged))
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
        word, side = "human" if half.of == "people" else "machine", "more" if half.rate.value > 0.5 else "less"
        is_open = half.holm is None or half.holm >= ALPHA
        half.result = "not decided" if is_open else f"says {word} of {side} than half"
    for test in corrected(people):
        test.passes = None if bounds is None or np.isnan(test.bounds) else test.bounds <= bounds
    pairs = np.array(list(combinations(range(1, len(names)), 2)), dtype=np.int64).reshape(-1, 2)
    between = [
        Difference(first=names[first], second=names[second], **figures)
        for (first, second), figures in zip(pairs, _tested(result, pairs, np.array([1.0, -1.0])), strict=True)
    ]
    corrected(between)
    return {"against_people": people, "against_half": halves, "between_agents": between}


def _tested(
    result: TwoWay, cells: Codes, weights: Floats, null: float = 0.0, plus: float = 0.0, of: str = "difference"
) -> list[dict[str, Any]]:
    """The sums [n] of rates in ``cells`` [n, m], ``plus`` a constant, tested against ``null``; fields of tests."""
    figures = np.array([result.sum(cells, weights), *result.interval(cells, weights)]) + plus
    tested = zip(figures.T, result.p(cells, weights, null - plus), cells, strict=True)
    form = "+.2f" if null == 0 else ".2f"
    return [
        {of: Estimate(float(value), float(low), float(high), form)} | _figures(float(p), result, of_sum)
        for (value, low, high), p, of_sum in tested
    ]


def _figures(p: float, result: TwoWay, cells: Codes) -> dict[str, Any]:
    judges, stimuli = map(int, result.clusters[:, cells].min(axis=-1))
    test = "judges and stimuli" if judges > 1 and stimuli > 1 else "judges" if judges > 1 else "stimuli, of this judge"
    if np.isnan(p):
        is_single = np.isnan(result.freedom[cells]).any() and judges != stimuli and min(judges, stimuli) == 1
        single = "judge" if judges == 1 else "stimulus"
        test = f"no test: a single {single} of several" if is_single else "no test: too few verdicts"
    return {"judges": judges, "stimuli": stimuli, "test": test, "p": None if np.isnan(p) else p}


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
    least-squares slopes of p(H|H) and of p(M|M)."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()]
    values, name = list(judged[column].unique()), column.removeprefix("meta.")
    are_numbers = all(isinstance(value, Real) and not isinstance(value, bool) for value in values)
    values.sort(key=None if are_numbers else str)
    if len(values) > 2 and are_numbers:
        return [_slope(judged, judged[column].to_numpy(dtype=np.float64), name)]
    tests = []
    for value in values[: len(values) if len(values) > 2 else len(values) - 1]:
        is_it = (judged[column] == value).to_numpy()
        result = detectabilities(judged, [is_it, ~is_it])
        beside = str(values[1]) if len(values) == 2 else "the others"
        [figures] = _tested(result, np.arange(4)[None], BETWEEN)
        tests.append(ByColumn(column=name, value=str(value), beside=beside, **figures))
    return tests


def _slope(judged: pd.DataFrame, places: Floats, name: str) -> ByColumn:
    is_machine = (judged["truth"] == "machine").to_numpy()
    cells = np.array([~is_machine, is_machine], dtype=np.float64)
    away = cells * (places - (cells @ places)[:, None] / np.maximum(cells.sum(axis=1, keepdims=True), 1))
    terms = np.stack([away**2, cells, away, cells * is_right(judged), away * is_right(judged)])
    result, both = two_way(terms, slopes, *clusters(judged)), np.arange(2)
    value, error = float(result.sum(both, DETECTABILITY)), float(result.deviation(both, DETECTABILITY))
    freedom = float(result.freedom.min())
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error if error else np.nan
    p = 2 * float(stdtr(freedom, -abs(value) / error)) if error else np.nan
    less = Estimate(value, value - half, value + half, "+.3f")
    return ByColumn(column=name, value="slope", beside="", difference=less, **_figures(p, result, both))


def slopes(sums: Floats) -> Floats:
    """By least squares, of sums of squares, ones, places, right verdicts and places of these; NaN of a single place."""
    square, number, place, right, product = sums
    spread = number * square - place**2
    return np.where(spread > ROUNDING * number * square, (number * product - place * right) / spread, np.nan)


def corrected(tests: list[T]) -> list[T]:
    """The tests with Holm's correction (1979) of those that have a p."""
    known = sorted((test for test in tests if test.p is not None), key=lambda test: test.p or 0.0)
    least = 0.0
    for at, test in enumerate(known):
        least = min(max(least, (len(known) - at) * (test.p or 0.0)), 1.0)
        test.holm, test.family = least, len(known)
    return tests
