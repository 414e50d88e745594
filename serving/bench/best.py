"""Which batch size is the best of those that were measured."""

from __future__ import annotations

from collections.abc import Sequence

from serving.bench.results import Best, Size

NEARLY = 0.97  # of the highest throughput is as good
ABOUT = 0.9  # is good enough, where a batch of what is better takes hardly any time
LONG = 0.05  # seconds of a batch beside which the few milliseconds that a scheduler needs for one do not count


def best(sizes: Sequence[Size], long: float = LONG) -> Best:
    """The smallest size whose throughput is :data:`NEARLY` the highest and of which a batch takes ``long`` at least; if
    none takes so long, the same with :data:`ABOUT`; if there is none either, the largest of that throughput: the bare
    agent is as fast with small ones, a scheduler is not, and loses more by them.
    """
    highest = max(one.stimuli_s for one in sizes)
    ascending = sorted(sizes, key=lambda one: one.batch_size)
    for share in (NEARLY, ABOUT):
        good = [one for one in ascending if one.stimuli_s >= share * highest]
        if found := next((one for one in good if one.p50_s >= long), None):
            break
    else:
        found = good[-1]
    return Best(found.batch_size, found.stimuli_s)
