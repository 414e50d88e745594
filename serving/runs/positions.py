"""Joining ids with positions: an id is the first 8 bytes of its SHA-256, and keys are found in one sorted array.

Equal keys count as equal ids: of a million ids two share a key in one set of 37 million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

Keys = NDArray[np.uint64]
BLOCK = 65536  # keys that are looked for at once, so that what is needed on the way stays small


def id_key(id: str) -> int:
    """The 64-bit key of an id: the first 8 bytes of SHA-256, big endian."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:8], "big")


@cache
def task_key(task: str) -> int:
    """What the key of an id is combined with (by exclusive or) where one id is asked several tasks."""
    return id_key(task)


def joint_key(*parts: str | int) -> int:
    """The 64-bit key of several parts together, such as a task and an id."""
    return int.from_bytes(hashlib.sha256(orjson.dumps(parts)).digest()[:8], "big")


def id_keys(ids: Iterable[str]) -> Keys:
    """The key of each id."""
    joined = b"".join([hashlib.sha256(id.encode()).digest()[:8] for id in ids])
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64)


class Positions:
    """Finds where a key stands in an array. Holds 12 bytes a key, or 16 from 2^31 keys on."""

    def __init__(self, keys: ArrayLike) -> None:
        values = np.asarray(keys, dtype=np.uint64)
        order: NDArray[Any] = np.argsort(values, kind="stable")
        self._order = order.astype(np.int32) if len(values) < 2**31 else order
        self._sorted = values[self._order]

    def __len__(self) -> int:
        return len(self._sorted)

    def find(self, keys: ArrayLike) -> NDArray[Any]:
        """The first position of each key; -1 where it is not there."""
        wanted = np.asarray(keys, dtype=np.uint64)
        found: NDArray[Any] = np.full(len(wanted), -1, dtype=self._order.dtype)
        for start in range(0, len(wanted) if len(self) else 0, BLOCK):
            part = wanted[start : start + BLOCK]
            at = np.searchsorted(self._sorted, part)
            at[at == len(self)] = 0
            found[start : start + BLOCK] = np.where(self._sorted[at] == part, self._order[at], -1)
        return found


def first_of_each(keys: ArrayLike) -> NDArray[np.bool_]:
    """Which keys stand at no earlier position."""
    first: NDArray[np.bool_] = Positions(keys).find(keys) == np.arange(len(np.asarray(keys)))
    return first


def last_of_each(keys: ArrayLike) -> NDArray[np.bool_]:
    """Which keys stand at no later position."""
    return first_of_each(np.asarray(keys, dtype=np.uint64)[::-1])[::-1]
