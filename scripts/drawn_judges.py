"""Classifiers that keep their models, so that it can be counted what these would say of further answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.judges.trained import TrainedJudge, TrainedSettings
from judging.statistics.jackknife import Floats


class LeastSquares:
    """A linear classifier in scikit-learn's form, of both classes with the same weight, a little shrunk."""

    def fit(self, rows: Floats, truth: NDArray[np.bool_]) -> LeastSquares:
        """Fit [rows, features] to whether each is a machine's."""
        counts = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum())
        middle = rows.mean(axis=0)
        scale = rows.std(axis=0)
        scale[scale == 0] = 1
        with_one = np.column_stack([np.ones(len(rows)), (rows - middle) / scale])
        weighted = with_one.T * counts
        square = weighted @ with_one + np.diag([0.0, *np.full(rows.shape[1], 1e-3)])
        slopes = np.linalg.solve(square, weighted @ np.where(truth, 1.0, -1.0))
        self.slopes = slopes[1:] / scale
        self.start = slopes[0] - middle @ self.slopes
        return self

    def decision_function(self, rows: Floats) -> Floats:
        """The margins [rows]."""
        return np.asarray(rows @ self.slopes + self.start)


class DrawnJudge(TrainedJudge[TrainedSettings]):
    """A trained judge that keeps its models, whose true rates are known."""

    Settings = TrainedSettings
    models: list[Any]

    def extract(self, task, trials, device):  # type: ignore[no-untyped-def]
        """Features are drawn, and not extracted."""
        raise NotImplementedError

    def new_model(self) -> Any:
        """A linear classifier, which is kept."""
        self.models.append(LeastSquares())
        return self.models[-1]


class DrawnRadialJudge(DrawnJudge):
    """The same with the classifier that trained judges have unless they give another."""

    def new_model(self) -> Any:
        """A classifier with a radial kernel, which is kept."""
        self.models.append(TrainedJudge.new_model(self))
        return self.models[-1]
