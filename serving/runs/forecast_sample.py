"""Which stimuli a run asks first, so that a forecast knows early how much work each part of the set is."""

from math import sqrt
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.float64]]
EVERY = 25  # one stimulus of so many is in the sample
MOST_SAMPLED = 4096  # stimuli: more would make the forecast no better, and they are held in memory
FEWEST_CLUSTERS = 4  # in a sample, where it has as many stimuli
ONE_PASS = 32  # a sample of fewer clusters goes along the set once
SILVER = sqrt(2) - 1  # multiples of it, without their whole parts, are spread evenly however many there are


def spread(count: int, batch_size: int = 1, workers: int = 1, lengths: Numbers | None = None) -> list[int]:
    """Which of ``count`` missing stimuli to ask first: the places, from 0, in the order of asking.

    They are one in :data:`EVERY`, in clusters of neighbours. Stimuli of a batch are neighbours in the sample as in the
    rest of the run, so that a set sorted by length has batches of equal lengths in both. Each cluster stands at a place
    of its own in its part of the set: a sample of each 25th would see a single condition of a set whose conditions
    alternate. Two passes go along the set, so that half of the sample comes from everywhere, too. With ``lengths``, of
    the missing rows, few clusters need one pass.

    A request that is tried again comes into the batch of the next cluster. So each pass goes from short rows to long
    ones, where ``lengths`` are given: a short row in a batch of long ones changes nothing, but a long one would make a
    batch of short ones slow.

    The first cluster of each worker is one more, since first batches are slow and tell little. Empty for fewer than
    :data:`EVERY` stimuli.
    """
    clusters, length, extra = clusters_of(count, batch_size, workers)
    starts = []
    neighbours = []
    for number in range(clusters):
        first = number * count // clusters
        last = (number + 1) * count // clusters - length
        starts.append(first + int((last - first + 1) * (number * SILVER % 1)))
        neighbours.append(starts[-1] + length if starts[-1] + length <= last else starts[-1] - length)
    passes = [[*range(0, clusters, 2)], [*reversed(range(1, clusters, 2))]]
    if lengths is not None:
        if clusters < ONE_PASS:
            passes = [[*range(clusters)]]
        mean = [float(lengths[start : start + length].mean()) for start in starts]
        for one in passes:
            one.sort(key=lambda number: mean[number])
    asked = [neighbours[(2 * number + 1) * clusters // (2 * extra)] for number in range(extra)]
    asked += [starts[number] for one in passes for number in one]
    return [place for start in asked for place in range(start, start + length)]


def clusters_of(count: int, batch_size: int, workers: int) -> tuple[int, int, int]:
    """The clusters of a sample, the stimuli of each, and the clusters beside them for the workers' first batches."""
    sampled = min(count // EVERY, MOST_SAMPLED)
    if not sampled:
        return 0, 0, 0
    length = max(1, min(batch_size, sampled // FEWEST_CLUSTERS))
    clusters = sampled // length
    extra = workers if clusters >= FEWEST_CLUSTERS * workers else 0
    return clusters - extra, length, extra
