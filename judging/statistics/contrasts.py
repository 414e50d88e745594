"""Tests of rates and detectability where judges, stimuli and people are all drawn.

The variance is that of :mod:`judging.statistics.jackknife`.

They hold for others like these, and for these agents. Each judge counts once in a rate. Without a test, ``test`` says
why ("no test: …") and ``p`` is None.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from scipy.special import stdtr, stdtrit

from judging.statistics.jackknife import CONFIDENCE, ROUNDING, Cells, Codes, Floats, Jackknife, jackknife, of_judges
from judging.statistics.measures import BETWEEN, DETECTABILITY, clusters, is_right, on_common_trials, rates_of_judges
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.statistics.verdict_table import AND, by_judge, counted
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05


@dataclass(slots=True, kw_only=True)
class StatisticalTest:
    """A test of a task's verdicts by one judge, or by all people; without a test ``p`` is None."""

    judge: str | None = None
    """Whose verdicts they are; "people" are all people together. None where the test is between judges."""
    test: str = ""
    """The test's name, or over what it generalizes; without a test why ("no test: …")."""
    judges: int | None = None
    """How many judges, the fewest of the rates that are tested; None where they are not counted."""
    stimuli: int | None = None
    """How many stimuli, likewise."""
    people: int | None = None
    """How many people who answered, likewise; None without people's answers."""
    p: float | None = None
    """The probability, 0 to 1, of at least such an effect, to either side, if there were none."""
    holm: float | None = None
    """``p`` corrected by Holm (1979) for the ``family``."""
    family: int | None = None
    """How many tests were corrected together."""

    def fails(self, why: str) -> Self:
        """This row, which now says why there is no test."""
        self.test = f"no test: {why}"
        return self


T = TypeVar("T", bound=StatisticalTest)


@dataclass(slots=True, kw_only=True)
class AgainstPeople(StatisticalTest):
    """``difference`` is P(agent judged human) − P(person judged human), which is 1 − 2 × detectability.

    ``bounds`` is the smallest half-width around 0.5 that holds the 90 % interval of detectability. ``holm_within`` is p
    of a detectability beyond the stated bounds, corrected as ``holm``; the agent ``passes`` where it is at most 0.05,
    and None without stated bounds."""

    agent: str
    """The agent whose answers stand beside people's."""
    difference: Estimate
    bounds: float
    holm_within: float | None = None
    passes: bool | None = None


@dataclass(slots=True, kw_only=True)
class AgainstHalf(StatisticalTest):
    """A ``rate``, p(H|H) of people's answers or p(M|M) of an agent's (``measure``), beside a half.

    ``of`` is "people" or the agent; ``result`` says in words on which side the rate lies, if that is decided."""

    of: str
    measure: str
    rate: Estimate
    result: str = ""


@dataclass(slots=True, kw_only=True)
class Difference(StatisticalTest):
    """The ``difference`` of p(M|M) between two agents, or of detectability between two judges on ``trials`` that both
    judged: the first's minus the second's."""

    first: str
    """The agent or judge whose figure is the larger where ``difference`` is positive."""
    second: str
    """The agent or judge whose figure is subtracted."""
    difference: Estimate
    trials: int | None = None


@dataclass(slots=True, kw_only=True)
class ByColumn(StatisticalTest):
    """Detectability at one value of a column, beside other values of it."""

    column: str
    """The column's name, without "meta."."""
    value: str
    """The value; "slope" for a column of more than two numbers."""
    beside: str
    """The other value, or "the others"; "" for a slope."""
    difference: Estimate
    """Detectability at ``value`` minus that ``beside`` it, -1 to 1; of a slope, its change by 1 of the column. Of a
    column that only people's answers have, p(H|H) takes the place of detectability, and ``test`` says so."""


def judge_tests(
    verdicts: pd.DataFrame, agents: Sequence[str], by: Sequence[str], bounds: float | None = None
) -> dict[str, list[StatisticalTest]]:
    """The tests of a task's ``verdicts``, of all phases, by kind: those of :func:`agent_tests` and ``by_columns``,
    judge by judge. People are not compared with each other.

    ``by`` are the columns that verdicts are told apart by. ``bounds`` were stated beforehand."""
    tests: dict[str, list[StatisticalTest]] = defaultdict(list)
    for judge, of_phases in by_judge(verdicts):
        by_columns = corrected([test for name in by for test in by_column(counted(of_phases, name), name)])
        kinds = {**agent_tests(counted(of_phases), agents, bounds), "by_columns": by_columns}
        for name, of_kind in kinds.items():
            tests[name] += [replace(test, judge=judge) for test in of_kind]
    return tests


def agent_tests(
    verdicts: pd.DataFrame, agents: Sequence[str], bounds: float | None = None
) -> dict[str, Sequence[StatisticalTest]]:
    """Tests of a judge's ``verdicts`` by kind: ``against_people`` (each agent beside people), ``against_half`` (p(H|H)
    and p(M|M) beside 0.5), ``between_agents`` (every two agents by p(M|M)).

    An agent passes whose detectability is within ``bounds`` of 0.5 by two one-sided tests at 0.05 (Schuirmann 1987),
    corrected by Holm over agents. Without ``bounds``, nobody is said to pass."""
    names, result = rates_of_agents(verdicts, agents)
    is_known = np.arange(len(names)) if result.number[0] else np.arange(1, len(names))
    halves = [
        AgainstHalf(of=names[at], measure="p(M|M)" if at else "p(H|H)", **figures)
        for at, figures in zip(is_known, _tested(result, is_known[:, None], np.ones(1), 0.5, field="rate"), strict=True)
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
        beyond = beyond_bounds(result, both, bounds).tolist()
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


def rates_of_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> tuple[list[str], Jackknife]:
    """The mean judge's rates of people's answers and of those of each of ``agents`` that was judged, with the names of
    the rates: "people", then agents."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    is_machine = (judged["truth"] == "machine").to_numpy()
    whose = {agent: is_machine & (judged["agent"] == agent).to_numpy() for agent in agents}
    cells = {"people": ~is_machine} | {agent: cell for agent, cell in whose.items() if cell.any()}
    return list(cells), rates_of_judges(is_right(judged), np.array(list(cells.values())), clusters(judged))


def beyond_bounds(result: Jackknife, both: Codes, bounds: float) -> Floats:
    """p [...] of detectabilities that lie beyond 0.5 ± ``bounds``: the larger of two one-sided tests (Schuirmann 1987).
    ``both`` [..., 2] are the cells of people's answers and of an agent's."""
    sides = [result.p(both, DETECTABILITY, 0.5 + end) / 2 for end in (-bounds, bounds)]
    is_within = np.abs(result.sum(both, DETECTABILITY) - 0.5) < bounds
    return np.where(is_within, np.maximum(*sides), 1 - np.minimum(*sides))


def _tested(
    result: Jackknife, cells: Codes, weights: Floats, null: float = 0.0, plus: float = 0.0, field: str = "difference"
) -> list[dict[str, Any]]:
    """The sums [n] of rates in ``cells`` [n, m], ``plus`` a constant, tested against ``null``; fields of tests."""
    figures = np.array([result.sum(cells, weights), *result.interval(cells, weights)]) + plus
    tested = zip(figures.T, result.p(cells, weights, null - plus), cells, strict=True)
    form = "+.2f" if null == 0 else ".2f"
    return [
        {field: Estimate(float(value), float(low), float(high), form)} | _figures(float(p), result, of_sum)
        for (value, low, high), p, of_sum in tested
    ]


def _figures(p: float, result: Jackknife, cells: Codes) -> dict[str, Any]:
    judges, stimuli = map(int, result.clusters[:2, cells].min(axis=-1))
    people_of_cells = result.clusters[2, cells]
    people = int(people_of_cells[people_of_cells > 0].min(initial=np.inf)) if people_of_cells.any() else None
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
    verdicts_by_name = dict(by_judge(verdicts[verdicts["verdict"].isin(VERDICTS)]))
    tests = []
    for first, second in combinations(verdicts_by_name, 2):
        result, number = on_common_trials(verdicts_by_name[first], verdicts_by_name[second])
        [figures] = _tested(result, np.arange(4)[None], BETWEEN)
        tests.append(Difference(first=first, second=second, trials=number, **figures))
    return corrected(tests)


def by_column(verdicts: pd.DataFrame, column: str) -> list[ByColumn]:
    """Detectability at each value of a column minus detectability at the others; with more than two numbers, its slope.

    The slope is the mean of the least-squares slopes of p(H|H) and of p(M|M). Values are compared within each agent, so
    that a different mix of agents at a value cannot look like an effect. Only where the column names agents are they
    taken together. What is told about who answered, such as their age, is told of people alone: there p(H|H) is
    compared."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()]
    values = list(judged[column].unique())
    name = column.removeprefix("meta.")
    are_numbers = all(isinstance(value, Real) and not isinstance(value, bool) for value in values)
    values.sort(key=None if are_numbers else str)
    sides = _sides(judged, apart="agent" not in column.split(AND))
    if (judged["truth"] == "human").all():
        sides = sides[:1]
    if len(values) > 2 and are_numbers:
        return [_of_people(_slope(judged, sides, judged[column].to_numpy(dtype=np.float64), name), sides)]
    tests = []
    tested = values if len(values) > 2 else values[:-1]  # of two values one test says all
    for value in tested:
        is_it = (judged[column] == value).to_numpy()
        compared = [[part for part in side if (part & is_it).any() and (part & ~is_it).any()] for side in sides]
        test = ByColumn(
            column=name,
            value=str(value),
            beside=str(values[1]) if len(values) == 2 else "the others",
            difference=NO_FIGURE,
        )
        if all(compared):
            weights = _weights(compared)
            cells_at_both = list(chain.from_iterable(compared))
            cells = np.array([part & is_it for part in cells_at_both] + [part & ~is_it for part in cells_at_both])
            result = rates_of_judges(is_right(judged), cells, clusters(judged))
            [figures] = _tested(result, np.arange(len(cells))[None], np.concatenate([weights, -weights]))
            test = replace(test, **figures)
        else:
            test.fails("no agent is at both values" if compared[0] else "no people are at both values")
        tests.append(_of_people(test, sides))
    return tests


def _of_people(test: ByColumn, sides: Sequence[Sequence[Cells]]) -> ByColumn:
    """The test, which says if it is of people's answers alone."""
    if len(sides) == 1 and test.p is not None:
        test.test = f"p(H|H): {test.test}"
    return test


def _sides(judged: pd.DataFrame, apart: bool) -> list[list[Cells]]:
    """The verdicts on people's answers, and on each agent's; of pairs both are of each agent."""
    is_machine = (judged["truth"] == "machine").to_numpy()
    agent = judged["agent"].to_numpy()
    is_pair = "beside_agent" in judged.columns and judged["beside_agent"].notna().any()
    sides = []
    for truth, are_machines in ((~is_machine, False), (is_machine, True)):
        if apart and (is_pair or are_machines):
            sides.append([truth & (agent == name) for name in np.unique(agent[truth])])
        else:
            sides.append([truth])
    return sides


def _weights(sides: Sequence[Sequence[Cells]]) -> Floats:
    of_sides = DETECTABILITY if len(sides) > 1 else np.ones(1)  # of people's answers alone: p(H|H)
    return np.concatenate(
        [np.full(len(side), weight / len(side)) for side, weight in zip(sides, of_sides, strict=True)]
    )


def _slope(judged: pd.DataFrame, sides: Sequence[Sequence[Cells]], places: Floats, name: str) -> ByColumn:
    """Over the numbers ``places`` [verdicts] of a column. They are counted from the least, in parts of their range.
    The slope is then put back into the column's units: by the millisecond it is 1e-10, which would count as
    rounding."""
    compared = [[part for part in side if np.ptp(places[part])] for side in sides]
    test = ByColumn(column=name, value="slope", beside="", difference=NO_FIGURE)
    if not all(compared):
        return test.fails("each agent, or people, at a single value")
    reach = float(np.ptp(places))
    scaled = (places - places.min()) / reach
    drawn_from = clusters(judged)
    right = is_right(judged)
    cells = of_judges(np.array(list(chain.from_iterable(compared))), drawn_from.judges)
    away = scaled - (cells @ scaled)[:, None] / cells.sum(axis=1, keepdims=True)
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
    """Least-squares slopes from weighted ``sums``: Σplace², Σweight, Σplace, Σright, Σplace·right.

    A slope is NaN where all places are equal."""
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
    in_order = sorted((p, place) for place, p in enumerate(probabilities) if p is not None)
    least = 0.0
    adjusted = list[float | None]([None] * len(probabilities))
    for rank, (p, place) in enumerate(in_order):
        least = min(max(least, (len(in_order) - rank) * p), 1.0)
        adjusted[place] = least
    return adjusted
