"""Return fixations, by hand."""

import numpy as np
import pytest

from serving.runs.answer_numbers import return_fixations


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
