"""English words by how often they are used, from the package wordfreq, which carries its data.

Only words of the letters a to z count (so no numbers, no "don't", no "new york"); wordfreq writes all of them small.
Their order is wordfreq's: by frequency, which it rounds to steps of 2.3 %, and within a step as its list has them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from types import MappingProxyType

from agents.errors import UnavailableError

PACKAGE = "wordfreq"
_WORD = re.compile("[a-z]+")


def most_frequent(count: int) -> tuple[str, ...]:
    """The ``count`` most frequent words (all, if there are not so many), the most frequent first."""
    words = _words()
    return tuple(words)[:count]


def known() -> frozenset[str]:
    """All words that wordfreq has."""
    return frozenset(_words())


def rank(word: str) -> int | None:
    """The word's place, 0 for the most frequent; None if wordfreq does not have it."""
    found = _words().get(word)
    return None if found is None else found[0]


def zipf(word: str) -> float:
    """The decimal logarithm of how often the word stands in a thousand million words; 0 if wordfreq lacks it."""
    found = _words().get(word)
    return 0.0 if found is None else found[1]


def describe(words: Iterable[str]) -> str:
    """Which list this is: the package's version, and the hash of the words in their order."""
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    return f"{PACKAGE} {metadata.version(PACKAGE)} sha256:{digest}"


@cache
def _words() -> Mapping[str, tuple[int, float]]:
    """(rank, zipf frequency) by word, in the order of the ranks. Raises UnavailableError without the package."""
    try:
        from wordfreq import get_frequency_list
    except ImportError as error:
        raise UnavailableError(f"English words need the package {PACKAGE}: {error}") from None
    found: dict[str, tuple[int, float]] = {}
    # One list for each step of a hundredth in the decimal logarithm, from a frequency of 1 down.
    for hundredths, words in enumerate(get_frequency_list("en", "large")):
        for word in words:
            if _WORD.fullmatch(word):
                found[word] = len(found), 9 - hundredths / 100
    return MappingProxyType(found)
