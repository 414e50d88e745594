"""How far a trained judge's margins move with the answers it was trained on.

The models of all folds differ by one fold of training answers each, and so they are a jackknife of the model (Efron and
Stein 1981): they need no further training. :mod:`judging.statistics.training` says what the figures are for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_MODELS = 3
Margins = NDArray[np.float64]


def moves_of_margins(margins: Margins, own: NDArray[np.int64]) -> Margins:
    """How far each row's margin moves when each fold is left out of training [models, rows]. Raises ValueError with
    fewer than three models.

    The root of the sum of a row's squares is the standard error of its margin over training answers, and the sum of the
    products of moves in two versions of the answers is the covariance of the margins in both.

    ``margins`` [models, rows] are those of each fold's model, ``own`` [rows] the place of the model that judged the
    row, -1 where none did. It is left out, and its move is 0: the others have been trained on the row's stimulus, so
    that these differ from it in more than the chance of training answers."""
    models = len(margins)
    if models < LEAST_MODELS:
        raise ValueError(f"{models} models tell no moves")
    is_other = np.arange(models)[:, None] != own
    number = is_other.sum(axis=0)
    middle = (margins * is_other).sum(axis=0) / number
    return np.asarray((margins - middle) * is_other * np.sqrt((models - 1) / (number - 1)))
