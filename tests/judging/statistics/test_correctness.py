"""Correctness at the values of columns, of judges who guess and of partitions, against statsmodels and scipy."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from judging.scores.papers.trends import trends
from judging.scores.verdicts import with_columns
from judging.statistics.correctness import between_values, people_beside_judges, t_tests
from judging.statistics.measures import summarize
from judging.statistics.verdict_table import on_trials

OTHER = {"human": "machine", "machine": "human"}


def _guesses(seed: int, says_machine: dict[str, float]) -> pd.DataFrame:
    """40 judges of three agents who guess: they say "machine" as often as their gender does, whatever the truth."""
    chance = np.random.default_rng(seed)
    rows = []
    for judge in range(40):
        gender = "female" if judge < 20 else "male"
        for agent, number in {"people": 30, "a": 10, "b": 10, "c": 10}.items():
            for at in range(number):
                verdict = "machine" if chance.random() < says_machine[gender] else "human"
                truth = "human" if agent == "people" else "machine"
                of_whom = f"human:{at}" if truth == "human" else agent
                rows.append((f"j{judge}", gender, of_whom, truth, verdict, f"s{at}", f"{judge} {agent} {at}"))
    names = ["judge", "judge.gender", "agent", "truth", "verdict", "stimulus", "trial"]
    return pd.DataFrame(rows, columns=names).assign(judge_kind="human", sample=0)


def _two_factors(table: pd.DataFrame, column: str) -> list[Any]:
    told, _ = with_columns(table, column)
    return between_values(told, column)


def _detectabilities(table: pd.DataFrame, other: str) -> pd.DataFrame:
    """½ (p(H|H) + p(M|M)) of each judge on each agent, where p(H|H) is at the same value of the other column."""
    rows = []
    for (judge, value), part in table.groupby(["judge", other]):
        of_people = part[part["truth"] == "human"]
        for agent in ("a", "b", "c"):
            of_agent = part[part["agent"] == agent]
            figure = ((of_people["verdict"] == "human").mean() + (of_agent["verdict"] == "machine").mean()) / 2
            rows.append((judge, value, agent, figure))
    return pd.DataFrame(rows, columns=["judge", "other", "agent", "figure"]).dropna()


@pytest.mark.parametrize("column", ["gender*agent", "agent*gender"])
def test_two_factors_with_agents_are_of_detectability(column: str) -> None:
    """Women who say "machine" in 65 % and men who do in 35 % are no better or worse: p(M|M) would be, at F = 84."""
    table = _guesses(4, {"female": 0.65, "male": 0.35})
    results = _two_factors(table, column)
    wanted = anova_lm(ols("figure ~ C(other) * C(agent)", _detectabilities(table, "judge.gender")).fit(), typ=2)
    terms = {"gender": "C(other)", "agent": "C(agent)", column: "C(other):C(agent)"}
    assert {result.column for result in results} == set(terms)
    for result in results:
        of_term = wanted.loc[terms[result.column]]
        assert result.statistic == pytest.approx(of_term["F"], rel=1e-6)
        assert result.p == pytest.approx(of_term["PR(>F)"], rel=1e-6)
        assert result.freedom == f"{of_term['df']:.0f}, 114"
        assert result.judges == 40
        assert "of detectability, as if each agent had judges of its own" in result.test
    assert min(result.p or 0 for result in results) > 0.01


def test_a_column_of_answers_beside_agents_has_people_at_the_same_value() -> None:
    """A topic where people are told more easily: their rate there counts, and not their rate elsewhere."""
    table = _guesses(1, {"female": 0.5, "male": 0.5})
    topic = np.where(np.arange(len(table)) % 2, "arts", "games")
    table = table.assign(**{"meta.topic": topic})
    is_known = (table["truth"] == "human") & (topic == "arts")
    table["verdict"] = table["verdict"].mask(is_known, "human")
    results = _two_factors(table, "topic*agent")
    wanted = anova_lm(ols("figure ~ C(other) * C(agent)", _detectabilities(table, "meta.topic")).fit(), typ=2)
    assert results[0].column == "topic"
    assert results[0].statistic == pytest.approx(wanted.loc["C(other)", "F"], rel=1e-6)
    assert results[0].p is not None
    assert results[0].p < 1e-6


def test_judges_without_answers_of_people_are_named_and_left_out() -> None:
    table = _guesses(2, {"female": 0.5, "male": 0.5})
    kept = table[~(table["judge"].isin(["j3", "j30"]) & (table["truth"] == "human"))]
    results = _two_factors(kept, "gender*agent")
    assert results[0].freedom == "1, 108"
    assert results[0].test.endswith("; without 2 judges of no people's answers at gender female, male")
    [none] = _two_factors(table[table["truth"] == "machine"], "gender*agent")
    assert none.test.startswith("no test: ")
    assert none.p is None


def test_habits_of_judges_are_seldom_taken_for_skill() -> None:
    """A judge's cells share its p(H|H), so that more than 5 of 100 are false alarms; by p(M|M) all would be."""
    p_values = [
        next(result.p for result in _two_factors(table, "gender*agent") if result.column == "gender")
        for table in (_guesses(seed, {"female": 0.65, "male": 0.35}) for seed in range(40))
    ]
    assert 0 < np.mean([p < 0.05 for p in p_values if p is not None]) < 0.3


def _of_partitions(chance: np.random.Generator, parts: int, agreement: float, number: int = 120) -> pd.DataFrame:
    """A trained judge that is right in 60 % of its trials, by ``parts`` partitions; as many of which repeat the first
    as ``agreement`` says."""
    rows = []
    for at in range(number):
        truth = "human" if at % 2 else "machine"
        is_right = chance.random() < 0.6
        for part in range(parts):
            stays = chance.random() < agreement
            answer = truth if (is_right if stays else chance.random() < 0.6) else OTHER[truth]
            length = float((3, 6, 12, 24)[at // 2 % 4])
            rows.append(("svm", f"human:{at}" if at % 2 else "m", truth, answer, f"s{at}", f"t{at}", part, length))
    names = ["judge", "agent", "truth", "verdict", "stimulus", "trial", "part", "length"]
    return pd.DataFrame(rows, columns=names).assign(judge_kind="machine")


def _people(chance: np.random.Generator) -> pd.DataFrame:
    rows = []
    for judge in range(10):
        for at in range(20):
            truth = "human" if at % 2 else "machine"
            answer = truth if chance.random() < 0.6 else OTHER[truth]
            rows.append((f"human:{judge}", "human:x" if at % 2 else "m", truth, answer, f"s{at}", f"t{judge} {at}"))
    names = ["judge", "agent", "truth", "verdict", "stimulus", "trial"]
    return pd.DataFrame(rows, columns=names).assign(judge_kind="human", part=np.nan)


def test_partitions_are_no_further_trials_of_a_t_test() -> None:
    """Of two judges who are right as often 5 of 100 tests are false alarms; with each partition a verdict 15 were."""
    chance = np.random.default_rng(0)
    p_values = []
    for _ in range(120):
        [result] = people_beside_judges(pd.concat([_people(chance), _of_partitions(chance, 5, 0.9)]))
        assert (result.unit, result.freedom) == ("verdict", "318")  # 200 and 120 trials
        p_values.append(result.p)
    assert 0 < np.mean([p < 0.05 for p in p_values if p is not None]) < 0.11


def test_a_t_test_of_partitions_is_of_their_means() -> None:
    table = _of_partitions(np.random.default_rng(7), 3, 0.5)
    table["half"] = np.where(table["length"] > 6, "long", "short")
    [result] = t_tests(table, "half")
    right = (table["verdict"] == table["truth"]).astype(float)
    of_trials = right.groupby([table["half"], table["trial"]]).mean()
    wanted = stats.ttest_ind(of_trials["long"], of_trials["short"])
    assert (result.statistic, result.p) == (pytest.approx(wanted.statistic), pytest.approx(wanted.pvalue))


def test_equal_partitions_leave_trends_and_dprime_as_they_are() -> None:
    """Five equal seeds say what one says; with each a verdict 35 of 100 slopes were false alarms."""
    chance = np.random.default_rng(5)
    alarms = 0
    for _ in range(80):
        one = _of_partitions(chance, 1, 1.0)
        five = pd.concat([one.assign(part=part) for part in range(5)], ignore_index=True)
        by_one, by_five = (trends(table, "length")[2] for table in (one, five))
        assert by_five.test == by_one.test == "binomial regression of log odds"
        assert by_five.p == pytest.approx(by_one.p)
        assert by_five.p is not None
        alarms += by_five.p < 0.05
    assert 0 < alarms / 80 < 0.15
    for of_one, of_five in zip(summarize(one, ["m"]), summarize(five, ["m"]), strict=True):
        assert of_five.dprime.value == pytest.approx(of_one.dprime.value)
        assert of_five.criterion.value == pytest.approx(of_one.criterion.value)
        assert of_five.dprime_judges == pytest.approx(of_one.dprime_judges)


def test_a_trial_has_a_row_for_each_value_that_differs_between_parts() -> None:
    table = _of_partitions(np.random.default_rng(1), 4, 0.5, number=30)
    table["trained_on"] = np.where(table["part"] < 2, "a", "b")
    rows = on_trials(table, "trained_on")
    assert len(rows) == 60
    right = (table["verdict"] == table["truth"]).astype(float)
    means = right.groupby([table["trial"], table["trained_on"]]).mean()
    assert rows.set_index(["trial", "trained_on"])["right"].to_dict() == means.to_dict()
    people = _people(np.random.default_rng(1))
    assert len(on_trials(people)) == len(people)
