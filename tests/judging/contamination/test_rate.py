"""The contamination rate beside closed forms, recounts and distributions of scipy."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from judging.contamination.latent_classes import Counts, Floats, Marks
from judging.contamination.rate import estimate_rate, least_ratio_at_zero

PERSONS = 40


def _patterns(marks: int) -> Floats:
    return np.array(list(product((0.0, 1.0), repeat=marks)))


def _shares(patterns: Floats, probability: Floats) -> Floats:
    """The share of each pattern, with independent marks."""
    return np.asarray(np.where(patterns == 1, probability, 1 - probability).prod(axis=1))


def _counts(rate: float, own: Floats, foreign: Floats, *, laboratory: float = 0, least: float = 0.0) -> Counts:
    """Exactly the expected numbers of answers, the same of each person; ``laboratory`` answers of each of 10 people."""
    patterns = _patterns(len(own))
    of_own = _shares(patterns, own)
    field = (1 - rate) * of_own + rate * _shares(patterns, foreign)
    in_laboratory = np.tile(laboratory * of_own, (10 if laboratory else 0, 1))
    return Counts(patterns, np.tile(30 * field, (PERSONS, 1)), in_laboratory, np.full(len(own), least))


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_three_marks_find_the_rate_without_a_laboratory(rate: float) -> None:
    own = np.array([0.05, 0.1, 0.1])
    foreign = np.array([0.8, 0.7, 0.6])
    found = estimate_rate(_counts(rate, own, foreign))
    assert found.estimate.value == pytest.approx(rate, abs=1e-3)
    assert found.own == pytest.approx(own, abs=2e-3)
    assert found.foreign == pytest.approx(foreign, abs=5e-3)
    assert found.estimate.low < found.narrow.low < rate < found.narrow.high < found.estimate.high
    both = np.stack([(1 - rate) * _shares(_patterns(3), own), rate * _shares(_patterns(3), foreign)])
    assert found.posterior[0] == pytest.approx(both[1] / both.sum(axis=0), abs=0.01)


def test_two_marks_and_a_large_laboratory_give_the_closed_form() -> None:
    """With f known, (m1 - f1) and (m2 - f2) are c d1 and c d2, and the share of both marks gives c d1 d2."""
    own = np.array([0.05, 0.1])
    chance = np.random.default_rng(4)
    expected = _counts(0.2, own, np.array([0.8, 0.7]), laboratory=1e6)
    field = np.array([chance.multinomial(30, person / 30) for person in expected.field], dtype=np.float64)
    found = estimate_rate(Counts(expected.patterns, field, expected.laboratory, expected.least))
    share = field.sum(axis=0) / field.sum()
    first, second = share @ expected.patterns - own
    both = share[-1] - own.prod() - own[0] * second - own[1] * first
    assert found.estimate.value == pytest.approx(first * second / both, abs=2e-3)


def test_independent_marks_are_no_contamination() -> None:
    found = estimate_rate(_counts(0.0, np.array([0.1, 0.2, 0.1]), np.array([0.8, 0.7, 0.6]), least=0.3))
    assert not found.is_contaminated
    assert found.estimate.value == pytest.approx(0, abs=0.005)
    assert found.estimate.high > found.estimate.value


def test_two_people_with_two_marks_on_many_answers_are_no_evidence() -> None:
    counts = _counts(0.0, np.array([0.05, 0.1, 0.1]), np.array([0.8, 0.7, 0.6]), least=0.3)
    field = counts.field.copy()
    field[:2] *= 20 / 30
    field[:2, 6] += 10  # the first two marks
    alone = estimate_rate(Counts(counts.patterns, field, counts.laboratory, counts.least))
    assert not alone.is_contaminated
    field = counts.field.copy()
    field[:15] *= 28 / 30
    field[:15, 6] += 2  # as many answers, of fifteen people
    spread = estimate_rate(Counts(counts.patterns, field, counts.laboratory, counts.least))
    assert spread.is_contaminated


def test_marks_that_are_not_known_say_nothing() -> None:
    own = np.array([0.05, 0.1, 0.1])
    foreign = np.array([0.8, 0.7, 0.6])
    counts = _counts(0.2, own, foreign)
    unknown = np.column_stack([counts.patterns, np.full(len(counts.patterns), np.nan)])
    with_unknown = Counts(unknown, counts.field, np.zeros((0, 8)), np.zeros(4))
    first = estimate_rate(counts)
    second = estimate_rate(with_unknown)
    assert second.estimate == first.estimate
    assert np.isnan(second.own[3])


def test_order_of_persons_and_patterns_does_not_matter() -> None:
    counts = _counts(0.2, np.array([0.05, 0.1, 0.1]), np.array([0.8, 0.7, 0.6]))
    field = np.random.default_rng(1).poisson(counts.field).astype(np.float64)
    first = estimate_rate(Counts(counts.patterns, field, counts.laboratory, counts.least))
    turned = Counts(counts.patterns[::-1], field[::-1, ::-1], counts.laboratory, counts.least)
    second = estimate_rate(turned)
    assert second.rates == pytest.approx(first.rates, abs=1e-6)
    assert second.posterior[:, ::-1] == pytest.approx(first.posterior, abs=1e-5)


def test_without_two_marks_or_ten_people_nothing_is_estimated() -> None:
    own = np.array([0.05, 0.1, 0.1])
    counts = _counts(0.2, own, np.array([0.8, 0.7, 0.6]))
    few = estimate_rate(Counts(counts.patterns, counts.field[:9], counts.laboratory, counts.least))
    assert "fewer than 10 participants" in few.why
    single = estimate_rate(_counts(0.2, own[:1], np.array([0.8])))
    assert "two marks" in single.why
    assert np.isnan([single.estimate.value, single.estimate.low, few.estimate.value]).all()
    assert not single.is_contaminated


def test_marks_that_do_not_separate_give_no_figure() -> None:
    """Without the assumption that foreign answers have them, two independent marks allow for any rate."""
    found = estimate_rate(_counts(0.0, np.array([0.4, 0.4]), np.array([0.4, 0.4])))
    assert "any rate" in found.why


def test_the_threshold_at_zero_is_that_of_a_mixture_of_distributions() -> None:
    assert least_ratio_at_zero(2, False) == pytest.approx(chi2.isf(0.1, 1))  # one interaction: half of chi-squared
    threshold = least_ratio_at_zero(3, False)
    heads = [3 / 8, 3 / 8, 1 / 8]
    tail = sum(weight * chi2.sf(threshold, m) for m, weight in enumerate(heads, start=1))
    assert tail == pytest.approx(0.05)
    assert least_ratio_at_zero(3, True) > threshold


def _pasting(marks: int, pasting: int) -> Counts:
    """Numbers drawn for 60 people, the first of whom paste two thirds of 12 answers."""
    chance = np.random.default_rng(9)
    patterns = _patterns(marks)
    own = _shares(patterns, np.array([0.03, 0.1, 0.1])[:marks])
    foreign = _shares(patterns, np.array([0.95, 0.9, 0.8])[:marks])
    of_person = [own / 3 + 2 * foreign / 3 if person < pasting else own for person in range(60)]
    field = np.array([chance.multinomial(12, shares) for shares in of_person], dtype=np.float64)
    return Counts(patterns, field, np.zeros((0, len(patterns))), np.full(marks, 0.3))


def test_the_same_people_with_twice_the_answers_tell_no_more() -> None:
    """The interval is one over people: who pastes is known from few answers, and others may paste more or less."""
    counts = _pasting(3, 12)
    once = estimate_rate(counts)
    twice = estimate_rate(Counts(counts.patterns, 2 * counts.field, counts.laboratory, counts.least))
    more = estimate_rate(Counts(counts.patterns, np.tile(counts.field, (2, 1)), counts.laboratory, counts.least))
    assert twice.estimate.value == pytest.approx(once.estimate.value, abs=1e-3)
    assert (twice.estimate.low, twice.estimate.high) == pytest.approx((once.estimate.low, once.estimate.high), abs=0.01)
    width = once.estimate.high - once.estimate.low
    assert more.estimate.high - more.estimate.low == pytest.approx(width / np.sqrt(2), rel=0.1)
    assert width > 2 * 1.96 * np.sqrt(2 / 15 * 13 / 15 / 720)  # of as many answers of different people


def test_which_of_these_answers_are_foreign_is_known_better_than_the_rate() -> None:
    found = estimate_rate(_pasting(3, 12))
    value, low, high, low_of_these, high_of_these, _, _ = found.rates
    assert low < low_of_these < value < high_of_these < high
    assert high_of_these - low_of_these < 0.4 * (high - low)
    assert found.posterior[0] == pytest.approx(found.posterior[3], abs=0.2)


def test_an_answer_of_the_laboratory_is_worth_less_where_persons_differ() -> None:
    """A check that a person passes or fails on all of 12 answers counts once a person; other marks on each answer."""
    own = _shares(_patterns(2), np.array([0.1, 0.2]))
    patterns = _patterns(3)
    fails = np.concatenate([np.zeros(4), own])
    passes = np.concatenate([own, np.zeros(4)])
    chance = np.random.default_rng(2)
    field = 30 * np.array([fails if person % 5 == 0 else passes for person in range(300)])
    field[:, :4] = [chance.multinomial(number, own) for number in field[:, :4].sum(axis=1)]
    field[:, 4:] = [chance.multinomial(number, own) for number in field[:, 4:].sum(axis=1)]
    counts = Counts(patterns, field, np.tile(12 * passes, (10, 1)), np.zeros(3))
    weight = Marks(counts, np.ones(3, dtype=bool)).weight
    assert weight[0] == pytest.approx(1 / 12)
    assert weight[1:] == pytest.approx(1, abs=0.1)
