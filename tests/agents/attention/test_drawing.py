"""Drawings and clips, read back with Pillow."""

import io
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PILImage

from agents.attention import painting as drawing

PATH = [(160, 120), (40, 30), (280, 200), (300, 20)]
LONG = [(10 * k % 320, 17 * k % 240) for k in range(1, 40)]
YELLOW = (255, 255, 0)


@pytest.fixture
def image() -> NDArray[Any]:
    rng = np.random.default_rng(0)
    small = rng.integers(0, 200, (12, 16, 3), np.uint8)
    return np.asarray(PILImage.fromarray(small).resize((320, 240), PILImage.Resampling.BICUBIC))


def clip(data: bytes) -> tuple[list[NDArray[Any]], list[int], dict[Any, Any]]:
    """The frames (RGB arrays), their times and what else the file says."""
    with PILImage.open(io.BytesIO(data)) as gif:
        frames = []
        times = []
        for index in range(gif.n_frames):
            gif.seek(index)
            frames.append(np.asarray(gif.convert("RGB")).astype(int))
            times.append(gif.info["duration"])
        return frames, times, {**gif.info}


def yellow(frame: NDArray[Any]) -> NDArray[Any]:
    return (frame == YELLOW).all(2)


def test_free_viewing_is_rings_and_a_gap(image: NDArray[Any]) -> None:
    frames, times, info = clip(drawing.judges_clip(image, PATH))
    assert times == [300] * 4 + [1000]
    assert info["loop"] == 0
    for (x, y), frame in zip(PATH, frames, strict=False):
        rows, columns = np.nonzero(yellow(frame))
        distance = np.hypot(columns - x, rows - y)
        assert distance.max() <= 10.25  # 35 at 1280 is 8.75 at 320
        assert distance.min() >= 5
        assert len(rows) > 40
    assert not yellow(frames[-1]).any()
    assert np.abs(frames[-1] - image).mean() < 8  # the image, in 255 colours
    for before, after in itertools.pairwise(frames):
        same = ~(yellow(before) | yellow(after))
        assert (before == after)[same].all()  # nothing but the ring moves


def test_search_shows_the_target_first(image: NDArray[Any]) -> None:
    target = np.zeros((30, 50, 3), np.uint8)
    target[..., 2] = 255
    frames, times, _ = clip(drawing.judges_clip(image, PATH, target=target))
    assert times == [1000] + [300] * 4 + [1000]
    blue = (frames[0] == (0, 0, 255)).all(2)
    assert blue.sum() == 30 * 50
    assert blue[105:135, 135:185].all()
    assert np.unique(frames[0][~blue], axis=0).tolist() == [[128, 128, 128]]
    assert yellow(frames[1]).any()


def test_the_first_fixations_are_shown(image: NDArray[Any]) -> None:
    _, times, _ = clip(drawing.judges_clip(image, LONG))
    assert times == [300] * 15 + [1000]


def test_the_file_carries_no_text(image: NDArray[Any]) -> None:
    gif = drawing.judges_clip(image, PATH, target=image[:40, :40])
    assert gif.startswith(b"GIF89a")
    # Blocks that could hold text: comment (21 FE), plain text (21 01), any application but the one that says "endless".
    with PILImage.open(io.BytesIO(gif)) as opened:
        assert set(opened.info) <= {"version", "background", "loop", "duration", "extension", "transparency"}
        assert opened.info["extension"][0] == b"NETSCAPE2.0"
    for word in (b"gbvs", b"GBVS", b"tEXt", b"iTXt", b"eXIf", b"Pillow"):
        assert word not in gif


@pytest.mark.parametrize("shape", [(240, 320), (240, 320, 3), (1, 1, 3), (3, 900), (900, 3, 3)])
@pytest.mark.parametrize("max_side", [None, 100])
def test_any_size_and_grey(shape: tuple[int, ...], max_side: int | None) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    places = [(shape[1] // 2, shape[0] // 2), (0, 0)]
    expected: tuple[int, ...] = (shape[1], shape[0])
    if max_side is not None and max(expected) > max_side:
        expected = tuple(max(1, round(side * max_side / max(expected))) for side in expected)
    with PILImage.open(io.BytesIO(drawing.judges_clip(image, places, max_side=max_side))) as opened:
        assert opened.size == expected


def test_fixations_move_with_the_picture(image: NDArray[Any]) -> None:
    large = np.asarray(PILImage.fromarray(image).resize((640, 480)))
    frames, _, _ = clip(drawing.judges_clip(large, [(600, 400)], max_side=320))
    rows, columns = np.nonzero(yellow(frames[0]))
    assert (columns.min() + columns.max()) / 2 == pytest.approx(300, abs=1)
    assert (rows.min() + rows.max()) / 2 == pytest.approx(200, abs=1)
