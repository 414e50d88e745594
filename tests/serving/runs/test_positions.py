"""Keys and positions: compared with a plain dictionary."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from serving.runs.positions import Positions, first_of_each, id_key, id_keys, joint_key, last_of_each

KEYS = st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=30)


def test_a_key_is_the_beginning_of_sha256() -> None:
    assert id_key("") == 0xE3B0C44298FC1C14
    assert id_key("é") == int(hashlib.sha256("é".encode()).hexdigest()[:16], 16)
    assert id_keys(["", "é"]).tolist() == [id_key(""), id_key("é")]
    assert joint_key("a", "bc") != joint_key("ab", "c")


@given(KEYS, KEYS)
def test_a_key_is_found_at_its_first_position(keys: Sequence[int], wanted: Sequence[int]) -> None:
    found = Positions(keys).find([*wanted, *keys]).tolist()
    assert found == [keys.index(key) if key in keys else -1 for key in [*wanted, *keys]]
    assert first_of_each(keys).tolist() == [key not in keys[:at] for at, key in enumerate(keys)]
    assert last_of_each(keys).tolist() == [key not in keys[at + 1 :] for at, key in enumerate(keys)]
