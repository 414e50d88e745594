"""IVSN for one image, slow and plain: loops over tiles and pixels; no code of the package.

All of it is in float64. Written from the description in Zhang et al. (2018) and from what Torch7's image.scale and
Matlab's imresize are said to do.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file
from torch.nn import functional

from tests.agents.attention import plain_vgg
from tests.agents.attention.gbvs_reference import imresize_matrix, unit

TILE = 224


class Features:
    """VGG16 from a file of weights, on one image [height, width, 3] of numbers in 0..255 at a time."""

    def __init__(self, path: Path, preprocessing: str) -> None:
        self.weights = load_file(path)
        self.preprocessing = preprocessing

    def __call__(self, image: NDArray[Any], block: int, pooled: bool, caffe: bool) -> NDArray[Any]:
        """After the last convolution of ``block`` (1 to 5), or its pool if ``pooled``: [channels, rows, columns].
        ``caffe``: pools that round up."""
        planes = self.convolved(image, block, caffe)
        return plain_vgg.pooled(planes, caffe) if pooled else planes

    def convolved(self, image: NDArray[Any], block: int, caffe: bool) -> NDArray[Any]:
        if block > 1:
            planes = plain_vgg.pooled(self.convolved(image, block - 1, caffe), caffe)
        else:
            planes = plain_vgg.taken(image, self.preprocessing)
        return plain_vgg.block(planes, self.weights, block)


def scale_line(line: NDArray[Any], length: int) -> NDArray[Any]:
    """The first axis of an array at another length, as Torch7's image.scale does it."""
    source = len(line)
    scaled = np.empty((length, *line.shape[1:]))
    for out in range(length):
        if length < source:
            start = out * source / length
            end = (out + 1) * source / length
            total = 0.0
            weight = 0.0
            for k in range(math.floor(start), min(math.ceil(end), source)):
                share = min(k + 1, end) - max(k, start)
                total = total + share * line[k].astype(np.float64)
                weight = weight + share
            scaled[out] = total / weight
        else:
            place = out * (source - 1) / (length - 1) if length > 1 else 0.0
            low = min(math.floor(place), source - 1)
            high = min(low + 1, source - 1)
            scaled[out] = line[low] + (place - low) * (line[high].astype(np.float64) - line[low])
    return scaled


def scale(image: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    return scale_line(scale_line(image, height).swapaxes(0, 1), width).swapaxes(0, 1)


def modulated(cells: NDArray[Any], kernel: NDArray[Any]) -> NDArray[Any]:
    """The convolution, one cell of zeros around."""
    both = [torch.as_tensor(np.ascontiguousarray(planes))[None] for planes in (cells, kernel)]
    return functional.conv2d(both[0], both[1], padding=1)[0, 0].numpy()


def tiled_map(
    features: "Features",
    image: NDArray[Any],
    target: NDArray[Any],
    block: int = 5,
    target_size: int = 28,
    bottom_up: int | None = None,
) -> NDArray[Any]:
    """The map of an image uint8 [height, width, 3]; without a target the sum over channels of block ``bottom_up``."""
    height, width, _ = image.shape
    if bottom_up is None:
        kernel = features(scale(target, target_size, target_size), block, True, True)
    whole = np.empty((height, width))
    for top in range(0, height, TILE):
        for left in range(0, width, TILE):
            piece = image[top : top + TILE, left : left + TILE]
            tile = scale(piece, TILE, TILE)
            if bottom_up is None:
                out = modulated(features(tile, block, False, True), kernel)
            else:
                out = features(tile, bottom_up, False, True).sum(0, dtype=np.float64)
            rows, columns = piece.shape[:2]
            whole[top : top + rows, left : left + columns] = (
                imresize_matrix(len(out), rows) @ out @ imresize_matrix(len(out[0]), columns).T
            )
    return unit(whole)


def whole_map(
    features: "Features",
    image: NDArray[Any],
    target: NDArray[Any],
    block: int = 5,
    target_size: int = 32,
    bottom_up: int | None = None,
    search_size: int = 512,
) -> NDArray[Any]:
    """The same at one size of the whole image, with the target's features before the pool."""
    height, width, _ = image.shape

    def at(pixels: NDArray[Any], side: int) -> NDArray[Any]:
        return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BILINEAR))

    if bottom_up is None:
        kernel = features(at(target, target_size), block, False, False)
        out = modulated(features(at(image, search_size), block, False, False), kernel)
    else:
        out = features(at(image, search_size), bottom_up, False, False).sum(0, dtype=np.float64)
    out = torch.as_tensor(out)[None, None]
    return unit(functional.interpolate(out, (height, width), mode="bilinear", antialias=True)[0, 0].numpy())
