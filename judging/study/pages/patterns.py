"""Patterns of a study's own questions: an answer is matched within a limited time, as a pattern may take for ever.

A regular expression may try so many ways through a text that it does not end, and one answer would then stop the pages
of everybody. ``regex`` matches as ``re`` does, and ends after a time.
"""

import re

import regex

from judging.study.design.writing_tables import FREE, Checks

LIMIT_S = 0.1
"""Seconds of the processor for a match: a usual one takes some millionths of a second."""
LONGEST_TRIED = 200
"""Letters of the texts with which a pattern is tried: those of the longest answer."""
ENDS = re.compile(r"^[\W_]+|[\W_]+$")
"""Marks and blanks at the ends of an answer."""


class SlowPatternError(Exception):
    """A pattern that takes too long for a text, so that nobody knows whether it fits."""


def fits(pattern: str, text: str) -> bool:
    """Whether a pattern fits all of a text, also without the marks at its ends; capitals do not count.

    "Three!" and "three." are what people write who mean "three". Raises SlowPatternError.
    """
    return any(_fits(pattern, each) for each in dict.fromkeys((text, ENDS.sub("", text))))


def _fits(pattern: str, text: str) -> bool:
    try:
        return regex.fullmatch(pattern, text, regex.IGNORECASE, timeout=LIMIT_S) is not None
    except TimeoutError:
        raise SlowPatternError(pattern) from None


def slow_patterns(checks: Checks) -> list[str]:
    """Sentences on the patterns that take too long for a long answer.

    Each is tried with texts that repeat one of its own signs, or all of them, and end otherwise. So a slow pattern may
    pass here; it still ends in time when people answer.
    """
    found = []
    for question in checks.questions:
        if question.people != FREE and _is_slow(question.people):
            found.append(
                f"checks.questions: people = {question.people!r}: this pattern takes too long for some answers, and an "
                "answer counts as not answered when it does: write it without repeats within repeats"
            )
    return found


def _is_slow(pattern: str) -> bool:
    signs = [*dict.fromkeys(sign for sign in f"{pattern}a" if sign.isalnum())]
    try:
        for repeated in [*signs, "".join(signs)]:
            fits(pattern, f"{repeated * LONGEST_TRIED}"[: LONGEST_TRIED - 1] + "!")
    except SlowPatternError:
        return True
    return False
