"""Planned half-widths against studies that are drawn."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from agents.errors import InputError
from judging.study.results.planning import (
    MOST_STOPPED,
    EarlyStopping,
    PlannedMeasure,
    half_width,
    plan,
    simulate,
    simulate_stopping,
)
from judging.study.results.stopping import decide
from serving.cli import main

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


def test_early_stopping_takes_as_many_judges_as_in_studies_of_normal_judges() -> None:
    """Each judge's detectability as a normal variable, whose variance is written down here: of 20 trials of people and
    4 of the agent among 40 stimuli, half of whose mean it is."""
    agents = 5
    rate = 0.5
    of_trials = {number: (rate * (1 - rate) - OF_STIMULUS**2) / number for number in (20, 4)}
    of_answers = {number: OF_STIMULUS**2 / number * (1 - number / 40) for number in (20, 4)}
    variance = sum(OF_JUDGE**2 + of_trials[number] + of_answers[number] for number in (20, 4)) / 4
    found = simulate_stopping(agents, 40, 40, 0.1, judges=60)
    for expected, true in zip(found, (0.5, 0.7), strict=True):
        chance = np.random.default_rng(7)
        numbers = []
        for _ in range(200):
            judges = chance.normal(true, np.sqrt(variance), MOST_STOPPED)
            decision, number = decide(np.clip(judges, 0, 1).tolist(), 0.1, agents)
            numbers.append(number if decision == expected.decision else MOST_STOPPED)
        assert expected.detectability == true
        assert expected.typical == pytest.approx(np.median(numbers), rel=0.15)
        assert expected.most == pytest.approx(np.quantile(numbers, 0.9), rel=0.2)
        assert expected.by_planned == pytest.approx(np.mean(np.array(numbers) <= 60), abs=0.15)
        assert expected.right > 0.95
    assert [expected.decision for expected in found] == ["passes", "fails"]


def test_more_agents_share_the_error_and_take_more_judges() -> None:
    one, many = (simulate_stopping(agents, 40, 40, 0.2, studies=40)[0] for agents in (1, 8))
    assert one.typical is not None
    assert many.typical is not None
    assert many.typical > one.typical
    assert one.planned is None
    with pytest.raises(InputError, match="bounds below"):
        simulate_stopping(2, 40, 40, 0.5)
    with pytest.raises(InputError, match="as many stimuli"):
        simulate_stopping(2, 40, 19, 0.1)


def test_a_plan_says_in_words_when_a_study_stops(capsys: pytest.CaptureFixture[str]) -> None:
    expected = EarlyStopping(0.5, "passes", 0.995, 44, None, 42, 0.4)
    assert expected.in_words() == (
        "an agent with detectability 0.5 passes after 44 judges in half of the studies, and after more than 1,000 in "
        "90 %. The decision is right in 100%. After 42 judges, 40% of the studies are decided."
    )
    assert EarlyStopping(0.6, "fails", 0.2, None, None).in_words() == (
        "an agent with detectability 0.6 fails, but fewer than half of the studies decide this within 1,000 judges."
    )
    numbers = ["--agents", "5", "--per-judge", "40", "--stimuli", "40"]
    assert main(["study", "plan", *numbers, "--bounds", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "With early stopping by the decisions of `turinglike study status` with bounds 0.2:" in said
    assert "an agent with detectability 0.5 passes after" in said
    assert "an agent with detectability 0.85 fails after" in said
    assert main(["study", "plan", *numbers]) == 0
    assert "early stopping" not in capsys.readouterr().out
