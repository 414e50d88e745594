"""Hedges: words by which a speaker holds back from what is said, such as "I think" and "maybe".

The list (``hedges.toml``) has kinds that Holmes describes for talk ("Hedges and boosters in women's and men's speech",
Language & Communication 10, 1990: "I think", "sort of") and Hyland for texts ("Metadiscourse", 2005, appendix:
"perhaps", "in my view"). Of these it has only what can go and leaves a sentence. "It may be a dog" without "may" is
none, and so modal verbs stay, as do "seems to", "about" and "quite".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LISTS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "hedges.toml").read_text(encoding="utf-8"))
_THOUGHTS = frozenset(_LISTS["thoughts"])
_CLAUSES = frozenset([*_LISTS["thoughts"], *_LISTS["seeming"]])
_DEGREES = frozenset(_LISTS["degrees"])
_BEFORE_DEGREES = frozenset(_LISTS["before_degrees"])
_BEGIN_CLAUSE = frozenset(_LISTS["begin_clause"])
_NO_CLAUSE_BEFORE = frozenset(_LISTS["no_clause_before"])
AT_BEGINNING = (*_LISTS["adverbs"], *_LISTS["thoughts"], *_LISTS["asides"])
"""Those that can be set before a sentence."""
HEDGES = (*AT_BEGINNING, *_LISTS["other_adverbs"], *_LISTS["seeming"], *_LISTS["other_asides"], *_LISTS["degrees"])
"""All of them, in small letters."""
HEDGING_WORDS = frozenset(word for phrase in HEDGES for word in phrase.split()) | {"that"}
"""The words that may go."""
_PHRASES: dict[str, list[tuple[str, ...]]] = {}  # by their first word, the longest first
for _phrase in sorted((tuple(phrase.split()) for phrase in HEDGES), key=lambda words: -len(words)):
    _PHRASES.setdefault(_phrase[0], []).append(_phrase)
_ENDS = ".!?"


@dataclass(frozen=True, slots=True)
class Hedge:
    """A hedge in a text."""

    phrase: str
    """In small letters, as the lists have it."""
    start: int
    """The place of its first character."""
    end: int
    """The place behind its last character; behind "that", where this goes with it."""


def first_hedge(text: str) -> Hedge | None:
    """The first hedge of a text; None where there is none."""
    words = list(WORD.finditer(text))
    small = [word[0].lower().replace("’", "'") for word in words]
    for place in range(len(words)):
        for phrase in _PHRASES.get(small[place], ()):
            last = place + len(phrase)
            if tuple(small[place:last]) != phrase or not _is_in_one(text, words[place:last]):
                continue
            if (end := _end(text, words, small, place, phrase)) is not None:
                return Hedge(" ".join(phrase), words[place].start(), end)
    return None


def without_hedges(text: str) -> str:
    """The text without its hedges, and without the commas that set them apart.

    A sentence that began with a large letter does so afterwards: else its beginning would be a new tell."""
    while (hedge := first_hedge(text)) is not None:
        text = _without(text, hedge)
    return text


def hedges(text: str) -> list[str]:
    """The hedges of a text in their order, in small letters."""
    found = []
    while (hedge := first_hedge(text)) is not None:
        found.append(hedge.phrase)
        text = _without(text, hedge)
    return found


def hedged(text: str, phrase: str) -> str:
    """The text with a hedge before it: "Maybe a dog." for "A dog."."""
    is_large = text[:1].isupper()
    begin = re.sub(r"\bi\b", "I", phrase)
    if is_large:
        begin = begin[:1].upper() + begin[1:]
    first = WORD.search(text)
    is_name = first is not None and (
        (first[0][0] == "I" and first[0][1:2] in ("", "'", "’")) or first[0][1:] != first[0][1:].lower()
    )
    rest = text if is_name else text[:1].lower() + text[1:]
    return f"{begin} {rest}"


def _is_in_one(text: str, words: Sequence[re.Match[str]]) -> bool:
    return all(not text[first.end() : second.start()].strip() for first, second in pairwise(words))


def _end(
    text: str, words: Sequence[re.Match[str]], small: Sequence[str], place: int, phrase: tuple[str, ...]
) -> int | None:
    """Where a phrase at this place ends, if it is a hedge there."""
    name = " ".join(phrase)
    last = place + len(phrase) - 1
    end = words[last].end()
    before = small[place - 1] if place else ""
    if name in _DEGREES:
        has_next = last + 1 < len(words) and not text[end : words[last + 1].start()].strip()
        return end if before in _BEFORE_DEGREES and has_next else None
    if name not in _CLAUSES:
        return end
    if before in _NO_CLAUSE_BEFORE:
        return None
    left = text[: words[place].start()].rstrip()
    right = text[end:].lstrip()
    is_apart = not left or left[-1] in ",.!?;:"
    if is_apart and (not right or right[0] in ",.!?;"):
        return end
    if last + 1 >= len(words) or text[end : words[last + 1].start()].strip():
        return None
    following = small[last + 1]
    if following == "that" and last + 2 < len(words) and small[last + 2] in _BEGIN_CLAUSE:
        return words[last + 1].end()
    # "It seems a nice dog" says what it seems.
    return end if name in _THOUGHTS and following in _BEGIN_CLAUSE else None


def _without(text: str, hedge: Hedge) -> str:
    was_large = text[hedge.start].isupper()
    left = text[: hedge.start].rstrip()
    right = text[hedge.end :].lstrip()
    begins = not left or left[-1] in _ENDS
    has_comma = right.startswith(",")
    if has_comma and (begins or left[-1] in ",;:"):
        right = right[1:].lstrip()
    if left.endswith(",") and (has_comma or not right or right[0] in ".!?;:"):
        left = left[:-1].rstrip()
    if begins and was_large:
        right = right[:1].upper() + right[1:]
    between = " " if left and right and right[0] not in ".,!?;:" else ""
    return f"{left}{between}{right}"
