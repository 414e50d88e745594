"""Whether chains of draws have converged, and how many independent draws they are worth (Vehtari et al. 2021)."""

from __future__ import annotations

import numpy as np

from judging.statistics.jackknife import Floats

BLOCK = 256  # figures at once, so that their spectra need little memory


def split_rhat(draws: Floats) -> Floats:
    """R-hat of each figure, of draws [chain, draw, figure] whose chains are split in halves; 1 is perfect.

    It is the square root of the variance of all draws over that within half chains. What never moves has NaN."""
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt((half - 1) / half + between / within))


def effective_draws(draws: Floats) -> Floats:
    """How many independent draws tell the mean of each figure as well as the ``draws`` [chain, draw, figure].

    Autocorrelations are summed over lags while the sums of two neighbours are positive, and made to fall
    (Geyer 1992)."""
    blocks = range(0, draws.shape[2], BLOCK)
    return np.concatenate([_effective_draws(draws[:, :, first : first + BLOCK]) for first in blocks])


def _effective_draws(draws: Floats) -> Floats:
    chains, number, _ = draws.shape
    means = draws.mean(axis=1)
    spectrum = np.fft.rfft(draws - means[:, None], 2 * number, axis=1)
    power = (spectrum * spectrum.conj()).real
    covariance = np.fft.irfft(power, axis=1)[:, :number] / number
    within = covariance[:, 0].mean(axis=0) * number / (number - 1)
    total = within * (number - 1) / number
    if chains > 1:
        total = total + means.var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = 1 - (within - covariance.mean(axis=0)) / total
    correlation[0] = 1
    pairs = correlation[: number // 2 * 2].reshape(number // 2, 2, -1).sum(axis=1)
    is_positive = np.logical_and.accumulate(pairs > 0, axis=0)
    pairs = np.minimum.accumulate(np.where(is_positive, pairs, 0), axis=0)
    # draws that alternate about the mean are worth more than independent ones, within this limit
    return np.asarray(chains * number / np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(chains * number)))
