"""Two sets of scanpaths beside each other: what each is like, how alike they are, and what chance alone would score.

**Conditions.** A score means something only beside its floor and its ceiling, so each is computed for the same pairs of
paths (of one stimulus, at most ``Options.pairs`` of them, drawn by the seed):

- ``first : second``: a path of the first set and one of the second;
- ``first, other stimulus : second``: the same, but the first is its maker's path on another stimulus (anybody's, if
  they made no other). What is left is what paths have in common whatever is looked at: length, centre, habits;
- ``random : second``: the first is replaced by as many fixations anywhere in the frame, after the same first one;
- ``second : second`` and ``first : first``: two different subjects, the ceiling where the set is people's;
- ``second, other stimulus : second``: the floor that belongs to it;
- ``second, averaged : second``: the first of two is replaced by the mean of everybody's path but the second's, fixation
  by fixation, as long as their median. Nobody looks like that, and it scores above people: why no model is to be
  chosen by such scores.

With one set there are its own four. A mean is of the stimuli's means, so that each stimulus counts once; intervals are
95 % bootstrap intervals over stimuli. Paths are scaled to the frame of the second set's first path on the stimulus;
edge share alone is taken in the frame and with the window in which a path was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import median
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents.attention import scanpath_metrics as metrics
from agents.errors import InputError

ELSEWHERE, RANDOM, AVERAGED = "other stimulus", "random", "averaged"
SCORES = (*metrics.MULTIMATCH, "scanmatch", "scanmatch_durations")
Size = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One scanpath of a set: fixations (x, y) in pixels of ``frame`` (width, height).

    ``stimulus`` is its name in the set, ``names`` others that it goes by; ``target`` is what was searched for, "" in
    free viewing, None where nobody says. ``agent`` is who made it and ``subject`` the same, or with the number of the
    path where one name stands for several people or draws; None for a subject without a name. ``window`` is the side in
    pixels of the inhibition window that was applied, ``durations`` are in milliseconds.
    """

    stimulus: str
    subject: str
    agent: str | None
    fixations: tuple[tuple[float, float], ...]
    frame: Size
    durations: tuple[float, ...] | None = None
    names: tuple[str, ...] = ()
    target: str | None = None
    kind: str | None = None
    window: float | None = None
    pixels_per_degree: float | None = None

    def scaled(self, frame: Size) -> tuple[tuple[float, float], ...]:
        """The fixations in pixels of another frame."""
        across, down = frame[0] / self.frame[0], frame[1] / self.frame[1]
        return tuple((x * across, y * down) for x, y in self.fixations)


def by_stimulus(paths: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    """The paths of each stimulus, in their order."""
    found: dict[str, list[Recorded]] = {}
    for path in paths:
        found.setdefault(path.stimulus, []).append(path)
    return found


def shared_stimuli(first: Iterable[Recorded], second: Iterable[Recorded]) -> tuple[list[tuple[str, str]], list[str]]:
    """(name in the first set, name in the second) of every stimulus that both have, in the first set's order.

    Names that are equal go together; then, among the others, those that share one of their ``names`` where this fits
    one stimulus on each side. The second result is those of the first set that would fit several. Paths of different
    targets, or of search and free viewing, are never of one stimulus.
    """
    left = {name: paths[0] for name, paths in by_stimulus(first).items()}
    right = {name: paths[0] for name, paths in by_stimulus(second).items()}

    def same_task(name: str, other: str) -> bool:
        targets = left[name].target, right[other].target
        return None in targets or targets[0] == targets[1]

    pairs = {name: name for name in left if name in right and same_task(name, name)}
    known: dict[str, list[str]] = {}
    for other, path in right.items():
        for alias in {other, *path.names} if other not in pairs else ():
            known.setdefault(alias, []).append(other)
    fitting = {
        name: {o for alias in (name, *path.names) for o in known.get(alias, ()) if same_task(name, o)}
        for name, path in left.items()
        if name not in pairs
    }
    claims = Counter(other for others in fitting.values() for other in others)
    pairs |= {name: min(others) for name, others in fitting.items() if [claims[other] for other in others] == [1]}
    ambiguous = [name for name, others in fitting.items() if others and name not in pairs]
    return [(name, pairs[name]) for name in left if name in pairs], ambiguous


Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Side = Annotated[int, Field(ge=1, le=10_000)]


class Options(BaseModel):
    """The choices of a comparison. Lengths in pixels are of a frame 1280 wide and are scaled with the frame's width."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """of every draw"""
    pairs: Annotated[int, Field(ge=1, le=100_000)] = 10
    """most pairs of paths per stimulus"""
    grid: tuple[Side, Side] = (12, 8)
    """ScanMatch's grid: columns x rows"""
    threshold: Above0 | None = None
    """ScanMatch's threshold in cells (default: twice the standard deviation of the second set's amplitudes)"""
    bin_ms: Above0 = 50.0
    """ScanMatch's temporal bin in milliseconds"""
    return_radius: Above0 = 43.0
    """of return fixations, in pixels of a frame 1280 wide"""
    count_first: bool = False
    """a return to the first fixation counts too"""
    window: Above0 = 200.0
    """side of the window of edge share where a path states none, in pixels of a frame 1280 wide"""
    pixels_per_degree: Above0 | None = None
    """of the common frame, for amplitudes in degrees (default: the stimuli's)"""
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 1000
    """bootstrap resamples"""

    @model_validator(mode="after")
    def _grid_is_of_cells(self) -> Options:
        if self.grid[0] * self.grid[1] > 10_000:
            raise ValueError(f"grid: {self.grid[0]} x {self.grid[1]} are more than 10,000 cells")
        return self


@dataclass(frozen=True, slots=True)
class Shown:
    """One stimulus, its frame, and the paths on it by side: "first", "second" and "random" (the first's twins)."""

    name: str
    frame: Size
    paths: dict[str, list[Recorded]]


class Comparison:
    """The comparison of ``first`` with ``second``, or of a set with itself where ``second`` is None.

    Raises InputError where no stimulus is shared, or where there is nothing to take ScanMatch's threshold from.
    """

    def __init__(self, first: Sequence[Recorded], second: Sequence[Recorded] | None, options: Options) -> None:
        self.options = options
        self.alone = second is None
        left, right = by_stimulus(first), by_stimulus(first if second is None else second)
        pairs, self.ambiguous = [(name, name) for name in left], list[str]()
        if second is not None:
            pairs, self.ambiguous = shared_stimuli(first, second)
        if not pairs:
            raise InputError(
                f"the sets have no stimulus in common: {_some(left)} in the first, {_some(right)} in the second"
            )
        self.left_out = (len(left) - len(pairs), len(right) - len(pairs))
        self.shown = [
            Shown(
                name,
                right[other][0].frame,
                {"first": left[name], "second": right[other], "random": self._random_twins(left[name], index)},
            )
            for index, (name, other) in enumerate(pairs)
        ]
        self.threshold = self._threshold() if options.threshold is None else options.threshold
        self._substitution = metrics.substitution(options.grid, self.threshold)

    def _noise(self, *purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose: what one stimulus draws does not move what another one draws."""
        return np.random.default_rng([self.options.seed, *purpose])

    def _random_twins(self, paths: Sequence[Recorded], index: int) -> list[Recorded]:
        noise = self._noise(0, index)
        twins = []
        for path in paths:
            points = metrics.random_path(noise, path.frame, len(path.fixations), path.fixations[0])
            twins.append(replace(path, fixations=tuple((x, y) for x, y in points.tolist()), durations=None))
        return twins

    def _threshold(self) -> float:
        per_cell = {shown.name: self.options.grid[0] / shown.frame[0] for shown in self.shown}
        lengths = [
            metrics.amplitudes(path.scaled(shown.frame)) * per_cell[shown.name]
            for shown in self.shown
            for path in shown.paths["second"]
        ]
        try:
            return metrics.threshold(np.concatenate(lengths))
        except ValueError as error:
            raise InputError(f"{error}; give one with --threshold") from None

    def each(self, side: str) -> Iterator[tuple[Recorded, Size]]:
        """The paths of "first", "second" or "random", each with the frame that its stimulus has in common."""
        return ((path, shown.frame) for shown in self.shown for path in shown.paths[side])

    def figures(self) -> dict[str, dict[str, Any]]:
        """What each set is like: "first" (and "second"), and "random", the first set's random twins."""
        return {
            side: self._figures(side) for side in ("first", "second", "random") if side != "second" or not self.alone
        }

    def _figures(self, side: str) -> dict[str, Any]:
        options, made = self.options, list(self.each(side))
        scaled = [(path.scaled(frame), frame) for path, frame in made]
        lengths = [metrics.amplitudes(points) for points, _ in scaled]
        widths = [own / frame[0] for own, (_, frame) in zip(lengths, scaled, strict=True)]
        directions = sum((metrics.direction_counts(points) for points, _ in scaled), np.zeros(8, np.int64))
        shares = (directions / max(1, directions.sum())).tolist()
        scales = [options.pixels_per_degree or _per_degree(path, frame) for path, frame in made]
        degrees = [own / scale for own, scale in zip(lengths, scales, strict=True) if scale is not None]
        returns, edges = np.zeros((2, len(self.shown), 2))  # per stimulus: how many, and of how many
        for index, shown in enumerate(self.shown):
            radius = options.return_radius * shown.frame[0] / 1280
            for path in shown.paths[side]:
                points = path.scaled(shown.frame)
                returns[index] += metrics.return_fixations(points, radius, count_first=options.count_first)
                window = path.window or max(1, round(options.window * path.frame[0] / 1280))
                share, saccades = metrics.edge_share(path.fixations, window), len(path.fixations) - 1
                edges[index] += ((share or 0.0) * saccades, saccades)
        named = all(path.agent not in (None, "human:unknown") for path, _ in made)
        return {
            "paths": len(made),
            "subjects": len({path.subject for path, _ in made}) if named else None,
            "fixations": metrics.summary([len(path.fixations) for path, _ in made]),
            "fixations_off_the_frame": sum(metrics.outside(*one) for one in scaled),
            "amplitude_px": metrics.summary(np.concatenate(lengths)),
            "amplitude_share_of_width": metrics.summary(np.concatenate(widths)),
            "amplitude_degrees": None if None in scales else metrics.summary(np.concatenate(degrees)),
            "directions": dict(zip(metrics.SECTORS, shares, strict=True)),
            "horizontal": shares[0] + shares[4],
            "vertical": shares[2] + shares[6],
            "return_rate": self._rate(returns, 0),
            "edge_share": self._rate(edges, 1),
        }

    def _rate(self, counts: NDArray[np.float64], purpose: int) -> dict[str, Any] | None:
        """A rate of all paths together; None where there is nothing to take it of."""
        found, of = counts.sum(axis=0).tolist()
        if not of:
            return None
        low, high = metrics.interval(counts[:, 0], counts[:, 1], self._noise(1, purpose), self.options.resamples) or (
            None,
            None,
        )
        return {"rate": found / of, "count": round(found), "of": round(of), "low": low, "high": high}

    def similarity(self) -> list[dict[str, Any]]:
        """The scores of every condition that the sets allow: see the module.

        Raises UnavailableError where ``multimatch_gaze`` is not installed.
        """
        if self.alone:
            conditions = [("first", "first", how) for how in ("", ELSEWHERE, RANDOM, AVERAGED)]
        else:
            conditions = [("first", "second", how) for how in ("", ELSEWHERE, RANDOM)]
            conditions += [("second", "second", how) for how in ("", ELSEWHERE, AVERAGED)]
            conditions += [("first", "first", "")]
        rows = [self._row(one, other, how) for one, other, how in conditions]
        return [row for row in rows if row["pairs"]]

    def _row(self, one: str, other: str, how: str) -> dict[str, Any]:
        """The means of one condition, with their intervals, and how many pairs they are of."""
        maker = RANDOM if how == RANDOM else f"{one}, {how}" if how else one
        means: dict[str, list[float]] = {score: [] for score in SCORES}
        pairs = too_short = 0
        for index, shown in enumerate(self.shown):
            found: dict[str, list[float]] = {score: [] for score in SCORES}
            for left, right in self._pairs(index, one, other, how):
                pairs += 1
                too_short += min(len(left.fixations), len(right.fixations)) < metrics.SHORTEST
                for score, value in self._scores(left, right, shown.frame).items():
                    found[score].append(value)
            for score, values in found.items():
                means[score] += [sum(values) / len(values)] if values else []
        scores = {}
        for number, (score, values) in enumerate(means.items()):
            if values:
                bounds = metrics.interval(values, np.ones(len(values)), self._noise(2, number), self.options.resamples)
                low, high = bounds or (None, None)
                scores[score] = {"mean": sum(values) / len(values), "stimuli": len(values), "low": low, "high": high}
        row = {"condition": f"{maker} : {other}", "pairs": pairs, "too_short_for_multimatch": too_short}
        return {**row, "scores": scores}

    def _pairs(self, index: int, one: str, other: str, how: str) -> Iterator[tuple[Recorded, Recorded]]:
        """The pairs of a condition on one stimulus. Those of a floor are the pairs that it is the floor of, with the
        left path replaced."""
        shown, alike = self.shown[index], int(one == other)
        left, right = shown.paths[one], shown.paths[other]
        possible = list(combinations(range(len(left)), 2) if alike else product(range(len(left)), range(len(right))))
        if alike:
            possible = [(i, j) for i, j in possible if left[i].subject != right[j].subject]
        if len(possible) > self.options.pairs:
            drawn = self._noise(3, alike, index).choice(len(possible), self.options.pairs, replace=False)
            possible = [possible[number] for number in sorted(drawn)]
        noise = self._noise(4, alike, index)
        for i, j in possible:
            replaced: Recorded | None = left[i]
            if how == RANDOM:
                replaced = shown.paths["random"][i]
            elif how == ELSEWHERE:
                replaced = self._elsewhere(noise, left[i], index, one)
            elif how == AVERAGED:
                replaced = _averaged([path for path in left if path.subject != right[j].subject], shown.frame)
            if replaced is not None:
                yield replaced, right[j]

    def _elsewhere(self, noise: np.random.Generator, path: Recorded, index: int, side: str) -> Recorded | None:
        """A path on another stimulus by whoever made ``path``, or by anybody where they made none."""
        others = [shown.paths[side] for shown in self.shown[:index] + self.shown[index + 1 :]]
        own = [[other for other in paths if other.subject == path.subject] for paths in others]
        choices = [paths for paths in own if paths] or others
        if not choices:
            return None
        paths = choices[int(noise.integers(len(choices)))]
        return paths[int(noise.integers(len(paths)))]

    def _scores(self, left: Recorded, right: Recorded, frame: Size) -> dict[str, float]:
        """The scores of one pair, those that it has."""
        points = left.scaled(frame), right.scaled(frame)
        times = None
        if left.durations is not None and right.durations is not None and min(*left.durations, *right.durations) > 0:
            times = left.durations, right.durations
        found: dict[str, float | None] = {**(metrics.multimatch(*points, frame, times) or {})}
        one, other = (metrics.cells(path, frame, self.options.grid) for path in points)
        found["scanmatch"] = metrics.scanmatch(one, other, self._substitution)
        if times is not None:
            one, other = (
                metrics.repeated(cells, own, self.options.bin_ms)
                for cells, own in zip((one, other), times, strict=True)
            )
            found["scanmatch_durations"] = metrics.scanmatch(one, other, self._substitution)
        return {score: value for score, value in found.items() if value is not None}


def _per_degree(path: Recorded, frame: Size) -> float | None:
    """Pixels of the common frame per degree, where the path's own are known."""
    return None if path.pixels_per_degree is None else path.pixels_per_degree * frame[0] / path.frame[0]


def _averaged(paths: Sequence[Recorded], frame: Size) -> Recorded | None:
    """The mean of at least two paths, fixation by fixation, as long as their median length; None for fewer."""
    if len(paths) < 2:
        return None
    scaled = [path.scaled(frame) for path in paths]
    length = round(median(map(len, scaled)))
    mean = [np.mean([points[at] for points in scaled if len(points) > at], axis=0).tolist() for at in range(length)]
    return replace(paths[0], fixations=tuple((x, y) for x, y in mean), frame=frame, durations=None)


def _some(names: Iterable[str], shown: int = 5) -> str:
    """The first few of a set's names."""
    listed = list(names)
    more = f" and {len(listed) - shown:,} more" if len(listed) > shown else ""
    return ", ".join(map(repr, listed[:shown])) + more
