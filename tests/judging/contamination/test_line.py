"""The line of verdicts beside statsmodels' least squares with errors clustered by judges and by stimuli."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from scipy.stats import t as student_t

from judging.contamination.line import Line, fitted_line, joined, shifts, student, with_errors
from judging.statistics.jackknife import Clusters, Floats

SIZE = 20  # judges, and stimuli
NUMBER = SIZE**2


def _study() -> tuple[Floats, Floats, Clusters]:
    """Each judge judges an answer to each stimulus, each by another person; judges and stimuli all have the same
    probabilities, so that they count alike."""
    chance = np.random.default_rng(5)
    judge, stimulus = np.divmod(np.arange(NUMBER), SIZE)
    foreign = np.array([0.0, 0.0, 0.1, 0.9])[(judge + stimulus) % 4]
    ability = chance.normal(0, 0.15, SIZE)[judge]
    ease = chance.normal(0, 0.1, SIZE)[stimulus]
    right = (chance.random(NUMBER) < 0.7 - 0.4 * foreign + ability + ease).astype(float)
    return right, foreign, Clusters(judge, stimulus, np.arange(NUMBER), np.ones(NUMBER))


def test_the_error_is_that_of_statsmodels_with_two_clusters() -> None:
    right, foreign, clusters = _study()
    line = fitted_line(np.ones(NUMBER), right, foreign)
    result = with_errors([line.own], [line], clusters)
    design = sm.add_constant(foreign)
    groups = np.column_stack([clusters.judges, clusters.stimuli])
    fit = sm.OLS(right, design).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    alone = sm.OLS(right, design).fit()
    assert (line.own, line.foreign) == pytest.approx((fit.params[0], fit.params.sum()))
    divisor = 1 - 2 / SIZE + 1 / NUMBER  # of crossed dimensions: the errors are of an estimated line
    assert result.variance[0] * divisor == pytest.approx(fit.bse[0] ** 2, rel=0.01)
    assert fit.bse[0] > 1.3 * alone.bse[0]  # clusters matter here
    assert SIZE / 2 < result.freedom[0] < 2 * (SIZE - 1)
    low, high = student(result, 0, 0.95)
    reach = student_t.ppf(0.975, result.freedom[0]) * np.sqrt(result.variance[0]) / (line.own * (1 - line.own))
    assert (low, high) == pytest.approx((expit(logit(line.own) - reach), expit(logit(line.own) + reach)))


def test_errors_of_a_trained_judge_are_wider() -> None:
    right, foreign, clusters = _study()
    line = fitted_line(np.ones(NUMBER), right, foreign)
    wide = Clusters(clusters.judges, clusters.stimuli, clusters.people, np.full(NUMBER, 1.3))
    first, second = (with_errors([line.own], [line], of_both).variance[0] for of_both in (clusters, wide))
    assert second == pytest.approx(1.3**2 * first)


def test_a_line_that_does_not_move_adds_nothing() -> None:
    right, foreign, clusters = _study()
    used = np.arange(NUMBER) % 2 == 0
    line = fitted_line(used.astype(float), right, foreign)
    other = fitted_line(used.astype(float), right, foreign**2)
    [same, moved] = shifts([line, line, line, line, other], used, clusters)
    assert same == (0, 0)
    assert moved[0] == pytest.approx(other.own - line.own)
    assert moved[1] < moved[0] ** 2
    interval = (line.own - 0.1, line.own + 0.1)
    found = joined(line.own, interval, [same])
    assert (found.low, found.high) == pytest.approx(interval)
    wider = joined(line.own, interval, [(0.2, 0.04)], 0.5)
    assert (wider.low, wider.high) == pytest.approx((line.own - 0.1, line.own + np.hypot(0.1, 0.1)))


def test_a_line_that_ends_beyond_one_stays_half_a_verdict_below() -> None:
    nothing = np.zeros(0)
    assert Line(1.2, 0.1, nothing, nothing).within(50) == pytest.approx(0.99)
    assert Line(-0.2, 0.1, nothing, nothing).within(50) == pytest.approx(0.01)
    assert Line(1.0, float("nan"), nothing, nothing).within(50) == 1
