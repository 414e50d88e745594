"""Draws: what one attempt at an answer is made with, beside the stimulus."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson


def derive_seed(run_seed: int, agent: str, stimulus: str, sample: int, turn: int | None, attempt: int) -> int:
    """The seed of an attempt, 53 bits: the first bits of SHA-256 over the compact JSON of
    [1, run seed, agent, stimulus id, sample, turn, attempt]. ``turn`` is None outside of conversations. The same seven
    values give the same seed for ever, so that an old run can be repeated."""
    text = orjson.dumps([1, run_seed, agent, stimulus, sample, turn, attempt])
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11


@dataclass(slots=True)  # not frozen: a frozen one takes longer to make, and a run makes one for each attempt
class Draw:
    """The randomness and the options of one attempt. The same stimulus, settings and draw give the same reply, whatever
    else is in the batch."""

    seed: int
    """All the randomness that an agent may use, 53 bits (:func:`derive_seed`)."""
    sample: int = 0
    """Which answer to the stimulus this is, from 0."""
    attempt: int = 0
    """How often filters have rejected this answer before, from 0."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What one request chooses; empty in a run. In a conversation ``speaker`` is "A" or "B", and ``turn`` counts from
    0; ``pseudo`` asks for a pseudo-dialogue."""
    say: Callable[[str], None] | None = field(default=None, compare=False)
    """Takes the answer's text as far as it is final, from any thread; None where nobody listens."""
