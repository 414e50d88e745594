"""Corrected rates beside closed forms, least squares of numpy, and the plain scores."""

import numpy as np
import pandas as pd
import pytest

from judging.contamination.correction import Corrected, by_known_rate, by_traces
from judging.statistics.jackknife import Cells, Clusters, Floats
from judging.statistics.measures import clusters, is_right, summarize

TRUE = 0.7
FOREIGN = 0.2


@pytest.fixture(scope="module")
def verdicts() -> pd.DataFrame:
    """20 judges' verdicts on 15 people's answers, a third of them foreign, and on those of two machines."""
    chance = np.random.default_rng(3)
    rows = []
    for judge in range(20):
        for stimulus in range(30):
            who = chance.choice(["human", "alpha", "beta"], p=[0.6, 0.2, 0.2])
            is_foreign = who == "human" and chance.random() < 1 / 3
            right = chance.random() < (FOREIGN if is_foreign else TRUE)
            truth = "human" if who == "human" else "machine"
            other = "machine" if truth == "human" else "human"
            agent = f"human:{chance.integers(15)}" if who == "human" else who
            verdict = truth if right else other
            rows.append((f"human:j{judge}", f"s{stimulus}", agent, truth, verdict, is_foreign))
    table = pd.DataFrame(rows, columns=["judge", "stimulus", "agent", "truth", "verdict", "is_foreign"])
    return table.assign(trial=[str(at) for at in range(len(table))])


def _parts(verdicts: pd.DataFrame) -> tuple[Floats, Cells, Clusters]:
    agent = verdicts["agent"].to_numpy()
    is_human = (verdicts["truth"] == "human").to_numpy()
    cells = np.array([is_human, agent == "alpha", agent == "beta"])
    return is_right(verdicts), cells, clusters(verdicts)


def _by_traces(verdicts: pd.DataFrame, foreign: Floats) -> list[Corrected]:
    return by_traces(*_parts(verdicts), np.tile(foreign, (7, 1)))


def test_without_foreign_answers_all_is_as_it_was(verdicts: pd.DataFrame) -> None:
    plain = summarize(verdicts, ["alpha", "beta"])[1:]
    corrected = _by_traces(verdicts, np.zeros(len(verdicts)))
    known = by_known_rate(*_parts(verdicts), (0.0, 0.0), _parts(verdicts)[1][1:2])
    for before, row, of_known in zip(plain, corrected, known, strict=True):
        for figures in (row, of_known):
            for name in ("p_human", "detectability"):
                first = getattr(before, name)
                second = getattr(figures, name)
                ends = (first.value, first.low, first.high)
                assert (second.value, second.low, second.high) == pytest.approx(ends)
        assert np.isnan(row.p_foreign)


def test_where_foreign_answers_are_known_the_others_are_counted(verdicts: pd.DataFrame) -> None:
    foreign = verdicts["is_foreign"].to_numpy(dtype=np.float64)
    people = verdicts[verdicts["truth"] == "human"]
    own = (people["verdict"][~people["is_foreign"]] == "human").mean()
    of_alpha = (verdicts["verdict"][verdicts["agent"] == "alpha"] == "machine").mean()
    first = _by_traces(verdicts, foreign)[0]
    assert first.p_human.value == pytest.approx(own)
    assert first.detectability.value == pytest.approx((own + of_alpha) / 2)
    assert first.p_foreign == pytest.approx((people["verdict"][people["is_foreign"]] == "human").mean())
    assert first.p_human.low < own < first.p_human.high


def test_probabilities_give_the_line_of_least_squares(verdicts: pd.DataFrame) -> None:
    chance = np.random.default_rng(8)
    right, cells, _ = _parts(verdicts)
    is_human = cells[0]
    foreign = np.where(is_human, chance.beta(0.5, 1, len(verdicts)), 0.0)
    slope, level = np.polyfit(foreign[is_human], right[is_human], 1)
    first = _by_traces(verdicts, foreign)[0]
    assert first.p_human.value == pytest.approx(level)
    assert first.p_foreign == pytest.approx(np.clip(level + slope, 0, 1))


def test_the_uncertainty_of_the_rate_makes_intervals_wider(verdicts: pd.DataFrame) -> None:
    right, cells, drawn_from = _parts(verdicts)
    is_human = cells[0]
    chance = np.random.default_rng(8)
    is_foreign = verdicts["is_foreign"].to_numpy()
    share = np.where(is_foreign, chance.beta(4, 2, len(verdicts)), chance.beta(2, 4, len(verdicts)))
    foreign = np.where(is_human, share, 0.0)
    lower = np.where(is_human, 0.6 * foreign, 0.0)
    higher = np.where(is_human, 0.1 + 0.9 * foreign, 0.0)
    sure = _by_traces(verdicts, foreign)[0]
    unsure = by_traces(right, cells, drawn_from, np.array([foreign, lower, higher, lower, higher, foreign, foreign]))[0]
    lines = [np.polyfit(rate[is_human], right[is_human], 1)[1] for rate in (foreign, lower, higher)]
    assert unsure.at_ends[:2] == pytest.approx(lines[1:])
    assert unsure.p_human.value == sure.p_human.value == pytest.approx(lines[0])
    assert unsure.within == sure.within
    up = max(lines) - lines[0]
    high = lines[0] + np.hypot(sure.p_human.high - lines[0], up)
    assert min(lines) == pytest.approx(lines[0])
    assert unsure.p_human.low == sure.p_human.low
    assert sure.p_human.high < unsure.p_human.high < high  # the line's own error is in the interval before


def test_where_verdicts_do_not_depend_on_marks_intervals_stay_on_average(verdicts: pd.DataFrame) -> None:
    """The line's slope is error alone, which the interval has already."""
    right, cells, drawn_from = _parts(verdicts)
    ratios = []
    for seed in range(40):
        foreign = np.where(cells[0], np.random.default_rng(seed).beta(0.5, 1, len(verdicts)), 0.0)
        higher = np.where(cells[0], 0.3 + 0.7 * foreign, 0.0)
        sure = _by_traces(verdicts, foreign)[0].p_human
        unsure = by_traces(right, cells, drawn_from, np.array([foreign, *[higher] * 6]))[0].p_human
        ratios.append((unsure.high - unsure.low) / (sure.high - sure.low))
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)
    assert 0.8 <= min(ratios) < 1 < max(ratios)


def test_a_known_rate_gives_the_closed_form(verdicts: pd.DataFrame) -> None:
    parts = _parts(verdicts)
    right, cells, _ = parts
    alike = cells[2:3]
    human, alpha, beta = (float(right[cell].mean()) for cell in cells)
    first, second = by_known_rate(*parts, (0.2, 0.2), alike)
    own = (human - 0.2 * (1 - beta)) / 0.8
    assert first.p_human.value == second.p_human.value == pytest.approx(own)
    assert first.detectability.value == pytest.approx((own + alpha) / 2)
    assert second.detectability.value == pytest.approx((own + beta) / 2)
    assert first.p_foreign == pytest.approx(1 - beta)


def test_bounds_of_a_known_rate_reach_over_both_ends(verdicts: pd.DataFrame) -> None:
    parts = _parts(verdicts)
    alike = parts[1][2:3]
    low, high, both = (by_known_rate(*parts, bounds, alike)[0] for bounds in ((0.1, 0.1), (0.3, 0.3), (0.1, 0.3)))
    for name in ("p_human", "detectability", "within"):
        ends = [getattr(low, name), getattr(high, name)]
        found = getattr(both, name)
        assert found.low <= min(end.low for end in ends) + 1e-12
        assert found.high >= max(end.high for end in ends) - 1e-12
    assert both.at_ends[:2] == pytest.approx((low.p_human.value, high.p_human.value))


def test_a_judge_who_gives_more_verdicts_counts_once(verdicts: pd.DataFrame) -> None:
    more = pd.concat([verdicts, *[verdicts[verdicts["judge"] == "human:j0"]] * 5], ignore_index=True)
    parts = _parts(more)
    foreign = np.tile(more["is_foreign"].to_numpy(dtype=np.float64), (7, 1))
    first = by_traces(*parts, foreign, by_judge=True)[0]
    people = more[more["truth"] == "human"].assign(right=parts[0][parts[1][0]])
    share = 1 / people.groupby("judge")["trial"].transform("size")
    is_own = ~people["is_foreign"]
    assert first.p_human.value == pytest.approx(np.average(people["right"][is_own], weights=share[is_own]))


def test_a_rate_that_is_too_high_ends_at_one_or_does_not_fit(verdicts: pd.DataFrame) -> None:
    """More foreign answers than were judged machine: p(H|H) is 1, and detectability its mean with p(M|M)."""
    right, cells, drawn_from = _parts(verdicts)
    right = np.where(cells[0], np.arange(len(right)) % 20 > 0, right)
    few, _ = by_known_rate(right, cells, drawn_from, (0.09, 0.09), cells[2:3])
    assert few.p_human.value == 1
    assert few.detectability.value == pytest.approx((1 + float(right[cells[1]].mean())) / 2)
    assert few.p_human.low < 1 == few.p_human.high
    for bounds in ((0.6, 0.6), (0.01, 0.6)):
        many, _ = by_known_rate(right, cells, drawn_from, bounds, cells[2:3])
        assert np.isnan([many.p_human.value, many.p_human.low, many.detectability.value]).all()


def test_a_single_judge_of_several_has_no_interval(verdicts: pd.DataFrame) -> None:
    few = verdicts[(verdicts["truth"] == "machine") | (verdicts["judge"] == "human:j0")]
    plain = summarize(few, ["alpha", "beta"])[1]
    for foreign in (np.zeros(len(few)), few["is_foreign"].to_numpy(dtype=np.float64)):
        first = _by_traces(few, foreign)[0]
        for name in ("p_human", "detectability"):
            found = getattr(first, name)
            assert np.isnan([found.low, found.high]).all()
            assert np.isnan(getattr(plain, name).low)
            assert 0 <= found.value <= 1
