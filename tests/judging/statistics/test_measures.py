"""Rates, detectability, d', criterion and their intervals, against closed forms and other programs."""

import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from judging.statistics.measures import MEASURES, TRAINED, summarize

Z = NormalDist().inv_cdf
COLUMNS = ["agent", "truth", "verdict", "judge", "stimulus", "trial"]


def table(counts: dict[tuple[str, str], tuple[int, int]]) -> pd.DataFrame:
    """Verdicts of one judge: of each (agent, truth) so many said to be human and so many a machine."""
    rows = []
    for (agent, truth), numbers in counts.items():
        for verdict, number in zip(("human", "machine"), numbers, strict=True):
            rows += [(agent, truth, verdict, "j", at, f"{agent}{at}") for at in range(number)]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_the_measures_of_counts_have_their_closed_forms() -> None:
    counts = {("h", "human"): (60, 40), ("a", "machine"): (45, 45), ("b", "machine"): (10, 0)}
    _, first, second = summarize(table(counts), ["a", "b"])
    wanted = [0.6, 0.5, 0.55, Z(60.5 / 101) + Z(45.5 / 91), (Z(60.5 / 101) - Z(45.5 / 91)) / 2]
    assert [getattr(first, name).value for name in MEASURES] == pytest.approx(wanted)
    assert second.detectability.value == 0.3  # below chance, and not cut off
    assert math.isfinite(second.dprime.value)
    assert second.dprime_judges == pytest.approx(second.dprime.value)  # of a single judge


@pytest.mark.parametrize(
    ("hits", "machines", "alarms", "people", "dprime", "criterion"),
    [
        (15, 20, 4, 20, 1.516110983768996, 0.08356574168841624),
        (20, 20, 4, 20, 2.8015852181129683, -0.5591713754835699),
        (20, 20, 0, 20, 3.9199279690801085, 0.0),
        (7, 7, 2, 9, 2.22994346647191, -0.35026205944956795),
        (0, 12, 0, 30, 0.39638083806273894, 1.9298548151536146),
        (12, 12, 30, 30, -0.39638083806273783, -1.9298548151536141),
    ],
)
def test_dprime_with_1_over_2n_is_metadpys(
    hits: int, machines: int, alarms: int, people: int, dprime: float, criterion: float
) -> None:
    """Figures of metadpy 0.1.2 (sdt.rates, sdt.dprime, sdt.criterion): of machines' answers ``hits`` are said to be a
    machine's, of people's ``alarms``."""
    verdicts = table({("h", "human"): (people - alarms, alarms), ("a", "machine"): (machines - hits, hits)})
    _, row = summarize(verdicts, ["a"], correction="1/2N")
    assert row.dprime.value == row.dprime_judges == pytest.approx(dprime)
    assert row.criterion.value == pytest.approx(criterion, abs=1e-12)
    assert row.dprime.low <= row.dprime.value <= row.dprime.high
    _, usual = summarize(verdicts, ["a"])
    assert usual.dprime.value == pytest.approx(Z((hits + 0.5) / (machines + 1)) - Z((alarms + 0.5) / (people + 1)))
    assert (usual.p_machine, usual.detectability) == (row.p_machine, row.detectability)


def test_published_counts_give_the_published_detectability() -> None:
    """The zero-shot judge of colours in the authors' notebook: 557 of 872, 1,716 of 2,616."""
    counts = {
        ("human:1", "human"): (557, 315),
        ("azure", "machine"): (320, 552),
        ("google", "machine"): (338, 534),
        ("mccq", "machine"): (242, 630),
    }
    rows = {row.agent: row for row in summarize(table(counts), ["azure", "google", "mccq"])}
    assert round(rows["all"].detectability.value, 3) == 0.647
    assert rows["all"].machine_machine == 1716
    assert rows["azure"].p_machine.value == pytest.approx(552 / 872)
    assert rows["azure"].p_human.value == rows["google"].p_human.value == pytest.approx(557 / 872)


def test_one_judge_has_exact_intervals() -> None:
    rows = summarize(table({("h", "human"): (60, 40), ("a", "machine"): (0, 30)}), ["a"])
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
    rows = {row.agent: row for row in summarize(pd.concat([chosen, pd.DataFrame(none, columns=COLUMNS)]), ["a", "b"])}
    assert (rows["a"].p_human.value, rows["a"].p_machine.value) == (0.6, 0.7)
    assert [getattr(rows["a"], why) for why in ("refused", "unparsed", "failed")] == [2, 1, 0]
    assert [getattr(rows["all"], why) for why in ("refused", "unparsed", "failed")] == [2, 1, 1]
    assert math.isnan(rows["b"].p_machine.value)
    assert math.isnan(rows["b"].detectability.low)


def drawn(
    seed: int, judges: int, stimuli: int, rates: tuple[float, float], of_judges: float, of_stimuli: float
) -> pd.DataFrame:
    """Every judge judges each stimulus's answers by people and by "a", rightly in these shares in the probit model."""
    chance = np.random.default_rng(seed)
    judge, stimulus, is_machine = (part.ravel() for part in np.indices((judges, stimuli, 2)))
    bias = chance.normal(0, of_judges, judges)[judge]
    scale = math.sqrt(1 + of_judges**2 + of_stimuli**2)
    middle = scale * np.array(list(map(Z, rates)))[is_machine] + np.where(is_machine, -bias, bias)
    right = middle + chance.normal(0, of_stimuli, stimuli)[stimulus] + chance.normal(size=len(judge)) > 0
    truth = np.where(is_machine, "machine", "human")
    verdict = np.where(right == is_machine, "machine", "human")
    agent = np.where(is_machine, "a", "h")
    columns = (agent, truth, verdict, judge, stimulus, stimulus * 2 + is_machine)
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


@pytest.mark.parametrize(
    ("judges", "stimuli", "rates"), [(3, 10, (0.94, 0.94)), (10, 20, (0.98, 0.5)), (20, 30, (0.6, 0.6))]
)
def test_intervals_hold_the_truth(judges: int, stimuli: int, rates: tuple[float, float]) -> None:
    """By one-sided binomial error at most 1 in 1,000 times by chance in the wrong if 95 % are held."""
    studies = [summarize(drawn(seed, judges, stimuli, rates, 0.4, 0.3), ["a"])[1] for seed in range(150)]
    human, machine = rates
    truth = [human, machine, (human + machine) / 2, Z(human) + Z(machine), (Z(human) - Z(machine)) / 2]
    for name, value in zip(MEASURES, truth, strict=True):
        ends = [getattr(study, name) for study in studies]
        assert sum(end.low <= value <= end.high for end in ends) >= 133
    if judges == 20:  # and the half-width is Student's quantile times the spread over studies
        spread = np.std([study.detectability.value for study in studies], ddof=1)
        half = np.mean([study.detectability.high - study.detectability.low for study in studies]) / 2
        assert 0.8 < half / (2.09 * spread) < 1.35


@pytest.mark.parametrize("judges", [1, 2, 3, 10])
def test_judges_who_are_always_right_have_the_exact_interval_of_the_fewest_clusters(judges: int) -> None:
    row = summarize(drawn(0, judges, 10, (1 - 1e-15, 1 - 1e-15), 0, 0), ["a"])[1]
    low = binomtest(judges if judges > 1 else 10, judges if judges > 1 else 10).proportion_ci(method="exact").low
    assert (row.p_machine.low, row.p_machine.high) == (pytest.approx(low), 1)
    assert row.detectability.low == pytest.approx(1 - math.sqrt(2) * (1 - low) / 2)  # MOVER of two that do not vary
    assert row.dprime.low < row.dprime.value < row.dprime.high == math.inf


def test_a_trained_judges_interval_is_as_wide_as_its_verdicts_vary() -> None:
    """Sums of the signs of margins to which each two items add the same, beside those of independent signs."""
    chance = np.random.default_rng(0)
    number = 60
    draws = 4000
    alike = chance.normal(size=(draws, number, number))
    right = np.sign((alike + alike.swapaxes(1, 2)).sum(axis=2))
    assert right.sum(axis=1).var() / number == pytest.approx(TRAINED**2, rel=0.08)
    verdicts = table({("h", "human"): (70, 130), ("a", "machine"): (90, 110)}).assign(stimulus=range(400))
    widths = [
        rate.high - rate.low
        for rate in (summarize(verdicts.assign(margin=margin), ["a"])[1].detectability for margin in (0.5, None))
    ]
    assert widths[0] / widths[1] == pytest.approx(TRAINED, rel=0.02)


def test_a_judge_who_always_says_human_has_the_dprime_of_the_correction_alone() -> None:
    """z of 40.5/41 and of 0.5/21; on equal numbers they cancel."""
    unequal = summarize(table({("human:1", "human"): (40, 0), ("a", "machine"): (20, 0)}), ["a"])[0]
    assert unequal.dprime.value == pytest.approx(Z(40.5 / 41) + Z(0.5 / 21))
    assert f"{unequal.dprime.value:.2f}" == "0.27"
    equal = summarize(table({("human:1", "human"): (30, 0), ("a", "machine"): (30, 0)}), ["a"])[0]
    assert equal.dprime.value == pytest.approx(0, abs=1e-9)
