"""EccNet's map of a view: VGG16 whose pools see less and less detail towards the edge (Gupta et al. 2021).

A view is a square around a fixation, black outside the image. Its features after relu3_3, relu4_3 and relu5_3, each
brought to one cell in 16 pixels by ordinary 2 x 2 averages, are compared with those of the target: after the pool of
the same block, and ordinary averages down to one cell in 32 pixels, they are the kernels of three convolutions without
bias ("same" padding, the larger half behind). Each of the three maps goes to 0..1, and their mean is sharpened three
times by map += Gauss3 - Gauss5, where Gauss3 is [1 2 1] / 4 and Gauss5 has standard deviation 1, both mirrored at the
edge without repeating it.

Most of a view is black. Where the first two pools are ordinary (the published settings), the first three blocks are
computed around the image alone, and beyond it stands what they make of black. Nothing here depends on a batch: one
view is one pass, which is work enough for a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from agents.answers import ScanpathAnswer
from agents.attention.models.eccentric_pooling import Pooling, pooled
from agents.attention.models.fixations import Pixel, Plan, cell_centre
from agents.attention.models.inhibition import TAKEN, InhibitedPaths, Inhibition
from agents.attention.models.vgg import Preprocessing, normalise
from agents.errors import AnswerError

STRIDE = 16  # pixels of a view to a cell of its map, along either side
CELL = 4  # pixels of a view to a cell of relu3_3
REACH = 24  # pixels on every side that a cell of relu3_3 sees at most beyond its own, in whole cells
STRIP = 160  # rows of pixels of which relu3_3 is computed at a time, for the sake of memory


class EccNet:
    """VGG16's ``features`` with five pools in place of its own, for views of ``side`` pixels (a multiple of 16).

    Images and targets are uint8 [1, 3, height, width] on the device of ``features``.
    """

    def __init__(
        self, features: nn.Sequential, pooling: Sequence[Pooling], side: int, preprocessing: Preprocessing
    ) -> None:
        self.pooling, self.side, self.preprocessing = pooling, side, preprocessing
        pools = [index for index, part in enumerate(features) if isinstance(part, nn.MaxPool2d)]
        self.blocks = [features[start:end] for start, end in zip([0, *(one + 1 for one in pools)], pools, strict=False)]
        self.local = pooling[0].ordinary(side) and pooling[1].ordinary(side // 2)
        everything = slice(0, side)
        with torch.inference_mode():
            black = torch.zeros((1, 3, side, side), dtype=torch.uint8, device=next(features.parameters()).device)
            self.black = self._relu3_3(black, everything, everything)

    def kernels(self, target: Tensor) -> list[Tensor]:
        """The kernels [1, channels, n, n] that a square target gives; its side is 32 n pixels."""
        found = []
        with torch.inference_mode():
            features = normalise(target, self.preprocessing)
            for block, pooling in enumerate(self.pooling):
                features = pooled(self.blocks[block](features), pooling)
                if block > 1:
                    found.append(_averages(features, 16 >> block))
        return found

    def features(self, image: Tensor, x: int, y: int) -> list[Tensor]:
        """Features after relu3_3, relu4_3 and relu5_3 of the view around pixel (x, y) of the image, each
        [1, channels, side / 16, side / 16]. The view's middle, side / 2 from its first pixel, is on that pixel."""
        height, width = image.shape[2:]
        left, top = self.side // 2 - x, self.side // 2 - y
        beyond = left, self.side - left - width, top, self.side - top - height  # below 0: not seen
        rows, columns = self._near(top, height), self._near(left, width)
        with torch.inference_mode():
            features = self.black.clone()
            near = _cells(rows), _cells(columns)
            features[:, :, *near] = self._relu3_3(functional.pad(image, beyond), rows, columns)
            found = [_averages(features, 4)]
            for block in (3, 4):
                features = self.blocks[block](pooled(features, self.pooling[block - 1]))
                found.append(_averages(features, STRIDE >> block))
        return found

    def _near(self, start: int, length: int) -> slice:
        """The pixels along a side of a view, in whole cells, at which an image that lies there changes relu3_3."""
        if not self.local:
            return slice(0, self.side)
        first, last = start // CELL * CELL - REACH, -(-(start + length) // CELL) * CELL + REACH
        return slice(max(first, 0), min(last, self.side))

    def _relu3_3(self, view: Tensor, rows: slice, columns: slice) -> Tensor:
        """relu3_3 of a view at these of its pixels, in whole cells."""
        if not self.local:
            return self._first_blocks(view)
        across = slice(max(columns.start - REACH, 0), columns.stop + REACH)
        strips = []
        for top in range(rows.start, rows.stop, STRIP):
            bottom = min(top + STRIP, rows.stop)
            down = slice(max(top - REACH, 0), bottom + REACH)
            features = self._first_blocks(view[..., down, across])
            inner = slice(top - down.start, bottom - down.start)
            wanted = slice(columns.start - across.start, columns.stop - across.start)
            strips.append(features[:, :, _cells(inner), _cells(wanted)])
        return torch.cat(strips, 2)

    def _first_blocks(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.blocks[0](normalise(pixels, self.preprocessing))
        for block in (1, 2):
            pooling = self.pooling[block - 1]
            features = functional.avg_pool2d(features, 2) if self.local else pooled(features, pooling)
            features = self.blocks[block](features)
        return features


def similarity(features: Sequence[Tensor], kernels: Sequence[Tensor]) -> Tensor:
    """The sharpened mean of the maps of how features match kernels, float64 [rows, columns]; NaN where any is."""
    with torch.inference_mode():
        total = torch.zeros((), dtype=torch.float64, device=features[0].device)
        for feature, kernel in zip(features, kernels, strict=True):
            before, behind = (kernel.shape[-1] - 1) // 2, kernel.shape[-1] // 2
            match = functional.conv2d(functional.pad(feature, (before, behind, before, behind)), kernel).double()
            match -= match.min()
            total = total + match / torch.where(match.max() == 0, 1.0, match.max()) / len(features)
        places = torch.arange(-2, 3, dtype=torch.float64, device=total.device)
        wide = torch.exp(-(places**2) / 2)
        wide /= wide.sum()
        narrow = torch.tensor([0, 0.25, 0.5, 0.25, 0], dtype=torch.float64, device=total.device)
        difference = (torch.outer(narrow, narrow) - torch.outer(wide, wide))[None, None]
        for _ in range(3):
            total = total + functional.conv2d(functional.pad(total, (2, 2, 2, 2), mode="reflect"), difference)
        return total[0, 0]


class Gaze(InhibitedPaths):
    """The path over one resized image of ``shape`` (rows, columns), whose pixel ``cells[0]`` is looked at.

    It is shown the map of the view around that pixel, a cell for 16 x 16 pixels. The next fixation is at most
    ``radius`` of these pixels away along either side; of the pixels with the highest value it is the first.
    """

    def __init__(
        self, plan: Plan, shape: tuple[int, int], inhibition: Inhibition, radius: int, device: torch.device
    ) -> None:
        super().__init__([plan], shape, inhibition, device)
        self.radius = radius

    def on_frame(self, index: int, levels: Tensor) -> Tensor:
        before = STRIDE * len(levels) // 2  # pixels of the view before its middle
        frame = torch.full_like(self.levels[index], TAKEN)  # what is not seen
        spans, cells = [], []
        for centre, side in zip(self.cells[index], frame.shape, strict=True):
            spans.append(slice(max(centre - self.radius, 0), min(centre + self.radius, side)))
            cells.append((torch.arange(side, device=levels.device)[spans[-1]] - centre + before) // STRIDE)
        frame[*spans] = levels[cells[0]][:, cells[1]]
        return frame


def search(
    net: EccNet,
    image: Tensor,
    target: Tensor,
    plan: Plan,
    inhibition: Inhibition,
    radius: int,
    window: int | None = None,
) -> ScanpathAnswer | AnswerError:
    """The path over an image in search of a target, both resized; ``plan`` is about the frame as it was.

    With ``window`` the target is tested, and places are inhibited, by exact windows of so many pixels of the resized
    image, as in the authors' program.
    """
    rows, columns = image.shape[2:]
    kernels = net.kernels(target)
    walked = plan if window is None else _resized(plan, (columns, rows), window)
    gaze = Gaze(walked, (rows, columns), inhibition, radius, image.device)
    while going := gaze.going():
        row, column = gaze.cells[0]
        gaze.show(0, similarity(net.features(image, column, row), kernels))
        gaze.choose(going)
    path = gaze.results()[0]
    if window is None or isinstance(path, AnswerError):
        return path
    width, height = plan.frame
    back = [[cell_centre(int(x), columns, width), cell_centre(int(y), rows, height)] for x, y in path.fixations]
    back[0] = [width // 2, height // 2]
    return path.model_copy(
        update={"fixations": back, "frame": [width, height], "window": round(window * width / columns)}
    )


def _resized(plan: Plan, frame: Pixel, window: int) -> Plan:
    """A plan for the resized image: a mask by area, of which more than 125 / 255 counts, as in the authors' program."""
    target = plan.target
    if isinstance(target, tuple):
        across, down = (new / old for new, old in zip(frame, plan.frame, strict=True))
        target = target[0] * across, target[1] * down, target[2] * across, target[3] * down
    elif target is not None:
        target = cv2.resize(target.astype(np.uint8) * 255, frame, interpolation=cv2.INTER_AREA) > 125
    return replace(plan, frame=frame, window=window, target=target, exact=True)


def _cells(pixels: slice) -> slice:
    return slice(pixels.start // CELL, pixels.stop // CELL)


def _averages(features: Tensor, size: int) -> Tensor:
    """Ordinary 2 x 2 averages, again and again until a cell stands for ``size`` x ``size`` of them."""
    while size > 1:
        features = functional.avg_pool2d(features, 2)
        size //= 2
    return features
