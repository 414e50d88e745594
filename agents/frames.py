"""Where the frame of a scanpath lies on its picture.

A path is in pixels of a frame: of the screen that a person looked at, or of what a model was shown. The answer's
``fit`` says how the picture filled it:

- ``bars``: the aspect ratio was kept, the picture stood in the middle, with bars on two sides;
- ``stretch``: each side was scaled on its own;
- None: not said, which is enough where frame and picture have one shape.

Why nothing is guessed: a picture of 640 x 480 on a screen of 1680 x 1050 has bars of 140 pixels (COCO-Search18).
Stretched instead, its left edge, x = 140, would become 53, and all people's paths would be drawn towards the centre.
Machines' paths have the picture as their frame and would stay, by which a judge could tell them apart.
"""

from collections.abc import Sequence
from typing import Literal

from agents.errors import InputError

Fit = Literal["bars", "stretch"]
Side = int | float
Sides = Sequence[Side]  # width and height in pixels
Point = list[float]

WAY_OUT = (
    "--fit bars, if the screen had bars and the aspect ratio was kept, or --fit stretch, if the picture filled the "
    "frame"
)


def have_one_shape(frame: Sides, size: Sides) -> bool:
    """Whether two aspect ratios differ by at most 1 %, as by the rounding of sides to pixels."""
    low, high = sorted((frame[0] * size[1], frame[1] * size[0]))
    return 100 * high <= 101 * low


def lacks_fit(frame: Sides, fit: Fit | None, size: Sides) -> bool:
    """Whether nothing says where a frame lies on a picture of ``size``. Raises ValueError for a side below 1."""
    for sides, what in ((frame, "frame"), (size, "picture")):
        if min(sides) <= 0:
            raise ValueError(f"a {what} of {as_text(sides)}")
    return fit is None and not have_one_shape(frame, size)


def to_picture(points: Sequence[Sequence[Side]], frame: Sides, fit: Fit | None, size: Sides) -> list[Point]:
    """Points [x, y] of a frame (width F, height G) in pixels of a picture (width P, height Q).

    With ``stretch`` or one shape x' = x P / F and y' = y Q / G. With ``bars`` the picture was scaled by
    s = min(F / P, G / Q), and x' = (x - F / 2) / s + P / 2, y' = (y - G / 2) / s + Q / 2. A point on a bar lies
    outside the picture then. Raises InputError where the shapes differ and ``fit`` is None."""
    _refuse_unknown(frame, fit, size)
    if list(frame) == list(size):
        return [[x, y] for x, y in points]
    if fit == "bars":
        across = _Bars(frame, size, 0)
        down = _Bars(frame, size, 1)
        return [[across.place(x), down.place(y)] for x, y in points]
    by_x = size[0] / frame[0]
    by_y = size[1] / frame[1]
    return [[x * by_x, y * by_y] for x, y in points]


def box_to_picture(box: Sequence[Side], frame: Sides, fit: Fit | None, size: Sides) -> list[float]:
    """A box [x, y, width, height] of a frame in pixels of a picture; its sides are divided by s, or scaled each on
    its own. Otherwise as :func:`to_picture`."""
    left, top, width, height = box
    [[x, y]] = to_picture([[left, top]], frame, fit, size)
    if fit == "bars":
        return [x, y, _Bars(frame, size, 0).length(width), _Bars(frame, size, 1).length(height)]
    [[across, down]] = to_picture([[width, height]], frame, fit, size)
    return [x, y, across, down]


def outside(points: Sequence[Sequence[Side]], size: Sides) -> int:
    """How many points lie outside a frame or picture, whose pixels are 0 <= x < width and 0 <= y < height."""
    width, height = size
    return sum(not (0 <= x < width and 0 <= y < height) for x, y in points)


def as_text(sides: Sides) -> str:
    """Width and height for a person: "640 x 480"."""
    return f"{sides[0]:g} x {sides[1]:g}"


class _Bars:
    """An axis (0: x, 1: y). The scale s is a quotient of whole numbers, so that what is computed is rounded once: a
    point on the picture's very edge does not come to lie beside it."""

    def __init__(self, frame: Sides, size: Sides, axis: int) -> None:
        is_wide = frame[0] * size[1] >= frame[1] * size[0]  # bars on the left and right
        full = 1 if is_wide else 0
        self._above = frame[full]
        self._below = size[full]
        self._frame = frame[axis]
        self._size = size[axis]

    def place(self, value: Side) -> float:
        return ((2 * value - self._frame) * self._below + self._size * self._above) / (2 * self._above)

    def length(self, value: Side) -> float:
        return value * self._below / self._above


def _refuse_unknown(frame: Sides, fit: Fit | None, size: Sides) -> None:
    if lacks_fit(frame, fit, size):
        raise InputError(
            f"a frame of {as_text(frame)} has another shape than the picture of {as_text(size)}, and nothing says how "
            f"the picture filled it. Import the answer again (`import`) with {WAY_OUT}"
        )
