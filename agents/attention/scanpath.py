"""From saliency maps to scanpaths: the part that all attention agents share.

The rule is the papers': the next fixation is the map's maximum, with inhibition of return around the current fixation.

- A map is first rounded to 2**-20 of its range, so that rounding noise decides nothing; ties go to the lowest index in
  C order. The first fixation is the centre of the frame and is forced.
- ``square`` inhibition takes the places inside a square window for ever (minus infinity). ``gaussian`` inhibition
  lowers them by up to the map's whole range, by half of it at the distance of the square's edge (full width at half
  maximum = the window); only the fixated pixel itself is taken for ever.
- The window is given for a frame 1280 pixels wide and scaled by width / 1280, at least one pixel, unless it is set in
  pixels. It covers what is at most window // 2 pixels away along either side, so that no fixation lies in the window
  of another, whichever came first.
- A target is found when the window around a fixation overlaps any of its pixels; this is tested before that window is
  inhibited, and the forced fixation counts. Only the part of a target that lies inside the frame counts.
- A map may have fewer cells than the frame has pixels. It is not resized here: the places that can be chosen are the
  pixels at the centres of its cells, and a cell is inhibited when that pixel is. An agent whose method resizes its map
  to the frame does so itself.

This module imports no torch until :func:`scanpaths` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field

from agents.answers import ScanpathAnswer
from agents.contract import Settings
from agents.errors import AnswerError
from agents.stimuli import AttentionStimulus, Pixels

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

Inhibition = Literal["square", "gaussian"]
Stop = Literal["target", "maximum", "exhausted"]
Box = tuple[float, float, float, float]
Fixations = Annotated[int, Field(ge=1, le=10_000)]

STEPS = 2**20  # a map is rounded to 1 / STEPS of its range
TAKEN = -(2**31)  # minus infinity among rounded maps
PORTION = 2**20  # elements of a map that are rounded at a time
FWHM = 2.3548200450309493  # full width at half maximum of a Gaussian, in standard deviations: 2 sqrt(2 ln 2)


class PathSettings(Settings):
    """How far a scanpath goes: the settings of every attention agent.

    A stimulus' own ``window`` and ``max_fixations`` come before all of these. A stimulus belongs to Waldo when its
    ``dataset`` (or, without one, its ``source``) contains that word.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    window: Annotated[float, Field(gt=0, le=100_000)] = 200.0
    """Side of the window around a fixation, in pixels of a frame 1280 wide; it is scaled with the frame's width."""
    window_waldo: Annotated[float, Field(gt=0, le=100_000)] = 100.0
    """Instead of window for stimuli of a Waldo data set: pixels of a frame 1280 wide, scaled likewise."""
    window_pixels: Pixels | None = None
    """Side of the window in pixels of any frame, not scaled; given, it replaces window and window_waldo."""
    max_free: Fixations = 15
    """Most fixations in free viewing, the forced first one at the centre included."""
    max_search: Fixations = 65
    """Most fixations in search for a target, the forced first one included."""
    max_waldo: Fixations = 80
    """Most fixations in search where the stimulus is of a Waldo data set, the forced first one included."""


class ScanSettings(PathSettings):
    """The settings of every agent that takes the maximum of a map with inhibition of return."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    inhibition: Inhibition = "square"
    """How a fixated place is kept from being chosen again: a hard square window, or a Gaussian dip of that width."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What one map is asked for: ``frame`` (width, height), ``window`` in pixels, ``maximum`` number of fixations.

    ``target`` is a box [x, y, width, height], a mask (bool [height, width]) or None where there is nothing to test;
    ``searching`` says whether not finding it is an answer.
    """

    frame: tuple[int, int]
    window: int
    maximum: int
    target: Box | NDArray[np.bool_] | None = None
    searching: bool = False

    def around(self, x: int, y: int) -> tuple[int, int, int, int]:
        """The window around a fixation as left, top, right, bottom (the last two exclusive), not cut to the frame."""
        reach = self.window // 2
        return x - reach, y - reach, x + reach + 1, y + reach + 1

    def finds(self, x: int, y: int) -> bool:
        """Whether the window around a fixation overlaps the target."""
        if self.target is None:
            return False
        left, top, right, bottom = self.around(x, y)
        left, top = max(left, 0), max(top, 0)
        right, bottom = min(right, self.frame[0]), min(bottom, self.frame[1])
        if not isinstance(self.target, tuple):
            return bool(self.target[top:bottom, left:right].any())
        box_left, box_top, width, height = self.target
        return box_left < right and left < box_left + width and box_top < bottom and top < box_top + height


@dataclass(frozen=True, slots=True)
class Scanpath:
    """The fixations of one map, (x, y) in pixels of ``frame``, the forced one first.

    ``found_at`` is the index in ``fixations`` of the one that found the target; ``found`` is None in free viewing and
    where the place of the target is not known.
    """

    fixations: list[tuple[int, int]]
    frame: tuple[int, int]
    window: int
    stop: Stop
    found: bool | None
    found_at: int | None

    def answer(self, selection: str = "maximum") -> ScanpathAnswer:
        """The answer that stands in a record; ``selection`` names the way in which fixations were chosen."""
        return ScanpathAnswer(
            fixations=[[x, y] for x, y in self.fixations],
            frame=list(self.frame),
            window=self.window,
            stop=self.stop,
            found=self.found,
            found_at=self.found_at,
            forced_first=True,
            selection=selection,
        )


def plan(stimulus: AttentionStimulus, frame: tuple[int, int], settings: PathSettings) -> Plan:
    """What ``stimulus`` asks for on a frame of (width, height).

    Raises AnswerError ``bad_target`` where the target's box or mask has no pixel in the frame or the mask has another
    size, ImageError where the mask cannot be decoded.
    """
    waldo = "waldo" in (stimulus.dataset or stimulus.source or "").lower()
    window = stimulus.window or settings.window_pixels
    if window is None:
        window = max(1, round((settings.window_waldo if waldo else settings.window) * frame[0] / 1280))
    searching = stimulus.mode == "search"
    maximum = settings.max_free if not searching else settings.max_waldo if waldo else settings.max_search
    absent = stimulus.target_present is False
    target = None if absent or not searching else _target(stimulus, frame)
    return Plan(frame, window, stimulus.max_fixations or maximum, target, searching and (absent or target is not None))


def _target(stimulus: AttentionStimulus, frame: tuple[int, int]) -> Box | NDArray[np.bool_] | None:
    """The mask where there is one (it is the finer of the two), otherwise the box."""
    if stimulus.target_mask is not None:
        mask: NDArray[np.bool_] = stimulus.target_mask.decode().max(axis=2) >= 128
        wrong = misplaced(stimulus, frame, (mask.shape[1], mask.shape[0]))
        if wrong is not None:
            raise AnswerError("bad_target", wrong[1])
        if not mask.any():
            raise AnswerError("bad_target", "the target mask marks no pixel (white marks, black does not)")
        return mask
    if (wrong := misplaced(stimulus, frame, None)) is not None:
        raise AnswerError("bad_target", wrong[1])
    return stimulus.target_box


def misplaced(
    stimulus: AttentionStimulus, frame: tuple[int, int], mask: tuple[int, int] | None
) -> tuple[str, str] | None:
    """The field of a target that has no place in the frame, and why, or None; by sizes (width, height) alone."""
    if stimulus.target_present is False:
        return None
    width, height = frame
    if mask is not None:
        if mask != frame:
            return "target_mask", f"the target mask is {mask[0]} x {mask[1]}, but its image is {width} x {height}"
        return None
    box = stimulus.target_box
    if box is not None and not (box[0] < width and box[0] + box[2] > 0 and box[1] < height and box[1] + box[3] > 0):
        return "target_box", f"the target box {list(box)} lies outside the frame of {width} x {height}"
    return None


def scanpaths(
    maps: torch.Tensor, plans: Sequence[Plan], inhibition: Inhibition = "square"
) -> list[Scanpath | AnswerError]:
    """One scanpath for each map of a batch, on the device of the maps.

    ``maps`` is [batch, rows, columns], any real type; ``plans`` has one entry for each, and the frames may differ. A
    map that is not finite gets an AnswerError ``bad_map`` in its place; a flat map gives a valid path (every place is
    a tie). Nothing depends on what else is in the batch. The arithmetic is on integers once the maps are rounded.
    """
    import torch

    if maps.ndim != 3 or len(maps) != len(plans) or 0 in maps.shape[1:]:
        raise ValueError(
            f"maps must be [batch, rows, columns] with a plan each: {list(maps.shape)}, {len(plans)} plans"
        )
    maps = maps.detach() if maps.is_floating_point() else maps.double()
    levels = torch.empty(maps.shape, dtype=torch.int32, device=maps.device)
    good = [index for index, saliency in enumerate(maps) if round_into(levels[index], saliency)]
    paths: dict[int, Scanpath] = {}
    if good:
        batch = _Batch(levels if len(good) == len(maps) else levels[good], [plans[index] for index in good], inhibition)
        paths = dict(zip(good, batch.run(), strict=True))
    return [paths.get(index) or AnswerError("bad_map", "the saliency map is not finite") for index in range(len(maps))]


def round_into(levels: torch.Tensor, saliency: torch.Tensor) -> bool:
    """Write a map into ``levels`` in steps of 2**-20 of its range (all 0 if it is flat); False if it is not finite."""
    import torch

    low, high = (float(bound) for bound in saliency.aminmax())
    extent = high - low
    if not -float("inf") < extent < float("inf"):  # NaN compares false
        return False
    rows = max(1, PORTION // saliency.shape[1])  # a large map is never there twice in float64
    for source, target in zip(torch.split(saliency, rows), torch.split(levels, rows), strict=True):
        values = source.to(torch.float64) - low
        if extent > 0:
            values.div_(extent).mul_(STEPS).round_()
        target.copy_(values)
    return True


class Walk:
    """The fixations of several plans so far, and why each path has ended; what chooses the next ones extends it.

    ``paths`` begin with the forced fixation; ``stops`` are None while a path goes on.
    """

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = plans
        self.paths = [[(entry.frame[0] // 2, entry.frame[1] // 2)] for entry in plans]
        self.stops: list[Stop | None] = [None] * len(plans)

    def going(self) -> list[int]:
        """The plans whose path goes on after its latest fixation; notes why the others ended."""
        going = []
        for index, (entry, path) in enumerate(zip(self.plans, self.paths, strict=True)):
            if self.stops[index] is not None:
                continue
            if entry.finds(*path[-1]):
                self.stops[index] = "target"
            elif len(path) >= entry.maximum:
                self.stops[index] = "maximum"
            else:
                going.append(index)
        return going

    def scanpaths(self) -> list[Scanpath]:
        """All paths, once they have ended."""
        return [
            Scanpath(
                path,
                entry.frame,
                entry.window,
                stop or "exhausted",
                (stop == "target") if entry.searching else None,
                len(path) - 1 if stop == "target" else None,
            )
            for path, entry, stop in zip(self.paths, self.plans, self.stops, strict=True)
        ]


def cell_centres(cells: int, sides: torch.Tensor) -> torch.Tensor:
    """The pixels [batch, cells] that hold the centres of a map's cells along frames of ``sides`` [batch] pixels."""
    import torch

    # In integers: floor((2 c + 1) side / (2 cells)).
    return (2 * torch.arange(cells, device=sides.device) + 1) * sides[:, None] // (2 * cells)


class _Batch(Walk):
    """Maps of one shape, and the fixations chosen from them so far.

    The largest value of every row is kept beside the maps: a step then reads and writes only the rows that the
    windows touch.
    """

    def __init__(self, levels: torch.Tensor, plans: Sequence[Plan], inhibition: Inhibition) -> None:
        import torch

        _, rows, columns = levels.shape
        device = levels.device
        super().__init__(plans)
        self.levels = levels
        self.free = levels.clone() if inhibition == "gaussian" else None
        self.best = levels.amax(2)
        size = torch.tensor([entry.frame for entry in plans], device=device)
        self.xs, self.ys = cell_centres(columns, size[:, 0]), cell_centres(rows, size[:, 1])
        self.reach = [0 if inhibition == "gaussian" else entry.window // 2 for entry in plans]

    def run(self) -> list[Scanpath]:
        """Step until every path has ended."""
        while going := self.going():
            self._inhibit(going)
            self._choose(going)
        return self.scanpaths()

    def _inhibit(self, going: list[int]) -> None:
        """Take the cells inside the windows around the latest fixations."""
        import torch

        device = self.levels.device
        item = torch.tensor(going, device=device)
        current = torch.tensor([self.paths[index][-1] for index in going], device=device)
        xs, ys = self.xs[item], self.ys[item]
        if self.free is not None:
            self._fade(going)
        reach = torch.tensor([[self.reach[index]] for index in going], device=device)
        columns = (xs - current[:, :1]).abs() <= reach
        first = torch.searchsorted(ys, current[:, 1:] - reach)
        end = torch.searchsorted(ys, current[:, 1:] + reach, right=True)
        height = self.levels.shape[1]
        covered = ((2 * self.reach[index] + 1) * height // self.plans[index].frame[1] + 2 for index in going)
        longest = min(height, max(covered))
        # A shorter window repeats its last row; one that holds no cell (end == first) writes a row back unchanged.
        rows = torch.minimum(first + torch.arange(longest, device=device), end - 1).clamp(min=0)
        strip = self.levels[item[:, None], rows]
        strip.masked_fill_((columns & (end > first))[:, None, :], TAKEN)
        self.levels[item[:, None], rows] = strip
        self.best[item[:, None], rows] = strip.amax(2)

    def _fade(self, going: list[int]) -> None:
        """Gaussian inhibition: of all past fixations the strongest counts at each place."""
        import torch

        assert self.free is not None
        for index in going:
            spread = self.plans[index].window / FWHM
            x, y = self.paths[index][-1]
            across, down = (
                torch.exp(-(((places - centre).double() / spread) ** 2) / 2)
                for places, centre in ((self.xs[index], x), (self.ys[index], y))
            )
            inhibition = torch.outer(down * STEPS, across).round_().to(torch.int32)
            levels = self.levels[index]
            torch.minimum(levels, torch.sub(self.free[index], inhibition, out=inhibition), out=levels)
            self.best[index] = levels.amax(1)

    def _choose(self, going: list[int]) -> None:
        """Append the first maximum of each map: the first row that holds it, and there the first column."""
        import torch

        item = torch.tensor(going, device=self.levels.device)
        row = self.best[item].argmax(1)
        column = self.levels[item, row].argmax(1)
        chosen = torch.stack([self.levels[item, row, column], self.xs[item, column], self.ys[item, row]], 1)
        for index, (value, x, y) in zip(going, chosen.tolist(), strict=True):
            if value == TAKEN:
                self.stops[index] = "exhausted"
            else:
                self.paths[index].append((x, y))


def edge_share(fixations: Sequence[Sequence[float]], window: float, within: float = 1.0) -> float | None:
    """The share of saccades that land on the edge of an earlier fixation's window; None without a saccade.

    On the edge: outside the square window, but at most ``within`` pixels outside it. It follows from a maximum and a
    hard window (on a slope the best place left lies at the window's border), and is no property of the map.
    """
    saccades = len(fixations) - 1
    if saccades < 1:
        return None
    landed = 0
    for index in range(1, len(fixations)):
        x, y = fixations[index][0], fixations[index][1]
        distances = (max(abs(x - before[0]), abs(y - before[1])) - window // 2 for before in fixations[:index])
        landed += any(0 < distance <= within for distance in distances)
    return landed / saccades
