"""``turinglike history``: a person's chat history, from a messenger's exports."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from agents.errors import InputError, printable
from agents.language.person import HistoryMessage, Style, history_lines, measure, read_bytes, read_history
from serving.command_line import Commands, path
from serving.histories.chat import Chat, ChatMessage, read_telegram, same_name
from serving.runs.atomic_files import replacing
from serving.runs.output_paths import refuse_existing
from serving.runs.row_problems import count

MOST_BYTES = 256 * 1024 * 1024
MOST_NAMES = 20  # that an error lists


def register(commands: Commands) -> None:
    command = commands.add(
        "history",
        history,
        "a messenger's export as the chat history of a person, for an agent that writes as the person does",
        commands.as_json,
        example="result.json --person Ann -o ann.jsonl",
    )
    command.add_argument("files", nargs="+", type=path, metavar="FILE", help="of Telegram, or a history")
    command.add_argument("--person", required=True, metavar="NAME", help="whose it is: the name, or Telegram's from_id")
    command.add_argument("-o", "--out", required=True, type=path, metavar="OUT.jsonl", help="the history")
    command.add_argument("--force", action="store_true", help="replace what is at --out")


def history(options: argparse.Namespace) -> int:
    """Run the command. Raises InputError, StorageError."""
    refuse_existing([options.out], force=options.force)
    chats = [read_chat(path) for path in options.files]
    problems = [problem for chat in chats for problem in chat.problems]
    if problems:
        raise InputError(f"{count(len(problems), 'message')} cannot be read", problems)
    if not any(chat.messages for chat in chats):
        raise InputError(f"{options.files[0]}: holds no message")
    person = choose_person(chats, options.person)
    messages = join(chats, person)
    with replacing(options.out) as file:
        os.fchmod(file.fileno(), 0o600)  # for nobody else's eyes
        file.write(history_lines(messages))
    dropped = sum((chat.dropped for chat in chats), Counter[str]())
    others = {message.author for chat in chats for message in chat.messages} - person
    styles = {speaker: measure(messages, speaker) for speaker in ("person", "other")}
    if options.json:
        row = {**styles, "others": len(others)}
        print(orjson.dumps({**row, "dropped": dropped}, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(styles, len(others), dropped, options.out)
    return 0


def read_chat(path: Path) -> Chat:
    """A file's messages, in either form. Raises InputError."""
    content = read_bytes(path, MOST_BYTES).removeprefix(b"\xef\xbb\xbf")
    first = content.lstrip().split(b"\n", 1)[0]
    if not first.startswith(b"{"):
        raise InputError(f"{path}: is neither Telegram's result.json of a chat nor a history, a line of JSON a message")
    if b'"speaker"' in first:
        return Chat([ChatMessage(line.speaker, line.at, line.text) for line in read_history(path)])
    try:
        return read_telegram(orjson.loads(content), path)
    except orjson.JSONDecodeError:
        raise InputError(f"{path}: is no JSON, or not all of it") from None


def choose_person(chats: Sequence[Chat], person: str) -> frozenset[str]:
    """The names and account of ``person``. Raises InputError for nobody or several."""
    messages = [message for chat in chats for message in chat.messages]
    name = same_name(person)
    accounts = Counter(message.id for message in messages if message.name == name and message.id)
    if len(accounts) > 1:
        choices = " or ".join(f"{account} (messages: {number:,})" for account, number in accounts.items())
        raise InputError(f"--person: {len(accounts)} people are called {name}: say --person {choices}")
    by_name = [message for message in messages if message.name == name]
    chosen = by_name or [message for message in messages if message.id == person]
    if not chosen:
        there = list(dict.fromkeys(message.name for message in messages if message.name))[:MOST_NAMES]
        raise InputError(f"--person: no message is from {person}; there are messages from {', '.join(there)}")
    return frozenset(author for message in chosen for author in (message.id, message.name) if author)


def join(chats: Sequence[Chat], person: frozenset[str]) -> list[HistoryMessage]:
    """The ``person``'s history, the newest chat last. Raises InputError."""
    times = [[message.at for message in chat.messages if message.at is not None] for chat in chats]
    if len({at.tzinfo is None for row in times for at in row}) > 1:
        raise InputError("some times of these files have an offset and some have none")
    if all(times):
        chats = [chat for _, chat in sorted(zip(map(max, times), chats, strict=True), key=lambda pair: pair[0])]
    return [
        HistoryMessage("person" if message.author in person else "other", message.text, message.at)
        for chat in chats
        for message in chat.messages
    ]


def _print(styles: dict[str, Style], others: int, dropped: Counter[str], out: Path) -> None:
    from serving.terminal import plain_table, print_table  # imports rich, which other commands need not wait for

    table = plain_table("", *styles)
    for name in styles["person"]:
        values = [style[name] for style in styles.values()]
        table.add_row(name.replace("_", " "), *("-" if value is None else f"{value:,.4g}" for value in values))
    print_table(table)
    left = ", ".join(f"{number:,} {kind}" for kind, number in sorted(dropped.items())) or "nothing"
    print(printable(f"left out: {left}; the other: {others} {'name' if others == 1 else 'names'}"))
    print(printable(f"{out}: what stands in it is personal; only you may read the file"))
