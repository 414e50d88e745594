"""Hashes: the plain way and numpy's way agree with each other and with sets and dicts."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.runs import hash_join

VALUES = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=30)


@contextmanager
def _small(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_join, "SMALL", size)
        yield


WAYS = pytest.mark.parametrize("size", [0, 50_000], ids=["numpy", "plain"])


@WAYS
@given(VALUES)
def test_one_array(size: int, values: list[int]) -> None:
    given = array("q", values)
    with _small(size):
        keep = hash_join.last_of_each(given)
        twice = hash_join.any_twice(given)
        ascending = hash_join.ordered(given)
        pairs = hash_join.ordered_pairs(given, array("q", range(len(values))))
    last = [value not in values[place + 1 :] for place, value in enumerate(values)]
    assert twice == (not all(last))
    assert (keep is None) == all(last)
    assert keep is None or list(map(bool, keep)) == last
    assert list(ascending) == sorted(values)
    assert list(zip(*pairs, strict=True)) == sorted((value, place) for place, value in enumerate(values))


@WAYS
@given(
    st.sets(st.integers(0, 9), min_size=1),
    st.dictionaries(st.tuples(st.integers(-2, 12), st.integers(0, 4)), st.booleans()),
    st.integers(1, 3),
)
def test_what_is_covered(size: int, known: set[int], records: dict[tuple[int, int], bool], wanted: int) -> None:
    stimuli, samples = (array("q", (key[part] for key in records)) for part in (0, 1))
    with _small(size):
        within, full = hash_join.covered(
            array("q", sorted(known)), stimuli, samples, bytearray(records.values()), wanted
        )
    assert within == sum(stimulus in known and sample < wanted for stimulus, sample in records)
    assert list(full) == [
        stimulus for stimulus in sorted(known) if all(records.get((stimulus, sample)) for sample in range(wanted))
    ]


@WAYS
@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=4))
def test_what_is_in_all(size: int, sets: list[set[int]]) -> None:
    with _small(size):
        assert hash_join.common([array("q", sorted(values)) for values in sets]) == len(set.intersection(*sets))


def test_nothing_small_imports_numpy() -> None:
    code = (
        "import sys\nfrom array import array\nfrom serving.runs import hash_join\none = array('q', range(9))\n"
        "hash_join.last_of_each(one), hash_join.any_twice(one), hash_join.ordered(one)\n"
        "hash_join.ordered_pairs(one, one)\n"
        "hash_join.covered(one, one, one, bytearray(9), 1), hash_join.common([one, one])\nprint('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
