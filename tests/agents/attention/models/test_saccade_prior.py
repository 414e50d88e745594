"""The saccade prior: the file that is shipped, how it is rebuilt, and the two priors that are made of it."""

import math

import numpy as np
import pytest

from agents.attention.models import saccade_prior


def test_the_shipped_counts_are_those_of_the_source():
    counts = saccade_prior.counts()
    text = saccade_prior.COUNTS.read_text(encoding="utf-8")
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
    prior = saccade_prior.vectors(two_saccades(), 1.5)
    assert prior.max() == 1.0
    for row, column in ((67, 60), (66, 60), (67, 62), (64, 74), (64, 67), (64, 64), (65, 63)):
        expected = sum(
            number * math.exp(-((row - r) ** 2 + (column - c) ** 2) / (2 * 1.5**2))
            for (r, c), number in {(67, 60): 2, (64, 74): 1}.items()
        )
        assert prior[row, column] == pytest.approx(expected / 2, abs=1e-9)  # the peak, where the other adds nothing


# What the authors' program reads of its pictures (kreimanlab/RefixationModel, IOR_NC/Figures, MIT), in 0..255: each
# picture at 128 x 128 by Pillow's nearest pixel, (rows, columns) from the cell that is fixated.
PLACES = [(0, 0), (1, 1), (0, 3), (-3, 4), (-4, -3), (10, 0), (0, 20), (31, -31), (-63, 60)]
AUTHORS = {
    "free": [0, 0, 58, 253, 244, 182, 117, 19, 0],
    "natural": [0, 0, 48, 251, 251, 173, 71, 10, 0],
    "waldo": [0, 0, 49, 252, 248, 159, 58, 6, 0],
}


@pytest.mark.parametrize("shown", saccade_prior.SHOWN)
def test_amplitudes_are_the_authors_pictures(shown):
    prior = saccade_prior.amplitudes(shown)
    assert prior.shape == (128, 128)
    found = [255 * prior[64 + rows, 64 + columns] for rows, columns in PLACES]
    assert found == pytest.approx(AUTHORS[shown], abs=6)  # theirs are JPEG files
    assert 0 <= prior.min() < 0.02 < 0.97 < prior.max() <= 1
    assert "Copyright (c) 2020 Kreiman Lab" in saccade_prior.AMPLITUDES.read_text(encoding="utf-8")


def test_vectors_of_the_shipped_counts():
    prior = saccade_prior.vectors(saccade_prior.counts())
    assert (prior.shape, prior.max(), prior.min() > 0) == ((128, 128), 1.0, True)
    assert prior[64, 64] > 0.99
