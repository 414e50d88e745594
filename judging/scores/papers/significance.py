"""The papers' own tests, which hold for these answers only; and how far judges agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from judging.scores.papers.trends import trends
from judging.statistics.contrasts import (
    AgainstHalf,
    Difference,
    StatisticalTest,
    corrected,
)
from judging.statistics.correctness import DIGITS, between_values, people_beside_judges, t_tests
from judging.statistics.krippendorff import alpha_of_people
from judging.statistics.tables import Estimate, Table
from judging.statistics.verdict_table import by_judge, counted, verdicts_by_judge
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

LEAST_JUDGES = 6  # below that Wilcoxon's test cannot reach 0.05

Counts = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class AmongAgents(StatisticalTest):
    """Friedman's test of whether all agents are told alike."""

    agents: int
    """How many agents are compared."""
    chi2: float | None = None
    """The test's chi-squared, 0 or more; None without a test."""
    kendall_w: float | None = None
    """Kendall's W: 0 where judges do not agree on the order of agents, 1 where they do. None without a test."""


def papers_tests(verdicts: pd.DataFrame, agents: Sequence[str], by: Sequence[str]) -> dict[str, list[StatisticalTest]]:
    """The papers' own tests of a task's ``verdicts`` by kind, of all phases, judge by judge.

    ``by`` are the columns that verdicts are told apart by."""
    tests: dict[str, list[StatisticalTest]] = defaultdict(list)
    for judge, of_phases in by_judge(verdicts):
        of_judge = counted(of_phases)
        columns = [(name, counted(of_phases, name)) for name in by]
        kinds: dict[str, Sequence[StatisticalTest]] = {
            "papers_over_judges": over_judges(of_judge, agents),
            "papers_among_agents": among_agents(of_judge, agents),
            "papers_between_agents": permutations(of_judge, agents),
            "papers_trends": corrected([test for name, part in columns for test in trends(part, name)]),
            "papers_between_values": corrected([test for name, part in columns for test in between_values(part, name)]),
            "papers_t_tests": corrected([test for name, part in columns for test in t_tests(part, name)]),
        }
        for name, of_kind in kinds.items():
            tests[name] += [replace(test, judge=judge) for test in of_kind]
    tests["papers_t_tests"] += people_beside_judges(counted(verdicts))
    return tests


def over_judges(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[AgainstHalf]:
    """p(H|H) and p(M|M) of at least six judges against 0.5: Wilcoxon's signed ranks (2025 paper, Results)."""
    from scipy.stats import wilcoxon

    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    if judged["judge"].nunique() < LEAST_JUDGES:
        return []
    right = (judged["verdict"] == judged["truth"]).astype(float)
    whose = judged["agent"].where(judged["truth"] == "machine", "people")
    tests = []
    for name in ["people", *agents]:
        of_judges = right[whose == name].groupby(judged["judge"]).mean()
        if of_judges.empty:
            continue
        measure = "p(H|H)" if name == "people" else "p(M|M)"
        test = AgainstHalf(of=name, measure=measure, rate=Estimate(float(of_judges.mean())), judges=len(of_judges))
        tests.append(test)
        above = np.round(of_judges.to_numpy() - 0.5, DIGITS)  # 0.7 - 0.5 and 0.5 - 0.3 are tied
        if len(above) < LEAST_JUDGES:
            test.fails(f"Wilcoxon's needs {LEAST_JUDGES} judges")
        elif not above.any():
            test.fails("every judge is at 0.5")
        else:
            test.test = "Wilcoxon"
            test.p = float(wilcoxon(above).pvalue)
    return corrected(tests)


def among_agents(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[AmongAgents]:
    """Friedman's test of p(M|M), with Kendall's W, over judges of every agent (2025 paper, Results)."""
    from scipy.stats import friedmanchisquare

    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts["agent"].isin(agents)]
    marked = (judged["verdict"] == "machine").groupby([judged["judge"], judged["agent"]])
    of_judges = marked.mean().unstack().dropna()
    judges, number = of_judges.shape
    if judges < LEAST_JUDGES or number < 3:
        return []
    test = AmongAgents(test="Friedman", judges=judges, agents=number)
    shares = np.round(of_judges.to_numpy(), DIGITS)
    if not np.ptp(shares, axis=1).any():
        return [test.fails("every judge has the same rate of all agents")]
    friedman = friedmanchisquare(*shares.T)
    test.chi2 = abs(round(float(friedman.statistic), DIGITS))  # it may be a little below 0 by rounding
    test.kendall_w = test.chi2 / (judges * (number - 1))
    test.p = float(friedman.pvalue)
    return corrected([test])


def permutations(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[Difference]:
    """Every two agents by several judges: the exact permutation test of the difference of p(M|M), labels exchanged
    within a judge (2025 paper, Results)."""
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts["agent"].isin(agents)]
    marked = (judged["verdict"] == "machine").groupby([judged["judge"], judged["agent"]])
    number = marked.size().unstack(fill_value=0)
    machine = marked.sum().unstack(fill_value=0)
    if len(number) < 2:
        return []
    tests = []
    for first, second in combinations([agent for agent in agents if agent in number.columns], 2):
        of_first = number[first].to_numpy()
        of_both = (number[first] + number[second]).to_numpy()
        machine_of_both = (machine[first] + machine[second]).to_numpy()
        chances = _sum_of_hypergeometrics(of_both, machine_of_both, of_first)
        counts = np.arange(len(chances))
        trials = of_first.sum()
        others = (of_both - of_first).sum()
        difference = counts / trials - (machine_of_both.sum() - counts) / others
        observed = float(difference[machine[first].sum()])
        test = Difference(first=first, second=second, difference=Estimate(observed, form="+.2f"))
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


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two judges agree on the trials that both judged."""

    first: str
    """One judge's name."""
    second: str
    """The other's; the order means nothing."""
    trials: int
    """How many trials both judged."""
    alike: float | None
    """The share of equal verdicts, 0 to 1; None without such trials."""
    kappa: float | None
    """Cohen's kappa (1960); None without such trials, and where both always said one word."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the judges of a task agree; people have an alpha, all others the rest."""

    judges: list[str]
    """The names of all judges but people."""
    pairs: Table[PairAgreement]
    """Each two of them."""
    trials_of_all: int
    """How many trials all of them judged."""
    fleiss: float | None
    """Fleiss' kappa (1971) over these trials; None for a single judge, and where all verdicts are the same."""
    alpha: Estimate
    """Krippendorff's alpha of people; NaN without people."""


def agreement(verdicts: pd.DataFrame) -> Agreement:
    """How far the judges of a task's ``verdicts`` agree: each two, all together, and people."""
    table = verdicts_by_judge(verdicts[verdicts["judge_kind"] != "human"])
    pairs = [_pair(first, second, table[[first, second]].dropna()) for first, second in combinations(table.columns, 2)]
    complete = table.dropna().to_numpy(dtype=int)
    fleiss = None
    if complete.shape[1] > 1 and len(np.unique(complete)) > 1:
        from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

        fleiss = float(fleiss_kappa(aggregate_raters(complete)[0]))
    return Agreement(
        [str(name) for name in table.columns], Table(pairs), len(complete), fleiss, alpha_of_people(verdicts)
    )


def _pair(first: str, second: str, judged: pd.DataFrame) -> PairAgreement:
    if judged.empty:
        return PairAgreement(first, second, 0, None, None)
    alike = float((judged[first] == judged[second]).mean())
    rates = judged.mean().to_numpy()
    chance = float(rates.prod() + (1 - rates).prod())
    return PairAgreement(first, second, len(judged), alike, None if chance == 1 else (alike - chance) / (1 - chance))
