"""Tests of verdicts: the papers' (over judges) and better ones beside them, each with its effect and its direction.

- against chance: the exact binomial test of each rate against 0.5 where there is one judge; Wilcoxon's signed-rank test
  of the judges' own rates against 0.5 where there are at least six (2025 paper, Results).
- two judges on the same trials: McNemar's exact test of which was right where they differ.
- two agents before the same judges: a permutation test of the difference of their p(M|M), labels being exchanged within
  each judge.

Several p values together are corrected by Holm and by Bonferroni.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judging.agreement import said_by
from judging.verdicts import SAID

if TYPE_CHECKING:
    import pandas as pd

LEAST_JUDGES = 6  # below that Wilcoxon's test cannot reach 0.05
PERMUTATIONS = 2000


def against_chance(verdicts: pd.DataFrame, agents: Sequence[str]) -> list[dict[str, Any]]:
    """Each rate against 0.5: of people's answers p(H|H), of each agent's p(M|M)."""
    from scipy.stats import binomtest, wilcoxon

    given = verdicts[verdicts["verdict"].isin(SAID)]
    found = []
    for agent in ["", *agents]:
        some = given[given["truth"] == "human"] if not agent else given[given["agent"] == agent]
        if some.empty:
            continue
        right = some["verdict"] == some["truth"]
        by_judge = right.groupby(some["judge"]).mean()
        told: dict[str, Any] = {"of": agent or "people", "rate": float(right.mean()), "verdicts": len(some)}
        if len(by_judge) == 1:
            told |= {"test": "exact binomial", "p": float(binomtest(int(right.sum()), len(some)).pvalue)}
        elif len(by_judge) >= LEAST_JUDGES and (by_judge != 0.5).any():
            told |= {"test": "Wilcoxon, judges", "p": float(wilcoxon(by_judge - 0.5).pvalue)}
        else:
            told |= {"test": None, "p": None}
        told["direction"] = ("at", "above", "below")[(told["rate"] > 0.5) - (told["rate"] < 0.5)] + " chance"
        found.append(told)
    return corrected(found)


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


def between_agents(verdicts: pd.DataFrame, agents: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Every two agents before the same judges: the difference of their p(M|M)."""
    given = verdicts[verdicts["verdict"].isin(SAID)]
    chance = np.random.default_rng(seed)
    found = []
    for one, other in combinations(agents, 2):
        some = given[given["agent"].isin([one, other])]
        is_one = (some["agent"] == one).to_numpy()
        right = (some["verdict"] == "machine").to_numpy(dtype=float)
        if not is_one.any() or is_one.all():
            continue
        observed = right[is_one].mean() - right[~is_one].mean()
        judge = some["judge"].to_numpy()
        order = np.argsort(judge, kind="stable")
        is_one, right, judge = is_one[order], right[order], judge[order]
        groups = np.unique(judge, return_inverse=True)[1]
        more = 0
        for _ in range(PERMUTATIONS):
            mixed = is_one[np.lexsort((chance.random(len(is_one)), groups))]
            more += abs(right[mixed].mean() - right[~mixed].mean()) >= abs(observed) - 1e-12
        p = (more + 1) / (PERMUTATIONS + 1)
        found.append(
            {"first": one, "second": other, "difference": float(observed), "test": "permutation within judges", "p": p}
        )
    return corrected(found)


def corrected(tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With ``holm`` and ``bonferroni`` beside each ``p``."""
    from statsmodels.stats.multitest import multipletests

    known = [one for one in tests if one["p"] is not None]
    for name in ("holm", "bonferroni"):
        values = multipletests([one["p"] for one in known], method=name)[1] if known else ()
        for one, value in zip(known, values, strict=True):
            one[name] = float(value)
    return tests
