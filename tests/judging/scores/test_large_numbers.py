"""Slopes over large numbers, such as times in milliseconds: tests do not depend on the column's unit or its zero."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.api import Logit, add_constant

from judging.scores.papers.trends import trends
from judging.statistics.contrasts import by_column
from judging.statistics.log_odds import slope_of_log_odds
from judging.statistics.tables import Estimate

UNITS = {"years": (1.0, 2000.0), "seconds since 1970": (86_400.0, 1.7643e9), "milliseconds": (86.4e6, 1.7643e12)}
SMALL = {"seconds": (1e-6, 0.0)}


def _judged() -> pd.DataFrame:
    """Nine judges of people and an agent at six lengths, who are right more often at the larger."""
    chance = np.random.default_rng(3)
    rows = []
    for judge in range(9):
        for length in (3, 6, 9, 12, 24, 48):
            for truth, other in (("human", "machine"), ("machine", "human")):
                for at in range(3):
                    verdict = truth if chance.random() < 0.4 + 0.008 * length else other
                    agent = "human:x" if truth == "human" else "m"
                    trial = f"{judge} {length} {truth} {at}"
                    rows.append((f"j{judge}", agent, truth, verdict, f"s{at} {length}", trial, length))
    names = ["judge", "agent", "truth", "verdict", "stimulus", "trial", "length"]
    return pd.DataFrame(rows, columns=names).assign(judge_kind="human")


@pytest.mark.parametrize("name", [*UNITS, *SMALL])
def test_trends_and_slopes_are_the_same_in_any_unit(name: str) -> None:
    unit, zero = (UNITS | SMALL)[name]
    table = _judged()
    moved = table.assign(length=table["length"] * unit + zero)
    for own, other in zip(trends(table, "length"), trends(moved, "length"), strict=True):
        assert (own.measure, own.p) == (other.measure, pytest.approx(other.p, rel=1e-6))
        per_unit = 1.0 if "residuals" in own.test else unit
        assert other.change.value * per_unit == pytest.approx(own.change.value, rel=1e-6)
    [own_slope] = by_column(table, "length")
    [other_slope] = by_column(moved, "length")
    assert other_slope.p == pytest.approx(own_slope.p, rel=1e-6)
    assert other_slope.test == own_slope.test == "judges and stimuli"
    for end in ("value", "low", "high"):
        of_other = getattr(other_slope.difference, end)
        assert of_other * unit == pytest.approx(getattr(own_slope.difference, end), rel=1e-6)
    assert f"{other_slope.difference}".strip("+-0.") != ""  # a figure is left of 1e-10


def test_log_odds_over_milliseconds_are_those_of_the_centred_column() -> None:
    """Maximum likelihood of statsmodels, over numbers that were centred and scaled beforehand."""
    table = _judged()
    right = (table["verdict"] == table["truth"]).to_numpy(float)
    length = table["length"].to_numpy(float)
    fit = Logit(right, add_constant((length - length.mean()) / length.std())).fit(disp=0)
    unit, zero = UNITS["milliseconds"]
    slope = slope_of_log_odds(length * unit + zero, right)
    assert slope is not None
    assert slope.change.value == pytest.approx(fit.params[1] / (length.std() * unit), rel=1e-6)
    low, high = fit.conf_int()[1] / (length.std() * unit)
    assert [slope.change.low, slope.change.high] == pytest.approx([low, high], rel=1e-4)
    assert slope.p == pytest.approx(fit.pvalues[1], rel=1e-4)
    assert slope.p < 1e-3


def test_shares_of_partitions_are_fitted_as_fractions() -> None:
    """A share counts as a single verdict: the likelihood of Papke and Wooldridge (1996), maximised by hand."""
    places = np.repeat([3.0, 6.0, 12.0, 24.0], 20)
    share = np.random.default_rng(5).choice([0, 0.25, 0.5, 1], len(places)) * np.where(places > 6, 1, 0.8)
    slope = slope_of_log_odds(places, share)
    assert slope is not None
    line = np.zeros(2)
    design = add_constant(places)
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-design @ line))
        information = design.T @ (design * (fitted * (1 - fitted))[:, None])
        line = line + np.linalg.solve(information, design.T @ (share - fitted))
    error = np.sqrt(np.linalg.inv(information)[1, 1])
    assert slope.change.value == pytest.approx(line[1])
    assert slope.p == pytest.approx(2 * stats.norm.sf(abs(line[1] / error)), rel=1e-4)


def test_small_figures_keep_three_digits() -> None:
    assert str(Estimate(1.3e-10, 1e-11, 2.5e-10, "+.4f").significant()) == "+1.3e-10 (+1e-11 to +2.5e-10)"
    large = Estimate(0.25, 0.1, 0.4, "+.4f")
    assert large.significant() == large
