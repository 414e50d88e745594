"""``turinglike history``: exports of WhatsApp and Telegram as a person's chat history, or as conversations."""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError
from agents.language.person import HistoryMessage, read_message_file, style
from serving.exchange.histories.chat import Chat, ChatMessage, same_name
from serving.exchange.histories.telegram import read_telegram
from serving.exchange.histories.whatsapp import is_whatsapp, read_whatsapp
from serving.exchange.histories.whatsapp_dates import Order
from serving.files.atomic_files import replacing
from serving.files.output_paths import make_parent, refuse_existing
from serving.files.terminal import print_json, print_line
from serving.files.words import count

MOST_BYTES = 256 * 1024 * 1024
MOST_NAMES = 20  # that an error lists
PAUSE = 60.0  # minutes


def write_history(
    files: Sequence[Path],
    person: str,
    out: Path,
    dates: Order | None = None,
    *,
    conversations: bool = False,
    pause: float | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Write what ``person`` and others wrote, from exports of chats, to ``out``, and print what became of them.

    The file is a chat history, as the setting ``person`` of agents reads it. With ``conversations`` it holds the
    conversations of the person with one other, as ``turinglike import`` reads them; a new one begins after ``pause``
    minutes (None: 60) without a message. Raises InputError for files, people and times that are not clear, and
    StorageError.
    """
    if pause is not None and not conversations:
        raise InputError("--pause says where a conversation ends: give --conversations, too")
    refuse_existing([out], force=force)
    chats = [read_chat(path, dates, person) for path in files]
    problems = [problem for chat in chats for problem in chat.problems]
    if problems:
        raise InputError(f"{count(len(problems), 'entry', 'entries')} cannot be read", problems)
    if not any(chat.messages for chat in chats):
        raise InputError(f"{files[0]}: contains no message")
    authors = choose_person(chats, person)
    chats = in_order(chats)
    others = {message.author for chat in chats for message in chat.messages} - authors
    history = [_of_history(message, authors) for chat in chats for message in chat.messages]
    talks = None
    if conversations:
        talks = cut(chats, authors, PAUSE if pause is None else pause)
        content = orjson.dumps(talks, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    else:
        content = b"".join(orjson.dumps(message) + b"\n" for message in history)
    make_parent(out)
    with replacing(out) as file:
        os.fchmod(file.fileno(), 0o600)  # for nobody else's eyes
        file.write(content)
    summary: dict[str, Any] = {name: _figures(history, name) for name in ("person", "other")}
    summary["others"] = len(others)
    summary["conversations"] = None if talks is None else len(talks)
    summary["dropped"] = sum((chat.dropped for chat in chats), Counter[str]())
    if json:
        print_json(summary)
    else:
        _print(summary, person, out)


def read_chat(path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The messages of a file, in any of the three forms. Raises InputError."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise InputError(f"{path}: has more than {MOST_BYTES // 2**20} MiB; give a part of it")
    first = content.lstrip().split(b"\n", 1)[0]
    if first.startswith(b"{"):
        if b'"speaker"' in first:
            return Chat([ChatMessage(line.speaker, line.at, line.text) for line in read_message_file(path)])
        try:
            return read_telegram(orjson.loads(content), path)
        except orjson.JSONDecodeError:
            raise InputError(f"{path}: is not JSON, or not complete") from None
    with suppress(UnicodeDecodeError):
        text = content.decode()
        if is_whatsapp(text):
            return read_whatsapp(text, path, order, person)
    raise InputError(
        f"{path}: is not an export of WhatsApp (a text in UTF-8, out of its archive, in which a message begins with "
        "its date in numbers and its time), not the result.json of Telegram, and not a history"
    )


def choose_person(chats: Sequence[Chat], person: str) -> frozenset[str]:
    """The names and the account of ``person``, a name or an account. Raises InputError for nobody, and for several
    people of that name."""
    messages = [message for chat in chats for message in chat.messages]
    name = same_name(person)
    accounts = Counter(message.account for message in messages if message.name == name and message.account)
    if len(accounts) > 1:
        choices = " or ".join(f"{account} (messages: {number:,})" for account, number in accounts.items())
        raise InputError(f"--person: {len(accounts)} people have the name {name}: say --person {choices}")
    chosen = [message for message in messages if message.name == name]
    if not chosen:
        chosen = [message for message in messages if message.account == person]
    if not chosen:
        there = list(dict.fromkeys(message.name for message in messages if message.name))[:MOST_NAMES]
        raise InputError(f"--person: no message is from {person}; there are messages from {', '.join(there)}")
    return frozenset(author for message in chosen for author in (message.account, message.name) if author)


def in_order(chats: Sequence[Chat]) -> list[Chat]:
    """The chats, the newest last, where all have times; else as they are. Raises InputError for times of which only
    some have an offset."""
    times = [[message.at for message in chat.messages if message.at is not None] for chat in chats]
    if len({at.tzinfo is None for of_chat in times for at in of_chat}) > 1:
        raise InputError("some times of these files have an offset and some have none")
    if not all(times):
        return list(chats)
    newest = [max(of_chat) for of_chat in times]
    return [chat for _, chat in sorted(zip(newest, chats, strict=True), key=lambda pair: pair[0])]


def cut(chats: Sequence[Chat], person: frozenset[str], pause: float) -> dict[str, Any]:
    """The conversations of ``person`` with one other, in Topical-Chat's form; the speakers are "person" and "other". A
    new conversation begins after ``pause`` minutes without a message, and with a new chat. What only one of the two
    wrote is no conversation. Raises InputError for a chat of more than two, and for messages without a time."""
    talks: dict[str, Any] = {}
    for chat in chats:
        names = {message.author for message in chat.messages} - person
        if len(names) > 1:
            raise InputError(f"--conversations: {len(names) + 1} people write in a chat; a conversation has two")
        pieces: list[list[dict[str, str]]] = []
        before = None
        for message in chat.messages:
            if message.at is None:
                raise InputError("--conversations: some messages have no time, so that no pause can be seen")
            if before is None or message.at - before > timedelta(minutes=pause):
                pieces.append([])
            before = message.at
            line = _of_history(message, person)
            pieces[-1].append({"agent": line.speaker, "message": line.text, "at": message.at.isoformat()})
        for piece in pieces:
            if {line["agent"] for line in piece} == {"person", "other"}:
                talks[f"talk{len(talks) + 1:04}"] = {"content": piece}
    if not talks:
        raise InputError("--conversations: there is no conversation, in which both write")
    return talks


def _of_history(message: ChatMessage, person: frozenset[str]) -> HistoryMessage:
    return HistoryMessage("person" if message.author in person else "other", message.text, message.at)


def _figures(history: Sequence[HistoryMessage], speaker: str) -> dict[str, Any]:
    """How much somebody wrote, and how; ``style`` is None if that is nothing."""
    turns = [list(turn) for of, turn in groupby(history, key=lambda message: message.speaker) if of == speaker]
    return {
        "messages": sum(map(len, turns)),
        "turns": len(turns),
        "style": style(turns).replace("{name}", speaker) if turns else None,
    }


def _print(summary: dict[str, Any], person: str, out: Path) -> None:
    others = count(summary["others"], "other")
    own = count(summary["person"]["messages"], "message")
    print_line(f"{out}: {own} of {person}, {summary['other']['messages']:,} of {others}")
    if summary["conversations"] is not None:
        print_line(count(summary["conversations"], "conversation"))
    left = ", ".join(f"{number:,} {kind}" for kind, number in sorted(summary["dropped"].items())) or "nothing"
    print_line(f"left out: {left}")
    for speaker in ("person", "other"):
        if summary[speaker]["style"] is not None:
            print_line(summary[speaker]["style"])
    print_line("The file is personal, so only you may read it")
