"""How long a speaker takes over a message: to read, to think and to type.

One model for all speakers, on the conversation's own clock: a run waits for none of it. Its form and constants are
those of Jones and Bergen (2023, "Does GPT-4 pass the Turing test?"), as remembered and not checked against their
program; X-Turing's own are not known here. ::

    d = base + N(type_mean, type_sd) x letters of the message + N(read_mean, read_sd) x letters read before it
        + Gamma(think_shape, think_scale)    seconds
"""

from __future__ import annotations

import random

from pydantic import ConfigDict, Field

from agents.contract import Settings


class DelaySettings(Settings):
    """The constants of the delay before a message, in seconds and seconds per letter."""

    model_config = ConfigDict(use_attribute_docstrings=True, strict=True)

    base: float = Field(1.0, ge=0, le=3600)
    """What every message takes."""
    type_mean: float = Field(0.3, ge=0, le=60)
    """Per letter of the message: the mean over messages."""
    type_sd: float = Field(0.03, ge=0, le=60)
    """Its standard deviation."""
    read_mean: float = Field(0.03, ge=0, le=60)
    """Per letter of what was read before it: the mean over messages."""
    read_sd: float = Field(0.003, ge=0, le=60)
    """Its standard deviation."""
    think_shape: float = Field(2.5, gt=0, le=1000)
    """The shape of the gamma distribution of thinking."""
    think_scale: float = Field(0.25, ge=0, le=3600)
    """Its scale; 0: nobody thinks."""

    def draw(self, written: int, read: int, numbers: random.Random) -> float:
        """Seconds before a message of ``written`` letters, after ``read`` letters; never below 0."""
        typing = numbers.gauss(self.type_mean, self.type_sd) * written
        reading = numbers.gauss(self.read_mean, self.read_sd) * read
        thinking = numbers.gammavariate(self.think_shape, self.think_scale) if self.think_scale else 0.0
        return max(0.0, self.base + typing + reading + thinking)
