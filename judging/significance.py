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
  "machine" for a machine's answer beside a person's.
- two agents before the same judges: the exact permutation test of the difference of their p(M|M), labels being
  exchanged within each judge.

Several p values together are corrected by Holm and by Bonferroni.
"""

from __future__ import annotations

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
        side = ("at", "above", "below")[(told["rate"] > 0.5) - (told["rate"] < 0.5)]
        told["direction"] = f"{side} chance" if is_told else "not told from chance"
    return found


def _over_judges(rates: pd.Series[float]) -> dict[str, Any]:
    from scipy.stats import wilcoxon

    above = np.round(rates.to_numpy() - 0.5, 12)  # 0.7 - 0.5 and 0.5 - 0.3 are tied
    if len(above) < LEAST_JUDGES or not above.any():
        return {"test": None, "p": None}
    return {"rate": float(rates.mean()), "test": "Wilcoxon, judges", "p": float(wilcoxon(above).pvalue)}


def by_equations(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """The odds ratio of "machine" for machines' answers beside people's, with its 95 % interval, over clusters. Empty
    where there are too few clusters, or an empty cell, which has no odds."""
    import statsmodels.api as sm

    given = verdicts[verdicts["verdict"].isin(SAID)]
    unit = "judge" if given["judge"].nunique() > 1 else "stimulus"
    given = given.sort_values(unit, kind="stable")
    said, is_machine = (given[name].to_numpy() == "machine" for name in ("verdict", "truth"))
    cells = [(said[is_machine == truth] == value).any() for truth in (False, True) for value in (False, True)]
    clusters = int(given[unit].nunique())
    if clusters < LEAST_CLUSTERS or not all(cells):
        return []
    fit = sm.GEE(
        said.astype(float),
        sm.add_constant(is_machine.astype(float)),
        groups=given[unit].to_numpy(),
        family=sm.families.Binomial(),
    ).fit()
    ratio, low, high = (float(np.exp(value)) for value in (fit.params[1], *fit.conf_int()[1]))
    told = {"unit": unit, "clusters": clusters, "test": "GEE"}
    return corrected([{**told, "odds_ratio": ratio, "low": low, "high": high, "p": float(fit.pvalues[1])}])


def among_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """All agents before the judges who judged each of them: Friedman's test of p(M|M)."""
    from scipy.stats import friedmanchisquare

    given = verdicts[verdicts["verdict"].isin(SAID) & verdicts["agent"].isin(agents)]
    rates = (given["verdict"] == "machine").groupby([given["judge"], given["agent"]]).mean().unstack().dropna()
    if len(rates) < LEAST_JUDGES or rates.shape[1] < 3 or (rates.nunique(axis=1) == 1).all():
        return []
    found = friedmanchisquare(*rates.to_numpy().T)
    chi2 = float(found.statistic)
    kendall = chi2 / (len(rates) * (rates.shape[1] - 1))
    return corrected(
        [{"test": "Friedman", "judges": len(rates), "agents": rates.shape[1], "chi2": chi2, "kendall_w": kendall,
          "p": float(found.pvalue)}]
    )  # fmt: skip


def between_values(verdicts: pd.DataFrame, column: str) -> list[dict[str, Any]]:
    """The correctness at the values of a column: see the module's text. Empty where not two values have two units."""
    from scipy.stats import f_oneway, mannwhitneyu

    given = verdicts[verdicts["verdict"].isin(SAID) & verdicts[column].notna()]
    right = (given["verdict"] == given["truth"]).astype(float)
    unit = next((name for name in ("judge", "stimulus") if given.groupby(name)[column].nunique().max() == 1), "trial")
    means = right.groupby([given[column], given[unit]]).mean()
    groups = {str(value): part.to_numpy() for value, part in means.groupby(level=0) if len(part) > 1}
    samples = list(groups.values())
    if len(groups) < 2 or np.ptp(np.concatenate(samples)) == 0:
        return []
    if len(groups) == 2:
        one, other = samples
        found = mannwhitneyu(one, other)
        effect, effect_is = float(found.statistic) / (len(one) * len(other)), f"P({next(iter(groups))} better)"
    else:
        whole = np.concatenate(samples)
        found = f_oneway(*samples)
        between = sum(len(one) * (one.mean() - whole.mean()) ** 2 for one in samples)
        effect, effect_is = float(between / ((whole - whole.mean()) ** 2).sum()), "eta squared"
    test = "Mann-Whitney" if len(groups) == 2 else "analysis of variance"
    told = {"column": column.removeprefix("meta."), "unit": unit, "values": ", ".join(groups), "test": test}
    return [
        {
            **told,
            "statistic": float(found.statistic),
            "effect": effect,
            "effect_is": effect_is,
            "p": float(found.pvalue),
        }
    ]


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
        p = float(binomtest(first, first + second).pvalue) if first + second else None
        difference = float(both[one].mean() - both[other].mean()) if len(both) else None
        found.append(
            {"first": str(one), "second": str(other), "trials": len(both), "first_alone": first, "second_alone": second,
             "difference": difference, "test": "McNemar, exact", "p": p}
        )  # fmt: skip
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
        found.append(
            {"first": one, "second": other, "difference": observed, "test": "permutation within judges, exact",
             "p": min(p, 1.0)}
        )  # fmt: skip
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
    """With ``holm`` and ``bonferroni`` beside each ``p``."""
    from statsmodels.stats.multitest import multipletests

    known = [one for one in tests if one["p"] is not None]
    for name in ("holm", "bonferroni"):
        values = multipletests([one["p"] for one in known], method=name)[1] if known else ()
        for one, value in zip(known, values, strict=True):
            one[name] = float(value)
    return tests
