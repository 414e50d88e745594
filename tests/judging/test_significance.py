"""Tests of verdicts against scipy's own, and against what can be reckoned by hand."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.inter_rater import fleiss_kappa

from judging.significance import (
    Equations,
    against_chance,
    agreement,
    among_agents,
    between_agents,
    between_judges,
    between_values,
    by_equations,
    corrected,
    krippendorff_alpha,
)

NAN = float("nan")


def _verdicts(rates: dict[str, list[float]], number: int = 10, **columns: Any) -> pd.DataFrame:
    """Judges who say "machine" of these shares of an agent's answers, one of each list, and of half of people's."""
    rows = []
    for agent, shares in {**rates, "human:1": [0.5] * len(next(iter(rates.values())))}.items():
        truth = "human" if agent == "human:1" else "machine"
        for judge, share in enumerate(shares):
            for at in range(number):
                verdict = "machine" if at < round(share * number) else "human"
                rows.append((f"j{judge}", agent, truth, verdict, f"s{at}", f"{judge} {agent} {at}"))
    table = pd.DataFrame(rows, columns=["judge", "agent", "truth", "verdict", "stimulus", "trial"])
    return table.assign(judge_kind="human", **columns)


def test_who_says_machine_of_everything_detects_nobody() -> None:
    leaning = _verdicts({"a": [1.0]}).assign(verdict="machine")
    output = {(row.of, row.measure): row for row in against_chance(leaning, ["a"])}
    assert output["a", "p(M|M)"].direction == "above chance"
    assert output["people", "p(H|H)"].direction == "below chance"
    leaning_test = output["a", "detectability"]
    assert (leaning_test.rate, leaning_test.p, leaning_test.direction) == (0.5, 1.0, "not told from chance")
    sure = {(row.of, row.measure): row for row in against_chance(_verdicts({"a": [1.0]}), ["a"])}
    assert sure["a", "detectability"].rate == 0.75
    assert sure["a", "detectability"].p == pytest.approx(stats.fisher_exact([[10, 0], [5, 5]]).pvalue)
    shares = [0.6, 0.8, 0.7, 0.9, 0.4, 0.9, 1.0]
    of_judges = {(row.of, row.measure): row for row in against_chance(_verdicts({"a": shares}), ["a"])}
    wanted = stats.wilcoxon([round(10 * share) - 5 for share in shares]).pvalue  # whole numbers, whose ties are ties
    assert of_judges["a", "detectability"].p == pytest.approx(wanted)


def test_friedmans_test_is_scipys() -> None:
    chance = np.random.default_rng(0)
    shifts = {"a": 0, "b": 0.2, "c": 0.4}
    rates = {name: (chance.integers(0, 6, 12) / 10 + shift).tolist() for name, shift in shifts.items()}
    [result] = among_agents(_verdicts(rates), ["a", "b", "c"])
    wanted = stats.friedmanchisquare(*rates.values())
    assert result.chi2 == pytest.approx(wanted.statistic)
    assert result.p == result.holm == pytest.approx(wanted.pvalue)
    assert result.kendall_w == pytest.approx(wanted.statistic / (12 * 2))
    assert among_agents(_verdicts({name: values[:5] for name, values in rates.items()}), ["a", "b", "c"]) == []
    [constant] = among_agents(_verdicts({name: [0.3] * 8 for name in "abc"}), ["a", "b", "c"])
    assert constant.test.startswith("no test: every judge has the same rate")
    assert constant.p is constant.chi2 is constant.kendall_w is None


def test_two_groups_of_judges_are_compared_by_mann_and_whitney() -> None:
    table = _verdicts({"a": [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]})
    table["meta.age"] = np.where(table["judge"].isin(["j0", "j1", "j2", "j3"]), "old", "young")
    [result] = between_values(table, "meta.age")
    right = (table["verdict"] == table["truth"]).groupby(table["judge"]).mean()
    old, young = right[:4], right[4:]
    assert result.p == pytest.approx(stats.mannwhitneyu(old, young).pvalue)
    assert (result.unit, result.values, result.effect) == ("judge", "old, young", 0.0)  # no old one is better
    assert result.effect_is == "P(old better)"


def test_several_values_are_compared_by_analysis_of_variance_over_stimuli() -> None:
    chance = np.random.default_rng(1)
    table = _verdicts({"a": chance.random(20).tolist()})
    table["verdict"] = chance.choice(["human", "machine"], len(table))
    table["meta.topic"] = table["stimulus"].map({f"s{at}": "xyz"[at % 3] for at in range(10)})
    [result] = between_values(table, "meta.topic")
    means = (table["verdict"] == table["truth"]).groupby([table["meta.topic"], table["stimulus"]]).mean()
    groups = [part.to_numpy() for _, part in means.groupby(level=0)]
    wanted = stats.f_oneway(*groups)
    assert (result.unit, result.test) == ("stimulus", "analysis of variance")
    assert result.p == pytest.approx(wanted.pvalue)
    freedom = 2 / (len(means) - 3)
    assert result.effect == pytest.approx(wanted.statistic * freedom / (1 + wanted.statistic * freedom))
    assert between_values(table.assign(same="x"), "same") == []


def test_equations_are_those_of_statsmodels() -> None:
    chance = np.random.default_rng(4)
    table = _verdicts({"a": [0.5] * 20}, 7).sort_values("judge")
    table["verdict"] = chance.choice(["human", "machine"], len(table))
    [result] = by_equations(table.sample(frac=1, random_state=0))
    spoken, truth = table["verdict"] == "machine", table["truth"] == "machine"
    fit = sm.GEE(
        spoken.to_numpy(float), sm.add_constant(truth.to_numpy(float)), groups=table["judge"].to_numpy(),
        family=sm.families.Binomial(),
    ).fit()  # fmt: skip
    wanted = [*np.exp([fit.params[1], *fit.conf_int()[1]]), fit.pvalues[1]]
    assert [result.odds_ratio, result.low, result.high, result.p] == pytest.approx(wanted, rel=1e-6)
    assert (result.unit, result.clusters) == ("judge", 20)
    assert by_equations(table[table["judge"].isin(["j0", "j1"])]) == by_equations(table.assign(verdict="human")) == []


@pytest.mark.parametrize(("number", "shares"), [(6, (1 / 3, 1 / 2)), (10, (0.7, 0.3)), (7, (1 / 7, 3 / 7))])
def test_clusters_that_do_not_differ_have_no_equations(number: int, shares: tuple[float, float]) -> None:
    """Every judge has the same 2 x 2 table: the robust variance is 0, whatever a processor rounds it to."""
    table = _verdicts({"a": [shares[0]] * 12}, number)
    people = (table["truth"] == "human") & (table["stimulus"].str[1:].astype(int) < round(shares[1] * number))
    table.loc[table["truth"] == "human", "verdict"] = "human"
    table.loc[people, "verdict"] = "machine"
    [result] = by_equations(table)
    assert result.test == "no test: nothing varies from judge to judge"
    assert result.p is result.odds_ratio is result.low is result.high is None
    table.loc[0, "verdict"] = "human" if table.loc[0, "verdict"] == "machine" else "machine"
    [result] = by_equations(table)
    assert result.low < result.odds_ratio < result.high
    assert 0 < result.p < 1


@pytest.mark.parametrize("right", ["aabbcc", "aaabbbbbc"])
def test_values_that_do_not_vary_within_have_no_analysis_of_variance(right: str) -> None:
    """Topics a and c are always told, b never: by all orders of six topics p would be 0.2, never 0."""
    rows = [
        {"trial": f"t{at}", "judge": "w1", "stimulus": f"s{at}", "verdict": "machine" if topic == "b" else "human",
         "truth": "human", "agent": "x", "topic": topic}
        for at, topic in enumerate(right + "c")
    ]  # fmt: skip
    [result] = between_values(pd.DataFrame(rows), "topic")
    assert result.test == "no test: nothing varies within the values"
    assert result.p is result.statistic is result.effect is None
    [two] = between_values(pd.DataFrame(rows).query("topic != 'b'"), "topic")
    assert two.test == "no test: every stimulus is right as often"


def test_judges_who_do_not_differ_from_chance_are_not_tested() -> None:
    same = against_chance(_verdicts({"a": [0.5] * 8}), ["a"])
    assert {row.test for row in same} == {"no test: every judge is at 0.5"}
    assert {row.direction for row in same} == {"not told from chance"}
    few = against_chance(_verdicts({"a": [0.5] * 3}), ["a"])
    assert {row.test for row in few} == {"no test: Wilcoxon's needs 6 judges"}


def test_judges_and_agents_that_cannot_be_compared_say_why() -> None:
    table = _verdicts({"a": [0.5, 0.5]}).assign(sample=0)
    table["trial"] = table["agent"] + table["stimulus"]  # both judged the same
    [alike] = between_judges(table)
    assert (alike.test, alike.p, alike.difference) == ("no test: both are right on the same trials", None, 0)
    [apart] = between_judges(table.assign(trial=table["judge"] + table["trial"]))
    assert (apart.test, apart.p, apart.difference) == ("no test: no trial in common", None, None)
    split = table[table["truth"] == "machine"].assign(agent=lambda rows: rows["judge"].map({"j0": "a", "j1": "b"}))
    [agents] = between_agents(split, ["a", "b"])
    assert (agents.test, agents.p) == ("no test: no judge judged both", None)


def test_two_agents_are_compared_over_all_exchanges_of_labels_within_judges() -> None:
    spoken = {"j0": ("110", "0010"), "j1": ("11", "010"), "j2": ("1", "00")}  # of "a", of "b"; 1 is "machine"
    rows = [
        (judge, agent, "machine", "machine" if item == "1" else "human")
        for judge, texts in spoken.items()
        for agent, text in zip("ab", texts, strict=True)
        for item in text
    ]
    table = pd.DataFrame([*rows, ("j3", "c", "machine", "human")], columns=["judge", "agent", "truth", "verdict"])
    [result] = [item for item in between_agents(table, ["a", "b", "c"]) if item.second == "b"]

    ways = [
        [sum(int((item + other)[at]) for at in chosen) for chosen in combinations(range(len(item + other)), len(item))]
        for item, other in spoken.values()
    ]
    overall = sum(text.count("1") for texts in spoken.values() for text in texts)
    differences = [sum(way) / 6 - (overall - sum(way)) / 9 for way in product(*ways)]
    observed = 5 / 6 - 2 / 9
    assert result.difference == pytest.approx(observed)
    wanted = sum(abs(item) > observed - 1e-9 for item in differences) / len(differences)
    assert result.p == pytest.approx(wanted)
    assert 0.01 < wanted < 0.2


def test_p_values_together_are_corrected_by_holm() -> None:
    tests = corrected([Equations(unit="judge", clusters=10, p=p) for p in (0.01, None, 0.04, 0.03)])
    assert [test.holm for test in tests] == [pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.06)]


def test_alpha_of_krippendorffs_own_example() -> None:
    """Krippendorff 2011, example C: four observers, twelve units, missing data, nominal: alpha = 0.743."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    counts = np.stack([(kind == np.array(observers).T).sum(axis=1) for kind in range(1, 6)], axis=1)
    assert krippendorff_alpha(counts) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(np.array([[3, 0], [0, 3]])) == 1
    assert krippendorff_alpha(np.array([[3, 0], [1, 0]])) is None


def test_pairs_and_fleiss_kappa() -> None:
    spoken = {"x": "HHHHMMMMHM", "y": "HHHMMMMHHM", "z": "HHHMMMHHMM"}
    verdict = {"H": "human", "M": "machine", "R": "refused"}
    cells = [(judge, at, 0, letter) for judge, letters in spoken.items() for at, letter in enumerate(letters)]
    cells += [("x", 0, 1, "M"), ("y", 10, 0, "R")]  # a first verdict counts, and what is none does not
    rows = [
        {"judge": judge, "judge_kind": "machine", "trial": at, "sample": sample, "verdict": verdict[letter]}
        for judge, at, sample, letter in cells
    ]
    result = agreement(pd.DataFrame(rows))
    x_and_y = result.pairs.data[0]
    assert (x_and_y.first, x_and_y.second, x_and_y.trials) == ("x", "y", 10)
    assert x_and_y.alike == 0.8
    assert x_and_y.kappa == pytest.approx((0.8 - 0.5) / 0.5)
    counts = np.array([[letters[at] == "M" for letters in spoken.values()] for at in range(10)]).sum(axis=1)
    assert result.fleiss == pytest.approx(fleiss_kappa(np.column_stack([counts, 3 - counts])))
    assert result.trials_of_all == 10
