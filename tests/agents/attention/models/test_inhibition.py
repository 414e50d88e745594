"""Scanpaths on maps against a plain loop over whole maps, and the properties that no scanpath may lack."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agents.attention.models.fixations import Plan
from agents.attention.models.inhibition import InhibitedPaths, scanpaths
from agents.errors import AnswerError
from tests.agents.attention.gaze_cases import DEVICES
from tests.agents.attention.path_reference import naive

sides = st.integers(1, 14)
values = st.one_of(
    st.floats(-1e6, 1e6, width=32),
    st.sampled_from([0.0, 1.0, 0.5]),
)


@st.composite
def tasks(draw: st.DrawFn, shape: tuple[int, int]) -> Plan:
    """A plan for a map of a shape: mostly a frame of the same size, sometimes another."""
    height, width = shape if draw(st.booleans()) else (draw(st.integers(1, 40)), draw(st.integers(1, 40)))
    target = draw(
        st.one_of(
            st.none(),
            st.tuples(
                st.floats(-5, width - 0.01), st.floats(-5, height - 0.01), st.floats(0.01, 8), st.floats(0.01, 8)
            ),
            hnp.arrays(np.bool_, (height, width)),
        )
    )
    window = draw(st.integers(1, 20))
    return Plan((width, height), window, draw(st.integers(1, 25)), target, target is not None)


@st.composite
def batches(draw: st.DrawFn) -> Any:
    shape = draw(sides), draw(sides)
    count = draw(st.integers(1, 4))
    maps = draw(hnp.arrays(np.float64, (count, *shape), elements=values))
    return maps, [draw(tasks(shape)) for _ in range(count)]


@settings(max_examples=150)
@given(batches())
def test_every_path_is_the_plain_loops_in_any_batch(batch: Any) -> None:
    maps, plans = batch
    paths = scanpaths(torch.from_numpy(maps), plans)
    for device in DEVICES[1:]:
        assert scanpaths(torch.from_numpy(maps).to(device), plans) == paths
    for saliency, plan, path in zip(maps, plans, paths, strict=True):
        fixations, stop = naive(saliency, plan)
        assert (path.fixations, path.stop) == ([list(point) for point in fixations], stop)
        assert (path.frame, path.window, path.forced_first) == (list(plan.frame), plan.window, True)
        assert path.found is (None if not plan.searching else path.stop == "target")
        assert path.found_at == (len(path.fixations) - 1 if path.found else None)
        assert scanpaths(torch.from_numpy(saliency)[None], [plan]) == [path]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_a_map_that_is_not_finite_fails_alone(bad: Any, dtype: Any) -> None:
    maps = torch.rand((3, 12, 16), generator=torch.Generator().manual_seed(0)).to(dtype)
    good = scanpaths(maps, [Plan((16, 12), 4, 5)] * 3)
    maps[1, 3, 4] = bad
    first, second, third = scanpaths(maps, [Plan((16, 12), 4, 5)] * 3)
    assert isinstance(second, AnswerError)
    assert second.code == "bad_map"
    assert [first, third] == [good[0], good[2]]


def test_rounding_noise_decides_nothing_and_ties_go_to_the_lowest_index() -> None:
    saliency = np.zeros((20, 30))
    saliency[15, 3] = 1.0
    saliency[4, 25] = 1.0 - 1e-9
    saliency[4, 2] = 1.0 - 2e-9
    [path] = scanpaths(torch.from_numpy(saliency)[None], [Plan((30, 20), 3, 4)])
    assert path.fixations[1:] == [[2, 4], [25, 4], [3, 15]]


# --- maps that change ---


def walk(maps: Any, plan: Plan, **options: Any) -> Any:
    """The path over maps in turn."""
    paths = InhibitedPaths([plan], maps.shape[1:], torch.device("cpu"), changing=True, **options)
    for saliency in maps:
        if paths.going():
            paths.show(saliency[None])
            paths.choose()
    return paths.results()[0]


def test_each_new_map_counts_under_what_was_taken_before() -> None:
    """Maps in turn on a frame of 9 x 1, window 3, by hand: the centre, 4, takes 3 to 5."""
    turns = [
        [9, 1, 1, 8, 8, 8, 1, 1, 2],  # 0 is highest of the free ones; it takes 0 and 1
        [9, 9, 3, 1, 1, 1, 4, 1, 1],  # 6: it takes 5 to 7
        [9, 9, 2, 9, 9, 9, 9, 9, 1],  # 2 is highest of 2 and 8; it takes 1 to 3
        [9, 9, 9, 9, 9, 9, 9, 9, 0],  # only 8 is left
        [1] * 9,
    ]
    found = walk(torch.tensor(turns)[:, None], Plan((9, 1), 3, 15))
    assert [x for x, _ in found.fixations] == [4, 0, 6, 2, 8]
    assert found.stop == "exhausted"


def test_without_inhibition_a_place_may_come_again() -> None:
    still = torch.zeros(4, 4)
    still[3, 1] = 1
    assert walk(still.expand(5, -1, -1), Plan((4, 4), 2, 5), drawn=True).fixations == [[2, 2], *[[1, 3]] * 4]
