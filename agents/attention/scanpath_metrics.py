"""Figures of scanpaths, and scores of how alike two scanpaths are.

A scanpath is a sequence of fixations (x, y) in pixels of a frame (width, height), origin top left, y downwards; it may
leave the frame. Every function is pure: the same input gives the same figures, and randomness comes in as a generator.

- Return fixations are counted as Zhang et al. 2022 ("Look twice", PLoS Computational Biology 18(11)) count them in
  their program.
- ScanMatch is Cristino, Mathôt, Theeuwes and Gilchrist 2010 (Behavior Research Methods 42): fixations become cells of
  a grid, two cells score the threshold minus their distance in cells, and the best alignment of the two sequences
  (Needleman and Wunsch 1970, no penalty for gaps) is divided by what the longer one would score against itself.
- MultiMatch is Dewhurst et al. 2012 (Behavior Research Methods 44) as the package ``multimatch_gaze`` (Wagner et al.
  2019) computes it, without its simplification of paths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.errors import UnavailableError

Points = Sequence[Sequence[float]] | NDArray[np.float64]
Values = Sequence[float] | NDArray[np.float64]

SECTORS = ("right", "up right", "up", "up left", "left", "down left", "down", "down right")
MULTIMATCH = ("shape", "direction", "length", "position", "duration")
SHORTEST = 3  # fixations that MultiMatch needs: two saccades
PERCENTILES = (5, 25, 50, 75, 95)


def as_points(fixations: Points) -> NDArray[np.float64]:
    """Fixations as an array [count, 2]; an empty path is [0, 2]."""
    return np.asarray(fixations, dtype=np.float64).reshape(-1, 2)


def amplitudes(fixations: Points) -> NDArray[np.float64]:
    """The lengths of the saccades in pixels, [count - 1]."""
    lengths: NDArray[np.float64] = np.hypot(*np.diff(as_points(fixations), axis=0).T)
    return lengths


def direction_counts(fixations: Points) -> NDArray[np.int64]:
    """How many saccades go in each of the eight :data:`SECTORS` of 45 degrees, the first centred on "right".

    "Up" is up on the screen. A saccade of no length has no direction and is not counted; on a border between two
    sectors the one further anticlockwise counts.
    """
    saccades = np.diff(as_points(fixations), axis=0)
    saccades = saccades[(saccades != 0).any(axis=1)]
    eighths = np.arctan2(-saccades[:, 1], saccades[:, 0]) / (np.pi / 4)
    return np.bincount(np.floor(eighths + 0.5).astype(np.int64) % 8, minlength=8)


def return_fixations(fixations: Points, radius: float, *, count_first: bool = False) -> tuple[int, int]:
    """(how many fixations return, how many the rate is taken of).

    A fixation returns when its distance to any earlier one, the one just before it excepted, is at most ``radius``
    pixels. Without ``count_first`` the path's first fixation, which is forced, neither returns nor is returned to. The
    rate is taken of all fixations but the first of those that count.
    """
    points = as_points(fixations)[0 if count_first else 1 :]
    returns = 0
    for index in range(2, len(points)):
        distances = np.hypot(*(points[: index - 1] - points[index]).T)
        returns += bool((distances <= radius).any())
    return returns, max(len(points) - 1, 0)


def edge_share(fixations: Points, window: float, within: float = 1.0) -> float | None:
    """The share of saccades that land on the edge of an earlier fixation's window; None without a saccade.

    On the edge: outside the square window, but at most ``within`` pixels outside it. It follows from a maximum and a
    hard window (on a slope the best place left lies at the window's border), and is no property of the map.
    """
    points = as_points(fixations)
    if len(points) < 2:
        return None
    landed = 0
    for index in range(1, len(points)):
        beyond = np.abs(points[:index] - points[index]).max(axis=1) - window // 2
        landed += bool(((beyond > 0) & (beyond <= within)).any())
    return landed / (len(points) - 1)


def outside(fixations: Points, frame: tuple[float, float]) -> int:
    """How many fixations lie outside the frame: 0 <= x < width and 0 <= y < height is inside."""
    points = as_points(fixations)
    return int(((points < 0) | (points >= np.asarray(frame))).any(axis=1).sum())


def threshold(lengths: Values) -> float:
    """ScanMatch's threshold: twice the standard deviation (of a sample) of saccade lengths, given in cell widths.

    Raises ValueError where it is not above 0: fewer than two saccades, or all of one length.
    """
    values = np.asarray(lengths, dtype=np.float64)
    found = 2 * float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if not found > 1e-9 * float(values.max(initial=0)):  # less is rounding
        raise ValueError("ScanMatch's threshold needs saccades of more than one length")
    return found


def substitution(grid: tuple[int, int], threshold: float) -> NDArray[np.float64]:
    """What each pair of cells scores, [cells, cells]: ``threshold`` minus their Euclidean distance in cells.

    ``grid`` is (columns, rows); cells are numbered along the rows from the top left.
    """
    columns, rows = grid
    row, column = np.divmod(np.arange(columns * rows), columns)
    distance: NDArray[np.float64] = np.hypot(row[:, None] - row, column[:, None] - column)
    return threshold - distance


def cells(fixations: Points, frame: tuple[float, float], grid: tuple[int, int]) -> NDArray[np.int64]:
    """The grid's cell that each fixation lies in; one outside the frame counts for the nearest cell."""
    places = np.floor(as_points(fixations) * np.asarray(grid) / np.asarray(frame)).astype(np.int64)
    column, row = np.clip(places, 0, np.asarray(grid) - 1).T
    numbers: NDArray[np.int64] = row * grid[0] + column
    return numbers


def repeated(sequence: NDArray[np.int64], durations: Values, bin_ms: float) -> NDArray[np.int64]:
    """Each cell as often as its fixation's duration holds bins of ``bin_ms``, rounded, halves up; maybe never."""
    return np.repeat(sequence, np.floor(np.asarray(durations) / bin_ms + 0.5).astype(np.int64))


def scanmatch(first: NDArray[np.int64], second: NDArray[np.int64], scores: NDArray[np.float64]) -> float | None:
    """ScanMatch's score, 0 to 1, of two sequences of cells; None if one is empty. ``scores``: :func:`substitution`."""
    if not len(first) or not len(second):
        return None
    best = np.zeros(len(second) + 1)
    for cell in first:  # one row of Needleman and Wunsch's table: beside one another, or one of the two in a gap
        above = best.copy()
        above[1:] = np.maximum(above[1:], best[:-1] + scores[cell, second])
        best = np.maximum.accumulate(above)
    return float(best[-1]) / (float(scores.max()) * max(len(first), len(second)))


def multimatch(
    first: Points, second: Points, frame: tuple[float, float], durations: tuple[Values, Values] | None = None
) -> dict[str, float] | None:
    """MultiMatch's similarities by name, each at most 1, of two paths in one frame; None if one has under 3 fixations.

    "duration" is among them only where ``durations``, all above 0, are given. Raises UnavailableError where the package
    is not installed.
    """
    try:
        from multimatch_gaze import docomparison  # type: ignore[import-untyped]
    except ImportError as error:
        raise UnavailableError(
            f"MultiMatch needs the package multimatch-gaze ({error}): pip install 'turinglike[compare]'"
        ) from None
    if min(len(first), len(second)) < SHORTEST:
        return None
    tables = []
    for points, times in zip((first, second), durations or (1.0, 1.0), strict=True):
        table = np.empty(len(points), dtype=[("start_x", "f8"), ("start_y", "f8"), ("duration", "f8")])
        table["start_x"], table["start_y"] = as_points(points).T
        table["duration"] = times
        tables.append(table)
    names = MULTIMATCH if durations is not None else MULTIMATCH[:-1]
    values = docomparison(*tables, screensize=list(frame))[: len(names)]
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def random_path(
    noise: np.random.Generator, frame: tuple[float, float], length: int, first: Sequence[float] | None = None
) -> NDArray[np.float64]:
    """A path of ``length`` fixations, [length, 2], each anywhere in the frame with the same probability.

    ``first``, if given, is where it begins: an experiment forces the first fixation, and a floor must not be lower
    for lack of it.
    """
    path = noise.random((length, 2)) * frame
    if first is not None and length:
        path[0] = first
    return path


def interval(
    parts: Values, wholes: Values, noise: np.random.Generator, resamples: int = 1000
) -> tuple[float, float] | None:
    """The 95 % bootstrap interval (percentiles) of sum(parts) / sum(wholes), by SciPy.

    There is one entry of ``parts`` and ``wholes`` per stimulus; for a mean of stimuli the wholes are ones. Those of 0
    are left out. None for fewer than two stimuli, of which nothing can be learnt about others.
    """
    from scipy.stats import bootstrap

    pairs = np.array([parts, wholes], dtype=np.float64)
    pairs = pairs[:, pairs[1] > 0]
    if pairs.shape[1] < 2:
        return None
    found = bootstrap(
        pairs,
        lambda part, whole, axis: part.sum(axis) / whole.sum(axis),
        n_resamples=resamples,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=noise,
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def summary(values: Values) -> dict[str, float] | None:
    """Count, mean, standard deviation (of a sample, 0 for one value) and percentiles; None without a value."""
    found = np.asarray(values, dtype=np.float64)
    if not found.size:
        return None
    percentiles = dict(zip((f"p{at}" for at in PERCENTILES), np.percentile(found, PERCENTILES).tolist(), strict=True))
    spread = float(found.std(ddof=1)) if found.size > 1 else 0.0
    return {"count": int(found.size), "mean": float(found.mean()), "sd": spread, **percentiles}
