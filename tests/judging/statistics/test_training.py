"""What trained judges' verdicts have in common, and how much margins hang on training answers: against closed forms."""

import numpy as np
import pytest

from judging.judges.spread import spread_of_margins
from judging.statistics.training import coupling

PEOPLE = 60
OF_AGENTS = (20, 40)
DIMENSIONS = 400


def untaught_margins(chance: np.random.Generator, is_machine: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Margins of a classifier that goes by the mean of the other answers of each side: there is nothing to find."""
    sign = np.where(is_machine, 1.0, -1.0)
    counts = np.where(is_machine, 1 / is_machine.sum(), 1 / (~is_machine).sum())
    kernel = rows @ rows.T
    np.fill_diagonal(kernel, 0)
    return np.asarray(kernel @ (sign * counts))


def test_the_variance_of_a_judge_that_finds_nothing_is_that_of_drawn_studies() -> None:
    """Detectability of an agent, in one version and between two whose features have half in common."""
    chance = np.random.default_rng(4)
    agent = np.repeat([-1, 0, 1], [PEOPLE, *OF_AGENTS])
    is_machine = agent >= 0
    of_agent = agent == 0
    values = []
    added = []
    flips = []
    for _ in range(1500):
        rows = chance.normal(size=(len(agent), DIMENSIONS))
        versions = [rows[:, : 3 * DIMENSIONS // 4], rows[:, DIMENSIONS // 4 :]]
        margins = np.array([untaught_margins(chance, is_machine, of_version) for of_version in versions])
        right = (margins > 0) == is_machine
        values.append(0.5 * (right[:, ~is_machine].mean(axis=1) + right[:, of_agent].mean(axis=1)))
        covariances = coupling(margins, np.full_like(margins, np.nan), is_machine, of_agent)
        added.append([covariances[0, 0], covariances[0, 0] + covariances[1, 1] - 2 * covariances[0, 1]])
        flips.append((right[0] != right[1]).mean())
    found = np.array(values)
    units = 0.25 * (1 / PEOPLE + 1 / OF_AGENTS[0])
    alone = 0.25 * units
    change = np.mean(flips) * units
    truth = [found[:, 0].var(), (found[:, 0] - found[:, 1]).var()]
    estimated = np.mean(added, axis=0) + np.array([alone, change])
    assert estimated == pytest.approx(truth, rel=0.12)  # five standard errors of a variance of 1,500
    assert [alone, change] < list(0.9 * np.array(truth))  # without it these are too small


def test_what_the_judge_finds_adds_nothing() -> None:
    """A share of margins' variance that comes of training answers, as their spread says."""
    chance = np.random.default_rng(1)
    agent = np.repeat([-1, 0], [30, 30])
    margins = chance.normal(size=(1, 60))
    deviations = [margins[0, side] - margins[0, side].mean() for side in (agent < 0, agent >= 0)]
    scale = np.sqrt(np.mean([np.mean(of_side**2) for of_side in deviations]))
    whole = coupling(margins, np.full((1, 60), np.nan), agent >= 0, agent == 0)[0, 0]
    for share in (0.0, 0.3, 1.0, 4.0):
        spreads = np.full((1, 60), np.sqrt(share) * scale)
        part = coupling(margins, spreads, agent >= 0, agent == 0)[0, 0]
        assert part == pytest.approx(share * whole)


def test_the_spread_of_a_mean_is_its_standard_error() -> None:
    """Models that say the mean of all values but their own: the standard error of the mean of the others."""
    values = np.random.default_rng(2).normal(size=12)
    models = np.array([np.delete(values, at).mean() for at in range(12)])
    margins = np.repeat(models[:, None], 12, axis=1)
    spreads = spread_of_margins(margins, np.arange(12))
    wanted = [np.delete(values, at).std(ddof=1) / np.sqrt(11) for at in range(12)]
    assert spreads == pytest.approx(wanted)


def test_two_models_tell_no_spread() -> None:
    assert np.isnan(spread_of_margins(np.zeros((2, 3)), np.array([0, 1, 1]))).all()
