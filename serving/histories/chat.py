"""A messenger's export as messages, and Telegram's."""

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.errors import InputError, Problem

NOTICES = "media and notices"  # which the exports of some phones do not tell apart
EMPTY = "empty or deleted"
FORWARDED = "forwarded"
OF_BOTS = "written by a bot"
UNSEEN = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"

_NO_UNSEEN = dict.fromkeys(map(ord, UNSEEN))


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message: by whom, when in the exporter's time, its text, and any account."""

    name: str
    at: datetime | None
    text: str
    id: str | None = None

    @property
    def author(self) -> str:
        return self.id or self.name


@dataclass(slots=True)
class Chat:
    """Messages, oldest first; ``dropped`` counts other entries by kind, ``problems`` cannot be read."""

    messages: list[ChatMessage] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


def same_name(name: str) -> str:
    """A name for comparison: NFC, plain spaces, no unseen marks."""
    return " ".join(unicodedata.normalize("NFC", name).translate(_NO_UNSEEN).split())


class _Part(BaseModel):
    text: str


class _Message(BaseModel):
    type: str
    date: datetime | None = None
    text: str | list[str | _Part] = ""


def read_telegram(content: dict[str, Any], path: Path) -> Chat:
    """The messages, without notices, empty, forwarded and bots'. Raises InputError if it is no chat."""
    entries = content.get("messages")
    if not isinstance(entries, list):
        raise InputError(f'{path}: has no list of "messages"; export the one chat alone, not all chats')
    chat = Chat()
    for number, entry in enumerate(entries, 1):
        try:
            message = _Message.model_validate(entry)
        except ValidationError as error:
            fields = sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]})
            wrong = f"has the form of none: {' and '.join(fields) or 'no object'}"
            chat.problems.append(Problem(str(path), None, f"message {number}", wrong))
            continue
        parts = [message.text] if isinstance(message.text, str) else message.text
        text = "".join(part if isinstance(part, str) else part.text for part in parts).strip()
        if message.type != "message" or not text:
            chat.dropped[NOTICES] += 1
        elif entry.keys() & {"forwarded_from", "forwarded_from_id"}:  # null where the sender's account is gone
            chat.dropped[FORWARDED] += 1
        elif "via_bot" in entry:
            chat.dropped[OF_BOTS] += 1
        else:
            at = None if message.date is None else message.date.replace(tzinfo=None)
            name, account = entry.get("from"), entry.get("from_id")  # a number in older exports
            author = same_name(name) if isinstance(name, str) else ""
            chat.messages.append(ChatMessage(author, at, text, None if account is None else str(account)))
    return chat
