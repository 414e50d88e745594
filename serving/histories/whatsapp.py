"""WhatsApp's export of a chat: a text in the form of an Android or an iOS phone. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way

A message goes on in the lines that do not begin so. Days stand before months or after them, as the phone's language has
it; that is found from all dates of the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal

from agents.errors import InputError, Problem
from serving.histories.chat import NOTICES, Chat, Said

Order = Literal["dmy", "mdy"]

UNSEEN = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2068\u2069\ufeff"
HEAD = re.compile(
    rf"[{UNSEEN}]*(?P<bracket>\[)?(?P<a>\d{{1,4}})(?P<mark>[./-])(?P<b>\d{{1,2}})(?P=mark)(?P<c>\d{{1,4}}),?\s+"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?(?:\s?(?P<half>[AaPp])\.?\s?[Mm]\.?)?"
    r"(?(bracket)\]|(?:\s-|:))\s(?P<rest>.*)",
    re.DOTALL,
)
_NAMED = re.compile(r"([^:]{1,100}):(?:\s(.*)|$)", re.DOTALL)
_OMITTED = re.compile(r"<[^<>\n]{2,80}>")
_ATTACHED = re.compile(r"[^\n]*\.\w{2,5} \([^()\n]{4,40}\)(\n|$)")
_EDITED = re.compile(rf"(?<![\s{UNSEEN}])[\s{UNSEEN}]*<[^<>\n]{{2,80}}>$")  # looks once at each run of spaces
_DELETED = re.compile(r"(this message was deleted|you deleted this message)\.?", re.IGNORECASE)


def is_whatsapp(text: str) -> bool:
    """Whether one of the first lines begins as a message of such an export does."""
    return any(HEAD.match(line) for line in text.split("\n", 20)[:20])


def read_whatsapp(text: str, path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The messages in ``text``, the content of ``path``. Without an ``order`` the dates must say which it is.
    A name ends at the first colon, but for that of ``person``.

    Notices of the messenger, media and deleted messages are dropped. Raises InputError where the order of days and
    months cannot be told.
    """
    chat = Chat()
    heads: list[tuple[int, re.Match[str], list[str]]] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if (head := HEAD.match(line)) is not None:
            heads.append((number, head, [head["rest"]]))
        elif heads:
            heads[-1][2].append(line)
        elif line.strip(UNSEEN + " "):
            chat.problems.append(Problem(str(path), number, None, "stands before the first message"))
    dates = [head for _, head, _ in heads]
    order = order or _order(dates, path)
    for number, head, lines in heads:
        try:
            at = _time(head, order)
        except ValueError:
            chat.problems.append(Problem(str(path), number, None, "has a date or time that there is not"))
            continue
        _add(chat, at, "\n".join(lines).rstrip(), person)
    return chat


def _add(chat: Chat, at: datetime, rest: str, person: str) -> None:
    """Add the message that ``rest`` is, or count what else it is."""
    named = _NAMED.match(rest)
    if named is None:
        chat.dropped[NOTICES] += 1
        return
    around = f"{UNSEEN}~ \u202f\u00a0"
    name, text = named[1].strip(around), named[2] or ""
    if ":" in person and (whole := rest.lstrip(around)).startswith(f"{person}:"):
        name, text = person, whole.removeprefix(f"{person}:")[1:]
    if text.startswith("\u200e") or _OMITTED.fullmatch(text.strip()):
        chat.dropped[NOTICES] += 1
        return
    if (attached := _ATTACHED.match(text)) is not None:
        chat.dropped[NOTICES] += 1
        text = text[attached.end() :]
        if not text.strip():
            return
    text = _EDITED.sub("", text).strip(f"{UNSEEN} \n")
    if not text or _DELETED.fullmatch(text):
        chat.dropped["empty or deleted"] += 1
        return
    chat.messages.append(Said(name, at, text))


def _order(dates: Sequence[re.Match[str]], path: Path) -> Order:
    """Whether days stand first, by all dates that do not begin with the year. Raises InputError if they do not say."""
    dates = [one for one in dates if len(one["a"]) < 3]
    if not dates or dates[0]["mark"] == ".":
        return "dmy"
    possible: dict[Order, int] = {}
    for order in ("dmy", "mdy"):
        try:
            times = [_time(one, order) for one in dates]
        except ValueError:
            continue
        possible[order] = sum(second < first for first, second in pairwise(times))  # steps back in time
    fewest = [order for order, back in possible.items() if back == min(possible.values())]
    if len(fewest) != 1:
        why = "fit neither" if not possible else "fit both"
        raise InputError(f"{path}: its dates {why} day/month and month/day; say which they are with --dates")
    return fewest[0]


def _time(head: re.Match[str], order: Order) -> datetime:
    """The time of a message. Raises ValueError if there is none such."""
    a, b, c = int(head["a"]), int(head["b"]), int(head["c"])
    if len(head["a"]) > 2:
        year, month, day = a, b, c
    else:
        year, (day, month) = c, (a, b) if order == "dmy" else (b, a)
    hour = int(head["hour"])
    if head["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("no such hour")
        hour = hour % 12 + 12 * (head["half"] in "pP")
    return datetime(year + 2000 * (year < 100), month, day, hour, int(head["minute"]), int(head["second"] or 0))
