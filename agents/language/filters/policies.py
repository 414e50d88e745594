"""Judges a turn or a conversation by a policy: which filters look, and what a finding leads to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.contract import Finding, Settings
from agents.language.filters.messages import FilterSettings as FilterSettings
from agents.language.filters.messages import JudgedMessages, Match
from agents.stimuli import ConversationType, Family

Action = Literal["resample_turn", "resample_conversation", "flag", "off"]
"""Draw the turn again, draw the whole conversation again, only note the finding, or do not look."""


class Policy(Settings):
    """Each filter's action. The filters are explained in :class:`agents.language.filters.messages.FilterSettings`."""

    repeated_sentence: Action = "flag"
    """A speaker says a sentence again and again."""
    repeated_block: Action = "flag"
    """Some messages come again in the same order."""
    same_message: Action = "flag"
    """A speaker sends a message again and again."""
    word_loop: Action = "flag"
    """A few words come again and again within a message."""
    early_exit: Action = "flag"
    """A farewell, or the end, long before the planned end."""
    empty: Action = "flag"
    """A message with no text."""
    other_speaker: Action = "flag"
    """A message with the other's label in it."""
    prompt_echo: Action = "flag"
    """A message that has words of the prompt, a placeholder or a mark of a chat template."""
    too_long: Action = "flag"
    """A message with too many words."""
    list: Action = "flag"
    """A message that is a list."""
    too_short: Action = "flag"
    """A message with too few words."""
    self_disclosure: Action = "flag"
    """A message in which the speaker says that it is a machine."""
    partner_echo: Action = "flag"
    """A message that has many words of the other's last ones."""
    cut_off: Action = "flag"
    """A message that was cut at the limit of tokens within a sentence."""


FILTERS = tuple(Policy.model_fields)
"""The filters' names, in the order in which they are told."""
MEASURE = Policy()
"""The policy that notes everything and rejects nothing."""
COMPLETION = Policy(
    repeated_sentence="resample_conversation",
    repeated_block="resample_conversation",
    early_exit="resample_conversation",
)
"""The papers' policy for two completion models."""
CHAT = Policy(empty="resample_conversation")
"""The papers' policy for two chat models."""


def papers_policy(kind: ConversationType, first: Family = "other", second: Family = "other") -> Policy:
    """The 2025 paper's policy (Methods, "Conversations"): it rejects only between two machines of the same family, and
    else measures."""
    policies = {"completion": COMPLETION, "chat": CHAT}
    return policies.get(first, MEASURE) if kind == "MM" and first == second else MEASURE


THRESHOLDS = FilterSettings()
"""The thresholds where a scenario names none."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A filter's finding in a conversation, and what it leads to."""

    filter: str
    """The filter's name."""
    action: Action
    """The policy's action."""
    found: str
    """What was found, of several findings the largest, and of equal ones the last."""
    turns: tuple[int, ...]
    """Indices of the messages with a finding."""

    @property
    def rejected(self) -> bool:
        """Whether the turn or the conversation is to be drawn again."""
        return self.action.startswith("resample")

    def finding(self) -> Finding:
        """The finding as it stands in a record."""
        return Finding(self.filter, self.rejected, self.found)


def judge_conversation(
    messages: Sequence[tuple[str, str]],
    policy: Policy,
    settings: FilterSettings = THRESHOLDS,
    *,
    names: Collection[str] = (),
    prompts: Mapping[str, str | None] | None = None,
    total: int | None = None,
    last_only: bool = False,
    ended_at_limit: Collection[int] = (),
) -> list[Judgement]:
    """The findings in ``messages``, (speaker, text) each, in the policy's order.

    - ``names``: further names that may be labels
    - ``prompts``: by speaker the instructions that a model should not repeat
    - ``total``: how many messages are planned; None: those that there are
    - ``last_only``: judge the last message alone, in view of those before
    - ``ended_at_limit``: indices of texts that had all their tokens
    """
    last = max(len(messages) - 1, 0)
    planned = len(messages) if total is None else total
    judged = JudgedMessages(messages, last if last_only else 0, settings, names, prompts or {}, planned, ended_at_limit)
    judgements = []
    for name, action in policy:
        if action == "off":
            continue
        findings = judged.findings(name)
        if last_only:
            findings = {last: findings[last]} if last in findings else {}
        elif name == "early_exit" and len(messages) < planned:
            missing = f"{len(messages)} of {planned} messages"
            findings[last] = Match(1, f"{findings[last].text}; {missing}" if last in findings else missing)
        if findings:
            most = max(findings, key=lambda index: (findings[index].size, index))
            judgements.append(Judgement(name, action, findings[most].text, tuple(sorted(findings))))
    return judgements
