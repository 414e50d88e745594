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

    given = verdicts[verdicts["verdict"].isin(SAID)]
    right = (given["verdict"] == given["truth"]).astype(float)
    whose = given["agent"].where(given["truth"] == "machine", "people")
    found = []
    for agent in ["people", *agents]:
        some = right[whose == agent]
        if some.empty:
            continue
        by_judge = some.groupby(given["judge"]).mean()
        told: dict[str, Any] = {"of": agent, "measure": "p(H|H)" if agent == "people" else "p(M|M)"}
        told |= {"rate": float(some.mean()), "verdicts": len(some)}
        if len(by_judge) == 1:
            found.append(told | {"test": "exact binomial", "p": float(binomtest(int(some.sum()), len(some)).pvalue)})
        else:
            found.append(told | _over_judges(by_judge))
        of_people = right[whose == "people"]
        if agent == "people" or of_people.empty:
            continue
        told = {"of": agent, "measure": "detectability", "rate": float(some.mean() + of_people.mean()) / 2}
        told["verdicts"] = len(some) + len(of_people)
        if len(by_judge) == 1:
            cells = [[(one == 1).sum(), (one == 0).sum()] for one in (some, 1 - of_people)]
            found.append(told | {"test": "Fisher's exact", "p": float(fisher_exact(cells).pvalue)})
        else:
            found.append(told | _over_judges(((by_judge + of_people.groupby(given["judge"]).mean()) / 2).dropna()))
    for told in corrected(found):
        is_told = told["p"] is not None and told["holm"] < ALPHA
        above = round(told["rate"] - 0.5, DIGITS)
        side = ("at", "above", "below")[(above > 0) - (above < 0)]
        told["direction"] = f"{side} chance" if is_told else "not told from chance"
    return found


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

    given = verdicts[verdicts["verdict"].isin(SAID)]
    unit = "judge" if given["judge"].nunique() > 1 else "stimulus"
    is_machine = (given["verdict"] == "machine").astype(int)
    both = [
        pd.crosstab(given[unit], given["truth"], values, aggfunc="sum").reindex(columns=SAID).fillna(0).astype(int)
        for values in (is_machine, 0 * is_machine + 1)
    ]
    said, number = ([[int(value) for value in table[truth]] for truth in SAID] for table in both)  # [truth][cluster]
    all_said, all_number = ([sum(values) for values in one] for one in (said, number))
    others = [of - marked for marked, of in zip(all_said, all_number, strict=True)]
    clusters = len(said[0])
    if clusters < LEAST_CLUSTERS or 0 in (*all_said, *others):
        return []
    row: dict[str, Any] = {"unit": unit, "clusters": clusters, "test": "GEE"}
    # A cluster's part in the log odds of each truth is (said - number * rate) / (numbers * rate * (1 - rate)); here
    # over the product of both truths' denominators, so that all are whole numbers.
    whole = [marked * rest for marked, rest in zip(all_said, others, strict=True)]
    square = 0
    for at in range(clusters):
        human, machine = (said[of][at] * all_number[of] - number[of][at] * all_said[of] for of in (0, 1))
        square += (machine * whole[0] - human * whole[1]) ** 2
    if square == 0:
        return [row | no_test(f"nothing varies from {unit} to {unit}") | dict.fromkeys(("odds_ratio", "low", "high"))]
    error = math.sqrt(square / (whole[0] * whole[1]) ** 2)
    ratio = all_said[1] * others[0] / (others[1] * all_said[0])
    log, reach = math.log(ratio), float(norm.isf(0.025)) * error
    ends = {"low": math.exp(log - reach), "high": math.exp(log + reach)}
    p = max(2 * float(norm.sf(abs(log) / error)), sys.float_info.min)  # it may be less than floats can tell from 0
    return corrected([{**row, "odds_ratio": ratio, **ends, "p": p}])


def among_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """All agents before the judges who judged each of them: Friedman's test of p(M|M)."""
    from scipy.stats import friedmanchisquare

    given = verdicts[verdicts["verdict"].isin(SAID) & verdicts["agent"].isin(agents)]
    rates = (given["verdict"] == "machine").groupby([given["judge"], given["agent"]]).mean().unstack().dropna()
    if len(rates) < LEAST_JUDGES or rates.shape[1] < 3:
        return []
    row = {"test": "Friedman", "judges": len(rates), "agents": rates.shape[1], "chi2": None, "kendall_w": None}
    shares = np.round(rates.to_numpy(), DIGITS)
    if not np.ptp(shares, axis=1).any():
        return [row | no_test("every judge has the same rate of all agents")]
    found = friedmanchisquare(*shares.T)
    chi2 = abs(round(float(found.statistic), DIGITS))  # it may be a little below 0 by rounding
    kendall = chi2 / (len(rates) * (rates.shape[1] - 1))
    return corrected([{**row, "chi2": chi2, "kendall_w": kendall, "p": float(found.pvalue)}])


def between_values(verdicts: pd.DataFrame, column: str) -> list[dict[str, Any]]:
    """The correctness at the values of a column: see the module's text. Empty where not two values have two units."""
    from scipy.stats import f_oneway, mannwhitneyu

    given = verdicts[verdicts["verdict"].isin(SAID) & verdicts[column].notna()]
    right = (given["verdict"] == given["truth"]).astype(float)
    unit = next((name for name in ("judge", "stimulus") if given.groupby(name)[column].nunique().max() == 1), "trial")
    means = right.groupby([given[column], given[unit]]).mean().round(DIGITS)
    groups = {str(value): part.to_numpy() for value, part in means.groupby(level=0) if len(part) > 1}
    samples = list(groups.values())
    if len(groups) < 2:
        return []
    row: dict[str, Any] = {"column": column.removeprefix("meta."), "unit": unit, "values": ", ".join(groups)}
    row |= dict.fromkeys(("statistic", "effect", "effect_is"))
    if len(groups) == 2:
        if np.ptp(np.concatenate(samples)) == 0:
            return [row | no_test(f"every {unit} is right as often")]
        one, other = samples
        found = mannwhitneyu(one, other)
        effect, effect_is = float(found.statistic) / (len(one) * len(other)), f"P({next(iter(groups))} better)"
    else:
        if not any(np.ptp(one) for one in samples):
            return [row | no_test("nothing varies within the values")]
        whole = np.concatenate(samples)
        found = f_oneway(*samples)
        between = sum(len(one) * (one.mean() - whole.mean()) ** 2 for one in samples)
        effect, effect_is = float(between / ((whole - whole.mean()) ** 2).sum()), "eta squared"
    row |= {"test": "Mann-Whitney" if len(groups) == 2 else "analysis of variance", "p": float(found.pvalue)}
    return [row | {"statistic": float(found.statistic), "effect": effect, "effect_is": effect_is}]


def between_judges(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """Every two judges on the trials that both judged: McNemar's exact test."""
    from scipy.stats import binomtest

    said = said_by(verdicts)
    truth = verdicts.drop_duplicates("trial").set_index("trial")["truth"].reindex(said.index) == "machine"
    right = said.eq(truth.astype(float), axis=0).where(said.notna())
    found = []
    for one, other in combinations(right.columns, 2):
        both = right[[one, other]].dropna().astype(bool)
        first = int((both[one] & ~both[other]).sum())
        second = int((both[other] & ~both[one]).sum())
        row = {"first": str(one), "second": str(other), "trials": len(both), "first_alone": first}
        row |= {"second_alone": second, "difference": (first - second) / len(both) if len(both) else None}
        if first + second:
            row |= {"test": "McNemar, exact", "p": float(binomtest(first, first + second).pvalue)}
        else:
            row |= no_test("both are right on the same trials" if len(both) else "no trial in common")
        found.append(row)
    return corrected(found)


def between_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """Every two agents before the same judges: the difference of their p(M|M).

    Where labels are exchanged within a judge, the number of "machine" that falls to one agent is hypergeometric; over
    judges it is the sum of those, whose distribution is found whole, so that p is exact.
    """
    given = verdicts[verdicts["verdict"].isin(SAID) & verdicts["agent"].isin(agents)]
    said = (given["verdict"] == "machine").groupby([given["judge"], given["agent"]])
    number, machine = (found.unstack(fill_value=0) for found in (said.size(), said.sum()))
    found = []
    for one, other in combinations([agent for agent in agents if agent in number.columns], 2):
        of_one, of_both = number[one].to_numpy(), (number[one] + number[other]).to_numpy()
        machine_of_both = (machine[one] + machine[other]).to_numpy()
        chances = _sum_of_hypergeometrics(of_both, machine_of_both, of_one)
        counts, trials, others = np.arange(len(chances)), of_one.sum(), (of_both - of_one).sum()
        difference = counts / trials - (machine_of_both.sum() - counts) / others
        observed = float(difference[machine[one].sum()])
        p = float(chances[np.abs(difference) >= abs(observed) - 1e-12].sum())
        row = {"first": one, "second": other, "difference": observed, "test": "permutation within judges, exact"}
        if not (number[one] * number[other]).any():
            row |= no_test("no judge judged both")
        else:
            row |= {"p": min(p, 1.0)}
        found.append(row)
    return corrected(found)


def _sum_of_hypergeometrics(total: Counts, marked: Counts, drawn: Counts) -> NDArray[np.float64]:
    """The probabilities of 0, 1, … marked ones where from each urn of ``total``, ``marked`` of them, some are drawn."""
    from scipy.stats import hypergeom

    chances = np.ones(1)
    for (size, some, draws), times in Counter(zip(total, marked, drawn, strict=True)).items():
        if not size:
            continue
        of_one = hypergeom.pmf(np.arange(min(some, draws) + 1), size, some, draws)
        for _ in range(times):
            chances = np.convolve(chances, of_one)
    return chances


def corrected(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With ``holm``, the corrected value, beside each ``p``."""
    from statsmodels.stats.multitest import multipletests

    known = [test for test in tests if test["p"] is not None]
    values = multipletests([test["p"] for test in known], method="holm")[1] if known else ()
    for test, value in zip(known, values, strict=True):
        test["holm"] = float(value)
    return tests
