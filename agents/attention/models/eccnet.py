"""EccNet's map of a view: VGG16 whose pools see less and less detail towards the edge (Gupta et al. 2021).

A view is a square around a fixation, black outside the image. Its features after relu3_3, relu4_3 and relu5_3, each
brought to one cell in 16 pixels by ordinary 2 x 2 averages, are compared with those of the target: after the pool of
the same block, and ordinary averages down to one cell in 32 pixels, they are the kernels of three convolutions without
bias ("same" padding, the larger half behind). Each of the three maps goes to 0..1, and their mean is sharpened three
times by map += Gauss3 - Gauss5, where Gauss3 is [1 2 1] / 4 and Gauss5 has standard deviation 1, both mirrored at the
edge without repeating it.

Most of a view is black. The features of a view without an image are kept, and an image changes them only around itself,
as far as convolutions and windows reach: only there they are computed. The sums are those of whole views; only their
rounding may differ. Nothing here depends on a batch: one view is one pass, which is work enough for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from agents.attention.models.eccentric_pooling import Pooling, Region, pool
from agents.attention.models.fixations import Plan, Scanpath
from agents.attention.models.inhibition import TAKEN, InhibitedPaths, Inhibition, round_into
from agents.errors import AnswerError

STRIDE = 16  # pixels of a view to a cell of its map, along either side
CELLS_AT_ONCE = 16_384  # relu3_3 is computed in strips of about so many cells (262,144 pixels), for the sake of memory


@dataclass(eq=False, slots=True)
class Scene:
    """One image [1, 3, height, width] as VGG16 takes it, on a black plane."""

    image: Tensor
    black: Tensor

    def pixels(self, part: Region) -> Tensor:
        """A part of the plane, [1, 3, rows, columns]; the image's first pixel is at (0, 0)."""
        rows, columns = part.bottom - part.top, part.right - part.left
        found = self.black.expand(1, -1, rows, columns).clone()
        if (seen := part.shared(self.whole)) is not None:
            found[seen.inside(part)] = self.image[seen.inside(self.whole)]
        return found

    @property
    def whole(self) -> Region:
        """The image's own part of the plane."""
        return Region(0, 0, *self.image.shape[2:])


@dataclass(frozen=True, eq=False, slots=True)
class _Maps:
    """Features of a view: the three that are ``compared`` with the target's, and the ``inputs`` of blocks 4 and 5."""

    compared: list[Tensor]
    inputs: list[Tensor]


class EccNet:
    """VGG16's ``features`` with five pools in place of its own, for views of ``side`` pixels (48 or more, a multiple
    of 16).

    ``black`` [3] is a black pixel as VGG16 takes it. Images and targets are float32 [1, 3, height, width] on the
    device of ``features``. To make one takes as long as a pass of a whole view.
    """

    def __init__(self, features: nn.Sequential, pooling: Sequence[Pooling], side: int, black: Tensor) -> None:
        self.pooling, self.side = pooling, side
        self.black = black[None, :, None, None]
        self.whole = [Region(0, 0, side >> block, side >> block) for block in range(5)]
        self.pools = [pool(side >> block, pooling[block]) for block in range(4)]
        self.blocks: list[list[nn.Module]] = [[]]
        for part in features.to(memory_format=torch.channels_last):  # type: ignore[call-overload]
            if isinstance(part, nn.MaxPool2d):
                self.blocks.append([])
            elif isinstance(part, nn.Conv2d):
                self.blocks[-1].append(part)
        nothing = Scene(self.black, self.black)  # an image of one black pixel
        with torch.inference_mode():
            self.empty = self._maps(lambda wanted: self._first(nothing, self.whole[0], wanted), self.whole[2], None)

    def kernels(self, target: Tensor) -> list[Tensor]:
        """The kernels [1, channels, n, n] that a square target gives; its side is 32 n pixels."""
        found = []
        with torch.inference_mode():
            for block, pooling in enumerate(self.pooling):
                cells = target.shape[-1]
                held = Region(0, 0, cells, cells)
                target = self._convolved(block, target, held, held)
                target = pool(cells, pooling)(target, held, Region(0, 0, cells // 2, cells // 2))
                if block > 1:
                    found.append(_averages(target, 16 >> block))
        return found

    def features(self, scene: Scene, x: int, y: int) -> list[Tensor]:
        """Features after relu3_3, relu4_3 and relu5_3 of the view around pixel (x, y) of the scene's image, each
        [1, channels, side / 16, side / 16]. The view's middle, side / 2 from its first pixel, is on that pixel."""
        left, top = x - self.side // 2, y - self.side // 2
        view = Region(top, left, top + self.side, left + self.side)
        seen = scene.whole.shared(view)
        if seen is None:
            raise ValueError(f"nothing of the image is seen from {x}, {y}")
        touched = Region(seen.top - top, seen.left - left, seen.bottom - top, seen.right - left)
        with torch.inference_mode():
            for block in range(3):
                touched = touched if block == 0 else self.pools[block - 1].reached(touched)
                touched = touched.grown(len(self.blocks[block]), self.whole[block])
            return self._maps(lambda wanted: self._first(scene, view, wanted), touched, self.empty).compared

    def _maps(self, first: Callable[[Region], Tensor], touched: Region, empty: _Maps | None) -> _Maps:
        """Of a view whose relu3_3 is given by ``first`` and is that of the ``empty`` one but for the cells ``touched``;
        None: all cells are."""
        compared: list[Tensor] = []
        inputs: list[Tensor] = []
        for block in range(2, 5):
            scale = STRIDE >> block
            cells = touched.over(scale)
            wanted = cells.times(scale)
            if block < 4:
                reached = self.pools[block].reached(touched)
                wanted = wanted.with_(self.pools[block].needs(reached))
            features = first(wanted) if block == 2 else self._convolved(block, inputs[-1], self.whole[block], wanted)
            means = _averages(features[cells.times(scale).inside(wanted)], scale)
            compared.append(self._in_place(means, cells, 4, None if empty is None else empty.compared[block - 2]))
            if block < 4:
                pooled = self.pools[block](features, wanted, reached)
                before = None if empty is None else empty.inputs[block - 2]
                inputs.append(self._in_place(pooled, reached, block + 1, before))
                touched = reached.grown(len(self.blocks[block + 1]), self.whole[block + 1])
        return _Maps(compared, inputs)

    def _in_place(self, piece: Tensor, region: Region, block: int, empty: Tensor | None) -> Tensor:
        """The whole map of which ``piece`` is a region and the rest is ``empty``; None: the piece is the whole."""
        if empty is None:
            return piece
        found = empty.clone()
        found[region.inside(self.whole[block])] = piece
        return found

    def _convolved(self, block: int, features: Tensor, held: Region, wanted: Region) -> Tensor:
        """A block's features after its last ReLU at ``wanted``. ``features`` are its inputs at ``held``, which reaches
        as far beyond as the convolutions see, or to the edge of the map."""
        around = wanted.grown(len(self.blocks[block]), held)
        features = features[around.inside(held)]
        for convolution in self.blocks[block]:
            # Padded on all sides, but zeros where there is more of the map spoil one row of cells a convolution, and
            # all of those are cut off.
            features = convolution(features).relu_()
        return features[wanted.inside(around)]

    def _first(self, scene: Scene, part: Region, wanted: Region) -> Tensor:
        """relu3_3 at ``wanted`` of what is seen of a scene through ``part`` of its plane, with zeros beyond it."""
        rows = max(1, CELLS_AT_ONCE // (wanted.right - wanted.left))
        strips = [
            self._strip(scene, part, wanted._replace(top=top, bottom=min(top + rows, wanted.bottom)))
            for top in range(wanted.top, wanted.bottom, rows)
        ]
        return strips[0] if len(strips) == 1 else torch.cat(strips, 2)

    def _strip(self, scene: Scene, part: Region, wanted: Region) -> Tensor:
        height, width = part.bottom - part.top, part.right - part.left
        outputs, inputs = [wanted], list[Region]()
        for block in (2, 1, 0):
            bounds = Region(0, 0, height >> block, width >> block)
            inputs.insert(0, outputs[0].grown(len(self.blocks[block]), bounds))
            if block > 0:
                outputs.insert(0, self.pools[block - 1].needs(inputs[0]))
        top, left, bottom, right = inputs[0]
        pixels = scene.pixels(Region(part.top + top, part.left + left, part.top + bottom, part.left + right))
        features = self._convolved(0, pixels, inputs[0], outputs[0])
        for block in (1, 2):
            features = self.pools[block - 1](features, outputs[block - 1], inputs[block])
            features = self._convolved(block, features, inputs[block], outputs[block])
        return features


def similarity(features: Sequence[Tensor], kernels: Sequence[Tensor]) -> Tensor:
    """The sharpened mean of the maps of how features match kernels, float64 [rows, columns]; NaN where any is."""
    with torch.inference_mode():
        total = None
        for feature, kernel in zip(features, kernels, strict=True):
            before, behind = (kernel.shape[-1] - 1) // 2, kernel.shape[-1] // 2
            match = functional.conv2d(functional.pad(feature, (before, behind, before, behind)), kernel).double()
            match -= match.min()
            if (highest := match.max()) != 0:
                match /= highest
            total = match if total is None else total + match
        assert total is not None
        places = torch.arange(-2, 3, dtype=torch.float64, device=total.device)
        wide = torch.exp(-(places**2) / 2)
        wide /= wide.sum()
        narrow = torch.tensor([0, 0.25, 0.5, 0.25, 0], dtype=torch.float64, device=total.device)
        difference = (torch.outer(narrow, narrow) - torch.outer(wide, wide))[None, None]
        total /= len(features)
        for _ in range(3):
            total += functional.conv2d(functional.pad(total, (2, 2, 2, 2), mode="reflect"), difference)
        return total[0, 0]


class Gaze(InhibitedPaths):
    """The path over one resized image of ``shape`` (rows, columns); its pixel (``x``, ``y``) is looked at.

    The next fixation is at most ``radius`` of these pixels away along either side.
    """

    def __init__(
        self, plan: Plan, shape: tuple[int, int], inhibition: Inhibition, radius: int, device: torch.device
    ) -> None:
        super().__init__([plan], shape, inhibition, device)
        self.cells[0] = shape[0] // 2, shape[1] // 2
        self.radius = radius

    @property
    def x(self) -> int:
        return self.cells[0][1]

    @property
    def y(self) -> int:
        return self.cells[0][0]

    def look(self, saliency: Tensor) -> None:
        """Append the next fixation: of the pixels with the highest value the first. ``saliency`` is the map of the view
        around (x, y), a cell for 16 x 16 pixels; one that is not finite ends the path with an AnswerError."""
        levels = torch.empty(saliency.shape, dtype=torch.int32, device=saliency.device)
        if not round_into(levels, saliency):
            self.errors[0] = AnswerError("bad_map", "the similarity map is not finite")
            return
        before = STRIDE * len(levels) // 2  # pixels of the view before its middle
        spans, cells = [], []
        for centre, side in zip(self.cells[0], self.levels.shape[1:], strict=True):
            span = slice(max(centre - self.radius, 0), min(centre + self.radius, side))
            cells.append((torch.arange(span.start, span.stop, device=levels.device) - centre + before) // STRIDE)
            spans.append(span)
        self.levels[0] = TAKEN  # what is not seen
        self.levels[0][*spans] = levels[cells[0]][:, cells[1]]
        self.inhibit_earlier(0)
        self.choose([0])


def search(
    net: EccNet, image: Tensor, target: Tensor, plan: Plan, inhibition: Inhibition, radius: int
) -> Scanpath | AnswerError:
    """The path over an image in search of a target, both resized; ``plan`` is about the frame as it was."""
    scene, kernels = Scene(image, net.black), net.kernels(target)
    gaze = Gaze(plan, (image.shape[2], image.shape[3]), inhibition, radius, image.device)
    while gaze.going():
        gaze.look(similarity(net.features(scene, gaze.x, gaze.y), kernels))
    return gaze.results()[0]


def _averages(features: Tensor, size: int) -> Tensor:
    """Ordinary 2 x 2 averages, again and again until a cell stands for ``size`` x ``size`` of them."""
    while size > 1:
        features = functional.avg_pool2d(features, 2)
        size //= 2
    return features
