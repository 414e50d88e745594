"""Our own agents: the lines of the catalogue.

A new agent is one file and one line in the ``entries`` of its folder; a new checkpoint of a known family is one line.
"""

from __future__ import annotations

from agents.attention import entries as attention
from agents.entry import EXACT, Entry
from agents.language import entries as language
from agents.stimuli import TASKS
from agents.vision import entries as vision

BUILT_IN: tuple[Entry, ...] = (
    *vision.ENTRIES,
    *attention.ENTRIES,
    *language.ENTRIES,
    Entry(
        "openai-universal",
        "agents.universal.openai_universal:UniversalAgent",
        TASKS,
        "one multimodal model on an OpenAI-compatible server, asked as people were",
        "OpenAI 2024, GPT-4o",
        EXACT,
        "proprietary",
        settings={"model": "gpt-4o"},
    ),
    Entry(
        "catch",
        "agents.universal.catch:CatchAgent",
        TASKS,
        "catch trials: answers that no attentive judge takes for a person's",
        "the 2025 paper, Table S3",
        EXACT,
        role="control",
    ),
    Entry("null", "agents.universal.null:NullAgent", TASKS, "no operation, in batches", "for measuring", hidden=True),
    Entry(
        "null-one",
        "agents.universal.null:ContinuousNullAgent",
        TASKS,
        "no operation, one at a time",
        "for measuring",
        hidden=True,
    ),
)
