"""The slope of log odds, also where a value separates right from wrong verdicts, against all orders of the verdicts."""

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from judging.scores.papers.trends import SEPARATED, trends
from judging.statistics.log_odds import slope_of_log_odds


def _chance(values: list[float], right: list[int], slope: float) -> float:
    """By all orders of the verdicts, with the slope and without an intercept, the probability that the sum of the
    values of right verdicts is as large as it is, or larger."""
    number = sum(right)
    of_right = sum(value for value, is_right in zip(values, right, strict=True) if is_right)
    sums = np.array([sum(kept) for kept in combinations(values, number)])
    weights = np.exp(slope * (sums - of_right))
    return float(weights[sums >= of_right - 1e-9].sum() / weights.sum())


SEPARATE: dict[str, tuple[list[float], list[int]]] = {
    "complete": ([1, 1, 2, 3, 4, 4, 6], [0, 0, 0, 1, 1, 1, 1]),
    "both at the value": ([1, 1, 2, 2, 2, 3, 5, 5], [0, 0, 1, 0, 0, 1, 1, 1]),
    "one right of all": ([1, 2, 3, 3, 4], [0, 0, 0, 0, 1]),
    "both at the largest": ([1, 1, 2, 4, 4, 4], [0, 0, 0, 1, 0, 1]),
    "far and near": ([-3.5, 0, 0.25, 1e3, 1e3 + 1], [0, 0, 0, 1, 1]),
}


@pytest.mark.parametrize("name", SEPARATE)
def test_of_separated_verdicts_p_and_interval_are_those_of_all_orders(name: str) -> None:
    values, right = SEPARATE[name]
    slope = slope_of_log_odds(np.array(values, dtype=float), np.array(right, dtype=float))
    assert slope is not None
    assert slope.is_separated
    assert (slope.change.value, slope.change.high) == (math.inf, math.inf)
    assert slope.p == pytest.approx(min(1, 2 * _chance(values, right, 0)))
    scale = 1 / np.ptp(values)
    low = optimize.brentq(lambda steep: _chance(values, right, steep) - 0.025, -200 * scale, 200 * scale, xtol=1e-13)
    assert slope.change.low == pytest.approx(low, rel=1e-6)
    assert (slope.p < 0.05) == (slope.change.low > 0)
    falling = slope_of_log_odds(np.array(values, dtype=float), 1.0 - np.array(right))
    assert falling is not None
    assert falling.change.value == falling.change.low == -math.inf
    assert falling.change.high == pytest.approx(-_mirrored_low(values, right), rel=1e-6)


def _mirrored_low(values: list[float], right: list[int]) -> float:
    """The end of the interval of the wrong verdicts at minus the values, which rises as the right ones do."""
    mirrored = [-value for value in reversed(values)]
    wrong = [1 - is_right for is_right in reversed(right)]
    scale = 1 / np.ptp(values)
    return float(
        optimize.brentq(lambda steep: _chance(mirrored, wrong, steep) - 0.025, -200 * scale, 200 * scale, xtol=1e-13)
    )


def test_without_separation_the_slope_is_the_likeliest() -> None:
    """A right verdict below a wrong one: the maximum of the likelihood by scipy, and Wald's p of its curvature."""
    values = np.array([1.0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    right = np.array([0.0, 1, 0, 0, 1, 0, 1, 1, 0, 1])

    def loss(line: np.ndarray) -> float:
        odds = line[0] + line[1] * values
        return float((np.logaddexp(0, odds) - right * odds).sum())

    best = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9})
    share = 1 / (1 + np.exp(-best.x[0] - best.x[1] * values))
    design = np.column_stack([np.ones(10), values])
    error = math.sqrt(np.linalg.inv(design.T @ (design * (share * (1 - share))[:, None]))[1, 1])
    slope = slope_of_log_odds(values, right)
    assert slope is not None
    assert not slope.is_separated
    assert slope.change.value == pytest.approx(best.x[1], abs=1e-6)
    assert (slope.change.low, slope.change.high) == pytest.approx(stats.norm.interval(0.95, best.x[1], error), abs=1e-5)
    assert slope.p == pytest.approx(2 * stats.norm.sf(abs(best.x[1] / error)), rel=1e-4)


def test_verdicts_that_are_all_right_have_no_slope() -> None:
    values = np.array([1.0, 2, 3])
    assert slope_of_log_odds(values, np.ones(3)) is None
    assert slope_of_log_odds(values, np.zeros(3)) is None
    assert slope_of_log_odds(np.ones(3), np.array([0.0, 1, 1])) is None


def test_thousands_of_separated_verdicts_have_a_p_that_is_not_0() -> None:
    values = np.repeat(np.arange(1.0, 25), 100)
    slope = slope_of_log_odds(values, (values > 11).astype(float))
    assert slope is not None
    assert 0 < slope.p <= 1e-12
    assert 0 < slope.change.low < math.inf


def _conversations(right: Any) -> pd.DataFrame:
    """Of 8 judges two verdicts at each of four lengths, right where ``right`` says so of (judge, length, number)."""
    rows = [
        {
            "judge": f"j{judge}",
            "length": float(length),
            "truth": "human",
            "verdict": "human" if right(judge, length, number) else "machine",
        }
        for judge, length, number in product(range(8), range(1, 5), (0, 1))
    ]
    return pd.DataFrame(rows)


def test_the_strongest_trend_is_the_surest() -> None:
    """Every verdict on a longer conversation is right, every one on a shorter is wrong; or both at one length."""
    for right in (lambda judge, length, number: length > 2, lambda judge, length, number: length > 2 + number):
        [slopes, residuals, log_odds] = trends(_conversations(right), "length")
        assert log_odds.test == SEPARATED
        assert log_odds.p is not None
        assert log_odds.p < 1e-10
        assert log_odds.change.low > 0
        assert str(log_odds.change).endswith(" to +∞)")
        assert slopes.p == residuals.p == pytest.approx(2 / 2**8)


def test_verdicts_that_do_not_vary_have_no_trend_and_say_so() -> None:
    """The line through equal answers has a slope of 1e-17 by least squares: Wilcoxon's test of such is none."""
    tests = trends(_conversations(lambda judge, length, number: True), "length")
    assert [test.test for test in tests] == [
        "no test: slopes are 0 of every judge",
        "no test: residuals at 4 are 0 of every judge",
        "no test: every verdict is right, so that log odds have no slope",
    ]
    assert [test.p for test in tests] == [None, None, None]
    wrong = trends(_conversations(lambda judge, length, number: False), "length")
    assert wrong[2].test == "no test: every verdict is wrong, so that log odds have no slope"
    few = trends(_conversations(lambda judge, length, number: length > 2).query("judge < 'j4'"), "length")
    assert few[0].test == "no test: slopes of 6 judges are needed"
