"""From saliency maps to fixations: the maximum of a map, with inhibition of return.

- A map is first rounded to 2**-20 of its range, so that rounding noise decides nothing; ties go to the lowest index in
  C order.
- ``square`` inhibition takes the pixels inside the window around a fixation for ever; see
  :class:`agents.attention.models.fixations.Plan` for how far it reaches.
- ``gaussian`` inhibition lowers the map around a fixation by up to its whole range, and by half of it at the distance
  of the window's edge (full width at half maximum = the window). Only the fixated pixel itself is taken for ever. Of
  all past fixations the strongest counts at each place.
- A map may have fewer cells than the frame has pixels. It is not resized here: what can be chosen are the pixels at the
  centres of its cells, and a cell is inhibited when that pixel is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from agents.answers import ScanpathAnswer
from agents.attention.models.fixations import Paths, Pixel, Plan, cell_centre
from agents.errors import AnswerError

Inhibition = Literal["square", "gaussian"]

STEPS = 2**20  # a map is rounded to 1 / STEPS of its range
TAKEN = -(2**30)  # this and less is minus infinity among rounded maps
FWHM = 2.3548200450309493  # full width at half maximum of a Gaussian, in standard deviations: 2 sqrt(2 ln 2)


def scanpaths(
    maps: Tensor, plans: Sequence[Plan], inhibition: Inhibition = "square"
) -> list[ScanpathAnswer | AnswerError]:
    """One scanpath for each map of a batch, on the device of the maps.

    ``maps`` is [batch, rows, columns], any real type; ``plans`` has one entry for each, and the frames may differ. A
    map that is not finite gets an AnswerError ``bad_map`` in its place; a flat map gives a valid path (every cell is a
    tie). Nothing depends on what else is in the batch. The arithmetic is on integers once the maps are rounded.
    """
    paths = InhibitedPaths(plans, (maps.shape[1], maps.shape[2]), inhibition, maps.device)
    for index, saliency in enumerate(maps):
        paths.show(index, saliency)
    while going := paths.going():
        paths.choose(going)
    return paths.results()


def rounded(saliency: Tensor) -> Tensor | None:
    """A map in steps of 2**-20 of its range, int32 (all 0 if it is flat); None if it is not finite."""
    values = saliency.double()
    low, high = (float(bound) for bound in values.aminmax())
    if not math.isfinite(high - low):
        return None
    return values.sub(low).div_((high - low) or 1.0).mul_(STEPS).round_().int()


class InhibitedPaths(Paths):
    """Paths whose next fixation is the maximum of a map with inhibition of return.

    :meth:`show` each path its map, and again whenever the map changes; then :meth:`choose` for those that
    :meth:`going` names. ``shape`` is (rows, columns) of every map. With ``inhibition`` None no pixel is ever taken:
    the maps are those of draws from a density. ``cells`` is (row, column) of each path's latest fixation.
    """

    def __init__(
        self, plans: Sequence[Plan], shape: tuple[int, int], inhibition: Inhibition | None, device: torch.device
    ) -> None:
        super().__init__(plans, f"maximum, {inhibition} inhibition" if inhibition else "drawn from the density")
        self.inhibition = inhibition
        self.levels = torch.empty((len(plans), *shape), dtype=torch.int32, device=device)
        self.uninhibited = torch.empty_like(self.levels) if inhibition == "gaussian" else None
        self.cells = [(shape[0] // 2, shape[1] // 2) for _ in plans]

    def show(self, index: int, saliency: Tensor) -> None:
        """Give a path its map [rows, columns]. One that is not finite ends the path with an AnswerError ``bad_map``."""
        levels = rounded(saliency)
        if levels is None:
            self.errors[index] = AnswerError("bad_map", "the map to choose fixations from is not finite")
            return
        self.levels[index] = self.on_frame(index, levels)
        if self.uninhibited is not None:
            self.uninhibited[index] = self.levels[index]
        for fixation in self.fixations[index][:-1]:
            self._inhibit(index, fixation)

    def on_frame(self, index: int, levels: Tensor) -> Tensor:
        """The levels [rows, columns] of the whole frame, of what a path was shown."""
        return levels

    def choose(self, going: Sequence[int]) -> None:
        """Inhibit around the latest fixation of each path in ``going`` and append the next one."""
        _, rows, columns = self.levels.shape
        for index in going:
            if index in self.errors:
                continue
            self._inhibit(index, self.fixations[index][-1])
            row, column = divmod(int(self.levels[index].argmax()), columns)  # the first of the highest
            if self.levels[index, row, column] <= TAKEN:
                self.stops[index] = "exhausted"
                continue
            width, height = self.plans[index].frame
            self.cells[index] = row, column
            self.fixations[index].append((cell_centre(column, columns, width), cell_centre(row, rows, height)))

    def _inhibit(self, index: int, fixation: Pixel) -> None:
        """Lower a path's levels around a fixation."""
        if self.inhibition is None:
            return
        levels, plan = self.levels[index], self.plans[index]
        across, down = (
            (2 * torch.arange(cells, device=levels.device) + 1) * side // (2 * cells) - at
            for cells, side, at in zip(reversed(levels.shape), plan.frame, fixation, strict=True)
        )
        before, behind = plan.reach
        if self.uninhibited is not None:
            before = behind = 0
            near_x, near_y = (torch.exp(-((away.double() / (plan.window / FWHM)) ** 2) / 2) for away in (across, down))
            dip = torch.outer(near_y * STEPS, near_x).round_().int()
            torch.minimum(levels, self.uninhibited[index] - dip, out=levels)
        rows, columns = ((-before <= away) & (away <= behind) for away in (down, across))
        levels.masked_fill_(rows[:, None] & columns, TAKEN)
