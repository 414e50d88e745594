"""Telegram's export of one chat: ``result.json``, as Telegram Desktop writes it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.errors import InputError, Problem
from serving.histories.chat import FORWARDED, NOTICES, OF_BOTS, Chat, ChatMessage, same_name


class _Part(BaseModel):
    text: str


class _Message(BaseModel):
    """As much of an entry as is needed; ``text`` is a string, or a list of strings and of parts in some form."""

    type: str
    date: datetime | None = None
    text: str | list[str | _Part] = ""


def read_telegram(content: dict[str, Any], path: Path) -> Chat:
    """The messages of an export. What is no message, has no text, or has the words of somebody else or of a bot is
    dropped. Raises InputError if it is no export of one chat."""
    if "chats" in content:
        raise InputError(f"{path}: is an export of all chats; export the one chat alone")
    entries = content.get("messages")
    if not isinstance(entries, list):
        raise InputError(f'{path}: is no export of a chat: it has no list of "messages"')
    chat = Chat()
    for number, entry in enumerate(entries, 1):
        place = f"message {number}"
        try:
            message = _Message.model_validate(entry)
        except ValidationError as error:
            fields = sorted({str(one["loc"][0]) for one in error.errors() if one["loc"]})
            wrong = f"{' and '.join(fields)}: missing or of another form" if fields else "is no object"
            chat.problems.append(Problem(str(path), None, place, wrong))
            continue
        text = message.text if isinstance(message.text, str) else "".join(map(_plain, message.text))
        kind = None
        if message.type != "message" or not text.strip():
            kind = NOTICES
        elif entry.keys() & {"forwarded_from", "forwarded_from_id"}:  # null where the sender's account is gone
            kind = FORWARDED
        elif "via_bot" in entry:
            kind = OF_BOTS
        if kind is not None:
            chat.drop(kind, str(path), None, text, place)
            continue
        at = None if message.date is None else message.date.replace(tzinfo=None)
        name, account = entry.get("from"), entry.get("from_id")  # a number in older exports
        author = same_name(name) if isinstance(name, str) else ""
        chat.messages.append(ChatMessage(author, at, text.strip(), None if account is None else str(account)))
    return chat


def _plain(part: str | _Part) -> str:
    return part if isinstance(part, str) else part.text
