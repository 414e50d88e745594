"""Convolutions of 3 x 3 with a quarter of the multiplications: Winograd's minimal filtering F(4 x 4, 3 x 3) (Lavin and
Gray 2016, arXiv 1509.09308, section 4).

On a CPU torch's direct convolutions of VGG16 run at the processor's peak: what is left is to multiply less. A map is
cut into tiles of 6 x 6 that overlap by two; each gives 4 x 4 of the result. A tile's input and the kernels are
transformed to 36 values (the values of polynomials at the points 0, 1, -1, 1/2, -2 and infinity, along either side),
these are multiplied where the direct way has 144 products, and transformed back. The points 0, 1, -1, 2, -2 are better
known, and have three times the error.

The results differ from exact ones by up to 5e-6 of the largest (direct convolutions: 2e-6, most seen in both cases
with 512 channels). What one image gives does not depend on which others are in the batch: each is convolved on its own,
and which way depends on its size alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

POINTS = (0.0, 1.0, -1.0, 0.5, -2.0)
ONE = 1 * 6 + 1  # the one of the 36 values that counts once in each of a tile's 16 results: there the bias is added
# Measured with one and two threads on a Zen 4 with 1 MB of second-level cache: 100 to 400 tiles are equally fast, fewer
# use the transformed weights (37 MB with 512 channels) too seldom, with more the maps are too large for the caches.
TILES_AT_ONCE = 196
FEWEST_TILES = 16  # of one map; with fewer the weights' way through memory takes longer than it saves
FEWEST_CHANNELS = 64  # of inputs; with the three of an image the transforms are most of the work


def quicker(features: nn.Sequential) -> nn.Sequential:
    """The same network, with the same weights in memory, whose convolutions are :class:`Convolution` where it can be
    and pays off. Only one thread at a time may use it."""
    memory = Workspace()
    parts = (Convolution(part, memory) if isinstance(part, nn.Conv2d) and _suits(part) else part for part in features)
    return OneByOne(*parts)


def _suits(part: nn.Conv2d) -> bool:
    return (
        part.in_channels >= FEWEST_CHANNELS
        and (part.kernel_size, part.stride, part.padding, part.dilation) == ((3, 3), (1, 1), (1, 1), (1, 1))
        and (part.groups, part.padding_mode, part.bias is None) == (1, "zeros", False)
    )


class OneByOne(nn.Sequential):
    """A network that takes the images of a batch one after the other on the CPU, as is every part of it that is cut out
    by a slice.

    What a layer gives is then still in the cache when the next one reads it: ten images of 224 x 224 took 1.2 times as
    long together. And none can have an effect on another's rounding.
    """

    def forward(self, input: Tensor) -> Tensor:
        if len(input) < 2 or input.device.type != "cpu":
            return self._all(input)
        return torch.cat([self._all(image) for image in input.split(1)])

    def _all(self, maps: Tensor) -> Tensor:
        for part in self:
            maps = part(maps)
        return maps


class Workspace:
    """Memory that the convolutions of a network use one after the other.

    It is kept: memory that the system has just given is slow at first use, which made a network half as fast again.
    """

    def __init__(self) -> None:
        self.held = torch.empty(0)

    def pair(self, size: int) -> tuple[Tensor, Tensor]:
        """Two flat tensors of at least ``size`` values each, which are whatever was left there."""
        if self.held.numel() < 2 * size:
            with torch.inference_mode(False):  # otherwise nobody could write to it without that mode
                self.held = torch.empty(2 * size)
        first, second = self.held.view(2, -1)
        return first, second


class Convolution(nn.Conv2d):
    """``convolution``, of 3 x 3 with stride 1 and one cell of zeros around, for inference in float32 on the CPU.

    Everything else is left to torch's convolution: other devices and types, small maps, and whatever needs gradients.
    The transformed weights, four times as large, are made at the first call that needs them, from weights that are not
    to change from then on; the others are kept for small maps. The result is in ``channels_last``.
    """

    def __init__(self, convolution: nn.Conv2d, memory: Workspace) -> None:
        super().__init__(convolution.in_channels, convolution.out_channels, 3, padding=1, device="meta")
        self.weight, self.bias = convolution.weight, convolution.bias
        self.memory = memory
        self.kernels: Tensor | None = None  # [36, inputs, outputs]
        kernels, inputs, results = _transforms()
        self._of_kernels, self._of_inputs, self._of_results = kernels, inputs.float(), results.float()

    def forward(self, input: Tensor) -> Tensor:
        height, width = input.shape[2:]
        few = _tiles(height) * _tiles(width) < FEWEST_TILES
        differentiated = torch.is_grad_enabled() and (input.requires_grad or self.weight.requires_grad)
        if few or differentiated or input.device.type != "cpu" or input.dtype != torch.float32:
            return super().forward(input)
        return self._filtered(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def _filtered(self, maps: Tensor) -> Tensor:
        """The convolution of maps [batch, height, width, inputs]: the same with outputs in place of inputs."""
        batch, height, width, _ = maps.shape
        if self.kernels is None:
            self.kernels = self._transformed()
        assert self.bias is not None
        rows, columns = _tiles(height), _tiles(width)
        strips = -(-rows // max(1, TILES_AT_ONCE // columns))
        high = -(-rows // strips)  # rows of tiles in a strip
        one, other = self.memory.pair(36 * high * columns * max(self.in_channels, self.out_channels))
        found = maps.new_empty(batch, rows, 4, columns, 4, self.out_channels)
        for image, into in zip(maps, found, strict=True):
            for top in range(0, rows, high):
                tiles = _cut(image, top, min(high, rows - top), columns)
                count = tiles.shape[2] * columns
                cut = _part(one, 36, count * self.in_channels)
                cut.view(tiles.shape).copy_(tiles)
                values = torch.mm(self._of_inputs, cut, out=_part(other, 36, count * self.in_channels))
                values = values.view(36, count, self.in_channels)
                products = torch.bmm(values, self.kernels, out=_part(one, 36, count, self.out_channels))
                products[ONE] += self.bias
                results = _part(other, 16, count * self.out_channels)
                torch.mm(self._of_results, products.view(36, -1), out=results)
                results = results.view(4, 4, -1, columns, self.out_channels)
                into[top : top + high].copy_(results.permute(2, 0, 3, 1, 4))
        whole = found.view(batch, 4 * rows, 4 * columns, self.out_channels)
        return whole[:, :height, :width].contiguous()

    def _transformed(self) -> Tensor:
        weights = self.weight.detach().permute(2, 3, 1, 0).reshape(9, -1).double()
        return (self._of_kernels @ weights).float().view(36, self.in_channels, self.out_channels)


def _tiles(side: int) -> int:
    """How many tiles a side is cut into; the last may reach beyond it."""
    return -(-side // 4)


def _part(of: Tensor, *shape: int) -> Tensor:
    """The first values of flat memory, as a tensor of this shape."""
    return of[: torch.Size(shape).numel()].view(shape)


def _cut(image: Tensor, top: int, rows: int, columns: int) -> Tensor:
    """Tiles of an image [height, width, channels] from a row of tiles on: [6, 6, rows, columns, channels].

    With zeros around the image, and beyond it where the last tiles reach further.
    """
    _, width, channels = image.shape
    padded = image.new_zeros(4 * rows + 2, 4 * columns + 2, channels)
    above = max(4 * top - 1, 0)
    seen = image[above : 4 * (top + rows) + 1]
    first = above - (4 * top - 1)
    padded[first : first + len(seen), 1 : width + 1] = seen
    row, column, channel = padded.stride()
    return padded.as_strided((6, 6, rows, columns, channels), (row, column, 4 * row, 4 * column, channel))


def _transforms() -> tuple[Tensor, Tensor, Tensor]:
    """Matrices in float64 for kernels [36, 9], tiles [36, 36] and results [16, 36], each along both sides at once.

    By Toom and Cook: of a tile's six values and a kernel's three as polynomials, their values at the points; the last
    point is infinity.
    """
    results, kernels, inputs = np.zeros((4, 6)), np.zeros((6, 3)), np.zeros((6, 6))
    for index, point in enumerate(POINTS):
        others = [other for other in POINTS if other != point]
        results[:, index] = point ** np.arange(4)
        kernels[index] = point ** np.arange(3) / np.prod([point - other for other in others])
        inputs[index, :5] = np.poly(others)[::-1]  # the coefficients of the polynomial that is 0 at the others
    results[3, 5] = kernels[5, 2] = 1
    inputs[5] = np.poly(POINTS)[::-1]
    of_kernels, of_inputs, of_results = (torch.from_numpy(np.kron(one, one)) for one in (kernels, inputs, results))
    return of_kernels, of_inputs, of_results
