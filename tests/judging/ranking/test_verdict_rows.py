"""What is compiled: against the same by whole arrays of scipy, and against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random_array
from scipy.special import log_ndtr

from judging.ranking.verdict_rows import by_effects, likelihood, probits

ROWS = 300
EFFECTS = 40
GROUPS = 5
PATTERNS = 3


def test_sums_and_means_are_those_of_matrices() -> None:
    chance = np.random.default_rng(1)
    design = random_array((ROWS, EFFECTS), density=0.1, format="csr", rng=chance)
    effects = chance.normal(size=EFFECTS)
    group = chance.integers(GROUPS, size=ROWS)
    share = chance.random(ROWS)
    each, means = probits(design.indptr, design.indices, design.data, effects, group, share, GROUPS)
    assert each == pytest.approx(design @ effects)
    of_groups = np.zeros((GROUPS, ROWS))
    of_groups[group, np.arange(ROWS)] = share
    assert means == pytest.approx(of_groups @ (design @ effects))

    by_probit = chance.normal(size=ROWS)
    by_mean = chance.normal(size=GROUPS)
    derivatives = by_effects(design.indptr, design.indices, design.data, EFFECTS, by_probit, by_mean, group, share)
    assert derivatives == pytest.approx(design.T @ (by_probit + of_groups.T @ by_mean))


def test_the_likelihood_is_scipys_and_its_derivatives_are_those_of_differences() -> None:
    chance = np.random.default_rng(2)
    probit = chance.normal(0, 2, ROWS)
    base = chance.normal(size=GROUPS)
    group = chance.integers(GROUPS, size=ROWS)
    logs = chance.normal(0, 0.3, PATTERNS)
    pattern = chance.integers(PATTERNS, size=ROWS)
    sign = chance.choice([-1.0, 1.0], ROWS)
    weight = chance.integers(1, 4, ROWS).astype(float)

    def by_scipy(probit: np.ndarray, base: np.ndarray, logs: np.ndarray) -> float:
        return float(weight @ log_ndtr(sign * (probit + base[group]) / np.exp(logs)[pattern]))

    density, *derivatives = likelihood(probit, base, group, np.exp(logs), pattern, sign, weight)
    assert density == pytest.approx(by_scipy(probit, base, logs), rel=1e-12)
    given = [probit, base, logs]
    for place, derivative in enumerate(derivatives):
        for at in range(0, len(given[place]), 7):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [of.copy() for of in given]
                moved[place][at] += step
                sides.append(by_scipy(*moved))
            assert derivative[at] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-5)


def test_far_away_is_infinite_and_raises_nothing() -> None:
    one = np.ones(1)
    nought = np.zeros(1, int)
    density, *_ = likelihood(-60 * one, 0 * one, nought, one, nought, one, one)
    assert density == -np.inf
