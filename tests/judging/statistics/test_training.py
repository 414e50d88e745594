"""What trained judges' verdicts have in common, and how much margins hang on training answers: against closed forms."""

import numpy as np
import pytest

from judging.judges.moves import moves_of_margins
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
        covariances = coupling(margins, np.full((2, len(agent), 1), np.nan), is_machine, of_agent)
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
    """A share of margins' variance that comes of training answers, as their moves say."""
    chance = np.random.default_rng(1)
    agent = np.repeat([-1, 0], [30, 30])
    margins = chance.normal(size=(1, 60))
    deviations = [margins[0, side] - margins[0, side].mean() for side in (agent < 0, agent >= 0)]
    scale = np.sqrt(np.mean([np.mean(of_side**2) for of_side in deviations]))
    whole = coupling(margins, np.full((1, 60, 1), np.nan), agent >= 0, agent == 0)[0, 0]
    for share in (0.0, 0.3, 1.0, 4.0):
        moves = np.full((1, 60, 5), np.sqrt(share / 5) * scale)
        part = coupling(margins, moves, agent >= 0, agent == 0)[0, 0]
        assert part == pytest.approx(share * whole)


def test_what_two_versions_have_in_common_is_what_their_moves_have() -> None:
    """Models that find the same have margins that go together, but not by the chance of their training answers."""
    chance = np.random.default_rng(3)
    agent = np.repeat([-1, 0], [30, 30])
    margins = np.tile(chance.normal(size=60), (2, 1))
    of_first = chance.normal(size=(60, 4))
    for common in (1.0, 0.25, 0.0):
        signs = np.repeat([1.0, -1.0], [2, 2]) if common == 0.0 else np.full(4, common)
        moves = np.stack([np.repeat(of_first[:, :1], 4, axis=1), of_first[:, :1] * signs])
        covariances = coupling(margins, moves, agent >= 0, agent == 0)
        assert covariances[0, 1] == covariances[1, 0] == pytest.approx(common * covariances[0, 0], abs=1e-12)


def moves_of_means(models: np.ndarray, own: np.ndarray, rows: int) -> np.ndarray:
    return moves_of_margins(np.repeat(models[:, None], rows, axis=1), own)


def test_the_moves_of_a_mean_add_up_to_its_standard_error() -> None:
    """Models that say the mean of all values but their own: the standard error of the mean of the others."""
    values = np.random.default_rng(2).normal(size=12)
    models = np.array([np.delete(values, at).mean() for at in range(12)])
    moves = moves_of_means(models, np.arange(12), 12)
    wanted = [np.delete(values, at).std(ddof=1) / np.sqrt(11) for at in range(12)]
    assert np.sqrt((moves**2).sum(axis=0)) == pytest.approx(wanted)
    assert (np.diag(moves) == 0).all()


def test_the_moves_of_two_means_add_up_to_their_covariance() -> None:
    values = np.random.default_rng(2).normal(size=(2, 12))
    own = np.full(5, -1)
    moves = [moves_of_means(np.array([np.delete(of, at).mean() for at in range(12)]), own, 5) for of in values]
    covariance = np.cov(values)[0, 1] / 11  # each model has learned from eleven
    assert (moves[0] * moves[1]).sum(axis=0) == pytest.approx(covariance)


def test_two_models_tell_no_moves() -> None:
    with pytest.raises(ValueError, match="2 models"):
        moves_of_margins(np.zeros((2, 3)), np.array([0, 1, 1]))
