"""Tests of verdicts against scipy's own, and against what can be reckoned by hand."""

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import expit
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.inter_rater import fleiss_kappa
from statsmodels.stats.multitest import multipletests

from judging.scores.conclusions import conclude
from judging.scores.papers.significance import (
    agreement,
    among_agents,
    over_judges,
    permutations,
)
from judging.scores.papers.trends import trends
from judging.statistics import contrasts
from judging.statistics.contrasts import agent_tests, between_judges, by_column, corrected
from judging.statistics.correctness import between_values, people_beside_judges, t_tests
from judging.statistics.jackknife import Clusters, rates
from judging.statistics.krippendorff import krippendorff_alpha
from judging.statistics.measures import clusters, detectabilities, is_right, rates_of_judges, summarize

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


def _study(seed: int, judges: int = 14, stimuli: int = 12, spread: float = 0.6) -> pd.DataFrame:
    """Judges who all see the same answers of people, "a" and "b", who do not differ; judges and answers do."""
    chance = np.random.default_rng(seed)
    judge, stimulus, agent = (part.ravel() for part in np.indices((judges, stimuli, 3)))
    middle = chance.normal(0, 0.4, judges)[judge] + chance.normal(0, spread, (stimuli, 3))[stimulus, agent]
    right = middle + chance.normal(size=len(judge)) > 0
    truth = np.where(agent == 0, "human", "machine")
    verdict = np.where((agent > 0) == right, "machine", "human")
    columns = {"judge": judge, "stimulus": stimulus, "agent": np.array(["h", "a", "b"])[agent], "truth": truth}
    return pd.DataFrame(columns | {"verdict": verdict, "trial": stimulus * 3 + agent, "judge_kind": "human"})


def test_the_variance_is_that_of_statsmodels() -> None:
    """Ordinary least squares on a constant, with errors clustered by judges and by stimuli."""
    table = _study(3).query("agent == 'a'")
    fit = OLS((table["verdict"] == table["truth"]).to_numpy(float), np.ones(len(table))).fit()
    wanted = fit.get_robustcov_results("cluster", groups=table[["judge", "stimulus"]].to_numpy()).bse[0]
    result = detectabilities(table, [np.ones(len(table), dtype=bool)])
    assert result.deviation(np.array([1]), np.ones(1)) == pytest.approx((wanted, 11))


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_the_freedom_of_a_difference_is_that_of_its_judges(seed: int) -> None:
    """Welch's (1947) of 3 and of 20 other judges, or his of judges who vary alike if it is less; of the same 20 judges
    it is 19."""
    judge = np.arange(43) % 23
    of = np.arange(43) // 23
    right = np.random.default_rng(seed).random(43) < np.where(judge < 20, 0.9, 0.5)
    cells = np.array([(judge >= 20) & (of == 0), (judge < 20) & (of == 0), of == 1])
    alone = Clusters(judge, np.zeros(43, dtype=np.int64), np.full(43, -1), np.ones(43))
    result = rates(right.astype(np.float64), cells, alone)
    less = np.array([1.0, -1.0])
    error, freedom = result.deviation(np.array([[0, 1], [1, 2]]), less)
    welch = stats.ttest_ind(*(right[cell].astype(float) for cell in cells[:2]), equal_var=False)
    alike = (1 / 3 + 1 / 20) ** 2 / (1 / 3**2 / 2 + 1 / 20**2 / 19)
    assert abs(result.value[0] - result.value[1]) / error[0] == pytest.approx(abs(welch.statistic))
    assert freedom == pytest.approx([min(welch.df, alike), 19])


@pytest.mark.parametrize("judges", [2, 3, 14])
def test_p_is_the_confidence_whose_interval_ends_at_the_hypothesis(judges: int) -> None:
    """At any confidence; and no interval of a difference is shorter than Student's, with few judges too."""
    result = detectabilities(_study(5, judges), [np.ones(judges * 12 * 3, dtype=bool)])
    cells = np.array([0, 1])
    weights = np.array([1.0, -1.0])
    middle = float(result.sum(cells, weights))
    (error, freedom) = map(float, result.deviation(cells, weights))
    for null in (middle - 0.25, middle + 0.2):
        p = float(result.p(cells, weights, null))
        assert 1e-6 < p < 0.99
        assert null in [pytest.approx(end) for end in result.interval(cells, weights, 1 - p)]
        for alpha in (0.001, 0.01, 0.05, 0.1, 0.2, 0.5):
            low, high = result.interval(cells, weights, 1 - alpha)
            assert (p < alpha) == (null < low or null > high)
            half = min(stats.t.ppf(1 - alpha / 2, freedom) * error, 1 - abs(middle))
            assert min(high - middle, middle - low) >= half - 1e-9
    assert result.p(cells, weights, middle) == 1
    easy = detectabilities(_study(5).assign(verdict=lambda rows: rows["truth"]), [np.ones(14 * 12 * 3, dtype=bool)])
    assert easy.p(np.array([1]), np.ones(1), 0.5) == pytest.approx(stats.binomtest(12, 12).pvalue)


def test_a_slopes_error_is_the_jackknifes_and_its_freedom_that_of_judges_and_stimuli() -> None:
    """numpy's polyfit without a judge, a stimulus or a verdict at a time; judges' values stretch to one side."""
    table = _study(7, 10).assign(age=lambda rows: 1.5 ** rows["judge"])
    [test] = by_column(table, "age")
    right = (table["verdict"] == table["truth"]).to_numpy(float)

    def slope(kept: np.ndarray) -> float:
        whose = table["agent"].where(table["truth"] == "machine", "people").to_numpy()
        parts = {name: kept & (whose == name) for name in ("people", "a", "b")}
        slopes = {name: np.polyfit(table["age"][part], right[part], 1)[0] for name, part in parts.items()}
        return float(slopes["people"] / 2 + (slopes["a"] + slopes["b"]) / 4)

    everything = np.ones(len(table), dtype=bool)
    variances = []
    for names in (["judge"], ["stimulus"], ["judge", "stimulus"]):
        groups = table.groupby(names).ngroup().to_numpy()
        left = [slope(groups != at) - slope(everything) for at in range(groups.max() + 1)]
        variances.append((len(left) - 1) / len(left) * np.square(left).sum())
    variance = max(variances[0] + variances[1] - variances[2], *variances[:2])
    spread = (1.5 ** np.arange(10) - (1.5 ** np.arange(10)).mean()) ** 2
    of_each = np.array([spread.sum() ** 2 / (spread**2).sum() - 1, 11])
    joint = 1 / (np.maximum(np.array(variances[:2]) / variance, 0.85) ** 2 / of_each).sum()
    freedom = max(joint, of_each.min())
    assert test.p == pytest.approx(2 * stats.t.sf(abs(slope(everything)) / np.sqrt(variance), freedom))


def test_judges_who_give_more_verdicts_count_as_fewer() -> None:
    """Of 33 verdicts on an agent's answers two judges give 12 each, the others 3 and 6; the mean judge is of four."""
    table = _study(3, 4).query("judge < 2 or stimulus < 3 * (judge - 1)")
    right = is_right(table)
    everything = np.ones((1, len(table)), dtype=bool)
    of_verdicts, of_judges = (each(right, everything, clusters(table)) for each in (rates, rates_of_judges))
    shares = np.array([12, 12, 3, 6]) / 33
    assert (of_verdicts.freedom[0], of_judges.freedom[0]) == pytest.approx((1 / (shares**2).sum() - 1, 3))
    assert of_verdicts.value[0] == right.mean()
    assert of_judges.value[0] == pytest.approx(pd.Series(right).groupby(table["judge"].to_numpy()).mean().mean())


def test_people_who_answered_are_drawn_as_well() -> None:
    """Ten people, of whom half are taken for machines by everybody, whatever they answer."""
    judge, stimulus = (part.ravel() for part in np.indices((20, 40)))
    columns = {"judge": judge, "stimulus": stimulus, "trial": stimulus, "truth": "human"}
    table = pd.DataFrame({**columns, "agent": np.char.add("human:", (stimulus % 10).astype(str))})
    table["verdict"] = np.where(stimulus % 2, "human", "machine")
    of_ten, of_nobody, of_one = (
        summarize(people, [])[0].p_human
        for people in (table, table.assign(agent="human"), table.assign(agent="human:1"))
    )
    number = 9 * (stats.t.ppf(0.975, 799) / stats.t.ppf(0.975, 9)) ** 2 / 2  # as many right (Korn, Graubard 1998)
    assert of_ten.low == pytest.approx(stats.beta.ppf(0.025, number, number + 1))
    assert (of_nobody.low, of_nobody.high) == (of_one.low, of_one.high)  # of 40 stimuli, each with an answer
    assert of_one.low > of_ten.low + 0.1


@pytest.mark.parametrize("name", ["judge", "stimulus"])
def test_a_single_judge_of_several_tells_nothing_of_others(name: str) -> None:
    table = _study(3)
    alone = table[(table["agent"] != "b") | (table[name] == 0)]
    [of_a, of_b] = agent_tests(alone, ["a", "b"], 0.4)["against_people"]
    assert (of_b.test, of_b.p, of_b.passes) == (f"no test: a single {name} of several", None, None)
    assert np.isnan([of_b.difference.low, summarize(alone, ["a", "b"])[2].p_machine.high]).all()
    assert of_a.p == agent_tests(table, ["a"])["against_people"][0].p
    [both] = agent_tests(alone[alone[name] == 0], ["a"])["against_people"]
    assert both.test == {"judge": "stimuli, of this judge", "stimulus": "judges"}[name]


def test_who_passes_may_be_less_human_than_people() -> None:
    table = _study(0, 60, 60, 0.0).query("agent != 'b'").assign(verdict=lambda rows: rows["truth"])
    table.loc[table["judge"] % 3 == 0, "verdict"] = "human"
    test: Any
    [test] = agent_tests(table, ["a"], 0.49)["against_people"]
    assert test.passes
    scores = [replace(row, judge="people") for row in summarize(table, ["a"])]
    [row] = conclude(scores, [replace(test, judge="people")], (), 0.49)
    assert row.outcome == "passes"
    assert "within 1 to 99 %, although it is not at 50 %" in row.why
    assert row.why.endswith("but no agent here shows that people can tell any")


def test_a_judge_who_says_the_same_of_every_answer_tests_nobody() -> None:
    table = _study(0, 60, 60, 0.0).query("agent != 'b'").assign(verdict="human")
    scores = [replace(row, judge="people") for row in summarize(table, ["a"])]
    test: Any
    [test] = agent_tests(table, ["a"], 0.05)["against_people"]
    [row] = conclude(scores, [replace(test, judge="people")], (), 0.05)
    assert (row.outcome, row.why) == ("is not tested", "people said the same of every answer")


def test_agents_who_do_not_differ_are_seldom_significant_though_their_answers_differ() -> None:
    """The papers' permutation test takes the answers as fixed, and calls more than every tenth study significant."""
    studies = [_study(seed) for seed in range(100, 200)]
    alarms = {"two-way": 0, "permutation": 0, "people": 0}
    for study in studies:
        tests = agent_tests(study, ["a", "b"])
        alarms["two-way"] += tests["between_agents"][0].p < 0.05
        alarms["people"] += tests["against_people"][0].p < 0.05
        alarms["permutation"] += permutations(study, ["a", "b"])[0].p < 0.05
    assert alarms["two-way"] <= 13  # 1 in 1,000 at a true 0.05
    assert alarms["people"] <= 13
    assert alarms["permutation"] > 13


def test_who_says_machine_of_everything_detects_nobody() -> None:
    leaning = agent_tests(_verdicts({"a": [1.0]}).assign(verdict="machine"), ["a"], 0.1)
    rates = {row.of: (row.measure, row.rate.value, row.result) for row in leaning["against_half"]}
    assert rates == {
        "a": ("p(M|M)", 1, "says machine of more than half"),
        "people": ("p(H|H)", 0, "says human of less than half"),
    }
    [test] = leaning["against_people"]
    assert (test.difference.value, test.p, test.test) == (0, 1, "stimuli, of this judge")
    assert (test.passes, test.family) == (False, 1)  # ten answers are too few to pass
    low = stats.binomtest(10, 10).proportion_ci(0.9, method="exact").low
    assert test.bounds == pytest.approx((1 - low) / 2)
    [passing] = agent_tests(_verdicts({"a": [1.0]}, 100).assign(verdict="machine"), ["a"], 0.1)["against_people"]
    assert passing.passes


def test_two_factors_are_tested_as_by_the_sums_of_squares() -> None:
    """With as many judges in each cell the sums of squares of both factors and their interaction add up."""
    chance = np.random.default_rng(2)
    table = _verdicts({"a": chance.uniform(0.2, 1, 24).round(1).tolist()})
    number = table["judge"].str[1:].astype(int)
    table = table.assign(sex=np.where(number % 2, "w", "m"), school=np.array(["x", "y", "z"])[number % 3])
    tests = between_values(table.assign(**{"sex*school": table["sex"] + table["school"]}), "sex*school")
    means = (table["verdict"] == table["truth"]).groupby([table["sex"], table["school"], table["judge"]]).mean()
    cells = means.groupby(["sex", "school"]).transform("mean")
    middle = means.mean()
    within = ((means - cells) ** 2).sum()
    sums = [((means.groupby(name).transform("mean") - middle) ** 2).sum() for name in ("sex", "school")]
    sums.append(((cells - middle) ** 2).sum() - sum(sums))
    for test, part, freedom in zip(tests, sums, (1, 2, 2), strict=True):
        assert test.freedom == f"{freedom}, 18"
        assert test.statistic == pytest.approx(part / freedom / (within / 18))
        assert test.p == pytest.approx(stats.f.sf(test.statistic, freedom, 18))
        assert test.effect == pytest.approx(part / (part + within))


def _in_cells(right: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    """Judges of a sex and a school with these shares of ten right verdicts on people's answers."""
    parts = []
    for (sex, school), shares in right.items():
        for at, share in enumerate(shares):
            verdicts = np.where(np.arange(10) < round(10 * share), "human", "machine")
            parts.append(pd.DataFrame({"verdict": verdicts}).assign(judge=f"{sex}{school}{at}", sex=sex, school=school))
    table = pd.concat(parts, ignore_index=True).assign(truth="human")
    return table.assign(**{"sex*school": table["sex"] + ", " + table["school"]})


def test_two_factors_without_variance_in_their_cells_have_no_test() -> None:
    """Women are always right, men in half: least squares would leave rounding alone, and an F of 1e30."""
    cells = {(sex, school): [1.0 if sex == "w" else 0.5] * 2 for sex in "wm" for school in "xy"}
    [result] = between_values(_in_cells(cells), "sex*school")
    assert (result.column, result.test) == ("sex*school", "no test: nothing varies within the cells")
    assert result.p is result.statistic is result.effect is None
    [same] = between_values(_in_cells({cell: [0.7, 0.7] for cell in cells}), "sex*school")
    assert same.test == "no test: nothing varies within the cells"
    varied = between_values(_in_cells(cells | {("m", "y"): [0.4, 0.6]}), "sex*school")  # in a single cell
    assert [test.freedom for test in varied] == ["1, 4"] * 3
    assert varied[0].statistic == pytest.approx(0.5 / (0.02 / 4))  # 8 judges, each 0.25 from the mean


def test_shares_that_differ_by_rounding_alone_do_not_vary_within_cells() -> None:
    """A judge's mean of 0.1, 0.2 and so on may differ from another's by 1e-17; of equal shares none is left."""
    chance = np.random.default_rng(0)
    cells = {(sex, school): [0.3 if sex == "w" else 0.7] * 3 for sex in "wm" for school in "xy"}
    table = _in_cells(cells).sample(frac=1, random_state=1)
    weights = pd.Series(chance.choice([3, 7, 11], table["judge"].nunique()), index=table["judge"].unique())
    repeated = table.loc[table.index.repeat(table["judge"].map(weights))]  # the same shares of 30, 70 and 110 verdicts
    [result] = between_values(repeated, "sex*school")
    assert result.test == "no test: nothing varies within the cells"


def test_two_factors_that_cannot_be_tested_say_why() -> None:
    cells = {("w", "x"): [1.0, 0.5], ("w", "y"): [0.5, 0.7], ("m", "x"): [0.2, 0.3]}
    [missing] = between_values(_in_cells(cells), "sex*school")
    assert missing.test == "no test: no judge is at sex m with school y"
    [single] = between_values(
        _in_cells({cell: shares for cell, shares in cells.items() if cell[0] == "w"}), "sex*school"
    )
    assert single.test == "no test: sex has fewer than two values"
    [alone] = between_values(_in_cells({(sex, school): [0.5] for sex in "wm" for school in "xy"}), "sex*school")
    assert alone.test == "no test: each cell has a single judge"
    table = _in_cells(cells).assign(**{"sex*school*hand": "w, x, left"})
    [three] = between_values(table, "sex*school*hand")
    assert three.test == "no test: the analysis of variance is of two columns"


def test_a_slope_that_no_judge_or_stimulus_changes_has_no_test() -> None:
    """Everything is right: there is no error to divide by, and not too few verdicts."""
    table = _study(0).assign(verdict=lambda rows: rows["truth"], length=lambda rows: rows["stimulus"] % 4)
    [test] = by_column(table, "length")
    assert test.test == "no test: the slope is the same without any judge, stimulus or person"
    assert (test.p, test.difference.value) == (None, pytest.approx(0))
    assert np.isnan(test.difference.low)


def test_judges_at_half_are_not_decided_and_few_have_no_wilcoxon() -> None:
    shares = [0.6, 0.8, 0.7, 0.9, 0.4, 0.9, 1.0]
    [_, of_a] = over_judges(_verdicts({"a": shares}), ["a"])
    wanted = stats.wilcoxon([round(10 * share) - 5 for share in shares]).pvalue  # whole numbers, whose ties are ties
    assert (of_a.measure, of_a.p) == ("p(M|M)", pytest.approx(wanted))
    assert {row.test for row in over_judges(_verdicts({"a": [0.5] * 8}), ["a"])} == {"no test: every judge is at 0.5"}
    assert over_judges(_verdicts({"a": [0.5] * 3}), ["a"]) == []


def test_columns_are_tested_by_detectability_and_not_by_the_mix_of_people_and_machines() -> None:
    """Judges who say human of 70 % whatever they see; 70 % of the answers on music are people's, 30 % of the others."""
    chance = np.random.default_rng(0)
    judge, stimulus = (part.ravel() for part in np.indices((30, 24)))
    is_human = chance.random(len(judge)) < np.where(stimulus < 12, 0.7, 0.3)
    spoken = np.where(chance.random(len(judge)) < 0.7, "human", "machine")
    columns = {"judge": judge, "stimulus": stimulus, "trial": stimulus * 2 + is_human, "verdict": spoken}
    table = pd.DataFrame(columns | {"truth": np.where(is_human, "human", "machine"), "agent": "x"})
    table = table.assign(topic=np.where(stimulus < 12, "music", "tech"), length=stimulus % 3)
    [test] = by_column(table, "topic")
    assert test.p > 0.05
    assert between_values(table, "topic")[0].p < 1e-3  # as the papers compare
    assert (test.value, test.beside, test.stimuli) == ("music", "tech", 12)
    assert [row.beside for row in by_column(table.assign(topic=np.take(list("xyz"), stimulus % 3)), "topic")] == [
        "the others"
    ] * 3
    [slope] = by_column(table, "length")
    right = (table["verdict"] == table["truth"]).to_numpy(float)
    weight = 1 / table.groupby(["judge", "truth"])["trial"].transform("size").to_numpy()
    each = [
        np.polyfit(stimulus[part] % 3, right[part], 1, w=np.sqrt(weight[part]))[0] for part in (is_human, ~is_human)
    ]
    assert slope.difference.value == pytest.approx(np.mean(each))
    assert slope.difference.low < slope.difference.value < slope.difference.high
    assert (slope.value, slope.p > 0.001) == ("slope", True)


def test_other_agents_at_a_value_are_no_difference() -> None:
    """A judge who tells one agent always, another never; the first is more often among the early stimuli."""
    table = _study(2, 12, 20).assign(early=lambda rows: rows["stimulus"] < 10)
    table["verdict"] = np.where((table["agent"] == "a") | (table["truth"] == "human"), table["truth"], "human")
    mixed = table[
        (table["truth"] == "human") | ((table["stimulus"] % 5 > 0) == (table["early"] == (table["agent"] == "a")))
    ]
    [test] = by_column(mixed, "early")
    assert test.difference.value == pytest.approx(0)
    [alone] = by_column(mixed[(mixed["truth"] == "human") | (mixed["early"] == (mixed["agent"] == "a"))], "early")
    assert (alone.test, alone.p) == ("no test: no agent is at both values", None)


def test_passing_is_corrected_over_agents() -> None:
    """As statsmodels corrects the larger p of two tests, a side each."""
    table = _study(0, 30, 40, 0.0)
    tests = agent_tests(table, ["a", "b"], 0.1)["against_people"]
    alone = [
        agent_tests(table[table["agent"] != other], [agent], 0.1)["against_people"][0] for agent, other in ("ab", "ba")
    ]
    wanted = multipletests([test.holm_within for test in alone], method="holm")[1]
    assert [test.holm_within for test in tests] == pytest.approx(wanted)
    assert [test.passes for test in alone] == [test.bounds <= 0.1 for test in alone]


def test_friedmans_test_is_scipys() -> None:
    chance = np.random.default_rng(0)
    shifts = {"a": 0, "b": 0.2, "c": 0.4}
    rates = {name: (chance.integers(0, 6, 12) / 10 + shift).tolist() for name, shift in shifts.items()}
    [result] = among_agents(_verdicts(rates), ["a", "b", "c"])
    wanted = stats.friedmanchisquare(*rates.values())
    assert result.chi2 == pytest.approx(wanted.statistic)
    assert result.p == pytest.approx(wanted.pvalue)
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
    old = right[:4]
    young = right[4:]
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


@pytest.mark.parametrize("right", ["aabbcc", "aaabbbbbc"])
def test_values_that_do_not_vary_within_have_no_analysis_of_variance(right: str) -> None:
    """Topics a and c are always told, b never: by all orders of six topics p would be 0.2, never 0."""
    rows = [
        {
            "trial": f"t{at}",
            "judge": "w1",
            "stimulus": f"s{at}",
            "verdict": "machine" if topic == "b" else "human",
            "truth": "human",
            "agent": "x",
            "topic": topic,
        }
        for at, topic in enumerate(right + "c")
    ]
    [result] = between_values(pd.DataFrame(rows), "topic")
    assert result.test == "no test: nothing varies within the values"
    assert result.p is result.statistic is result.effect is None
    [two] = between_values(pd.DataFrame(rows).query("topic != 'b'"), "topic")
    assert two.test == "no test: every stimulus is right as often"


def test_judges_and_agents_that_cannot_be_compared_say_why() -> None:
    table = _verdicts({"a": [0.5, 0.5]}).assign(sample=0, judge_kind="machine")
    table["trial"] = table["agent"] + table["stimulus"]  # both judged the same
    [alike] = between_judges(table)
    assert (alike.p, alike.trials, alike.difference.value) == (1, 20, 0)
    [apart] = between_judges(table.assign(trial=table["judge"] + table["trial"]))
    assert (apart.test, apart.p, apart.trials) == ("no test: too few verdicts", None, 0)
    split = table[table["truth"] == "machine"].assign(agent=lambda rows: rows["judge"].map({"j0": "a", "j1": "b"}))
    [agents] = permutations(split, ["a", "b"])
    assert (agents.test, agents.p) == ("no test: no judge judged both", None)


def test_two_agents_are_compared_over_all_exchanges_of_labels_within_judges() -> None:
    spoken = {"j0": ("110", "0010"), "j1": ("11", "010"), "j2": ("1", "00")}  # of "a", of "b"; 1 is "machine"
    rows = []
    for judge, texts in spoken.items():
        for agent, text in zip("ab", texts, strict=True):
            rows += [(judge, agent, "machine", "machine" if item == "1" else "human") for item in text]
    table = pd.DataFrame([*rows, ("j3", "c", "machine", "human")], columns=["judge", "agent", "truth", "verdict"])
    [result] = [item for item in permutations(table, ["a", "b", "c"]) if item.second == "b"]

    ways = [
        [sum(int((item + other)[at]) for at in chosen) for chosen in combinations(range(len(item + other)), len(item))]
        for item, other in spoken.values()
    ]
    overall = sum(text.count("1") for texts in spoken.values() for text in texts)
    differences = [sum(way) / 6 - (overall - sum(way)) / 9 for way in product(*ways)]
    observed = 5 / 6 - 2 / 9
    assert result.difference.value == pytest.approx(observed)
    wanted = sum(abs(item) > observed - 1e-9 for item in differences) / len(differences)
    assert result.p == pytest.approx(wanted)
    assert 0.01 < wanted < 0.2


def test_two_sets_of_verdicts_are_compared_by_t() -> None:
    """Feedback before the test, of judges of both; two platforms; people beside a classifier (2025 paper)."""
    chance = np.random.default_rng(4)
    before = chance.integers(3, 7, 12) / 10
    after = chance.integers(4, 10, 12) / 10
    first = _verdicts({"a": before.tolist()}).assign(phase="feedback")
    table = pd.concat([first, _verdicts({"a": after.tolist()}).assign(phase="test")])
    [paired] = t_tests(table, "phase")
    wanted = stats.ttest_rel(before, after)
    assert (paired.unit, paired.freedom, paired.values) == ("judge, paired", "11", "feedback, test")
    assert (paired.statistic, paired.p) == (pytest.approx(wanted.statistic), pytest.approx(wanted.pvalue))
    assert paired.effect == pytest.approx((before.mean() - after.mean()) / 2)  # half of the answers are people's
    table["judge"] += table["phase"]  # other judges after
    [apart] = t_tests(table, "phase")
    assert (apart.unit, apart.p) == ("judge", pytest.approx(stats.ttest_ind(before, after).pvalue))
    assert t_tests(table.assign(phase=table["judge"]), "phase") == []
    [alike] = t_tests(pd.concat([first, first.assign(phase="test")]), "phase")
    assert (alike.p, alike.test) == (None, "no test: nothing varies within the values")
    machine = _verdicts({"a": [0.9]}, 30).assign(judge="svm", judge_kind="machine")
    [beside] = people_beside_judges(pd.concat([first.assign(judge_kind="human"), machine]))
    right = (first["verdict"] == first["truth"]).astype(float), (machine["verdict"] == machine["truth"]).astype(float)
    assert (beside.unit, beside.values) == ("verdict", "people, svm")
    assert beside.p == pytest.approx(stats.ttest_ind(*right).pvalue)
    assert people_beside_judges(machine) == []


def test_p_values_together_are_corrected_by_holm() -> None:
    values = [0.01, 0.9, 0.04, 0.03, 0.5, 0.0001]
    tests = corrected([*(contrasts.StatisticalTest(p=p) for p in values), contrasts.StatisticalTest()])
    assert [test.holm for test in tests[:-1]] == pytest.approx(multipletests(values, method="holm")[1])
    assert {(test.p is None, test.family) for test in tests} == {(False, 6), (True, None)}


def test_alpha_of_krippendorffs_own_example() -> None:
    """Krippendorff 2011, example C: four observers, twelve units, missing data, nominal: alpha = 0.743."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    by_unit = np.array(observers).T
    counts = np.stack([np.sum(by_unit == kind, axis=1) for kind in range(1, 6)], axis=1)
    result = krippendorff_alpha(counts, np.arange(12))
    assert result.value == pytest.approx(0.743, abs=5e-4)
    left = [krippendorff_alpha(np.delete(counts, at, 0), np.arange(11)).value for at in range(11)]  # the last is alone
    half = stats.t.ppf(0.975, 10) * np.sqrt(10 / 11 * ((np.array(left) - np.mean(left)) ** 2).sum())
    assert [result.low, result.high] == pytest.approx([result.value - half, min(1, result.value + half)])
    alike = krippendorff_alpha(np.array([[3, 0], [0, 3], [3, 0]]), np.arange(3))
    assert alike.value == 1
    assert np.isnan([alike.low, alike.high]).all()  # three stimuli do not make it sure
    assert np.isnan(krippendorff_alpha(np.array([[3, 0], [1, 0]]), np.arange(2)).value)


def test_pairs_and_fleiss_kappa() -> None:
    spoken = {"x": "HHHHMMMMHM", "y": "HHHMMMMHHM", "z": "HHHMMMHHMM"}
    verdict = {"H": "human", "M": "machine", "R": "refused"}
    cells = [(judge, at, 0, letter) for judge, letters in spoken.items() for at, letter in enumerate(letters)]
    cells += [("x", 0, 1, "M"), ("y", 10, 0, "R")]  # a first verdict counts, and what is none does not
    rows = [
        {
            "judge": judge,
            "judge_kind": "machine",
            "stimulus": at,
            "trial": at,
            "sample": sample,
            "verdict": verdict[letter],
        }
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


def test_trends_are_slopes_of_judges_and_a_regression_of_all() -> None:
    """Ten judges of people's answers at four lengths; slopes by scipy, log odds by maximum likelihood."""
    chance = np.random.default_rng(8)
    rows = [
        (f"j{judge}", length, "human" if chance.random() < 0.3 + 0.02 * length else "machine")
        for judge, length, _ in product(range(10), (3, 6, 9, 24), range(6))
    ]
    table = pd.DataFrame(rows, columns=["judge", "length", "verdict"]).assign(truth="human")
    table["meta.type"] = np.where(np.arange(len(table)) % 2, "H-H", "H-M")
    tests = [test for test in trends(table, "length") if test.type == "all"]
    right = (table["verdict"] == "human").astype(float)
    parts = [(table["length"][rows], right[rows]) for rows in table.groupby("judge").groups.values()]
    slopes = [stats.linregress(*part).slope for part in parts]
    assert tests[0].change.value == pytest.approx(np.mean(slopes))
    assert tests[0].p == pytest.approx(stats.wilcoxon(np.round(slopes, 9)).pvalue)
    residuals = []
    for length, share in parts:
        line = stats.linregress(length[length < 24], share[length < 24])
        residuals.append(share[length == 24].mean() - line.intercept - 24 * line.slope)
    assert tests[1].change.value == pytest.approx(np.mean(residuals))
    assert tests[1].p == pytest.approx(stats.wilcoxon(np.round(residuals, 9)).pvalue)

    def loss(line: np.ndarray) -> float:
        odds = line[0] + line[1] * table["length"]
        return float((np.logaddexp(0, odds) - right * odds).sum())

    best = optimize.minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert tests[2].change.value == pytest.approx(best.x[1], abs=1e-5)
    share = expit(best.x[0] + best.x[1] * table["length"].to_numpy())
    design = np.column_stack([np.ones(len(table)), table["length"]])
    error = np.sqrt(np.linalg.inv(design.T @ (design * (share * (1 - share))[:, None]))[1, 1])
    assert tests[2].p == pytest.approx(2 * stats.norm.sf(abs(best.x[1] / error)), rel=1e-3)
    assert {test.type for test in trends(table, "length")} == {"all", "H-H", "H-M"}
    assert trends(table.assign(length="long"), "length") == []


def test_a_judge_who_goes_by_the_stimulus_alone_is_not_surely_at_chance() -> None:
    """Person and agent get the same verdict on each of 12 stimuli: 0.26 of stimuli may part them, at 0.025."""
    by_stimulus = _verdicts({"a": [0.5]}, 12).sort_values("stimulus")
    by_stimulus["verdict"] = np.where(by_stimulus["stimulus"].str[1:].astype(int) % 2, "human", "machine")
    result = detectabilities(by_stimulus, [np.ones(len(by_stimulus), dtype=bool)])
    [low], [high] = result.interval(np.array([[0, 1]]), np.array([0.5, 0.5]))
    assert (low + high) / 2 == pytest.approx(0.5)
    assert high - 0.5 >= (1 - 0.025 ** (1 / 12)) / 2 * 0.95
