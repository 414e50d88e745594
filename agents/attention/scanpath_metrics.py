"""Figures of scanpaths, and how alike two scanpaths are.

A scanpath is a sequence of fixations (x, y) in pixels of a frame (width, height), origin top left, y downwards; it may
leave the frame. Every function is pure; randomness comes in as a generator.
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

    "Up" is up on the screen. A saccade of no length is not counted; a border belongs to the sector anticlockwise of it.
    """
    saccades = np.diff(as_points(fixations), axis=0)
    saccades = saccades[(saccades != 0).any(axis=1)]
    eighths = np.arctan2(-saccades[:, 1], saccades[:, 0]) / (np.pi / 4)
    return np.bincount(np.floor(eighths + 0.5).astype(np.int64) % 8, minlength=8)


def return_fixations(fixations: Points, radius: float, *, count_first: bool = False) -> tuple[int, int]:
    """(how many fixations return, how many the rate is taken of), as Zhang et al. 2022 count them in their program.

    A fixation returns when its distance to any earlier fixation, except the fixation just before it, is at most
    ``radius`` pixels. Without ``count_first`` the forced first fixation neither returns nor is returned to. The rate is
    taken of all fixations that count but the first.
    """
    points = as_points(fixations)[0 if count_first else 1 :]
    returns = 0
    for index in range(2, len(points)):
        distances = np.hypot(*(points[: index - 1] - points[index]).T)
        returns += bool((distances <= radius).any())
    return returns, max(len(points) - 1, 0)


def edge_share(fixations: Points, window: float, within: float = 1.0) -> float | None:
    """The share of saccades that land at most ``within`` pixels outside an earlier fixation's square window.

    None without a saccade. On a slope of the map the best place left lies at the window's border.
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


def multimatch(
    first: Points, second: Points, frame: tuple[float, float], durations: tuple[Values, Values] | None = None
) -> dict[str, float] | None:
    """MultiMatch's similarities by name, each at most 1; None where a path has under 3 fixations.

    The method is Dewhurst et al. 2012 (Behavior Research Methods 44) as the package ``multimatch_gaze`` computes it,
    without simplification of paths. "duration" needs ``durations``, all above 0. Raises UnavailableError without the
    package.
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


def interval(
    parts: Values, totals: Values, noise: np.random.Generator, resamples: int = 1000
) -> tuple[float, float] | None:
    """The 95 % bootstrap interval (percentiles, SciPy) of sum(parts) / sum(totals), with one entry per stimulus.

    For a mean of stimuli the totals are ones. Stimuli of total 0 are left out; None for fewer than two stimuli.
    """
    from scipy.stats import bootstrap

    pairs = np.array([parts, totals], dtype=np.float64)
    pairs = pairs[:, pairs[1] > 0]
    if pairs.shape[1] < 2:
        return None
    bounds = bootstrap(
        pairs,
        lambda part, total, axis: part.sum(axis) / total.sum(axis),
        n_resamples=resamples,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=noise,
    ).confidence_interval
    return float(bounds.low), float(bounds.high)


def summary(values: Values) -> dict[str, float] | None:
    """Count, mean, standard deviation (of a sample, 0 for a single value) and percentiles; None without a value."""
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        return None
    percentiles = dict(zip((f"p{at}" for at in PERCENTILES), np.percentile(numbers, PERCENTILES).tolist(), strict=True))
    spread = float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
    return {"count": int(numbers.size), "mean": float(numbers.mean()), "sd": spread, **percentiles}
