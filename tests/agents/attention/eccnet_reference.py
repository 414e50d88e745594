"""EccNet for one image, slow and plain: a whole view for every fixation, loops over the outputs of its pools; no code
of the package.

All of it is in float64. Written from the description in Gupta et al. (2021) and from
what TensorFlow and OpenCV document of "same" padding, Gaussian blurs and their borders.
"""

import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file
from torch.nn import functional

from tests.agents.attention import plain_vgg


def window_at(
    row: int, column: int, side: int, slope: float, deg2px: float, fovea: float = 4, quantum: int = 1, smallest: int = 2
) -> int:
    """The window of one output of a pool: walk outwards, ring after ring, until one holds it."""
    outputs = math.ceil(side / 2)
    distance = math.hypot(row - outputs // 2, column - outputs // 2)
    radius = round(fovea * deg2px / 2)
    width = round(quantum * deg2px / 2)
    if distance < radius or radius > outputs / 2:
        return smallest
    while True:
        radius += width
        if distance < radius or radius >= outputs / 2:
            return smallest + round(slope * (2 * radius - fovea * deg2px))


def span(index: int, window: int, side: int) -> tuple[int, int]:
    """The cells from first to end that one output averages along one direction."""
    padding = max((math.ceil(side / 2) - 1) * 2 + window - side, 0)
    first = index * 2 - padding // 2
    return max(first, 0), min(first + window, side)


def pooled(
    features: NDArray[Any], slope: float, deg2px: float, fovea: float = 4, quantum: int = 1, smallest: int = 2
) -> NDArray[Any]:
    """A square map [channels, side, side], pooled cell by cell."""
    side = features.shape[-1]
    outputs = math.ceil(side / 2)
    found = np.empty((len(features), outputs, outputs))
    for row in range(outputs):
        for column in range(outputs):
            window = window_at(row, column, side, slope, deg2px, fovea, quantum, smallest)
            (top, bottom), (left, right) = (span(index, window, side) for index in (row, column))
            found[:, row, column] = features[:, top:bottom, left:right].mean(axis=(1, 2), dtype=np.float64)
    return found


def halved(features: NDArray[Any]) -> NDArray[Any]:
    """Ordinary 2 x 2 averages."""
    rows, columns = features.shape[1:]
    return features.reshape(len(features), rows // 2, 2, columns // 2, 2).mean((2, 4), dtype=np.float64)


class EccNet:
    """The model with the settings of an agent."""

    def __init__(self, path: Path, settings: Any) -> None:
        self.weights = load_file(path)
        self.settings = settings

    def blocks(self, image: NDArray[Any]) -> Iterator[Any]:
        """Features before and after the pool of each block."""
        chosen = self.settings
        values = plain_vgg.taken(image, chosen.preprocessing)
        for number, (slope, deg2px) in enumerate(zip(chosen.slopes, chosen.deg2px, strict=True), 1):
            before = plain_vgg.block(values, self.weights, number)
            values = pooled(before, slope, deg2px, chosen.fovea, chosen.rf_quant, chosen.rf_min)
            yield before, values

    def kernels(self, target: NDArray[Any]) -> list[NDArray[Any]]:
        """Of blocks 3, 4 and 5: what their pools and ordinary pools down to 1/32 make of the target."""
        found = []
        for number, (_, features) in enumerate(self.blocks(target), 1):
            for _ in range(number, 5):
                features = halved(features)
            found.append(features)
        return found[2:]

    def view(self, image: NDArray[Any], x: int, y: int) -> NDArray[Any]:
        """What is seen around a pixel, black outside the image."""
        half = self.settings.radius + self.settings.margin
        return np.pad(image, ((half, half), (half, half), (0, 0)))[y : y + 2 * half, x : x + 2 * half]

    def map(self, image: NDArray[Any], kernels: Any, x: int, y: int) -> NDArray[Any]:
        """The map of the view around a pixel, a cell for 16 x 16 pixels."""
        total: Any = 0
        for number, (features, _) in enumerate(self.blocks(self.view(image, x, y)), 1):
            if number < 3:
                continue
            for _ in range(number, 5):
                features = halved(features)
            match = compared(features, kernels[number - 3])
            extent = match.max() - match.min()
            total = total + ((match - match.min()) / extent if extent > 0 else 0 * match) / 3
        wide = [math.exp(-(k**2) / 2) for k in range(-2, 3)]
        for _ in range(3):
            total = total + blurred(total, [0.25, 0.5, 0.25]) - blurred(total, [one / sum(wide) for one in wide])
        return total

    def path(
        self, image: NDArray[Any], target: NDArray[Any], frame: tuple[int, int], window: int, maximum: int
    ) -> tuple[list[Any], str]:
        """The fixations in pixels of the frame, and why there are no more."""
        kernels = self.kernels(target)
        chosen = self.settings
        look = functools.partial(self.map, image, kernels)
        return walk(look, image.shape[:2], frame, window, maximum, chosen.radius)


def compared(features: NDArray[Any], kernel: NDArray[Any]) -> NDArray[Any]:
    """The product of a kernel [channels, n, n] with the features at every cell, zeros beyond them."""
    before = (kernel.shape[-1] - 1) // 2
    after = kernel.shape[-1] // 2
    padded = np.pad(features.astype(np.float64), ((0, 0), (before, after), (before, after)))
    return functional.conv2d(torch.as_tensor(padded)[None], torch.as_tensor(kernel)[None])[0, 0].numpy()


def blurred(values: NDArray[Any], weights: Any) -> NDArray[Any]:
    """Along both directions, mirrored at the edge without repeating it."""
    reach = len(weights) // 2
    padded = np.pad(values, reach, mode="reflect")
    found = np.zeros_like(values)
    for down, first in enumerate(weights):
        for across, second in enumerate(weights):
            found += first * second * padded[down : down + len(values), across : across + values.shape[1]]
    return found


def walk(
    look: Callable[..., Any],
    shape: tuple[int, int],
    frame: tuple[int, int],
    window: int,
    maximum: int,
    radius: float,
    target_box: Any = None,
) -> tuple[list[Any], str]:
    """One fixation after another: ``look`` gives the map of the view around a pixel of the image as it is shown."""
    rows, columns = shape
    xs = [math.floor((column + 0.5) * frame[0] / columns) for column in range(columns)]
    ys = [math.floor((row + 0.5) * frame[1] / rows) for row in range(rows)]
    x = columns // 2
    y = rows // 2
    path = [(frame[0] // 2, frame[1] // 2)]
    while True:
        if target_box is not None:
            left, top, width, height = target_box
            for px in range(max(0, math.floor(left)), min(frame[0], math.ceil(left + width))):
                for py in range(max(0, math.floor(top)), min(frame[1], math.ceil(top + height))):
                    if max(abs(px - path[-1][0]), abs(py - path[-1][1])) <= window // 2:
                        return path, "target"
        if len(path) == maximum:
            return path, "maximum"
        saliency = look(x, y)
        low = saliency.min()
        high = saliency.max()
        levels = np.rint((saliency - low) / (high - low) * 2**20) if high > low else 0 * saliency
        half = 8 * len(levels)
        best = None
        for row in range(max(0, y - radius), min(rows, y + radius)):
            for column in range(max(0, x - radius), min(columns, x + radius)):
                level = levels[(row - y + half) // 16, (column - x + half) // 16]
                away = min(max(abs(xs[column] - px), abs(ys[row] - py)) for px, py in path)
                if away > window // 2 and (best is None or level > best[0]):
                    best = level, column, row
        if best is None:
            return path, "exhausted"
        _, x, y = best
        path.append((xs[x], ys[y]))
