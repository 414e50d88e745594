"""Eccentric pooling against loops over its outputs, and the numbers of the published model."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.attention.models.eccentric_pooling import Eccentric, Ordinary, Pooling, Region, pool

spec = importlib.util.spec_from_file_location("eccnet_reference", Path(__file__).parents[1] / "eccnet_reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
# side, slope, deg2px, fovea, quantum, smallest, stride
CASES = [
    (100, 0.32, 2, 4, 1, 2, 2),
    (101, 0.3, 3, 2, 1, 2, 2),
    (57, 0.5, 2, 2, 1, 3, 2),
    (64, 0.2, 6, 1, 0.5, 2, 2),
    (33, 1.0, 2, 1, 1, 2, 1),
    (40, 0.4, 2.5, 1.5, 2, 4, 3),
    (2, 0.5, 30, 4, 1, 2, 2),
    (1, 0.5, 2, 4, 1, 2, 2),
]


def whole(side, pooling):
    return Region(0, 0, side, side), Region(0, 0, pooling.outputs(side), pooling.outputs(side))


def random_map(side, channels=3, seed=0):
    return np.random.default_rng(seed).normal(2, 1, (channels, side, side)).astype(np.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_as_a_loop_over_the_outputs(case, device):
    side, *ways = case
    pooling = Pooling(*ways)
    features = random_map(side, 35)  # more than are worked on at a time
    images = np.stack([features, -features[::-1]])
    found = Eccentric(side, pooling)(torch.from_numpy(images).to(device), *whole(side, pooling)).cpu().numpy()
    for image, one in zip(images, found, strict=True):
        assert np.abs(one - reference.pooled(image, *ways)).max() < 1e-6
    for row, column in np.ndindex(pooling.windows(side).shape):
        assert pooling.windows(side)[row, column] == reference.window_at(row, column, *case)


@st.composite
def problems(draw):
    stride = draw(st.integers(1, 3))
    ways = (
        draw(st.floats(0, 2)),
        draw(st.floats(1.1, 6)),
        draw(st.floats(0.1, 4)),
        draw(st.floats(1, 2)),
        draw(st.integers(stride, 5)),
        stride,
    )
    side = draw(st.integers(1, 24))
    outputs = -(-side // stride)
    top, left = draw(st.integers(0, outputs - 1)), draw(st.integers(0, outputs - 1))
    region = Region(top, left, draw(st.integers(top + 1, outputs)), draw(st.integers(left + 1, outputs)))
    return side, ways, region, draw(st.integers(0, 3))


@settings(max_examples=200, deadline=None)
@given(problems())
def test_a_piece_is_that_piece_of_the_whole(problem):
    side, ways, outputs, more = problem
    pooling = Pooling(*ways)
    windows = pool(side, pooling)
    features = random_map(side)
    expected = reference.pooled(features, *ways)
    held = windows.needs(outputs).grown(more, Region(0, 0, side, side))
    piece = torch.from_numpy(features)[held.inside(Region(0, 0, side, side))][None]
    found = windows(piece, held, outputs)[0].numpy()
    assert np.abs(found - expected[:, outputs.top : outputs.bottom, outputs.left : outputs.right]).max() < 1e-6
    spans = [
        [
            reference.span(index, reference.window_at(row, column, side, *ways), side, ways[-1])
            for index in (row, column)
        ]
        for row in range(outputs.top, outputs.bottom)
        for column in range(outputs.left, outputs.right)
    ]
    (tops, bottoms), (lefts, rights) = (zip(*[one[axis] for one in spans], strict=True) for axis in (0, 1))
    assert windows.needs(outputs) == (min(tops), min(lefts), max(bottoms), max(rights))


@settings(max_examples=100, deadline=None)
@given(problems(), st.data())
def test_what_inputs_reach_is_what_changes_with_them(problem, data):
    side, ways, _, _ = problem
    top, left = data.draw(st.integers(0, side - 1)), data.draw(st.integers(0, side - 1))
    inputs = Region(top, left, data.draw(st.integers(top + 1, side)), data.draw(st.integers(left + 1, side)))
    changed = np.zeros((1, side, side), np.float32)
    changed[inputs.inside(Region(0, 0, side, side))] = 1
    rows, columns = reference.pooled(changed, *ways)[0].nonzero()
    expected = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
    assert pool(side, Pooling(*ways)).reached(inputs) == expected


@pytest.mark.parametrize("side", [2, 8, 20, 48])
def test_without_growth_it_is_ordinary_pooling(side):
    pooling = Pooling(0, 2, 1)
    features = torch.from_numpy(random_map(side))[None]
    plain = torch.nn.functional.avg_pool2d(features, 2)
    assert pool(side, pooling) == Ordinary(2)
    assert torch.equal(pool(side, pooling)(features, *whole(side, pooling)), plain)
    assert (Eccentric(side, pooling)(features, *whole(side, pooling)) - plain).abs().max() < 1e-6


@pytest.mark.parametrize("side", [9, 33])
def test_of_odd_maps_the_last_windows_are_smaller(side):
    pooling = Pooling(0, 2, 1)
    features = torch.from_numpy(random_map(side))[None]
    plain = torch.nn.functional.avg_pool2d(features, 2, ceil_mode=True, count_include_pad=False)
    assert (pool(side, pooling)(features, *whole(side, pooling)) - plain).abs().max() < 1e-6


@pytest.mark.parametrize("case", CASES)
def test_padding_has_no_part_in_an_average(case):
    side, *ways = case
    found = pool(side, Pooling(*ways))(torch.full((1, 1, side, side), 0.3), *whole(side, Pooling(*ways)))
    assert torch.equal(found, torch.full_like(found, 0.3))


def test_the_published_rings_of_a_view_of_1600_pixels():
    """Worked out by hand: outer radii in output cells, windows in input cells."""
    slopes, scales = (0, 0, 0.07, 0.16, 0.32), (30, 15, 8, 4, 2)
    rings = [Pooling(slopes[block], scales[block]).rings(1600 >> block) for block in range(5)]
    assert [radius for radius, _ in rings[0]] == [*range(60, 406, 15)]
    assert [radius for radius, _ in rings[1]] == [*range(30, 207, 8)]
    assert [radius for radius, _ in rings[2]] == [*range(16, 101, 4)]
    assert [radius for radius, _ in rings[3]] == [*range(8, 51, 2)]
    assert [radius for radius, _ in rings[4]] == [*range(4, 26)]
    assert {window for block in (0, 1) for _, window in rings[block]} == {2}
    assert [w for _, w in rings[2]] == [2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 10, 10, 11, 12, 12, 13, 13, 14]
    assert [w for _, w in rings[3]] == [2, 3, 3, 4, 5, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14, 14, 15, 15]
    assert rings[4][:3] + rings[4][-2:] == [(4, 2), (5, 3), (6, 3), (24, 15), (25, 15)]
    assert [type(pool(1600 >> block, Pooling(slopes[block], scales[block]))) for block in range(4)] == [
        Ordinary,
        Ordinary,
        Eccentric,
        Eccentric,
    ]


@pytest.mark.parametrize(
    ("ways", "says"),
    [
        ({"slope": 0.1, "deg2px": 1}, "at least one cell wide"),
        ({"slope": -0.1, "deg2px": 4}, "must cover the map"),
        ({"slope": 0.1, "deg2px": 4, "smallest": 1}, "must cover the map"),
        ({"slope": 0.1, "deg2px": 4, "stride": 0}, "must cover the map"),
    ],
)
def test_what_cannot_be_is_refused(ways, says):
    with pytest.raises(ValueError, match=says):
        Pooling(**ways)
