"""Frames on pictures, beside exact fractions and beside Pillow, which puts pictures into frames with bars."""

from fractions import Fraction

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageOps

from agents.errors import InputError
from agents.frames import box_to_picture, have_one_shape, lacks_fit, outside, to_picture

SCREEN = (1680, 1050)  # of COCO-Search18
COCO = (640, 480)


def test_bars_of_a_screen_lie_beside_the_picture() -> None:
    """At 1050 pixels of height a picture of 640 x 480 is 1400 wide, between bars of 140."""
    points = [[140, 0], [840, 525], [1540, 1050], [470, 250], [0, 0]]
    placed = to_picture(points, SCREEN, "bars", COCO)
    assert placed[:3] == [[0, 0], [320, 240], [640, 480]]
    assert placed[3] == pytest.approx([150.857, 114.286], abs=0.001)
    assert placed[4] == pytest.approx([-64, 0])
    assert outside(placed, COCO) == 2  # on a bar; and the picture's right edge, behind the last pixel
    assert box_to_picture([420, 200, 100, 100], SCREEN, "bars", COCO) == pytest.approx(
        [128, 91.429, 45.714, 45.714], abs=0.001
    )


def test_bars_above_and_below() -> None:
    assert to_picture([[0, 200], [400, 600]], (400, 800), "bars", (200, 200)) == [[0, 0], [200, 200]]
    assert box_to_picture([100, 200, 40, 20], (400, 800), "bars", (200, 200)) == [50, 0, 20, 10]


def test_a_stretched_picture_fills_the_frame() -> None:
    assert to_picture([[840, 525], [1680, 1050]], SCREEN, "stretch", COCO) == [[320, 240], [640, 480]]
    assert box_to_picture([168, 105, 84, 210], SCREEN, "stretch", COCO) == pytest.approx([64, 48, 32, 96])


@pytest.mark.parametrize("fit", ["bars", "stretch", None])
def test_in_the_pictures_own_frame_nothing_moves(fit: str | None) -> None:
    points = [[0.1, 479.7], [1 / 3, -5]]
    assert to_picture(points, COCO, fit, COCO) == points  # type: ignore[arg-type]
    assert to_picture([[100, 50]], (1280, 960), fit, COCO) == [[50, 25]]  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", [SCREEN, (511, 767), (97, 31)])
@pytest.mark.parametrize("size", [COCO, (333, 500), (7, 3)])
def test_the_closed_form_beside_exact_fractions(frame: tuple[int, int], size: tuple[int, int]) -> None:
    """From the definition: scaled by the smaller quotient of sides, the rest in halves on both sides. Where the edge
    of the picture is a number of the machine, it is exactly the edge: what lies there must not fall beside it."""
    scale = min(Fraction(frame[0], size[0]), Fraction(frame[1], size[1]))
    begins = [(Fraction(side) - scale * below) / 2 for side, below in zip(frame, size, strict=True)]
    for share in (Fraction(0), Fraction(1, 3), Fraction(1)):
        exact = [begin + share * scale * below for begin, below in zip(begins, size, strict=True)]
        [placed] = to_picture([[float(value) for value in exact]], frame, "bars", size)
        for value, known, below in zip(placed, exact, size, strict=True):
            wanted = float(share * below)
            assert value == (
                wanted if Fraction(float(known)) == known else pytest.approx(wanted, abs=1e-12 * max(frame))
            )


@pytest.mark.parametrize(("size", "frame"), [((20, 10), (100, 90)), ((9, 21), (99, 63)), ((16, 16), (64, 32))])
def test_pillow_pads_pictures_alike(size: tuple[int, int], frame: tuple[int, int]) -> None:
    """Each pixel is enlarged to a square between bars, and the square's middle leads back to the pixel's."""
    for column, row in ((0, 0), (size[0] - 1, size[1] - 1), (size[0] // 3, size[1] // 2)):
        picture = np.zeros(size[::-1], dtype=np.uint8)
        picture[row, column] = 255
        shown = ImageOps.pad(PILImage.fromarray(picture), frame, PILImage.Resampling.NEAREST)
        lit = np.argwhere(np.asarray(shown)).mean(axis=0)[::-1] + 0.5
        assert to_picture([lit.tolist()], frame, "bars", size)[0] == pytest.approx([column + 0.5, row + 0.5])


@pytest.mark.parametrize(
    ("frame", "size", "is_one"),
    [
        ((1280, 1024), (640, 512), True),
        ((1280, 1024), (500, 400), True),
        ((640, 427), (1000, 667), True),  # rounded to pixels
        ((101, 100), (100, 100), True),  # 1 %
        ((100, 101), (100, 100), True),
        ((102, 100), (100, 100), False),
        (SCREEN, COCO, False),
        ((1280, 1024), COCO, False),
        ((480, 640), COCO, False),
    ],
)
def test_shapes_that_count_as_one(frame: tuple[int, int], size: tuple[int, int], is_one: bool) -> None:
    assert have_one_shape(frame, size) == have_one_shape(size, frame) == is_one
    assert lacks_fit(frame, None, size) == (not is_one)
    assert not lacks_fit(frame, "stretch", size)
    if is_one:
        assert len(to_picture([[1, 2]], frame, None, size)) == 1
        return
    for call in (
        lambda: to_picture([[1, 2]], frame, None, size),
        lambda: box_to_picture([1, 2, 3, 4], frame, None, size),
    ):
        with pytest.raises(InputError, match=r"--fit bars.*--fit stretch") as refused:
            call()
        assert f"a frame of {frame[0]} x {frame[1]}" in str(refused.value)
        assert f"the picture of {size[0]} x {size[1]}" in str(refused.value)


def test_a_frame_without_pixels_is_none() -> None:
    with pytest.raises(ValueError, match="a frame of 0 x 480"):
        to_picture([[1, 1]], (0, 480), "bars", COCO)


def test_pixels_begin_at_0_and_end_before_the_side() -> None:
    points: list[list[float]] = [[0, 0], [639.9, 479.9], [640, 100], [100, 480], [-0.1, 5], [5, -1]]
    assert outside(points, COCO) == 4
