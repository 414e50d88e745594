"""Rates, detectability, d', criterion and their intervals, against closed forms and other programs."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from judging.measures import MEASURES, point_estimates, summarize

Z = NormalDist().inv_cdf
COLUMNS = ["agent", "truth", "verdict", "judge", "stimulus", "trial"]


def table(counts: dict[tuple[str, str], tuple[int, int]]) -> pd.DataFrame:
    """Verdicts of one judge: of each (agent, truth) so many said to be human and so many a machine."""
    rows = [
        (agent, truth, verdict, "j", at, f"{agent}{at}")
        for (agent, truth), numbers in counts.items()
        for verdict, number in zip(("human", "machine"), numbers, strict=True)
        for at in range(number)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_the_measures_of_counts_have_their_closed_forms() -> None:
    result = point_estimates(np.array([60.0, 45.0, 0.0]), np.array([100.0, 90.0, 10.0]))
    assert result[0] == pytest.approx(
        [0.6, 0.5, 0.55, Z(60.5 / 101) + Z(45.5 / 91), (Z(60.5 / 101) - Z(45.5 / 91)) / 2]
    )
    assert result[1][:3] == pytest.approx([0.6, 0.0, 0.3])  # below chance, and not cut off
    assert math.isfinite(result[1][3])
    assert np.isnan(point_estimates(np.array([3.0, 0.0]), np.array([5.0, 0.0]))[0, 1:]).all()


def test_published_counts_give_the_published_detectability() -> None:
    """The zero-shot judge of colours in the authors' notebook: 557 of 872, 1,716 of 2,616."""
    counts = {("human:1", "human"): (557, 315), ("azure", "machine"): (320, 552), ("google", "machine"): (338, 534),
              ("mccq", "machine"): (242, 630)}  # fmt: skip
    rows = {row.agent: row for row in summarize(table(counts), ["azure", "google", "mccq"], 0, 50)}
    assert round(rows["all"].detectability.value, 3) == 0.647
    assert rows["all"].machine_machine == 1716
    assert rows["azure"].p_machine.value == pytest.approx(552 / 872)
    assert rows["azure"].p_human.value == rows["google"].p_human.value == pytest.approx(557 / 872)


def test_one_judge_has_exact_intervals() -> None:
    rows = summarize(table({("h", "human"): (60, 40), ("a", "machine"): (0, 30)}), ["a"], 0, 50)
    for name, right, number in (("p_human", 60, 100), ("p_machine", 30, 30)):
        exact = binomtest(right, number).proportion_ci(0.95, method="exact")
        assert (getattr(rows[1], name).low, getattr(rows[1], name).high) == pytest.approx((exact.low, exact.high))


def test_missing_verdicts_are_counted_and_no_part_of_a_rate() -> None:
    chosen = table({("h", "human"): (6, 4), ("a", "machine"): (3, 7)})
    none = [
        ("h", "human", "refused", "j", 0, "t0"),
        ("a", "machine", "refused", "j", 1, "t1"),
        ("a", "machine", "unparsed", "j", 2, "t2"),
        ("b", "machine", "failed", "j", 3, "t3"),
    ]
    rows = {
        row.agent: row for row in summarize(pd.concat([chosen, pd.DataFrame(none, columns=COLUMNS)]), ["a", "b"], 0, 50)
    }
    assert (rows["a"].p_human.value, rows["a"].p_machine.value) == (0.6, 0.7)
    assert [getattr(rows["a"], why) for why in ("refused", "unparsed", "failed")] == [2, 1, 0]
    assert [getattr(rows["all"], why) for why in ("refused", "unparsed", "failed")] == [2, 1, 1]
    assert math.isnan(rows["b"].p_machine.value)
    assert math.isnan(rows["b"].detectability.low)


def judged(judges: int, stimuli: int, of_judges: float, of_stimuli: float, seed: int) -> pd.DataFrame:
    """Every judge judges every stimulus once; people's answers and machines' are on other stimuli."""
    chance = np.random.default_rng(seed)
    judge, stimulus = np.divmod(np.arange(judges * stimuli), stimuli)
    is_machine = stimulus % 2 == 1
    rate = 0.5 + of_judges * chance.choice([-1, 1], judges)[judge]
    right = chance.random(len(judge)) < rate + of_stimuli * chance.choice([-1, 1], stimuli)[stimulus]
    truth = np.where(is_machine, "machine", "human")
    other = np.where(is_machine, "human", "machine")
    agent, verdict = np.where(is_machine, "a", "h"), np.where(right, truth, other)
    return pd.DataFrame(dict(zip(COLUMNS, (agent, truth, verdict, judge, stimulus, stimulus), strict=True)))


@pytest.mark.parametrize(("of_judges", "of_stimuli"), [(0.3, 0.0), (0.2, 0.2)])
def test_widths_are_those_of_repeated_studies(of_judges: float, of_stimuli: float) -> None:
    """The half-width is Student's quantile times the spread of the estimate over studies that are drawn anew."""
    studies = [summarize(judged(40, 60, of_judges, of_stimuli, seed), ["a"], seed, 60)[1] for seed in range(40)]
    spread = float(np.std([study.detectability.value for study in studies], ddof=1))
    half = float(np.mean([study.detectability.high - study.detectability.value for study in studies]))
    assert 0.75 < half / (2.02 * spread) < 1.35


def test_every_measure_has_an_interval_around_it_and_the_seed_is_all_that_is_drawn() -> None:
    verdicts = judged(10, 20, 0.2, 0.1, 0)
    item, same, other = (summarize(verdicts, ["a"], seed, 200) for seed in (1, 1, 2))
    assert item == same
    assert item != other
    for name in MEASURES:
        estimate = getattr(item[1], name)
        assert estimate.low < estimate.value < estimate.high
