"""Areas under ROC curves and calibration, against scikit-learn and closed forms."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score, roc_curve

from judging.statistics.by_margin import FALSE, area, calibration_error, probabilities, rankings, true_positives
from judging.statistics.jackknife import Clusters


def alone(number: int, judges: np.ndarray | None = None) -> Clusters:
    """A stimulus for each verdict, of a single judge by default."""
    none = np.zeros(number, dtype=np.int64)
    return Clusters(none if judges is None else judges, np.arange(number), none - 1, np.ones(number))


def scored(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    truth = chance.random(300) < 0.4
    return (chance.normal(size=300) + truth).round(1), truth  # with ties


def test_one_judges_area_and_true_positives_are_scikit_learns() -> None:
    score, truth = scored()
    assert area(score, truth, alone(300)).value == pytest.approx(roc_auc_score(truth, score))
    false, true, _ = roc_curve(truth, score, drop_intermediate=False)
    assert true_positives(score, truth, FALSE) == pytest.approx(true[false <= FALSE].max())


def test_its_interval_has_de_longs_variance_and_is_wider_by_stimulus() -> None:
    score, truth = scored()
    above = (score[truth][:, None] > score[~truth]) + 0.5 * (score[truth][:, None] == score[~truth])
    error = np.sqrt(sum(np.var(above.mean(axis=axis), ddof=1) / above.shape[1 - axis] for axis in (0, 1)))
    once = area(score, truth, alone(300))
    assert (once.high - once.low) / 2 == pytest.approx(1.96 * error, rel=0.05)
    of_both = replace(alone(600), stimuli=np.tile(np.arange(300), 2))
    twice = area(np.tile(score, 2), np.tile(truth, 2), of_both)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=0.003)


def test_the_freedom_is_that_of_the_rarer_kind() -> None:
    """Five machines' answers above all of 95 people's are as five right of five."""
    truth = np.arange(100) < 5
    perfect = area(truth.astype(np.float64), truth, alone(100))
    assert perfect.low == pytest.approx(binomtest(5, 5).proportion_ci(method="exact").low)
    two = area(truth.astype(np.float64), truth, alone(100, np.arange(100) % 2 * truth))
    assert (two.value, np.isnan(two.low)) == (1, True)  # only one of two judges judged both kinds


def test_a_judges_own_scale_does_not_matter() -> None:
    """Two judges, one of whom is a hundred times as sure: the mean of their areas."""
    (first, truth) = scored(1)
    (second, other) = scored(2)
    both = area(
        np.concatenate([first, 100 * second + 7]),
        np.concatenate([truth, other]),
        alone(600, np.repeat([0, 1], 300)),
    )
    assert both.value == pytest.approx((roc_auc_score(truth, first) + roc_auc_score(other, second)) / 2)


def test_calibration() -> None:
    chance = np.random.default_rng(0)
    probability = chance.random(20_000)
    truth = chance.random(20_000) < probability
    assert calibration_error(probability, truth) < 0.02
    assert calibration_error(np.where(probability > 0.5, 1.0, 0.0), truth) == pytest.approx(0.25, abs=0.02)
    margins = np.log(probability / (1 - probability)) / 3  # another scale
    assert calibration_error(probabilities(margins, truth, np.arange(20_000) % 10), truth) < 0.02


def test_confidence_ranks_right_verdicts_above_wrong_ones() -> None:
    score, truth = scored()
    words = np.array(["human", "machine"])
    columns = {"truth": words[truth.astype(int)], "verdict": words[(score > 0.5).astype(int)]}
    sure = np.abs(score - 0.5) / 5
    columns |= {"judge": "w", "stimulus": np.arange(300), "trial": np.arange(300), "agent": "human:1"}
    table = pd.DataFrame({"confidence": sure, "margin": None, **columns})
    [row] = rankings(table)
    assert (row.by, row.verdicts) == ("confidence", 300)
    assert row.auc.value == pytest.approx(roc_auc_score(truth, score), abs=0.002)
    assert row.auc_2.value == pytest.approx(roc_auc_score(table["truth"] == table["verdict"], sure))
    assert row.stated == pytest.approx((1 + sure.mean()) / 2)
    assert row.right == (table["truth"] == table["verdict"]).mean()
