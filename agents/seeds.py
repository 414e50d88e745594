"""Seeds: every attempt at an answer has its own, derived from what it is an attempt at and from nothing else.

seed = the first 53 bits of SHA-256 over the JSON (compact, UTF-8, no escapes beyond JSON's own) of
``[1, run seed, agent, stimulus id, sample, turn or null, attempt]``. 53 bits survive every JSON reader, JavaScript's
doubles included.
"""

from __future__ import annotations

import hashlib

import orjson

VERSION = 1


def derive(run_seed: int, agent: str, stimulus: str, sample: int, turn: int | None, attempt: int) -> int:
    """The seed of one attempt: an integer in [0, 2**53)."""
    text = orjson.dumps([VERSION, run_seed, agent, stimulus, sample, turn, attempt])
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11
