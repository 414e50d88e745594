"""The words of other languages for the eleven colours: what they mean, and whether answers are in such a language.

Agents answer in English. Where people answer "rouge", a judge who looks at the language alone knows them all.
"""

import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agents.answers import COLORS

ALSO_ENGLISH = frozenset({*COLORS, "rose", "mauve", "violet", "cafe"})
"""Words that say nothing about the language of an answer."""
LEAST = 0.1
"""The share of answers in another language from which on a reader is told."""
OTHER = "other"
"""Stands for a language that nobody knows, where answers are not English."""

_TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("color_words.toml").read_text("utf-8")
)
COLOR_LANGUAGES: Mapping[str, str] = {code: table["name"] for code, table in _TABLES.items()}
"""The languages by their codes: ``{"fr": "French"}``."""


def english_color(word: str, language: str) -> str | None:
    """The one of the eleven colours that ``word`` means in ``language`` (a key of ``COLOR_LANGUAGES``); None where it
    is none of them."""
    return _meanings(language).get(_plain(word))


def language_of_colors(numbers: Mapping[str, int]) -> str | None:
    """The code of the language that a tenth of some answers at least are in, by the words for colours; None
    where they are English, or no such words at all.

    ``numbers`` says how often each answer was given. Of several languages the one with most answers is taken.
    """
    found = {}
    for code in COLOR_LANGUAGES:
        found[code] = sum(
            number
            for word, number in numbers.items()
            if _plain(word) not in ALSO_ENGLISH and english_color(word, code) is not None
        )
    best = max(found, key=lambda code: found[code])
    return best if found[best] > 0 and found[best] >= LEAST * sum(numbers.values()) else None


@cache
def _meanings(language: str) -> Mapping[str, str]:
    table = _TABLES[language]
    return {_plain(word): color for color in COLORS for word in table[color]}


@cache
def _plain(word: str) -> str:
    parts = unicodedata.normalize("NFKD", " ".join(word.split()).casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))
