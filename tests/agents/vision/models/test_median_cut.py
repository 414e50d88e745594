"""Median cut, beside the package whose colours the published agents gave."""

from __future__ import annotations

import io
from pathlib import Path

import colorthief
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image as PILImage

from agents.vision.mmcq import WHITE, get_color, get_palette, histogram

PHOTOGRAPHS = sorted(
    path for path in (Path(__file__).parents[4] / "examples" / "images").iterdir() if path.stem != "broken"
)
# The reference asks Pillow for its pixels in a way that newer versions of Pillow call deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*getdata.*:DeprecationWarning")


def as_file(pixels: NDArray[np.uint8]) -> io.BytesIO:
    file = io.BytesIO()
    PILImage.fromarray(pixels).save(file, "PNG", compress_level=0)
    file.seek(0)
    return file


def reference_palette(pixels: NDArray[np.uint8], n: int, quality: int) -> list[tuple[tuple[int, int, int], int]]:
    """What ColorThief gives, with populations and without its empty boxes; no entry where it raises."""
    made = []
    original = colorthief.MMCQ.quantize

    def spy(*arguments: object) -> object:
        made.append(original(*arguments))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(colorthief.MMCQ, "quantize", staticmethod(spy))
        thief = colorthief.ColorThief(as_file(pixels))
        if not reference_histogram(pixels, quality).any():
            with pytest.raises(Exception, match="Empty pixels"):
                thief.get_palette(n, quality)
            return []
        colors = thief.get_palette(n, quality)
    boxes = made[0].vboxes.contents
    assert [box["color"] for box in boxes] == colors
    return [(box["color"], box["vbox"].count) for box in boxes if box["vbox"].count]


def reference_histogram(pixels: NDArray[np.uint8], quality: int) -> NDArray[np.int64]:
    """The rule, pixel by pixel."""
    counts = np.zeros((32, 32, 32), dtype=np.int64)
    for red, green, blue, *alpha in pixels.reshape(-1, pixels.shape[2])[::quality].tolist():
        if (not alpha or alpha[0] >= 125) and not (red > 250 and green > 250 and blue > 250):
            counts[red // 8, green // 8, blue // 8] += 1
    return counts


@st.composite
def images(draw: st.DrawFn, largest: int = 24) -> NDArray[np.uint8]:
    """Small images of the kinds that exercise different parts: many bins, few bins, ties, whites, alpha."""
    height, width = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["noise", "cluster", "few", "solid", "gradient", "near white", "photo-like", "ties"]))
    shape = (height, width, 3)
    if kind == "noise":
        pixels = rng.integers(0, 256, shape)
    elif kind == "cluster":
        pixels = np.clip(rng.normal(rng.integers(0, 256, 3), rng.uniform(1, 60), shape), 0, 255)
    elif kind in ("few", "ties"):
        colors = rng.integers(0, 256, (int(rng.integers(1, 9)), 3))
        many = np.arange(height * width) if kind == "ties" else rng.integers(0, 2**31, height * width)
        pixels = colors[many % len(colors)].reshape(shape)
    elif kind == "solid":
        pixels = np.broadcast_to(rng.integers(0, 256, 3), shape)
    elif kind == "gradient":
        steps = np.linspace(0, 1, height * width).reshape(height, width, 1)
        pixels = rng.integers(0, 256, 3) * steps + rng.integers(0, 256, 3) * (1 - steps)
    elif kind == "near white":
        pixels = rng.integers(247, 256, shape)
    else:
        pixels = np.clip(np.cumsum(rng.normal(0, 12, shape), axis=1) + rng.integers(0, 256, 3), 0, 255)
    if draw(st.booleans()):
        pixels = np.concatenate(
            [pixels, rng.integers(*draw(st.sampled_from([(0, 256), (123, 127)])), (*shape[:2], 1))], 2
        )
    return np.ascontiguousarray(pixels.astype(np.uint8))


@settings(max_examples=40)
@given(images(), st.integers(2, 24), st.sampled_from([1, 1, 2, 3, 10]))
def test_palettes_equal_the_reference(pixels: NDArray[np.uint8], n: int, quality: int) -> None:
    assert get_palette(pixels, n, quality) == (reference_palette(pixels, n, quality) or [(WHITE, 0)])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 9, 10, 33, 256])
def test_every_number_of_colors_equals_the_reference(n: int) -> None:
    rng = np.random.default_rng(n)
    pixels = np.clip(rng.normal(120, 25, (40, 40, 3)), 0, 255).astype(np.uint8)
    assert get_palette(pixels, n) == reference_palette(pixels, n, 1)


@pytest.mark.parametrize("path", PHOTOGRAPHS, ids=lambda path: path.stem)
def test_photographs_equal_the_reference(path: Path) -> None:
    with PILImage.open(path) as image:
        picture = image.convert("RGB")
    picture.thumbnail((160, 160))
    pixels = np.asarray(picture)
    assert get_color(pixels) == colorthief.ColorThief(as_file(pixels)).get_color(quality=1)
    for n, quality in ((5, 1), (10, 3)):
        assert get_palette(pixels, n, quality) == reference_palette(pixels, n, quality)


def solid(color: tuple[int, int, int]) -> NDArray[np.uint8]:
    return np.full((20, 20, 3), color, dtype=np.uint8)


@pytest.mark.parametrize(
    ("color", "expected"),
    [((0, 0, 0), (4, 4, 4)), ((255, 0, 0), (252, 4, 4)), ((10, 200, 30), (12, 204, 28)), ((255, 255, 255), WHITE)],
)
def test_solid_images(color: tuple[int, int, int], expected: tuple[int, int, int]) -> None:
    assert get_color(solid(color)) == expected
    assert get_palette(solid(color)) == [(expected, 0 if color == WHITE else 400)]


def test_both_orders_where_they_differ() -> None:
    """Three quarters red: population times volume says blue, population says red."""
    pixels = solid((255, 0, 0))
    pixels[:5] = (0, 0, 255)
    assert get_color(pixels) == (4, 4, 252)
    assert get_color(pixels, order="population") == (252, 4, 4)
    assert get_palette(pixels) == [((4, 4, 252), 100), ((252, 4, 4), 300)]
    assert get_palette(pixels, order="population") == [((252, 4, 4), 300), ((4, 4, 252), 100)]


def test_a_plane_of_colors() -> None:
    at = np.arange(64)
    pixels = np.empty((64, 64, 3), dtype=np.uint8)
    pixels[...] = np.stack([*np.broadcast_arrays(4 * at[None, :], 4 * at[:, None], 128)], axis=-1)
    expected = [(184, 184, 132), (32, 128, 132), (160, 32, 132), (88, 160, 132), (184, 88, 132)]
    assert get_color(pixels) == expected[0]
    assert [color for color, _ in get_palette(pixels)] == expected


@pytest.mark.parametrize(("alpha", "expected"), [(124, WHITE), (125, (4, 4, 4))])
def test_mostly_transparent_pixels_are_not_counted(alpha: int, expected: tuple[int, int, int]) -> None:
    pixels = np.zeros((3, 4, 4), dtype=np.uint8)
    pixels[..., 3] = alpha
    assert get_color(pixels) == expected


@pytest.mark.parametrize(("color", "counted"), [((251, 251, 251), 0), ((250, 255, 255), 12), ((255, 255, 250), 12)])
def test_nearly_white_pixels_are_not_counted(color: tuple[int, int, int], counted: int) -> None:
    assert histogram(np.full((3, 4, 3), color, dtype=np.uint8)).sum() == counted


@settings(max_examples=50)
@given(images(), st.integers(1, 12))
def test_the_histogram_is_the_rule(pixels: NDArray[np.uint8], quality: int) -> None:
    np.testing.assert_array_equal(histogram(pixels, quality), reference_histogram(pixels, quality))


def test_more_pixels_than_are_counted_at_once() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (1, 3 * 2**20 // 2 + 1, 4), dtype=np.uint8)
    kept = pixels[0][(pixels[0, :, 3] >= 125) & ~(pixels[0, :, :3] > 250).all(axis=1), :3]
    r, g, b = (kept // 8).T
    expected = np.zeros((32, 32, 32), dtype=np.int64)
    np.add.at(expected, (r, g, b), 1)
    np.testing.assert_array_equal(histogram(pixels), expected)


def test_what_does_not_lie_in_one_piece_of_memory() -> None:
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)
    for view in (pixels[::-1, ::2], pixels[:, :, ::-1], pixels.transpose(1, 0, 2), np.asfortranarray(pixels)):
        assert get_palette(view) == get_palette(view.copy())
    pixels.flags.writeable = False
    assert get_palette(pixels) == get_palette(pixels.copy())


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 4), (0, 0, 3)])
def test_an_image_without_pixels_is_white(shape: tuple[int, int, int]) -> None:
    assert get_palette(np.zeros(shape, dtype=np.uint8)) == [(WHITE, 0)]


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4, 4), dtype=np.uint8),
        np.zeros((4, 4, 2), dtype=np.uint8),
        np.zeros((4, 4, 3)),
        np.zeros((4, 4, 3, 1)),
    ],
    ids=["gray", "two channels", "float", "four dimensions"],
)
def test_other_arrays_are_refused(pixels: NDArray[np.uint8]) -> None:
    with pytest.raises(ValueError, match="pixels must be uint8"):
        get_color(pixels)


def test_numbers_out_of_range_are_refused() -> None:
    for n in (1, 257):
        with pytest.raises(ValueError, match="from 2 to 256"):
            get_palette(solid((1, 2, 3)), n)
    with pytest.raises(ValueError, match="quality must be at least 1"):
        get_palette(solid((1, 2, 3)), quality=0)
