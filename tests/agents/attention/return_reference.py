"""The return-fixation model in plain Python and numpy: slow, direct, and sharing no code with the package."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from safetensors.numpy import load_file

from tests.agents.attention import plain_vgg
from tests.agents.attention.gbvs_reference import resize, unit

SETS = {"natural": (0.02, 0.5), "waldo": (0.017, 0.47), "array": (0.08, 0.5)}


def scores(
    levels: Any,
    fixations: Any,
    prior: Any,
    spread: float,
    floor: float,
    weights: Any = (1, 0.2346, 0.93),
    decay: float = 0.92,
) -> list[float]:
    """The score of each of the 4096 cells after ``fixations`` (cells), not rounded."""
    row, column = divmod(fixations[-1], 64)
    found = []
    for cell in range(4096):
        r, c = divmod(cell, 64)
        memory = 0.0
        for age, past in enumerate(reversed(fixations)):
            d2 = ((r - past // 64) / 63) ** 2 + ((c - past % 64) / 63) ** 2
            if d2 < 80 * spread**2:  # beyond, less than 1e-17
                memory = max(memory, max(decay**age, floor) * math.exp(-d2 / (2 * spread**2)))
        found.append(
            weights[0] * levels[cell] + weights[1] * prior[64 + r - row][64 + c - column] - weights[2] * memory
        )
    return found


def rounded(saliency: NDArray[Any]) -> list[float]:
    """A map [64, 64] as 4096 values in steps of 2**-20."""
    return [round(float(value) * 2**20) / 2**20 for row in saliency for value in row]


def choose(
    saliency: Any,
    prior: Any,
    spread: float,
    floor: float,
    maximum: int,
    found: Any = lambda cell: False,
    **options: Any,
) -> tuple[list[int], float]:
    """The cells fixated on a map [64, 64]; also the smallest lead of a chosen cell over the next best."""
    levels = rounded(saliency)
    path = [2016]
    lead = math.inf
    while len(path) < maximum and not found(path[-1]):
        steps = [round(score * 2**20) for score in scores(levels, path, prior, spread, floor, **options)]
        best = max(steps)
        path.append(steps.index(best))
        lead = min(lead, (best - sorted(steps)[-2]) / 2**20)
    return path, lead


def pixel(cell: int, width: int, height: int) -> tuple[int, int]:
    row, column = divmod(cell, 64)
    return int((column + 0.5) * width / 64), int((row + 0.5) * height / 64)


def features(pixels: NDArray[Any], weights: Any) -> NDArray[Any]:
    """relu4_3 of VGG16 [512, height / 8, width / 8] in float64; pixels uint8 [height, width, 3]."""
    planes = plain_vgg.block(plain_vgg.taken(pixels), weights, 1)
    for number in (2, 3, 4):
        planes = plain_vgg.block(plain_vgg.pooled(planes), weights, number)
    return planes


def saliency(pixels: NDArray[Any], file: Path, sizes: Sequence[int], border: int = 25) -> NDArray[Any]:
    """The free-viewing map [64, 64] of an image uint8 [height, width, 3] that is not uniform."""
    weights = load_file(file)
    largest = PILImage.fromarray(pixels).resize((max(sizes),) * 2, PILImage.Resampling.BILINEAR)
    total = np.zeros((1024, 1280))
    for side in sizes:
        small = np.asarray(largest.resize((side, side), PILImage.Resampling.BILINEAR))
        plane = unit(features(small, weights).sum(0, dtype=np.float64))
        total += resize(plane, 1024, 1280)
    total = unit(total)
    for y in range(1024):
        if min(y, 1023 - y) < border:
            total[y] = 0
    for x in range(1280):
        if min(x, 1279 - x) < border:
            total[:, x] = 0
    total = unit(total)
    return np.array([[total[16 * r + 8, 20 * c + 10] for c in range(64)] for r in range(64)])
