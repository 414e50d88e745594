"""The saccade prior: the file that is shipped, how it is rebuilt, and the two priors that are made of it."""

import math

import numpy as np
import pytest

from agents.attention.models import saccade_prior


def test_the_shipped_counts_are_those_of_the_source():
    counts = saccade_prior.read()
    text = saccade_prior.FILE.read_text(encoding="utf-8")
    assert counts.shape == (128, 128)
    assert counts.min() == 0
    assert counts.sum() == 15732  # 16931 fixations in 1199 scanpaths
    assert (counts[64, 64], counts.max()) == (73, 91)  # 73 saccades stayed in their cell
    assert "sha256\n# 016775d4770c8c75d55dd8f2d7e253ff2fa9778eee0324d3abee89a3fec1824f\n" in text
    assert "kreimanlab/RefixationModel" in text
    assert "Copyright (c) 2020 Kreiman Lab" in text
    assert "The above copyright notice and this permission notice shall be included in all" in text


def two_saccades():
    """Two saccades of 3 cells down and 4 to the left, one of 10 to the right."""
    counts = np.zeros((128, 128), np.int64)
    counts[67, 60], counts[64, 74] = 2, 1
    return counts


def test_vectors_are_gaussians_around_the_counted_saccades():
    prior = saccade_prior.prior(two_saccades(), "vectors", 1.5)
    assert prior.max() == 1.0
    for row, column in ((67, 60), (66, 60), (67, 62), (64, 74), (64, 67), (64, 64), (65, 63)):
        expected = sum(
            number * math.exp(-((row - r) ** 2 + (column - c) ** 2) / (2 * 1.5**2))
            for (r, c), number in {(67, 60): 2, (64, 74): 1}.items()
        )
        assert prior[row, column] == pytest.approx(expected / 2, abs=1e-9)  # the peak, where the other adds nothing


def test_amplitudes_are_gaussians_of_size_drawn_around_the_fixation():
    prior = saccade_prior.prior(two_saccades(), "amplitudes", 0.5)
    assert prior.max() == 1.0
    first, second = math.hypot(3 * 16, 4 * 20), 200.0  # pixels

    def frequency(size):
        return sum(n * math.exp(-((size - at) ** 2) / (2 * 9.0**2)) for at, n in ((first, 2), (second, 1)))

    peak = max(frequency(math.hypot(16 * row, 20 * column)) for row in range(64) for column in range(64))
    for row, column in ((0, 0), (3, 4), (-3, 4), (3, -4), (0, 10), (0, -10), (9, -3), (12, 2), (-40, 60)):
        expected = frequency(math.hypot(16 * row, 20 * column)) / peak
        assert prior[64 + row, 64 + column] == pytest.approx(expected, abs=1e-9)


def test_the_shipped_priors():
    counts = saccade_prior.read()
    vectors, amplitudes = saccade_prior.prior(counts), saccade_prior.prior(counts, "amplitudes")
    for prior in (vectors, amplitudes):
        assert prior.shape == (128, 128)
        assert prior.max() == 1.0
        assert prior.min() > 0
    assert vectors[64, 64] > 0.99 > 0.5 > amplitudes[64, 64]
    row, column = np.unravel_index(amplitudes.argmax(), amplitudes.shape)
    assert 60 < math.hypot(16 * (row - 64), 20 * (column - 64)) < 100
