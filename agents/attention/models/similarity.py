"""The similarity maps of IVSN (Zhang et al. 2018, "Finding any Waldo"): VGG16's features of the target are the kernel
of a convolution over those of the search image, as in the authors' programs:

- ``tiled`` (Lua and Matlab, 2018): tiles of 224 x 224, smaller pieces stretched, target at 28 x 28, Caffe's pools. The
  kernel is the target after a pool, applied to the tile before it. Resizing is Torch7's and, of maps, Matlab's.
- ``whole`` (PyTorch, 2024): image at 512 x 512, target at 32 x 32, both before the pool, then bilinearly to the frame.

Not followed: images at 1280 x 1024 first, tiles as JPEG, values up to 256, the convolution's random bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image as PILImage
from torch import Tensor, nn
from torch.nn import functional

from agents.attention.models.resizing import area_weights, cubic_weights, min_max
from agents.attention.models.vgg import LAYERS, Preprocessing, normalise
from agents.models.transfer import uploaded

Variant = Literal["tiled", "whole"]
TargetLayer = Literal["pool1", "pool2", "pool3", "pool4", "pool5"]
BottomUp = Literal["relu4_3", "relu5_3"]

TILE = 224
PIXELS_AT_ONCE = 30 * TILE**2  # on a GPU VGG16 sees as many pixels at a time as an image of 1280 x 1024 has in tiles
TARGETS_AT_ONCE = 8  # likewise


@dataclass(frozen=True, slots=True)
class Method:
    """How a map is made; the settings of ``ivsn``."""

    variant: Variant = "tiled"
    """The image in tiles of 224 pixels, or whole."""
    target_layer: TargetLayer = "pool5"
    """The layer of VGG16 whose response to the target is the kernel."""
    target_size: int | None = None
    """Side of the target in pixels; None: 28 in tiles, 32 whole."""
    search_size: int = 512
    """Side of a whole image in pixels."""
    bottom_up: BottomUp | None = None
    """The layer whose sum over channels is the map, without a target; None: a target is looked for."""
    preprocessing: Preprocessing = "imagenet"
    """The mean and deviation of pixels that the weights need."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """An image to be searched."""

    tiles: Tensor
    """[tiles, 3, side, side] in 0..255, float32; of a whole image uint8."""
    frame: tuple[int, int]
    """(width, height) of the image in pixels."""


def search_image(pixels: NDArray[np.uint8], method: Method) -> Search:
    """A search image from its pixels [height, width, 3]; CPU, thread-safe."""
    height, width, _ = pixels.shape
    if method.variant == "whole":
        tiles = torch.from_numpy(_pillow(pixels, method.search_size)[None].copy())
    else:
        tiles = torch.from_numpy(_cut_tiles(pixels))
    return Search(tiles.permute(0, 3, 1, 2), (width, height))


def target_image(pixels: NDArray[np.uint8], method: Method) -> Tensor:
    """A target from its pixels [height, width, 3]: float32 [3, side, side] in 0..255; CPU, thread-safe."""
    side = method.target_size or (28 if method.variant == "tiled" else 32)
    small = _scale(pixels, side, side) if method.variant == "tiled" else torch.tensor(_pillow(pixels, side))
    return small.permute(2, 0, 1).float().contiguous()


def responses(
    features: nn.Sequential, search: Sequence[Search], targets: Sequence[Tensor | None], method: Method
) -> list[Tensor]:
    """The convolutions [tiles, rows, columns] for each item; ``targets`` are None only with ``method.bottom_up``."""
    device = next(features.parameters()).device
    layer = LAYERS[method.bottom_up] if method.bottom_up else LAYERS[method.target_layer] - 1
    kernels = target_kernels(features, [target for target in targets if target is not None], method)
    owners = [index for index, item in enumerate(search) for _ in item.tiles]
    tiles = [tile.permute(1, 2, 0) for item in search for tile in item.tiles]  # as they lie in memory
    portion = 1 if device.type == "cpu" else max(1, PIXELS_AT_ONCE // search[0].tiles[0, 0].numel())
    responses = []
    for start in range(0, len(tiles), portion):
        pixels = _portion(tiles[start : start + portion], portion, device).permute(0, 3, 1, 2)
        cells = features[: layer + 1](normalise(pixels, method.preprocessing))
        if not kernels:
            responses.append(cells.sum(1))
            continue
        of_tiles = torch.stack([kernels[owners[min(start + at, len(owners) - 1)]] for at in range(portion)])
        # One convolution of as many groups as there are tiles: each has its own kernel.
        responses.append(functional.conv2d(cells.flatten(0, 1)[None], of_tiles, padding=1, groups=portion)[0])
    return list(torch.cat(responses)[: len(tiles)].split([len(item.tiles) for item in search]))


def paste(parts: Sequence[Tensor], frame: tuple[int, int], method: Method) -> Tensor:
    """Maps [batch, height, width] in 0..1 of a ``frame`` (width, height) from :func:`responses`; flat: 0, not finite:
    NaN."""
    width, height = frame
    together = torch.stack(list(parts))
    if method.variant == "whole":
        maps = functional.interpolate(together, (height, width), mode="bilinear", antialias=True)[:, 0]
    else:
        cells = together.shape[-1]
        down = _pasting(height, cells, together.device)
        across = _pasting(width, cells, together.device)
        grid = together.unflatten(1, (down.shape[1] // cells, -1)).transpose(2, 3).flatten(1, 2).flatten(2)
        rows, columns = grid.shape[1:]
        # Whichever order of the two products takes fewer multiplications.
        if height * columns * (rows + width) <= rows * width * (columns + height):
            maps = (down @ grid) @ across.T
        else:
            maps = down @ (grid @ across.T)
    return min_max(maps)


def target_kernels(features: nn.Sequential, targets: Sequence[Tensor], method: Method) -> list[Tensor]:
    """Targets [3, side, side] as kernels [channels, k, k]."""
    device = next(features.parameters()).device
    whole = method.variant == "whole"
    portion = 1 if device.type == "cpu" else TARGETS_AT_ONCE
    kernels: list[Tensor] = []
    for start in range(0, len(targets), portion):
        batch = targets[start : start + portion]
        pixels = normalise(_portion(batch, portion, device), method.preprocessing)
        layers = LAYERS[method.target_layer]
        if not whole:
            layers += 1
        for index in range(layers):
            pooling = isinstance(features[index], nn.MaxPool2d)
            pixels = functional.max_pool2d(pixels, 2, 2, ceil_mode=not whole) if pooling else features[index](pixels)
        kernels += pixels[: len(batch)]
    return kernels


def _portion(images: Sequence[Tensor], count: int, device: torch.device) -> Tensor:
    """Images of a size, with black images up to ``count``, so that cuDNN keeps its algorithm."""
    together = torch.stack(uploaded(images, device))
    return functional.pad(together, (0, 0) * images[0].ndim + (0, count - len(images)))


def _cut_tiles(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The tiles of an image, [tiles, TILE, TILE, 3]; narrower pieces are stretched."""
    down, rows = _pieces(pixels.shape[0])
    across, columns = _pieces(pixels.shape[1])
    tiles = np.empty((rows, columns, TILE, TILE, 3), np.float32)
    canvas = tiles.swapaxes(1, 2)  # the image, [rows, TILE, columns, TILE, 3]
    for top, bottom, height in down:
        for left, right, width in across:
            piece = pixels[top:bottom, left:right]
            scaled = piece if piece.shape[:2] == (height, width) else _scale(piece, height, width).numpy()
            part = canvas[top // TILE : (top + height) // TILE, :, left // TILE : (left + width) // TILE]
            part[:] = scaled.reshape(part.shape)
    return tiles.reshape(-1, TILE, TILE, 3)


def _pieces(side: int) -> tuple[list[tuple[int, int, int]], int]:
    """The full tiles of a side and the rest, as (start, end, length on the canvas), and the number of tiles."""
    whole = side - side % TILE
    count = side // TILE
    pieces = []
    if whole:
        pieces.append((0, whole, whole))
    if whole < side:
        pieces.append((whole, side, TILE))
        count += 1
    return pieces, count


def _scale(pixels: NDArray[np.uint8], height: int, width: int) -> Tensor:
    """Pixels [height, width, channels] at another size, float64, as by Torch7's image.scale."""
    planes = torch.tensor(pixels).permute(2, 0, 1).double()
    rows, columns = planes.shape[1:]
    if rows != height:
        planes = _scaling(rows, height) @ planes
    if columns != width:
        planes = planes @ _scaling(columns, width).T
    return planes.permute(1, 2, 0)


def _scaling(source: int, length: int) -> Tensor:
    """Weights [length, source]: area means where it shrinks, linear from corner to corner where it grows."""
    if length < source:
        return area_weights(source, length)
    positions = torch.arange(length, dtype=torch.float64)[:, None] * ((source - 1) / max(length - 1, 1))
    return (1 - (positions - torch.arange(source)).abs()).clamp(min=0)


def _pillow(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    return np.asarray(PILImage.fromarray(pixels).resize((side, side), PILImage.Resampling.BILINEAR))


@lru_cache(maxsize=16)
def _pasting(side: int, cells: int, device: torch.device) -> Tensor:
    """Weights [side, tiles * cells] from the maps of a row of tiles to the pixels of a side."""
    blocks = [cubic_weights(cells, min(TILE, side - start), "mirrored") for start in range(0, side, TILE)]
    weights: Tensor = torch.block_diag(*blocks)
    return uploaded([weights.float()], device)[0]
