"""Average pooling whose windows grow with the distance from the middle of the map (Gupta et al. 2021, EccNet).

The outputs of a square map of ``side`` cells lie on a grid of ceil(side / stride) cells a side, and in rings about the
cell in its middle (index out // 2, in both directions). Radii are in output cells, windows in input cells, ``deg2px``
is the number of input cells in a degree; all rounding is to the nearest whole number, halves to the even one:

- the fovea: distance below round(fovea deg2px / 2), window ``smallest``;
- rings, each round(quantum deg2px / 2) wide. With an outer radius r the window is
  smallest + round(slope (2 r - fovea deg2px));
- the last ring, the one whose outer radius reaches half the grid, takes all that is left, corners too. A fovea whose
  radius is above half the grid takes everything.

A cell belongs to a ring when its distance from the middle is below the outer radius and not below the inner one.
Windows lie as TensorFlow's "same" padding puts them: of the padding that a window of size k needs,
max((out - 1) stride + k - side, 0), the smaller half stands before the map. Padding has no part in an average.

Maps are worked on in pieces: a :class:`Region` of the outputs needs only a region of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

CHANNELS_AT_ONCE = 32  # sums are in float64: the table of a piece of a map is made for so many channels at a time


class Region(NamedTuple):
    """A rectangle of cells; ``bottom`` and ``right`` are exclusive."""

    top: int
    left: int
    bottom: int
    right: int

    def grown(self, cells: int, within: Region) -> Region:
        """This and so many cells more on every side, as far as they lie in ``within``."""
        return Region(
            max(self.top - cells, within.top),
            max(self.left - cells, within.left),
            min(self.bottom + cells, within.bottom),
            min(self.right + cells, within.right),
        )

    def times(self, factor: int) -> Region:
        """The same rectangle on a grid ``factor`` times as fine."""
        return Region(*(bound * factor for bound in self))

    def over(self, factor: int) -> Region:
        """The smallest rectangle on a grid ``factor`` times as coarse that covers this one."""
        return Region(self.top // factor, self.left // factor, -(-self.bottom // factor), -(-self.right // factor))

    def with_(self, other: Region) -> Region:
        """The smallest rectangle that covers both."""
        return Region(
            min(self.top, other.top),
            min(self.left, other.left),
            max(self.bottom, other.bottom),
            max(self.right, other.right),
        )

    def shared(self, other: Region) -> Region | None:
        """The rectangle that lies in both, if there is one."""
        top, left = max(self.top, other.top), max(self.left, other.left)
        bottom, right = min(self.bottom, other.bottom), min(self.right, other.right)
        return Region(top, left, bottom, right) if top < bottom and left < right else None

    def inside(self, outer: Region) -> tuple[EllipsisType, slice, slice]:
        """Where this lies in a tensor [..., rows, columns] that holds ``outer``."""
        return (
            ...,
            slice(self.top - outer.top, self.bottom - outer.top),
            slice(self.left - outer.left, self.right - outer.left),
        )


@dataclass(frozen=True, slots=True)
class Pooling:
    """How windows grow; the names are those of the module's text. ``fovea`` and ``quantum`` are in degrees.

    Raises ValueError where a ring would have no width or a window would leave out cells between it and the next.
    """

    slope: float
    deg2px: float
    fovea: float = 4.0
    quantum: float = 1.0
    smallest: int = 2
    stride: int = 2

    def __post_init__(self) -> None:
        if round(self.quantum * self.deg2px / 2) < 1:
            raise ValueError(f"a ring must be at least one cell wide: quantum {self.quantum} x {self.deg2px} / 2")
        if self.slope < 0 or self.stride < 1 or self.smallest < self.stride:
            raise ValueError("windows must cover the map: slope >= 0, smallest >= stride >= 1")

    def outputs(self, side: int) -> int:
        """Cells along a side of what comes out of a map of ``side`` cells."""
        return -(-side // self.stride)

    def rings(self, side: int) -> list[tuple[int, int]]:
        """(outer radius in output cells, window in input cells) from the fovea outwards."""
        half = self.outputs(side) / 2
        radius = round(self.fovea * self.deg2px / 2)
        found = [(radius, self.smallest)]
        reached = radius > half
        while not reached:
            radius += round(self.quantum * self.deg2px / 2)
            found.append((radius, self.smallest + round(self.slope * (2 * radius - self.fovea * self.deg2px))))
            reached = radius >= half
        return found

    def windows(self, side: int) -> NDArray[np.int64]:
        """The window of every output cell, [outputs, outputs]."""
        import numpy as np

        offset = np.arange(self.outputs(side)) - self.outputs(side) // 2
        squared = offset[:, None] ** 2 + offset**2
        rings = self.rings(side)
        inner = [radius**2 for radius, _ in rings[:-1]]
        return np.array([window for _, window in rings])[np.searchsorted(inner, squared, side="right")]


class Pool(Protocol):
    """Pooling of square maps of one size, in pieces."""

    def needs(self, outputs: Region) -> Region:
        """The inputs that these outputs are averages of."""

    def reached(self, inputs: Region) -> Region:
        """The smallest rectangle of outputs that holds all in whose windows these inputs lie."""

    def __call__(self, features: torch.Tensor, held: Region, outputs: Region) -> torch.Tensor:
        """The pooled map at ``outputs``. ``features`` [batch, channels, rows, columns] holds the region ``held`` of
        the map, at least what ``outputs`` needs."""


def pool(side: int, pooling: Pooling) -> Pool:
    """The pooling of maps of ``side`` cells: ordinary where no window grows, as fast as that can be had."""
    plain = all(window == pooling.stride for _, window in pooling.rings(side)) and side % pooling.stride == 0
    return Ordinary(pooling.stride) if plain else Eccentric(side, pooling)


@dataclass(frozen=True, slots=True)
class Ordinary:
    """Windows of ``size`` cells side by side, the same everywhere; for maps whose sides are multiples of it."""

    size: int

    def needs(self, outputs: Region) -> Region:
        return outputs.times(self.size)

    def reached(self, inputs: Region) -> Region:
        return inputs.over(self.size)

    def __call__(self, features: torch.Tensor, held: Region, outputs: Region) -> torch.Tensor:
        import torch

        return torch.nn.functional.avg_pool2d(features[self.needs(outputs).inside(held)], self.size)


class Eccentric:
    """Windows that grow with the distance from the middle, by way of a table of sums in float64."""

    def __init__(self, side: int, pooling: Pooling) -> None:
        import numpy as np

        windows, stride = pooling.windows(side), pooling.stride
        before = np.maximum((len(windows) - 1) * stride + windows - side, 0) // 2
        start = np.arange(len(windows)) * stride
        self.top, self.left = start[:, None] - before, start - before
        self.bottom, self.right = np.minimum(self.top + windows, side), np.minimum(self.left + windows, side)
        self.top, self.left = np.maximum(self.top, 0), np.maximum(self.left, 0)

    def needs(self, outputs: Region) -> Region:
        rows, columns = slice(outputs.top, outputs.bottom), slice(outputs.left, outputs.right)
        return Region(
            int(self.top[rows, columns].min()),
            int(self.left[rows, columns].min()),
            int(self.bottom[rows, columns].max()),
            int(self.right[rows, columns].max()),
        )

    def reached(self, inputs: Region) -> Region:
        touching = (self.top < inputs.bottom) & (self.bottom > inputs.top)
        touching &= (self.left < inputs.right) & (self.right > inputs.left)
        rows, columns = touching.any(1).nonzero()[0], touching.any(0).nonzero()[0]
        return Region(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)

    def __call__(self, features: torch.Tensor, held: Region, outputs: Region) -> torch.Tensor:
        import torch

        batch, channels, rows, columns = features.shape
        cells = slice(outputs.top, outputs.bottom), slice(outputs.left, outputs.right)
        bounds = self.top[cells] - held.top, self.bottom[cells] - held.top
        sides = self.left[cells] - held.left, self.right[cells] - held.left
        counts = (bounds[1] - bounds[0]) * (sides[1] - sides[0])
        corners = [
            torch.from_numpy(row * (columns + 1) + column).flatten().to(features.device)
            for row in bounds
            for column in sides
        ]
        divisor = torch.from_numpy(counts).flatten()[:, None].to(features.device)
        pooled = features.new_empty(batch, *counts.shape, channels)  # channels last, as convolutions are fastest
        for image, target in zip(features, pooled, strict=True):
            for first in range(0, channels, CHANNELS_AT_ONCE):
                piece = image[first : first + CHANNELS_AT_ONCE]
                table = torch.zeros(rows + 1, columns + 1, len(piece), dtype=torch.float64, device=features.device)
                table[1:, 1:] = piece.permute(1, 2, 0)
                sums = table.cumsum_(0).cumsum_(1).flatten(0, 1)
                north_west, north_east, south_west, south_east = (sums[corner] for corner in corners)
                means = (south_east - north_east - south_west + north_west) / divisor
                target[..., first : first + CHANNELS_AT_ONCE] = means.unflatten(0, counts.shape)
        return pooled.permute(0, 3, 1, 2)
