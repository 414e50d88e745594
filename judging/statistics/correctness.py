"""How often verdicts are right at the values of columns, as the papers test it: for these answers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judging.statistics.contrasts import StatisticalTest, corrected
from judging.statistics.verdict_table import AND, PEOPLE, by_judge, on_trials
from judging.trial_sets.trial_set import VERDICTS
from serving.files.words import count

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 12  # of shares, whose scale is 1
AGENT = "agent"  # the column


@dataclass(slots=True, kw_only=True)
class BetweenValues(StatisticalTest):
    """How often verdicts are right at the values of a column, compared over judges, stimuli or verdicts."""

    column: str
    """The column's name; "A*B" for two columns and their interaction."""
    unit: str
    """What counts once in the test: "judge", "judge, paired", "stimulus" or "verdict"."""
    values: str
    """The values that are compared, in words."""
    freedom: str | None = None
    """The degrees of freedom, as papers write them; None where the test has none."""
    statistic: float | None = None
    """The test's own: U, F or t. None without a test."""
    effect: float | None = None
    """The size of the effect; ``effect_is`` says in what."""
    effect_is: str | None = None
    """In words, such as "difference" or "eta squared"; None without an effect."""


def between_values(verdicts: pd.DataFrame, column: str) -> list[BetweenValues]:
    """The mean correctness at a column's values, tested over judges, or over stimuli (2025 paper, Methods and Results):

    - two values: Mann-Whitney, with the probability of superiority;
    - more values: analysis of variance, with eta squared;
    - a column "A*B": analysis of variance of two factors and their interaction;
    - "A*B" where A or B is ``agent``: the same, of detectability.

    Units are judges if each has a single value, otherwise stimuli. Empty where both have several. Where nothing varies
    within the values, or the cells of two factors, there is no test: its F or U would be rounding alone. Each judge
    counts once on a trial (:func:`judging.statistics.verdict_table.on_trials`)."""
    from scipy.stats import f_oneway, mannwhitneyu

    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    if AND in column:
        first, second, *more = column.split(AND)
        if more:
            test = BetweenValues(column=column, unit="judge", values=f"beside {column}")
            return [test.fails("the analysis of variance is of two columns")]
        return _of_two_factors(judged, column, first, second)
    judged = on_trials(judged[judged[column].notna()], column)
    unit = next((name for name in ("judge", "stimulus") if judged.groupby(name)[column].nunique().max() == 1), None)
    if unit is None:
        return []
    means = judged["right"].groupby([judged[column], judged[unit]]).mean().round(DIGITS)
    groups = {str(value): part.to_numpy() for value, part in means.groupby(level=0) if len(part) > 1}
    if len(groups) < 2:
        return []
    samples = list(groups.values())
    pooled = np.concatenate(list(groups.values()))
    test = BetweenValues(column=column, unit=unit, values=", ".join(groups))
    if len(groups) == 2:
        if np.ptp(pooled) == 0:
            return [test.fails(f"every {unit} is right as often")]
        result = mannwhitneyu(*samples)
        test.test = "Mann-Whitney"
        test.effect_is = f"P({next(iter(groups))} better)"
        test.effect = float(result.statistic) / (len(samples[0]) * len(samples[1]))
    else:
        if not any(np.ptp(sample) for sample in samples):
            return [test.fails("nothing varies within the values")]
        result = f_oneway(*samples)
        between = sum(len(sample) * (sample.mean() - pooled.mean()) ** 2 for sample in samples)
        test.test = "analysis of variance"
        test.effect_is = "eta squared"
        test.freedom = f"{len(groups) - 1}, {len(pooled) - len(groups)}"
        test.effect = float(between / ((pooled - pooled.mean()) ** 2).sum())
    test.statistic = float(result.statistic)
    test.p = float(result.pvalue)
    return [test]


def _of_two_factors(judged: pd.DataFrame, column: str, first: str, second: str) -> list[BetweenValues]:
    """Analysis of variance, sums of squares of type II, of the judges' figures in the cells of two columns.

    A figure is the share of right verdicts where both columns are of judges or stimuli. Where one is ``agent`` it is
    detectability, as in the papers (2025, L1341; :func:`_detectabilities`). The share of right verdicts on an
    agent's answers, p(M|M), would take a habit for skill: a judge who guesses, but says "machine" more often, would
    seem to tell every agent better.

    F divides by the variance within cells. Where no cell varies there is none to divide by: what least squares leaves
    is rounding, and F would be 1e30. Figures are rounded first, so that 0.1 + 0.2 and 0.3 are alike.

    A judge of several agents stands in several cells, and counts in each as if another judge, as in the papers' F(a,
    b). But these cells share the judge's p(H|H) and skill. So F of a column of judges is too large: with 40 judges who
    guess and three agents it alarms in 10 to 18 %, where 5 are due. F of agents is too small (0 to 1 %), since a
    judge's skill leaves the differences between agents as they are. The test's name says so, and
    :func:`judging.statistics.contrasts.by_column` counts each judge once."""
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    kind = "analysis of variance, two factors"
    if AGENT in (first, second):
        figures, left_out = _detectabilities(judged, first, second)
        kind += f", of detectability, as if each agent had judges of its own{left_out}"
    else:
        figures = _shares(judged[judged[column].notna()], first, second)
    why = _why_not_two_factors(figures, first, second)
    if why is not None:
        test = BetweenValues(column=column, unit="judge", values=f"beside {column}")
        return [test.fails(why)]
    table = anova_lm(ols("right ~ C(a) * C(b)", figures).fit(), typ=2)
    residual = table.loc["Residual"]
    tests = []
    for name, term in ((first, "C(a)"), (second, "C(b)"), (column, "C(a):C(b)")):
        part = table.loc[term]
        test = BetweenValues(column=name, unit="judge", values=f"beside {column}", test=kind)
        test.judges = int(figures["judge"].nunique())
        test.freedom = f"{part['df']:.0f}, {residual['df']:.0f}"
        test.statistic = float(part["F"])
        test.p = float(part["PR(>F)"])
        test.effect = float(part["sum_sq"] / (part["sum_sq"] + residual["sum_sq"]))
        test.effect_is = "partial eta squared"
        tests.append(test)
    return tests


def _shares(judged: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Each ``judge``'s share of ``right`` verdicts where the first column is ``a`` and the second ``b``, as texts."""
    by_trial = on_trials(judged, first, second)
    keys = [by_trial[name].astype(str).rename(letter) for name, letter in ((first, "a"), (second, "b"))]
    means = by_trial["right"].groupby([*keys, by_trial["judge"]]).mean()
    return means.round(DIGITS).reset_index()


def _detectabilities(judged: pd.DataFrame, first: str, second: str) -> tuple[pd.DataFrame, str]:
    """As :func:`_shares` where one column is ``agent``: detectabilities, and in words which judges have none.

    A judge's detectability is half the sum of p(M|M) on the agent's answers and of p(H|H) on people's answers at the
    same value of the other column. A judge who judged no people's answers there has none, as in conversations of two
    machines."""
    if first == AGENT:
        other = second
        letter = "b"
    else:
        other = first
        letter = "a"
    judged_there = judged[judged[other].notna()]
    is_machine = judged_there["truth"] == "machine"
    agent_shares = _shares(judged_there[is_machine], first, second)
    people_shares = _shares(judged_there[~is_machine].assign(**{AGENT: PEOPLE}), first, second)
    on_people = people_shares[[letter, "judge", "right"]]
    both = agent_shares.merge(on_people, on=[letter, "judge"], how="left", suffixes=("", "_h"))
    figures = both.assign(right=(both["right"] + both.pop("right_h")) / 2)
    lacking = figures["right"].isna()
    left_out = ""
    if lacking.any():
        values = ", ".join(sorted(figures.loc[lacking, letter].unique()))
        judges = count(int(figures.loc[lacking, "judge"].nunique()), "judge")
        left_out = f"; without {judges} of no people's answers at {other} {values}"
    return figures[~lacking].assign(right=lambda rows: rows["right"].round(DIGITS)), left_out


def _why_not_two_factors(means: pd.DataFrame, first: str, second: str) -> str | None:
    """Why the judges' means ("right", by "a" and "b") cannot be tested; None where they can."""
    by_cell = means.groupby(["a", "b"])["right"]
    cells = by_cell.size().unstack()
    for letter, name in (("a", first), ("b", second)):
        if means[letter].nunique() < 2:
            return f"{name} has fewer than two values"
    if cells.isna().any(axis=None):
        value, other = cells.isna().stack().idxmax()
        return f"no judge is at {first} {value} with {second} {other}"
    if len(means) <= cells.size:
        return "each cell has a single judge"
    if not (by_cell.max() > by_cell.min()).any():
        return "nothing varies within the cells"
    return None


def t_tests(verdicts: pd.DataFrame, column: str) -> list[BetweenValues]:
    """Raw correctness at a column's two values by a two-tailed t-test (2025 paper, Results).

    Units are judges (paired if most judged at both values), otherwise verdicts. A judge counts once on a trial: the
    mean of a trained judge's partitions stands for them (:func:`judging.statistics.verdict_table.on_trials`)."""
    from scipy.stats import ttest_rel
    from statsmodels.stats.weightstats import ttest_ind  # scipy's warns of a sample that does not vary

    if AND in column:
        return []
    judged = on_trials(verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()], column)
    if judged[column].nunique() != 2:
        return []
    right = judged["right"]
    means = right.groupby([judged["judge"], judged[column]]).mean().unstack()
    is_paired = 2 * len(means.dropna()) > max(len(means), 2)
    if is_paired:
        unit = "judge, paired"
        samples = means.dropna().to_numpy().T
    elif (means.notna().sum() > 1).all():
        unit = "judge"
        samples = [of_value.dropna().to_numpy() for _, of_value in means.items()]
    else:
        unit = "verdict"
        samples = [right[judged[column] == value].to_numpy() for value in means.columns]
    difference = float(np.mean(samples[0]) - np.mean(samples[1]))
    test = BetweenValues(
        column=column, unit=unit, values=", ".join(map(str, means.columns)), effect=difference, effect_is="difference"
    )
    varies = np.ptp(samples[0] - samples[1]) if is_paired else max(map(np.ptp, samples))
    if varies < 10.0**-DIGITS:
        return [test.fails("nothing varies within the values")]
    if is_paired:
        result = ttest_rel(*samples)
        statistic = result.statistic
        p = result.pvalue
        freedom = result.df
    else:
        statistic, p, freedom = ttest_ind(*samples)
    test.test = "t, two-tailed"
    test.freedom = f"{freedom:.0f}"
    test.statistic = float(statistic)
    test.p = float(p)
    return [test]


def people_beside_judges(verdicts: pd.DataFrame) -> list[BetweenValues]:
    """People's verdicts, together, beside each other judge's, by :func:`t_tests`."""
    import pandas as pd

    verdicts_by_name = dict(by_judge(verdicts.assign(judged_by=verdicts["judge"])))
    people = verdicts_by_name.pop(PEOPLE, verdicts[:0]).assign(judged_by=PEOPLE)
    both = [pd.concat([people, part]) for part in verdicts_by_name.values() if len(people)]
    return corrected([test for part in both for test in t_tests(part, "judged_by")])
