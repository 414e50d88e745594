"""How correctness goes with an ordered column, such as a conversation's length, as the papers test it: for these
answers only."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.statistics.contrasts import StatisticalTest
from judging.statistics.jackknife import Codes, Floats
from judging.statistics.log_odds import HALF, slope_of_log_odds
from judging.statistics.tables import Estimate
from judging.statistics.verdict_table import on_trials
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

# of Wilcoxon's test; of a line and what is beside it
LEAST_JUDGES = 6
LEAST_VALUES = 3
DIGITS = 12  # of slopes over the whole range, which rounding must not part
TYPE = "meta.type"  # of a conversation: H-H, H-M, M-M
SEPARATED = "exact regression of log odds: a value separates right from wrong verdicts"


@dataclass(slots=True, kw_only=True)
class Trend(StatisticalTest):
    """How the share of right verdicts goes with an ordered column, by one of three tests.

    In the test of residuals the change is the share at the largest value, minus that of the line through the others.
    Where a value
    of the column separates right from wrong verdicts see :func:`judging.statistics.log_odds.slope_of_log_odds`."""

    column: str
    """The name of the column."""
    measure: str
    """The share right: "p(H|H)" of people's answers, or "p(M|M)" of machines' answers."""
    type: str
    """The conversations' type, such as "H-M"; "all" for all of them."""
    change: Estimate
    """By 1 of the column: of the share right, or of its log odds, infinite where a value separates the verdicts."""


def trends(verdicts: pd.DataFrame, column: str) -> list[Trend]:
    """The tests of p(H|H) and p(M|M) over a column of numbers, in all conversations and in each type.

    There are three tests (2025 paper, L227 to 243 and L344). Two go over judges, by Wilcoxon's signed ranks: the slope
    of each judge's verdicts, and the residual of the largest value. The third is the slope of all judges' log odds, by
    regression with binomial weights. A trial counts once for a trained judge, with the mean of its partitions and seeds
    (L1311). What cannot be tested says why."""
    needed = [name for name in ("judge", "trial", "part", "truth", "verdict", TYPE) if name in verdicts.columns]
    counting = verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()
    judged = on_trials(verdicts.loc[counting, list(dict.fromkeys([*needed, column]))], column)
    values = judged[column].unique()
    if len(values) < LEAST_VALUES or not all(isinstance(value, Real) for value in values):
        return []
    types = sorted(judged[TYPE].dropna().unique()) if TYPE in judged.columns else []
    tests = []
    for kind in ["all", *types]:
        of_kind = judged if kind == "all" else judged[judged[TYPE] == kind]
        for truth, measure in (("human", "p(H|H)"), ("machine", "p(M|M)")):
            part = of_kind[of_kind["truth"] == truth]
            if part[column].nunique() >= LEAST_VALUES:
                place = {"column": column, "measure": measure, "type": kind}
                tests += _tests(part["judge"].to_numpy(), part[column].to_numpy(float), part["right"].to_numpy(), place)
    return tests


def _tests(judges: np.ndarray, values: Floats, answered: Floats, place: dict[str, Any]) -> list[Trend]:
    """The tests of what judges ``answered`` rightly [trials] at ``values``.

    ``place`` is where the tests stand: column, measure and type.

    Lines are fitted over 0 to 1, the least and the largest value, and their slopes put back into the column's units
    after the test. Otherwise a slope by the millisecond, 1e-10, would be lost where slopes are rounded."""
    largest = values.max()
    reach = float(np.ptp(values))
    places = (values - values.min()) / reach
    names, judge = np.unique(judges, return_inverse=True)
    is_below = values < largest
    slopes, _ = _lines(places, answered, judge, len(names))
    rise, start = _lines(places[is_below], answered[is_below], judge[is_below], len(names))
    beyond = np.bincount(judge[~is_below], minlength=len(names))
    with np.errstate(invalid="ignore"):
        share = np.bincount(judge[~is_below], answered[~is_below], len(names)) / beyond
    residuals = share - (start + rise)
    return [
        _of_judges("slopes", slopes[~np.isnan(slopes)], place, reach),
        _of_judges(f"residuals at {largest:.15g}", residuals[~np.isnan(residuals)], place),
        _of_log_odds(values, answered, place),
    ]


def _lines(places: Floats, answered: Floats, judge: Codes, number: int) -> tuple[Floats, Floats]:
    """The line of least squares through each judge's trials: its slope and its value at 0 [number].

    ``judge`` [trials] says whose a trial is. Both are NaN of a judge with a single place, or none. Two thousand judges
    have four thousand lines; numpy.polyfit takes one at a time."""
    trials = np.bincount(judge, minlength=number)
    with np.errstate(invalid="ignore"):
        mean_place = np.bincount(judge, places, number) / trials
        mean_answer = np.bincount(judge, answered, number) / trials
    distance = places - mean_place[judge]
    squares = np.bincount(judge, distance**2, number)
    products = np.bincount(judge, distance * (answered - mean_answer[judge]), number)
    least = np.full(number, np.inf)
    most = np.full(number, -np.inf)
    np.minimum.at(least, judge, places)
    np.maximum.at(most, judge, places)
    slope = np.full(number, np.nan)
    np.divide(products, squares, out=slope, where=most > least)
    return slope, mean_answer - slope * mean_place


def _of_judges(name: str, figures: Floats, place: dict[str, Any], unit: float = 1.0) -> Trend:
    """Wilcoxon's signed ranks of a figure of each judge. They are rounded first: the line through equal answers has a
    slope of 1e-17, which is none. Their mean is divided by ``unit``."""
    from scipy.stats import wilcoxon

    rounded = np.round(figures, DIGITS)
    mean = Estimate(float(rounded.mean()) / unit if len(figures) else np.nan, form="+.4f").significant()
    test = Trend(test=f"Wilcoxon, {name} of judges", change=mean, judges=len(figures), **place)
    if len(figures) < LEAST_JUDGES:
        return test.fails(f"{name} of {LEAST_JUDGES} judges are needed")
    if not rounded.any():
        return test.fails(f"{name} are 0 of every judge")
    test.p = float(wilcoxon(rounded).pvalue)
    return test


def _of_log_odds(values: Floats, answered: Floats, place: dict[str, Any]) -> Trend:
    test = Trend(test="binomial regression of log odds", change=Estimate(form="+.4f"), **place)
    slope = slope_of_log_odds(values, answered)
    if slope is None:
        every = "right" if answered.mean() > HALF else "wrong"
        return test.fails(f"every verdict is {every}, so that log odds have no slope")
    test.change = slope.change
    test.p = slope.p
    if slope.is_separated:
        test.test = SEPARATED
    return test
