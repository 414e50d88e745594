"""The dominant colour by modified median cut (Bloomberg 2008, Leptonica), in the form of the program Color Thief.

Colours are counted in bins of 5 bits per channel. Boxes of bins are cut in two: first the most populous, then the one
with the largest population times volume. A colour is the mean of a box's bin centres.
"""

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agents.answers import ColorAnswer, Swatch
from agents.contract import MIB, Agent, Declaration, Draw, Finding, Reply
from agents.contract import Settings as BaseSettings
from agents.stimuli import ColorStimulus, Stimulus
from agents.vision import colors

RGB = colors.RGB
"""Red, green and blue, each 0 to 255."""
Palette = list[tuple[RGB, int]]
"""Colours with their numbers of pixels, the dominant first."""

WHITE: RGB = (255, 255, 255)
"""White."""
NEARLY_WHITE = 251
"""A pixel with all three channels at least this is white, and does not count."""
SIDE = 32
"""Bins per channel: 5 bits."""
BIN = 8
"""The width of a bin."""
NEUTRAL = ("black", "gray", "white")
"""The words that are no hue."""
PIXELS_AT_ONCE = 1 << 20
"""How many pixels are counted at once. It keeps memory beside a large image small, and counts in float32 exact."""


class MedianCutAgent(Agent["MedianCutAgent.Settings"]):
    """Says the dominant colour. Transparency is white; white pixels do not count, but an image of white alone is
    "white"."""

    class Settings(BaseSettings):
        """How pixels are counted, and how a colour becomes a word."""

        quality: int = Field(1, ge=1, le=1_000_000)
        """1 counts every pixel, 2 every second in row order, and so on."""
        colors: int = Field(5, ge=2, le=256)
        """How many boxes the median cut should make; the reference wants 5 for the dominant colour."""
        order: Literal["population_volume"] = "population_volume"
        """The dominant box has most pixels times volume, as in the reference."""
        naming: Literal["css", "lab"] = "css"
        """The word: that of the nearest CSS3 colour, or the nearest in CIELAB; the CSS3 name stands beside it."""
        names: Literal["without_pale", "all"] = "without_pale"
        """Which CSS3 names may be nearest: all, or all but those that the published program leaves out [?]."""

    declares = Declaration(
        tasks=("color_estimation",),
        extra="vision",
        packages=("cv2",),
        memory=512 * MIB,  # numpy and OpenCV, and a few photographs of a camera's size being decoded at once
        batch_size=64,
    )

    def declaration(self) -> Declaration:
        """With a note where a pixel with a hue is called gray, which CSS names do."""
        declared = super().declaration()
        return declared.replace(filters=(gray_with_a_hue,)) if self.settings.naming == "css" else declared

    def open(self) -> None:
        """Import OpenCV once, before there are threads."""
        import cv2  # noqa: F401, once, before there are threads

    def prepare(self, stimulus: Stimulus) -> Palette:
        """The image's palette: all the work is done here, in any thread. Raises ImageError."""
        assert isinstance(stimulus, ColorStimulus)
        return palette(stimulus.image.decode(), self.settings.colors, self.settings.quality)

    def respond(self, batch: Sequence[Palette], draws: Sequence[Draw]) -> Sequence[Reply]:
        """The word for each palette's first colour."""
        pale = colors.PALE if self.settings.names == "without_pale" else frozenset[str]()
        replies = []
        for swatches in batch:
            rgb = swatches[0][0]
            name = colors.nearest_rgb(rgb, pale)
            word = colors.word_of(name) if self.settings.naming == "css" else colors.nearest_word(rgb)
            named = [Swatch(rgb=list(color), population=population) for color, population in swatches]
            replies.append(Reply(ColorAnswer(color=word, css_name=name, rgb=list(rgb), palette=named)))
        return replies


def gray_with_a_hue(stimulus: Stimulus, reply: Reply) -> Finding | None:
    """The filter that notes a neutral dominant colour whose word is a hue.

    The papers' map calls every gray from 36 to 83 green, as the nearest CSS3 name is "darkslategray". A colour is
    neutral if its channels differ by a bin at most. The answer stands.
    """
    assert isinstance(reply.answer, ColorAnswer)
    red, green, blue = reply.answer.rgb or WHITE
    if max(red, green, blue) - min(red, green, blue) > BIN or reply.answer.color in NEUTRAL:
        return None
    other = colors.nearest_word((red, green, blue))
    found = (
        f"the dominant colour ({red}, {green}, {blue}) is a neutral gray, which the papers' map calls "
        f"{reply.answer.color}; mmcq-lab says {other}"
    )
    return Finding("gray_with_a_hue", False, found)


class ColorBox(NamedTuple):
    """A box of bins, with its pixels."""

    low: RGB
    """Its first bins of red, green and blue."""
    high: RGB
    """The bins after its last ones."""
    population: int
    """The number of its pixels."""

    @property
    def population_volume(self) -> int:
        """Population times volume, the volume in bins."""
        return self.population * math.prod(high - low for low, high in zip(self.low, self.high, strict=True))


def palette(pixels: NDArray[np.uint8], n: int = 5, quality: int = 1) -> Palette:
    """The colours of an image, uint8 [height, width, 3], in about ``n`` boxes; every ``quality``-th pixel counts. White
    for an image of white alone."""
    counts = histogram(pixels, quality)
    return [(_mean(counts, box), box.population) for box in median_cut(counts, n)] or [(WHITE, 0)]


def histogram(pixels: NDArray[np.uint8], quality: int = 1) -> NDArray[np.int64]:
    """How many of every ``quality``-th pixel, in row order, lie in each bin: int64 [32, 32, 32]."""
    import cv2

    row = pixels.reshape(-1, 3)[::quality]
    bins = SIDE**3
    counts = np.zeros(bins, dtype=np.int64)
    for start in range(0, len(row), PIXELS_AT_ONCE):
        part = np.ascontiguousarray(row[start : start + PIXELS_AT_ONCE]).reshape(1, -1, 3)
        # OpenCV's 16-bit pixel format r5 g5 b5 is the index of the bin.
        index = cv2.cvtColor(part, cv2.COLOR_RGB2BGR555).view(np.uint16).reshape(1, -1)
        here = np.asarray(cv2.calcHist([index], [0], None, [bins], [0, bins])).reshape(bins).astype(np.int64)
        if here[-1]:  # nearly white pixels can be in the last bin only
            here[-1] -= cv2.countNonZero(cv2.inRange(part, (NEARLY_WHITE,) * 3, (255, 255, 255)))
        counts += here
    return counts.reshape(SIDE, SIDE, SIDE)


def median_cut(counts: NDArray[np.int64], n: int) -> list[ColorBox]:
    """The boxes of a histogram that are not empty, the largest population times volume first. How many there are
    follows the reference, which cuts once less or once more than ``n`` says."""
    used = [np.flatnonzero(counts.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    if not len(used[0]):
        return []
    r, g, b = used
    low = (int(r[0]), int(g[0]), int(b[0]))
    high = (int(r[-1]) + 1, int(g[-1]) + 1, int(b[-1]) + 1)
    boxes = [ColorBox(low, high, int(counts.sum()))]
    # Ties follow the reference's queue: a stable ascending sort, taken from the end.
    boxes = _cut_repeatedly(counts, boxes, -(-3 * n // 4) - 1, attrgetter("population"))
    # The second phase counts its boxes from 1 up to what is missing, and so makes one cut less, or one too many.
    boxes = _cut_repeatedly(counts, boxes, n - len(boxes) - 1, attrgetter("population_volume"))
    return [box for box in boxes if box.population]


def _cut_repeatedly(
    counts: NDArray[np.int64], boxes: list[ColorBox], cuts: int, key: Callable[[ColorBox], int]
) -> list[ColorBox]:
    for _ in range(max(1, cuts)):
        boxes.sort(key=key)
        if boxes[-1].population == 1:  # a single pixel is not cut, and stays first: nothing would change any more
            break
        boxes += _cut_box(counts, boxes.pop())
    boxes.sort(key=key)
    return boxes[::-1]


def _cut_box(counts: NDArray[np.int64], box: ColorBox) -> tuple[ColorBox, ColorBox]:
    """Cuts across the longest side (r, g, b), beyond the median into the longer part."""
    sides = [high - low for low, high in zip(box.low, box.high, strict=True)]
    axis = sides.index(max(sides))
    below = np.cumsum(_profile(counts, box, axis)).tolist()  # pixels in the planes up to and with each
    total = box.population
    last = len(below) - 1
    median = next(plane for plane, count in enumerate(below) if 2 * count > total)
    left = median
    right = last - median
    plane = min(last - 1, median + right // 2) if left <= right else max(0, median - 1 - (left + 1) // 2)
    plane = max(0, plane)  # -1 in a box of one bin
    while not below[plane]:
        plane += 1
    while below[plane] == total and plane and below[plane - 1]:
        plane -= 1
    low = list(box.low)
    high = list(box.high)
    low[axis] = high[axis] = box.low[axis] + plane + 1
    return (
        ColorBox(box.low, (high[0], high[1], high[2]), below[plane]),
        ColorBox((low[0], low[1], low[2]), box.high, total - below[plane]),
    )


def _profile(counts: NDArray[np.int64], box: ColorBox, axis: int) -> NDArray[np.int64]:
    inside = counts[tuple(slice(low, high) for low, high in zip(box.low, box.high, strict=True))]
    across = tuple(other for other in range(3) if other != axis)
    return np.asarray(inside.sum(axis=across), dtype=np.int64)


def _mean(counts: NDArray[np.int64], box: ColorBox) -> RGB:
    return _mean_along(counts, box, 0), _mean_along(counts, box, 1), _mean_along(counts, box, 2)


def _mean_along(counts: NDArray[np.int64], box: ColorBox, axis: int) -> int:
    """The mean of red (``axis`` 0), green (1) or blue (2) of a box's pixels, 0 to 255, rounded down."""
    middles = np.arange(box.low[axis], box.high[axis]) * BIN + BIN // 2
    return int(_profile(counts, box, axis) @ middles) // box.population
