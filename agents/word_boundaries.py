"""Words of a text in any script, by Unicode's rules (UAX 29, section 4), with choices that the rules leave open.

A letter and what is written over, under or behind it belong together: Hindi's vowel signs, Arabic's vowel marks, an
accent that stands as a character of its own, joiners. Where a letter is all that counts, as in Python's ``\\w``,
"हिंदी" is several words.

The choices, which keep English as it was counted:

- hyphens and apostrophes join any two words, "well-known", "don't", "80's" (Unicode: apostrophes between letters);
- full stops, commas and colons join digits alone, "3.5", "1,000", "5:30" (Unicode: full stops join letters, too, as in
  "end.Start" without a space, and colons nothing);
- semicolons and underscores join nothing.

Chinese, and Japanese in Han and Hiragana, have no spaces: by Unicode's rules each character is a word, and a run of
Katakana is one. Thai, Lao, Khmer and Burmese have none either; their words would take a dictionary, so that what stands
between two spaces is a word.
"""

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

# Of ASCII all rules come to this, which is four times as fast.
_PART = re.compile(r"\S+")
_ASCII_WORD = re.compile(r"[^\W_]+(?:(?:['\-]|(?<=\d)[.,:](?=\d))[^\W_]+)*", re.ASCII)


def words(text: str) -> list[str]:
    """A text's words, without case, variants of characters (NFKC) and kinds of apostrophes. What has neither a letter
    nor a digit is none."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    pattern = _ASCII_WORD if plain.isascii() else _any_word()
    found: list[str] = pattern.findall(plain)
    return found


def count_words(text: str) -> int:
    """How many words a text has where words are what stands between spaces, as the papers' programs count them: with
    dashes and emoji that stand alone, and "and/or" as one. Chinese and Japanese count as in :func:`words`; between
    spaces there would be a sentence."""
    parts = text.split()
    if text.isascii():
        return len(parts)
    return sum(max(len(words(part)), 1) if _without_spaces().search(part) else 1 for part in parts)


def counted_words(text: str) -> list[tuple[int, int]]:
    """Where each word of a text begins and ends, as places of characters, where words are those of
    :func:`count_words`. Marks belong to the word that they stand at.

    Chinese and Japanese are parted as they are written, without variants of characters (NFKC)."""
    spans = []
    for part in _PART.finditer(text):
        starts = [part.start()]
        if not part[0].isascii() and _without_spaces().search(part[0]):
            found = [part.start() + word.start() for word in _any_word().finditer(part[0])]
            starts += found[1:]
        spans += list(zip(starts, [*starts[1:], part.end()], strict=True))
    return spans


@cache
def _any_word() -> "regex.Pattern[str]":
    """The rules WB4 to WB13 by each character's property Word_Break. The flag WORD of ``regex``, by which ``\\b`` is a
    boundary of words, would say the same in fewer signs. But up to version 2026.11.15 it sees no boundary in a text
    that begins with a sign without width."""
    import regex

    over = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*"  # what belongs to the character before it
    letter = r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}]"
    either = r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}\p{WB=Numeric}]"
    joins = "|".join(
        [
            rf"['’\-‐‑]{over}(?={either})",
            rf"(?<=\p{{WB=Numeric}}{over})[.,:[\p{{WB=MidNum}}--[;]]]{over}(?=\p{{WB=Numeric}})",
            rf"(?<={letter}{over})[\p{{WB=MidLetter}}--[:]]{over}(?={letter})",
            rf"(?<=\p{{WB=Hebrew_Letter}}{over})\"{over}(?=\p{{WB=Hebrew_Letter}})",
        ]
    )
    kinds = [
        rf"{either}{over}(?:{either}{over}|{joins})*",
        rf"(?:\p{{WB=Katakana}}{over})+",
        r"[\p{L}&&\p{LB=SA}]\p{LB=SA}*",  # Thai and others that a dictionary would part
        rf"[\p{{L}}\p{{N}}]{over}",
    ]
    return regex.compile("|".join(kinds), regex.V1)


@cache
def _without_spaces() -> "regex.Pattern[str]":
    import regex

    return regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]", regex.V1)
