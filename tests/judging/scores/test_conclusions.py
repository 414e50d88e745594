"""What is said of an agent agrees with the interval and the p that stand beside it."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judging.scores.conclusions import DETECTED, OPEN, PASSES, TAKEN, Conclusion, conclude
from judging.statistics.contrasts import AgainstPeople, agent_tests
from judging.statistics.measures import Score, summarize
from judging.statistics.tables import Estimate


def _concluded(
    rate: Estimate, holm: float, reach: float = 0.3, passes: bool = False, family: int = 3, trained: bool = False
) -> Conclusion:
    """Of a judge's detectability ``rate``, of which ``reach`` is that of the 90 % interval from 0.5."""
    test = AgainstPeople(
        judge="svm",
        agent="a",
        difference=Estimate(1 - 2 * rate.value, 1 - 2 * rate.high, 1 - 2 * rate.low),
        bounds=reach,
        holm=holm,
        p=holm / family,
        family=family,
        stimuli=40,
        judges=1,
        passes=passes,
    )
    score = Score(
        judge="svm", agent="a", detectability_judges=rate, detectability=rate, human_human=1, machine_machine=1
    )
    [row] = conclude([score], [test], ["svm"] if trained else [], 0.05)
    return row


def _ends(why: str) -> tuple[float, float]:
    found = re.search(r"\((-?[\d.]+) to (-?[\d.]+) %", why)
    assert found is not None
    return float(found[1]), float(found[2])


def test_an_interval_that_leaves_chance_out_does_not_seem_to_hold_it() -> None:
    detected = _concluded(Estimate(0.62, 0.5012, 0.72), 0.04)
    assert detected.outcome == DETECTED
    assert "svm tells it from people in 62.0 % of trials (50.1 to 72.0 %;" in detected.why
    taken = _concluded(Estimate(0.41, 0.33, 0.49996), 0.04)
    assert taken.outcome == TAKEN
    assert _ends(taken.why) == (33, 49.996)
    assert "in 62 % of trials (52 to 72 %;" in _concluded(Estimate(0.62, 0.52, 0.72), 0.04).why


def test_who_passes_does_so_by_the_interval_of_90_percent() -> None:
    row = _concluded(Estimate(0.5, 0.445, 0.552), 0.9, reach=0.046, passes=True)
    assert row.outcome == PASSES
    assert "(44 to 55 %; chance is 50 %; 40 stimuli), its 90 % interval within 45 to 55 %" in row.why
    several = _concluded(Estimate(0.5, 0.445, 0.552), 0.9, reach=0.046)
    assert several.outcome == OPEN
    assert "its 90 % interval within 45 to 55 %, but not after Holm's correction for 3 agents" in several.why


def test_what_stays_open_says_why_its_interval_does_not_decide() -> None:
    above = _concluded(Estimate(0.6, 0.51, 0.69), 0.09)
    assert above.outcome == OPEN
    assert above.in_words() == "is undecided"
    assert above.why.endswith("which Holm's correction for 3 tests does not confirm")
    below = _concluded(Estimate(0.4, 0.31, 0.49), 0.09)
    assert below.outcome == OPEN
    assert "which Holm's correction for 3 tests does not confirm" in below.why
    trained = _concluded(Estimate(0.4, 0.31, 0.49), 0.03, trained=True)
    assert trained.outcome == OPEN
    assert "which a trained judge may be by its folds alone" in trained.why
    assert "Holm's correction" not in _concluded(Estimate(0.55, 0.41, 0.69), 0.5).why


@pytest.mark.parametrize("seed", range(30))
def test_the_sentence_is_true_of_the_interval_in_drawn_studies(seed: int) -> None:
    """Of 4 to 40 judges who are right in 30 to 75 % about two agents; bounds 0.1."""
    chance = np.random.default_rng(seed)
    judges = int(chance.integers(4, 40))
    judge, stimulus, agent = (part.ravel() for part in np.indices((judges, 30, 3)))
    share = chance.uniform(0.3, 0.75, 3)[agent]
    truth = np.where(agent == 0, "human", "machine")
    other = np.where(agent == 0, "machine", "human")
    verdict = np.where(chance.random(len(judge)) < share, truth, other)
    table = pd.DataFrame(
        {
            "judge": judge,
            "stimulus": stimulus,
            "agent": np.array(["human:1", "a", "b"])[agent],
            "truth": truth,
            "verdict": verdict,
            "trial": stimulus * 3 + agent,
            "judge_kind": "human",
        }
    )
    tests = agent_tests(table, ["a", "b"], 0.1)["against_people"]
    scores = summarize(table, ["a", "b"])
    assert all(isinstance(test, AgainstPeople) for test in tests)
    for test in tests:
        test.judge = "people"
    rows = conclude([_of_people(score) for score in scores], tests, [], 0.1)  # type: ignore[arg-type]
    for row in rows:
        low, high = _ends(row.why)
        assert low > 50 or row.outcome != DETECTED
        assert high < 50 or row.outcome != TAKEN
        [test] = [test for test in tests if test.agent == row.agent]
        assert test.bounds <= 0.1 or row.outcome != PASSES
        if row.outcome == OPEN and (low > 50 or high < 50):
            assert "Holm's correction" in row.why


def _of_people(score: Score) -> Score:
    return replace(score, judge="people")


def test_whose_trials_have_no_verdict_is_said_of_each_agent() -> None:
    """Counted by hand: a judge that leaves out people's short answers, and whose partitions are one judgement each."""
    rows = []
    for at in range(40):
        truth = "human" if at % 2 else "machine"
        agent = "human:1" if at % 2 else "ab"[at // 2 % 2]
        for part in range(3):
            said = truth if (at + part) % 3 else "human"
            rows.append(("svm", agent, truth, said, f"s{at // 2}", f"t{at}", float(part)))
    table = pd.DataFrame(rows, columns=["judge", "agent", "truth", "verdict", "stimulus", "trial", "part"])
    is_left_out = table["trial"].isin(["t1", "t3", "t5", "t8"])  # of people three, and one of "a"
    failed = table[is_left_out].drop_duplicates("trial").assign(verdict="failed", part=np.nan)
    table = pd.concat([table[~is_left_out], failed]).assign(judge_kind="machine")
    scores = [replace(score, judge="svm") for score in summarize(table, ["a", "b"])]
    tests: list[Any] = [replace(test, judge="svm") for test in agent_tests(table, ["a", "b"], 0.05)["against_people"]]
    of_a, of_b = conclude(scores, [test for test in tests if isinstance(test, AgainstPeople)], ["svm"], 0.05)
    assert "; svm gives no verdict in 3 of 20 trials of people and 1 of 10 of a, which count in no rate" in of_a.why
    assert "; svm gives no verdict in 3 of 20 trials of people and 0 of 10 of b, which count in no rate" in of_b.why
    all_judged = [replace(score, missing_of_people=0, missing_of_machines=0) for score in scores]
    assert "no verdict" not in conclude(all_judged, tests, [], 0.05)[0].why
