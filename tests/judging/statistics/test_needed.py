"""How many more judges and stimuli would decide: by hand, by larger studies that are drawn, and what is not known."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn_verdicts import Design, drawn
from scipy.stats import norm

from judging.scores.conclusions import in_words
from judging.statistics.contrasts import AgainstPeople, agent_tests, rates_of_agents
from judging.statistics.measures import DETECTABILITY
from judging.statistics.needed import BOTH, MOST_TIMES, POWER, Needed, about, enlarged, needed

CROSSED = Design(12, 30, 30, (0.57, 0.57), of_stimuli=0.5, of_bias=0.3, of_sensitivity=0.4)


def _by_one_judge(right: Sequence[int], number: int) -> pd.DataFrame:
    """One judge's verdicts on ``number`` answers of people and as many of "a", each to a stimulus of its own, of which
    so many are ``right``."""
    rows = []
    for agent, truth, other, so_many in zip(("h", "a"), ("human", "machine"), ("machine", "human"), right, strict=True):
        for at in range(number):
            stimulus = f"{agent}{at}"
            rows.append(("svm", stimulus, agent, truth, truth if at < so_many else other, stimulus))
    return pd.DataFrame(rows, columns=["judge", "stimulus", "agent", "truth", "verdict", "trial"])


def _study(design: Design, seed: int) -> pd.DataFrame:
    return drawn(design, seed)[0]


def _test(verdicts: pd.DataFrame, bounds: float) -> AgainstPeople:
    [test] = agent_tests(verdicts, ["a0"], bounds)["against_people"]
    assert isinstance(test, AgainstPeople)
    return test


def _is_decided(test: AgainstPeople) -> bool:
    return bool(test.passes or (test.holm or 0) < 0.05)


@pytest.mark.parametrize(
    ("right", "bounds", "test", "power"),
    [((100, 120), 0.02, 0.975, POWER), ((110, 90), 0.05, 0.95, (1 + POWER) / 2)],
    ids=["told apart", "passes"],
)
def test_the_number_of_independent_verdicts_is_that_of_textbooks(
    right: tuple[int, int], bounds: float, test: float, power: float
) -> None:
    """A detectability of 0.55 is 0.05 away from 0.5, and one of 0.5 is 0.05 away from both bounds. There z of the test
    and z of the power have room, in standard errors. The exact interval is a little wider than the normal one."""
    [row] = needed(_by_one_judge(right, 200), ["a"], ["a"], bounds, is_trained=False)
    rates = np.array(right) / 200
    error = math.sqrt((rates * (1 - rates)).sum() / 4 / 200)
    times = ((norm.ppf(test) + norm.ppf(power)) * error / 0.05) ** 2
    assert row.times == pytest.approx(times, rel=0.06)
    assert row.more_judges is None
    assert row.more_people is None
    assert row.more_stimuli is not None
    assert row.more_stimuli == row.stimuli_alone
    assert 200 + row.more_stimuli == pytest.approx(200 * times, rel=0.07)


def test_a_study_of_copies_has_the_variance_of_the_enlarged_one() -> None:
    """Three copies of all verdicts by other judges on other stimuli: every part of the variance is a third, but for the
    n - 1 of each jackknife."""
    verdicts = _study(CROSSED, 3)
    copies = [
        verdicts.assign(judge=verdicts["judge"] + 100 * at, stimulus=verdicts["stimulus"] + 100 * at) for at in range(3)
    ]
    for copy, at in zip(copies, range(3), strict=True):
        copy["trial"] += 1000 * at
    _, small = rates_of_agents(verdicts, ["a0"])
    _, large = rates_of_agents(pd.concat(copies), ["a0"])
    made = enlarged(small, [0, 1], 3)
    assert made.clusters.tolist() == large.clusters.tolist()
    assert made.number == pytest.approx(large.number)
    assert made.freedom == pytest.approx(large.freedom)
    assert made.shared == pytest.approx(large.shared)
    (error, freedom), (wanted, wanted_freedom) = (study.deviation(BOTH, DETECTABILITY) for study in (made, large))
    assert error == pytest.approx(wanted, rel=0.04)
    assert freedom == pytest.approx(wanted_freedom, rel=0.04)


@pytest.mark.parametrize("grown", [0, 1])
def test_one_kind_alone_leaves_the_variance_of_the_other(grown: int) -> None:
    """Studies of 12 judges and 30 stimuli, of which one kind is made four times as many, and studies that are drawn
    with four times as many: the variances are the same on average, and far from a quarter."""
    size = replace(CROSSED, judges=48) if grown == 0 else replace(CROSSED, stimuli=120, per_judge=120)
    small = [rates_of_agents(_study(CROSSED, seed), ["a0"])[1] for seed in range(150)]
    large = [rates_of_agents(_study(size, 500 + seed), ["a0"])[1] for seed in range(80)]
    made = np.mean([enlarged(study, [grown], 4).deviation(BOTH, DETECTABILITY)[0] ** 2 for study in small])
    wanted = np.mean([study.deviation(BOTH, DETECTABILITY)[0] ** 2 for study in large])
    quarter = np.mean([study.deviation(BOTH, DETECTABILITY)[0] ** 2 for study in small]) / 4
    assert made == pytest.approx(wanted, rel=0.12)
    assert made > 1.4 * quarter


@pytest.mark.parametrize(
    ("design", "alone"),
    [
        (Design(20, 30, 15, (0.57, 0.57)), None),
        (Design(12, 60, 20, (0.57, 0.57), of_stimuli=0, of_answers=0), "judges_alone"),
        (Design(40, 12, 12, (0.58, 0.58), of_stimuli=0.6, of_bias=0.1, of_sensitivity=0.05), "stimuli_alone"),
    ],
)
def test_a_study_of_the_told_size_decides_in_about_4_of_5(design: Design, alone: str | None) -> None:
    """The size is the median of what undecided studies tell that found about the truth. Of 80 studies of that size 80 %
    decide, give or take what chance does."""
    truth = sum(design.rates) / 2
    told = []
    for seed in range(40):
        verdicts = _study(design, seed)
        test = _test(verdicts, 0.05)
        if abs((1 - test.difference.value) / 2 - truth) < 0.015 and not _is_decided(test):
            [row] = needed(verdicts, ["a0"], ["a0"], 0.05, is_trained=False)
            told.append((row.times if alone is None else getattr(row, alone)) or math.inf)
    assert len(told) >= 5
    more = float(np.median(told))
    if alone is None:
        size = replace(design, judges=round(more * design.judges), stimuli=round(more * design.stimuli))
    elif alone == "judges_alone":
        size = replace(design, judges=design.judges + int(more))
    else:
        size = replace(design, stimuli=design.stimuli + int(more), per_judge=design.stimuli + int(more))
    decided = [_is_decided(_test(_study(size, 1000 + seed), 0.05)) for seed in range(80)]
    assert 0.68 < np.mean(decided) < 0.95


def test_what_cannot_be_known_is_said() -> None:
    three = _study(Design(3, 40, 40, (0.55, 0.55)), 1)
    [row] = needed(three, ["a0"], ["a0"], 0.05, is_trained=False)
    assert (row.times, row.more_judges, row.judges_alone) == (None, None, None)
    assert in_words(row) == "how much more data would decide cannot be said: at least 6 judges must be there"
    [alike] = needed(_by_one_judge((20, 0), 20), ["a"], ["a"], 0.05, is_trained=False)
    assert "the verdicts do not vary" in alike.why
    below = _by_one_judge((85, 85), 200)
    [trained] = needed(below, ["a"], ["a"], 0.05, is_trained=True)
    assert trained.why == "more trials of the same kind would not decide"
    [untrained] = needed(below, ["a"], ["a"], 0.05, is_trained=False)
    assert untrained.why == ""


def test_one_kind_never_decides_with_fewer_than_all_kinds_together() -> None:
    for seed in range(12):
        [row] = needed(_study(CROSSED, seed), ["a0"], ["a0"], 0.02, is_trained=False)
        assert row.times is not None
        assert 1 < row.times < MOST_TIMES
        for alone, together in ((row.judges_alone, row.more_judges), (row.stimuli_alone, row.more_stimuli)):
            assert together is not None
            assert alone is None or alone >= together


def test_numbers_are_told_in_words_and_rounded_up() -> None:
    assert [about(number) for number in (0.2, 7.1, 99.5, 101, 7301)] == [1, 8, 100, 110, 7400]
    row = Needed(agent="a", more_judges=1, more_stimuli=1200, more_people=30)
    assert in_words(row) == "about 1 more judge, 1,200 more stimuli and 30 more participants would decide"
    assert in_words(replace(row, more_judges=None, more_people=None)) == "about 1,200 more stimuli would decide"


def test_people_who_answered_one_stimulus_each_come_with_the_stimuli() -> None:
    """A person for each answer is told as if people had no names; four people on all stimuli are told of."""
    nameless = _study(CROSSED, 5).assign(
        agent=lambda rows: rows["agent"].where(rows["truth"] == "machine", "human:p" + rows["stimulus"].astype(str))
    )
    [row] = needed(nameless, ["a0"], ["a0"], 0.02, is_trained=False)
    [same] = needed(_study(CROSSED, 5), ["a0"], ["a0"], 0.02, is_trained=False)
    assert row.more_people is None
    assert row.more_stimuli == pytest.approx(same.more_stimuli, rel=0.15)
    eight = _study(replace(CROSSED, people=8, of_people=0.3, is_crossed=True), 5)
    [of_eight] = needed(eight, ["a0"], ["a0"], 0.02, is_trained=False)
    assert of_eight.more_people is not None
    assert of_eight.times is not None
    assert of_eight.more_people == about((of_eight.times - 1) * 8)
