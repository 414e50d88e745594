"""The dates and times with which messages of WhatsApp's exports begin. Their form depends on phone and language. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way
    2023년 12월 31일 오후 9:05, Ann : on my way

Numbers may be of any script, years Gregorian or Buddhist.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson

from agents.errors import InputError
from serving.exchange.histories.chat import UNSEEN

Order = Literal["dmy", "mdy", "ymd"]

WORDS = Path(__file__).parent / "whatsapp_words.json"
FIRST_YEAR = 2009  # of WhatsApp
BUDDHIST = 543  # years between the two calendars
BLANK = UNSEEN + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())

_ANY_HOUR = range(24)
# No part repeats without a limit, so that the time for a line does not grow with its length.
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
    """The date and time at the beginning of a line."""

    date: tuple[str, str, str]
    """Its three numbers, in the order of the line."""
    mark: str
    """What stands between them."""
    clock: tuple[int, int, int]
    """Hour, minute and second, the hour possibly of half a day."""
    beside: tuple[str, ...]
    """The words beside the time, such as "pm"."""
    form: tuple[object, ...]
    """What all stamps of one phone have in common."""


@cache
def words() -> dict[str, Any]:
    """The messenger's words in some thirty languages, by what they mean."""
    table: dict[str, Any] = orjson.loads(WORDS.read_bytes())
    return table


def read_stamp(line: str) -> tuple[Stamp, str] | None:
    """The stamp with which a line begins, and the rest of the line; None for a line without a stamp."""
    head = _DATE_FIRST.match(line) or _TIME_FIRST.match(line)
    if head is None:
        return None
    is_date_first = head.start("a") < head.start("hour")
    end = head["end"].strip(f"{UNSEEN} \u00a0\u202f")
    mark = head["mark"]
    if (head["bracket"] is not None) != (end == "]") or (end == "," and not (mark in ".년" and is_date_first)):
        return None
    gap = _words_beside(head["gap"])
    after = _words_beside(head["after"])
    clock = (int(head["hour"]), int(head["minute"]), int(head["second"] or 0))
    form = (end, mark, is_date_first, bool(gap), bool(after))
    return Stamp((head["a"], head["b"], head["c"]), mark, clock, (*gap, *after), form), head["rest"]


def moment(stamp: Stamp, order: Order) -> datetime:
    """When it was. Raises ValueError for a date or time that cannot be."""
    _, minute, second = stamp.clock
    return datetime.combine(_date(stamp, order), time(_hour(stamp), minute, second))


def order_of(stamps: Sequence[Stamp], path: Path) -> Order:
    """In which order the dates of a file have day, month and year. Raises InputError if that cannot be told."""
    stamps = [stamp for stamp in stamps if len(stamp.date[0]) < 3]
    if not stamps:
        return "ymd"
    orders: tuple[Order, ...] = ("dmy", "ymd") if stamps[0].mark == "." else ("dmy", "mdy", "ymd")
    fits = {order: sum(_is_date(stamp, order) for stamp in stamps) for order in orders}
    best = [order for order in orders if fits[order] == max(fits.values())]
    if best[1:] == ["ymd"]:  # two digits of a year seldom stand first
        best.pop()
    if len(best) != 1:
        raise InputError(f"{path}: its dates may be day/month or month/day; say which they are with --dates")
    return best[0]


def _is_date(stamp: Stamp, order: Order) -> bool:
    try:
        _date(stamp, order)
    except ValueError:
        return False
    return True


def _date(stamp: Stamp, order: Order) -> date:
    day, month, year = map(int, stamp.date)
    digits = len(stamp.date[2])
    if order == "ymd" or len(stamp.date[0]) > 2:
        year, month, day = map(int, stamp.date)
        digits = len(stamp.date[0])
    elif order == "mdy":
        month, day, year = map(int, stamp.date)
    for shift, century in ((0, 2000), (BUDDHIST, 2500)):
        gregorian = (0 if digits > 2 else century) + year - shift
        if FIRST_YEAR <= gregorian <= datetime.now().year + 1:
            return date(gregorian, month, day)
    raise ValueError(f"WhatsApp has no messages of the year {year}, in the Gregorian or the Buddhist calendar")


def _hour(stamp: Stamp) -> int:
    hour = stamp.clock[0]
    spans = []
    for word in stamp.beside:
        if word not in _hours():
            raise ValueError(f'"{word}" beside the time is an unknown word for a half of the day')
        spans.append(_hours()[word])
    if all(span == _ANY_HOUR for span in spans):
        return hour
    hours = [value for value in (hour % 12, hour % 12 + 12) if all(value in span for span in spans)]
    if hour > 12 or len(hours) != 1:
        raise ValueError(f"there is no hour {hour} {' '.join(stamp.beside)}")
    return hours[0]


@lru_cache(1000)
def _words_beside(text: str) -> tuple[str, ...]:
    """The words beside a time: as one word if it is known so, else each alone."""
    joined = _compact(text)
    if joined in _hours():
        return (joined,)
    return tuple(filter(None, map(_compact, re.split(r"[\s,،]", text))))


def _compact(text: str) -> str:
    plain = unicodedata.normalize("NFC", text).casefold()
    return "".join(letter for letter in plain if letter not in BLANK and letter not in ".,،'’\u200c")


@cache
def _hours() -> dict[str, range]:
    """The hours that a word beside a time allows."""
    hours = {}
    for span, of_span in words()["hours"].items():
        first, _, end = span.partition("-")
        for word in of_span:
            hours[_compact(word)] = range(int(first), int(end))
    return hours
