"""Planned half-widths against studies that are drawn, and against the intervals of scores."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

import calibrate_scores
import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from agents.errors import InputError
from judging.measures import summarize
from judging.study.planning import Design, Parts, Variance, _Verdicts, half_widths, plan, print_plan

NAN = pytest.approx(math.nan, nan_ok=True)
JUDGES, STIMULI, PER_JUDGE = 24, 20, 10  # half of a judge's trials are people's, half one agent's
OF_JUDGE, OF_STIMULUS, RATE = 0.2, 0.15, 0.55


def studies(number: int, sign: int, judges: int = JUDGES, stimuli: int = STIMULI) -> tuple[Any, Any, Any, Any]:
    """Judge, stimulus and whether a machine's, each [trials], and right [number, trials]. What judge and stimulus add
    to the rate is one of two values; a judge's, on people's answers, times ``sign``."""
    chance = np.random.default_rng(5)
    judge = np.repeat(np.arange(judges), PER_JUDGE)
    is_machine = np.tile(np.arange(PER_JUDGE) % 2 == 1, judges)
    stimulus = (np.arange(judges * PER_JUDGE) // 2 * 7 + judge) % stimuli
    of_judge, of_stimulus = (
        size * chance.choice([-1, 1], (number, many)) for size, many in ((OF_JUDGE, judges), (OF_STIMULUS, stimuli))
    )
    rate = RATE + np.where(is_machine, 1, sign) * of_judge[:, judge] + of_stimulus[:, stimulus]
    return judge, stimulus, is_machine, chance.random(rate.shape) < rate


def estimate(verdicts: pd.DataFrame) -> Variance:
    sample = _Verdicts(verdicts)
    return sample.variance(sample.is_machine)


def truth(sign: int) -> Variance:
    parts = Parts(OF_JUDGE**2, OF_STIMULUS**2, RATE * (1 - RATE) - OF_JUDGE**2 - OF_STIMULUS**2)
    return Variance(parts, parts, sign * OF_JUDGE**2, OF_STIMULUS**2)


@pytest.mark.parametrize("sign", [1, -1], ids=["some judges are better", "some say machine"])
def test_the_half_width_is_that_of_drawn_studies(sign: int) -> None:
    _, _, is_machine, right = studies(4000, sign)
    machine, human = right[:, is_machine].mean(1), right[:, ~is_machine].mean(1)
    design = Design(JUDGES, PER_JUDGE / 2, PER_JUDGE / 2, STIMULI)
    times = float(student.ppf(0.975, STIMULI - 1))
    assert design.half_width(truth(sign), "p_machine") == pytest.approx(times * machine.std(), rel=0.05)
    detectability = (machine + human) / 2
    assert design.half_width(truth(sign), "detectability") == pytest.approx(times * detectability.std(), rel=0.05)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_parts_are_found_in_verdicts(sign: int) -> None:
    judge, stimulus, is_machine, right = studies(1, sign, judges=1500, stimuli=900)
    agent = np.where(is_machine, np.where(stimulus % 2, "a", "b"), "human:1")
    frame = {"judge": judge, "stimulus": stimulus, "truth": np.where(is_machine, "machine", "human"), "agent": agent}
    found = estimate(pd.DataFrame({**frame, "verdict": np.where(right[0] == is_machine, "machine", "human")}))
    wanted = truth(sign)
    for one, other in ((found.human, wanted.human), (found.machine, wanted.machine), (found, wanted)):
        assert one.judges == pytest.approx(other.judges, abs=0.01)
        assert one.stimuli == pytest.approx(other.stimuli, abs=0.01)
    assert found.machine.rest == pytest.approx(wanted.machine.rest, abs=0.01)


def test_the_parts_of_small_studies_are_right_on_average() -> None:
    """A mean over few judges goes along with them, which would make them look more alike than they are."""
    judge, stimulus, is_machine, right = studies(500, 1)
    truths = np.where(is_machine, "machine", "human")
    frame = {"judge": judge, "stimulus": stimulus, "truth": truths, "agent": np.where(is_machine, "a", "human:1")}
    said = np.where(right == is_machine, "machine", "human")
    found = [estimate(pd.DataFrame({**frame, "verdict": one})).machine.judges for one in said]
    assert np.mean(found) == pytest.approx(OF_JUDGE**2, abs=0.0018)


def test_trials_that_do_not_divide_are_one_more_for_some_judges() -> None:
    alone = Parts(0.04, 0, 0)
    width = Design(40, 5, 1.5, 41).half_width(Variance(alone, alone), "p_machine")
    counts = np.repeat([1, 2], 20)
    wanted = math.sqrt(0.04 * (counts**2).sum() / counts.sum() ** 2)
    assert width == pytest.approx(float(student.ppf(0.975, 39)) * wanted)


def drawn(judges: int) -> pd.DataFrame:
    options = argparse.Namespace(judges=judges, stimuli=200, per_judge=30)
    return calibrate_scores.drawn(options, 1, 0.3, np.array([-0.2, 0.6]))


@pytest.mark.parametrize("stop", [False, True], ids=["whole lists", "judges who stop early"])
def test_half_widths_are_those_of_the_scores(stop: bool) -> None:
    verdicts = drawn(150)
    if stop:  # nine of ten judges after four of thirty trials
        verdicts = verdicts[(verdicts["judge"] % 10 == 0) | (verdicts.groupby("judge").cumcount() < 4)]
    for row, score in zip(half_widths(verdicts), summarize(verdicts, ["a0", "a1"], 0, 400), strict=True):
        assert row["agent"] == score.agent
        assert row["judges"] == (150 if not stop or row["agent"] == "all" else pytest.approx(145, abs=5))
        for name in ("p_machine", "detectability"):
            interval = getattr(score, name)
            assert row[name] == pytest.approx((interval.high - interval.low) / 2, rel=0.15)


def test_the_judges_still_needed_bring_the_wanted_half_width() -> None:
    verdicts = drawn(150)
    [_, now, _] = half_widths(verdicts, wanted=0.03)
    assert now["detectability"] > 0.03
    [_, then, _] = half_widths(drawn(150 + now["needed"]))
    assert then["detectability"] == pytest.approx(0.03, rel=0.1)
    assert [row["needed"] for row in half_widths(verdicts, wanted=0.2)] == [0, 0, 0]
    assert [row["needed"] for row in half_widths(verdicts, wanted=0.005)] == [None, None, None]
    assert half_widths(verdicts[:0]) == [{"agent": "all", "judges": 0, "p_machine": NAN, "detectability": NAN}]
    few = verdicts[verdicts["judge"] == 0]
    assert [(math.isnan(row["detectability"]), row["needed"]) for row in half_widths(few, 0.1)] == [(True, None)] * 3


def test_a_plan_names_the_fewest_judges_and_what_cannot_be_reached(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(0.03, agents=9, per_judge=40, stimuli=100, variance=truth(-1))
    for row in found.rows:
        design = Design(row.judges or 10**6, row.per_judge / 2, row.per_judge / 18, row.stimuli, 9)
        width = design.half_width(truth(-1), "detectability")
        if row.judges is None:
            assert width > 0.03
            assert width == pytest.approx(row.of_each, rel=0.01)
        else:
            assert row.of_all < row.of_each <= 0.03
            assert replace(design, judges=row.judges - 1).half_width(truth(-1), "detectability") > 0.03
    assert (found.rows[0].per_judge, found.rows[0].stimuli) == (40, 100)
    assert {row.stimuli for row in found.rows if row.judges is None} == {50}
    print_plan(found)
    told = capsys.readouterr().out
    assert f"with 50 stimuli no number of judges brings it below ± {found.rows[1].of_each:.3f}" in told
    with pytest.raises(InputError, match=r"between 0 and 0\.5"):
        plan(0.5, 9, 40, 100)
