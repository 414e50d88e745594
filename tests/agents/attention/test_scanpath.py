"""Scanpaths against a plain loop over whole maps, and the properties that no scanpath may lack."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image as PILImage
from pydantic import ValidationError

from agents.attention import scanpath
from agents.attention.scanpath import Plan, ScanSettings
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus

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


@settings(max_examples=250, deadline=None)
@given(batches(), st.sampled_from(["square", "gaussian"]))
def test_every_path_is_the_plain_loops(batch, inhibition):
    maps, plans = batch
    for device in DEVICES:
        paths = scanpath.scanpaths(torch.from_numpy(maps).to(device), plans, inhibition)
        for saliency, plan, path in zip(maps, plans, paths, strict=True):
            assert (path.fixations, path.stop) == naive(saliency, plan, inhibition)


@settings(max_examples=250, deadline=None)
@given(batches(), st.sampled_from(["square", "gaussian"]))
def test_what_every_path_has(batch, inhibition):
    maps, plans = batch
    paths = scanpath.scanpaths(torch.from_numpy(maps), plans, inhibition)
    for saliency, plan, path in zip(maps, plans, paths, strict=True):
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
        assert [scanpath.scanpaths(torch.from_numpy(saliency)[None], [plan], inhibition)[0]] == [path]
        answer = path.answer()
        assert answer.fixations == [list(point) for point in path.fixations]
        assert (answer.window, answer.stop, answer.forced_first) == (plan.window, path.stop, True)


@pytest.mark.parametrize("inhibition", ["square", "gaussian"])
def test_at_full_size_as_the_plain_loop(inhibition):
    rng = np.random.default_rng(0)
    small = rng.random((6, 8))
    saliency = np.asarray(PILImage.fromarray(small.astype(np.float32)).resize((160, 120), PILImage.Resampling.BICUBIC))
    plans = [
        Plan((160, 120), 25, 12),
        Plan((160, 120), 25, 40, (3.0, 100.0, 12.0, 40.0), True),
        Plan((160, 120), 9, 30),
    ]
    paths = scanpath.scanpaths(torch.from_numpy(np.stack([saliency] * 3)), plans, inhibition)
    for plan, path in zip(plans, paths, strict=True):
        assert (path.fixations, path.stop) == naive(saliency, plan, inhibition)


def path_of(saliency, window=1, maximum=15, frame=None, **options):
    saliency = torch.as_tensor(saliency)
    frame = frame or (saliency.shape[1], saliency.shape[0])
    [path] = scanpath.scanpaths(saliency[None], [Plan(frame, window, maximum, **options)])
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
    good = scanpath.scanpaths(maps, [Plan((16, 12), 4, 5)] * 3)
    maps[1, 3, 4] = bad
    first, second, third = scanpath.scanpaths(maps, [Plan((16, 12), 4, 5)] * 3)
    assert isinstance(second, AnswerError)
    assert second.code == "bad_map"
    assert [first, third] == [good[0], good[2]]
    maps[:] = math.nan
    assert all(isinstance(item, AnswerError) for item in scanpath.scanpaths(maps, [Plan((16, 12), 4, 5)] * 3))


def test_a_range_beyond_floats_is_not_finite_either():
    [path] = scanpath.scanpaths(torch.tensor([[[-1.7e308, 1.7e308]]], dtype=torch.float64), [Plan((2, 1), 1, 5)])
    assert isinstance(path, AnswerError)


def test_no_maps_no_paths_and_wrong_shapes_are_refused():
    assert scanpath.scanpaths(torch.empty((0, 4, 4)), []) == []
    for maps, plans in ((torch.rand(4, 4), []), (torch.rand(1, 4, 4), []), (torch.rand(1, 0, 4), [Plan((4, 4), 1, 1)])):
        with pytest.raises(ValueError, match="maps must be"):
            scanpath.scanpaths(maps, plans)


def test_one_pixel_is_one_fixation():
    path = path_of(np.array([[0.7]]), window=1)
    assert (path.fixations, path.stop) == ([(0, 0)], "exhausted")


def test_a_window_larger_than_the_frame_leaves_the_centre():
    path = path_of(np.random.default_rng(0).random((10, 10)), window=1_000_000)
    assert (path.fixations, path.stop) == ([(5, 5)], "exhausted")


def test_rounding_noise_decides_nothing_and_ties_go_to_the_lowest_index():
    saliency = np.zeros((20, 30))
    saliency[15, 3], saliency[4, 25], saliency[4, 2] = 1.0, 1.0 - 1e-9, 1.0 - 2e-9
    assert path_of(saliency, window=3, maximum=4).fixations[1:] == [(2, 4), (25, 4), (3, 15)]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32])
def test_maps_of_any_real_type(dtype):
    saliency = torch.zeros((9, 9), dtype=dtype)
    saliency[2, 7], saliency[6, 1] = 7, 5
    assert path_of(saliency, maximum=3).fixations == [(4, 4), (7, 2), (1, 6)]


def test_a_map_is_left_as_it_was():
    maps = torch.rand((2, 8, 8), dtype=torch.float64)
    before = maps.clone()
    scanpath.scanpaths(maps, [Plan((8, 8), 3, 9)] * 2)
    scanpath.scanpaths(maps, [Plan((8, 8), 3, 9)] * 2, "gaussian")
    assert torch.equal(maps, before)


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


# --- what a stimulus asks for ---


def stimulus(**fields):
    return AttentionStimulus.model_validate({"id": "a", "task": "attention_prediction", "image": "a.png", **fields})


@pytest.mark.parametrize(
    ("fields", "frame", "chosen", "window", "maximum"),
    [
        ({}, (1280, 1024), {}, 200, 15),
        ({}, (640, 480), {}, 100, 15),
        ({}, (512, 384), {}, 80, 15),
        ({}, (1, 1), {}, 1, 15),
        ({}, (100, 3000), {}, 16, 15),
        ({"dataset": "FindingWaldo"}, (1280, 1024), {}, 100, 15),
        ({"source": "waldo"}, (640, 512), {}, 50, 15),
        ({"dataset": "natural", "source": "waldo"}, (1280, 1024), {}, 200, 15),
        ({"window": 33}, (640, 480), {"window_pixels": 44}, 33, 15),
        ({}, (640, 480), {"window_pixels": 44}, 44, 15),
        ({}, (640, 480), {"window": 300.0, "max_free": 7}, 150, 7),
        ({"max_fixations": 3}, (640, 480), {}, 100, 3),
        ({"mode": "search", "target_box": (1, 1, 5, 5)}, (640, 480), {}, 100, 65),
        ({"mode": "search", "target_box": (1, 1, 5, 5), "dataset": "waldo"}, (640, 480), {}, 50, 80),
        ({"mode": "search", "target_box": (1, 1, 5, 5), "max_fixations": 9}, (640, 480), {"max_search": 4}, 100, 9),
    ],
)
def test_windows_and_maxima(fields, frame, chosen, window, maximum):
    plan = scanpath.plan(stimulus(**fields), frame, ScanSettings(**chosen))
    assert (plan.window, plan.maximum, plan.frame) == (window, maximum, frame)


def mask_file(folder, pixels):
    PILImage.fromarray(pixels).save(folder / "mask.png")
    return str(folder / "mask.png")


def test_a_mask_is_finer_than_a_box(tmp_path):
    pixels = np.zeros((20, 30), np.uint8)
    pixels[18:, 2] = 255
    plan = scanpath.plan(
        stimulus(mode="search", target_mask=mask_file(tmp_path, pixels), target_box=(0, 0, 30, 20)),
        (30, 20),
        ScanSettings(),
    )
    assert np.array_equal(plan.target, pixels > 0)
    assert plan.searching


def test_a_target_without_a_pixel_in_the_frame_is_an_error(tmp_path):
    empty = mask_file(tmp_path, np.zeros((20, 30), np.uint8))
    for fields, frame in (
        ({"target_box": (30, 0, 5, 5)}, (30, 20)),
        ({"target_box": (-5, 0, 5, 5)}, (30, 20)),
        ({"target_box": (0, 20.5, 5, 5)}, (30, 20)),
        ({"target_mask": empty}, (30, 20)),
        ({"target_mask": empty}, (31, 20)),
    ):
        with pytest.raises(AnswerError, match="target") as caught:
            scanpath.plan(stimulus(mode="search", **fields), frame, ScanSettings())
        assert caught.value.code == "bad_target"


def test_a_target_partly_in_the_frame_is_found_there():
    plan = scanpath.plan(stimulus(mode="search", target_box=(-8, -8, 9, 9), window=3), (30, 20), ScanSettings())
    assert plan.finds(1, 1)
    assert not plan.finds(2, 1)


def test_what_is_found_where_there_is_nothing_to_test():
    unknown = scanpath.plan(stimulus(mode="search", target_image="t.png"), (30, 20), ScanSettings())
    absent = scanpath.plan(
        stimulus(mode="search", target_image="t.png", target_present=False), (30, 20), ScanSettings()
    )
    [first, second] = scanpath.scanpaths(torch.rand((2, 20, 30)), [unknown, absent])
    assert (first.found, second.found) == (None, False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"window": math.nan},
        {"inhibition": "round"},
        {"max_free": 0},
        {"windows": 3},
        {"window_pixels": 1.5},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        ScanSettings(**wrong)


# --- the share of saccades on an edge ---


def test_edges_are_one_pixel_wide():
    # The window of 10 around (50, 50) covers 45 to 55 both ways.
    assert scanpath.edge_share([(50, 50)], 10) is None
    for place, on_edge in (
        ((56, 50), 1),
        ((44, 50), 1),
        ((44, 55), 1),
        ((57, 50), 0),
        ((43, 50), 0),
        ((52, 50), 0),
        ((50, 44), 1),
    ):
        assert scanpath.edge_share([(50, 50), place], 10) == on_edge
    assert scanpath.edge_share([(50, 50), (90, 90), (56, 50)], 10) == 0.5
    assert scanpath.edge_share([(50, 50), (59, 50)], 10, within=4) == 1


def test_hard_windows_make_edges_on_smooth_maps_and_gaussian_ones_do_not():
    y, x = np.mgrid[:96, :128] / 10.0
    smooth = torch.from_numpy(np.sin(x) + np.cos(0.7 * y) + 0.3 * np.sin(2.3 * x + y))[None]
    shares = {
        kind: scanpath.edge_share(scanpath.scanpaths(smooth, [Plan((128, 96), 20, 15)], kind)[0].fixations, 20)
        for kind in ("square", "gaussian")
    }
    assert shares["square"] > 0.3 > shares["gaussian"]
