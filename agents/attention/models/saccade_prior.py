"""Where people's eyes go next: two priors of the return-fixation model, [128, 128] on its grid of 64 x 64 cells, each
with no saccade at (64, 64): entry (64 + rows, 64 + columns) is for so many cells down and to the right.

- ``amplitudes``: the authors' own, by size alone, drawn around the fixation; highest at a ring, and near 0 at it. They
  have one for free viewing and one for each search, and it is their pictures that ``saccade_amplitudes.txt`` holds (the
  correlation with what their program reads of them is 0.99994 and more). Of the fifteen fixations that they publish
  with all their maps this prior gives fourteen. Their pictures are pixels of a square of 1024, so 16 to a cell both
  across and down, and their middle lies 7 pixels past the cell that their program takes for it.
- ``vectors``: by direction and size, the density of saccades over the plane; highest at no saccade. Ours: the saccades
  of free viewing in ``saccade_prior.txt``, counted in cells of 20 x 16 pixels, and smoothed. It gives four of the
  fifteen.

Both files name their source and its licence.

SMOOTHING is the standard deviation, in whole cells, with the highest likelihood of left-out saccades (``vectors``, the
images in ten parts): log-likelihood per saccade -7.668, -7.643, -7.637, -7.638, -7.643 at 1, 1.5, 2, 2.5, 3 cells.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["amplitudes", "vectors"]

GRID = 64
CENTRE = GRID  # the row and the column of no saccade
SIDE = 2 * GRID
SMOOTHING = 2.0
COUNTS, AMPLITUDES = (Path(__file__).with_name(f"saccade_{name}.txt") for name in ("prior", "amplitudes"))
SHOWN = ("free", "natural", "waldo")  # the columns of AMPLITUDES: free viewing, search in natural images, for Waldo
STEP, CELL, MIDDLE = 2, 16, 7  # pixels of the authors' picture: between its lines, of a cell, and beyond its corner


def counts() -> NDArray[np.int64]:
    """How many saccades went where in free viewing, [128, 128]."""
    return np.loadtxt(COUNTS, dtype=np.int64)


def vectors(counted: NDArray[np.int64], smoothing: float = SMOOTHING) -> NDArray[np.float64]:
    """The prior of counted saccades, from above 0 to 1; ``smoothing`` is in cells."""
    place = np.arange(SIDE) - CENTRE
    kernel = np.exp(-(((place[:, None] - place) / smoothing) ** 2) / 2)
    density = kernel @ counted @ kernel
    scaled: NDArray[np.float64] = density / density.max()
    return scaled


def amplitudes(shown: str) -> NDArray[np.float64]:
    """The authors' prior for one of SHOWN, from 0 to 1."""
    levels = np.loadtxt(AMPLITUDES)[:, SHOWN.index(shown)]
    place = CELL * (np.arange(SIDE) - CENTRE) - MIDDLE
    distance: NDArray[np.float64] = np.hypot(place[:, None], place)
    return np.asarray(np.interp(distance, STEP * np.arange(len(levels)), levels / 255))
