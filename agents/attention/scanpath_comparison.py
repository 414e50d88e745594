"""Two sets of scanpaths beside each other: what each is like, how alike they are, and what chance alone would score.

:class:`Comparison` holds the paths of the stimuli that both sets have. Nothing here reads, draws or prints.

**Conditions.** A score means something only beside its floor and its ceiling, so each is computed for the same pairs of
paths (of one stimulus, at most ``Options.pairs`` of them, drawn by the seed):

- ``first : second``: a path of the first set and one of the second;
- ``first, other stimulus : second``: the same, but the first is its maker's path on another stimulus (anybody's, if
  they made no other), so that what is left is what paths have in common whatever is looked at: length, centre, habits;
- ``random : second``: the first is replaced by as many fixations anywhere in the frame, after the same first one;
- ``second : second`` and ``first : first``: two different subjects, the ceiling where the set is people's;
- ``second, other stimulus : second``: the floor that belongs to it;
- ``second, averaged : second``: the first of two is replaced by the mean of everybody's path but the second's, fixation
  by fixation, as long as their median. Nobody looks like that, and it scores above people: why no model is to be
  chosen by such scores.

With one set there are its own four. A mean is of the stimuli's means, so that each stimulus counts once; intervals are
95 % bootstrap intervals over stimuli.

**One frame per stimulus.** Paths are scaled to the frame of the second set's first path on the stimulus; edge share
alone is taken in the frame and with the window in which a path was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import median
from typing import TYPE_CHECKING, Any

from agents.attention import scanpath_metrics as metrics
from agents.attention.scanpath import edge_share
from agents.attention.scanpath_sets import UNNAMED, Recorded, Size, by_stimulus, shared_stimuli
from agents.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ELSEWHERE, RANDOM, AVERAGED = "other stimulus", "random", "averaged"
SCORES = (*metrics.MULTIMATCH, "scanmatch", "scanmatch_durations")
STRETCHED = 0.02  # a frame's sides may differ by this share in their ratio before that is worth saying


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of a comparison. Lengths in pixels are of a frame 1280 wide and are scaled with the frame's width.

    ``return_radius`` and ``count_first`` are of :func:`scanpath_metrics.return_fixations`; ``window`` is the side of
    the window that edge share is taken of where a path states none. ``threshold`` is ScanMatch's, in cells; None takes
    it from the second set. ``bin_ms`` is ScanMatch's temporal bin.
    """

    seed: int = 0
    pairs: int = 10
    grid: tuple[int, int] = (12, 8)
    threshold: float | None = None
    bin_ms: float = 50.0
    return_radius: float = 43.0
    count_first: bool = False
    window: float = 200.0
    pixels_per_degree: float | None = None
    resamples: int = 1000


@dataclass(frozen=True, slots=True)
class Shown:
    """One stimulus: its frame, and the paths on it of the first set, of their random twins, and of the second set."""

    name: str
    frame: Size
    first: tuple[Recorded, ...]
    random: tuple[Recorded, ...]
    second: tuple[Recorded, ...]


class Comparison:
    """The comparison of ``first`` with ``second``, or of a set with itself where ``second`` is None.

    Raises InputError where no stimulus is shared, or where there is nothing to take ScanMatch's threshold from.
    """

    def __init__(self, first: Sequence[Recorded], second: Sequence[Recorded] | None, options: Options) -> None:
        self.options = options
        self.alone = second is None
        second = first if second is None else second
        left, right = by_stimulus(first), by_stimulus(second)
        pairs, self.ambiguous = [(name, name) for name in left], list[str]()
        if not self.alone:
            pairs, self.ambiguous = shared_stimuli(first, second)
        if not pairs:
            raise InputError(
                f"the sets have no stimulus in common: {_some(left)} in the first, {_some(right)} in the second"
            )
        self.left_out = (len(left) - len(pairs), len(right) - len(pairs))
        self.shown = [
            Shown(name, right[other][0].frame, tuple(left[name]), self._twins(left[name], place), tuple(right[other]))
            for place, (name, other) in enumerate(pairs)
        ]
        self.stretched = sum(
            abs(path.frame[0] * shown.frame[1] / (path.frame[1] * shown.frame[0]) - 1) > STRETCHED
            for shown in self.shown
            for path in (*shown.first, *shown.second)
        )
        self.threshold = self._threshold()
        self._substitution = metrics.substitution(options.grid, self.threshold)
        self._places = {side: _subjects(self.shown, side) for side in ("first", "second")}

    def _chance(self, *purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose: what one stimulus draws does not move what another one draws."""
        import numpy as np

        return np.random.default_rng([self.options.seed, *purpose])

    def _twins(self, paths: Sequence[Recorded], place: int) -> tuple[Recorded, ...]:
        chance = self._chance(0, place)
        twins = []
        for path in paths:
            points = metrics.random_path(chance, path.frame, len(path.fixations), path.fixations[0])
            twins.append(replace(path, fixations=tuple((float(x), float(y)) for x, y in points), durations=None))
        return tuple(twins)

    def _threshold(self) -> float:
        if self.options.threshold is not None:
            return self.options.threshold
        lengths = [
            float(length) * self.options.grid[0] / shown.frame[0]
            for shown in self.shown
            for path in shown.second
            for length in metrics.amplitudes(path.scaled(shown.frame))
        ]
        try:
            return metrics.threshold(lengths)
        except ValueError as error:
            raise InputError(f"{error}; give one with --threshold") from None

    def each(self, side: str) -> Iterator[tuple[Recorded, Size]]:
        """The paths of "first", "second" or "random", each with the frame that its stimulus has in common."""
        for shown in self.shown:
            for path in self._of(shown, side):
                yield path, shown.frame

    def figures(self) -> dict[str, dict[str, Any]]:
        """What each set is like: "first" (and "second"), and "random", the first set's random twins."""
        sides = ("first", "random") if self.alone else ("first", "second", "random")
        return {side: self._figures(side) for side in sides}

    def _figures(self, side: str) -> dict[str, Any]:
        import numpy as np

        options, own = self.options, [self._of(shown, side) for shown in self.shown]
        pixels: list[float] = []
        widths: list[float] = []
        degrees: list[float] = []
        directions = np.zeros(len(metrics.SECTORS), dtype=np.int64)
        returns, edges = np.zeros((len(own), 2)), np.zeros((len(own), 2))  # per stimulus: how many, and of how many
        off = 0
        for place, (shown, paths) in enumerate(zip(self.shown, own, strict=True)):
            width = shown.frame[0]
            radius = options.return_radius * width / 1280
            for path in paths:
                scaled = path.scaled(shown.frame)
                lengths = metrics.amplitudes(scaled)
                per_degree = self._per_degree(path, width)
                pixels += lengths.tolist()
                widths += (lengths / width).tolist()
                degrees += [] if per_degree is None else (lengths / per_degree).tolist()
                directions += metrics.direction_counts(scaled)
                off += metrics.outside(scaled, shown.frame)
                returns[place] += metrics.return_fixations(scaled, radius, count_first=options.count_first)
                share = edge_share(path.fixations, self.window(path))
                if share is not None:
                    edges[place] += (share * len(lengths), len(lengths))
        made = [path for paths in own for path in paths]
        shares = (directions / max(1, directions.sum())).tolist()
        return {
            "paths": len(made),
            "subjects": None if any(path.agent in UNNAMED for path in made) else len({path.subject for path in made}),
            "fixations": metrics.summary([len(path.fixations) for path in made]),
            "fixations_off_the_frame": off,
            "amplitude_px": metrics.summary(pixels),
            "amplitude_share_of_width": metrics.summary(widths),
            "amplitude_degrees": metrics.summary(degrees) if len(degrees) == len(pixels) else None,
            "directions": dict(zip(metrics.SECTORS, shares, strict=True)),
            "horizontal": shares[0] + shares[4],
            "vertical": shares[2] + shares[6],
            "return_rate": self._rate(returns, 0),
            "edge_share": self._rate(edges, 1),
        }

    def window(self, path: Recorded) -> float:
        """The side in pixels of the window that a path's edge share is taken of."""
        if path.window is not None:
            return path.window
        return max(1, round(self.options.window * path.frame[0] / 1280))

    def _per_degree(self, path: Recorded, width: float) -> float | None:
        """Pixels of the common frame per degree: the option's, else the path's own."""
        if self.options.pixels_per_degree is not None:
            return self.options.pixels_per_degree
        return None if path.pixels_per_degree is None else path.pixels_per_degree * width / path.frame[0]

    def _rate(self, counts: NDArray[np.float64], purpose: int) -> dict[str, Any] | None:
        """A rate of all paths together; None where there is nothing to take it of."""
        (found, of), (parts, wholes) = counts.sum(axis=0).tolist(), counts.T
        if not of:
            return None
        bounds = metrics.interval(parts, wholes, self._chance(1, purpose), self.options.resamples)
        return {"rate": found / of, "count": round(found), "of": round(of), **_bounds(bounds)}

    def similarity(self, progress: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
        """The scores of every condition that the sets allow: see the module. ``progress`` hears of each as it begins.

        Raises UnavailableError where ``multimatch_gaze`` is not installed.
        """
        metrics.load_multimatch()
        if self.alone:
            conditions = [("first", "first", how) for how in ("", ELSEWHERE, RANDOM, AVERAGED)]
        else:
            conditions = [("first", "second", how) for how in ("", ELSEWHERE, RANDOM)]
            conditions += [("second", "second", how) for how in ("", ELSEWHERE, AVERAGED)]
            conditions += [("first", "first", "")]
        rows = []
        for one, other, how in conditions:
            name = (
                f"{one} : {other}" if not how else f"random : {other}" if how == RANDOM else f"{one}, {how} : {other}"
            )
            progress(name)
            row = self._row(one, other, how)
            if row["pairs"]:
                rows.append({"condition": name, **row})
        return rows

    def _row(self, one: str, other: str, how: str) -> dict[str, Any]:
        """The means of one condition, with their intervals, and how many pairs they are of."""
        means: dict[str, list[float]] = {}
        pairs = too_short = 0
        for place, shown in enumerate(self.shown):
            found: dict[str, list[float]] = {}
            for left, right in self._pairs(place, one, other, how):
                pairs += 1
                too_short += min(len(left.fixations), len(right.fixations)) < metrics.SHORTEST
                for score, value in self._scores(left, right, shown.frame).items():
                    found.setdefault(score, []).append(value)
            for score, values in found.items():
                means.setdefault(score, []).append(sum(values) / len(values))
        scores = {}
        for number, score in enumerate(SCORES):
            if score in means:
                values, chance = means[score], self._chance(2, number)
                bounds = metrics.interval(values, [1.0] * len(values), chance, self.options.resamples)
                scores[score] = {"mean": sum(values) / len(values), "stimuli": len(values), **_bounds(bounds)}
        return {"pairs": pairs, "too_short_for_multimatch": too_short, "scores": scores}

    def _pairs(self, place: int, one: str, other: str, how: str) -> Iterator[tuple[Recorded, Recorded]]:
        """The pairs of a condition on one stimulus. Those of a floor are the pairs that it is the floor of, with the
        left path replaced."""
        shown = self.shown[place]
        left, right = self._of(shown, one), self._of(shown, other)
        if one == other:
            possible = [(i, j) for i, j in combinations(range(len(left)), 2) if left[i].subject != right[j].subject]
        else:
            possible = list(product(range(len(left)), range(len(right))))
        if len(possible) > self.options.pairs:
            drawn = self._chance(3, int(one == other), place).choice(len(possible), self.options.pairs, replace=False)
            possible = [possible[number] for number in sorted(drawn)]
        chance = self._chance(4, int(one == other), place)
        for i, j in possible:
            replaced: Recorded | None = left[i]
            if how == RANDOM:
                replaced = shown.random[i]
            elif how == ELSEWHERE:
                replaced = self._elsewhere(chance, left[i], place, one)
            elif how == AVERAGED:
                replaced = _averaged([path for path in left if path.subject != right[j].subject], shown.frame)
            if replaced is not None:
                yield replaced, right[j]

    def _of(self, shown: Shown, side: str) -> tuple[Recorded, ...]:
        return shown.first if side == "first" else shown.random if side == "random" else shown.second

    def _elsewhere(self, chance: np.random.Generator, path: Recorded, place: int, side: str) -> Recorded | None:
        """A path on another stimulus by whoever made ``path``, or by anybody where they made none."""
        if len(self.shown) < 2:
            return None
        places = [at for at in self._places[side][path.subject] if at != place]
        places = places or [at for at in range(len(self.shown)) if at != place]
        other = places[int(chance.integers(len(places)))]
        paths = self._of(self.shown[other], side)
        own = [candidate for candidate in paths if candidate.subject == path.subject]
        return (own or paths)[int(chance.integers(len(own or paths)))]

    def _scores(self, left: Recorded, right: Recorded, frame: Size) -> dict[str, float]:
        """The scores of one pair, those that it has."""
        points = left.scaled(frame), right.scaled(frame)
        times = None
        if left.durations is not None and right.durations is not None:
            times = (left.durations, right.durations) if min(*left.durations, *right.durations) > 0 else None
        found = metrics.multimatch(*points, frame, times) or {}
        one, other = (metrics.cells(path, frame, self.options.grid) for path in points)
        found |= _named("scanmatch", metrics.scanmatch(one, other, self._substitution))
        if times is not None:
            one, other = (
                metrics.repeated(cells, path, self.options.bin_ms)
                for cells, path in zip((one, other), times, strict=True)
            )
            found |= _named("scanmatch_durations", metrics.scanmatch(one, other, self._substitution))
        return found


def _averaged(paths: Sequence[Recorded], frame: Size) -> Recorded | None:
    """The mean of at least two paths, fixation by fixation, as long as their median length; None for fewer."""
    if len(paths) < 2:
        return None
    scaled = [path.scaled(frame) for path in paths]
    mean = []
    for at in range(round(median(len(points) for points in scaled))):
        reached = [points[at] for points in scaled if len(points) > at]
        mean.append((sum(x for x, _ in reached) / len(reached), sum(y for _, y in reached) / len(reached)))
    return replace(paths[0], fixations=tuple(mean), frame=frame, durations=None)


def _named(name: str, score: float | None) -> dict[str, float]:
    return {} if score is None else {name: score}


def _subjects(shown: Sequence[Shown], side: str) -> dict[str, list[int]]:
    """On which stimuli, by their places, there is a path of each subject."""
    found: dict[str, list[int]] = {}
    for place, stimulus in enumerate(shown):
        for subject in dict.fromkeys(path.subject for path in getattr(stimulus, side)):
            found.setdefault(subject, []).append(place)
    return found


def _bounds(bounds: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = bounds or (None, None)
    return {"low": low, "high": high}


def _some(names: Iterable[str], shown: int = 5) -> str:
    """The first few of a set's names."""
    listed = list(names)
    more = f" and {len(listed) - shown:,} more" if len(listed) > shown else ""
    return ", ".join(map(repr, listed[:shown])) + more
