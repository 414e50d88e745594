"""Scanpaths on maps against a plain loop over whole maps, and the properties that no scanpath may lack."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agents.attention.models.fixations import Plan
from agents.attention.models.inhibition import InhibitedPaths, scanpaths
from agents.errors import AnswerError

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def naive(saliency, plan, inhibition):
    """One fixation after another on a float map, a cell at a time where that is plainest."""
    (width, height), (rows, columns) = plan.frame, saliency.shape
    saliency = saliency.astype(np.float64)
    extent = saliency.max() - saliency.min()
    base = np.rint((saliency - saliency.min()) / extent * 2**20) / 2**20 if extent > 0 else np.zeros_like(saliency)
    places = [
        [(int((c + 0.5) * width / columns), int((r + 0.5) * height / rows)) for c in range(columns)]
        for r in range(rows)
    ]
    target = set()
    if isinstance(plan.target, tuple):
        x, y, w, h = plan.target
        xs = range(max(0, math.floor(x)), min(width, math.ceil(x + w)))
        ys = range(max(0, math.floor(y)), min(height, math.ceil(y + h)))
        target = set(itertools.product(xs, ys))
    elif plan.target is not None:
        target = {(x, y) for y, x in np.argwhere(plan.target).tolist()}
    score = base.copy()
    path = [(width // 2, height // 2)]
    while True:
        x, y = path[-1]
        side = range(-(plan.window // 2), plan.window // 2 + 1)
        if any((x + dx, y + dy) in target for dx in side for dy in side):
            return path, "target"
        if len(path) == plan.maximum:
            return path, "maximum"
        for r, c in itertools.product(range(rows), range(columns)):
            px, py = places[r][c]
            if inhibition == "square":
                if px - x in side and py - y in side:
                    score[r, c] = -np.inf
            else:
                spread = plan.window / (2 * math.sqrt(2 * math.log(2)))
                strength = math.exp(-((px - x) ** 2 + (py - y) ** 2) / (2 * spread**2))
                score[r, c] = min(score[r, c], base[r, c] - np.rint(strength * 2**20) / 2**20)
                if (px, py) == (x, y):
                    score[r, c] = -np.inf
        best = int(score.argmax())
        if score.flat[best] == -np.inf:
            return path, "exhausted"
        path.append(places[best // columns][best % columns])


def same_window(first, second, window):
    """Whether each of two fixations lies in the window around the other."""
    return all(abs(b - a) <= window / 2 for a, b in zip(first, second, strict=True))


sides = st.integers(1, 14)
values = st.one_of(
    st.floats(-1e6, 1e6, width=32),
    st.sampled_from([0.0, 1.0, 0.5]),
)


@st.composite
def tasks(draw, shape):
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
def batches(draw):
    shape = draw(sides), draw(sides)
    count = draw(st.integers(1, 4))
    maps = draw(hnp.arrays(np.float64, (count, *shape), elements=values))
    return maps, [draw(tasks(shape)) for _ in range(count)]


@settings(max_examples=150, deadline=None)
@given(batches(), st.sampled_from(["square", "gaussian"]))
def test_every_path_is_the_plain_loops_and_has_what_paths_must(batch, inhibition):
    maps, plans = batch
    for device in DEVICES[1:]:
        assert scanpaths(torch.from_numpy(maps).to(device), plans, inhibition) == scanpaths(
            torch.from_numpy(maps), plans, inhibition
        )
    paths = scanpaths(torch.from_numpy(maps), plans, inhibition)
    for saliency, plan, path in zip(maps, plans, paths, strict=True):
        assert (path.fixations, path.stop) == naive(saliency, plan, inhibition)
        width, height = plan.frame
        assert path.fixations[0] == (width // 2, height // 2)
        assert all(0 <= x < width and 0 <= y < height for x, y in path.fixations)
        assert 1 <= len(path.fixations) <= plan.maximum
        assert len(set(path.fixations)) == len(path.fixations)
        if inhibition == "square":
            pairs = itertools.combinations(path.fixations, 2)
            assert not any(same_window(before, after, plan.window) for before, after in pairs)
        assert path.found is (None if not plan.searching else path.stop == "target")
        assert path.found_at == (len(path.fixations) - 1 if path.found else None)
        assert [scanpaths(torch.from_numpy(saliency)[None], [plan], inhibition)[0]] == [path]
        answer = path.answer()
        assert answer.fixations == [list(point) for point in path.fixations]
        assert (answer.window, answer.stop, answer.forced_first) == (plan.window, path.stop, True)


def path_of(saliency, window=1, maximum=15, frame=None, **options):
    saliency = torch.as_tensor(saliency)
    frame = frame or (saliency.shape[1], saliency.shape[0])
    [path] = scanpaths(saliency[None], [Plan(frame, window, maximum, **options)])
    return path


@pytest.mark.parametrize("level", [0.0, 1.0, -3e300, 5e-324])
def test_a_flat_map_has_a_valid_path(level):
    path = path_of(torch.full((48, 64), level, dtype=torch.float64), window=10, maximum=15)
    assert path.stop == "maximum"
    assert path.fixations[:3] == [(32, 24), (0, 0), (6, 0)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_map_that_is_not_finite_fails_alone(bad, dtype):
    maps = torch.rand((3, 12, 16), generator=torch.Generator().manual_seed(0)).to(dtype)
    good = scanpaths(maps, [Plan((16, 12), 4, 5)] * 3)
    maps[1, 3, 4] = bad
    first, second, third = scanpaths(maps, [Plan((16, 12), 4, 5)] * 3)
    assert isinstance(second, AnswerError)
    assert second.code == "bad_map"
    assert [first, third] == [good[0], good[2]]
    maps[:] = math.nan
    assert all(isinstance(item, AnswerError) for item in scanpaths(maps, [Plan((16, 12), 4, 5)] * 3))


def test_rounding_noise_decides_nothing_and_ties_go_to_the_lowest_index():
    saliency = np.zeros((20, 30))
    saliency[15, 3], saliency[4, 25], saliency[4, 2] = 1.0, 1.0 - 1e-9, 1.0 - 2e-9
    assert path_of(saliency, window=3, maximum=4).fixations[1:] == [(2, 4), (25, 4), (3, 15)]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32])
def test_maps_of_any_real_type(dtype):
    saliency = torch.zeros((9, 9), dtype=dtype)
    saliency[2, 7], saliency[6, 1] = 7, 5
    assert path_of(saliency, maximum=3).fixations == [(4, 4), (7, 2), (1, 6)]


def test_a_coarse_map_is_chosen_from_at_its_cells_centres():
    saliency = np.zeros((2, 4))
    saliency[0, 3], saliency[1, 0] = 2, 1
    path = path_of(saliency, window=30, maximum=3, frame=(80, 40))
    assert path.fixations == [(40, 20), (70, 10), (10, 30)]


def test_the_target_is_tested_before_its_window_is_inhibited_and_the_centre_counts():
    flat = np.zeros((40, 40))
    # The window of 10 around (20, 20) covers the pixels 15 to 25.
    for box, found in (
        ((25.5, 20, 3, 3), True),
        ((26, 20, 3, 3), False),
        ((10, 10, 5, 5), False),
        ((10, 10, 5.1, 5.1), True),
    ):
        path = path_of(flat, window=10, maximum=1, target=box, searching=True)
        assert (path.found, path.stop) == (found, "target" if found else "maximum")
        assert path.found_at == (0 if found else None)


def test_found_at_is_over_the_whole_path():
    saliency = np.tile(np.arange(100.0)[::-1], (1, 1))
    path = path_of(saliency, window=2, maximum=80, target=(92.0, 0.0, 2.0, 1.0), searching=True)
    assert path.fixations[path.found_at] == path.fixations[-1] == (92, 0)
    assert path.found_at == len(path.fixations) - 1 > 15


# --- maps that change ---


CPU = torch.device("cpu")


def show(paths, going, maps):
    """One step of paths whose maps change."""
    for index, saliency in zip(going, maps, strict=True):
        paths.show(index, saliency)
    paths.choose(going)


def walk(maps, plans, inhibition):
    paths = InhibitedPaths(plans, maps.shape[1:], inhibition, CPU)
    while going := paths.going():
        show(paths, going, maps[going])
    return paths.results()


@settings(max_examples=60, deadline=None)
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
        plans.append(Plan(frame, int(rng.integers(1, 30)), int(rng.integers(1, 30)), target, target is not None))
    assert walk(maps, plans, inhibition) == scanpaths(maps, plans, inhibition)


def test_each_new_map_counts_under_what_was_taken_before():
    """Three maps in turn on a frame of 9 x 1, window 3, by hand: the centre, 4, takes 3 to 5."""
    turns = [
        [9, 1, 1, 8, 8, 8, 1, 1, 2],  # 0 is highest of the free ones; it takes 0 and 1
        [9, 9, 3, 1, 1, 1, 4, 1, 1],  # 6: it takes 5 to 7
        [9, 9, 2, 9, 9, 9, 9, 9, 1],  # 2 is highest of 2 and 8; it takes 1 to 3
        [9, 9, 9, 9, 9, 9, 9, 9, 0],  # only 8 is left
        [1] * 9,
    ]
    paths = InhibitedPaths([Plan((9, 1), 3, 15)], (1, 9), "square", CPU)
    for turn in turns:
        show(paths, paths.going(), torch.tensor([[turn]]))
    [found] = paths.results()
    assert [x for x, _ in found.fixations] == [4, 0, 6, 2, 8]
    assert not paths.going()
    assert found.stop == "exhausted"


def test_without_inhibition_a_place_may_come_again():
    paths = InhibitedPaths([Plan((4, 4), 2, 5)], (4, 4), None, CPU)
    still = torch.zeros(1, 4, 4)
    still[0, 3, 1] = 1
    while going := paths.going():
        show(paths, going, still)
    assert paths.results()[0].fixations == [(2, 2), *[(1, 3)] * 4]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_map_that_is_not_finite_ends_its_own_path_alone(bad):
    plans = [Plan((8, 8), 1, 4)] * 2
    paths = InhibitedPaths(plans, (8, 8), "square", CPU)
    maps = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(0))
    show(paths, paths.going(), maps)
    spoilt = maps.clone()
    spoilt[0, 1, 1] = bad
    show(paths, paths.going(), spoilt)
    assert paths.going() == [1]
    show(paths, [1], maps[1:])
    first, second = paths.results() if not paths.going() else (None, None)
    assert isinstance(first, AnswerError)
    assert first.code == "bad_map"
    assert second == scanpaths(maps[1:], plans[1:])[0]
