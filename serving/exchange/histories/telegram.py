"""Telegram's export of a chat, ``result.json``."""

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agents.errors import InputError, Problem
from serving.exchange.histories.chat import FORWARDED, NOTICES, OF_BOTS, Chat, ChatMessage, same_name


class _Part(BaseModel):
    text: str


class _Message(BaseModel):
    type: str
    date: datetime | None = None
    text: str | list[str | _Part] = ""


def read_telegram(content: dict[str, Any], path: Path) -> Chat:
    """The chat in a parsed ``result.json``. Raises InputError for what is not the export of one chat."""
    entries = content.get("messages")
    if not isinstance(entries, list):
        raise InputError(f'{path}: has no list of "messages"; export a single chat, not all chats')
    chat = Chat()
    for number, entry in enumerate(entries, 1):
        try:
            message = _Message.model_validate(entry)
        except ValidationError as error:
            fields = sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]})
            wrong = f"is not in Telegram's form: {' and '.join(fields) or 'it is no object'}"
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
            name = entry.get("from")
            author = same_name(name) if isinstance(name, str) else ""
            account = entry.get("from_id")  # a number in older exports
            chat.messages.append(ChatMessage(author, at, text, None if account is None else str(account)))
    return chat
