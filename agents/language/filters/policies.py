"""Judge a turn or a whole conversation: every filter that a policy has on, and what follows from what it found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pydantic import ConfigDict, Field

from agents.contract import Settings, Verdict
from agents.language.filters import messages as filters
from agents.language.filters.messages import Finding
from agents.language.filters.texts import quoted
from agents.language.sent_messages import leading_label, short_names
from agents.tasks import ConversationType, Family

Action = Literal["resample_turn", "resample_conversation", "flag", "off"]


class FilterSettings(Settings):
    """The filters' thresholds: what a filter finds at its threshold is a finding, what is one short of it is none."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    repeated_sentence: int = Field(3, ge=2)
    """In how many messages of one speaker a sentence stands when it counts as repeated."""
    sentence_words: int = Field(4, ge=1)
    """How many words a sentence has at least that may not be repeated."""
    repeated_block: int = Field(2, ge=1, le=100)
    """How many messages in a row, all said before in the same order by the same speakers, are a repeated block."""
    same_message: int = Field(3, ge=2)
    """How often one speaker says the same whole message, of whatever length, when it counts as repeated."""
    word_loop: int = Field(4, ge=2)
    """How often a word, or the same few words, stand in a row in one message when they are a loop."""
    early_exit: int = Field(3, ge=0)
    """How many of the last messages may take leave; a farewell before them is an early exit."""
    empty: int = Field(1, ge=1)
    """How many characters a message has at least, spaces, dots, dashes and quotation marks not counted."""
    other_speaker: int = Field(1, ge=1)
    """How many labels of the other speaker ("Alice:") in one message are a finding."""
    prompt_echo: int = Field(8, ge=2)
    """How many words in a row of the prompt, said in a message, are an echo of it."""
    too_long: int = Field(66, ge=1)
    """The most words of a message; the drawn lengths of people's messages exceed 66 once in 1,000."""
    list_lines: int = Field(3, ge=2)
    """How many items on lines of their own, or numbered within the text, make a message a list."""
    list_items: int = Field(8, ge=2)
    """How many things in a row, one to three words each between commas, make a message a list."""
    too_short: int = Field(1, ge=0)
    """The fewest words of a message."""
    self_disclosure: int = Field(1, ge=1)
    """In how many sentences of a message the speaker says that it is a machine when that is a finding."""


class Policy(Settings):
    """What follows from each filter's finding: resample_turn, resample_conversation, flag or off."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    repeated_sentence: Action = "flag"
    """When a sentence is repeated."""
    repeated_block: Action = "flag"
    """When a block of messages is repeated."""
    same_message: Action = "flag"
    """When one speaker says the same message again and again."""
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
PAPERS = MappingProxyType(
    {
        ("completion", "completion"): COMPLETION,
        ("chat", "chat"): CHAT,
        ("blenderbot", "blenderbot"): MEASURE,
    }
)


def papers_policy(kind: ConversationType, first: Family = "other", second: Family = "other") -> Policy:
    """The papers' policy for a conversation of people ("HH"), of a machine with a person ("HM") or of two machines
    ("MM"), these by the families of the two models."""
    return PAPERS.get((first, second), MEASURE) if kind == "MM" else MEASURE


THRESHOLDS = FilterSettings()
NO_PROMPTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one filter found and what the policy asks for. ``turns`` are the indices (from 0, earlier history included)
    of the messages in which it came true; ``found`` is said of the last of those with the most of it."""

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
    """What the filters find in a new message ``text`` of ``speaker``, in the order of the policy's fields.

    ``history`` holds the (speaker, text) before it. ``names`` are the labels by which a prompt may call the speakers,
    next to those in the history; ``prompt`` is what the model was told, if it was told something that it should not
    repeat. ``total`` is how many messages the conversation is to have, history included: without it no farewell is an
    early exit.
    """
    prompts = {} if prompt is None else {speaker: prompt}
    judged = _Judged([*history, (speaker, text)], len(history), settings, names, prompts, total)
    return [
        Judgement(name, action, found[len(history)].text, (len(history),))
        for name, action in policy
        if action != "off" and len(history) in (found := _findings(name, judged))
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
    """What the filters find in a whole conversation of (speaker, text), in the order of the policy's fields.

    That is exactly what :func:`judge_turn` finds in its messages one after the other, one judgement for each filter,
    and that messages are missing where there are fewer than ``total``. ``prompts`` are by speaker. Without ``total``
    the conversation is taken to be complete.
    """
    judged = _Judged(messages, 0, settings, names, prompts, len(messages) if total is None else total)
    judgements = []
    for name, action in policy:
        if action == "off":
            continue
        found = _findings(name, judged)
        if name == "early_exit" and total is not None and len(messages) < total:
            last = max(len(messages) - 1, 0)
            missing = f"{len(messages)} of {total} messages"
            found[last] = Finding(1, f"{found[last].text}; {missing}" if last in found else missing)
        if found:
            most = max(found, key=lambda index: (found[index].size, index))
            judgements.append(Judgement(name, action, found[most].text, tuple(sorted(found))))
    return judgements


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is judged: the messages from ``first`` on, in view of all."""

    messages: Sequence[tuple[str, str]]
    first: int
    settings: FilterSettings
    names: Collection[str]
    prompts: Mapping[str, str]
    total: int | None

    def each(self, judge: Callable[[str, str], str | None]) -> dict[int, Finding]:
        """What ``judge`` finds in (speaker, text) of each message alone, by its index."""
        return {
            index: Finding(0, found)
            for index in range(self.first, len(self.messages))
            if (found := judge(*self.messages[index])) is not None
        }


# Filters of one message whose threshold has their own name.
_ALONE: Mapping[str, Callable[[str, int], str | None]] = {
    "word_loop": filters.word_loop,
    "empty": filters.empty,
    "too_long": filters.too_long,
    "too_short": filters.too_short,
    "self_disclosure": filters.self_disclosure,
}


def _findings(name: str, judged: _Judged) -> dict[int, Finding]:
    """What one filter finds, by the index of the message in which it came true."""
    thresholds = judged.settings
    if name == "repeated_sentence":
        return filters.repeated_sentence(judged.messages, thresholds.repeated_sentence, thresholds.sentence_words)
    if name == "repeated_block":
        return filters.repeated_block(judged.messages, thresholds.repeated_block)
    if name == "same_message":
        return filters.same_message(judged.messages, thresholds.same_message)
    if name == "early_exit":
        return _early_exits(judged)
    if name == "other_speaker":
        known = {*judged.names, *(speaker for speaker, _ in judged.messages)}
        return judged.each(
            lambda speaker, text: (
                filters.other_speaker(text, known - {speaker}, thresholds.other_speaker)
                or _short_label(judged, speaker, text, ("other", "nobody"))
            )
        )
    if name == "prompt_echo":
        prompts = judged.prompts
        return judged.each(
            lambda speaker, text: (
                filters.prompt_echo(text, prompts.get(speaker, ""), [speaker], thresholds.prompt_echo)
                or _short_label(judged, speaker, text, ("own",))
            )
        )
    if name == "list":
        return judged.each(lambda _, text: filters.list_like(text, thresholds.list_lines, thresholds.list_items))
    return judged.each(lambda _, text: _ALONE[name](text, getattr(thresholds, name)))


def _short_label(judged: _Judged, speaker: str, text: str, whose: Collection[str]) -> str | None:
    """A letter, a number or nothing before a colon at the beginning of a message, as the label of ``whose``."""
    names = list(judged.names) if isinstance(judged.names, Sequence) else []
    label = leading_label(text, *short_names(names, speaker))
    return f"the label “{label.written}”" if label is not None and label.whose in whose else None


def _early_exits(judged: _Judged) -> dict[int, Finding]:
    """Farewells before the last messages of the total that is planned."""
    total = judged.total
    if total is None:
        return {}
    last = min(len(judged.messages), total - judged.settings.early_exit)
    return {
        index: Finding(0, f"{quoted(said)}, {total - index - 1} messages before the end")
        for index in range(judged.first, last)
        if (said := filters.farewell(judged.messages[index][1])) is not None
    }
