"""What AI judges are worth, against statsmodels, a recount, and verdicts whose truth is known."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import binom, t

from judging.cards.calibration import calibrate, clustered_mean
from judging.cards.card import Figure


def test_the_interval_is_that_of_two_way_clusters() -> None:
    """statsmodels has the parts of the variance (cov_type "cluster") for a regression on a constant."""
    rng = np.random.default_rng(5)
    stimuli = rng.integers(0, 17, 400)
    people = rng.integers(0, 11, 400)
    values = (rng.normal(size=17)[stimuli] + rng.normal(size=11)[people] + rng.normal(size=400) > 0.2).astype(float)
    found = clustered_mean(values, [stimuli, people])
    parts = []
    for groups in (stimuli, people, stimuli * 11 + people):
        fit = sm.OLS(values, np.ones(400)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
        number = len(np.unique(groups))
        parts.append(float(fit.cov_params()[0, 0]) * number / (number - 1))
    variance = parts[0] + parts[1] - parts[2]
    half = t.ppf(0.975, 10) * np.sqrt(variance)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))
    wider = clustered_mean(values, [stimuli, people], wider=1.28)
    assert wider.high - wider.value == pytest.approx(min(1.28 * half, 1 - wider.value))


def test_one_value_everywhere_has_an_interval_with_a_width() -> None:
    """Clopper and Pearson's (1934) lower end of n of n."""
    found = clustered_mean(np.ones(60), [np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)])
    assert (found.value, found.high) == (1, 1)
    assert binom.sf(4, 5, found.low) == pytest.approx(0.025)  # five people, fewer than stimuli
    assert np.isnan(clustered_mean(np.ones(3), [np.zeros(3, dtype=int), np.arange(3)]).low)
    assert np.isnan(clustered_mean(np.array([]), [np.array([], dtype=int)] * 2).value)


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
    left_out.loc[left_out.index[6], "verdict"] = "unparsed"  # a person's
    unjudged = left_out.index[-5]  # the AI judge's
    left_out.loc[unjudged, "verdict"] = "refused"
    more = left_out.iloc[:40].assign(sample=1)  # further verdicts do not count
    excluded = left_out.iloc[:40].assign(excluded="controls", judge="human:9", judge_kind="human")
    [found] = calibrate(pd.concat([left_out, more, excluded], ignore_index=True), "mine/1")
    says = {row.trial: row.verdict for row in left_out.itertuples() if row.judge == "svm"}
    people = [row for row in left_out.itertuples() if row.judge != "svm" and row.verdict in ("human", "machine")]
    people = [row for row in people if says[row.trial] in ("human", "machine")]
    assert found.trials == 59
    assert found.without_verdict == 1
    human = np.mean([row.verdict == "human" for row in people])
    assert found.constant == ("human" if human >= 0.5 else "machine")
    assert found.constant_agrees == pytest.approx(max(human, 1 - human))
    assert found.agreement.value is not None
    assert found.above_constant.value == pytest.approx(found.agreement.value - found.constant_agrees)
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


def drawn(seed: int, stimuli: int, people: int, participants: int) -> pd.DataFrame:
    """Verdicts on two answers to each stimulus, of a participant and of a machine, with effects of stimuli, of judges
    and of participants. The AI judge says human of half of the answers."""
    rng = np.random.default_rng(seed)
    of_stimuli = rng.normal(0, 0.7, stimuli)
    of_people = rng.normal(0, 0.5, people)
    of_participants = rng.normal(0, 0.7, participants)
    rows = []
    for number, kind in itertools.product(range(stimuli), ("human", "machine")):
        who = number % participants
        agent = f"human:{who}" if kind == "human" else "agent"
        shared: dict[str, Any] = {"trial": f"t{number}{kind}", "asked": "word_association", "truth": kind}
        shared |= {"agent": agent, "stimulus": f"s{number}", "sample": 0, "catch": False, "repeat_of": None}
        shared["excluded"] = None
        says = bool(rng.random() < 0.5)
        rows.append({**shared, "judge": "ai", "judge_kind": "machine", "verdict": "human" if says else "machine"})
        level = 0.6 + of_stimuli[number] + (of_participants[who] if kind == "human" else rng.normal(0, 0.7))
        for person in range(people):
            same = bool(rng.normal() < level + of_people[person])
            verdict = "human" if says == same else "machine"
            rows.append({**shared, "judge": f"human:j{person}", "judge_kind": "human", "verdict": verdict})
    return pd.DataFrame(rows)


def truth(seeds: range, stimuli: int, people: int, participants: int) -> tuple[float, float]:
    """The agreement with the AI judge and of two people, over many studies."""
    found = [calibrate(drawn(seed, stimuli, people, participants), "p")[0] for seed in seeds]
    agreement = float(np.mean([row.agreement.value for row in found]))
    pairs = float(np.mean([row.people_agree.value for row in found]))
    return agreement, pairs


def test_known_truth_lies_in_the_intervals() -> None:
    """Of 150 studies with effects of stimuli, of judges and of participants, about 95 % of the intervals hold the mean
    of 300 others. A linear variance of how often two people agree held 70 to 85 % (in half as many judges); below 88 %
    a method with 95 % falls with a probability of 1 in 2,000."""
    agreement, pairs = truth(range(1000, 1300), 30, 8, 10)
    held = [0, 0]
    number = 150
    for seed in range(number):
        [row] = calibrate(drawn(seed, 30, 8, 10), "p")
        for place, (figure, true) in enumerate(((row.agreement, agreement), (row.people_agree, pairs))):
            assert figure.low is not None
            assert figure.high is not None
            held[place] += figure.low <= true <= figure.high
    assert min(held) >= 0.88 * number


def test_a_judge_without_common_answers_has_no_calibration() -> None:
    verdicts = table(0.6, 0.7, 4, 2, 1)
    assert calibrate(verdicts[verdicts["judge"] != "svm"], "mine/1") == []
    assert calibrate(verdicts[verdicts["judge"] == "svm"], "mine/1") == []
    assert Figure.of(clustered_mean(np.array([]), [np.array([], dtype=int)])).value is None
