"""EccNet's map of a view: VGG16 whose pools see less detail towards the edge (Gupta et al. 2021).

1. A view is a square around a fixation. Its relu3_3, relu4_3 and relu5_3 are averaged to a cell in 16 pixels.
2. The target's features after each block's pool, at a cell in 32 pixels, are the kernels of three convolutions.
3. The mean of their maps in 0..1 is sharpened three times by map += Gauss3 - Gauss5 ([1 2 1] / 4, and sd 1).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from agents.answers import ScanpathAnswer
from agents.attention.models.eccentric_pooling import EccentricPooling, pooled
from agents.attention.models.fixations import Pixel, Plan, cell_centre
from agents.attention.models.inhibition import TAKEN, InhibitedPaths
from agents.attention.models.vgg import Preprocessing, memory_format, normalise
from agents.models.transfer import uploaded

STRIDE = 16  # pixels of a view to a cell of its map, along either side
CELL = 4  # pixels of a view to a cell of relu3_3
# Pixels around a part of a view that are computed with it, because cells of relu3_3 in the part see them. Seven
# convolutions of 3 x 3 reach 2 + 4 + 12 pixels beyond a cell, so 20 in whole cells; 24 leaves one to spare. Tried with
# random weights on a view of 256 pixels: with 20, 24 and 28 the features are those of the whole view, with 16 not.
REACH = 24
# Rows of pixels of which relu3_3 is computed at a time. Any multiple of CELL gives the same features, and a larger one
# takes more memory; tests set 48.
STRIP = 160
GPU_STRIP = 1024
Span = tuple[Tensor, int]  # pixels along a side: the first, which only the device knows, and how many


class EccNet:
    """VGG16 with five pools, for views of ``side`` pixels (a multiple of 16) of images uint8 [1, 3, height, width]."""

    def __init__(
        self, features: nn.Sequential, pooling: Sequence[EccentricPooling], side: int, preprocessing: Preprocessing
    ) -> None:
        self.pooling = pooling
        self.side = side
        self.preprocessing = preprocessing
        pools = [index for index, part in enumerate(features) if isinstance(part, nn.MaxPool2d)]
        self.blocks = [
            features[start:end] for start, end in zip([0, *(pool + 1 for pool in pools)], pools, strict=False)
        ]
        self.local = pooling[0].ordinary(side) and pooling[1].ordinary(side // 2)
        self.device = next(features.parameters()).device
        with torch.inference_mode():
            black = torch.zeros((1, 3, side, side), dtype=torch.uint8, device=self.device)
            nowhere = torch.zeros((), dtype=torch.int64, device=self.device)
            relu3_3 = self._relu3_3(black, (nowhere, side), (nowhere, side), nowhere, nowhere)
            self.black = relu3_3.contiguous(memory_format=memory_format(self.device))

    def kernels(self, target: Tensor) -> list[Tensor]:
        """The kernels [1, channels, n, n] of a square target of side 32 n."""
        levels = []
        with torch.inference_mode():
            features = normalise(target, self.preprocessing)
            for block, pooling in enumerate(self.pooling):
                features = pooled(self.blocks[block](features), pooling)
                if block > 1:
                    levels.append(_averages(features, 16 >> block))
        return levels

    def framed(self, image: Tensor) -> Tensor:
        """An image with black around it: the view around (x, y) begins at pixel (x, y) of the result."""
        return functional.pad(image, (self.side // 2,) * 4)

    def features(self, framed: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
        """Features [1, channels, side / 16, side / 16] of the view around integers (x, y) of a :meth:`framed` image."""
        with torch.inference_mode():
            features = self.black.clone()
            rows = self._near(y, framed.shape[2] - self.side)
            columns = self._near(x, framed.shape[3] - self.side)
            features[:, :, _cells(*rows)[:, None], _cells(*columns)] = self._relu3_3(framed, rows, columns, x, y)
            levels = [_averages(features, 4)]
            for block in (3, 4):
                features = self.blocks[block](pooled(features, self.pooling[block - 1]))
                levels.append(_averages(features, STRIDE >> block))
        return levels

    def _near(self, at: Tensor, length: int) -> Span:
        """The span along a side of the view around ``at`` where an image of ``length`` changes relu3_3.

        All else is black, and its features were computed once (``black``). The span has the same length for every
        ``at``, which only the device knows: a length that came from ``at`` would make the host wait for the device. It
        begins at a whole cell, else pools would join other pixels than those of the whole view."""
        pixels = -(-length // CELL) * CELL + CELL + 2 * REACH  # wherever its cells begin
        if not self.local or pixels >= self.side:
            return torch.zeros_like(at), self.side
        return ((self.side // 2 - at) // CELL * CELL - REACH).clamp(0, self.side - pixels), pixels

    def _relu3_3(self, framed: Tensor, rows: Span, columns: Span, x: Tensor, y: Tensor) -> Tensor:
        """relu3_3 [1, channels, rows, columns] of a part of the view around (x, y), strip by strip. Where the first
        two pools are not ``local``, a part cannot be computed alone, and the part is the whole view."""
        if not self.local:
            return self._first_blocks(self._part(framed, rows, columns, x, y))
        across = self._around(*columns)
        wanted = _cells(columns[0] - across[0], columns[1])
        strips = []
        most = STRIP if self.device.type == "cpu" else GPU_STRIP
        for top in range(0, rows[1], most):
            strip = rows[0] + top, min(most, rows[1] - top)
            down = self._around(*strip)
            features = self._first_blocks(self._part(framed, down, across, x, y))
            # With channels last, as they lie on the CPU: whole cells are picked.
            inner = _cells(strip[0] - down[0], strip[1])
            strips.append(features.permute(0, 2, 3, 1)[:, inner[:, None], wanted])
        return torch.cat(strips, 1).permute(0, 3, 1, 2)

    def _around(self, start: Tensor, length: int) -> Span:
        """A span with what its cells see, REACH on both sides. At a view's edge it is moved inwards and not cut, so
        that its length is known without ``start``."""
        wider = min(length + 2 * REACH, self.side)
        return (start - REACH).clamp(0, self.side - wider), wider

    def _part(self, framed: Tensor, rows: Span, columns: Span, x: Tensor, y: Tensor) -> Tensor:
        down = rows[0] + y + torch.arange(rows[1], device=self.device)
        across = columns[0] + x + torch.arange(columns[1], device=self.device)
        return framed.index_select(2, down).index_select(3, across)

    def _first_blocks(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.blocks[0](normalise(pixels, self.preprocessing))
        for block in (1, 2):
            pooling = self.pooling[block - 1]
            features = functional.avg_pool2d(features, 2) if self.local else pooled(features, pooling)
            features = self.blocks[block](features)
        return features


def similarity(features: Sequence[Tensor], kernels: Sequence[Tensor]) -> Tensor:
    """The sharpened mean of the maps, float64 [rows, columns]; NaN where any is."""
    with torch.inference_mode():
        total = torch.zeros((), dtype=torch.float64, device=features[0].device)
        for feature, kernel in zip(features, kernels, strict=True):
            before = (kernel.shape[-1] - 1) // 2
            behind = kernel.shape[-1] // 2
            match = functional.conv2d(functional.pad(feature, (before, behind, before, behind)), kernel).double()
            match -= match.min()
            total = total + match / torch.where(match.max() == 0, 1.0, match.max()) / len(features)
        difference = _sharper(total.device)
        for _ in range(3):
            total = total + functional.conv2d(functional.pad(total, (2, 2, 2, 2), mode="reflect"), difference)
        return total[0, 0]


@lru_cache(maxsize=8)
def _sharper(device: torch.device) -> Tensor:
    wide = torch.exp(-(torch.arange(-2, 3, dtype=torch.float64) ** 2) / 2)
    wide /= wide.sum()
    narrow = torch.tensor([0, 0.25, 0.5, 0.25, 0], dtype=torch.float64)
    return uploaded([(torch.outer(narrow, narrow) - torch.outer(wide, wide))[None, None]], device)[0]


class Gaze(InhibitedPaths):
    """The path over a resized image of ``shape``. The next fixation is the first maximum of the view's map at most
    ``radius`` pixels away along either side."""

    def __init__(
        self, plan: Plan, shape: tuple[int, int], radius: int, device: torch.device, window: int | None = None
    ) -> None:
        walked = plan if window is None else _resized(plan, (shape[1], shape[0]), window)
        super().__init__([walked], shape, device, changing=True)
        self.plan = plan
        self.shape = shape
        self.radius = radius
        self.window = window

    def answer(self, index: int) -> ScanpathAnswer:
        """The path in pixels of the frame; it was walked in cells where the window is in resized pixels."""
        answer = super().answer(index)
        if self.window is None:
            return answer
        (rows, columns) = self.shape
        (width, height) = self.plan.frame
        fixations = [[cell_centre(x, columns, width), cell_centre(y, rows, height)] for x, y in self.fixations[index]]
        fixations[0] = [width // 2, height // 2]
        window = round(self.window * width / columns)
        return answer.model_copy(update={"fixations": fixations, "frame": [width, height], "window": window})

    def on_frame(self, levels: Tensor) -> Tensor:
        """Levels of the view, [1, rows, columns], laid on the frame around the present fixation: TAKEN where the view
        does not reach."""
        before = STRIDE * levels.shape[1] // 2  # pixels of the view before its middle
        last = levels.shape[1] - 1
        height, width = self.shape
        down = torch.arange(height, device=levels.device) - self.row[0]
        across = torch.arange(width, device=levels.device) - self.column[0]
        rows = ((down + before) // STRIDE).clamp(0, last)
        columns = ((across + before) // STRIDE).clamp(0, last)
        seen_y = (-self.radius <= down) & (down < self.radius)
        seen_x = (-self.radius <= across) & (across < self.radius)
        return levels[:, rows[:, None], columns].where(seen_y[:, None] & seen_x, TAKEN)


def search(net: EccNet, image: Tensor, target: Tensor, plan: Plan, radius: int, window: int | None = None) -> Gaze:
    """The path over a resized ``image``; ``plan`` is for the original. ``window`` is an exact window in pixels of the
    resized image for target and inhibition (authors' program)."""
    kernels = net.kernels(target)
    framed = net.framed(image)
    gaze = Gaze(plan, (image.shape[2], image.shape[3]), radius, image.device, window)
    while gaze.going():
        gaze.show(similarity(net.features(framed, gaze.column[0, 0], gaze.row[0, 0]), kernels)[None])
        gaze.choose()
    return gaze


def _resized(plan: Plan, frame: Pixel, window: int) -> Plan:
    """A plan for the resized image; more than 125 / 255 of a mask counts (authors' program)."""
    target = plan.target
    if isinstance(target, tuple):
        across = frame[0] / plan.frame[0]
        down = frame[1] / plan.frame[1]
        target = target[0] * across, target[1] * down, target[2] * across, target[3] * down
    elif target is not None:
        target = cv2.resize(target.astype(np.uint8) * 255, frame, interpolation=cv2.INTER_AREA) > 125
    return replace(plan, frame=frame, window=window, target=target, exact=True)


def _cells(start: Tensor, pixels: int) -> Tensor:
    return start // CELL + torch.arange(pixels // CELL, device=start.device)


def _averages(features: Tensor, size: int) -> Tensor:
    """2 x 2 averages until a cell stands for ``size`` x ``size``."""
    return features if size == 1 else _averages(functional.avg_pool2d(features, 2), size // 2)
