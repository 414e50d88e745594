"""Planes at another size, in strips: by area where they shrink, by Keys' bicubic kernel where they grow."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

STRIP = 2**17  # values that are made at a time


def resize(planes: Tensor, height: int, width: int) -> Tensor:
    """Planes [batch, n, rows, columns] at another size: by area where they shrink, bicubic where they grow."""
    for side, length in ((3, width), (2, height)):
        if planes.shape[side] != length:
            planes = resample(planes, side, *_resize_taps(planes.shape[side], length, planes.device))
    return planes


def resample(planes: Tensor, side: int, index: Tensor, weight: Tensor) -> Tensor:
    """Along one side, output k is the sum over taps t of ``weight[t, k]`` times input ``index[t, k]``.

    It is made in strips, so that no second plane of the output's size exists beside it.
    """
    shape = (-1, 1) if side == 2 else (-1,)
    length = index.shape[1]
    result = planes.new_empty((*planes.shape[:side], length, *planes.shape[side + 1 :]))
    strip = max(1, STRIP // max(1, planes.numel() // planes.shape[side]))
    for start in range(0, length, strip):
        end = min(start + strip, length)
        part = planes.index_select(side, index[0, start:end]).mul_(weight[0, start:end].view(shape))
        for tap in range(1, len(index)):
            part.addcmul_(planes.index_select(side, index[tap, start:end]), weight[tap, start:end].view(shape))
        result.narrow(side, start, end - start).copy_(part)
    return result


@lru_cache(maxsize=64)
def _resize_taps(source: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Which inputs each output takes [taps, length], and with which weights (they sum to 1)."""
    scale = source / length
    place = torch.arange(length, dtype=torch.float64)
    if length < source:  # an output is the mean over the stretch of inputs that it covers
        start, end = place * scale, (place + 1) * scale
        first = start.floor()
        taps = torch.arange(math.ceil(scale) + 1, dtype=torch.float64)[:, None] + first
        weight = (torch.minimum(taps + 1, end) - torch.maximum(taps, start)).clamp(min=0)
        weight = weight / weight.sum(0)
    else:  # Keys' cubic, a = -0.5, between pixel centres
        centre = (place + 0.5) * scale - 0.5
        taps = torch.arange(-1, 3, dtype=torch.float64)[:, None] + centre.floor()
        distance = (taps - centre).abs()
        near = (1.5 * distance - 2.5) * distance**2 + 1
        far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
        weight = torch.where(distance <= 1, near, torch.where(distance < 2, far, 0.0))
    return taps.long().clamp(0, source - 1).to(device), weight.to(device)
