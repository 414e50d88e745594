"""Return fixations, against a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agents.answer_numbers import return_fixations


@pytest.mark.parametrize(
    ("path", "returns", "of"),
    [
        ([(0, 0), (500, 0), (900, 0), (500, 43)], 1, 2),  # the fourth, to the second
        ([(0, 0), (500, 0), (900, 0), (500, 44)], 0, 2),  # a pixel too far
        ([(0, 0), (500, 0), (0, 0)], 0, 1),  # the first is forced
        ([(0, 0), (500, 0), (500, 1)], 0, 1),  # the fixation just before
        ([(0, 0)], 0, 0),
    ],
)
def test_return_fixations_by_hand(path: list[tuple[float, float]], returns: int, of: int) -> None:
    assert return_fixations(np.array(path, float), 43) == (returns, of)


def test_return_fixations_of_random_paths() -> None:
    for seed in range(20):
        path = np.random.default_rng(seed).uniform(0, 300, (20, 2))
        plain = sum(any(math.dist(path[i], path[j]) <= 43 for j in range(1, i - 1)) for i in range(2, 20))
        assert return_fixations(path, 43) == (plain, 18)
