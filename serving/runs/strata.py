"""The work of an answer in strata of a set: a line through them, what it leaves, and variances within them.

Arguments have a value for each stratum: ``work`` is the mean work of an answer in seconds, ``answers`` is the number of
answers that it is the mean of, ``length`` is their mean length in bytes.
"""

from math import sqrt

import numpy as np

from serving.runs.forecast_sample import FEWEST_CLUSTERS, Numbers

EXPLAINS = 2.0  # the slope on length is used from this many standard errors on


def line_through(length: Numbers, work: Numbers, answers: Numbers) -> tuple[float, float]:
    """What length leaves unexplained of the differences in work between strata, and the work of a byte: 0 unless length
    explains work."""
    across = length - np.average(length, weights=answers)
    up = work - np.average(work, weights=answers)
    everything = float((answers * up**2).sum())
    square = float((answers * across**2).sum())
    if len(length) < FEWEST_CLUSTERS or not square:
        return everything, 0.0
    slope = float((answers * across * up).sum()) / square
    rest = float((answers * (up - slope * across) ** 2).sum())
    error = sqrt(rest / (len(up) - 2) / square)
    return (rest, slope) if abs(slope) > EXPLAINS * error else (everything, 0.0)


def drawn_together(work: Numbers, answers: Numbers, variances: Numbers) -> Numbers:
    """The work of an answer in each stratum, drawn towards the mean of all: wholly, where strata differ no more than
    answers with these ``variances`` do by chance; hardly, where they differ much more."""
    mean = np.average(work, weights=answers)
    chance = variances / answers
    differences = max(0.0, float(((work - mean) ** 2).sum() / (len(work) - 1) - chance.mean()))
    kept = differences / (differences + chance) if differences else 0.0
    return mean + kept * (work - mean)


def variances_within(work: Numbers, answers: Numbers) -> Numbers:
    """The variance of an answer's work around its stratum, by stratum: from second differences, which a trend along the
    set does not enlarge; from first ones where there are few strata. Empty for a single stratum."""
    number = len(work)
    if number < 2:
        return np.empty(0)
    if number < 5:
        steps = np.diff(work) ** 2 / (1 / answers[1:] + 1 / answers[:-1])
        return np.full(number, steps.mean())
    bends = (work[:-2] - 2 * work[1:-1] + work[2:]) ** 2
    bends /= 1 / answers[:-2] + 4 / answers[1:-1] + 1 / answers[2:]
    return np.concatenate([bends[:1], bends, bends[-1:]])
