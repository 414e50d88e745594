"""Modified median cut colour quantisation (MMCQ), on a 32 x 32 x 32 histogram.

The method is Leptonica's (Bloomberg, "Color quantization using modified median cut", 2008) in the form in which
Color Thief and its ports made it widely used; where the two differ, Color Thief is followed, ties included, so that
:func:`get_color` gives what it gives. After the histogram nothing depends on the size of the image.

1. Every ``quality``-th pixel is counted, in 5 bits per channel, unless it is mostly transparent (alpha below 125) or
   nearly white (r, g and b all above 250).
2. The tight box around what was counted is cut again and again: the most populous box first, until there are three
   quarters of the ``n`` boxes asked for; then the box of the largest population times volume.
3. A box's colour is the mean of its pixels' bin centres, rounded down.

Two properties of the method that surprise: a box of a single bin is "cut" into itself and an empty box, so that images
of few colours have fewer than ``n`` colours (empty boxes are never returned here); and the second phase always makes
at least one cut, so that the number of boxes is not ``n`` in general (5 for 5, 9 for 10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RGB = tuple[int, int, int]
Palette = list[tuple[RGB, int]]
Order = Literal["population_volume", "population"]

WHITE: RGB = (255, 255, 255)
OPAQUE = 125
NEARLY_WHITE = 251
SIDE = 32  # bins per channel: 5 bits
BIN = 8  # width of a bin
PIXELS_AT_ONCE = 1 << 20  # keeps what is allocated beside a large image small, and float32 counts exact


@dataclass(frozen=True, slots=True)
class Box:
    """A box of bins, from ``low`` up to but without ``high`` on each of r, g, b, and how many pixels are in it."""

    low: RGB
    high: RGB
    population: int

    @property
    def volume(self) -> int:
        r, g, b = (high - low for low, high in zip(self.low, self.high, strict=True))
        return r * g * b

    @property
    def population_volume(self) -> int:
        return self.population * self.volume


BY_POPULATION = attrgetter("population")
BY_POPULATION_VOLUME = attrgetter("population_volume")


def histogram(pixels: NDArray[np.uint8], quality: int = 1) -> NDArray[np.int64]:
    """Counts of colours, int64 [32, 32, 32] over r, g, b.

    ``pixels`` is uint8 [height, width, 3] (RGB) or [height, width, 4] (RGB and alpha); every ``quality``-th pixel
    in row order is looked at. Raises ValueError for anything else.
    """
    import cv2

    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise ValueError(f"pixels must be uint8 [height, width, 3 or 4], not {pixels.dtype} {list(pixels.shape)}")
    if quality < 1:
        raise ValueError(f"quality must be at least 1, not {quality}")
    row = pixels.reshape(-1, pixels.shape[2])[::quality]
    bins = SIDE**3
    counts = np.zeros(bins, dtype=np.int64)
    for start in range(0, len(row), PIXELS_AT_ONCE):
        part = row[start : start + PIXELS_AT_ONCE]
        if part.shape[1] == 4:
            part = part[part[:, 3] >= OPAQUE, :3]
            if not len(part):
                continue
        part = np.ascontiguousarray(part).reshape(1, -1, 3)
        # OpenCV's 16-bit pixel format r5 g5 b5 is the index of the bin.
        index = cv2.cvtColor(part, cv2.COLOR_RGB2BGR555).view(np.uint16).reshape(1, -1)
        here = np.asarray(cv2.calcHist([index], [0], None, [bins], [0, bins])).reshape(bins).astype(np.int64)
        if here[-1]:  # nearly white pixels can be in the last bin only
            here[-1] -= cv2.countNonZero(cv2.inRange(part, (NEARLY_WHITE,) * 3, (255, 255, 255)))
        counts += here
    return counts.reshape(SIDE, SIDE, SIDE)


def median_cut(counts: NDArray[np.int64], n: int = 5) -> list[Box]:
    """The boxes that the histogram ``counts`` [32, 32, 32] is cut into, empty ones left out, the largest population
    times volume first; no box if nothing was counted. Raises ValueError unless 2 <= n <= 256."""
    if not 2 <= n <= 256:
        raise ValueError(f"the number of colours must be from 2 to 256, not {n}")
    boxes = _whole(counts)
    if not boxes:
        return []
    # Ties decide which box is cut. They follow the reference's queue: a stable ascending sort, taken from the end,
    # and emptied from the end into the second phase's queue.
    boxes = _cut_repeatedly(counts, boxes, -(-3 * n // 4) - 1, BY_POPULATION)
    boxes.sort(key=BY_POPULATION)
    boxes.reverse()
    # The second phase counts its own boxes from 1 up to what is missing, and so makes one cut less, or one too many.
    boxes = _cut_repeatedly(counts, boxes, n - len(boxes) - 1, BY_POPULATION_VOLUME)
    boxes.sort(key=BY_POPULATION_VOLUME)
    boxes.reverse()
    return [box for box in boxes if box.population]


def palette(counts: NDArray[np.int64], n: int = 5, order: Order = "population_volume") -> Palette:
    """The colours (rgb, population) of the histogram ``counts`` [32, 32, 32], dominant first.

    ``order`` says what dominant means: the reference's population times volume, which lets a varied quarter of an
    image win over a uniform rest, or the population alone. If nothing was counted (an image all white or all
    transparent, for which the reference raises) the one colour is white, with a population of 0.
    """
    colors = [(_mean(counts, box), box.population) for box in median_cut(counts, n)]
    if not colors:
        return [(WHITE, 0)]
    if order == "population":  # equal ones stay as they were
        colors.sort(key=lambda color: -color[1])
    return colors


def get_palette(pixels: NDArray[np.uint8], n: int = 5, quality: int = 1, order: Order = "population_volume") -> Palette:
    """The palette (rgb, population) of an image; see :func:`histogram` and :func:`palette`."""
    return palette(histogram(pixels, quality), n, order)


def get_color(pixels: NDArray[np.uint8], quality: int = 1, order: Order = "population_volume") -> RGB:
    """The dominant colour of an image: the first of its palette of five."""
    return get_palette(pixels, 5, quality, order)[0][0]


def _whole(counts: NDArray[np.int64]) -> list[Box]:
    """The smallest box around everything that was counted, or none."""
    used = [np.flatnonzero(counts.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    if not len(used[0]):
        return []
    r, g, b = ((int(planes[0]), int(planes[-1]) + 1) for planes in used)
    return [Box((r[0], g[0], b[0]), (r[1], g[1], b[1]), int(counts.sum()))]


def _cut_repeatedly(counts: NDArray[np.int64], boxes: list[Box], cuts: int, key: Callable[[Box], int]) -> list[Box]:
    """Cut the box of the largest ``key``, ``cuts`` times and at least once."""
    for _ in range(max(1, cuts)):
        boxes.sort(key=key)
        if boxes[-1].population == 1:  # a single pixel is not cut, and stays first: nothing would change any more
            break
        boxes += _cut(counts, boxes.pop())
    return boxes


def _cut(counts: NDArray[np.int64], box: Box) -> tuple[Box, Box]:
    """Cut a box across its longest side (r before g before b), beyond the median into the longer part."""
    sides = [high - low for low, high in zip(box.low, box.high, strict=True)]
    axis = sides.index(max(sides))
    below = np.cumsum(_profile(counts, box, axis)).tolist()  # pixels in the planes up to and with each
    total, last = box.population, len(below) - 1
    median = next(plane for plane, count in enumerate(below) if 2 * count > total)
    left, right = median, last - median
    plane = min(last - 1, median + right // 2) if left <= right else max(0, median - 1 - (left + 1) // 2)
    plane = max(0, plane)  # -1 in a box of one bin
    while not below[plane]:
        plane += 1
    while below[plane] == total and plane and below[plane - 1]:
        plane -= 1
    edge = box.low[axis] + plane + 1
    low, high = list(box.low), list(box.high)
    low[axis] = high[axis] = edge
    return (
        Box(box.low, (high[0], high[1], high[2]), below[plane]),
        Box((low[0], low[1], low[2]), box.high, total - below[plane]),
    )


def _profile(counts: NDArray[np.int64], box: Box, axis: int) -> NDArray[np.int64]:
    """How many pixels of the box are in each of its planes across ``axis``."""
    inside = counts[tuple(slice(low, high) for low, high in zip(box.low, box.high, strict=True))]
    across = tuple(other for other in range(3) if other != axis)
    return np.asarray(inside.sum(axis=across), dtype=np.int64)


def _mean(counts: NDArray[np.int64], box: Box) -> RGB:
    """The mean of the bin centres, weighted by their counts, rounded down."""
    r, g, b = (
        int(_profile(counts, box, axis) @ (np.arange(box.low[axis], box.high[axis]) * BIN + BIN // 2)) // box.population
        for axis in range(3)
    )
    return r, g, b
