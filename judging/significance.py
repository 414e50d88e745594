"""Tests of verdicts, and how far judges agree. Without a test, ``test`` says why ("no test: …") and ``p`` is None."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from judging.tables import Table
from judging.trial_set import VERDICTS
from judging.verdicts import by_judge, verdicts_by_judge, verdicts_by_trial

if TYPE_CHECKING:
    import pandas as pd

LEAST_JUDGES = 6  # below that Wilcoxon's test cannot reach 0.05
ALPHA = 0.05
LEAST_CLUSTERS = 10  # of fewer the equations' standard errors are too small
DIGITS = 12  # of shares, whose scale is 1

Counts = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class Test:
    judge: str | None = None
    test: str = ""
    p: float | None = None
    holm: float | None = None

    def fails(self, why: str) -> Self:
        self.test = f"no test: {why}"
        return self


T = TypeVar("T", bound=Test)


@dataclass(slots=True, kw_only=True)
class AgainstChance(Test):
    of: str
    measure: str
    rate: float
    verdicts: int
    direction: str = ""


@dataclass(slots=True, kw_only=True)
class Equations(Test):
    unit: str
    clusters: int
    odds_ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(slots=True, kw_only=True)
class AmongAgents(Test):
    judges: int
    agents: int
    chi2: float | None = None
    kendall_w: float | None = None


@dataclass(slots=True, kw_only=True)
class BetweenValues(Test):
    column: str
    unit: str
    values: str
    statistic: float | None = None
    effect: float | None = None
    effect_is: str | None = None


@dataclass(slots=True, kw_only=True)
class BetweenAgents(Test):
    first: str
    second: str
    difference: float


@dataclass(slots=True, kw_only=True)
class BetweenJudges(Test):
    first: str
    second: str
    trials: int
    first_alone: int
    second_alone: int
    difference: float | None


def all_tests(verdicts: pd.DataFrame, agents: Sequence[str], by: Sequence[str]) -> dict[str, list[Test]]:
    """The tests of a task by kind; people are not compared with each other."""
    named = verdicts[verdicts["judge_kind"] != "human"]
    tests: dict[str, list[Test]] = defaultdict(list, between_judges=list[Test](between_judges(named)))
    for judge, of_judge in by_judge(verdicts):
        kinds: dict[str, Sequence[Test]] = {
            "against_chance": against_chance(of_judge, agents),
            "by_equations": by_equations(of_judge),
            "among_agents": among_agents(of_judge, agents),
            "between_values": [test for name in by for test in between_values(of_judge, name)],
            "between_agents": between_agents(of_judge, agents),
        }
        for name, of_kind in kinds.items():
            tests[name] += [replace(test, judge=judge) for test in of_kind]
    corrected(tests["between_values"])
    return dict(tests)


def against_chance(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[AgainstChance]:
    """p(H|H), p(M|M) and detectability against 0.5: for a judge exact binomial and Fisher's, for at least six
    Wilcoxon's signed ranks (2025 paper, Results)."""
    from scipy.stats import binomtest, fisher_exact

    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    right = (judged["verdict"] == judged["truth"]).astype(float)
    whose = judged["agent"].where(judged["truth"] == "machine", "people")
    of_people = right[whose == "people"]
    tests = []
    for agent in ["people", *agents]:
        correct = right[whose == agent]
        if correct.empty:
            continue
        rates, measure = correct.groupby(judged["judge"]).mean(), "p(H|H)" if agent == "people" else "p(M|M)"
        test = AgainstChance(of=agent, measure=measure, rate=float(correct.mean()), verdicts=len(correct))
        tests.append(test)
        if len(rates) == 1:
            test.test, test.p = "exact binomial", float(binomtest(int(correct.sum()), len(correct)).pvalue)
        else:
            _over_judges(test, rates)
        if agent == "people" or of_people.empty:
            continue
        mean, number = float(correct.mean() + of_people.mean()) / 2, len(correct) + len(of_people)
        test = AgainstChance(of=agent, measure="detectability", rate=mean, verdicts=number)
        tests.append(test)
        if len(rates) == 1:
            cells = [[(marked == 1).sum(), (marked == 0).sum()] for marked in (correct, 1 - of_people)]
            test.test, test.p = "Fisher's exact", float(fisher_exact(cells).pvalue)
        else:
            _over_judges(test, ((rates + of_people.groupby(judged["judge"]).mean()) / 2).dropna())
    for test in corrected(tests):
        above = round(test.rate - 0.5, DIGITS)
        is_significant = above and test.holm is not None and test.holm < ALPHA
        side = "above chance" if above > 0 else "below chance"
        test.direction = side if is_significant else "not told from chance"
    return tests


def _over_judges(test: AgainstChance, rates: pd.Series[float]) -> None:
    from scipy.stats import wilcoxon

    above = np.round(rates.to_numpy() - 0.5, DIGITS)  # 0.7 - 0.5 and 0.5 - 0.3 are tied
    if len(above) < LEAST_JUDGES:
        test.fails(f"Wilcoxon's needs {LEAST_JUDGES} judges")
    elif not above.any():
        test.fails("every judge is at 0.5")
    else:
        test.rate, test.test = float(rates.mean()), "Wilcoxon, judges"
        test.p = float(wilcoxon(above).pvalue)


def by_equations(verdicts: pd.DataFrame) -> list[Equations]:
    """The odds ratio of "machine" for machines' answers, by generalized estimating equations (Liang and Zeger 1986)
    with working independence and robust errors. Clusters are judges, or a single judge's stimuli; empty for too few
    clusters."""
    from scipy.stats import norm

    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    unit = "judge" if judged["judge"].nunique() > 1 else "stimulus"
    cells = (judged["verdict"] == "machine").groupby([judged[unit], judged["truth"]]).agg(["sum", "size"])
    cells = cells.unstack(fill_value=0).astype(int)
    marked, number = (  # [truth, cluster], whole numbers of any size
        cells[name].reindex(columns=VERDICTS, fill_value=0).to_numpy().astype(object).T for name in ("sum", "size")
    )
    all_marked, all_number = marked.sum(axis=1), number.sum(axis=1)
    others, clusters = all_number - all_marked, marked.shape[1]
    if clusters < LEAST_CLUSTERS or 0 in (*all_marked, *others):
        return []
    test = Equations(unit=unit, clusters=clusters, test="GEE")
    # A cluster's part in the log odds of each truth is (marked - number * rate) / (numbers * rate * (1 - rate)); here
    # over the product of both truths' denominators, so that all are whole numbers.
    scale = all_marked * others
    human, machine = marked * all_number[:, None] - number * all_marked[:, None]
    square = ((machine * scale[0] - human * scale[1]) ** 2).sum()
    if square == 0:
        return [test.fails(f"nothing varies from {unit} to {unit}")]
    error = math.sqrt(square / (scale[0] * scale[1]) ** 2)
    test.odds_ratio = all_marked[1] * others[0] / (others[1] * all_marked[0])
    log, reach = math.log(test.odds_ratio), float(norm.isf(0.025)) * error
    test.low, test.high = math.exp(log - reach), math.exp(log + reach)
    test.p = max(2 * float(norm.sf(abs(log) / error)), sys.float_info.min)  # less than floats can tell from 0
    return corrected([test])


def among_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[AmongAgents]:
    """Friedman's test of p(M|M), with Kendall's W, over judges of every agent (2025 paper, Results)."""
    from scipy.stats import friedmanchisquare

    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts["agent"].isin(agents)]
    rates = (judged["verdict"] == "machine").groupby([judged["judge"], judged["agent"]]).mean().unstack().dropna()
    judges, number = rates.shape
    if judges < LEAST_JUDGES or number < 3:
        return []
    test = AmongAgents(test="Friedman", judges=judges, agents=number)
    shares = np.round(rates.to_numpy(), DIGITS)
    if not np.ptp(shares, axis=1).any():
        return [test.fails("every judge has the same rate of all agents")]
    friedman = friedmanchisquare(*shares.T)
    test.chi2 = abs(round(float(friedman.statistic), DIGITS))  # it may be a little below 0 by rounding
    test.kendall_w, test.p = test.chi2 / (judges * (number - 1)), float(friedman.pvalue)
    return corrected([test])


def between_values(verdicts: pd.DataFrame, column: str) -> list[BetweenValues]:
    """The mean correctness at a column's values, of judges, else stimuli, else trials: two by Mann-Whitney and the
    probability of superiority, more by analysis of variance and eta squared (2025 paper, Methods and Results)."""
    from scipy.stats import f_oneway, mannwhitneyu

    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[column].notna()]
    right = (judged["verdict"] == judged["truth"]).astype(float)
    unit = next((name for name in ("judge", "stimulus") if judged.groupby(name)[column].nunique().max() == 1), "trial")
    means = right.groupby([judged[column], judged[unit]]).mean().round(DIGITS)
    groups = {str(value): part.to_numpy() for value, part in means.groupby(level=0) if len(part) > 1}
    if len(groups) < 2:
        return []
    samples, pooled = list(groups.values()), np.concatenate(list(groups.values()))
    test = BetweenValues(column=column.removeprefix("meta."), unit=unit, values=", ".join(groups))
    if len(groups) == 2:
        if np.ptp(pooled) == 0:
            return [test.fails(f"every {unit} is right as often")]
        result = mannwhitneyu(*samples)
        test.test, test.effect_is = "Mann-Whitney", f"P({next(iter(groups))} better)"
        test.effect = float(result.statistic) / (len(samples[0]) * len(samples[1]))
    else:
        if not any(np.ptp(sample) for sample in samples):
            return [test.fails("nothing varies within the values")]
        result = f_oneway(*samples)
        between = sum(len(sample) * (sample.mean() - pooled.mean()) ** 2 for sample in samples)
        test.test, test.effect_is = "analysis of variance", "eta squared"
        test.effect = float(between / ((pooled - pooled.mean()) ** 2).sum())
    test.statistic, test.p = float(result.statistic), float(result.pvalue)
    return [test]


def between_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[BetweenAgents]:
    """Every two agents: the exact permutation test of the difference of p(M|M), labels exchanged within a judge."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts["agent"].isin(agents)]
    marked = (judged["verdict"] == "machine").groupby([judged["judge"], judged["agent"]])
    number, machine = (counts.unstack(fill_value=0) for counts in (marked.size(), marked.sum()))
    tests = []
    for first, second in combinations([agent for agent in agents if agent in number.columns], 2):
        of_first, of_both = number[first].to_numpy(), (number[first] + number[second]).to_numpy()
        machine_of_both = (machine[first] + machine[second]).to_numpy()
        chances = _sum_of_hypergeometrics(of_both, machine_of_both, of_first)
        counts, trials, others = np.arange(len(chances)), of_first.sum(), (of_both - of_first).sum()
        difference = counts / trials - (machine_of_both.sum() - counts) / others
        observed = float(difference[machine[first].sum()])
        test = BetweenAgents(first=first, second=second, difference=observed)
        if (number[first] * number[second]).any():
            test.test = "permutation within judges, exact"
            test.p = min(float(chances[np.abs(difference) >= abs(observed) - 1e-12].sum()), 1.0)
        else:
            test.fails("no judge judged both")
        tests.append(test)
    return corrected(tests)


def _sum_of_hypergeometrics(total: Counts, marked: Counts, drawn: Counts) -> NDArray[np.float64]:
    from scipy.stats import hypergeom

    chances = np.ones(1)
    for (size, marks, draws), times in Counter(zip(total, marked, drawn, strict=True)).items():
        if not size:
            continue
        of_urn = hypergeom.pmf(np.arange(min(marks, draws) + 1), size, marks, draws)
        for _ in range(times):
            chances = np.convolve(chances, of_urn)
    return chances


def between_judges(verdicts: pd.DataFrame) -> list[BetweenJudges]:
    """Every two judges on the trials of both: McNemar's exact test."""
    from scipy.stats import binomtest

    table = verdicts_by_judge(verdicts)
    truth = verdicts.drop_duplicates("trial").set_index("trial")["truth"].reindex(table.index) == "machine"
    right = table.eq(truth.astype(float), axis=0).astype(float).where(table.notna())
    tests = []
    for first, second in combinations(right.columns, 2):
        both = right[[first, second]].dropna()
        less = both[first] - both[second]
        alone = [int((less > 0).sum()), int((less < 0).sum())]
        test = BetweenJudges(
            first=str(first),
            second=str(second),
            trials=len(both),
            first_alone=alone[0],
            second_alone=alone[1],
            difference=float(less.mean()) if len(both) else None,
        )
        if any(alone):
            test.test, test.p = "McNemar, exact", float(binomtest(alone[0], sum(alone)).pvalue)
        else:
            test.fails("both are right on the same trials" if len(both) else "no trial in common")
        tests.append(test)
    return corrected(tests)


def corrected(tests: list[T]) -> list[T]:
    from statsmodels.stats.multitest import multipletests

    known = [test for test in tests if test.p is not None]
    values = multipletests([test.p for test in known], method="holm")[1] if known else ()
    for test, value in zip(known, values, strict=True):
        test.holm = float(value)
    return tests


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """The share of equal verdicts of two judges, and Cohen's kappa (1960)."""

    first: str
    second: str
    trials: int
    alike: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """``fleiss`` kappa (1971) over trials that all judges but people judged; Krippendorff's ``alpha`` of people too."""

    judges: list[str]
    pairs: Table[PairAgreement]
    trials_of_all: int
    fleiss: float | None
    alpha: float | None


def agreement(verdicts: pd.DataFrame) -> Agreement:
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    table = verdicts_by_judge(verdicts[verdicts["judge_kind"] != "human"])
    pairs = [_pair(first, second, table[[first, second]].dropna()) for first, second in combinations(table.columns, 2)]
    complete = table.dropna().to_numpy(dtype=int)
    is_varied = complete.shape[1] > 1 and len(np.unique(complete)) > 1
    fleiss = float(fleiss_kappa(aggregate_raters(complete)[0])) if is_varied else None
    alpha = krippendorff_alpha(verdicts_by_trial(verdicts))
    return Agreement([str(name) for name in table.columns], Table(pairs), len(complete), fleiss, alpha)


def _pair(first: str, second: str, judged: pd.DataFrame) -> PairAgreement:
    if judged.empty:
        return PairAgreement(first, second, 0, None, None)
    alike, rates = float((judged[first] == judged[second]).mean()), judged.mean().to_numpy()
    chance = float(rates.prod() + (1 - rates).prod())
    return PairAgreement(first, second, len(judged), alike, None if chance == 1 else (alike - chance) / (1 - chance))


def krippendorff_alpha(counts: NDArray[np.int64]) -> float | None:
    """Krippendorff's alpha (2011) of nominal values: how often a unit [row] has each [column]."""
    pairable = counts[counts.sum(axis=1) >= 2].astype(np.float64)
    number, totals = pairable.sum(axis=1), pairable.sum(axis=0)
    if (totals > 0).sum() < 2:
        return None
    observed = float(((number**2 - (pairable**2).sum(axis=1)) / (number - 1)).sum())  # pairs that differ, weighted
    expected = float((number.sum() ** 2 - (totals**2).sum()) / (number.sum() - 1))
    return 1 - observed / expected
