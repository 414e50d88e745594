"""Planned half-widths against studies that are drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from agents.errors import InputError
from judging.study.planning import Design, Measure, Parts, plan, print_plan

JUDGES, STIMULI, PER_JUDGE = 24, 20, 10  # half of a judge's trials are people's, half an agent's
OF_JUDGE, OF_STIMULUS, RATE = 0.2, 0.15, 0.55
PARTS = Parts(OF_JUDGE**2, OF_STIMULUS**2, RATE * (1 - RATE) - OF_JUDGE**2 - OF_STIMULUS**2)


def test_the_half_width_is_that_of_drawn_studies() -> None:
    """What judge and stimulus add to the rate is drawn from two values, for people's and machines' answers apart."""
    chance, studies = np.random.default_rng(5), 4000
    judge = np.repeat(np.arange(JUDGES), PER_JUDGE)
    is_machine = np.tile(np.arange(PER_JUDGE) % 2, JUDGES)
    stimulus = (np.arange(JUDGES * PER_JUDGE) // 2 * 7 + judge) % STIMULI
    of_judge = OF_JUDGE * chance.choice([-1, 1], (studies, 2, JUDGES))
    of_stimulus = OF_STIMULUS * chance.choice([-1, 1], (studies, 2, STIMULI))
    rate = RATE + of_judge[:, is_machine, judge] + of_stimulus[:, is_machine, stimulus]
    right = chance.random(rate.shape) < rate
    machine, human = right[:, is_machine == 1].mean(1), right[:, is_machine == 0].mean(1)
    design = Design(JUDGES, PER_JUDGE / 2, PER_JUDGE / 2, STIMULI)
    times = float(student.ppf(0.975, STIMULI - 1))
    assert design.half_width(PARTS, "p_machine") == pytest.approx(times * machine.std(), rel=0.05)
    assert design.half_width(PARTS, "detectability") == pytest.approx(times * ((machine + human) / 2).std(), rel=0.05)


def test_trials_that_do_not_divide_are_one_more_for_some_judges() -> None:
    width = Design(40, 5, 1.5, 41).half_width(Parts(0.04, 0, 0), "p_machine")
    counts = np.repeat([1, 2], 20)
    wanted = math.sqrt(0.04 * (counts**2).sum() / counts.sum() ** 2)
    assert width == pytest.approx(float(student.ppf(0.975, 39)) * wanted)


def test_a_plan_names_the_fewest_judges_and_what_cannot_be_reached(capsys: pytest.CaptureFixture[str]) -> None:
    measure: Measure = "detectability"
    rows = plan(0.03, agents=9, per_judge=40, stimuli=100, parts=PARTS)
    for row in rows:
        design = Design(row.judges or 10**6, row.per_judge / 2, row.per_judge / 18, row.stimuli)
        width = design.half_width(PARTS, measure)
        assert row.half_width == pytest.approx(width, rel=0.01)
        assert (width > 0.03) == (row.judges is None)
        if row.judges is not None:
            assert replace(design, judges=row.judges - 1).half_width(PARTS, measure) > 0.03
    assert (rows[0].per_judge, rows[0].stimuli) == (40, 100)
    unreached = [row for row in rows if row.judges is None]
    assert {row.stimuli for row in unreached} == {50}
    print_plan(rows, 0.03, 9, measure)
    floor = f"with 50 stimuli no number of judges brings it below ± {unreached[0].half_width:.3f}"
    assert floor in capsys.readouterr().out
    with pytest.raises(InputError, match=r"between 0 and 0\.5"):
        plan(0.5, 9, 40, 100)
