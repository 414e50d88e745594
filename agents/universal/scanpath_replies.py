"""How scanpaths that a language model writes are read: pure functions of a reply's text.

Models write tables and lines of CSV, lists with numbers, sentences, and JSON, which is read as a text, as it may be cut
off. Coordinates are taken as they are said, on the frame or off it, and durations in whatever unit stands beside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.language.words.replies import is_apology
from agents.universal.prompts import unparsable


@dataclass(frozen=True, slots=True)
class Fixation:
    """A place in pixels as it was said, and how long it was fixated, in milliseconds, if that was said."""

    x: float
    y: float
    duration_ms: float | None = None


# Every repetition has a limit, so that no text takes long.
_NUMBER = r"[-−]?\d{1,7}(?:\.\d{1,7})?"
_UNIT = r"\s{0,3}(?:px|pixels?)?"
_SPAN_OF = rf"({_NUMBER})\s{{0,3}}(?:(?:-|–|—|to)\s{{0,3}}({_NUMBER}))?"
_NAME = r"(?:[ _-]?(?:coord(?:inate)?|pos(?:ition)?))?[\s\"'`*=:]{1,6}"
# The ways in which two numbers are a place: named x and y, in brackets, after a word that says so, at a line's start.
_PLACES = (
    re.compile(
        rf"(?<![a-z])x{_NAME}({_NUMBER}){_UNIT}[^\w-]{{0,40}}(?:[-•]\s{{1,3}}\W{{0,4}})?y{_NAME}({_NUMBER})",
        re.IGNORECASE,
    ),
    re.compile(rf"[(\[{{<]\s{{0,3}}({_NUMBER}){_UNIT}\s{{0,3}}[,;]\s{{0,3}}({_NUMBER}){_UNIT}\s{{0,3}}[)\]}}>,;]"),
    re.compile(
        rf"\b(?:coordinates?|position|point|location|fixation|at)\b[^\d\n-]{{0,24}}({_NUMBER}){_UNIT}\s{{0,3}}[,;x×]"
        rf"\s{{0,3}}({_NUMBER})\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"^[^\w\n-]{{0,12}}(?:\d{{1,2}}\s{{0,3}}[.):]\s{{0,3}})?({_NUMBER}){_UNIT}\s{{0,3}}[,;]\s{{0,3}}({_NUMBER})\b"
        r"(?!\s{0,3}m?s\b)",
        re.MULTILINE,
    ),
)
_HEADING = re.compile(
    r"^[^\w\n({\[]{0,12}(?:fixation|point|step|no\.?|number)?[ \t]{0,3}#?[ \t]{0,3}(\d{1,3})\b",
    re.IGNORECASE | re.MULTILINE,
)
_WITH_UNIT = re.compile(rf"{_SPAN_OF}\s{{0,3}}(milliseconds?|msecs?|ms|seconds?|secs?|s)\b", re.IGNORECASE)
_AFTER_DURATION = re.compile(rf"duration\w{{0,12}}[^\d\n]{{0,20}}{_SPAN_OF}", re.IGNORECASE)
_ANY_SPAN = re.compile(_SPAN_OF)
_MOST_SECONDS = 20  # a larger number without a unit is in milliseconds
_LONGEST_NAME = 60  # of a column


def read_scanpath(text: str) -> list[Fixation]:
    """The fixations of a reply, in their order. Raises AnswerError ``unparsable``.

    It is read as a table with a column for x and one for y, and as text; where most fixations are found, that counts.
    In text each numbered entry has its first place; where nothing is numbered every place counts. A
    duration without a unit is in seconds up to 20, in milliseconds beyond; of a span it is the middle.
    """
    found = max(_in_table(text), _in_text(text), key=len)
    if len(found) < (3 if is_apology(text) else 1):
        raise unparsable(text, "fixation")
    return found


def duration_ms(text: str) -> float | None:
    """A duration as models write it, in milliseconds: "300", "0.3", "300 ms", "0.3s", "200-400 ms", "about 1 s"."""
    return _milliseconds(text, _ANY_SPAN)


def _milliseconds(text: str, without_unit: re.Pattern[str]) -> float | None:
    """The first duration that has a unit, or else what ``without_unit`` finds."""
    span = _WITH_UNIT.search(text)
    unit = None if span is None else span[3]
    span = span or without_unit.search(text)
    if span is None:
        return None
    low = _float(span[1])
    value = low if span[2] is None else (low + _float(span[2])) / 2
    if value < 0:
        return None
    in_seconds = value <= _MOST_SECONDS if unit is None else not unit.lower().startswith("m")
    return round(value * 1000 if in_seconds else value, 3)


def _float(text: str) -> float:
    return float(text.replace("−", "-"))


def _number(text: str) -> float | None:
    """The first number in a text ("640px")."""
    found = re.search(_NUMBER, text)
    return None if found is None else _float(found.group())


# tables


def _in_table(text: str) -> list[Fixation]:
    """The rows below a line whose cells name x and y, parted by bars, tabs or commas."""
    found: list[Fixation] = []
    columns: tuple[int, int, int | None] | None = None
    for line in text.splitlines():
        cells = _cells(line)
        columns = _columns(cells) or columns
        if columns is None or max(columns[:2]) >= len(cells):
            continue
        x, y = _number(cells[columns[0]]), _number(cells[columns[1]])
        if x is not None and y is not None:
            third = columns[2]
            said = cells[third] if third is not None and third < len(cells) else ""
            found.append(Fixation(x, y, duration_ms(said)))
    return found


def _cells(line: str) -> list[str]:
    parts = line.strip().strip("|") if "|" in line else line
    return [cell.strip(' *`"') for cell in re.split(r"\||\t" if "|" in line or "\t" in line else ",", parts)]


def _columns(cells: Sequence[str]) -> tuple[int, int, int | None] | None:
    """The places of x, y and the duration in a line of headings."""
    names = [re.sub(r"[^a-z]", "", re.sub(r"\(.*?\)", "", cell[:_LONGEST_NAME].lower())) for cell in cells]
    x = [place for place, name in enumerate(names) if re.fullmatch(r"x(?:coord(?:inate)?|pos(?:ition)?)?", name)]
    y = [place for place, name in enumerate(names) if re.fullmatch(r"y(?:coord(?:inate)?|pos(?:ition)?)?", name)]
    spans = [place for place, name in enumerate(names) if "duration" in name or "time" in name]
    return (x[0], y[0], spans[0] if spans else None) if x and y else None


# text


def _in_text(text: str) -> list[Fixation]:
    entries = _entries(text)
    if entries:
        return [found for entry in entries if (found := _first(entry)) is not None]
    matches = max(([*pattern.finditer(text)] for pattern in _PLACES), key=len)
    starts, ends = [match.start() for match in matches], [match.end() for match in matches]
    # In JSON what is said of a place may stand before it: after the last bracket that opens a list or ends an object.
    before = [re.split(r"[\[}]", text[end:start])[-1] for end, start in zip([0, *ends], starts, strict=False)]
    if before and "{" in before[0] and _AFTER_DURATION.search(before[0]):
        about = before
    else:
        about = [text[end:start] for end, start in zip(ends, [*starts[1:], len(text)], strict=False)]
    return [_fixation(match, said) for match, said in zip(matches, about, strict=True)]


def _entries(text: str) -> list[str]:
    """The parts of a text that begin with 1, 2, 3 and so on at the start of a line; nothing if there are no two."""
    starts: list[re.Match[str]] = []
    for match in _HEADING.finditer(text):
        if int(match[1]) == len(starts) + 1:
            starts.append(match)
    if len(starts) < 2:
        return []
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [text[match.end() : end] for match, end in zip(starts, ends, strict=True)]


def _first(entry: str) -> Fixation | None:
    place = next(filter(None, (pattern.search(entry) for pattern in _PLACES)), None)
    return place and _fixation(place, f"{entry[: place.start()]} {entry[place.end() :]}")


def _fixation(place: re.Match[str], about: str) -> Fixation:
    """The fixation of a place; ``about`` is what else is said of it."""
    return Fixation(_float(place[1]), _float(place[2]), _milliseconds(about, _AFTER_DURATION))
