"""Where people's eyes go next: the saccades of free viewing, counted by direction and size.

``saccade_prior.txt`` beside this module holds the counts, [128, 128] on the grid of the return-fixation model (64 x 64
cells over a frame of 1280 x 1024, so 20 x 16 pixels each): entry (64 + rows, 64 + columns) is the number of saccades
by so many cells down and to the right. Its header names the source, its hash and its licence.

Two priors are made of it, each with 1 as its largest value. They say different things:

- ``vectors``: the histogram smoothed, that is the density of saccades over the plane. It is highest at no saccade.
- ``amplitudes``: the density of the saccades' sizes in pixels, drawn around the fixation, alike in all directions. It
  is highest at a ring. The programs published with the model draw their picture in this way: of fifteen fixations
  that they publish with all their maps, this prior gives twelve, ``vectors`` four.

SMOOTHING is the standard deviation, in whole cells, with the highest likelihood of left-out saccades (``vectors``, the
images in ten parts): log-likelihood per saccade -7.668, -7.643, -7.637, -7.638, -7.643 at 1, 1.5, 2, 2.5, 3 cells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["vectors", "amplitudes"]

GRID = 64
CENTRE = GRID  # the row and the column of no saccade
SIDE = 2 * GRID
CELL = (20, 16)  # width and height in pixels, where the saccades were made
SMOOTHING = 2.0
FILE = Path(__file__).with_suffix(".txt")


def read() -> NDArray[np.int64]:
    """The counts in the file, [128, 128]."""
    return np.loadtxt(FILE, dtype=np.int64)


def prior(counts: NDArray[np.int64], kind: Kind = "vectors", smoothing: float = SMOOTHING) -> NDArray[np.float64]:
    """The prior [128, 128], from above 0 to 1; no saccade is at (64, 64). ``smoothing`` is in cells.

    For ``amplitudes`` a cell counts as the mean of its sides, 18 pixels.
    """
    place = np.arange(SIDE) - CENTRE
    if kind == "vectors":
        kernel = _gaussian(place, smoothing)
        density = kernel @ counts @ kernel
    else:
        size = np.hypot(place[:, None] * CELL[1], place * CELL[0])
        sizes, where = np.unique(size, return_inverse=True)
        frequency = np.bincount(where.ravel(), counts.ravel(), len(sizes))
        density = (_gaussian(sizes, smoothing * sum(CELL) / 2) @ frequency)[where].reshape(size.shape)
    scaled: NDArray[np.float64] = density / density.max()
    return scaled


def _gaussian(place: NDArray[np.int64] | NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    kernel: NDArray[np.float64] = np.exp(-(((place[:, None] - place) / deviation) ** 2) / 2)
    return kernel
