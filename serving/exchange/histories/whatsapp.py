"""WhatsApp's export of a chat, of an Android or an iOS phone: who wrote what, without what the messenger wrote."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.errors import Problem
from serving.exchange.histories.chat import EMPTY, NOTICES, UNSEEN, Chat, ChatMessage, same_name
from serving.exchange.histories.whatsapp_dates import BLANK, Order, Stamp, moment, order_of, read_stamp, words

MARK = "\u200e"  # stands before what the messenger writes, and before a mention
AROUND = f"{BLANK}~"  # a name
QUOTES = '"“”„«»「」『』״'
FIRST = 3  # entries, among which the notice of encryption stands
SEEN = 20  # lines that show whether a file is such an export
LONGEST_NAME = 100
LONGEST_NOTICE = 80

_FILE = re.compile(r"\.\w{2,5}$")
# As Android or iOS names it.
_PHONES_FILE = re.compile(r"[A-Z]{3,5}-\d{8}-WA\d{4}|\d{6,8}-[A-Z]{3,9}-\d{4}-", re.IGNORECASE)


@dataclass(slots=True)
class _Entry:
    """A message or a notice."""

    line: int
    stamp: Stamp
    lines: list[str]
    name: str | None = None
    """Who wrote it; None for a notice."""
    text: str = ""


def is_whatsapp(text: str) -> bool:
    """Whether a message of WhatsApp's begins in one of the first lines."""
    return any(read_stamp(line) for line in text.split("\n", SEEN)[:SEEN])


def read_whatsapp(text: str, path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The chat in the text of an export. ``order`` is that of its dates (None: as all of them show). A name ends at the
    first colon, unless it is ``person``. Lines without a date continue a message. Raises InputError for dates whose
    order cannot be told."""
    chat = Chat()
    person = same_name(person)
    lines = text.replace("\r\n", "\n").split("\n")
    stamped = [read_stamp(line) for line in lines]
    form = Counter(head[0].form for head in stamped if head is not None).most_common(1)[0][0]
    entries: list[_Entry] = []
    for number, (line, head) in enumerate(zip(lines, stamped, strict=True), 1):
        if head is not None and head[0].form == form:  # a stamp of another form is a quotation in a message
            entries.append(_Entry(number, head[0], [head[1]]))
        elif entries:
            entries[-1].lines.append(line)
        elif line.strip(BLANK):
            chat.problems.append(Problem(str(path), number, None, "stands before the first message"))
    order = order or order_of([entry.stamp for entry in entries], path)
    for entry in entries:
        entry.name, entry.text = _name_and_text(entry.lines, person)
    _take_names_off_groups(entries, person)
    for entry in entries:
        try:
            at = moment(entry.stamp, order)
        except ValueError as error:
            chat.problems.append(Problem(str(path), entry.line, None, f"has a date or time that cannot be: {error}"))
            continue
        if entry.name is None:
            chat.dropped[NOTICES] += 1
            continue
        own, kind = _persons_words(entry.text.strip("\n"))
        own = own.strip(BLANK)
        if kind or not own:
            chat.dropped[kind or EMPTY] += 1
        if own:
            chat.messages.append(ChatMessage(entry.name, at, own))
    return chat


def _name_and_text(lines: Sequence[str], person: str) -> tuple[str | None, str]:
    """Who wrote an entry, None for a notice, and the text."""
    entry = "\n".join(lines).rstrip()
    places = [place.start() for place in re.finditer(r":(?=\s|$)", entry[: LONGEST_NAME + 2])]
    names = [same_name(entry[:place].strip(AROUND)) for place in places if "\n" not in entry[:place]]
    if not names:
        return None, entry
    number = names.index(person) if person in names else 0
    name = names[number]
    # A colon inside quotation marks belongs to a notice, as in: changed the subject to "Trip: May".
    if name != person and _quotes(name) % 2 and not _quotes(lines[0]) % 2:
        return None, entry
    return name, entry[places[number] + 1 :].removeprefix(" ")


def _quotes(text: str) -> int:
    return sum(text.count(mark) for mark in QUOTES)


def _take_names_off_groups(entries: Sequence[_Entry], person: str) -> None:
    """Make the entries of a group, which begin with its name, notices. The first notice of a chat, on encryption, shows
    the group's name."""
    speakers = {entry.name for entry in entries if entry.name is not None}
    for notice in entries[:FIRST]:
        plain = _plain(notice.text)
        group = notice.name
        if group is None or not any(all(part in plain for part in parts.split("+")) for parts in words()["encrypted"]):
            continue
        acts = [entry for entry in entries if _acts_on(entry, group)]
        if group != person and (acts or len(speakers) > 2):
            for entry in [*acts, *(entry for entry in entries if entry.name == group)]:
                entry.name = None
        notice.name = None


def _acts_on(entry: _Entry, group: str) -> bool:
    """Whether an entry says what its own writer did to the group."""
    text = entry.text.lstrip(AROUND)
    return text.startswith(f"{entry.name} ") and any(f"{mark}{group}" in text for mark in QUOTES)


def _persons_words(text: str) -> tuple[str, str | None]:
    """What a person wrote of a message, and the kind of what is left out of it, if that counts."""
    if _plain(text) in words()["deleted"]:
        return "", None
    first, _, rest = text.partition("\n")
    file, bracket, note = first.rstrip(AROUND).rpartition(" (")
    is_phones = file.startswith(MARK) or _PHONES_FILE.match(file)
    if bracket and _FILE.search(file) and (is_phones or _plain(note[:-1]) in words()["attached"]):
        return rest, NOTICES
    for part, after in ((first, rest), (text, "")):
        before, note = _messengers_words(part)
        if note:
            kind = None if note in words()["edited"] else NOTICES
            is_document = not before.strip(BLANK) and "\n" not in after and _FILE.search(after)
            return before if is_document else f"{before}\n{after}", kind
    if text.startswith(MARK) and not text.lstrip(UNSEEN).startswith("@"):
        return "", NOTICES
    return text, None


def _messengers_words(text: str) -> tuple[str, str]:
    """A text without the words of the messenger at its end, and these words, or ""."""
    text = text.rstrip(BLANK)
    before, bracket, tail = text.rpartition("<")
    if not bracket or len(tail) > LONGEST_NOTICE + 1 or tail.find(">") != len(tail) - 1 or "\n" in tail:
        before, _, tail = text.rpartition(MARK)
        if not before[-1:].isspace() or tail.startswith("@"):
            return text, ""
    note = _plain(tail.removesuffix(">"))
    is_phones = before.endswith(MARK) or (_PHONES_FILE.search(note) and _FILE.search(note))
    is_messengers = (is_phones and not before[-1:].strip(BLANK)) or note in words()["omitted"] + words()["edited"]
    return (before, note) if is_messengers else (text, "")


def _plain(text: str) -> str:
    return same_name(text).strip(" .。").lower()
