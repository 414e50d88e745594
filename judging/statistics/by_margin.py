"""How margins of trained judges, and the confidence of all, rank answers: areas under ROC curves, and calibration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from judging.statistics.jackknife import DIMENSIONS, Clusters, Floats, Jackknife, jackknife, mean
from judging.statistics.measures import TRAINED_MEAN, clusters, is_right
from judging.statistics.tables import Estimate
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

FALSE = 0.01  # of people's answers that are taken for a machine's, at most
BINS = 10

Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByMargin:
    """How a trained judge's margins, or stated confidence, rank answers, and how well they are calibrated."""

    task: str = ""
    """The task that was answered; "" until scoring fills it in."""
    judge: str = ""
    """Whose verdicts they are; "people" are all people together."""
    by: Literal["margin", "confidence"]
    """A trained judge's distance from its boundary, or how sure a judge said it is."""
    verdicts: int
    """How many verdicts have a margin or confidence."""
    auc: Estimate
    """The area under the ROC curve, 0 to 1, of machines' answers above people's; 0.5 is chance."""
    true_at_1: float
    """The share of machines' answers recognized with at most 1 % of people's taken for a machine's."""
    auc_2: Estimate
    """The same area of right verdicts above wrong ones by how sure they are (type 2, Fleming and Lau 2014)."""
    stated: float
    """The mean probability of being right that the judge states, 0.5 to 1; of margins by :func:`probabilities`."""
    right: float
    """The share of right verdicts, which a calibrated judge states."""
    calibration_error: float
    """The mean distance of probability from truth, 0 to 1 (:func:`calibration_error`)."""


def rankings(verdicts: pd.DataFrame) -> Iterator[ByMargin]:
    """By margin and by confidence, where a judge's (or all people's) ``verdicts`` on people and on machines have it."""
    for by in ("margin", "confidence"):
        if by not in verdicts.columns:
            continue
        rated = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts[by].notna()]
        truth = (rated["truth"] == "machine").to_numpy()
        if truth.all() or not truth.any():
            continue
        value = rated[by].to_numpy(dtype=np.float64)
        says_machine = (rated["verdict"] == "machine").to_numpy()
        signed = value if by == "margin" else np.where(says_machine, value, -value)
        probability = (1 + signed) / 2 if by == "confidence" else probabilities(signed, truth, rated["fold"].to_numpy())
        right = is_right(rated)
        drawn_from = clusters(rated)
        if by == "margin":
            drawn_from = replace(drawn_from, wider=np.full(len(rated), TRAINED_MEAN))
        yield ByMargin(
            by="margin" if by == "margin" else "confidence",
            verdicts=len(rated),
            auc=area(signed, truth, drawn_from),
            true_at_1=true_positives(signed, truth, FALSE),
            auc_2=area(np.abs(signed), right == 1, drawn_from),
            stated=float(np.maximum(probability, 1 - probability).mean()),
            right=float(right.mean()),
            calibration_error=calibration_error(probability, truth),
        )


def area(score: Floats, is_positive: Marks, drawn_from: Clusters) -> Estimate:
    """The mean of the judges' areas under the ROC curve, of those with both kinds.

    A verdict's placement is the share of the other kind's verdicts that it stands rightly above or below. The area is
    the mean of the placements, and so its interval is made from them (DeLong 1988; clusters as by Obuchowski 1997).

    :func:`jackknife` is asked for two rates, the placements of either kind. What is made of them is a single rate with
    the errors of both, so that :class:`Jackknife` stands here with all its fields. It has no exact interval, since
    placements are no independent verdicts. Each of the two rates has a judge's whole placements, and not a half. So
    the judge's part of the variance is taken times 0.25: without that, intervals over judges are twice too wide.
    """
    import pandas as pd

    judges = drawn_from.judges
    values = pd.Series(score)
    kinds = np.array([~is_positive, is_positive])
    number = np.array([np.bincount(judges, kind) for kind in kinds])[:, judges]  # of the judge
    used = np.asarray(number.all(axis=0))
    if not used.any():
        return Estimate()
    own, other = np.where(is_positive, number[::-1], number)[:, used]
    below = values.groupby(judges).rank() - values.groupby([judges, is_positive]).rank()  # of the other kind
    share = below[used].to_numpy() / other
    placed = np.where(is_positive[used], share, 1 - share)
    weights = kinds[:, used] / own
    placements = jackknife(np.stack([weights, weights * placed]), mean, drawn_from.where(used), drawn_from.drawn())
    number = placements.number.sum(keepdims=True)
    trials = placements.trials.sum(keepdims=True)
    fewest = placements.clusters.min(axis=1, keepdims=True)
    # Both kinds add to the error; a judge's error stands in each as a whole, and so four times in their sum.
    times = np.array([0.25 if dimensions == (0,) else 1 for dimensions in DIMENSIONS])
    products = placements.products.sum(axis=(1, 2), keepdims=True) * times[:, None, None]
    freedom = placements.freedom.min(axis=1, keepdims=True)
    shared = placements.shared[:, :1, :1]
    result = Jackknife(
        value=placements.value[:1],
        number=number,
        trials=trials,
        clusters=fewest,
        freedom=freedom,
        shared=shared,
        products=products,
        is_exact=np.array([False]),
    )
    low, high = result.interval(np.zeros(1, dtype=np.int64), np.ones(1))
    return Estimate(float(result.value[0]), float(low), float(high))


def true_positives(score: Floats, is_positive: Marks, false: float) -> float:
    """The share of positives above all but a share ``false`` of the others."""
    others = np.sort(score[~is_positive])[::-1]
    return float((score[is_positive] > others[int(false * len(others))]).mean())


def probabilities(margins: Floats, is_machine: Marks, fold: NDArray[np.generic]) -> Floats:
    """The probability of a machine, by logistic regression of truth on the margins of the other folds (Platt 1999)."""
    from sklearn.linear_model import LogisticRegression

    stated = np.full(len(margins), 0.5)
    for number in np.unique(fold):
        test = fold == number
        if len(set(is_machine[~test].tolist())) == 2:
            model = LogisticRegression().fit(margins[~test, None], is_machine[~test])
            stated[test] = model.predict_proba(margins[test, None])[:, 1]
    return stated


def calibration_error(probability: Floats, is_machine: Marks) -> float:
    """The mean distance of probability from truth, over ten bins of probability (Guo et al. 2017)."""
    bins = np.minimum((BINS * probability).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(bins, probability - is_machine)).sum() / len(probability))
