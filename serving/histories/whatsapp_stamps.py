"""What stands before each message of WhatsApp's export: its date and its time, as the phone's language writes them. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way
    2023년 12월 31일 오후 9:05, Ann : on my way

Numbers may be of any script; years are of the Gregorian or the Buddhist calendar. What cannot be read for sure is a
problem of its line: nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from agents.errors import InputError, Problem
from serving.histories.chat import UNSEEN
from serving.histories.whatsapp_words import BESIDE, HOURS

Order = Literal["dmy", "mdy", "ymd"]

FIRST_YEAR = 2009  # of WhatsApp
BUDDHIST = 543
_PLAIN_HOURS = (0, 24)

# No part repeats without a limit, so that a line takes a time that its length does not change.
_U = rf"[{UNSEEN}]{{0,4}}"
_S = rf"[\s{UNSEEN}]{{0,4}}"
_WORDS = r"[^\d\[\]<>@/\n–—-]{%s,24}?"
_MARKS = rf"(?P<mark>[./年년-]){_S}(?P<b>\d{{1,2}}){_S}(?:(?P=mark)|月|월)"
_DATE = rf"(?P<a>\d{{1,4}}){_S}{_MARKS}{_S}(?P<c>\d{{1,4}}){_U}[.日일]?"
_TIME = r"(?P<hour>\d{1,2})\s?[:.٫h]\s?(?P<minute>\d\d)(?:[:.٫](?P<second>\d\d))?(?!\d)"
_END = rf"{_S}(?P<end>\]|\s{_U}[-–—]|:|,){_U}\s(?P<rest>.*)"
_DATE_FIRST = re.compile(rf"{_U}(?P<bracket>\[)?{_U}{_DATE}(?P<gap>{_WORDS % 1}){_TIME}(?P<after>{_WORDS % 0}){_END}")
_TIME_FIRST = re.compile(rf"{_U}(?P<bracket>\[)?{_U}{_TIME}(?P<gap>{_WORDS % 1}){_DATE}(?P<after>{_WORDS % 0}){_END}")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A date and time as they are written, the words beside them, and the ``rest`` of the line. ``form`` is the same
    in all lines that stamp phone writes."""

    date: tuple[str, str, str]
    mark: str
    clock: tuple[int, int, int]
    words: tuple[str, ...]
    form: tuple[object, ...]
    rest: str


def read_stamp(line: str) -> Stamp | None:
    """The stamp that a line begins with, if it does."""
    head = _DATE_FIRST.match(line) or _TIME_FIRST.match(line)
    if head is None:
        return None
    end = head["end"].strip(f"{UNSEEN} \u00a0\u202f")
    date_first = head.start("a") < head.start("hour")
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


def usual_form(stamps: Sequence[Stamp]) -> tuple[object, ...]:
    """The form that most of them have: what has another is a quotation in a message."""
    return Counter(stamp.form for stamp in stamps).most_common(1)[0][0]


def times(stamps: Sequence[tuple[int, Stamp]], path: Path, order: Order | None) -> dict[int, datetime | str]:
    """By line, the time of each stamp, or what is wrong with it.

    Without an ``order`` it is what all dates of the file say. Raises InputError if they do not.
    """
    # A word that stands beside an hour from 13 on does not say which half of the day it is.
    plain = {word for _, stamp in stamps if stamp.clock[0] > 12 for word in stamp.words}
    order = order or _order(stamps, path)
    read: dict[int, datetime | str] = {}
    for line, stamp in stamps:
        try:
            read[line] = datetime(*_date(stamp, order), _hour(stamp, plain), *stamp.clock[1:])
        except ValueError as error:
            known = isinstance(error, _Unreadable)
            read[line] = str(error) if known else "has a date or time that there is not"
    return read


class _Unreadable(ValueError):
    """What is wrong with a stamp, for its reader."""


def _date(stamp: Stamp, order: Order) -> tuple[int, int, int]:
    """Year, month and day. Raises ValueError."""
    a, b, c = map(int, stamp.date)
    latest = datetime.now().year + 1
    if order == "ymd" or len(stamp.date[0]) > 2:
        year, month, day, digits = a, b, c, len(stamp.date[0])
    else:
        year, (day, month), digits = c, (a, b) if order == "dmy" else (b, a), len(stamp.date[2])
    for shift in (0, -BUDDHIST):
        century = 0 if digits > 2 else 2500 if shift else 2000
        full = century + year + shift
        if FIRST_YEAR <= full <= latest:
            datetime(full, month, day)
            return full, month, day
    raise _Unreadable(f"has the year {year}, which is none of WhatsApp's in the Gregorian or the Buddhist calendar")


def _hour(stamp: Stamp, plain: set[str]) -> int:
    """The hour of the day, by the words beside it. Raises ValueError."""
    hour = stamp.clock[0]
    spans = {_span(word) for word in stamp.words if _span(word) is not None}
    unknown = [word for word in stamp.words if _span(word) is None and word not in plain]
    if unknown:
        raise _Unreadable(f'has "{unknown[0]}" beside its time: which half of the day it means is not known')
    spans.discard(_PLAIN_HOURS)
    if not spans:
        return hour
    [(first, end), *more] = [span for span in spans if span is not None]
    hours = [value for value in (hour % 12, hour % 12 + 12) if first <= value < end]
    if more or hour > 12 or len(hours) != 1:
        raise ValueError("no such hour")
    return hours[0]


def _order(stamps: Sequence[tuple[int, Stamp]], path: Path) -> Order:
    """In which order days, months and years stand, by all dates that do not begin with four digits. Raises
    InputError if they do not say."""
    dates = [(line, stamp) for line, stamp in stamps if len(stamp.date[0]) < 3]
    if not dates:
        return "ymd"
    orders: tuple[Order, ...] = ("dmy", "ymd") if dates[0][1].mark == "." else ("dmy", "mdy", "ymd")
    back, bad = dict[Order, int](), dict[Order, list[tuple[int, str]]]()
    for order in orders:
        days, wrong = [], []
        for line, stamp in dates:
            try:
                days.append(_date(stamp, order))
            except ValueError as error:
                known = isinstance(error, _Unreadable)
                wrong.append((line, str(error) if known else "has a date that there is not"))
        if wrong:
            bad[order] = wrong
        else:
            back[order] = sum(second < first for first, second in pairwise(days))  # steps back in time
    if not back:
        if len(orders) == 2:
            return "dmy"
        nearest = min(bad.values(), key=len)
        problems = [Problem(str(path), line, None, why) for line, why in nearest]
        raise InputError(
            f"{path}: its dates fit none of day/month, month/day and year/month/day; say which they are with --dates",
            problems,
        )
    fewest = [order for order, steps in back.items() if steps == min(back.values())]
    if fewest[1:] == ["ymd"]:  # two digits of a year seldom stand first
        fewest.pop()
    if len(fewest) != 1:
        raise InputError(f"{path}: its dates fit both day/month and month/day; say which they are with --dates")
    return fewest[0]


@lru_cache(1000)
def _known_or_apart(text: str) -> tuple[str, ...]:
    """The words in ``text`` without dots and spaces: as one where that is known, each alone where not."""
    whole = _compact(text)
    if not whole or _span(whole) is not None:
        return (whole,) if whole else ()
    return tuple(word for part in re.split(r"[\s,،]", text) if (word := _compact(part)))


def _compact(text: str) -> str:
    return "".join(
        letter
        for letter in unicodedata.normalize("NFC", text).casefold()
        if letter not in UNSEEN and not letter.isspace() and letter not in ".,،'’\u200c"
    )


def _span(word: str) -> tuple[int, int] | None:
    return _spans().get(word)


@cache
def _spans() -> dict[str, tuple[int, int]]:
    """The hours that each known word can mean."""
    rows = [(span, row) for span, row in HOURS.items()] + [(_PLAIN_HOURS, BESIDE)]
    return {_compact(word): span for span, row in rows for word in row.split()}
