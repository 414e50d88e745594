"""What becomes of a generated message: it is cut to the lengths of people's, put in small letters, or too short.

The 2025 paper draws a length in words for each reply and cuts a longer reply "at the most appropriate punctuation
mark". Here that is the last full stop, exclamation or question mark within the length; what follows if there is none is
a setting.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from agents.answers import WordAnswer
from agents.contract import Draw, Reply, Settings, Verdict
from agents.errors import InputError, Problem
from agents.language.filters.texts import WORD, sentence_ends, words
from agents.language.words.replies import no_word

Fallback = Literal["sentence", "clause", "words"]

_CLAUSE = re.compile(r"[,;:、，；：](?=\s|$)|[、，；：]|\s[–—-](?=\s)|—")
_LONGEST = 100_000


class TruncationSettings(Settings):
    """How long a reply may be, and how a longer one is cut."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    shape: float = Field(2.09, ge=0.01, le=10_000)
    """The shape of the Gamma distribution of lengths; 2.09 and a scale of 7.0 have the mean and spread of people's."""
    scale: float = Field(7.0, gt=0, le=10_000)
    """The scale, in words, of the Gamma distribution of lengths."""
    least: int = Field(1, ge=1)
    """The shortest length that is drawn, in words."""
    lengths: Path | None = None
    """A file of lengths to draw from instead, one number of words a line."""
    fallback: Fallback = "sentence"
    """Where a first sentence longer than the length is cut: sentence (at its end), clause (at a comma), words."""


def draw_length(seed: int, settings: TruncationSettings, lengths: Sequence[int] = ()) -> int:
    """A target length in words, the same for the same seed: one of ``lengths`` (of :func:`read_lengths`) or, if there
    is none, a draw from the Gamma distribution, rounded; never below ``settings.least``."""
    numbers = random.Random(seed)
    drawn = lengths[int(numbers.random() * len(lengths))] if lengths else _rounded(numbers, settings)
    return max(settings.least, drawn)


def read_lengths(settings: TruncationSettings | None) -> tuple[int, ...]:
    """The lengths in the file that ``settings`` name, one whole number from 0 a line; none if they name no file.

    Empty lines do not count. Raises InputError.
    """
    path = None if settings is None else settings.lengths
    if path is None:
        return ()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a file of lengths: {error}") from None
    found: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= _LONGEST:
            found.append(int(text))
        elif text:
            problems.append(Problem(str(path), number, None, f"{text[:40]!r} is no whole number from 0 to {_LONGEST}"))
    if problems:
        raise InputError(f"{path}: {len(problems)} of {len(lines)} lines hold no length", problems)
    if not found:
        raise InputError(f"{path}: holds no length")
    return tuple(found)


def sent_message(
    text: str, draw: Draw, truncation: TruncationSettings | None, lengths: Sequence[int], lower_case: float
) -> str:
    """The message that is sent: on one line, cut to a length that is drawn by ``truncation`` or from ``lengths``.

    ``lower_case`` is the share of messages that are put in small letters.
    """
    text = " ".join(text.split())
    if truncation is not None:
        text = truncate(text, draw_length(draw.seed, truncation, lengths), truncation.fallback)
    return text.lower() if random.Random(f"case {draw.seed}").random() < lower_case else text


def says_too_little(reply: Reply, least: int, attempts: int) -> Verdict | None:
    """The filter of replies without an acceptable word, and of messages of fewer than ``least`` words before they are
    cut. The last of the ``attempts`` at a message is kept if it has any word."""
    if isinstance(reply.answer, WordAnswer):
        return no_word(reply.answer, reply.raw if isinstance(reply.raw, str) else reply.raw["text"])
    text = reply.raw["text"]
    count = len(words(text))
    if count >= max(least, 1):
        return None
    is_last = reply.raw["attempt"] + 1 >= attempts
    return Verdict("too_few_words", count == 0 or not is_last, f"{count} words: {text[:200]}")


def truncate(text: str, words: int, fallback: Fallback = "sentence") -> str:
    """``text`` if it has at most ``words`` words; otherwise its beginning, up to the last sentence end within them.

    If the first sentence is longer than that, ``fallback`` says what is kept of it. "sentence": all of it (all of the
    text, where no sentence ends), as chat models that spare punctuation would otherwise be cut in mid-sentence most of
    the time; the result is then longer than asked for. "clause": up to the last comma, semicolon, colon or dash within
    the length, and where there is none up to the length. "words": up to the length. Nothing is kept but a beginning of
    the text, and a result is never empty unless the text is.
    """
    found = list(WORD.finditer(text))
    if len(found) <= words:
        return text
    first, limit = found[0].start(), found[words].start()
    # The marks before the first word ("...", "?!") end no sentence that could be kept.
    ends = [end for end in sentence_ends(text) if end > first]
    if within := bisect_right(ends, limit):
        return text[: ends[within - 1]].rstrip()
    if fallback == "sentence":
        return text[: ends[0]].rstrip() if ends else text
    marks = [mark.start() for mark in _CLAUSE.finditer(text, first, limit + 1)] if fallback == "clause" else []
    return text[: marks[-1] if marks else found[words - 1].end()].rstrip()


def _rounded(numbers: random.Random, settings: TruncationSettings) -> int:
    """A draw from the Gamma distribution in whole words, kept below what any message may have."""
    return round(min(_LONGEST, numbers.gammavariate(settings.shape, settings.scale)))
