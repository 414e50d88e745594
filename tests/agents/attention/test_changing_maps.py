"""Paths on maps that change, compared with those on maps that do not."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.attention import scanpath
from agents.attention.changing_maps import ChangingMaps
from agents.errors import AnswerError

CPU = torch.device("cpu")


def walk(maps, plans, inhibition):
    paths = ChangingMaps(plans, maps.shape[1:], inhibition, CPU)
    while going := paths.going():
        paths.choose(going, maps[going])
    return paths.results()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 3),
    rows=st.integers(1, 24),
    columns=st.integers(1, 24),
    inhibition=st.sampled_from(["square", "gaussian"]),
    levels=st.sampled_from([1, 3, 1000]),
)
def test_a_map_that_stays_gives_the_path_of_still_maps(seed, count, rows, columns, inhibition, levels):
    rng = np.random.default_rng(seed)
    maps = torch.from_numpy(rng.integers(0, levels, (count, rows, columns)).astype(np.float64))
    plans = []
    for _ in range(count):
        frame = int(rng.integers(1, 90)), int(rng.integers(1, 90))
        box = (float(rng.integers(0, frame[0])), float(rng.integers(0, frame[1])), 3.0, 2.0)
        target = box if rng.random() < 0.5 else None
        plans.append(
            scanpath.Plan(frame, int(rng.integers(1, 30)), int(rng.integers(1, 30)), target, target is not None)
        )
    assert walk(maps, plans, inhibition) == scanpath.scanpaths(maps, plans, inhibition)


def test_each_new_map_counts_under_what_was_taken_before():
    """Three maps in turn on a frame of 9 x 1, window 3, by hand: the centre, 4, takes 3 to 5."""
    turns = [
        [9, 1, 1, 8, 8, 8, 1, 1, 2],  # 0 is highest of the free ones; it takes 0 and 1
        [9, 9, 3, 1, 1, 1, 4, 1, 1],  # 6: it takes 5 to 7
        [9, 9, 2, 9, 9, 9, 9, 9, 1],  # 2 is highest of 2 and 8; it takes 1 to 3
        [9, 9, 9, 9, 9, 9, 9, 9, 0],  # only 8 is left
        [1] * 9,
    ]
    paths = ChangingMaps([scanpath.Plan((9, 1), 3, 15)], (1, 9), "square", CPU)
    for turn in turns:
        paths.choose(paths.going(), torch.tensor([[turn]]))
    [found] = paths.results()
    assert [x for x, _ in found.fixations] == [4, 0, 6, 2, 8]
    assert not paths.going()
    assert found.stop == "exhausted"


def test_without_inhibition_a_place_may_come_again():
    paths = ChangingMaps([scanpath.Plan((4, 4), 2, 5)], (4, 4), None, CPU)
    still = torch.zeros(1, 4, 4)
    still[0, 3, 1] = 1
    while going := paths.going():
        paths.choose(going, still)
    assert paths.results()[0].fixations == [(2, 2), *[(1, 3)] * 4]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_map_that_is_not_finite_ends_its_own_path_alone(bad):
    plans = [scanpath.Plan((8, 8), 1, 4)] * 2
    paths = ChangingMaps(plans, (8, 8), "square", CPU)
    maps = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(0))
    paths.choose(paths.going(), maps)
    spoilt = maps.clone()
    spoilt[0, 1, 1] = bad
    paths.choose(paths.going(), spoilt)
    assert paths.going() == [1]
    paths.choose([1], maps[1:])
    first, second = paths.results() if not paths.going() else (None, None)
    assert isinstance(first, AnswerError)
    assert first.code == "bad_map"
    assert second == scanpath.scanpaths(maps[1:], plans[1:])[0]
