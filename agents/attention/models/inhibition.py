"""From saliency maps to fixations: the maximum, with inhibition of return for ever. Maps are rounded to 2**-20 of their
range; ties go to the lowest index."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from agents.answers import ScanpathAnswer
from agents.attention.models.fixations import Paths, Plan
from agents.errors import AnswerError
from agents.models.transfer import downloaded, uploaded

STEPS = 2**20  # a map is rounded to 1 / STEPS of its range
TAKEN = -1  # below all that a rounded map has
# in the place of a fixation: none is left, or the map is no map
EXHAUSTED = -1
NOT_FINITE = -2


class DevicePaths(Paths):
    """Paths that :meth:`add` extends together. A GPU goes on to the largest maximum before :func:`hear` copies them;
    ``dear`` fixations are copied at once where they may end at a target."""

    def __init__(self, plans: Sequence[Plan], selection: str, device: torch.device, *, dear: bool = False) -> None:
        super().__init__(plans, selection)
        self.unheard: list[Tensor] = []
        self._left = max((plan.maximum for plan in plans), default=1) - 1
        self._on_cpu = device.type == "cpu"
        self._dear = dear

    def add(self, fixations: Tensor) -> None:
        """The next fixation of every path: x and y [paths, 2], or EXHAUSTED or NOT_FINITE twice."""
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
        """Note what :meth:`add` got in a call, as numbers."""
        for index in super().going():
            x, y = fixations[index]
            if x == EXHAUSTED:
                self.stops[index] = "exhausted"
            elif x == NOT_FINITE:
                self.errors[index] = AnswerError("bad_map", "the map to choose fixations from is not finite")
            else:
                self.fixations[index].append((x, y))

    def results(self) -> list[ScanpathAnswer | AnswerError]:
        """As of all paths, after what is still on the device was read."""
        hear([self])
        super().going()
        return super().results()


def hear(paths: Iterable[DevicePaths]) -> None:
    """Copy all that was added to the host, in a single wait."""
    waiting = [path for path in paths if path.unheard]
    if not waiting:
        return
    heard = iter(downloaded([fixations for path in waiting for fixations in path.unheard]))
    for path in waiting:
        for _ in path.unheard:
            path.note(next(heard).tolist())
        path.unheard.clear()


def scanpaths(maps: Tensor, plans: Sequence[Plan]) -> list[ScanpathAnswer | AnswerError]:
    """A scanpath for each of the ``maps`` [batch, rows, columns], or AnswerError ``bad_map`` where it is not finite."""
    portions = walks(maps, plans)
    hear(portions)
    return [path for paths in portions for path in paths.results()]


def walks(maps: Tensor, plans: Sequence[Plan]) -> list[DevicePaths]:
    """The paths of :func:`scanpaths`, in order, before :func:`hear`."""
    # A CPU gains nothing from a batch, and would go on with paths that have ended.
    at_once = 1 if maps.device.type == "cpu" else max(1, len(plans))
    walked: list[DevicePaths] = []
    for start in range(0, len(plans), at_once):
        portion = slice(start, start + at_once)
        paths = InhibitedPaths(plans[portion], (maps.shape[1], maps.shape[2]), maps.device)
        paths.show(maps[portion])
        while paths.going():
            paths.choose()
        walked.append(paths)
    return walked


def rounded(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Maps [batch, rows, columns] in steps of 2**-20 of their range, int32 (flat: 0), and whether each is finite."""
    values = maps.double()
    low = values.amin((1, 2), keepdim=True)
    high = values.amax((1, 2), keepdim=True)
    extent = high - low
    levels = values.sub(low).div_(torch.where(extent == 0, 1.0, extent)).mul_(STEPS).round_().int()
    return levels, extent.isfinite()[:, 0, 0]


class InhibitedPaths(DevicePaths):
    """Paths by the maximum of maps of ``shape``, new before each choice if ``changing``. ``drawn`` maps are not
    inhibited. ``row`` and ``column`` [paths, 1] are the latest cell, ``fixated`` x and y [paths, 2]."""

    def __init__(
        self,
        plans: Sequence[Plan],
        shape: tuple[int, int],
        device: torch.device,
        *,
        drawn: bool = False,
        changing: bool = False,
    ) -> None:
        selection = "drawn from the density" if drawn else "maximum, square inhibition"
        super().__init__(plans, selection, device, dear=changing)
        rows, columns = shape
        numbers = [[*plan.frame, *plan.reach, *path[0]] for plan, path in zip(plans, self.fixations, strict=True)]
        [moved] = uploaded([torch.tensor(numbers)], device)
        width, height, self._before, self._behind, x, y = moved[:, :, None].unbind(1)
        self._xs = _centres(columns, width)
        self._ys = _centres(rows, height)
        self.frames = moved[:, :2]
        self.fixated = [torch.cat([x, y], 1)]
        self.row = torch.full_like(x, rows // 2)
        self.column = torch.full_like(x, columns // 2)
        self._finite = torch.ones(len(plans), dtype=torch.bool, device=device)
        self._taken = None if drawn else torch.zeros((len(plans), *shape), dtype=torch.bool, device=device)

    def show(self, maps: Tensor, items: Tensor | None = None) -> None:
        """The maps [batch, rows, columns] of all paths or of ``items``; not finite, they end as ``bad_map``."""
        levels, finite = rounded(maps)
        levels = self.on_frame(levels)
        if items is None:
            self._levels = levels
            self._finite = self._finite & finite
        else:
            self._levels[items] = levels
            self._finite[items] = self._finite[items] & finite

    def on_frame(self, levels: Tensor) -> Tensor:
        """Levels [batch, rows, columns] of the frames."""
        return levels

    def choose(self) -> None:
        """Inhibit around the latest fixations and append the next."""
        score = self._inhibited()
        row = score.amax(2).argmax(1, keepdim=True)  # the first of the highest in C order: its row, then its column
        best, column = score.take_along_dim(row[:, :, None], 1)[:, 0].max(1, keepdim=True)
        left = best > TAKEN
        self.row = torch.where(left, row, self.row)
        self.column = torch.where(left, column, self.column)
        fixated = torch.cat([self._xs.gather(1, self.column), self._ys.gather(1, self.row)], 1)
        self.fixated.append(fixated)
        self.add(fixated.where(left, EXHAUSTED).where(self._finite[:, None], NOT_FINITE))

    def _inhibited(self) -> Tensor:
        if self._taken is None:
            return self._levels
        x, y = self.fixated[-1].split(1, 1)
        across = self._in_window(self._xs - x)
        down = self._in_window(self._ys - y)
        self._taken |= down[:, :, None] & across[:, None]
        return self._levels.masked_fill(self._taken, TAKEN)

    def _in_window(self, away: Tensor) -> Tensor:
        """Whether pixels that lie ``away`` from a fixation along a side are in its window."""
        return (-self._before <= away) & (away <= self._behind)


def _centres(cells: int, side: Tensor) -> Tensor:
    return (2 * torch.arange(cells, device=side.device) + 1) * side // (2 * cells)
