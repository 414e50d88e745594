"""Two sets of scanpaths beside each other: what each is like, how alike they are, and what chance alone would score.

A score means something only beside its floor and its ceiling. Each is computed for the same pairs of paths of one
stimulus, at most ``Options.pairs`` of them, drawn by the seed:

- ``first : second``: a path of the first set and a path of the second;
- ``first, other stimulus : second``: the first is its maker's path on another stimulus (anybody's, if there is none);
- ``random : second``: the first is replaced by as many fixations anywhere in the frame, after the same first fixation;
- ``second : second`` and ``first : first``: two different subjects, the ceiling where the set is people's.

A mean is of the stimuli's means; intervals are 95 % bootstrap intervals over stimuli. Paths are scaled to the frame of
the second set's first path on the stimulus; edge share alone is taken in the frame in which a path was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from agents.attention import scanpath_metrics as metrics
from agents.errors import InputError

ELSEWHERE, RANDOM = "other stimulus", "random"
Size = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One scanpath of a set: fixations (x, y) in pixels of ``frame`` (width, height).

    ``names`` are others that the stimulus goes by; ``target`` is what was searched for, "" in free viewing, None where
    unknown. ``subject`` is ``agent``, or with the path's number where a name stands for several people or draws.
    ``window`` is the side of the inhibition window in pixels; ``durations`` are in milliseconds.
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
    groups: dict[str, list[Recorded]] = {}
    for path in paths:
        groups.setdefault(path.stimulus, []).append(path)
    return groups


def shared_stimuli(first: Iterable[Recorded], second: Iterable[Recorded]) -> tuple[list[tuple[str, str]], list[str]]:
    """(name in the first set, name in the second) of every stimulus that both have, in the first set's order.

    Equal names go together; then, among the others, those that share one of their ``names`` where this fits one
    stimulus on each side. The second result names those that would fit several. Paths of different targets, or of
    search and free viewing, are never of one stimulus.
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
        name: {other for alias in (name, *path.names) for other in known.get(alias, ()) if same_task(name, other)}
        for name, path in left.items()
        if name not in pairs
    }
    claims = Counter(other for others in fitting.values() for other in others)
    pairs |= {name: min(others) for name, others in fitting.items() if [claims[other] for other in others] == [1]}
    ambiguous = [name for name, others in fitting.items() if others and name not in pairs]
    return [(name, pairs[name]) for name in left if name in pairs], ambiguous


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Options(BaseModel):
    """The choices of a comparison. Lengths in pixels are of a frame 1280 wide and are scaled with the frame's width."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    """of every draw"""
    pairs: Annotated[int, Field(ge=1, le=100_000)] = 10
    """most pairs of paths per stimulus"""
    return_radius: Positive = 43.0
    """of return fixations, in pixels of a frame 1280 wide"""
    count_first: bool = False
    """a return to the first fixation counts too"""
    window: Positive = 200.0
    """side of the window of edge share where a path states none, in pixels of a frame 1280 wide"""
    pixels_per_degree: Positive | None = None
    """of the common frame, for amplitudes in degrees (default: the stimuli's)"""
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 1000
    """bootstrap resamples"""


@dataclass(frozen=True, slots=True)
class SharedStimulus:
    """One stimulus, its frame, and the paths on it by side: "first", "second" and "random" (the first's twins)."""

    name: str
    frame: Size
    paths: dict[str, list[Recorded]]


class Comparison:
    """The comparison of ``first`` with ``second``, or of a set with itself where ``second`` is None.

    Raises InputError where no stimulus is shared.
    """

    def __init__(self, first: Sequence[Recorded], second: Sequence[Recorded] | None, options: Options) -> None:
        self.options = options
        self.alone = second is None
        left, right = by_stimulus(first), by_stimulus(first if second is None else second)
        pairs, self.ambiguous = [(name, name) for name in left], list[str]()
        if second is not None:
            pairs, self.ambiguous = shared_stimuli(first, second)
        if not pairs:
            names = [", ".join(map(repr, list(paths)[:5])) for paths in (left, right)]
            raise InputError(f"the sets have no stimulus in common: {names[0]} in the first, {names[1]} in the second")
        self.left_out = (len(left) - len(pairs), len(right) - len(pairs))
        self.stimuli = [
            SharedStimulus(
                name,
                right[other][0].frame,
                {"first": left[name], "second": right[other], "random": self._random_twins(left[name], index)},
            )
            for index, (name, other) in enumerate(pairs)
        ]

    def _noise(self, *purpose: int) -> np.random.Generator:
        # A generator of its own for each purpose: the draws of a stimulus do not move those of another.
        return np.random.default_rng([self.options.seed, *purpose])

    def _random_twins(self, paths: Sequence[Recorded], index: int) -> list[Recorded]:
        noise = self._noise(0, index)
        twins = []
        for path in paths:
            points = noise.random((len(path.fixations), 2)) * path.frame
            points[0] = path.fixations[0]  # an experiment forces it: the floor must not be lower for lack of it
            twins.append(replace(path, fixations=tuple((x, y) for x, y in points.tolist()), durations=None))
        return twins

    def each(self, side: str) -> Iterator[tuple[Recorded, Size]]:
        """The paths of "first", "second" or "random", each with the frame that its stimulus has in common."""
        return ((path, stimulus.frame) for stimulus in self.stimuli for path in stimulus.paths[side])

    def figures(self) -> dict[str, dict[str, Any]]:
        """What each set is like: "first" (and "second"), and "random", the first set's random twins."""
        sides = ("first", "random") if self.alone else ("first", "second", "random")
        return {side: self._figures(side) for side in sides}

    def _figures(self, side: str) -> dict[str, Any]:
        options, made = self.options, list(self.each(side))
        scaled = [(path.scaled(frame), frame) for path, frame in made]
        lengths = [metrics.amplitudes(points) for points, _ in scaled]
        widths = [length / frame[0] for length, (_, frame) in zip(lengths, scaled, strict=True)]
        directions = sum((metrics.direction_counts(points) for points, _ in scaled), np.zeros(8, np.int64))
        shares = (directions / max(1, directions.sum())).tolist()
        scales = [options.pixels_per_degree or _pixels_per_degree(path, frame) for path, frame in made]
        degrees = [length / scale for length, scale in zip(lengths, scales, strict=True) if scale is not None]
        returns, edges = np.zeros((2, len(self.stimuli), 2))  # per stimulus: how many, and of how many
        for index, stimulus in enumerate(self.stimuli):
            radius = options.return_radius * stimulus.frame[0] / 1280
            for path in stimulus.paths[side]:
                points = path.scaled(stimulus.frame)
                returns[index] += metrics.return_fixations(points, radius, count_first=options.count_first)
                window = path.window or max(1, round(options.window * path.frame[0] / 1280))
                share, saccades = metrics.edge_share(path.fixations, window), len(path.fixations) - 1
                edges[index] += ((share or 0.0) * saccades, saccades)
        named = all(path.agent not in (None, "human:unknown") for path, _ in made)
        return {
            "paths": len(made),
            "subjects": len({path.subject for path, _ in made}) if named else None,
            "fixations": metrics.summary([len(path.fixations) for path, _ in made]),
            "fixations_off_the_frame": sum(metrics.outside(points, frame) for points, frame in scaled),
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
        count, total = counts.sum(axis=0).tolist()
        if not total:
            return None
        bounds = metrics.interval(counts[:, 0], counts[:, 1], self._noise(1, purpose), self.options.resamples)
        low, high = bounds or (None, None)
        return {"rate": count / total, "count": round(count), "of": round(total), "low": low, "high": high}

    def similarity(self) -> list[dict[str, Any]]:
        """MultiMatch's scores of every condition that the sets allow: see the module.

        Raises UnavailableError where ``multimatch_gaze`` is not installed.
        """
        if self.alone:
            conditions = [("first", "first", how) for how in ("", ELSEWHERE, RANDOM)]
        else:
            conditions = [("first", "second", how) for how in ("", ELSEWHERE, RANDOM)]
            conditions += [("second", "second", ""), ("first", "first", "")]
        rows = [self._row(*condition) for condition in conditions]
        return [row for row in rows if row["pairs"]]

    def _row(self, left_side: str, right_side: str, how: str) -> dict[str, Any]:
        maker = RANDOM if how == RANDOM else f"{left_side}, {how}" if how else left_side
        means: dict[str, list[float]] = {score: [] for score in metrics.MULTIMATCH}
        pairs = too_short = 0
        for index, stimulus in enumerate(self.stimuli):
            values: dict[str, list[float]] = {score: [] for score in metrics.MULTIMATCH}
            for left, right in self._pairs(index, left_side, right_side, how):
                pairs += 1
                scores = _scores(left, right, stimulus.frame)
                too_short += scores is None
                for score, value in (scores or {}).items():
                    values[score].append(value)
            for score, of_pairs in values.items():
                means[score] += [sum(of_pairs) / len(of_pairs)] if of_pairs else []
        row: dict[str, Any] = {
            "condition": f"{maker} : {right_side}",
            "pairs": pairs,
            "too_short_for_multimatch": too_short,
            "scores": {},
        }
        for number, (score, of_stimuli) in enumerate(means.items()):
            if of_stimuli:
                noise = self._noise(2, number)
                bounds = metrics.interval(of_stimuli, np.ones(len(of_stimuli)), noise, self.options.resamples)
                low, high = bounds or (None, None)
                mean = sum(of_stimuli) / len(of_stimuli)
                row["scores"][score] = {"mean": mean, "stimuli": len(of_stimuli), "low": low, "high": high}
        return row

    def _pairs(self, index: int, left_side: str, right_side: str, how: str) -> Iterator[tuple[Recorded, Recorded]]:
        # The pairs of a floor are the pairs that it is the floor of, with the left path replaced.
        stimulus, alike = self.stimuli[index], int(left_side == right_side)
        left, right = stimulus.paths[left_side], stimulus.paths[right_side]
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
                replaced = stimulus.paths["random"][i]
            elif how == ELSEWHERE:
                replaced = self._elsewhere(noise, left[i], index, left_side)
            if replaced is not None:
                yield replaced, right[j]

    def _elsewhere(self, noise: np.random.Generator, path: Recorded, index: int, side: str) -> Recorded | None:
        """A path on another stimulus by whoever made ``path``, or by anybody where they made none."""
        others = [stimulus.paths[side] for at, stimulus in enumerate(self.stimuli) if at != index]
        same_maker = [[other for other in paths if other.subject == path.subject] for paths in others]
        choices = [paths for paths in same_maker if paths] or others
        if not choices:
            return None
        paths = choices[int(noise.integers(len(choices)))]
        return paths[int(noise.integers(len(paths)))]


def _scores(left: Recorded, right: Recorded, frame: Size) -> dict[str, float] | None:
    times = None
    if left.durations is not None and right.durations is not None and min(*left.durations, *right.durations) > 0:
        times = left.durations, right.durations
    return metrics.multimatch(left.scaled(frame), right.scaled(frame), frame, times)


def _pixels_per_degree(path: Recorded, frame: Size) -> float | None:
    return None if path.pixels_per_degree is None else path.pixels_per_degree * frame[0] / path.frame[0]
