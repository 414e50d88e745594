"""A person's chat history: a file of one message a line, oldest first. ::

    {"at": "2024-03-01T18:02:11", "speaker": "person", "text": "on my way"}

``speaker`` is "person", whose history it is, or "other", whoever that was; ``at`` is a time in ISO 8601, all with an
offset or none, null where it is not known. No error says what stands in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from agents.errors import InputError, Problem

MOST_BYTES = 64 * 1024 * 1024
Speaker = Literal["person", "other"]


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message; ``at`` is null where its time is not known."""

    at: datetime | None
    speaker: Speaker
    text: str


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    at: str | None = None
    speaker: Speaker
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000, strip_whitespace=True)]


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file of at most ``most`` bytes. Raises InputError."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise InputError(f"{path}: has more than {most // 2**20} MiB; give a part of it")
    return content


def read_history(path: Path) -> list[HistoryMessage]:
    """The messages in ``path``, in their order. Raises InputError that names every bad line."""
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found: list[HistoryMessage] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        message = _message(line)
        if isinstance(message, HistoryMessage):
            found.append(message)
        else:
            problems.append(Problem(str(path), number, None, message))
    if problems:
        raise InputError(f"{path}: {len(problems)} of {len(found) + len(problems)} lines are no messages", problems)
    if not found:
        raise InputError(f"{path}: holds no message")
    offsets = {one.at.tzinfo is None for one in found if one.at is not None}
    if len(offsets) > 1:
        raise InputError(f"{path}: some of its times have an offset and some have none")
    return found


def _message(line: bytes) -> HistoryMessage | str:
    """The message in a line, or what is wrong with it, in words that are not the line's."""
    try:
        row = _Line.model_validate(orjson.loads(line))
        at = None if row.at is None else datetime.fromisoformat(row.at)
    except orjson.JSONDecodeError:
        return "is no JSON object"
    except ValidationError as error:
        kinds = {
            str(one["loc"][0]) if one["type"] != "extra_forbidden" and one["loc"] else "" for one in error.errors()
        }
        wrong = sorted(kinds & _Line.model_fields.keys())
        return f"{' and '.join(wrong)}: missing or not as described" if wrong else "must have at, speaker and text"
    except ValueError:
        return "at: is no time in ISO 8601"
    return HistoryMessage(at, row.speaker, row.text)


def history_lines(messages: Sequence[HistoryMessage]) -> bytes:
    """The file that :func:`read_history` reads."""
    rows = (
        {"at": None if one.at is None else one.at.isoformat(), "speaker": one.speaker, "text": one.text}
        for one in messages
    )
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def turns(messages: Sequence[HistoryMessage]) -> list[list[HistoryMessage]]:
    """The messages by turns: what one speaker says before the other does."""
    return [list(said) for _, said in groupby(messages, key=lambda one: one.speaker)]


def newest(messages: Sequence[HistoryMessage], count: int) -> list[HistoryMessage]:
    """The messages of the ``count`` newest turns."""
    return [one for turn in turns(messages)[-count:] for one in turn]
