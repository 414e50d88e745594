"""Scanpaths whose fixations are chosen on a device, for a whole batch at once; the host finds out where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from agents.answers import ScanpathAnswer
from agents.attention.models.fixations import Paths, Plan
from agents.errors import AnswerError
from agents.transfer import downloaded

EXHAUSTED, NOT_FINITE = -1, -2  # in the place of a fixation: none is left, or the map is no map


class DevicePaths(Paths):
    """Paths that :meth:`add` makes longer together, by one fixation each.

    On a CPU the host knows of a fixation at once, and a path that has ended is in ``going`` no more. On a GPU it would
    have to wait for each: there all go on until the largest of their maxima, the host :func:`hears <hear>` of
    everything in the end, and what lies behind a path's end is dropped. Only where a fixation is ``dear``, because a
    network makes a map for it, and may be the one that finds a target, the host waits for it: to look once more in
    vain would take the device much longer.
    """

    def __init__(self, plans: Sequence[Plan], selection: str, device: torch.device, *, dear: bool = False) -> None:
        super().__init__(plans, selection)
        self.unheard: list[Tensor] = []
        self._left = max((plan.maximum for plan in plans), default=1) - 1
        self._on_cpu, self._dear = device.type == "cpu", dear

    def add(self, fixations: Tensor) -> None:
        """Note the next fixation of every path: x and y [paths, 2], or EXHAUSTED or NOT_FINITE twice."""
        self.unheard.append(fixations)
        self._left -= 1

    def going(self) -> list[int]:
        """The plans whose path goes on, as far as the host knows."""
        if self._left <= 0:
            return []
        if self._on_cpu:
            hear([self])
        going = super().going()
        if self.unheard and self._dear and any(self.plans[index].target is not None for index in going):
            hear([self])
            going = super().going()
        return going

    def note(self, fixations: Sequence[Sequence[int]]) -> None:
        """Take in what :meth:`add` was given once, as numbers."""
        for index in super().going():
            x, y = fixations[index]
            if x == EXHAUSTED:
                self.stops[index] = "exhausted"
            elif x == NOT_FINITE:
                self.errors[index] = AnswerError("bad_map", "the map to choose fixations from is not finite")
            else:
                self.fixations[index].append((x, y))

    def results(self) -> list[ScanpathAnswer | AnswerError]:
        hear([self])
        super().going()
        return super().results()


def hear(paths: Iterable[DevicePaths]) -> None:
    """Bring all that was added to these paths to the host, in one copy, for which it waits."""
    waiting = [path for path in paths if path.unheard]
    if not waiting:
        return
    heard = iter(downloaded([fixations for path in waiting for fixations in path.unheard]))
    for path in waiting:
        for _ in path.unheard:
            path.note(next(heard).tolist())
        path.unheard.clear()
