"""The settings of a pair that converses: what is done about bad turns and conversations, and how long all takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from agents.contract import Agent, Settings
from agents.errors import InputError, bad_settings
from agents.language.filters.policies import FilterSettings, Policy, papers_policy
from agents.stimuli import ConversationType
from serving.conversations.burst import QUIET_S
from serving.conversations.delays import DelaySettings


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
    """In a burst dialogue, for how many seconds the other one must have been quiet before an agent is asked."""

    def policy_for(self, kind: ConversationType, pair: Sequence[Agent[Any]]) -> Policy:
        """The policy that holds for a conversation of the type ``kind`` between the two of ``pair``."""
        first, second = (agent.family for agent in pair)
        return self.policy or papers_policy(kind, first, second)


def pair_settings(name: str, given: Mapping[str, Any] | None) -> PairSettings:
    """The settings of the pair ``name``. Raises InputError with every bad one."""
    try:
        return PairSettings.model_validate(given or {})
    except ValidationError as error:
        raise InputError(
            f"pair {name}: bad settings", bad_settings(name, PairSettings.model_fields, error.errors(include_url=False))
        ) from None
