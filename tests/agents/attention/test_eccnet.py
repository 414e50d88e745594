"""The agent ``eccnet`` against a slow version that makes whole views of one image, and what its paths must have."""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image as PILImage

from agents.attention.eccnet import EccNetAgent
from agents.attention.models import eccnet
from agents.attention.models.eccentric_pooling import EccentricPooling
from agents.attention.models.eccnet import Gaze, similarity
from agents.attention.models.fixations import Plan
from agents.contract import Draw
from tests.agents.attention import eccnet_reference as reference
from tests.agents.attention.gaze_cases import DEVICES, answers, files, loaded, search

NEAR = 3e-6  # of a map's range: fp32 beside float64; most seen was 9e-7
# A view of 160 pixels, with scales at which windows grow within it.
SMALL: dict[str, Any] = {"long_side": 96, "radius": 64, "margin": 16, "deg2px": (8, 4, 3, 2, 2), "fovea": 2}
CASES: dict[str | None, dict[str, Any]] = {
    "as published, caffe, box": {"preprocessing": "caffe", "resampling": "box"},
    "windows grow in every pool": {"slopes": (0.05, 0.1, 0.07, 0.16, 0.32)},
    "windows of three cells, a target of 64 pixels": {"rf_min": 3, "target_side": 64},
    "an image larger than what is seen": {"long_side": 192, "radius": 40, "margin": 8},
}


@pytest.fixture(scope="module")
def make(vgg_weights: Path) -> Callable[..., Any]:
    """Loaded agents, made once for the same settings."""
    return functools.cache(
        lambda case=None, device="cpu": loaded(
            EccNetAgent, "eccnet", device, checkpoint=str(vgg_weights), **{**SMALL, **CASES.get(case, {})}
        )
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A search image of 100 x 80 pixels and a target."""
    return files(tmp_path_factory.mktemp("pictures"), [(80, 100), (50, 40)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_maps_and_fixations_are_those_of_the_slow_version(
    case: str,
    make: Callable[..., Any],
    vgg_weights: Path,
    pictures: list[Path],
    device: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(eccnet, "STRIP", 48)
    agent = make(case, device)
    slow = reference.EccNet(vgg_weights, agent.settings)
    image, target, task = agent.prepare(search(*pictures, window=11, max_fixations=2))
    shown, wanted = (planes[0].permute(1, 2, 0).numpy() for planes in (image, target))
    slow_kernels = slow.kernels(wanted)
    kernels = agent.net.kernels(target.to(device))
    height, width = shown.shape[:2]
    framed = agent.net.framed(image.to(device))
    for x, y in ((0, 0), (width - 1, height // 2 + 3)):
        place = torch.tensor([x, y], device=device)
        found = similarity(agent.net.features(framed, *place), kernels).cpu().numpy()
        expected = slow.map(shown, slow_kernels, x, y)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < NEAR * (expected.max() - expected.min())
    [reply] = agent.respond([(image, target, task)], [Draw(seed=1)])
    path, stop = slow.path(shown, wanted, (100, 80), 11, 2)
    assert reply.answer.fixations == [list(point) for point in path]
    assert (len(path), reply.answer.stop) == (2, stop)


@st.composite
def walks(draw: st.DrawFn) -> Any:
    rows = draw(st.integers(1, 40))
    columns = draw(st.integers(1, 40))
    frame = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    cells = draw(st.integers(3, 6))
    radius = draw(st.integers(1, 8 * cells))
    maps = draw(hnp.arrays(np.float64, (4, cells, cells), elements=st.integers(0, 5).map(float)))
    box = draw(
        st.none() | st.tuples(st.integers(0, frame[0] - 1), st.integers(0, frame[1] - 1), *[st.integers(1, 5)] * 2)
    )
    return (rows, columns), frame, radius, maps, draw(st.integers(1, 30)), draw(st.integers(1, 12)), box


@settings(max_examples=150)
@given(walks())
def test_every_path_is_the_plain_loops(walk: Any) -> None:
    """On maps that are given, a few in turn, with many ties."""
    shape, frame, radius, maps, window, maximum, box = walk
    plan = Plan(frame, window, maximum, box, box is not None)
    turns = itertools.cycle(maps)
    expected, stop = reference.walk(lambda x, y: next(turns), shape, frame, window, maximum, radius, box)
    gaze = Gaze(plan, shape, radius, torch.device("cpu"))
    turns = itertools.cycle(maps)
    while gaze.going():
        gaze.show(torch.from_numpy(next(turns))[None])
        gaze.choose()
    [path] = gaze.results()
    assert (path.fixations, path.stop) == ([list(point) for point in expected], stop)
    assert path.found == (None if box is None else stop == "target")


def authors_walk(look: Callable[..., Any], sought: Any, window: int, maximum: int, radius: float) -> list[Any]:
    """As the authors' program slices its arrays: around (row, column) row - 32 … row + 31 for a window of 64."""
    rows, columns = sought.shape
    free = np.ones(sought.shape)
    half = window // 2
    row = rows // 2
    column = columns // 2
    path = [(row, column)]
    while len(path) < maximum:
        around = np.s_[max(row - half, 0) : row + half, max(column - half, 0) : column + half]
        if sought[around].any():
            break
        free[around] = 0
        view = np.kron(look(column, row), np.ones((16, 16)))
        middle = len(view) // 2
        seen = np.zeros_like(free)
        top = max(row - radius, 0)
        bottom = min(row + radius, rows)
        left = max(column - radius, 0)
        right = min(column + radius, columns)
        seen[top:bottom, left:right] = (view + 1)[
            top - row + middle : bottom - row + middle, left - column + middle : right - column + middle
        ]
        row, column = np.unravel_index((seen * free).argmax(), free.shape)
        path.append((row, column))
    return path


@pytest.mark.parametrize("masked", [False, True])
def test_the_authors_window_is_theirs_at_their_size(masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 896 x 736 a window of 64 is x - 32 … x + 31; the target is tested by it, too."""
    # found late
    rng = np.random.default_rng(5)
    box = (320.0, 128.0, 40.0, 64.0)
    maps = [rng.random((100, 100)) for _ in range(66)]
    sought = np.zeros((736, 896), bool)
    sought[92:138, 224:252] = True  # the box at this size
    turns = iter(maps)
    expected = authors_walk(lambda x, y: next(turns), sought, 64, 66, 736)
    turns = iter(maps)
    monkeypatch.setattr(eccnet, "similarity", lambda features, kernels: torch.from_numpy(next(turns)))
    mask = np.zeros((1024, 1280), bool)
    mask[128:192, 320:360] = True
    plan = Plan((1280, 1024), 200, 66, mask if masked else box, True)
    net: Any = SimpleNamespace(
        kernels=lambda target: None, framed=lambda image: None, features=lambda image, x, y: None
    )
    image = torch.zeros((1, 3, 736, 896), dtype=torch.uint8)
    [path] = eccnet.search(net, image, image, plan, 736, window=64).results()
    assert [[(2 * x + 1) * 896 // 2560, (2 * y + 1) * 736 // 2048] for x, y in path.fixations] == [
        [x, y] for y, x in expected
    ]
    assert (path.found, len(path.fixations) > 20) == (len(expected) < 66, True)
    assert (path.frame, path.window, path.fixations[0]) == ([1280, 1024], 91, [640, 512])


def test_the_agent_takes_the_window_of_the_resized_image(
    make: Callable[..., Any], vgg_weights: Path, pictures: list[Path]
) -> None:
    agent = loaded(EccNetAgent, "eccnet", checkpoint=str(vgg_weights), **SMALL, window_resized=30)
    plain = make()
    own, usual = (answers(one, [search(*pictures, window=2, max_fixations=3)])[0] for one in (agent, plain))
    assert (own["window"], usual["window"]) == (31, 2)
    assert max(abs(a - b) for a, b in zip(own["fixations"][1], own["fixations"][0], strict=True)) >= 15


@pytest.mark.parametrize(
    ("frame", "shown"),
    [((1280, 1024), (896, 736)), ((640, 480), (896, 672)), ((1, 1), (896, 896)), ((300, 3), (896, 32))],
)
def test_the_published_geometry(frame: tuple[int, int], shown: tuple[int, int], tmp_path: Path) -> None:
    """1600 pixels are seen; the papers' frame becomes 896 x 736, every other one as large as its aspect gives."""
    agent = EccNetAgent(EccNetAgent.Settings(), "eccnet")
    assert agent.settings.view == 1600
    values = np.random.default_rng(0).integers(0, 256, (frame[1], frame[0], 3), np.uint8)
    PILImage.fromarray(values).save(tmp_path / "frame.png")
    image, target, task = agent.prepare(search(tmp_path / "frame.png", tmp_path / "frame.png"))
    assert (image.shape, target.shape, task.frame) == ((1, 3, shown[1], shown[0]), (1, 3, 32, 32), frame)
    places = [(np.arange(cells) + 0.5) * side / cells for side, cells in zip(frame[::-1], shown[::-1], strict=True)]
    clear = np.ix_(*(place % 1 != 0 for place in places))  # not between two pixels
    found = image[0].permute(1, 2, 0).numpy()[clear]
    assert found.size > image.numel() / 2
    assert (found == values[np.ix_(*(place.astype(int) for place in places))][clear]).all()


@pytest.mark.parametrize(("size", "end"), [((1, 1), ("exhausted", 1)), ((2, 300), ("maximum", 3))])
def test_tiny_and_thin_images(
    size: tuple[int, int], end: tuple[str, int], make: Callable[..., Any], tmp_path: Path
) -> None:
    [path] = files(tmp_path, [size], seed=3, grain=2)
    [answer] = answers(make(), [search(path, path, max_fixations=3, window=1)])
    assert answer["fixations"][0] == [size[1] // 2, size[0] // 2]
    assert (answer["stop"], len(answer["fixations"])) == end


def test_the_published_rings_of_a_view_of_1600_pixels() -> None:
    """Worked out by hand: outer radii in output cells, windows in input cells."""
    slopes = (0, 0, 0.07, 0.16, 0.32)
    scales = (30, 15, 8, 4, 2)
    pools = [EccentricPooling(*chosen) for chosen in zip(slopes, scales, strict=True)]
    rings = [pool.rings(1600 >> block) for block, pool in enumerate(pools)]
    assert [radius for radius, _ in rings[0]] == [*range(60, 406, 15)]
    assert [radius for radius, _ in rings[1]] == [*range(30, 207, 8)]
    assert [radius for radius, _ in rings[2]] == [*range(16, 101, 4)]
    assert [radius for radius, _ in rings[3]] == [*range(8, 51, 2)]
    assert [radius for radius, _ in rings[4]] == [*range(4, 26)]
    assert {window for block in (0, 1) for _, window in rings[block]} == {2}
    assert [w for _, w in rings[2]] == [2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 10, 10, 11, 12, 12, 13, 13, 14]
    assert [w for _, w in rings[3]] == [2, 3, 3, 4, 5, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14, 14, 15, 15]
    assert rings[4][:3] + rings[4][-2:] == [(4, 2), (5, 3), (6, 3), (24, 15), (25, 15)]
    assert [pool.ordinary(1600 >> block) for block, pool in enumerate(pools)] == [True, True, False, False, False]
