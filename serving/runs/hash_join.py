"""Arrays of 64-bit hashes, for joining records and stimuli of any number in bounded memory.

Below :data:`SMALL` elements plain Python does it, as importing numpy takes longer than the work; above, numpy does, at
a few words per element. Both give the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALL = 50_000


def last_of_each(hashes: array[int]) -> bytes | None:
    """One byte per element, 1 where it is the last of its value; None if every element is."""
    if len(hashes) < SMALL:
        last = {value: place for place, value in enumerate(hashes)}
        if len(last) == len(hashes):
            return None
        marks = bytearray(len(hashes))
        for place in last.values():
            marks[place] = 1
        return bytes(marks)
    import numpy as np

    values = np.frombuffer(hashes, dtype=np.int64)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    final = np.ones(len(values), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=final[:-1])
    if final.all():
        return None
    keep = np.zeros(len(values), dtype=bool)
    keep[order[final]] = True
    return keep.tobytes()


def any_twice(hashes: array[int]) -> bool:
    """Whether a value is there more than once."""
    if len(hashes) < SMALL:
        return len(set(hashes)) < len(hashes)
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return bool((ordered[1:] == ordered[:-1]).any())


def ordered(hashes: array[int]) -> array[int]:
    """The values in ascending order."""
    if len(hashes) < SMALL:
        return array("q", sorted(hashes))
    import numpy as np

    return _array(np.sort(np.frombuffer(hashes, dtype=np.int64)))


def ordered_pairs(hashes: array[int], others: array[int]) -> tuple[array[int], array[int]]:
    """Both arrays in the order that puts ``hashes`` in ascending order; equal ones stay in their order."""
    if len(hashes) < SMALL:
        places = sorted(range(len(hashes)), key=hashes.__getitem__)
        return array("q", (hashes[place] for place in places)), array("q", (others[place] for place in places))
    import numpy as np

    values = np.frombuffer(hashes, dtype=np.int64)
    order = np.argsort(values, kind="stable")
    return _array(values[order]), _array(np.frombuffer(others, dtype=np.int64)[order])


def covered(
    known: array[int], stimuli: array[int], samples: array[int], ok: bytearray, wanted: int
) -> tuple[int, array[int]]:
    """How many records are of a stimulus in ``known`` (ascending) and of a sample below ``wanted``, and which stimuli
    have ``wanted`` such records that are ok, ascending. ``stimuli``, ``samples`` and ``ok`` have one element a record,
    no two of them of one key."""
    if len(known) < SMALL and len(stimuli) < SMALL:
        there = set(known)
        within = 0
        counts: dict[int, int] = {}
        for stimulus, sample, good in zip(stimuli, samples, ok, strict=True):
            if sample < wanted and stimulus in there:
                within += 1
                if good:
                    counts[stimulus] = counts.get(stimulus, 0) + 1
        return within, array("q", sorted(stimulus for stimulus, count in counts.items() if count >= wanted))
    import numpy as np

    values, places = np.frombuffer(stimuli, dtype=np.int64), np.frombuffer(known, dtype=np.int64)
    inside = places[np.minimum(np.searchsorted(places, values), len(places) - 1)] == values
    inside &= np.frombuffer(samples, dtype=np.int64) < wanted
    good_ones = np.sort(values[inside & np.frombuffer(ok, dtype=bool)])
    start = np.flatnonzero(np.diff(good_ones, prepend=good_ones[:1] - 1))
    full = good_ones[start][np.diff(start, append=len(good_ones)) >= wanted]
    return int(inside.sum()), _array(full)


def common(sets: Sequence[array[int]]) -> int:
    """How many values are in all of ``sets``, each ascending and without repeats."""
    if max(map(len, sets)) < SMALL:
        return len(set(sets[0]).intersection(*sets[1:]))
    import numpy as np

    shared = np.frombuffer(sets[0], dtype=np.int64)
    for values in sets[1:]:
        shared = np.intersect1d(shared, np.frombuffer(values, dtype=np.int64), assume_unique=True)
    return len(shared)


def _array(values: NDArray[np.int64]) -> array[int]:
    made = array("q")
    made.frombytes(values.tobytes())
    return made
