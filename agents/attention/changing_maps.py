"""Scanpaths on maps that change with every fixation: the model looks again, and its new map's maximum counts.

The rules are those of :mod:`agents.attention.scanpath`, with the inhibition laid over each new map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents.attention.scanpath import FWHM, STEPS, TAKEN, Inhibition, Plan, Scanpath, Walk, cell_centres, round_into
from agents.errors import AnswerError

if TYPE_CHECKING:
    import torch


class ChangingMaps(Walk):
    """The paths of a batch. Ask :meth:`going` for those that go on, give :meth:`choose` a new map for each, and repeat.

    ``shape`` is (rows, columns) of every map; as in :func:`agents.attention.scanpath.scanpaths` the places that can be
    chosen are the pixels at the centres of the cells. With ``inhibition`` None no place is ever taken.
    """

    def __init__(
        self, plans: Sequence[Plan], shape: tuple[int, int], inhibition: Inhibition | None, device: torch.device
    ) -> None:
        import torch

        super().__init__(plans)
        rows, columns = shape
        size = torch.tensor([entry.frame for entry in plans], device=device)
        self.xs, self.ys = cell_centres(columns, size[:, 0]), cell_centres(rows, size[:, 1])
        self.inhibition = inhibition
        self.taken = torch.zeros(len(plans), rows, columns, dtype=torch.bool, device=device)
        self.dip = torch.zeros(self.taken.shape if inhibition == "gaussian" else (0,), dtype=torch.int32, device=device)
        self.errors: dict[int, AnswerError] = {}

    def going(self) -> list[int]:
        return [index for index in super().going() if index not in self.errors]

    def choose(self, going: Sequence[int], maps: torch.Tensor) -> None:
        """Append the next fixation of each path in ``going``: ``maps`` [len(going), rows, columns], any real type.

        A map that is not finite ends its path with an AnswerError ``bad_map``.
        """
        import torch

        if self.inhibition is not None:
            for index in going:
                self._inhibit(index)
        levels = torch.empty(maps.shape, dtype=torch.int32, device=maps.device)
        finite = [round_into(level, one) for level, one in zip(levels, maps, strict=True)]
        item = torch.tensor(going, device=maps.device)
        if self.inhibition == "gaussian":
            levels -= self.dip[item]
        if self.inhibition is not None:
            levels.masked_fill_(self.taken[item], TAKEN)
        place = levels.flatten(1).argmax(1)  # the first maximum
        row, column = place // maps.shape[2], place % maps.shape[2]
        value = levels.flatten(1).gather(1, place[:, None])[:, 0]
        chosen = torch.stack([value, self.xs[item, column], self.ys[item, row]], 1).tolist()
        for index, (level, x, y), good in zip(going, chosen, finite, strict=True):
            if not good:
                self.errors[index] = AnswerError("bad_map", "the saliency map is not finite")
            elif level == TAKEN:
                self.stops[index] = "exhausted"
            else:
                self.paths[index].append((x, y))

    def _inhibit(self, index: int) -> None:
        """Take the places around the latest fixation of a path."""
        import torch

        x, y = self.paths[index][-1]
        across, down = self.xs[index] - x, self.ys[index] - y
        reach = 0
        if self.inhibition == "square":
            reach = self.plans[index].window // 2
        else:
            spread = self.plans[index].window / FWHM
            falls = [torch.exp(-((away.double() / spread) ** 2) / 2) for away in (down, across)]
            dip = torch.outer(falls[0] * STEPS, falls[1]).round_().to(torch.int32)
            torch.maximum(self.dip[index], dip, out=self.dip[index])
        self.taken[index] |= torch.outer(down.abs() <= reach, across.abs() <= reach)

    def results(self) -> list[Scanpath | AnswerError]:
        """One scanpath, or what was wrong with its map, for each plan."""
        return [self.errors.get(index) or path for index, path in enumerate(self.scanpaths())]
