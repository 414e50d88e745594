"""Sentences of a text in any script: where they end, and where a full stop ends none. Abbreviations are English."""

import re
from collections.abc import Callable, Iterator

# A run of full stops, exclamation or question marks with the quotation marks and brackets that it closes.
_TERMINATORS = ".!?…‽؟۔।。！？．｡"
_STOP = re.compile(rf"[{re.escape(_TERMINATORS)}]+[\"'”’»)\]」』）]*")
# After these a sentence ends without a space.
_WIDE = frozenset("。！？｡")
# What must follow an abbreviation's full stop so that no sentence ends there: a name, a number, a small letter, any.
_FOLLOWED_BY: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("mr", "mrs", "ms", "dr", "prof", "st", "mt", "capt", "lt", "sgt"), str.isalpha),
    **dict.fromkeys(("no", "nos", "vol", "fig", "pp"), str.isdigit),
    **dict.fromkeys(("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"), str.isdigit),
    **dict.fromkeys(("etc", "inc", "ltd", "corp", "co", "jr", "sr"), str.islower),
    **dict.fromkeys(("eg", "ie", "e.g", "i.e", "cf", "vs", "approx"), bool),
}


def sentence_ends(text: str) -> Iterator[int]:
    """The index after each sentence, its quotation marks and brackets included. Abbreviations ("Dr.", "p.m.") and
    decimals end none."""
    for stop in _STOP.finditer(text):
        after = text[stop.end() : stop.end() + 1]
        marks = stop.group().rstrip("\"'”’»)]」』）")
        if after and not after.isspace() and marks[-1] not in _WIDE:
            continue
        if marks == "." and _is_abbreviation(text, stop.start()):
            continue
        is_small = text[stop.end() : stop.end() + 8].lstrip()[:1].islower()
        if set(marks) <= {".", "…"} and marks != "." and is_small:
            continue
        yield stop.end()


def sentences(text: str) -> list[str]:
    """The sentences, stripped; a new line ends a sentence, too."""
    parts: list[str] = []
    for line in text.splitlines():
        start = 0
        for end in [*sentence_ends(line), len(line)]:
            if sentence := line[start:end].strip():
                parts.append(sentence)
            start = end
    return parts


def _is_abbreviation(text: str, stop: int) -> bool:
    start = stop
    while start > 0 and stop - start < 12 and (text[start - 1].isalpha() or text[start - 1] == "."):
        start -= 1
    word = text[start:stop]
    following = text[stop + 1 : stop + 9].lstrip()[:1]
    if len(word) == 1 and (word == "I" or not word.isupper()):
        return False
    may_follow = _FOLLOWED_BY.get(word.casefold())
    if may_follow is None and all(len(letter) == 1 for letter in word.split(".")):
        # Initials are capitals and a name follows; "p.m." is in small letters and may end a sentence.
        return following != "" and (word.isupper() or following.islower())
    return may_follow is not None and may_follow(following)
