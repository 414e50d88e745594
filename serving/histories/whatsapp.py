"""WhatsApp's export of a chat: a text in the form of an Android or an iOS phone. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way

A message goes on in the lines that do not begin so. What the messenger puts in place of a message, or behind it, is
told from a person's words by words that are known or stand again and again in the file, and by unseen marks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from agents.errors import Problem
from serving.histories.chat import EMPTY, NOTICES, UNSEEN, Chat, ChatMessage, same_name, shortened
from serving.histories.whatsapp_stamps import (
    ATTACHED,
    DELETED,
    EDITED,
    ENCRYPTED,
    OMITTED,
    REMOVAL,
    Order,
    read_stamp,
    times,
    usual_form,
)

MARK = "\u200e"  # stands before what the messenger writes, and before a mention
BLANK = UNSEEN + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
AROUND = f"{BLANK}~"  # a name
QUOTES = '"“”„«»「」『』״'
FIRST = 3  # messages, among which the notice of encryption stands
LONGEST_NAME = 100
LONGEST_NOTICE = 80

_OPEN = re.compile(r"(?:^|\s)'[^']*$")  # a quotation that has no end
_FILE = re.compile(r"\.\w{2,5}$")
_OWN_FILE = re.compile(r"[A-Z]{3,5}-\d{8}-WA\d{4}|\d{6,8}-[A-Z]{3,9}-\d{4}-")  # as Android or iOS names it


@dataclass(slots=True)
class _Entry:
    """What stands under one stamp, as far as a name was told from a text; ``name`` is None in a notice."""

    line: int
    lines: list[str]
    name: str | None = None
    text: str = ""


@dataclass(slots=True)
class _Repeated:
    """What a file has again: whole texts in ``<>``, such at the end, what stands behind an unseen mark, and the words
    beside names of files."""

    alone: Counter[str] = field(default_factory=Counter)
    behind: Counter[str] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    beside_files: set[str] = field(default_factory=set)


def is_whatsapp(text: str) -> bool:
    """Whether one of the first lines begins as a message of such an export does."""
    return any(read_stamp(line) for line in text.split("\n", 20)[:20])


def read_whatsapp(text: str, path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The messages in ``text``, the content of ``path``. Without an ``order`` the dates must say which it is.
    A name ends at the first colon, but for that of ``person``.

    Notices of the messenger, media and deleted messages are dropped. Raises InputError where the order of days and
    months cannot be told.
    """
    chat = Chat()
    lines = text.replace("\r\n", "\n").split("\n")
    stamps = {number: stamp for number, line in enumerate(lines, 1) if (stamp := read_stamp(line)) is not None}
    form = usual_form(list(stamps.values()))
    heads = {number: stamp for number, stamp in stamps.items() if stamp.form == form}
    quoted = [number for number in stamps if number not in heads]
    chat.doubtful += [Problem(str(path), number, None, shortened(lines[number - 1])) for number in quoted]
    entries: list[_Entry] = []
    for number, line in enumerate(lines, 1):
        if number in heads:
            entries.append(_Entry(number, [heads[number].rest]))
        elif entries:
            entries[-1].lines.append(line)
        elif line.strip(BLANK):
            chat.problems.append(Problem(str(path), number, None, "stands before the first message"))
    at = times(list(heads.items()), path, order)
    for entry in entries:
        _part(entry, same_name(person))
    _tell_notices(entries, same_name(person))
    repeated = _repeated(entries)
    for entry in entries:
        when = at[entry.line]
        if isinstance(when, str):
            chat.problems.append(Problem(str(path), entry.line, None, when))
        else:
            _add(chat, str(path), entry, when, repeated)
    return chat


def _part(entry: _Entry, person: str) -> None:
    """Tell the name that the entry begins with from its text."""
    whole = "\n".join(entry.lines).rstrip()
    places = [place.start() for place in re.finditer(r":(?=\s|$)", whole[: LONGEST_NAME + 2])]
    names = [same_name(whole[:place].strip(AROUND)) for place in places if "\n" not in whole[:place]]
    entry.text = whole
    if names:
        number = names.index(person) if person in names else 0
        entry.name, entry.text = names[number], whole[places[number] + 1 :].removeprefix(" ")


def _tell_notices(entries: Sequence[_Entry], person: str) -> None:
    """Take the name off each entry that is a notice, though it has a colon: of a group, as which a chat of iOS speaks,
    or with a quotation that has one."""
    counts = Counter(entry.name for entry in entries if entry.name)
    for entry in entries:
        if entry.name and entry.name != person and _is_sentence(entry, counts):
            entry.name = None
    speakers = {entry.name for entry in entries if entry.name}
    encrypted = [entry for entry in entries[:FIRST] if entry.name and _tells_of_encryption(entry.text)]
    for group in {entry.name for entry in encrypted} - {person}:
        names_it = [entry for entry in entries if entry.name and _names_group(entry, group or "")]
        is_group = len(speakers) > 2 or names_it
        for entry in [*names_it, *(entry for entry in entries if is_group and entry.name == group)]:
            entry.name = None
    for entry in encrypted:
        entry.name = None


def _is_sentence(entry: _Entry, counts: Counter[str]) -> bool:
    """Whether what stands before the colon is no name but how a notice begins: a quotation has the colon, or it is
    what somebody does, stands there once and begins with that name."""
    name, line = entry.name or "", entry.lines[0]
    in_name, in_line = (sum(text.count(mark) for mark in QUOTES) for text in (name, line))
    if (in_name % 2 and not in_line % 2) or _OPEN.search(name):
        return True
    words = name.split(" ")
    does = any(" ".join(words[:count]) in counts and words[count].islower() for count in range(1, len(words) - 2))
    return does and counts[name] == 1


def _names_group(entry: _Entry, group: str) -> bool:
    """Whether somebody does something, by the entry, with the group of this name."""
    text = entry.text.lstrip(AROUND)
    return text.startswith(f"{entry.name} ") and any(f"{mark}{group}" in text for mark in QUOTES)


def _tells_of_encryption(text: str) -> bool:
    plain = _plain(text)
    return any(all(part in plain for part in row.split("+")) for row in _rows(ENCRYPTED))


def _repeated(entries: Iterable[_Entry]) -> _Repeated:
    repeated = _Repeated()
    for entry in entries:
        if entry.name is None:
            continue
        before, words = _behind(entry.text)
        (repeated.behind if before.strip(BLANK) else repeated.alone)[words] += 1
        repeated.marked[entry.text.rpartition(MARK)[2]] += 1
        file, words = _beside_file(entry.text)
        if file and (file.startswith(MARK) or _OWN_FILE.match(file)):
            repeated.beside_files.add(words)
    return repeated


def _add(chat: Chat, path: str, entry: _Entry, at: datetime, repeated: _Repeated) -> None:
    """Add the message that the entry is, or leave it out as what else it is."""
    text, kind = entry.text.strip("\n"), None
    if entry.name is None:
        text, kind = "", NOTICES
    elif _plain(text) in _rows(DELETED):
        text = ""
    else:
        text, kind = _without_media(text, repeated)
        before, words = _behind(text)
        if before.strip(BLANK) and _is_marker(before, words, EDITED, repeated.behind, 3):
            text = before
        text = text.strip(BLANK)
    if kind or not text:
        chat.drop(kind or EMPTY, path, entry.line, entry.text if entry.name else "\n".join(entry.lines))
    if not text:
        return
    if _looks_like_a_notice(text):
        chat.doubtful.append(Problem(path, entry.line, None, shortened(text)))
    chat.messages.append(ChatMessage(entry.name or "", at, text))


def _without_media(text: str, repeated: _Repeated) -> tuple[str, str | None]:
    """The text that stands with a picture or a file, and what was there, or the text as it is."""
    first, _, rest = text.partition("\n")
    before, words = _behind(first)
    file, beside = _beside_file(first)
    if file and (file.startswith(MARK) or _OWN_FILE.match(file) or beside in _rows(ATTACHED) | repeated.beside_files):
        return rest, NOTICES
    if words and not before.strip(BLANK) and _is_marker(before, words, OMITTED, repeated.alone, 2):
        return ("" if _FILE.search(rest) and "\n" not in rest else rest), NOTICES
    if words and (before.endswith(MARK) or _OWN_FILE.search(words)) and _FILE.search(words):
        return f"{before}\n{rest}", NOTICES
    if text.startswith(MARK) and not text.lstrip(UNSEEN).startswith("@"):
        return "", NOTICES
    before, _, words = text.rpartition(MARK)
    if before[-1:].isspace() and repeated.marked[words] > 1 and not words.startswith("@"):
        return before, NOTICES
    return text, None


def _behind(text: str) -> tuple[str, str]:
    """What stands before the words in ``<>`` that a text ends with, and these words; all and none without such."""
    text = text.rstrip(BLANK)
    place = text.rfind("<", -LONGEST_NOTICE - 2)
    if place < 0 or not text.endswith(">") or "\n" in text[place:] or ">" in text[place:-1]:
        return text, ""
    return text[:place], _plain(text[place + 1 : -1], lower=False)


def _beside_file(text: str) -> tuple[str, str]:
    """The file that the first line of a text names, and the words in brackets behind it; nothing without such."""
    first = text.split("\n", 1)[0].rstrip(AROUND)
    file, bracket, words = first.rpartition(" (")
    is_file = bracket and words.endswith(")") and _FILE.search(file)
    return (file, _plain(words[:-1])) if is_file else ("", "")


def _is_marker(before: str, words: str, known: str, counts: Counter[str], least: int) -> bool:
    """Whether ``words`` in ``<>`` are the messenger's: known, marked, or a sentence of ``least`` words that stands so
    more than once in the file."""
    if words.lower() in _rows(known):
        return True
    if before[-1:].strip(BLANK):  # a letter stands right before it
        return False
    return before.endswith(MARK) or (counts[words] > 1 and _is_like_a_marker(words, least))


def _is_like_a_marker(words: str, least: int) -> bool:
    count = len(words.split()) if words.isascii() or " " in words else len(words)
    return count >= least and not words[:1].islower() and not any(sign in words for sign in "@/=:;\"'<>{}_")


def _looks_like_a_notice(text: str) -> bool:
    """Whether a short text may be the messenger's: in ``<>`` as a sentence, or of something deleted."""
    if "\n" in text or len(text) > LONGEST_NOTICE:
        return False
    before, words = _behind(text)
    if words and not before and _is_like_a_marker(words, 2):
        return True
    plain = _plain(text)
    return "?" not in plain and any(word in plain for word in REMOVAL.split())


def _plain(text: str, *, lower: bool = True) -> str:
    """Words of the messenger as the tables have them."""
    text = same_name(text).strip(" .。")
    return text.lower() if lower else text


@cache
def _rows(table: str) -> frozenset[str]:
    return frozenset(row for line in table.strip().split("\n") for row in line.strip().split("|"))
