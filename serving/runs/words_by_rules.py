"""What the papers' rules for words make of an answer, shown beside what was written.

Trials and populations compare words after these rules (:mod:`judging.trial_sets.same_rules`); records keep what
was written. Who looks at answers or exports them sees both. The rules need wordfreq, which the base install lacks:
there the page and the table say so, and show what was written alone.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from agents.contract import is_installed

TASK = "word_association"
MISSING = "words by the papers' rules are not shown: they need wordfreq, pip install 'turinglike[words]'"


@cache
def are_known() -> bool:
    """Whether the rules can be applied here."""
    return is_installed("wordfreq")


def word_by_rules(record: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str | None] | None:
    """The ``word`` after the rules and, where they drop it, the ``rule``; ``row`` is the stimulus's, {} where only an
    import names it. None for other tasks, failed answers and catch trials, which are to break the rules."""
    is_word = record["task"] == TASK and record["status"] != "failed" and record["kind"] != "control"
    answer = record["answer"]
    if not is_word or not isinstance(answer, Mapping) or not isinstance(answer.get("word"), str) or not are_known():
        return None
    from agents.language.words.replies import read_word
    from agents.language.words.rules import RuleSettings

    cue = row.get("cue")
    word, rule = read_word(answer["word"], str(cue if cue is not None else record["stimulus"]), RuleSettings())
    return {"word": word or None, "rule": rule}


def changed_by_rules(record: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str | None] | None:
    """The same where the rules change or drop what was written; None where they leave it."""
    by_rules = word_by_rules(record, row)
    if by_rules is None or by_rules["word"] == record["answer"]["word"].strip().lower():
        return None
    return by_rules


def in_words(written: str, by_rules: Mapping[str, str | None] | None) -> str:
    """Both in a line: "Cats → cat", "the (left out: stop_word)"."""
    if by_rules is None:
        return written
    if by_rules["rule"] is not None:
        return f"{written} (left out: {by_rules['rule']})"
    return f"{written} → {by_rules['word']}"
