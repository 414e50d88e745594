"""EccNet's map of a view: VGG16 whose pools see less and less detail towards the edge (Gupta et al. 2021).

A view is a square around a fixation, black outside the image. Its features after relu3_3, relu4_3 and relu5_3, each
brought to one cell in 16 pixels by ordinary 2 x 2 averages, are compared with those of the target: after the pool of
the same block, and ordinary averages down to one cell in 32 pixels, they are the kernels of three convolutions without
bias ("same" padding, the larger half behind). Each of the three maps goes to 0..1, and their mean is sharpened three
times by map += Gauss3 - Gauss5, where Gauss3 is [1 2 1] / 4 and Gauss5 has standard deviation 1, both mirrored at the
edge without repeating it.

Most of a view is black, and one image is seen from many places. What would be computed again is kept:

- The features of a view without an image. An image changes them only around itself, as far as convolutions and windows
  reach, and only there they are computed.
- What blocks 1 to 3 make of an image on an unbounded black plane, if the two pools in them are ordinary, as they are
  by default. That depends on the fixation only by where the image lies among groups of 4 x 4 pixels. Cells near enough
  to the view's edge to see the zeros beyond it are computed for the view.

Both give the sums that whole views would; only their rounding may differ. Nothing here depends on a batch: one view is
one pass, which is work enough for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from agents.attention.models.eccentric_pooling import Ordinary, Pooling, Region, pool
from agents.attention.models.fixations import Plan, Scanpath
from agents.attention.models.inhibition import TAKEN, InhibitedPaths, Inhibition, round_into
from agents.errors import AnswerError

STRIDE = 16  # pixels of a view to a cell of its map, along either side
CELLS_AT_ONCE = 16_384  # relu3_3 is computed in strips of about so many cells (262,144 pixels), for the sake of memory
# In cells of relu3_3 (4 pixels): how far the zeros beyond the edge of a view have an effect, 5 = ((2 / 2) + 2) / 2 + 3
# rounded up, and how far an image has one: as far, and one more where pairs of pixels are parted otherwise.
EDGE, REACH = 5, 6
KEPT = 4  # of the 16 places of an image among groups of 4 x 4 pixels: 45 MB each at 896 x 736; most paths have few


@dataclass(eq=False, slots=True)
class Scene:
    """One image [1, 3, height, width] as VGG16 takes it, on a black plane, and what is kept of it for other views."""

    image: Tensor
    black: Tensor
    kept: dict[tuple[int, int], Tensor] = field(default_factory=dict)

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
        self.still = self.pools[0] == self.pools[1] == Ordinary(2)  # blocks 1 to 3 are the same everywhere
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
            first = self._first_kept if self.still else self._first
            return self._maps(lambda wanted: first(scene, view, wanted), touched, self.empty).compared

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

    def _first_kept(self, scene: Scene, view: Region, wanted: Region) -> Tensor:
        """The same as :meth:`_first` of a view, from what is kept of the scene wherever it can be."""
        down, across = -view.top % 4, -view.left % 4
        border = 4 * (EDGE + REACH)
        _, _, height, width = scene.whole
        # A part of the plane that lies among groups of 4 x 4 pixels as the view does; its own edge is left out.
        part = Region(
            -border - down, -border - across, -(-height // 4) * 4 + border + 4, -(-width // 4) * 4 + border + 4
        )
        part = part._replace(bottom=part.bottom - down, right=part.right - across)
        rows, columns = (part.bottom - part.top) // 4, (part.right - part.left) // 4
        own = Region(EDGE, EDGE, rows - EDGE, columns - EDGE)
        if (down, across) not in scene.kept:
            if len(scene.kept) == KEPT:
                scene.kept.pop(next(iter(scene.kept)))  # the oldest
            scene.kept[down, across] = self._first(scene, part, own)
        kept = scene.kept[down, across]
        below, beside = (part.top - view.top) // 4, (part.left - view.left) // 4
        there = Region(own.top + below, own.left + beside, own.bottom + below, own.right + beside)
        black = kept[:, :, :1, :1]  # the first cell does not see the image
        found = black.expand(1, -1, wanted.bottom - wanted.top, wanted.right - wanted.left)
        found = found.clone(memory_format=torch.channels_last)
        if (seen := wanted.shared(there)) is not None:
            found[seen.inside(wanted)] = kept[seen.inside(there)]
        cells = self.side // 4
        for edge in (
            Region(0, 0, EDGE, cells),
            Region(cells - EDGE, 0, cells, cells),
            Region(0, 0, cells, EDGE),
            Region(0, cells - EDGE, cells, cells),
        ):
            if (strip := wanted.shared(edge)) is not None:
                found[strip.inside(wanted)] = self._first(scene, view, strip)
        return found


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
