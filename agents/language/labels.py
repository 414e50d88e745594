"""Labels that a model sets before a message ("Karen:", "B:", "1:"), as its prompt shows messages in that form, and
quotation marks around the whole of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

SIDES = ("A", "B")
_BEFORE = r"[\s*_>\[(#\"“'‘`-]{0,6}"
_AFTER = r"[*_\])\"”'’`]{0,3}\s{0,2}[:：][*_]{0,3}"
# Not "12:30", and no emoticon: ":D", ":p", "D:".
_NOBODY = re.compile(rf"{_BEFORE}(?:([A-Za-z]|\d{{1,2}}){_AFTER}(?!\d)(?![)(/|3])|[:：]\s*(?=[^\W\d_]{{2}}))\s*")
_QUOTES = {'"': '"', "“": "”", "”": "”", "«": "»", "„": "“", "‘": "’", "「": "」"}
MOST = 3  # labels in a row


class Label(NamedTuple):
    """A label at the beginning of a text: whose it is, how it is written, and where it ends."""

    whose: Literal["own", "other", "nobody"]
    written: str
    end: int


def called(name: str, side: str | None = None) -> set[str]:
    """What a speaker may be called in a label: the ``name``, its first word and letter, and the letter of the side."""
    words = name.split()
    return {name, side or name, *words[:1], *(word[:1].upper() for word in words[:1])}


def short_names(names: Sequence[str], speaker: str) -> tuple[set[str], set[str]]:
    """What the ``speaker`` of the two ``names``, A's and B's, may be called, and what the other."""
    sides = dict(zip(names, SIDES, strict=False))
    own = called(speaker, sides.get(speaker))
    others = [called(name, sides.get(name)) for name in names if name != speaker]
    return own, set().union(*others) - own


def leading_label(text: str, own: Collection[str], others: Collection[str]) -> Label | None:
    """The label with which ``text`` begins: a name of the speaker's ``own`` or the ``others``, in any case, or any
    letter, number or nothing before a colon, which is nobody's."""
    known = sorted({*own, *others}, key=len, reverse=True)
    either = "|".join(re.escape(name) for name in known if name.strip())
    match = re.match(rf"{_BEFORE}({either}){_AFTER}\s*", text, re.IGNORECASE) if either else None
    if match is not None:
        is_own = match[1].casefold() in {name.casefold() for name in own}
        return Label("own" if is_own else "other", match[0].strip(), match.end())
    match = _NOBODY.match(text)
    if match is None or (match[1] in ("D", "d") and (match[0][-1].isspace() or match.end() == len(text))):
        return None
    return Label("nobody", match[0].strip(), match.end())


def without_label(text: str, own: Collection[str], others: Collection[str], *, whose: Collection[str]) -> str:
    """``text`` without the labels at its beginning that are of ``whose``, and without quotation marks around the whole
    of what follows."""
    for _ in range(MOST):
        label = leading_label(text, own, others)
        if label is None or label.whose not in whose:
            break
        text = text[label.end :]
    closing = _QUOTES.get(text[:1])
    within = text[1:-1]
    is_quoted = closing is not None and len(text) > 1 and text[-1] == closing and not {text[0], closing} & set(within)
    return within.strip() if is_quoted else text


def may_change(text: str) -> bool:
    """Whether the beginning of a ``text`` that is still being generated may turn out to be a label or a quotation."""
    return text.lstrip(" *_")[:1] in _QUOTES or re.fullmatch(r"[\W_]*\w*[\W_]*", text) is not None
