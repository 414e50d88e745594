"""Judge a turn or a conversation by a policy's filters."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.contract import Finding, Settings
from agents.language.filters.messages import FilterSettings as FilterSettings
from agents.language.filters.messages import JudgedMessages, Match
from agents.stimuli import ConversationType, Family

Action = Literal["resample_turn", "resample_conversation", "flag", "off"]


class Policy(Settings):
    """Each filter's action: resample_turn, resample_conversation, flag or off."""

    repeated_sentence: Action = "flag"
    repeated_block: Action = "flag"
    same_message: Action = "flag"
    word_loop: Action = "flag"
    early_exit: Action = "flag"
    empty: Action = "flag"
    other_speaker: Action = "flag"
    prompt_echo: Action = "flag"
    too_long: Action = "flag"
    list: Action = "flag"
    too_short: Action = "flag"
    self_disclosure: Action = "flag"
    partner_echo: Action = "flag"
    cut_off: Action = "flag"


FILTERS = tuple(Policy.model_fields)
MEASURE = Policy()
COMPLETION = Policy(
    repeated_sentence="resample_conversation",
    repeated_block="resample_conversation",
    early_exit="resample_conversation",
)
CHAT = Policy(empty="resample_conversation")


def papers_policy(kind: ConversationType, first: Family = "other", second: Family = "other") -> Policy:
    """The 2025 paper's policy (Methods, "Conversations") for two machines of a family."""
    policies = {"completion": COMPLETION, "chat": CHAT}
    return policies.get(first, MEASURE) if kind == "MM" and first == second else MEASURE


THRESHOLDS = FilterSettings()


@dataclass(frozen=True, slots=True)
class Judgement:
    """A finding and its action; ``turns`` are message indices, ``found`` describes the last of the largest."""

    filter: str
    action: Action
    found: str
    turns: tuple[int, ...]

    @property
    def rejected(self) -> bool:
        return self.action.startswith("resample")

    def finding(self) -> Finding:
        """As a filter of a single reply gives it."""
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
    """The findings in (speaker, text) messages, in the policy's order. ``names`` are further labels, ``prompts`` by
    speaker what a model should not repeat, ``total`` the planned messages. ``last_only`` judges the last message.
    ``ended_at_limit`` are indices of texts that had all their tokens."""
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
