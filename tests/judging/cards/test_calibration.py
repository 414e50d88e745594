"""What AI judges are worth, against statsmodels, a recount, and verdicts whose truth is known."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import binom, t

from judging.cards.calibration import calibrate, two_way_mean
from judging.cards.card import Figure


def test_the_interval_is_that_of_two_way_clusters() -> None:
    """statsmodels has the same variance (cov_type "cluster" with two groups) for a regression on a constant."""
    rng = np.random.default_rng(5)
    stimuli = rng.integers(0, 17, 400)
    people = rng.integers(0, 11, 400)
    values = (rng.normal(size=17)[stimuli] + rng.normal(size=11)[people] + rng.normal(size=400) > 0.2).astype(float)
    found = two_way_mean(values, stimuli, people)
    fit = sm.OLS(values, np.ones(400)).fit(
        cov_type="cluster", cov_kwds={"groups": np.column_stack([stimuli, people]), "use_correction": False}
    )
    # statsmodels gives the three variances without correction; each has its own G / (G - 1) here.
    parts = []
    for groups in (stimuli, people, np.arange(400)):
        one = sm.OLS(values, np.ones(400)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
        number = len(np.unique(groups))
        parts.append(float(one.cov_params()[0, 0]) * number / (number - 1))
    variance = parts[0] + parts[1] - parts[2]
    half = t.ppf(0.975, 10) * np.sqrt(variance)
    assert found.value == pytest.approx(float(fit.params[0]))
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_one_value_everywhere_has_an_interval_with_a_width() -> None:
    """Clopper and Pearson's (1934) lower end of n of n."""
    found = two_way_mean(np.ones(60), np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12))
    assert (found.value, found.high) == (1, 1)
    assert binom.sf(4, 5, found.low) == pytest.approx(0.025)  # five people, fewer than stimuli
    assert np.isnan(two_way_mean(np.ones(3), ["one"] * 3, ["a", "b", "c"]).low)
    assert np.isnan(two_way_mean(np.array([]), [], []).value)


def table(says: float, agrees: float, stimuli: int, people: int, seed: int) -> pd.DataFrame:
    """Verdicts of an AI judge and of people on ``stimuli`` answers of participants and of two agents each. The AI judge
    says human of a share ``says``; each person says what it says with the probability ``agrees``."""
    rng = np.random.default_rng(seed)
    rows = []
    for stimulus, agent in itertools.product(range(stimuli), ("human:1", "weak", "strong")):
        trial = f"t{stimulus}-{agent}"
        judge_says = bool(rng.random() < says)
        truth = "human" if agent.startswith("human") else "machine"
        shared: dict[str, Any] = {"trial": trial, "asked": "word_association", "truth": truth, "agent": agent}
        shared |= {"stimulus": f"s{stimulus}", "sample": 0, "catch": False, "repeat_of": None, "excluded": None}
        word = {True: "human", False: "machine"}
        rows.append({**shared, "judge": "svm", "judge_kind": "machine", "verdict": word[judge_says]})
        for person in range(people):
            same = bool(rng.random() < agrees)
            rows.append(
                {**shared, "judge": f"human:{person}", "judge_kind": "human", "verdict": word[judge_says == same]}
            )
    return pd.DataFrame(rows)


def test_figures_are_a_recount_of_the_verdicts() -> None:
    verdicts = table(0.6, 0.7, 20, 4, 1)
    left_out = verdicts.copy()
    left_out.loc[left_out.index[6], "verdict"] = "unparsed"
    more = left_out.iloc[:40].assign(sample=1)  # further verdicts do not count
    excluded = left_out.iloc[:40].assign(excluded="controls", judge="human:9", judge_kind="human")
    [found] = calibrate(pd.concat([left_out, more, excluded], ignore_index=True), "mine/1")
    says = {row.trial: row.verdict for row in left_out.itertuples() if row.judge == "svm"}
    people = [row for row in left_out.itertuples() if row.judge != "svm" and row.verdict in ("human", "machine")]
    assert found.trials == 60
    assert found.people == 4
    assert found.agreement.value == pytest.approx(np.mean([row.verdict == says[row.trial] for row in people]))
    after = [row.verdict == "human" for row in people if says[row.trial] == "human"]
    assert found.after_human.value == pytest.approx(np.mean(after))
    pairs = [
        one.verdict == other.verdict
        for one, other in itertools.permutations(people, 2)
        if one.trial == other.trial and one.judge != other.judge
    ]
    # A verdict weighs the same, however many others its trial has: here all trials but one have four.
    assert found.people_agree.value == pytest.approx(np.mean(pairs), abs=0.01)
    assert [agent.agent for agent in found.agents] == ["people", "strong", "weak"]
    of_weak = [row for row in people if row.agent == "weak"]
    weak = found.agents[2]
    assert weak.people_say == pytest.approx(np.mean([row.verdict == "human" for row in of_weak]))
    assert weak.judge_says == pytest.approx(np.mean([says[row.trial] == "human" for row in of_weak]))
    assert weak.difference.value == pytest.approx(weak.judge_says - weak.people_say)


def test_known_truth_lies_in_the_intervals() -> None:
    """Of 200 pools with a known agreement of 0.7, about 95 % of intervals hold it: 182 or more with a probability of
    0.9999 if it is 95 % exactly."""
    held = 0
    for seed in range(200):
        [found] = calibrate(table(0.5, 0.7, 25, 6, seed), "mine/1")
        assert found.agreement.low is not None
        assert found.agreement.high is not None
        held += found.agreement.low <= 0.7 <= found.agreement.high
    assert held >= binom.ppf(0.0001, 200, 0.95)


def test_a_judge_without_common_answers_has_no_calibration() -> None:
    verdicts = table(0.6, 0.7, 4, 2, 1)
    assert calibrate(verdicts[verdicts["judge"] != "svm"], "mine/1") == []
    assert calibrate(verdicts[verdicts["judge"] == "svm"], "mine/1") == []
    assert Figure.of(two_way_mean(np.array([]), [], [])).value is None
