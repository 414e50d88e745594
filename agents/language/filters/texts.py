"""Words and sentences of messages as people type them: no case, sparing punctuation, any script.

All of it is linear in the length of the text and takes any string, lone surrogates included.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

# Chinese and Japanese are written without spaces: each of their characters counts as a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+(?:(?:['’\-]|(?<=\d)[.,:](?=\d))[^\W_{_IDEOGRAPHS}]+)*")

# A run of full stops, exclamation or question marks with the quotation marks and brackets that it closes.
_TERMINATORS = ".!?…‽؟۔।。！？．｡"
_STOP = re.compile(rf"[{re.escape(_TERMINATORS)}]+[\"'”’»)\]」』）]*")
# After these a sentence ends without a space.
_WIDE = frozenset("。！？｡")
# What must follow the full stop for it to be no end: a name, a number, a small letter, anything at all.
_BEFORE_NAMES = frozenset(("mr", "mrs", "ms", "dr", "prof", "st", "mt", "capt", "lt", "sgt"))
_BEFORE_NUMBERS = frozenset(
    "no nos vol fig p pp approx jan feb mar apr jun jul aug sep sept oct nov dec".split()  # noqa: SIM905
)
_BEFORE_MORE = frozenset(("etc", "inc", "ltd", "corp", "co", "jr", "sr", "approx"))
_BEFORE_ANYTHING = frozenset(("eg", "ie", "e.g", "i.e", "cf", "vs"))
_QUOTED = 60


def words(text: str) -> list[str]:
    """The words of a text, so that they compare whatever the case and the form of their characters."""
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))


def key(text: str) -> str:
    """What two texts that say the same have in common: their words, or where there is none, their other characters."""
    return " ".join(words(text)) or " ".join(text.split())


def sentence_ends(text: str) -> Iterator[int]:
    """Where a sentence ends in ``text`` with a full stop, exclamation or question mark: the index after the mark and
    the quotation marks and brackets that it closes.

    Not after an abbreviation or an initial ("Dr.", "e.g.", "J.D. Salinger"), within a number or an address ("3.14"),
    nor after dots that a small letter follows ("Well... my son").
    """
    for stop in _STOP.finditer(text):
        after = text[stop.end() : stop.end() + 1]
        marks = stop.group().rstrip("\"'”’»)]」』）")
        if after and not after.isspace() and marks[-1] not in _WIDE:
            continue
        if marks == "." and _is_abbreviation(text, stop.start()):
            continue
        if set(marks) <= {".", "…"} and marks != "." and _goes_on(text, stop.end()):
            continue
        yield stop.end()


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the spaces around them; a new line begins one too."""
    found: list[str] = []
    for line in text.splitlines():
        start = 0
        for end in [*sentence_ends(line), len(line)]:
            if sentence := line[start:end].strip():
                found.append(sentence)
            start = end
    return found


def labels(text: str, names: Collection[str]) -> list[str]:
    """Those of ``names`` that stand as a speaker's label ("Alice:") at the start of a line or of a sentence, in the
    order in which they stand there. Case does not count, and asterisks around a label are looked through."""
    spelt = {name.casefold().strip(): name for name in names if name.strip()}
    if not spelt:
        return []
    either = "|".join(re.escape(name) for name in sorted(spelt, key=len, reverse=True))
    label = re.compile(rf"[*_\"“>\[(]{{0,3}}({either})[*_\])]{{0,3}}\s{{0,2}}[:：]", re.IGNORECASE)
    return [
        spelt.get(match.group(1).casefold(), match.group(1))
        for sentence in sentences(text)
        if (match := label.match(sentence)) is not None
    ]


def quoted(text: str) -> str:
    """The beginning of a text, on one line and in quotation marks, to be shown as what was found."""
    line = " ".join(text[: 4 * _QUOTED].split())
    return f"“{line}”" if len(line) <= _QUOTED and len(text) <= 4 * _QUOTED else f"“{line[:_QUOTED].rstrip()}…”"


def _is_abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to the word before it."""
    start = stop
    while start > 0 and stop - start < 12 and (text[start - 1].isalpha() or text[start - 1] == "."):
        start -= 1
    word = text[start:stop]
    following = text[stop + 1 : stop + 9].lstrip()[:1]
    if len(word) == 1 and (word == "I" or not word.isupper()):
        return False
    lower = word.casefold()
    if lower not in _BEFORE_ANYTHING and all(len(letter) == 1 for letter in word.split(".")):
        # Initials are capitals and a name follows; "p.m." is in small letters and may end a sentence.
        return following != "" and (word.isupper() or following.islower())
    return (
        (lower in _BEFORE_NAMES and following.isalpha())
        or (lower in _BEFORE_NUMBERS and following.isdigit())
        or (lower in _BEFORE_MORE and following.islower())
        or (lower in _BEFORE_ANYTHING and following != "")
    )


def _goes_on(text: str, index: int) -> bool:
    """Whether a small letter is the next thing in the text."""
    return text[index : index + 8].lstrip()[:1].islower()
