"""How a pair converses: what is done about bad turns, and how long a speaker takes over a message."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from agents.contract import Agent, Settings
from agents.errors import InputError, bad_settings
from agents.language.filters.policies import FilterSettings, Policy, papers_policy
from agents.stimuli import ConversationType

QUIET_S = 5.0  # X-Turing's t1 is not in the texts that are known here: a guess


class DelaySettings(Settings):
    """The constants of the delay before a message, in seconds and seconds per letter.

    Form and constants follow Jones and Bergen (2023, "Does GPT-4 pass the Turing test?"), not checked against their
    program: base + N(type_mean, type_sd) x letters written + N(read_mean, read_sd) x letters read + Gamma(think_shape,
    think_scale).
    """

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


class PairSettings(Settings):
    """What the filters of :mod:`agents.language.filters` lead to, and how often a conversation is tried."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    policy: Policy | None = None
    """What follows from each filter's finding; none: the papers' policy for the families of the two agents."""
    thresholds: FilterSettings = FilterSettings()
    """The filters' thresholds."""
    attempts: int = Field(5, ge=1, le=100)
    """How often a turn, and a whole conversation, is tried while the policy wants it sampled again."""
    delays: DelaySettings = DelaySettings()
    """How long both speakers take over a message, on the conversation's own clock."""
    quiet_s: float = Field(QUIET_S, ge=0, le=3600)
    """In a burst dialogue, for how many seconds the other speaker must have been quiet before an agent is called."""

    def policy_for(self, kind: ConversationType, pair: Sequence[Agent[Any]]) -> Policy:
        """The policy for a conversation of the type ``kind`` between the two of ``pair``."""
        first, second = (agent.family for agent in pair)
        return self.policy or papers_policy(kind, first, second)


def read_pair_settings(name: str, values: Mapping[str, Any] | None) -> PairSettings:
    """The settings of the pair ``name``. Raises InputError with every fault."""
    try:
        return PairSettings.model_validate(values or {})
    except ValidationError as error:
        problems = bad_settings(name, PairSettings.model_fields, error.errors(include_url=False))
        raise InputError(f"pair {name}: bad settings", problems) from None
