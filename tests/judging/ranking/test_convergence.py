"""Convergence: against closed forms of chains whose autocorrelation is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from judging.ranking.convergence import BLOCK, effective_draws, split_rhat

CHAINS = 4
DRAWS = 20_000


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9, -0.5])
def test_effective_draws_are_those_of_an_autoregression(correlation: float) -> None:
    """x[t + 1] = correlation * x[t] + noise is worth (1 - correlation) / (1 + correlation) of its draws."""
    noise = np.random.default_rng(1).normal(size=(CHAINS, DRAWS, 2))
    chains = lfilter([1], [1, -correlation], noise, axis=1)
    expected = CHAINS * DRAWS * (1 - correlation) / (1 + correlation)
    assert effective_draws(chains) == pytest.approx([expected, expected], rel=0.1)
    assert split_rhat(chains) == pytest.approx([1, 1], abs=2e-3)


def test_chains_elsewhere_have_a_large_rhat() -> None:
    """Half of the chains have mean 1, half -1: the variance of eight half chains' means is 8/7, that within is 1."""
    draws = np.random.default_rng(2).normal(size=(CHAINS, DRAWS, 1))
    draws[:2] += 1
    draws[2:] -= 1
    assert split_rhat(draws) == pytest.approx([math.sqrt(1 + 8 / 7)], rel=0.02)
    assert effective_draws(draws)[0] < 10


def test_a_chain_that_drifts_has_a_large_rhat() -> None:
    """Its halves have other means, though whole chains agree: means are 1/2 and -1/2, of eight halves."""
    draws = np.random.default_rng(3).normal(size=(CHAINS, DRAWS, 1))
    draws[:, : DRAWS // 2] += 0.5
    draws[:, DRAWS // 2 :] -= 0.5
    assert split_rhat(draws) == pytest.approx([math.sqrt(1 + 8 / 7 / 4)], rel=0.02)


def test_figures_do_not_depend_on_their_block() -> None:
    draws = np.random.default_rng(4).normal(size=(2, 50, BLOCK + 3))
    alone = effective_draws(draws[:, :, -1:])
    assert effective_draws(draws)[-1:] == pytest.approx(alone, rel=1e-9)
