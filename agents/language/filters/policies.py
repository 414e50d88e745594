"""Judge a turn or a conversation: every filter that a policy has on, and the action that follows from its finding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pydantic import ConfigDict

from agents.contract import Settings, Verdict
from agents.language.filters.messages import FilterSettings as FilterSettings
from agents.language.filters.messages import Finding, Judged
from agents.stimuli import ConversationType, Family

Action = Literal["resample_turn", "resample_conversation", "flag", "off"]


class Policy(Settings):
    """What follows from each filter's finding: resample_turn, resample_conversation, flag or off."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    repeated_sentence: Action = "flag"
    """When a sentence is repeated."""
    repeated_block: Action = "flag"
    """When a block of messages is repeated."""
    same_message: Action = "flag"
    """When a speaker sends the same message again and again."""
    word_loop: Action = "flag"
    """When words go round in a loop."""
    early_exit: Action = "flag"
    """When a speaker takes leave too early, or messages are missing."""
    empty: Action = "flag"
    """When a message is empty or "..."."""
    other_speaker: Action = "flag"
    """When a message goes on with the other speaker's turn."""
    prompt_echo: Action = "flag"
    """When a message shows what only the model was to see."""
    too_long: Action = "flag"
    """When a message has too many words."""
    list: Action = "flag"
    """When a message is a list."""
    too_short: Action = "flag"
    """When a message has too few words."""
    self_disclosure: Action = "flag"
    """When a speaker says that it is a machine."""


FILTERS = tuple(Policy.model_fields)
MEASURE = Policy()
COMPLETION = Policy(
    repeated_sentence="resample_conversation",
    repeated_block="resample_conversation",
    early_exit="resample_conversation",
)
CHAT = Policy(empty="resample_conversation")

# The 2025 paper, Methods, "Conversations". A pair of two families is not in the paper, and is only measured.
PAPERS: Mapping[tuple[Family, Family], Policy] = MappingProxyType(
    {("completion", "completion"): COMPLETION, ("chat", "chat"): CHAT, ("blenderbot", "blenderbot"): MEASURE}
)


def papers_policy(kind: ConversationType, first: Family = "other", second: Family = "other") -> Policy:
    """The papers' policy for a conversation of people ("HH"), of a machine with a person ("HM") or of two machines
    ("MM"), these by the families of the two models."""
    return PAPERS.get((first, second), MEASURE) if kind == "MM" else MEASURE


THRESHOLDS = FilterSettings()
NO_PROMPTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Judgement:
    """A filter's finding and the policy's action. ``turns`` are the indices of its messages, history included;
    ``found`` describes the last with the most of it."""

    filter: str
    action: Action
    found: str
    turns: tuple[int, ...]

    @property
    def rejected(self) -> bool:
        return self.action in ("resample_turn", "resample_conversation")

    def verdict(self) -> Verdict:
        return Verdict(self.filter, self.rejected, self.found)


def judge_turn(
    history: Sequence[tuple[str, str]],
    speaker: str,
    text: str,
    policy: Policy,
    settings: FilterSettings = THRESHOLDS,
    *,
    names: Collection[str] = (),
    prompt: str | None = None,
    total: int | None = None,
) -> list[Judgement]:
    """The findings in a new message after the (speaker, text) of ``history``, in the order of the policy's fields.

    ``names`` are further labels of the speakers, ``prompt`` is what the model should not repeat. ``total`` is the
    planned number of messages, history included: without it no farewell is an early exit.
    """
    prompts = {} if prompt is None else {speaker: prompt}
    judged = Judged([*history, (speaker, text)], len(history), settings, names, prompts, total)
    return [
        Judgement(name, action, findings[len(history)].text, (len(history),))
        for name, action in policy
        if action != "off" and len(history) in (findings := judged.findings(name))
    ]


def judge_conversation(
    messages: Sequence[tuple[str, str]],
    policy: Policy,
    settings: FilterSettings = THRESHOLDS,
    *,
    names: Collection[str] = (),
    prompts: Mapping[str, str] = NO_PROMPTS,
    total: int | None = None,
) -> list[Judgement]:
    """The findings in a conversation of (speaker, text), a judgement a filter, in the order of the policy's fields.

    They are those of :func:`judge_turn` for each message, and messages that are missing from ``total``. ``prompts``
    are by speaker. Without ``total`` the conversation is taken to be complete.
    """
    judged = Judged(messages, 0, settings, names, prompts, len(messages) if total is None else total)
    judgements = []
    for name, action in policy:
        if action == "off":
            continue
        findings = judged.findings(name)
        if name == "early_exit" and total is not None and len(messages) < total:
            last = max(len(messages) - 1, 0)
            missing = f"{len(messages)} of {total} messages"
            findings[last] = Finding(1, f"{findings[last].text}; {missing}" if last in findings else missing)
        if findings:
            most = max(findings, key=lambda index: (findings[index].size, index))
            judgements.append(Judgement(name, action, findings[most].text, tuple(sorted(findings))))
    return judgements
