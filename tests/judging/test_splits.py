"""Folds: no group on two sides, every item in one, classes as even as groups allow."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.splits import grouped_folds


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1), st.integers(2, 10), st.integers(0, 2**53 - 1)
)
def test_a_group_is_never_on_both_sides(items: list[tuple[int, bool]], folds: int, seed: int) -> None:
    groups, classes = [group for group, _ in items], [cls for _, cls in items]
    if len(set(groups)) < folds:
        with pytest.raises(ValueError, match="folds of"):
            grouped_folds(groups, classes, folds, seed)
        return
    found = grouped_folds(groups, classes, folds, seed)
    assert len(found) == len(items)
    for group in set(groups):
        assert len({fold for fold, one in zip(found.tolist(), groups, strict=True) if one == group}) == 1
    assert set(found.tolist()) == set(range(folds))
    assert (found == grouped_folds(groups, classes, folds, seed)).all()


def test_groups_that_are_alike_give_equal_folds_of_both_classes() -> None:
    groups = [stimulus for stimulus in range(150) for _ in range(10)]
    classes = [answer < 5 for _ in range(150) for answer in range(10)]
    found = grouped_folds(groups, classes, 10, 0)
    assert set(Counter(zip(found.tolist(), classes, strict=True)).values()) == {75}


def test_another_seed_deals_otherwise() -> None:
    groups = list(range(100))
    assert (grouped_folds(groups, [True] * 100, 10, 1) != grouped_folds(groups, [True] * 100, 10, 2)).any()
