"""Average pooling with windows that grow with the distance from the middle of the map (Gupta et al. 2021, EccNet).

Outputs lie in rings about cell (out // 2, out // 2) of a grid of half the map's side, rounded up. Radii are in output
cells, windows and ``deg2px`` in input cells; halves round to even; padding is TensorFlow's "same".

- The fovea: distance below round(fovea deg2px / 2), window ``smallest``.
- Rings round(quantum deg2px / 2) wide: with outer radius r, window smallest + round(slope (2 r - fovea deg2px)).
- The last ring reaches half the grid and takes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from agents.attention.models.vgg import memory_format

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

STRIDE = 2
CHANNELS_AT_ONCE = 32  # on the CPU: sums are in float64, and the table of a map is made for so many channels at a time


@dataclass(frozen=True, slots=True)
class EccentricPooling:
    """Rings of pooling whose windows grow with the distance from the fovea. Raises ValueError where a ring has no
    width."""

    slope: float
    """How fast a window grows, in cells per cell of distance."""
    deg2px: float
    """Cells of the layer's input in a degree of the visual field."""
    fovea: float = 4.0
    """Width of the fovea in degrees, which has the smallest window."""
    quantum: float = 1.0
    """Width of a ring in degrees."""
    smallest: int = 2
    """Side of the smallest window in cells."""

    def __post_init__(self) -> None:
        if round(self.quantum * self.deg2px / 2) < 1:
            raise ValueError(f"a ring must be at least one cell wide: quantum {self.quantum} x {self.deg2px} / 2")

    def rings(self, side: int) -> list[tuple[int, int]]:
        """(outer radius in output cells, window in input cells) from the fovea outwards."""
        half = -(-side // STRIDE) / 2
        radius = round(self.fovea * self.deg2px / 2)
        rings = [(radius, self.smallest)]
        reached = radius > half
        while not reached:
            radius += round(self.quantum * self.deg2px / 2)
            rings.append((radius, self.smallest + round(self.slope * (2 * radius - self.fovea * self.deg2px))))
            reached = radius >= half
        return rings

    def windows(self, side: int) -> NDArray[np.int64]:
        """The window of every output cell, [outputs, outputs]."""
        import numpy as np

        outputs = -(-side // STRIDE)
        offset = np.arange(outputs) - outputs // 2
        squared = offset[:, None] ** 2 + offset**2
        rings = self.rings(side)
        inner = [radius**2 for radius, _ in rings[:-1]]
        return np.array([window for _, window in rings])[np.searchsorted(inner, squared, side="right")]

    def ordinary(self, side: int) -> bool:
        """Whether all windows are 2 x 2 and side by side."""
        return side % STRIDE == 0 and all(window == STRIDE for _, window in self.rings(side))


def pooled(features: torch.Tensor, pooling: EccentricPooling) -> torch.Tensor:
    """Square maps [batch, channels, side, side], pooled."""
    import torch
    from torch.nn import functional

    side = features.shape[-1]
    on_cpu = features.device.type == "cpu"
    if pooling.ordinary(side):
        return functional.avg_pool2d(features, STRIDE)
    corners, counts = _corners(pooling, side, features.device)
    means = []
    # The sum over a window, by the table of the sums over everything above and to the left of a corner.
    for piece in features.permute(0, 2, 3, 1).split(CHANNELS_AT_ONCE if on_cpu else features.shape[1], dim=3):
        table = functional.pad(piece.double(), (0, 0, 1, 0, 1, 0)).cumsum_(1).cumsum_(2).flatten(1, 2)
        north_west, north_east, south_west, south_east = corners
        sums = table[:, south_east] - table[:, north_east] - table[:, south_west] + table[:, north_west]
        means.append((sums / counts).to(features.dtype))
    pooled = torch.cat(means, 3).permute(0, 3, 1, 2)
    return pooled.contiguous(memory_format=memory_format(features.device))


@lru_cache(maxsize=64)
def _corners(pooling: EccentricPooling, side: int, device: torch.device) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Each window's four corners in the table of sums, and its number of cells [outputs, outputs, 1]."""
    import numpy as np
    import torch

    from agents.models.transfer import uploaded

    windows = pooling.windows(side)
    before = np.maximum((len(windows) - 1) * STRIDE + windows - side, 0) // 2
    first = np.arange(len(windows)) * STRIDE
    top = first[:, None] - before
    left = first - before
    bottom = np.minimum(top + windows, side)
    right = np.minimum(left + windows, side)
    top = np.maximum(top, 0)
    left = np.maximum(left, 0)
    corners = [torch.from_numpy(row * (side + 1) + column) for row in (top, bottom) for column in (left, right)]
    counts = torch.from_numpy((bottom - top) * (right - left))[..., None]
    *corners, counts = uploaded([*corners, counts], device)
    return corners, counts
