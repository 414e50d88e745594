"""Verdicts read from what language models say; pure functions of a text. What cannot be read is no verdict, and nothing
is guessed.

The authors' program counts "Human" and "AI-generated" in this case alone, and takes every single digit of a summary by
groups for an item. Here numbers may have several digits and must be those of the items, each once; with ``any_case``
"human" and "ai-generated" count, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from agents.answers import VerdictAnswer
from agents.language.words.replies import is_apology

Said = Literal["human", "machine"]

READ = 20_000  # characters of a reply, the last, that are read
_QUOTES = r"[\"'‘“*_`\s]*"
# Not "human or machine", which is no choice, and not "human-like".
_CHOICE = r"(?![-\w])(?![\"'’”*_`\s]*(?:(?i:or)\b|/|\|))"
_WORD = rf"{_QUOTES}((?i:human|machine|AI-generated|AI)){_CHOICE}"
_IS = r"(?i:\s+(?:most\s+)?(?:likely|probably))?(?:\s+an?\b)?"
_STARTS = r"(?:^|[.!?]\s)[\W_]*"
_TOLD = rf"{_QUOTES}(?:is\b:?|[:=–—-])"
_BEFORE = rf"(?:\"(?i:verdict)\"|{_STARTS}(?i:(?:(?:my|the|final)\s+)*(?:verdict|answer|classification)\b)){_TOLD}"
# The answer is what our prompt calls the thing that is judged ("The answer: tub"), too.
_THAT = r"(?i:\s+that\s+(?:the\s+answer|it|this)\s+(?:is|was)(?:\s+(?:written|given|made|generated)\s+by|\s+from)?)?"
_VERDICT = re.compile(
    rf"(?:\"(?i:verdict)\"|{_STARTS}(?i:(?:(?:my|the|final)\s+)*(?:verdict|classification)\b)){_TOLD}{_THAT}{_IS}{_WORD}",
    re.MULTILINE,
)
_ENDS = r"(?=[\"'’”*_`\s]*(?:$|[.,;!\n]))"
_ANSWER = re.compile(
    rf"{_STARTS}(?i:(?:(?:my|the|final)\s+)*answer\b(?:\s+to\s+(?:this|the|your)\s+question)?){_TOLD}{_IS}{_WORD}{_ENDS}",
    re.MULTILINE,
)
_COPIED = re.compile(rf"{_STARTS}(?i:(?:the\s+)?answer){_QUOTES}[:=–—-]", re.MULTILINE)
_NAMED = re.compile(r"\b(?:humans?|machines?|AI|AI-generated)\b", re.IGNORECASE)
_PLACEHOLDER = "your reasons"
_NUMBERED = rf"{_QUOTES}(?:(?i:the\s+)?(?i:conversation)\s+(?:#|(?i:number)\s+)?)?{_QUOTES}([12])(?![\d.]*\d){_CHOICE}"
_PLACED = re.compile(rf"{_BEFORE}{_NUMBERED}", re.MULTILINE)
_PLACE = re.compile(rf"[\W_]*{_NUMBERED}[\W_]*")
_BARE = re.compile(rf"[\W_]*{_WORD}[\W_]*")
_SPEAKERS = {
    speaker: re.compile(
        rf"(?:\b{speaker}\b[\"'*_`\s)]*(?:is\b|[:=|–—]|->?)|\bA and (?:[Aa]gent )?B are(?: both)?\b){_IS}{_WORD}"
    )
    for speaker in "AB"
}
_LABELS = r"(AI-generated|Human)"
_SUMMARY = re.compile(r"Summary of Classifications?", re.IGNORECASE)
_BOTH = re.compile(r"'?Human'? or '?AI(?:-generated)?'?|'?AI(?:-generated)?'? or '?Human'?", re.IGNORECASE)
_GROUP = re.compile(r"[\W_]*(?:\d+(?:[\W_]+(?:and[\W_]+)?\d+)*|none)[\W_]*", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])(\d+)[.):\]]")


def own(text: str, *, shown: str | None = None, cut: bool = False) -> VerdictAnswer | None:
    """The verdict of the last JSON object that has one, alone, in prose or fenced; or else the last that is told as one
    ("Verdict: human"), unless the text is ``cut``; or the one word that the text is.

    ``shown`` is the answer that is judged. Where it names a human or a machine, "the answer is human" may be the answer
    said once more, and so may the word alone: neither is a verdict then. Nor is "The answer: human", our prompt's own
    form, where it is not known what was shown.
    """
    text = text[-READ:]
    is_named = _NAMED.search(shown or "") is not None
    told = list(_VERDICT.finditer(text))
    if is_named:
        told = [match for match in told if "answer" not in match[0].lower()]
    else:
        told += [one for one in _ANSWER.finditer(text) if shown is not None or not _COPIED.match(one[0])]
    words = [match[1] for match in sorted(told, key=lambda match: match.start(1))]
    alone = (
        None if is_named and _NAMED.match((shown or "").lstrip(" \"'").removeprefix("A ")) else _BARE.fullmatch(text)
    )
    return _own(text, words, alone, _BARE, cut)


def pair(text: str, *, cut: bool = False) -> VerdictAnswer | None:
    """The same of a pair of conversations: 1 is that the machine speaks in the first, the verdict ``machine``."""
    text = text[-READ:]
    return _own(text, [match[1] for match in _PLACED.finditer(text)], _PLACE.fullmatch(text), _PLACE, cut)


def _own(
    text: str, words: Sequence[str], alone: re.Match[str] | None, bare: re.Pattern[str], cut: bool
) -> VerdictAnswer | None:
    for start in reversed([match.start() for match in re.finditer(r"\{", text)]):
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "verdict" in (fields := {name.lower(): one for name, one in found.items()}):
            return _of_fields(fields, bare)
    if cut:
        return None
    word = words[-1] if words else alone[1] if alone else None
    return None if word is None else VerdictAnswer(verdict=_said(word))


def summary(text: str, count: int, *, any_case: bool = False) -> list[Said] | None:
    """The verdicts on ``count`` items in the papers' "Summary of Classifications": a list in order or with numbers, or
    the numbers of each class. None if it has not one for each."""
    headings = list(_SUMMARY.finditer(text))
    if not headings:
        return None
    part = _BOTH.sub("", text[headings[-1].end() :][:READ])
    labels = list(re.finditer(_LABELS, part, re.IGNORECASE if any_case else 0))
    if not labels:
        return None
    starts, ends = [one.start() for one in labels], [one.end() for one in labels]
    verdicts = [_said(label[1]) for label in labels]
    after = [part[end:start] for end, start in zip(ends, [*starts[1:], len(part)], strict=True)]
    if len(labels) <= 2 and all(map(_GROUP.fullmatch, after)):
        said = [
            (int(item), one) for one, text in zip(verdicts, after, strict=True) for item in re.findall(r"\d+", text)
        ]
    else:
        before = [_NUMBER.search(part[end:start]) for end, start in zip([0, *ends[:-1]], starts, strict=True)]
        if len(labels) == count and not any(before):
            return verdicts
        said = [(int(item[1]), one) for item, one in zip(before, verdicts, strict=True) if item]
        if len(said) != len(labels):
            return None
    said.sort()
    return [one for _, one in said] if [item for item, _ in said] == list(range(1, count + 1)) else None


def answer(text: str, *, any_case: bool = False) -> Said | None:
    """The verdict after the papers' indicator word ("Answer: Human"), or that is all of the first line: the last before
    the justification, or else the last of all."""
    flags = re.IGNORECASE if any_case else 0
    for part in (re.split("Justification", text, maxsplit=1, flags=flags)[0], text):
        told = re.findall(rf"\bAnswer\b{_QUOTES}(?:is\b|[:=–—-])?{_QUOTES}{_LABELS}{_CHOICE}", part[-READ:], flags)
        first = re.fullmatch(rf"[\W_]*{_LABELS}[\W_]*", part.strip().partition("\n")[0], flags)
        if told:
            return _said(told[-1])
        if first:
            return _said(first[1])
    return None


def identity(text: str, speaker: Literal["A", "B"]) -> Said | None:
    """Whom a reply to the papers' question about a conversation says the speaker to be ("A: human, B: AI")."""
    told = _SPEAKERS[speaker].findall(text[-READ:])
    return _said(told[-1]) if told else None


def none(text: str, finish: str) -> Literal["refused", "unparsed"]:
    """Why a text without a verdict has none: the judge refused (an apology, nothing at all, or its words withheld), or
    the text cannot be read."""
    refused = finish == "filtered" or is_apology(text) or (not text.strip() and finish != "length")
    return "refused" if refused else "unparsed"


def _of_fields(fields: dict[str, Any], bare: re.Pattern[str]) -> VerdictAnswer | None:
    word, reason = bare.fullmatch(str(fields["verdict"])), fields.get("reason")
    if word is None:
        return None
    is_reason = isinstance(reason, str) and reason and reason.strip(" .…").casefold() != _PLACEHOLDER
    return VerdictAnswer(verdict=_said(word[1]), reason=reason if is_reason else None)


def _said(word: str) -> Said:
    return "human" if word.lower() in ("human", "2") else "machine"
