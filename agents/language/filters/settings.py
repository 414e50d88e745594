"""The filters' names, their thresholds, and what is done about a finding: the turn is sampled again, the whole
conversation is, or the finding is only noted."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

from pydantic import ConfigDict, Field

from agents.contract import Settings
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
