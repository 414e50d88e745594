"""How much a trained judge's margins hang on which answers it was trained on.

The models of all folds differ by one fold of training answers each, and so they are a jackknife of the model (Efron and
Stein 1981): they need no further training. :mod:`judging.statistics.training` says what the figure is for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_MODELS = 3
Margins = NDArray[np.float64]


def spread_of_margins(margins: Margins, own: NDArray[np.int64]) -> Margins:
    """The standard error [rows] of each row's margin over training answers; NaN with fewer than three models.

    ``margins`` [models, rows] are those of each fold's model, ``own`` [rows] the place of the model that judged the
    row, -1 where none did. It is left out, as the others have been trained on the row's stimulus, so that these differ
    from it in more than the chance of training answers."""
    models = len(margins)
    if models < LEAST_MODELS:
        return np.full(margins.shape[1], np.nan)
    is_other = np.arange(models)[:, None] != own
    number = is_other.sum(axis=0)
    middle = (margins * is_other).sum(axis=0) / number
    square = ((margins - middle) ** 2 * is_other).sum(axis=0) / (number - 1)
    return np.asarray(np.sqrt(square * (models - 1)))
