"""The fixations of a scanpath, the first forced at the centre, and when it ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from agents.answers import ScanpathAnswer
from agents.errors import AnswerError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

StopRule = Literal["target", "maximum", "exhausted"]
Box = tuple[float, float, float, float]
Pixel = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How far a scanpath goes, and what ends it."""

    frame: Pixel
    """(width, height) in pixels."""
    window: int
    """The side of the window of inhibition around a fixation, in pixels. It reaches window // 2 pixels to each side."""
    maximum: int
    """Fixations at most, the first included."""
    target: Box | NDArray[np.bool_] | None = None
    """A box [x, y, width, height] or a mask [height, width], in pixels of the frame; None: there is none."""
    searching: bool = False
    """Whether a target that is not found is an answer."""
    exact: bool = False
    """Whether a window of 64 is exactly x - 32 … x + 31."""
    lengths: tuple[int, ...] = ()
    """Numbers of fixations, such as people's, from which the maximum is drawn; (): it is as it is."""

    def drawn(self, seed: int) -> Plan:
        """The plan with a ``maximum`` drawn from ``lengths``, if any, by ``seed`` alone."""
        if not self.lengths:
            return self
        # Of a stream of its own: no other draw from the seed moves with it.
        length = random.Random(f"number of fixations, {seed}").choice(self.lengths)
        return replace(self, maximum=min(self.maximum, length))

    @property
    def reach(self) -> tuple[int, int]:
        """Pixels of the window before and behind the fixation."""
        return self.window // 2, (self.window - self.exact) // 2

    def finds(self, x: int, y: int) -> bool:
        """Whether a fixation at (x, y), in pixels of the frame, has the target in its window; never without a
        target."""
        if self.target is None:
            return False
        before, behind = self.reach
        left = max(x - before, 0)
        right = min(x + behind + 1, self.frame[0])
        top = max(y - before, 0)
        bottom = min(y + behind + 1, self.frame[1])
        if not isinstance(self.target, tuple):
            return bool(self.target[top:bottom, left:right].any())
        box_left, box_top, width, height = self.target
        return box_left < right and left < box_left + width and box_top < bottom and top < box_top + height


class Paths:
    """Fixations of several plans so far; ``stops`` are None while a path goes on, ``errors`` by the plan's index."""

    def __init__(self, plans: Sequence[Plan], selection: str) -> None:
        self.plans = plans
        self.selection = selection
        self.fixations = [[(plan.frame[0] // 2, plan.frame[1] // 2)] for plan in plans]
        self.stops: list[StopRule | None] = [None] * len(plans)
        self.errors: dict[int, AnswerError] = {}

    def going(self) -> list[int]:
        """The plans whose path goes on; notes why the others ended."""
        going = []
        for index, (plan, path) in enumerate(zip(self.plans, self.fixations, strict=True)):
            if self.stops[index] is not None or index in self.errors:
                continue
            if plan.finds(*path[-1]):
                self.stops[index] = "target"
            elif len(path) >= plan.maximum:
                self.stops[index] = "maximum"
            else:
                going.append(index)
        return going

    def results(self) -> list[ScanpathAnswer | AnswerError]:
        """Each plan's answer or error, once all paths have ended."""
        return [self.errors.get(index) or self.answer(index) for index in range(len(self.plans))]

    def answer(self, index: int) -> ScanpathAnswer:
        """The path of a plan by its index; searches say whether the target was found."""
        plan = self.plans[index]
        path = self.fixations[index]
        stop = self.stops[index] or "exhausted"
        is_found = stop == "target"
        return ScanpathAnswer(
            fixations=[[x, y] for x, y in path],
            frame=list(plan.frame),
            window=plan.window,
            stop=stop,
            found=is_found if plan.searching else None,
            found_at=len(path) - 1 if is_found else None,
            forced_first=True,
            selection=self.selection,
        )


def cell_centre(cell: int, cells: int, side: int) -> int:
    """The pixel with the centre of a cell, of ``cells`` along ``side`` pixels."""
    return (2 * cell + 1) * side // (2 * cells)
