"""The papers' own examples of conversations, judged by the filters: which are kept, which are not, and by what."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.language.filters.policies import (
    MEASURE,
    FilterSettings,
    Judgement,
    judge_conversation,
    papers_policy,
)

EXAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "paper_conversations.json").read_text(encoding="utf-8"))[
    "conversations"
]
DOCS = Path(__file__).parents[3] / "docs" / "filters.md"

# Every finding there is to be, as the number of messages in which it comes true.
FINDINGS: dict[str, dict[str, int]] = {
    "S1.4": {"repeated_sentence": 13, "repeated_block": 10, "same_message": 9, "partner_echo": 17},
    "S1.5": {"partner_echo": 5},
    "S1.7": {"repeated_sentence": 1},
    "S1.9": {"early_exit": 1},
    "S1.10": {"empty": 2, "too_short": 2},
    "S3.1": {"same_message": 10, "early_exit": 1, "too_short": 12},
    "S3.2": {"list": 1},
    "S3.3": {"repeated_sentence": 10, "same_message": 10, "early_exit": 1},
}
REJECTED = {"S1.4": ["repeated_sentence", "repeated_block"], "S1.10": ["empty"]}


def messages(name: str) -> list[tuple[str, str]]:
    return [(speaker, text) for speaker, text in EXAMPLES[name]["messages"]]


def judged(name: str, settings: FilterSettings | None = None) -> list[Judgement]:
    """An example under the papers' policy for its speakers."""
    example = EXAMPLES[name]
    policy = papers_policy(example["kind"], *example["families"])
    return judge_conversation(messages(name), policy, settings or FilterSettings(), total=example["planned"])


def verdict(name: str) -> str:
    judgements = judged(name)
    if any(judgement.rejected for judgement in judgements):
        return "rejected"
    if EXAMPLES[name]["authors"] == "catch trial":
        return "caught" if judgements else "missed"
    return "kept, flagged" if judgements else "kept"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_findings_in_each(name: str) -> None:
    assert {judgement.filter: len(judgement.turns) for judgement in judged(name)} == FINDINGS.get(name, {})
    assert [judgement.filter for judgement in judged(name) if judgement.rejected] == REJECTED.get(name, [])


@pytest.mark.parametrize("name", ["S3.1", "S3.2", "S3.3"])
def test_catch_trials_are_caught_whatever_the_policy_and_length(name: str) -> None:
    assert {"same_message", "list"} & {judgement.filter for judgement in judge_conversation(messages(name), MEASURE)}


def test_every_verdict_is_the_authors() -> None:
    kept = {name for name, example in EXAMPLES.items() if example["authors"] == "kept"}
    assert {name for name in EXAMPLES if verdict(name) in ("kept", "kept, flagged")} - {"S1.9"} == kept


def test_table_in_the_documentation() -> None:
    """By example, each filter with the number of messages in which it came true, in bold where that rejects."""
    lines = ["| example | speakers | authors | verdict | findings |", "|---|---|---|---|---|"]
    for name, example in EXAMPLES.items():
        findings = [(f"{each.filter} {len(each.turns)}", each.rejected) for each in judged(name)]
        marks = ", ".join(f"**{text}**" if rejected else text for text, rejected in findings)
        lines.append(f"| {name} | {example['speakers']} | {example['authors']} | {verdict(name)} | {marks} |")
    assert "\n".join(lines) in DOCS.read_text(encoding="utf-8")
