"""WhatsApp's export of a chat, of an Android or an iOS phone. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way
    2023년 12월 31일 오후 9:05, Ann : on my way

Other lines continue a message. Numbers may be of any script, years Gregorian or Buddhist.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson

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
# As Android or iOS names it.
_PHONES_FILE = re.compile(r"[A-Z]{3,5}-\d{8}-WA\d{4}|\d{6,8}-[A-Z]{3,9}-\d{4}-", re.IGNORECASE)

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


@dataclass(slots=True)
class _Entry:
    """``form`` is a phone's, ``name`` None in a notice."""

    line: int
    date: tuple[str, str, str]
    mark: str
    clock: tuple[int, int, int]
    beside: tuple[str, ...]
    form: tuple[object, ...]
    lines: list[str]
    name: str | None = None
    text: str = ""


def is_whatsapp(text: str) -> bool:
    """Whether any of the first lines begins such a message."""
    return any(_read_stamp(0, line) for line in text.split("\n", 20)[:20])


def read_whatsapp(text: str, path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The messages; a name ends at the first colon, except ``person``. Raises InputError for unclear dates."""
    chat, person = Chat(), same_name(person)
    lines = text.replace("\r\n", "\n").split("\n")
    stamped = [_read_stamp(number, line) for number, line in enumerate(lines, 1)]
    form = Counter(entry.form for entry in stamped if entry is not None).most_common(1)[0][0]
    entries: list[_Entry] = []
    for number, (line, entry) in enumerate(zip(lines, stamped, strict=True), 1):
        if entry is not None and entry.form == form:  # of another form it is a quotation in a message
            entries.append(entry)
        elif entries:
            entries[-1].lines.append(line)
        elif line.strip(BLANK):
            chat.problems.append(Problem(str(path), number, None, "stands before the first message"))
    order = order or _order(entries, path)
    for entry in entries:
        entry.name, entry.text = _name_and_text(entry.lines, person)
    _take_names_off_groups(entries, person)
    for entry in entries:
        try:
            at = datetime.combine(_date(entry, order), time(_hour(entry), *entry.clock[1:]))
        except ValueError as error:
            chat.problems.append(Problem(str(path), entry.line, None, f"has a date or time that is none: {error}"))
        else:
            _add(chat, entry, at)
    return chat


# Dates and times.


def _read_stamp(number: int, line: str) -> _Entry | None:
    head = _DATE_FIRST.match(line) or _TIME_FIRST.match(line)
    if head is None:
        return None
    date_first = head.start("a") < head.start("hour")
    end, mark = head["end"].strip(f"{UNSEEN} \u00a0\u202f"), head["mark"]
    if (head["bracket"] is not None) != (end == "]") or (end == "," and not (mark in ".년" and date_first)):
        return None
    gap, after = _words_beside(head["gap"]), _words_beside(head["after"])
    clock = (int(head["hour"]), int(head["minute"]), int(head["second"] or 0))
    form = (end, mark, date_first, bool(gap), bool(after))
    return _Entry(number, (head["a"], head["b"], head["c"]), mark, clock, (*gap, *after), form, [head["rest"]])


@lru_cache(1000)
def _words_beside(text: str) -> tuple[str, ...]:
    """Joined where that is known, else each alone."""
    joined = _compact(text)
    words = [joined] if joined in _hours() else map(_compact, re.split(r"[\s,،]", text))
    return tuple(word for word in words if word)


def _compact(text: str) -> str:
    plain = unicodedata.normalize("NFC", text).casefold()
    return "".join(letter for letter in plain if letter not in BLANK and letter not in ".,،'’\u200c")


@cache
def _hours() -> dict[str, range]:
    spans = {span: range(*map(int, span.split("-"))) for span in _table()["hours"]}
    return {_compact(word): spans[span] for span, words in _table()["hours"].items() for word in words}


def _date(entry: _Entry, order: Order) -> date:
    first, second, third = map(int, entry.date)
    if order == "ymd" or len(entry.date[0]) > 2:
        year, month, day, digits = first, second, third, len(entry.date[0])
    else:
        year, digits = third, len(entry.date[2])
        day, month = (first, second) if order == "dmy" else (second, first)
    for shift, century in ((0, 2000), (BUDDHIST, 2500)):
        gregorian = (0 if digits > 2 else century) + year - shift
        if FIRST_YEAR <= gregorian <= datetime.now().year + 1:
            return date(gregorian, month, day)
    raise ValueError(f"the year {year} is none of WhatsApp's in the Gregorian or the Buddhist calendar")


def _hour(entry: _Entry) -> int:
    hour, spans = entry.clock[0], []
    for word in entry.beside:
        if word not in _hours():
            raise ValueError(f'which half of the day "{word}" beside the time means is not known')
        spans.append(_hours()[word])
    if all(span == _ANY_HOUR for span in spans):
        return hour
    hours = [value for value in (hour % 12, hour % 12 + 12) if all(value in span for span in spans)]
    if hour > 12 or len(hours) != 1:
        raise ValueError(f"no hour {hour} of {' '.join(entry.beside)}")
    return hours[0]


def _order(entries: Sequence[_Entry], path: Path) -> Order:
    entries = [entry for entry in entries if len(entry.date[0]) < 3]
    if not entries:
        return "ymd"
    orders: tuple[Order, ...] = ("dmy", "ymd") if entries[0].mark == "." else ("dmy", "mdy", "ymd")
    fits = {order: sum(_is_date(entry, order) for entry in entries) for order in orders}
    best = [order for order in orders if fits[order] == max(fits.values())]
    if best[1:] == ["ymd"]:  # two digits of a year seldom stand first
        best.pop()
    if len(best) != 1:
        raise InputError(f"{path}: its dates may be day/month or month/day; say which they are with --dates")
    return best[0]


def _is_date(entry: _Entry, order: Order) -> bool:
    try:
        _date(entry, order)
    except ValueError:
        return False
    return True


# Names and texts.


def _name_and_text(lines: Sequence[str], person: str) -> tuple[str | None, str]:
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
    speakers = {entry.name for entry in entries if entry.name is not None}
    for notice in entries[:FIRST]:
        plain, group = _plain(notice.text), notice.name
        if group is None or not any(all(part in plain for part in parts.split("+")) for parts in _table()["encrypted"]):
            continue
        acts = [entry for entry in entries if _acts_on(entry, group)]
        if group != person and (acts or len(speakers) > 2):
            for entry in [*acts, *(entry for entry in entries if entry.name == group)]:
                entry.name = None
        notice.name = None


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
    if _plain(text) in _table()["deleted"]:
        return "", None
    first, _, rest = text.partition("\n")
    file, bracket, words = first.rstrip(AROUND).rpartition(" (")
    is_phones = file.startswith(MARK) or _PHONES_FILE.match(file)
    if bracket and _FILE.search(file) and (is_phones or _plain(words[:-1]) in _table()["attached"]):
        return rest, NOTICES
    for part, after in ((first, rest), (text, "")):
        before, words = _messengers_words(part)
        if words:
            is_document = not before.strip(BLANK) and "\n" not in after and _FILE.search(after)
            kind = None if words in _table()["edited"] else NOTICES
            return (before if is_document else f"{before}\n{after}"), kind
    if text.startswith(MARK) and not text.lstrip(UNSEEN).startswith("@"):
        return "", NOTICES
    return text, None


def _messengers_words(text: str) -> tuple[str, str]:
    text = text.rstrip(BLANK)
    before, bracket, tail = text.rpartition("<")
    if not bracket or len(tail) > LONGEST_NOTICE + 1 or tail.find(">") != len(tail) - 1 or "\n" in tail:
        before, _, tail = text.rpartition(MARK)
        if not before[-1:].isspace() or tail.startswith("@"):
            return text, ""
    words = _plain(tail.removesuffix(">"))
    is_phones = before.endswith(MARK) or (_PHONES_FILE.search(words) and _FILE.search(words))
    is_messengers = (is_phones and not before[-1:].strip(BLANK)) or words in _table()["omitted"] + _table()["edited"]
    return (before, words) if is_messengers else (text, "")


def _plain(text: str) -> str:
    return same_name(text).strip(" .。").lower()


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = orjson.loads(WORDS.read_bytes())
    return table
