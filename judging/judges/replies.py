"""Verdicts read from the replies of language models; what cannot be read is no verdict."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from agents.answers import VerdictAnswer
from agents.language.words.replies import is_apology

VerdictWord = Literal["human", "machine"]

READ = 20_000  # characters of a reply, the last, that are read
_QUOTES = r"[\"'‘“*_`\s]*"
# Not "human or machine", which is no choice, and not "human-like".
_CHOICE = r"(?![-\w])(?![\"'’”*_`\s]*(?:(?i:or)\b|/|\|))"
_WORD = rf"{_QUOTES}((?i:human|machine|AI-generated|AI)){_CHOICE}"
_IS = r"(?i:\s+(?:most\s+)?(?:likely|probably))?(?:\s+an?\b)?"
_STARTS = r"(?:^|[.!?]\s)[\W_]*"
_MY = r"(?:(?:my|the|final|human or (?:a )?machine)\s+)*"
_OF = r"(?i:\s+(?:of|for)\s+(?:(?:the|this)\s+(?:answer|word)|[\"'‘“][^\"'’”\n]{1,60}[\"'’”]))?"
_COLON = rf"{_QUOTES}(?:is\b:?|[:=–—-])"
_THAT = r"(?i:\s+that\s+(?:the\s+answer|it|this)\s+(?:is|was)(?:\s+(?:written|given|made|generated)\s+by|\s+from)?)?"
_VERDICT = re.compile(
    rf"(?:\"(?i:verdict)\"|{_STARTS}(?i:{_MY}(?:verdict|classification)\b){_OF}){_COLON}{_THAT}{_IS}{_WORD}",
    re.MULTILINE,
)
# The answer is what our prompt calls the thing that is judged ("The answer: tub"), too.
_ENDS = r"(?=[\"'’”*_`\s]*(?:$|[.,;!\n]))"
_ANSWER = re.compile(
    rf"{_STARTS}(?i:{_MY}answer\b(?:\s+to\s+(?:this|the|your)\s+question)?){_COLON}{_IS}{_WORD}{_ENDS}", re.MULTILINE
)
_COPIED = re.compile(rf"{_STARTS}(?i:(?:the\s+)?answer){_QUOTES}[:=–—-]", re.MULTILINE)
_NAMED = re.compile(r"\b(?:humans?|machines?|AI|AI-generated)\b", re.IGNORECASE)
_PLACEHOLDER = "your reasons"
_NUMBERED = rf"{_QUOTES}(?:(?i:the\s+)?(?i:conversation)\s+(?:#|(?i:number)\s+)?)?{_QUOTES}([12])(?![\d.]*\d){_CHOICE}"
_PLACED = re.compile(
    rf"(?:\"(?i:verdict)\"|{_STARTS}(?i:{_MY}(?:verdict|answer|classification)\b)){_COLON}{_NUMBERED}", re.MULTILINE
)
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


def read_verdict(text: str, *, judged: str | None = None, cut: bool = False) -> VerdictAnswer | None:
    """The last JSON object's verdict, or unless ``cut`` the last in words, or the only word. Where ``judged`` is None,
    or names a human or a machine, "the answer is human" is no verdict."""
    text = text[-READ:]
    is_named = _NAMED.search(judged or "") is not None
    matches = list(_VERDICT.finditer(text))
    if is_named:
        matches = [match for match in matches if "answer" not in match[0].lower()]
    else:
        answers = _ANSWER.finditer(text)
        matches += [match for match in answers if judged is not None or not _COPIED.match(match[0])]
    words = [match[1] for match in sorted(matches, key=lambda match: match.start(1))]
    begins_so = is_named and _NAMED.match((judged or "").lstrip(" \"'").removeprefix("A "))
    return _read(text, words, None if begins_so else _BARE.fullmatch(text), _BARE, cut)


def read_pair(text: str, *, cut: bool = False) -> VerdictAnswer | None:
    """The verdict on a pair; 1, the machine speaks in the first, is ``machine``."""
    text = text[-READ:]
    return _read(text, _PLACED.findall(text), _PLACE.fullmatch(text), _PLACE, cut)


def _read(
    text: str, words: Sequence[str], alone: re.Match[str] | None, bare: re.Pattern[str], cut: bool
) -> VerdictAnswer | None:
    for fields in _objects(text):
        if "verdict" not in fields:
            continue
        word = bare.fullmatch(str(fields["verdict"]))
        reason = fields.get("reason")
        if word is None:
            return None
        is_reason = isinstance(reason, str) and reason and reason.strip(" .…").casefold() != _PLACEHOLDER
        return VerdictAnswer(verdict=_verdict(word[1]), reason=reason if is_reason else None)
    last = words[-1] if words else alone[1] if alone else None
    return None if cut or last is None else VerdictAnswer(verdict=_verdict(last))


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for start in reversed([match.start() for match in re.finditer(r"\{", text)]):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield {name.lower(): field for name, field in value.items()}


def read_summary(text: str, count: int, *, any_case: bool = False) -> list[VerdictWord] | None:
    """The verdicts on ``count`` items in the papers' "Summary of Classifications"; None unless each has exactly one."""
    headings = list(_SUMMARY.finditer(text))
    part = _BOTH.sub("", text[headings[-1].end() :][:READ]) if headings else ""
    labels = list(re.finditer(_LABELS, part, re.IGNORECASE if any_case else 0))
    if not labels:
        return None
    starts = [label.start() for label in labels]
    ends = [label.end() for label in labels]
    verdicts = [_verdict(label[1]) for label in labels]
    after = [part[end:start] for end, start in zip(ends, [*starts[1:], len(part)], strict=True)]
    if len(labels) <= 2 and all(map(_GROUP.fullmatch, after)):
        items = [
            (int(item), verdict)
            for verdict, group in zip(verdicts, after, strict=True)
            for item in re.findall(r"\d+", group)
        ]
    else:
        before = [_NUMBER.search(part[end:start]) for end, start in zip([0, *ends[:-1]], starts, strict=True)]
        if len(labels) == count and not any(before):
            return verdicts
        items = [(int(item[1]), verdict) for item, verdict in zip(before, verdicts, strict=True) if item]
        if len(items) != len(labels):
            return None
    items.sort()
    is_complete = [item for item, _ in items] == list(range(1, count + 1))
    return [verdict for _, verdict in items] if is_complete else None


def read_answer(text: str, *, any_case: bool = False) -> VerdictWord | None:
    """The verdict after the papers' "Answer:", or that is all of the first line; best before the justification."""
    flags = re.IGNORECASE if any_case else 0
    for part in (re.split("Justification", text, maxsplit=1, flags=flags)[0], text):
        words = re.findall(rf"\bAnswer\b{_QUOTES}(?:is\b|[:=–—-])?{_QUOTES}{_LABELS}{_CHOICE}", part[-READ:], flags)
        first = re.fullmatch(rf"[\W_]*{_LABELS}[\W_]*", part.strip().partition("\n")[0], flags)
        if words:
            return _verdict(words[-1])
        if first:
            return _verdict(first[1])
    return None


def read_identity(text: str, speaker: Literal["A", "B"]) -> VerdictWord | None:
    """Whom a reply takes the speaker for ("A: human, B: AI")."""
    words = _SPEAKERS[speaker].findall(text[-READ:])
    return _verdict(words[-1]) if words else None


def why_none(text: str, finish: str) -> Literal["refused", "unparsed"]:
    """An apology, silence or withheld words are refused."""
    refused = finish == "filtered" or is_apology(text) or (not text.strip() and finish != "length")
    return "refused" if refused else "unparsed"


def _verdict(word: str) -> VerdictWord:
    return "human" if word.lower() in ("human", "2") else "machine"
