"""Planned half-widths against studies that are drawn."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from judging.study.results.planning import PlannedMeasure, half_width, plan, simulate

# half of a judge's trials are people's, half an agent's
JUDGES = 24
STIMULI = 20
PER_JUDGE = 10
OF_JUDGE = 0.2
OF_STIMULUS = 0.15
RATE = 0.55


@pytest.fixture(autouse=True)
def _parts(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"JUDGES_VARIANCE": OF_JUDGE**2, "STIMULI_VARIANCE": OF_STIMULUS**2}
    for name, value in {**parts, "REST": RATE * (1 - RATE) - sum(parts.values())}.items():
        monkeypatch.setattr(f"judging.study.results.planning.{name}", value)


def test_the_half_width_is_that_of_drawn_studies() -> None:
    """What judge and stimulus add to the rate is drawn from two values, for people's and machines' answers apart."""
    chance = np.random.default_rng(5)
    studies = 4000
    judge = np.repeat(np.arange(JUDGES), PER_JUDGE)
    is_machine = np.tile(np.arange(PER_JUDGE) % 2, JUDGES)
    stimulus = (np.arange(JUDGES * PER_JUDGE) // 2 * 7 + judge) % STIMULI
    of_judge = OF_JUDGE * chance.choice([-1, 1], (studies, 2, JUDGES))
    of_stimulus = OF_STIMULUS * chance.choice([-1, 1], (studies, 2, STIMULI))
    rate = RATE + of_judge[:, is_machine, judge] + of_stimulus[:, is_machine, stimulus]
    right = chance.random(rate.shape) < rate
    machine = right[:, is_machine == 1].mean(1)
    human = right[:, is_machine == 0].mean(1)

    def planned(measure: PlannedMeasure) -> float:
        return half_width(JUDGES, PER_JUDGE / 2, PER_JUDGE / 2, STIMULI, measure)

    times = float(student.ppf(0.975, STIMULI - 1))
    assert planned("p_machine") == pytest.approx(times * machine.std(), rel=0.05)
    assert planned("detectability") == pytest.approx(times * ((machine + human) / 2).std(), rel=0.05)


def test_a_simulated_test_holds_its_level_and_its_power() -> None:
    """Against the normal distribution, with the half-width of the model; without a difference it is the level."""
    passes, power = simulate(60, 1, 40, 80, 0.1, studies=300)
    error = half_width(60, 20, 20, 80, "detectability") / float(student.ppf(0.975, 59))
    assert power == pytest.approx(float(norm.sf(1.96 - 0.1 / error)), abs=0.09)
    assert passes == pytest.approx(float(2 * norm.cdf(0.1 / error - 1.645) - 1), abs=0.09)
    assert simulate(60, 1, 40, 80, 1e-9, studies=300)[0] == 0
    assert simulate(60, 1, 40, 80, 1e-9, studies=300)[1] < 0.06


def test_a_plan_names_the_fewest_judges_or_what_cannot_be_reached() -> None:
    def width(judges: int, stimuli: int) -> float:
        return half_width(judges, 20, 20 / 9, stimuli, "detectability")

    judges, reached = plan(0.03, agents=9, per_judge=40, stimuli=100, measure="detectability")
    assert judges is not None
    assert width(judges, 100) == reached <= 0.03 < width(judges - 1, 100)
    assert plan(0.03, 9, 40, 50, measure="detectability") == (None, pytest.approx(width(10**6, 50), rel=0.01))
