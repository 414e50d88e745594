"""How many verdicts change between two versions, by margins."""

import numpy as np
import pytest

from judging.statistics.flips import FEW_VERDICTS, MANY_VERDICTS, Flips, flips


def drawn(number: int, moved: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Margins in two versions: of a common part and of one of each version's own; and whose answers are people's."""
    chance = np.random.default_rng(seed)
    common = chance.normal(size=number)
    first = common + moved * chance.normal(size=number)
    second = common + moved * chance.normal(size=number)
    return first, second, np.arange(number) % 2 == 0


def test_pairs_of_answers_with_near_middles_are_counted() -> None:
    """Against the pairs, one by one: each answer with the third of all around it, in the order of middles."""
    first, second, is_person = drawn(60, 0.3, 1)
    of_agent = ~is_person & (np.arange(60) < 40)
    found = flips(first, 3 * second, is_person, of_agent)
    by_margins = 0.0
    by_verdicts = 0.0
    for side in (is_person, of_agent):
        a = first[side] / np.sqrt(np.mean(first**2))
        b = second[side] / np.sqrt(np.mean(second**2))
        order = sorted(range(len(a)), key=lambda at: abs(a[at] + b[at]))
        near = max(round(len(a) / 3), 8)
        shares = []
        for place, at in enumerate(order):
            begin = min(max(place - near // 2, 0), len(a) - near)
            others = order[begin : begin + near]
            shares.append(np.mean([abs(b[other] - a[other]) > abs(a[at] + b[at]) for other in others]))
        by_margins += 0.25 * np.mean(shares) / len(a)
        by_verdicts += 0.25 * np.mean((a > 0) != (b > 0)) / len(a)
    assert found.by_margins == pytest.approx(by_margins)
    assert found.by_verdicts == pytest.approx(by_verdicts)


def test_distances_may_depend_on_middles() -> None:
    """Where margins of sure answers move most, the share over all pairs is far too large."""
    by_margins = 0.0
    by_verdicts = 0.0
    over_all = []
    changed = []
    for seed in range(60):
        chance = np.random.default_rng(seed)
        middle = chance.normal(size=200)
        moved = (0.05 + 0.3 * np.abs(middle)) * chance.normal(size=200)
        is_person = np.arange(200) % 2 == 0
        found = flips(middle - moved, middle + moved, is_person, ~is_person)
        assert found.number < MANY_VERDICTS
        by_margins += found.by_margins
        by_verdicts += found.by_verdicts
        over_all.append(np.mean(np.abs(moved)[:, None] > np.abs(middle)))
        changed.append(found.number / 200)
    too_large = np.mean(over_all) / np.mean(changed)
    assert too_large > 1.5
    assert abs(by_margins / by_verdicts - 1) < 0.3 * (too_large - 1)


def test_where_many_verdicts_change_their_number_is_taken() -> None:
    first, second, is_person = drawn(200, 0.6, 3)
    found = flips(first, second, is_person, ~is_person)
    assert found.number > MANY_VERDICTS
    assert found.by_margins == found.by_verdicts == pytest.approx(2 * 0.25 * found.number / 200 / 100, rel=0.2)


def test_it_is_the_number_of_verdicts_on_average_and_varies_less() -> None:
    """Of two normal margins with the correlation r the share that changes is arccos(r) / π (Sheppard 1899)."""
    share = np.arccos(1 / (1 + 0.05**2)) / np.pi
    by_margins = []
    by_verdicts = []
    for seed in range(400):
        first, second, is_person = drawn(100, 0.05, seed)
        found = flips(first, second, is_person, ~is_person)
        by_margins.append(found.by_margins)
        by_verdicts.append(found.by_verdicts)
    expected = 2 * 0.25 * share / 50
    for values in (by_margins, by_verdicts):
        assert np.mean(values) == pytest.approx(expected, abs=float(4 * np.std(values) / 20))
    assert np.std(by_margins) < 0.95 * np.std(by_verdicts)
    assert 0 in by_verdicts
    assert by_margins.count(0) < 0.5 * by_verdicts.count(0)


def test_answers_without_a_margin_do_not_count() -> None:
    first, second, is_person = drawn(40, 0.4, 2)
    with_gap = np.where(np.arange(40) < 30, first, np.nan)
    part = flips(with_gap, second, is_person, ~is_person)
    alone = flips(first[:30], second[:30], is_person[:30], ~is_person[:30])
    assert (part.by_margins, part.by_verdicts) == pytest.approx((alone.by_margins, alone.by_verdicts))
    none = np.full(40, np.nan)
    assert flips(none, second, is_person, ~is_person).by_margins == 0


def test_where_no_margin_moves_no_verdict_changes() -> None:
    first, _, is_person = drawn(40, 0.4, 3)
    found = flips(first, 2 * first, is_person, ~is_person)
    assert (found.by_margins, found.by_verdicts) == (0, 0)


def test_the_correction_fades_out_with_the_number_of_changed_verdicts() -> None:
    for number, power in ((1, 1), (FEW_VERDICTS, 1), (20, 0.5), (MANY_VERDICTS, 0), (500, 0)):
        assert Flips(0.03, 0.02, number).correction() == pytest.approx(1.5**power)
    with pytest.raises(ValueError, match="no verdict changes"):
        Flips(0.03, 0.0, 0).correction()


def test_changed_verdicts_are_counted_on_both_sides() -> None:
    first, second, is_person = drawn(40, 0.8, 5)
    of_agent = ~is_person & (np.arange(40) < 20)
    changed = (first > 0) != (second > 0)
    assert flips(first, second, is_person, of_agent).number == (changed & (is_person | of_agent)).sum()
