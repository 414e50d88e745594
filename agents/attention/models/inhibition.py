"""From saliency maps to fixations: the maximum of a map, with inhibition of return.

- A map is first rounded to 2**-20 of its range, so that rounding noise decides nothing; ties go to the lowest index in
  C order.
- ``square`` inhibition takes the pixels inside the window around a fixation for ever. The window covers what is at most
  window // 2 pixels away along either side, so that no fixation lies in the window of another, whichever came first.
- ``gaussian`` inhibition lowers the map around a fixation by up to its whole range, and by half of it at the distance
  of the window's edge (full width at half maximum = the window). Only the fixated pixel itself is taken for ever. Of
  all past fixations the strongest counts at each place.
- A map may have fewer cells than the frame has pixels. It is not resized here: what can be chosen are the pixels at the
  centres of its cells, and a cell is inhibited when that pixel is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from agents.attention.models.fixations import Paths, Pixel, Plan, Scanpath, cell_centre
from agents.errors import AnswerError

Inhibition = Literal["square", "gaussian"]

STEPS = 2**20  # a map is rounded to 1 / STEPS of its range
TAKEN = -(2**30)  # this and less is minus infinity among rounded maps
PORTION = 2**20  # elements of a map that are rounded at a time: a large map is never there twice in float64
FWHM = 2.3548200450309493  # full width at half maximum of a Gaussian, in standard deviations: 2 sqrt(2 ln 2)


def scanpaths(maps: Tensor, plans: Sequence[Plan], inhibition: Inhibition = "square") -> list[Scanpath | AnswerError]:
    """One scanpath for each map of a batch, on the device of the maps.

    ``maps`` is [batch, rows, columns], any real type; ``plans`` has one entry for each, and the frames may differ. A
    map that is not finite gets an AnswerError ``bad_map`` in its place; a flat map gives a valid path (every cell is a
    tie). Nothing depends on what else is in the batch. The arithmetic is on integers once the maps are rounded.
    """
    if maps.ndim != 3 or len(maps) != len(plans) or 0 in maps.shape[1:]:
        raise ValueError(
            f"maps must be [batch, rows, columns] with a plan each: {list(maps.shape)}, {len(plans)} plans"
        )
    paths = InhibitedPaths(plans, (maps.shape[1], maps.shape[2]), inhibition, maps.device)
    for index, saliency in enumerate(maps):
        paths.show(index, saliency)
    while going := paths.going():
        paths.choose(going)
    return paths.results()


def round_into(levels: Tensor, saliency: Tensor) -> bool:
    """Write a map into ``levels`` in steps of 2**-20 of its range (all 0 if it is flat); False if it is not finite."""
    saliency = saliency if saliency.is_floating_point() else saliency.double()
    low, high = (float(bound) for bound in saliency.aminmax())
    extent = high - low
    if not -float("inf") < extent < float("inf"):  # NaN compares false
        return False
    rows = max(1, PORTION // saliency.shape[1])
    for source, target in zip(torch.split(saliency, rows), torch.split(levels, rows), strict=True):
        values = source.to(torch.float64) - low
        if extent > 0:
            values.div_(extent).mul_(STEPS).round_()
        target.copy_(values)
    return True


class InhibitedPaths(Paths):
    """Paths whose next fixation is the maximum of a map with inhibition of return.

    :meth:`show` each path its map, and again whenever the map changes; then :meth:`choose` for those that
    :meth:`going` names. ``shape`` is (rows, columns) of every map. With ``inhibition`` None no pixel is ever taken.
    ``cells`` is (row, column) of each path's latest fixation that was chosen from a map.
    """

    def __init__(
        self, plans: Sequence[Plan], shape: tuple[int, int], inhibition: Inhibition | None, device: torch.device
    ) -> None:
        super().__init__(plans)
        self.inhibition = inhibition
        self.levels = torch.empty((len(plans), *shape), dtype=torch.int32, device=device)
        self.uninhibited = torch.empty_like(self.levels) if inhibition == "gaussian" else None
        self.row_maxima = torch.empty(self.levels.shape[:2], dtype=torch.int32, device=device)
        self.cells: dict[int, tuple[int, int]] = {}

    def show(self, index: int, saliency: Tensor) -> None:
        """Give a path its map [rows, columns]. One that is not finite ends the path with an AnswerError ``bad_map``."""
        if round_into(self.levels[index], saliency.detach()):
            self.inhibit_earlier(index)
        else:
            self.errors[index] = AnswerError("bad_map", "the saliency map is not finite")

    def inhibit_earlier(self, index: int) -> None:
        """Take a path's fresh ``levels`` into account: inhibit around all of its fixations but the latest."""
        if self.uninhibited is not None:
            self.uninhibited[index] = self.levels[index]
        self.row_maxima[index] = self.levels[index].amax(1)
        for fixation in self.fixations[index][:-1]:
            self._inhibit(index, fixation)

    def choose(self, going: Sequence[int]) -> None:
        """Inhibit around the latest fixation of each path in ``going`` and append the next one."""
        going = [index for index in going if index not in self.errors]
        if not going:
            return
        for index in going:
            self._inhibit(index, self.fixations[index][-1])
        item = torch.tensor(going, device=self.levels.device)
        row = self.row_maxima[item].argmax(1)  # the first row that holds the maximum, and there the first column
        column = self.levels[item, row].argmax(1)
        chosen = torch.stack([self.levels[item, row, column], row, column], 1).tolist()
        _, rows, columns = self.levels.shape
        for index, (level, i, j) in zip(going, chosen, strict=True):
            if level <= TAKEN:
                self.stops[index] = "exhausted"
                continue
            width, height = self.plans[index].frame
            self.cells[index] = i, j
            self.fixations[index].append((cell_centre(j, columns, width), cell_centre(i, rows, height)))

    def _inhibit(self, index: int, fixation: Pixel) -> None:
        """Lower a path's levels around a fixation."""
        if self.inhibition is None:
            return
        plan, levels, (x, y) = self.plans[index], self.levels[index], fixation
        (rows, columns), (width, height) = levels.shape, plan.frame
        reach = plan.window // 2
        if self.uninhibited is not None:
            reach = 0
            spread = plan.window / FWHM
            down, across = self._dip(y, rows, height, spread), self._dip(x, columns, width, spread)
            dip = torch.outer(down * STEPS, across).round_().to(torch.int32)
            torch.minimum(levels, torch.sub(self.uninhibited[index], dip, out=dip), out=levels)
        near = _cells_within(y, reach, rows, height)
        levels[near, _cells_within(x, reach, columns, width)] = TAKEN
        changed = near if self.uninhibited is None else slice(None)
        self.row_maxima[index, changed] = levels[changed].amax(1)

    def _dip(self, at: int, cells: int, side: int, spread: float) -> Tensor:
        """A Gaussian around a pixel, at the centres of the cells along a side."""
        centres = (2 * torch.arange(cells, device=self.levels.device) + 1) * side // (2 * cells)
        return torch.exp(-(((centres - at).double() / spread) ** 2) / 2)


def _cells_within(at: int, reach: int, cells: int, side: int) -> slice:
    """The cells along a side whose centres are at most ``reach`` pixels from the pixel ``at``."""

    def centre(cell: int) -> int:
        return cell_centre(cell, cells, side)

    numbers = range(cells)
    return slice(bisect_left(numbers, at - reach, key=centre), bisect_right(numbers, at + reach, key=centre))
