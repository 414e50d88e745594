"""How correctness goes with an ordered column, such as a conversation's length, as the papers test it: for these
answers only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.contrasts import Test
from judging.tables import Estimate
from judging.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

LEAST_JUDGES, LEAST_VALUES = 6, 3  # of Wilcoxon's test; of a line and what is beside it
DIGITS = 12  # of slopes, which rounding must not part
TYPE = "meta.type"  # of a conversation: H-H, H-M, M-M


@dataclass(slots=True, kw_only=True)
class Trend(Test):
    """``change`` is by 1 of the column: of the share right, or of its log odds. Of residuals it is the share at the
    largest value less that of the line through the others."""

    column: str
    measure: str
    type: str
    change: Estimate


def trends(verdicts: pd.DataFrame, column: str) -> list[Trend]:
    """Of p(H|H) and p(M|M), in all conversations and in each type: the slope of each judge's verdicts over the column's
    numbers, and the residual of its largest, both over judges by Wilcoxon's signed ranks; and the slope of all judges'
    log odds by regression with binomial weights (2025 paper, L227 to 243 and L344)."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()]
    values = judged[column].unique()
    if len(values) < LEAST_VALUES or not all(isinstance(value, Real) for value in values):
        return []
    types = sorted(judged[TYPE].dropna().unique()) if TYPE in judged.columns else []
    right = (judged["verdict"] == judged["truth"]).astype(float)
    tests = []
    for kind in ["all", *types]:
        of_kind = judged if kind == "all" else judged[judged[TYPE] == kind]
        for truth, measure in (("human", "p(H|H)"), ("machine", "p(M|M)")):
            part = of_kind[of_kind["truth"] == truth]
            if part[column].nunique() >= LEAST_VALUES:
                place = {"column": column, "measure": measure, "type": kind}
                tests += _tests(part["judge"].to_numpy(), part[column].to_numpy(float), right[part.index], place)
    return tests


def _tests(judges: np.ndarray, values: np.ndarray, right: pd.Series, place: dict[str, Any]) -> list[Trend]:
    from scipy.stats import wilcoxon
    from statsmodels.api import GLM, add_constant, families
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    answered, largest = right.to_numpy(), values.max()
    slopes, residuals = [], []
    for judge in np.unique(judges):
        of_judge = judges == judge
        below = of_judge & (values < largest)
        if np.ptp(values[of_judge]) > 0:
            slopes.append(np.polyfit(values[of_judge], answered[of_judge], 1)[0])
        if below.sum() and np.ptp(values[below]) > 0 and below.sum() < of_judge.sum():
            line = np.polyfit(values[below], answered[below], 1)
            residuals.append(answered[of_judge & ~below].mean() - np.polyval(line, largest))
    tests = []
    for name, each in (("slopes", slopes), (f"residuals at {largest:g}", residuals)):
        mean = Estimate(float(np.mean(each)) if each else np.nan, form="+.4f")
        test = Trend(test=f"Wilcoxon, {name} of judges", change=mean, judges=len(each), **place)
        if len(each) < LEAST_JUDGES or not np.any(each):
            test.fails(f"{name} of {LEAST_JUDGES} judges are needed")
        else:
            test.p = float(wilcoxon(np.round(each, DIGITS)).pvalue)
        tests.append(test)
    table = np.array([[answered[values == value].sum(), (values == value).sum()] for value in np.unique(values)])
    if 0 < table[:, 0].sum() < table[:, 1].sum():
        counts = np.column_stack([table[:, 0], table[:, 1] - table[:, 0]])
        with warnings.catch_warnings():  # a few values may lie on a line: that is no separation
            warnings.simplefilter("ignore", PerfectSeparationWarning)
            fit = GLM(counts, add_constant(np.unique(values)), family=families.Binomial()).fit()
        low, high = map(float, fit.conf_int()[1])
        change = Estimate(float(fit.params[1]), low, high, "+.4f")
        tests.append(Trend(test="binomial regression of log odds", change=change, p=float(fit.pvalues[1]), **place))
    return tests
