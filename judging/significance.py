"""Tests of verdicts: the papers' (over judges) and better ones beside them, each with its effect and its direction.

- against chance: the exact binomial test of each rate against 0.5 where there is one judge, and for detectability
  Fisher's of what was said by truth; Wilcoxon's signed-rank test of the judges' own rates, or detectability, against
  0.5 where there are at least six (2025 paper, Results).
- two judges on the same trials: McNemar's exact test of which was right where they differ.
- all agents before the same judges: Friedman's test over the judges' p(M|M), with Kendall's W (2025 paper, Results).
- verdicts at the values of a column: of the mean correctness of its units (the judges, where a judge has one value
  throughout, else the stimuli, else trials) the Mann-Whitney test for two values, with the probability of superiority,
  and one-way analysis of variance for more, with eta squared (2025 paper, Methods and Results).
- truth and what was said, as a logistic regression by generalized estimating equations (Liang and Zeger 1986) with
  working independence and robust errors, clusters being judges, or stimuli where there is one judge: the odds of
  "machine" for a machine's answer beside a person's. With one regressor of two values they have a closed form, in
  whole numbers but for its last step, so that a variance of 0 is 0 on every processor.
- two agents before the same judges: the exact permutation test of the difference of their p(M|M), labels being
  exchanged within each judge.

Several p values together are corrected by Holm.

Where nothing varies that a test needs to vary, there are no figures: ``test`` says why ("no test: …"), ``p`` is None.
Shares are compared after :data:`DIGITS` digits; what differs less differs by rounding alone.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from judging.agreement import said_by
from judging.verdicts import SAID

if TYPE_CHECKING:
    import pandas as pd

LEAST_JUDGES = 6  # below that Wilcoxon's test cannot reach 0.05
ALPHA = 0.05
LEAST_CLUSTERS = 10  # of fewer the equations' standard errors are too small
DIGITS = 12  # of shares, whose scale is 1

Counts = NDArray[np.int64]


def against_chance(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """Each rate against 0.5: of people's answers p(H|H), of each agent's p(M|M), and its detectability, which a judge
    who leans to one verdict does not shift."""
    from scipy.stats import binomtest, fisher_exact

    judged = verdicts[verdicts["verdict"].isin(SAID)]
    right = (judged["verdict"] == judged["truth"]).astype(float)
    whose = judged["agent"].where(judged["truth"] == "machine", "people")
    tests = []
    for agent in ["people", *agents]:
        correct = right[whose == agent]
        if correct.empty:
            continue
        by_judge = correct.groupby(judged["judge"]).mean()
        row: dict[str, Any] = {"of": agent, "measure": "p(H|H)" if agent == "people" else "p(M|M)"}
        row |= {"rate": float(correct.mean()), "verdicts": len(correct)}
        if len(by_judge) == 1:
            tests.append(
                row | {"test": "exact binomial", "p": float(binomtest(int(correct.sum()), len(correct)).pvalue)}
            )
        else:
            tests.append(row | _over_judges(by_judge))
        of_people = right[whose == "people"]
        if agent == "people" or of_people.empty:
            continue
        row = {"of": agent, "measure": "detectability", "rate": float(correct.mean() + of_people.mean()) / 2}
        row["verdicts"] = len(correct) + len(of_people)
        if len(by_judge) == 1:
            cells = [[(one == 1).sum(), (one == 0).sum()] for one in (correct, 1 - of_people)]
            tests.append(row | {"test": "Fisher's exact", "p": float(fisher_exact(cells).pvalue)})
        else:
            tests.append(row | _over_judges(((by_judge + of_people.groupby(judged["judge"]).mean()) / 2).dropna()))
    for row in corrected(tests):
        is_told = row["p"] is not None and row["holm"] < ALPHA
        above = round(row["rate"] - 0.5, DIGITS)
        side = ("at", "above", "below")[(above > 0) - (above < 0)]
        row["direction"] = f"{side} chance" if is_told else "not told from chance"
    return tests


def _over_judges(rates: pd.Series[float]) -> dict[str, Any]:
    from scipy.stats import wilcoxon

    above = np.round(rates.to_numpy() - 0.5, DIGITS)  # 0.7 - 0.5 and 0.5 - 0.3 are tied
    if len(above) < LEAST_JUDGES:
        return no_test(f"Wilcoxon's needs {LEAST_JUDGES} judges")
    if not above.any():
        return no_test("every judge is at 0.5")
    return {"rate": float(rates.mean()), "test": "Wilcoxon, judges", "p": float(wilcoxon(above).pvalue)}


def no_test(why: str) -> dict[str, Any]:
    """What stands in a row instead of a test."""
    return {"test": f"no test: {why}", "p": None}


def by_equations(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """The odds ratio of "machine" for machines' answers beside people's, with its 95 % interval, over clusters. Empty
    where there are too few clusters, or an empty cell, which has no odds; no test where no cluster differs from the
    others, so that the robust variance is 0."""
    import pandas as pd
    from scipy.stats import norm

    judged = verdicts[verdicts["verdict"].isin(SAID)]
    unit = "judge" if judged["judge"].nunique() > 1 else "stimulus"
    is_machine = (judged["verdict"] == "machine").astype(int)
    both = [
        pd.crosstab(judged[unit], judged["truth"], values, aggfunc="sum").reindex(columns=SAID).fillna(0).astype(int)
        for values in (is_machine, 0 * is_machine + 1)
    ]
    marked_counts, number = (
        [[int(value) for value in table[truth]] for truth in SAID] for table in both
    )  # [truth][cluster]
    all_marked, all_number = ([sum(values) for values in counts] for counts in (marked_counts, number))
    others = [of - marked for marked, of in zip(all_marked, all_number, strict=True)]
    clusters = len(marked_counts[0])
    if clusters < LEAST_CLUSTERS or 0 in (*all_marked, *others):
        return []
    row: dict[str, Any] = {"unit": unit, "clusters": clusters, "test": "GEE"}
    # A cluster's part in the log odds of each truth is (said - number * rate) / (numbers * rate * (1 - rate)); here
    # over the product of both truths' denominators, so that all are whole numbers.
    whole = [marked * unmarked for marked, unmarked in zip(all_marked, others, strict=True)]
    square = 0
    for at in range(clusters):
        human, machine = (marked_counts[of][at] * all_number[of] - number[of][at] * all_marked[of] for of in (0, 1))
        square += (machine * whole[0] - human * whole[1]) ** 2
    if square == 0:
        return [row | no_test(f"nothing varies from {unit} to {unit}") | dict.fromkeys(("odds_ratio", "low", "high"))]
    error = math.sqrt(square / (whole[0] * whole[1]) ** 2)
    ratio = all_marked[1] * others[0] / (others[1] * all_marked[0])
    log, reach = math.log(ratio), float(norm.isf(0.025)) * error
    ends = {"low": math.exp(log - reach), "high": math.exp(log + reach)}
    p = max(2 * float(norm.sf(abs(log) / error)), sys.float_info.min)  # it may be less than floats can tell from 0
    return corrected([{**row, "odds_ratio": ratio, **ends, "p": p}])


def among_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """All agents before the judges who judged each of them: Friedman's test of p(M|M)."""
    from scipy.stats import friedmanchisquare

    judged = verdicts[verdicts["verdict"].isin(SAID) & verdicts["agent"].isin(agents)]
    rates = (judged["verdict"] == "machine").groupby([judged["judge"], judged["agent"]]).mean().unstack().dropna()
    if len(rates) < LEAST_JUDGES or rates.shape[1] < 3:
        return []
    row = {"test": "Friedman", "judges": len(rates), "agents": rates.shape[1], "chi2": None, "kendall_w": None}
    shares = np.round(rates.to_numpy(), DIGITS)
    if not np.ptp(shares, axis=1).any():
        return [row | no_test("every judge has the same rate of all agents")]
    friedman = friedmanchisquare(*shares.T)
    chi2 = abs(round(float(friedman.statistic), DIGITS))  # it may be a little below 0 by rounding
    kendall = chi2 / (len(rates) * (rates.shape[1] - 1))
    return corrected([{**row, "chi2": chi2, "kendall_w": kendall, "p": float(friedman.pvalue)}])


def between_values(verdicts: pd.DataFrame, column: str) -> list[dict[str, Any]]:
    """The correctness at the values of a column: see the module's text. Empty where not two values have two units."""
    from scipy.stats import f_oneway, mannwhitneyu

    judged = verdicts[verdicts["verdict"].isin(SAID) & verdicts[column].notna()]
    right = (judged["verdict"] == judged["truth"]).astype(float)
    unit = next((name for name in ("judge", "stimulus") if judged.groupby(name)[column].nunique().max() == 1), "trial")
    means = right.groupby([judged[column], judged[unit]]).mean().round(DIGITS)
    groups = {str(value): part.to_numpy() for value, part in means.groupby(level=0) if len(part) > 1}
    samples = list(groups.values())
    if len(groups) < 2:
        return []
    row: dict[str, Any] = {"column": column.removeprefix("meta."), "unit": unit, "values": ", ".join(groups)}
    row |= dict.fromkeys(("statistic", "effect", "effect_is"))
    if len(groups) == 2:
        if np.ptp(np.concatenate(samples)) == 0:
            return [row | no_test(f"every {unit} is right as often")]
        sample, other = samples
        result = mannwhitneyu(sample, other)
        effect, effect_is = float(result.statistic) / (len(sample) * len(other)), f"P({next(iter(groups))} better)"
    else:
        if not any(np.ptp(sample) for sample in samples):
            return [row | no_test("nothing varies within the values")]
        pooled = np.concatenate(samples)
        result = f_oneway(*samples)
        between = sum(len(sample) * (sample.mean() - pooled.mean()) ** 2 for sample in samples)
        effect, effect_is = float(between / ((pooled - pooled.mean()) ** 2).sum()), "eta squared"
    row |= {"test": "Mann-Whitney" if len(groups) == 2 else "analysis of variance", "p": float(result.pvalue)}
    return [row | {"statistic": float(result.statistic), "effect": effect, "effect_is": effect_is}]


def between_judges(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """Every two judges on the trials that both judged: McNemar's exact test."""
    from scipy.stats import binomtest

    verdict_table = said_by(verdicts)
    truth = verdicts.drop_duplicates("trial").set_index("trial")["truth"].reindex(verdict_table.index) == "machine"
    right = verdict_table.eq(truth.astype(float), axis=0).where(verdict_table.notna())
    tests = []
    for judge, other in combinations(right.columns, 2):
        both = right[[judge, other]].dropna().astype(bool)
        first = int((both[judge] & ~both[other]).sum())
        second = int((both[other] & ~both[judge]).sum())
        row = {"first": str(judge), "second": str(other), "trials": len(both), "first_alone": first}
        row |= {"second_alone": second, "difference": (first - second) / len(both) if len(both) else None}
        if first + second:
            row |= {"test": "McNemar, exact", "p": float(binomtest(first, first + second).pvalue)}
        else:
            row |= no_test("both are right on the same trials" if len(both) else "no trial in common")
        tests.append(row)
    return corrected(tests)


def between_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """Every two agents before the same judges: the difference of their p(M|M).

    Where labels are exchanged within a judge, the number of "machine" that falls to one agent is hypergeometric; over
    judges it is the sum of those, whose distribution is found whole, so that p is exact.
    """
    judged = verdicts[verdicts["verdict"].isin(SAID) & verdicts["agent"].isin(agents)]
    marked = (judged["verdict"] == "machine").groupby([judged["judge"], judged["agent"]])
    number, machine = (tests.unstack(fill_value=0) for tests in (marked.size(), marked.sum()))
    tests = []
    for agent_a, other in combinations([agent for agent in agents if agent in number.columns], 2):
        of_a, of_both = number[agent_a].to_numpy(), (number[agent_a] + number[other]).to_numpy()
        machine_of_both = (machine[agent_a] + machine[other]).to_numpy()
        chances = _sum_of_hypergeometrics(of_both, machine_of_both, of_a)
        counts, trials, others = np.arange(len(chances)), of_a.sum(), (of_both - of_a).sum()
        difference = counts / trials - (machine_of_both.sum() - counts) / others
        observed = float(difference[machine[agent_a].sum()])
        p = float(chances[np.abs(difference) >= abs(observed) - 1e-12].sum())
        row = {"first": agent_a, "second": other, "difference": observed, "test": "permutation within judges, exact"}
        if not (number[agent_a] * number[other]).any():
            row |= no_test("no judge judged both")
        else:
            row |= {"p": min(p, 1.0)}
        tests.append(row)
    return corrected(tests)


def _sum_of_hypergeometrics(total: Counts, marked: Counts, drawn: Counts) -> NDArray[np.float64]:
    """The probabilities of 0, 1, … marked ones where from each urn of ``total``, ``marked`` of them, some are drawn."""
    from scipy.stats import hypergeom

    chances = np.ones(1)
    for (size, marks, draws), times in Counter(zip(total, marked, drawn, strict=True)).items():
        if not size:
            continue
        of_urn = hypergeom.pmf(np.arange(min(marks, draws) + 1), size, marks, draws)
        for _ in range(times):
            chances = np.convolve(chances, of_urn)
    return chances


def corrected(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With ``holm``, the corrected value, beside each ``p``."""
    from statsmodels.stats.multitest import multipletests

    known = [test for test in tests if test["p"] is not None]
    values = multipletests([test["p"] for test in known], method="holm")[1] if known else ()
    for test, value in zip(known, values, strict=True):
        test["holm"] = float(value)
    return tests
