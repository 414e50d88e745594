"""WhatsApp's export of a chat: a text in the form of an Android or an iOS phone. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way
    2023년 12월 31일 오후 9:05, Ann : on my way

A message goes on in the lines that do not begin so. Numbers may be of any script; years are of the Gregorian or the
Buddhist calendar. A date or time that cannot be read for sure is a problem of its line: nothing is guessed.

The messenger's words, in place of a message or behind it, are known (``whatsapp_words.json``) or have an unseen mark.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from agents.errors import InputError, Problem
from serving.histories.chat import EMPTY, NOTICES, UNSEEN, Chat, ChatMessage, same_name

Order = Literal["dmy", "mdy", "ymd"]

WORDS = Path(__file__).parent / "whatsapp_words.json"
FIRST_YEAR = 2009  # of WhatsApp
BUDDHIST = 543
MARK = "\u200e"  # stands before what the messenger writes, and before a mention
BLANK = UNSEEN + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
AROUND = f"{BLANK}~"  # a name
QUOTES = '"“”„«»「」『』״'
FIRST = 3  # entries, among which the notice of encryption stands
LONGEST_NAME = 100
LONGEST_NOTICE = 80

_ANY_HOUR = range(24)
_FILE = re.compile(r"\.\w{2,5}$")
_PHONES_FILE = re.compile(r"[A-Z]{3,5}-\d{8}-WA\d{4}|\d{6,8}-[A-Z]{3,9}-\d{4}-")  # as Android or iOS names it

# No part repeats without a limit, so that a line takes a time that its length does not change.
_U = rf"[{UNSEEN}]{{0,4}}"
_S = rf"[\s{UNSEEN}]{{0,4}}"
_BESIDE = r"[^\d\[\]<>@/\n–—-]{%s,24}?"
_MARKS = rf"(?P<mark>[./年년-]){_S}(?P<b>\d{{1,2}}){_S}(?:(?P=mark)|月|월)"
_DATE = rf"(?P<a>\d{{1,4}}){_S}{_MARKS}{_S}(?P<c>\d{{1,4}}){_U}[.日일]?"
_TIME = r"(?P<hour>\d{1,2})\s?[:.٫h]\s?(?P<minute>\d\d)(?:[:.٫](?P<second>\d\d))?(?!\d)"
_END = rf"{_S}(?P<end>\]|\s{_U}[-–—]|:|,){_U}\s(?P<rest>.*)"
_DATE_FIRST = re.compile(rf"{_U}(?P<bracket>\[)?{_U}{_DATE}(?P<gap>{_BESIDE % 1}){_TIME}(?P<after>{_BESIDE % 0}){_END}")
_TIME_FIRST = re.compile(rf"{_U}(?P<bracket>\[)?{_U}{_TIME}(?P<gap>{_BESIDE % 1}){_DATE}(?P<after>{_BESIDE % 0}){_END}")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A date and time as written, and the words beside them. ``form`` is the same in all lines of a phone."""

    date: tuple[str, str, str]
    mark: str
    clock: tuple[int, int, int]
    words: tuple[str, ...]
    form: tuple[object, ...]
    rest: str


@dataclass(slots=True)
class _Entry:
    """The lines under one stamp; ``name`` is None in a notice."""

    line: int
    stamp: Stamp
    lines: list[str]
    name: str | None = None
    text: str = ""


def is_whatsapp(text: str) -> bool:
    """Whether any of the first lines begins as a message of such an export does."""
    return any(_read_stamp(line) for line in text.split("\n", 20)[:20])


def read_whatsapp(text: str, path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The messages in ``text``, the content of ``path``. A name ends at the first colon, but for that of ``person``.

    Raises InputError where there is no ``order`` and the dates do not show whether days or months stand first.
    """
    chat = Chat()
    lines = text.replace("\r\n", "\n").split("\n")
    stamps = {number: stamp for number, line in enumerate(lines, 1) if (stamp := _read_stamp(line)) is not None}
    form = Counter(stamp.form for stamp in stamps.values()).most_common(1)[0][0]
    entries: list[_Entry] = []
    for number, line in enumerate(lines, 1):
        stamp = stamps.get(number)
        if stamp is not None and stamp.form == form:  # of another form it is a quotation in a message
            entries.append(_Entry(number, stamp, [stamp.rest]))
        elif entries:
            entries[-1].lines.append(line)
        elif line.strip(BLANK):
            chat.problems.append(Problem(str(path), number, None, "stands before the first message"))
    order = order or _order([entry.stamp for entry in entries], path)
    for entry in entries:
        entry.name, entry.text = _name_and_text(entry.lines, same_name(person))
    _take_names_off_groups(entries, same_name(person))
    for entry in entries:
        try:
            at = datetime.combine(_date(entry.stamp, order), time(_hour(entry.stamp), *entry.stamp.clock[1:]))
        except ValueError as error:
            chat.problems.append(Problem(str(path), entry.line, None, f"has a date or time that is none: {error}"))
        else:
            _add(chat, entry, at)
    return chat


# Dates and times.


def _read_stamp(line: str) -> Stamp | None:
    head = _DATE_FIRST.match(line) or _TIME_FIRST.match(line)
    if head is None:
        return None
    date_first = head.start("a") < head.start("hour")
    end = head["end"].strip(f"{UNSEEN} \u00a0\u202f")
    if (head["bracket"] is not None) != (end == "]") or (end == "," and not (head["mark"] in ".년" and date_first)):
        return None
    gap, after = (_known_or_apart(head[part]) for part in ("gap", "after"))
    return Stamp(
        (head["a"], head["b"], head["c"]),
        head["mark"],
        (int(head["hour"]), int(head["minute"]), int(head["second"] or 0)),
        (*gap, *after),
        (end, head["mark"], date_first, bool(gap), bool(after)),
        head["rest"],
    )


@lru_cache(1000)
def _known_or_apart(text: str) -> tuple[str, ...]:
    """The words in ``text`` without dots and spaces: joined where that is known, each alone where not."""
    joined = _compact(text)
    if not joined or joined in _hours():
        return (joined,) if joined else ()
    return tuple(word for part in re.split(r"[\s,،]", text) if (word := _compact(part)))


def _compact(text: str) -> str:
    return "".join(
        letter
        for letter in unicodedata.normalize("NFC", text).casefold()
        if letter not in UNSEEN and not letter.isspace() and letter not in ".,،'’\u200c"
    )


@cache
def _hours() -> dict[str, range]:
    """The hours of the day that each known word beside a time can mean."""
    spans: dict[str, range] = {_compact(word): _ANY_HOUR for word in _table()["beside"]}
    for span, words in _table()["hours"].items():
        first, end = map(int, span.split("-"))
        spans |= {_compact(word): range(first, end) for word in words}
    return spans


def _date(stamp: Stamp, order: Order) -> date:
    first, second, third = map(int, stamp.date)
    if order == "ymd" or len(stamp.date[0]) > 2:
        year, month, day, digits = first, second, third, len(stamp.date[0])
    else:
        year, digits = third, len(stamp.date[2])
        day, month = (first, second) if order == "dmy" else (second, first)
    for shift in (0, BUDDHIST):
        century = 0 if digits > 2 else 2500 if shift else 2000
        gregorian = century + year - shift
        if FIRST_YEAR <= gregorian <= datetime.now().year + 1:
            return date(gregorian, month, day)
    raise ValueError(f"the year {year} is none of WhatsApp's in the Gregorian or the Buddhist calendar")


def _hour(stamp: Stamp) -> int:
    hour = stamp.clock[0]
    spans = []
    for word in stamp.words:
        span = _hours().get(word)
        if span is None:
            raise ValueError(f'which half of the day "{word}" beside the time means is not known')
        if span != _ANY_HOUR:
            spans.append(span)
    if not spans:
        return hour
    hours = [value for value in (hour % 12, hour % 12 + 12) if all(value in span for span in spans)]
    if hour > 12 or len(hours) != 1:
        raise ValueError(f"no hour {hour} of {' '.join(stamp.words)}")
    return hours[0]


def _order(stamps: Sequence[Stamp], path: Path) -> Order:
    """The order of days, months and years that fits the most dates and goes back least in time."""
    dates = [stamp for stamp in stamps if len(stamp.date[0]) < 3]
    if not dates:
        return "ymd"
    orders: tuple[Order, ...] = ("dmy", "ymd") if dates[0].mark == "." else ("dmy", "mdy", "ymd")
    misfits = {order: _misfit(dates, order) for order in orders}
    best = [order for order in orders if misfits[order] == min(misfits.values())]
    if best[1:] == ["ymd"]:  # two digits of a year seldom stand first
        best.pop()
    if len(best) != 1:
        raise InputError(f"{path}: its dates may be day/month or month/day; say which they are with --dates")
    return best[0]


def _misfit(stamps: Sequence[Stamp], order: Order) -> tuple[int, int]:
    """How many dates are none in this order, and how often they go back in time."""
    days = []
    for stamp in stamps:
        try:
            days.append(_date(stamp, order))
        except ValueError:
            continue
    return len(stamps) - len(days), sum(second < first for first, second in pairwise(days))


# Names and texts.


def _name_and_text(lines: Sequence[str], person: str) -> tuple[str | None, str]:
    """A notice has no name, even if a quotation in it has a colon."""
    entry = "\n".join(lines).rstrip()
    places = [place.start() for place in re.finditer(r":(?=\s|$)", entry[: LONGEST_NAME + 2])]
    names = [same_name(entry[:place].strip(AROUND)) for place in places if "\n" not in entry[:place]]
    if not names:
        return None, entry
    number = names.index(person) if person in names else 0
    in_name, in_line = (sum(text.count(mark) for mark in QUOTES) for text in (names[number], lines[0]))
    if names[number] != person and in_name % 2 and not in_line % 2:
        return None, entry
    return names[number], entry[places[number] + 1 :].removeprefix(" ")


def _take_names_off_groups(entries: Sequence[_Entry], person: str) -> None:
    """iOS puts a group's name before notices, as if it spoke: of the encryption, and of what somebody did to it."""
    speakers = {entry.name for entry in entries if entry.name is not None}
    for notice in [entry for entry in entries[:FIRST] if entry.name is not None and _is_of_encryption(entry.text)]:
        group = notice.name or ""
        acts = [entry for entry in entries if entry.name is not None and _acts_on(entry, group)]
        if group != person and (acts or len(speakers) > 2):
            for entry in [*acts, *(entry for entry in entries if entry.name == group)]:
                entry.name = None
        notice.name = None


def _is_of_encryption(text: str) -> bool:
    plain = _plain(text).lower()
    return any(all(part in plain for part in parts.split("+")) for parts in _table()["encrypted"])


def _acts_on(entry: _Entry, group: str) -> bool:
    text = entry.text.lstrip(AROUND)
    return text.startswith(f"{entry.name} ") and any(f"{mark}{group}" in text for mark in QUOTES)


def _add(chat: Chat, entry: _Entry, at: datetime) -> None:
    if entry.name is None:
        chat.dropped[NOTICES] += 1
        return
    text, kind = _persons_words(entry.text.strip("\n"))
    text = text.strip(BLANK)
    if kind or not text:
        chat.dropped[kind or EMPTY] += 1
    if text:
        chat.messages.append(ChatMessage(entry.name, at, text))


def _persons_words(text: str) -> tuple[str, str | None]:
    """A person's words in a text, and what else is there, if that is more than the mark of an edited message."""
    if _plain(text).lower() in _table()["deleted"]:
        return "", None
    first, _, rest = text.partition("\n")
    file, bracket, words = first.rstrip(AROUND).rpartition(" (")
    is_phones = file.startswith(MARK) or _PHONES_FILE.match(file)
    if bracket and _FILE.search(file) and (is_phones or _plain(words[:-1]).lower() in _table()["attached"]):
        return rest, NOTICES
    for part, after in ((first, rest), (text, "")):
        before, words = _tail(part)
        if _is_messengers(before, words):
            is_document = not before.strip(BLANK) and "\n" not in after and _FILE.search(after)
            kind = None if words.lower() in _table()["edited"] else NOTICES
            return (before if is_document else f"{before}\n{after}"), kind
    if text.startswith(MARK) and not text.lstrip(UNSEEN).startswith("@"):
        return "", NOTICES
    return text, None


def _tail(text: str) -> tuple[str, str]:
    """The words in ``<>`` or behind an unseen mark that a text ends with, after the text before them."""
    text = text.rstrip(BLANK)
    place = text.rfind("<", -LONGEST_NOTICE - 2)
    if place >= 0 and text.endswith(">") and "\n" not in text[place:] and ">" not in text[place:-1]:
        return text[:place], _plain(text[place + 1 : -1])
    before, _, words = text.rpartition(MARK)
    if before[-1:].isspace() and not words.startswith("@"):
        return before, _plain(words)
    return text, ""


def _is_messengers(before: str, words: str) -> bool:
    if words.lower() in _table()["omitted"] + _table()["edited"]:
        return True
    is_apart = not before[-1:].strip(BLANK)
    return is_apart and (before.endswith(MARK) or bool(_PHONES_FILE.search(words) and _FILE.search(words)))


def _plain(text: str) -> str:
    return same_name(text).strip(" .。")


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(WORDS.read_text("utf-8"))
    return table
