"""Figures of scanpaths, and scores of how alike two scanpaths are.

A scanpath is a sequence of fixations (x, y) in pixels of a frame (width, height), origin top left, y downwards; it may
leave the frame. Every function is pure: the same input gives the same figures, and randomness comes in as a generator.

- Return fixations are counted as Zhang et al. 2022 ("Look twice", PLoS Computational Biology 18(11)) count them in
  their program: the first fixation, which the experiment forces, is left out; a fixation returns when it is at most
  one radius (theirs is 43 px, a degree, of a frame 1280 wide) from an earlier one other than the one just before it.
- ScanMatch is Cristino, Mathôt, Theeuwes and Gilchrist 2010 (Behavior Research Methods 42): fixations become cells of
  a grid, two cells score the threshold minus their distance in cells, and the best alignment of the two sequences
  (Needleman and Wunsch 1970) is divided by what the longer one would score against itself.
- MultiMatch is Dewhurst et al. 2012 (Behavior Research Methods 44) as the package ``multimatch_gaze`` (Wagner et al.
  2019) computes it, without its simplification of paths.

The share of saccades that land on the edge of an earlier window is in :mod:`agents.attention.scanpath`. Nothing here
imports numpy or ``multimatch_gaze`` until it is called.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = Sequence[Sequence[float]] | NDArray[np.float64]
    Values = Sequence[float] | NDArray[np.float64]

SECTORS = ("right", "up right", "up", "up left", "left", "down left", "down", "down right")
MULTIMATCH = ("shape", "direction", "length", "position", "duration")
SHORTEST = 3  # fixations that MultiMatch needs: two saccades
PERCENTILES = (5, 25, 50, 75, 95)


def as_points(fixations: Points) -> NDArray[np.float64]:
    """Fixations as an array [count, 2]; an empty path is [0, 2]."""
    import numpy as np

    return np.asarray(fixations, dtype=np.float64).reshape(-1, 2)


def saccades(fixations: Points) -> NDArray[np.float64]:
    """The way from each fixation to the next, [count - 1, 2]: to the right and downwards, in pixels."""
    import numpy as np

    return np.diff(as_points(fixations), axis=0)


def amplitudes(fixations: Points) -> NDArray[np.float64]:
    """The lengths of the saccades in pixels, [count - 1]."""
    import numpy as np

    lengths: NDArray[np.float64] = np.hypot(*saccades(fixations).T)
    return lengths


def direction_counts(fixations: Points) -> NDArray[np.int64]:
    """How many saccades go in each of the eight :data:`SECTORS` of 45 degrees, the first centred on "right".

    "Up" is up on the screen. A saccade of no length has no direction and is not counted; on a border between two
    sectors the one further anticlockwise counts.
    """
    import numpy as np

    ways = saccades(fixations)
    ways = ways[(ways != 0).any(axis=1)]
    eighths = np.arctan2(-ways[:, 1], ways[:, 0]) / (np.pi / 4)
    return np.bincount(np.floor(eighths + 0.5).astype(np.int64) % 8, minlength=8)


def return_fixations(fixations: Points, radius: float, *, count_first: bool = False) -> tuple[int, int]:
    """(how many fixations return, how many the rate is taken of).

    A fixation returns when its distance to any earlier one, the one just before it excepted, is at most ``radius``
    pixels. Without ``count_first`` the path's first fixation neither returns nor is returned to. The rate is taken of
    all fixations but the first of those that count, as in the published program.
    """
    import numpy as np

    points = as_points(fixations)[0 if count_first else 1 :]
    returns = 0
    for place in range(2, len(points)):
        distances = np.hypot(*(points[: place - 1] - points[place]).T)
        returns += bool((distances <= radius).any())
    return returns, max(len(points) - 1, 0)


def outside(fixations: Points, frame: tuple[float, float]) -> int:
    """How many fixations lie outside the frame: 0 <= x < width and 0 <= y < height is inside."""
    import numpy as np

    points = as_points(fixations)
    return int(((points < 0) | (points >= np.asarray(frame))).any(axis=1).sum())


def threshold(lengths: Values) -> float:
    """ScanMatch's threshold: twice the standard deviation (of a sample) of saccade lengths, given in cell widths.

    Raises ValueError where it is not above 0: fewer than two saccades, or all of one length.
    """
    import numpy as np

    found = 2 * float(np.std(np.asarray(lengths, dtype=np.float64), ddof=1)) if len(lengths) > 1 else 0.0
    if not found > 0:
        raise ValueError("ScanMatch's threshold needs saccades of more than one length")
    return found


def substitution(grid: tuple[int, int], threshold: float) -> NDArray[np.float64]:
    """What each pair of cells scores, [cells, cells]: ``threshold`` minus their Euclidean distance in cells.

    ``grid`` is (columns, rows); cells are numbered along the rows from the top left. A cell scores ``threshold``
    against itself, and less than nothing against one that is further away than it.
    """
    import numpy as np

    columns, rows = grid
    row, column = np.divmod(np.arange(columns * rows), columns)
    distance: NDArray[np.float64] = np.hypot(row[:, None] - row, column[:, None] - column)
    return threshold - distance


def cells(fixations: Points, frame: tuple[float, float], grid: tuple[int, int]) -> NDArray[np.int64]:
    """The grid's cell that each fixation lies in; one outside the frame counts for the nearest cell."""
    import numpy as np

    places = np.floor(as_points(fixations) * np.asarray(grid) / np.asarray(frame)).astype(np.int64)
    column, row = np.clip(places, 0, np.asarray(grid) - 1).T
    numbers: NDArray[np.int64] = row * grid[0] + column
    return numbers


def repeated(sequence: NDArray[np.int64], durations: Values, bin_ms: float) -> NDArray[np.int64]:
    """Each cell as often as its fixation's duration holds bins of ``bin_ms``, rounded, halves up; maybe never."""
    import numpy as np

    return np.repeat(sequence, np.floor(np.asarray(durations) / bin_ms + 0.5).astype(np.int64))


def align(first: NDArray[np.int64], second: NDArray[np.int64], scores: NDArray[np.float64], gap: float = 0.0) -> float:
    """The score of the best global alignment of two sequences (Needleman and Wunsch 1970).

    ``scores`` says what two members score side by side, ``gap`` what a member beside nothing scores.
    """
    import numpy as np

    if gap > 0:
        raise ValueError("a gap must not be rewarded")
    ramp = gap * np.arange(len(second) + 1)
    best = ramp
    for member in first:
        above = best + gap
        above[1:] = np.maximum(above[1:], best[:-1] + scores[member, second])
        # A run of gaps to the right costs gap for each step: without the ramp it is a running maximum.
        best = np.maximum.accumulate(above - ramp) + ramp
    return float(best[-1])


def scanmatch(
    first: NDArray[np.int64], second: NDArray[np.int64], scores: NDArray[np.float64], gap: float = 0.0
) -> float | None:
    """ScanMatch's score of two sequences of cells, at most 1 and with no gap penalty at least 0; None if one is empty.

    ``scores`` is of :func:`substitution`.
    """
    longer = max(len(first), len(second))
    if not len(first) or not len(second):
        return None
    return align(first, second, scores, gap) / (float(scores.max()) * longer)


def load_multimatch() -> Any:
    """The package ``multimatch_gaze``. Raises UnavailableError where it is not installed."""
    try:
        return importlib.import_module("multimatch_gaze")
    except ImportError as error:
        raise UnavailableError(
            f"MultiMatch needs the package multimatch-gaze ({error}): pip install 'turinglike[compare]'"
        ) from None


def multimatch(
    first: Points,
    second: Points,
    frame: tuple[float, float],
    durations: tuple[Values, Values] | None = None,
) -> dict[str, float] | None:
    """MultiMatch's similarities by name, each at most 1, of two paths in one frame; None if one has under 3 fixations.

    "duration" is among them only where ``durations``, all above 0, are given. Nothing is simplified beforehand.
    """
    package = load_multimatch()
    if min(len(first), len(second)) < SHORTEST:
        return None
    given = durations if durations is not None else (None, None)
    tables = [_table(points, times) for points, times in zip((first, second), given, strict=True)]
    values = package.docomparison(*tables, screensize=list(frame))
    names = MULTIMATCH if durations is not None else MULTIMATCH[:-1]
    return {name: float(value) for name, value in zip(names, values[: len(names)], strict=True)}


def _table(fixations: Points, durations: Values | None) -> NDArray[np.void]:
    """Fixations in the form that the package takes; a duration that nobody knows is 1."""
    import numpy as np

    points = as_points(fixations)
    table = np.ones(len(points), dtype=[("start_x", "f8"), ("start_y", "f8"), ("duration", "f8")])
    table["start_x"], table["start_y"] = points.T
    if durations is not None:
        table["duration"] = durations
    return table


def random_path(
    chance: np.random.Generator, frame: tuple[float, float], length: int, first: Sequence[float] | None = None
) -> NDArray[np.float64]:
    """A path of ``length`` fixations, [length, 2], each anywhere in the frame with the same probability.

    ``first``, if given, is where it begins: an experiment forces the first fixation, and a floor must not be lower
    for lack of it.
    """
    path = chance.random((length, 2)) * frame
    if first is not None and length:
        path[0] = first
    return path


def interval(
    parts: Values, wholes: Values, chance: np.random.Generator, resamples: int = 1000
) -> tuple[float, float] | None:
    """The 95 % bootstrap interval (percentiles) of sum(parts) / sum(wholes), stimuli being drawn anew with each pair.

    One entry of ``parts`` and ``wholes`` per stimulus; for a mean of stimuli the wholes are ones. None for fewer than
    two stimuli, of which nothing can be learnt about others.
    """
    import numpy as np

    numerators, denominators = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    count = len(numerators)
    if count < 2:
        return None
    found = []
    for _ in range(resamples):
        drawn = chance.integers(count, size=count)
        total = denominators[drawn].sum()
        if total > 0:
            found.append(numerators[drawn].sum() / total)
    if not found:
        return None
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def summary(values: Values) -> dict[str, float] | None:
    """Count, mean, standard deviation (of a sample, 0 for one value) and percentiles; None without a value."""
    import numpy as np

    found = np.asarray(values, dtype=np.float64)
    if not found.size:
        return None
    percentiles = {
        f"p{at}": float(value) for at, value in zip(PERCENTILES, np.percentile(found, PERCENTILES), strict=True)
    }
    spread = float(found.std(ddof=1)) if found.size > 1 else 0.0
    return {"count": int(found.size), "mean": float(found.mean()), "sd": spread, **percentiles}
