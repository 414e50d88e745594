"""``turinglike history``: a person's chat history, made of what a messenger exports, and how the person writes."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError, printable
from agents.language.chat_style import Style, measure
from agents.language.history import HistoryMessage, history_lines, read_bytes, read_history
from serving.histories.chat import Chat, Said
from serving.histories.telegram import read_telegram
from serving.histories.whatsapp import Order, is_whatsapp, read_whatsapp
from serving.runs.atomic_files import replacing
from serving.runs.output_paths import refuse_existing
from serving.terminal import plain_table, print_table

MOST_BYTES = 256 * 1024 * 1024
MOST_NAMES = 20  # that an error lists
TITLES = {
    "messages": "messages",
    "turns": "turns",
    "words_mean": "words per message, mean",
    "words_median": "words per message, median",
    "letters_mean": "letters per message, mean",
    "letters_median": "letters per message, median",
    "punctuation": "punctuation marks per message",
    "ends_with_mark": "share that ends with a mark",
    "begins_with_capital": "share that begins with a capital",
    "capitals": "share of capital letters",
    "emoji": "emoji per message",
    "messages_per_turn": "messages per turn",
    "burstiness": "burstiness B of times between messages",
    "gap_s": "seconds between messages of a turn, median",
}


def history(options: argparse.Namespace) -> int:
    """Run the command; returns its exit code. Raises InputError, StorageError."""
    refuse_existing([options.out], force=options.force)
    chats = [read_chat(path, options.dates, options.person) for path in options.files]
    problems = [problem for chat in chats for problem in chat.problems]
    if problems:
        raise InputError(f"{len(problems)} messages cannot be read", problems)
    messages = joined(chats, options.person, options.files)
    with replacing(options.out) as file:
        os.fchmod(file.fileno(), 0o600)  # for nobody else's eyes
        file.write(history_lines(messages))
    dropped = sum((chat.dropped for chat in chats), Counter[str]())
    others = {said.name for chat in chats for said in chat.messages} - {options.person}
    styles = {speaker: measure(messages, speaker) for speaker in ("person", "other")}
    if options.json:
        found: dict[str, Any] = {speaker: asdict(style) for speaker, style in styles.items()}
        print(orjson.dumps({**found, "others": len(others), "dropped": dropped}, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(styles, len(others), dropped, options.out)
    return 0


def read_chat(path: Path, order: Order | None = None, person: str = "") -> Chat:
    """The messages in a file, whichever of the three forms it has. Raises InputError."""
    content = read_bytes(path, MOST_BYTES)
    if content[:2] == b"PK":
        raise InputError(f"{path}: is an archive; give the text that is in it")
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] == b"{":
        row = _json(start.split(b"\n", 1)[0])
        if isinstance(row, dict) and "speaker" in row:
            return Chat([Said(one.speaker, one.at, one.text) for one in read_history(path)])
        whole = _json(start)
        if not isinstance(whole, dict):
            raise InputError(f"{path}: is no JSON, or not all of it")
        return read_telegram(whole, path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text in UTF-8") from None
    if not is_whatsapp(text):
        raise InputError(f"{path}: is neither WhatsApp's export of a chat, nor Telegram's result.json, nor a history")
    return read_whatsapp(text, path, order, person)


def joined(chats: Sequence[Chat], person: str, paths: Sequence[Path]) -> list[HistoryMessage]:
    """The history of ``person`` in ``chats``: one chat after the other, that with the newest message last. Raises
    InputError."""
    messages = [said for chat in chats for said in chat.messages]
    if not messages:
        raise InputError(f"{paths[0]}: holds no message")
    offsets = {said.at.tzinfo is None for said in messages if said.at is not None}
    if len(offsets) > 1:
        raise InputError("some times of these files have an offset and some have none")
    names = dict.fromkeys(said.name for said in messages)
    if person not in names:
        there = ", ".join([*list(names)[:MOST_NAMES], *(["…"] if len(names) > MOST_NAMES else [])])
        raise InputError(f"--person: no message is from {person}; there are messages from {there}")
    ends = [max((said.at for said in chat.messages if said.at is not None), default=None) for chat in chats]
    known = [end for end in ends if end is not None]
    if len(known) == len(chats):
        chats = [chat for _, chat in sorted(zip(known, chats, strict=True), key=lambda pair: pair[0])]
    return [
        HistoryMessage(said.at, "person" if said.name == person else "other", said.text)
        for chat in chats
        for said in chat.messages
    ]


def _json(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _print(styles: dict[str, Style], others: int, dropped: Counter[str], out: Path) -> None:
    table = plain_table("", *styles)
    for field in fields(Style):
        values = [getattr(style, field.name) for style in styles.values()]
        table.add_row(TITLES[field.name], *("-" if value is None else f"{value:,.4g}" for value in values))
    print_table(table)
    left = ", ".join(f"{count:,} {kind}" for kind, count in sorted(dropped.items())) or "nothing"
    print(printable(f"left out: {left}; the other: {others} {'name' if others == 1 else 'names'}"))
    print(printable(f"{out}: what stands in it is personal; only you may read the file"))
