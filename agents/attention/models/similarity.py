"""Where a scene looks like a target: the similarity maps of IVSN (Zhang et al. 2018, "Finding any Waldo").

VGG16's features of the target are the kernel of a convolution over its features of the search image. Two ways of it
are public, and both are here:

- ``tiled`` (the authors' Lua and Matlab code, 2018): the search image in tiles of 224 x 224; a tile at the right or
  lower edge that is smaller is stretched to that. The target at 28 x 28. Pools round their sizes up, as Caffe's do. The
  kernel is what the target is after a pool (512 x 1 x 1 after pool5), applied with one cell of padding to the tile
  before that pool. A tile's map is brought to the size of its piece of the image bicubically and pasted there; the
  whole is then brought to 0..1.
- ``whole`` (their PyTorch code, 2024): the search image at 512 x 512 and the target at 32 x 32, both before the pool (a
  kernel of 512 x 2 x 2 at relu5_3), one cell of padding, then bilinearly to the frame.

Resizing follows what those programs called: in ``tiled``, images by Torch7's ``image.scale`` (means over areas where
they shrink, linear from corner to corner where they grow) and maps by Matlab's ``imresize`` (cubic with a = -0.5,
widened where it shrinks, mirrored at the border); in ``whole``, images by Pillow and maps as torchvision does it. Not
followed, because they belong to the programs and not to the method: images first brought to 1280 x 1024 (here an image
keeps its size), tiles kept as JPEG files, values up to 256, and the convolution's random bias (here 0: a constant
changes no maximum). Stretched tiles are rounded to whole numbers, which is our choice: they take a quarter of the
memory.

Everything behind VGG16's convolutions is done for one tile or image at a time, so that its rounding cannot depend on
what else is in the batch. This module imports no torch until a function is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from agents.attention.models.vgg import LAYERS, Preprocessing, normalise

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import nn

Variant = Literal["tiled", "whole"]
TargetLayer = Literal["pool1", "pool2", "pool3", "pool4", "pool5"]
BottomUp = Literal["relu4_3", "relu5_3"]

TILE = 224
HALF = 0.501  # what is halfway between two grey levels is frequent, and goes up whatever the rounding noise
PIXELS_AT_ONCE = 2**19  # VGG16 sees about this many pixels at a time (ten tiles), or one image


@dataclass(frozen=True, slots=True)
class Ways:
    """How similarity maps are made; the fields are those of :class:`agents.attention.ivsn.IVSNAgent.Settings`.

    ``bottom_up`` other than None: no target; the map is that layer's sum over channels, brought to the frame likewise.
    """

    variant: Variant = "tiled"
    target_layer: TargetLayer = "pool5"
    target_size: int | None = None
    search_size: int = 512
    bottom_up: BottomUp | None = None
    preprocessing: Preprocessing = "imagenet"

    @property
    def side(self) -> int:
        """Side in pixels of what VGG16 sees of the search image at a time."""
        return TILE if self.variant == "tiled" else self.search_size

    @property
    def target_side(self) -> int:
        """Side in pixels to which the target is brought."""
        return self.target_size or (28 if self.variant == "tiled" else 32)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search image as VGG16 takes it: ``tiles`` uint8 [tiles, 3, side, side] in C order (``whole``: one), and the
    ``frame`` (width, height) of the image in pixels."""

    tiles: torch.Tensor
    frame: tuple[int, int]


def search_image(pixels: NDArray[np.uint8], ways: Ways) -> Search:
    """A search image from its pixels [height, width, 3]; CPU, thread-safe."""
    import torch

    height, width, _ = pixels.shape
    if ways.variant == "whole":
        tiles = torch.from_numpy(_pillow(pixels, ways.search_size)[None].copy())
    else:
        tiles = torch.from_numpy(_cut(pixels))
    return Search(tiles.permute(0, 3, 1, 2), (width, height))


def target_image(pixels: NDArray[np.uint8], ways: Ways) -> torch.Tensor:
    """A target from its pixels [height, width, 3]: float32 [3, side, side] in 0..255; CPU, thread-safe."""
    import torch

    side = ways.target_side
    small = _scale(pixels, side, side) if ways.variant == "tiled" else _pillow(pixels, side)
    return torch.from_numpy(small.astype("float32")).permute(2, 0, 1).contiguous()


def similarity_maps(
    features: nn.Sequential, search: Sequence[Search], targets: Sequence[torch.Tensor | None], ways: Ways
) -> torch.Tensor:
    """Similarity maps [batch, height, width], float32 in 0..1, on the device of ``features``.

    ``features`` is a VGGAgent's; ``search`` and ``targets`` come from :func:`search_image` and :func:`target_image`,
    all frames of one size (see :func:`responses` and :func:`paste` for others). A target is None only, and then for
    every item, where ``ways.bottom_up`` is given. A flat map is 0 everywhere; one that is not finite is NaN.
    """
    return paste(responses(features, search, targets, ways), search[0].frame, ways)


def responses(
    features: nn.Sequential, search: Sequence[Search], targets: Sequence[torch.Tensor | None], ways: Ways
) -> list[torch.Tensor]:
    """What the convolution finds in each tile: [tiles, rows, columns] for each item, whatever the frames are."""
    import torch
    from torch.nn import functional

    device = next(features.parameters()).device
    layer = LAYERS[ways.bottom_up] if ways.bottom_up else LAYERS[ways.target_layer] - 1
    kernels = [None if target is None else _kernel(features, target.to(device), ways) for target in targets]
    owners = [index for index, item in enumerate(search) for _ in item.tiles]
    tiles = torch.cat([item.tiles for item in search])
    portion = max(1, PIXELS_AT_ONCE // ways.side**2)
    found: list[list[torch.Tensor]] = [[] for _ in search]
    for start in range(0, len(tiles), portion):
        pixels, chosen = tiles[start : start + portion].to(device), owners[start : start + portion]
        if device.type == "cuda":  # cuDNN chooses an algorithm by the size of a batch: all portions have one size
            pixels = functional.pad(pixels, (0, 0, 0, 0, 0, 0, 0, portion - len(chosen)))
        for owner, cells in zip(chosen, features[: layer + 1](_normalised(pixels, ways)), strict=False):
            kernel = kernels[owner]
            found[owner].append(cells.sum(0) if kernel is None else _correlate(cells, kernel))
    return [torch.stack(one) for one in found]


def paste(parts: Sequence[torch.Tensor], frame: tuple[int, int], ways: Ways) -> torch.Tensor:
    """Maps [batch, height, width] in 0..1 from the :func:`responses` to images of one ``frame`` (width, height)."""
    import torch
    from torch.nn import functional

    width, height = frame
    cells = parts[0].shape[1]
    maps = parts[0].new_empty(len(parts), height, width)
    if ways.variant == "tiled":
        down, across = (_pasting(side, cells).to(maps.device) for side in (height, width))
        rows = down.shape[1] // cells
    for part, target in zip(parts, maps, strict=True):
        if ways.variant == "tiled":
            grid = part.view(rows, -1, cells, cells).transpose(1, 2).reshape(rows * cells, -1)
            torch.linalg.multi_dot([down, grid, across.T], out=target)
        else:
            shape = (height, width)
            target.copy_(functional.interpolate(part[None], shape, mode="bilinear", antialias=True)[0, 0])
        low, high = target.aminmax()
        target.sub_(low).div_(torch.where(high == low, 1.0, high - low))
    return maps


def _kernel(features: nn.Sequential, target: torch.Tensor, ways: Ways) -> torch.Tensor:
    """A target [3, side, side] as the kernel [channels, k, k]. Always alone: on small images the convolutions' rounding
    depends on the batch (seen with torch's on the CPU)."""
    from torch import nn
    from torch.nn import functional

    whole = ways.variant == "whole"
    pixels = _normalised(target[None], ways)
    for index in range(LAYERS[ways.target_layer] + (0 if whole else 1)):
        pooling = isinstance(features[index], nn.MaxPool2d)
        pixels = functional.max_pool2d(pixels, 2, 2, ceil_mode=not whole) if pooling else features[index](pixels)
    return pixels[0]


def _normalised(pixels: torch.Tensor, ways: Ways) -> torch.Tensor:
    import torch

    pixels = normalise(pixels, ways.preprocessing)
    return pixels.contiguous(memory_format=torch.channels_last)  # 1.1 to 1.3 times as fast on the CPU


def _correlate(cells: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """The convolution of [channels, side, side] with one kernel [channels, k, k], one cell of zeros around it:
    [side + 3 - k, side + 3 - k].

    Row by row of the kernel: first what each of the row's places gives in each cell (a product of matrices), then the
    sum of these along the row. A convolution with a single output channel took 4 to 25 times as long on the CPU,
    and one with groups gave results that depended on the batch.
    """
    from torch.nn import functional

    channels, side, _ = cells.shape
    places = kernel.shape[1]
    flat = cells.permute(1, 2, 0).view(side * side, channels).T
    if places == 1:
        return functional.pad((kernel.view(1, channels) @ flat).view(side, side), (1, 1, 1, 1))
    length = side + 3 - places
    total = cells.new_zeros(length, length)
    for row in range(places):
        planes = (kernel[:, row].flip(1).T @ flat)[None]
        along = functional.fold(planes, (side, length), (1, places), padding=(0, places - 2))[0, 0]
        total += functional.pad(along, (0, 0, 1, 1))[row : row + length]
    return total


def _cut(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The tiles of an image, [tiles, TILE, TILE, 3] in C order; narrower pieces at the edges are stretched."""
    import numpy as np

    (down, rows), (across, columns) = (_pieces(side) for side in pixels.shape[:2])
    canvas = np.empty((rows * TILE, columns * TILE, 3), np.uint8)
    for top, bottom, height in down:
        for left, right, width in across:
            piece = pixels[top:bottom, left:right]
            if piece.shape[:2] != (height, width):
                piece = np.floor(_scale(piece, height, width) + HALF).astype(np.uint8)
            canvas[top : top + height, left : left + width] = piece
    grid = canvas.reshape(rows, TILE, columns, TILE, 3)
    return np.ascontiguousarray(grid.transpose(0, 2, 1, 3, 4)).reshape(-1, TILE, TILE, 3)


def _pieces(side: int) -> tuple[list[tuple[int, int, int]], int]:
    """The whole tiles of a side together, and the rest of it: (start, end, length on the canvas); number of tiles."""
    whole = side - side % TILE
    pieces = [(0, whole, whole)] if whole else []
    return (pieces, side // TILE) if whole == side else ([*pieces, (whole, side, TILE)], side // TILE + 1)


def _scale(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.float64]:
    """Pixels [height, width, channels] of another size, as Torch7's image.scale makes them."""
    import numpy as np

    rows, columns, _ = pixels.shape
    scaled: NDArray[np.float64] = pixels.astype(np.float64)
    if rows != height:
        scaled = (_scaling(rows, height) @ scaled.reshape(rows, -1)).reshape(height, columns, -1)
    return scaled if columns == width else _scaling(columns, width) @ scaled


@lru_cache(maxsize=64)
def _scaling(source: int, length: int) -> NDArray[np.float64]:
    """Weights [length, source]: means over areas where it shrinks, linear from corner to corner where it grows."""
    import numpy as np

    at = np.arange(source)
    weights: NDArray[np.float64]
    if length < source:
        ends = np.arange(length + 1)[:, None] * (source / length)
        shares = np.minimum(at + 1, ends[1:]) - np.maximum(at, ends[:-1])
        weights = np.maximum(shares, 0) * (length / source)
    else:
        places = np.arange(length)[:, None] * ((source - 1) / max(length - 1, 1))
        weights = np.maximum(1 - np.abs(places - at), 0)
    return weights


def _pillow(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BILINEAR))


@lru_cache(maxsize=16)
def _pasting(side: int, cells: int) -> torch.Tensor:
    """Weights [side, tiles * cells] that bring the maps of a row of tiles to the pixels of a side, block by block."""
    import torch

    blocks = [_cubic(min(TILE, side - start), cells) for start in range(0, side, TILE)]
    weights: torch.Tensor = torch.block_diag(*blocks)
    return weights.to(torch.float32)


def _cubic(length: int, cells: int) -> torch.Tensor:
    """Weights [length, cells] of Matlab's imresize, cubic, in float64."""
    import torch

    scale = length / cells
    narrow = min(scale, 1.0)  # where it shrinks the kernel is as much wider
    places = (torch.arange(length, dtype=torch.float64) + 0.5) / scale - 0.5
    near = torch.arange(-2 * cells, 3 * cells)  # as far as the widest kernel reaches
    distance = (places[:, None] - near).abs() * narrow
    inner = (1.5 * distance - 2.5) * distance**2 + 1
    outer = ((2.5 - 0.5 * distance) * distance - 4) * distance + 2
    weights = torch.where(distance <= 1, inner, torch.where(distance < 2, outer, 0.0))
    weights /= weights.sum(1, keepdim=True)
    mirrored = weights.view(length, 5, cells)  # every other copy of the map is a mirror image
    return mirrored[:, ::2].sum(1) + mirrored[:, 1::2].sum(1).flip(1)
