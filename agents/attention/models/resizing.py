"""Weights that bring a row of values to another length: ``weights_of_rows @ plane @ weights_of_columns.T``."""

from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from agents.models.transfer import uploaded

CPU = torch.device("cpu")


def min_max(maps: Tensor) -> Tensor:
    """Each map [..., rows, columns] scaled to 0..1, in place; 0 where it is flat."""
    low = maps.amin((-2, -1), keepdim=True)
    high = maps.amax((-2, -1), keepdim=True)
    extent = high - low
    return maps.sub_(low).div_(torch.where(extent > 0, extent, 1.0))


@lru_cache(maxsize=64)
def area_weights(source: int, length: int, device: torch.device = CPU) -> Tensor:
    """Weights [length, source] in float64: each output is the mean over the inputs that it covers."""
    ends = torch.arange(length + 1, dtype=torch.float64)[:, None] * (source / length)
    start = torch.arange(source, dtype=torch.float64)
    shares = (torch.minimum(start + 1, ends[1:]) - torch.maximum(start, ends[:-1])).clamp(min=0)
    return uploaded([shares / shares.sum(1, keepdim=True)], device)[0]


@lru_cache(maxsize=64)
def cubic_weights(
    source: int, length: int, edge: Literal["repeated", "mirrored"] = "repeated", device: torch.device = CPU
) -> Tensor:
    """Weights [length, source] in float64 of Keys' cubic (a = -0.5), wider where it shrinks (Matlab's imresize)."""
    scale = length / source
    narrow = min(scale, 1.0)
    centre = (torch.arange(length, dtype=torch.float64)[:, None] + 0.5) / scale - 0.5
    reach = int(2 / narrow) + 1
    tap = centre.floor() + torch.arange(-reach, reach + 1)
    distance = (tap - centre).abs() * narrow
    near = (1.5 * distance - 2.5) * distance**2 + 1
    far = ((2.5 - 0.5 * distance) * distance - 4) * distance + 2
    weight = torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))
    index = tap.long()
    if edge == "repeated":
        index = index.clamp(0, source - 1)
    else:
        index = index % (2 * source)
        index = torch.minimum(index, 2 * source - 1 - index)
    weights = torch.zeros((length, source), dtype=torch.float64)
    weights.scatter_add_(1, index, weight / weight.sum(1, keepdim=True))
    return uploaded([weights], device)[0]
