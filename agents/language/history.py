"""How somebody writes in a chat, in numbers: of one speaker's messages in a history."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
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


_PICTURE = "[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u3030\u303d\u203c\u2049]"
_JOINABLE = f"{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]*"
EMOJI = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|{_JOINABLE}(?:\u200d{_JOINABLE})*|[0-9#*]\ufe0f?\u20e3")
"""One emoji, however many characters it is made of: with a tone of skin, joined to others, a flag, a key."""
MARKS = ".!?\u2026"


@dataclass(frozen=True, slots=True)
class Style:
    """Of ``messages`` in ``turns``; all is null where there is nothing to count.

    Words are what spaces separate, letters all characters. ``ends_with_mark``, ``begins_with_capital`` are shares of
    the messages, ``punctuation`` and ``emoji`` counts per message; ``capitals`` is the share of capital letters.
    ``burstiness`` is B = (sd - mean) / (sd + mean) of the seconds between one's messages (Goh and Barabasi 2008): -1 is
    regular, 0 as by chance, 1 in bursts. ``gap_s`` is the median of seconds between the messages of a turn.
    """

    messages: int
    turns: int
    words_mean: float | None
    words_median: float | None
    letters_mean: float | None
    letters_median: float | None
    punctuation: float | None
    ends_with_mark: float | None
    begins_with_capital: float | None
    capitals: float | None
    emoji: float | None
    messages_per_turn: float | None
    burstiness: float | None
    gap_s: float | None


def measure(messages: Sequence[HistoryMessage], speaker: Speaker = "person") -> Style:
    """How ``speaker`` writes in ``messages``."""
    own_turns = [turn for turn in turns(messages) if turn[0].speaker == speaker]
    own = [one for turn in own_turns for one in turn]
    texts = [one.text for one in own]
    words, letters = [len(text.split()) for text in texts], [len(text) for text in texts]
    cased = [letter for text in texts for letter in text if letter.lower() != letter.upper()]
    first = [next((letter for letter in text if letter.lower() != letter.upper()), "") for text in texts]
    return Style(
        messages=len(own),
        turns=len(own_turns),
        words_mean=_mean(words),
        words_median=statistics.median(words) if words else None,
        letters_mean=_mean(letters),
        letters_median=statistics.median(letters) if letters else None,
        punctuation=_mean([_punctuation(text) for text in texts]),
        ends_with_mark=_mean([text.rstrip()[-1:] in MARKS for text in texts]),
        begins_with_capital=_mean([letter.isupper() for letter in first if letter]),
        capitals=_mean([letter.isupper() for letter in cased]),
        emoji=_mean([len(EMOJI.findall(text)) for text in texts]),
        messages_per_turn=len(own) / len(own_turns) if own_turns else None,
        burstiness=burstiness(_gaps(own)),
        gap_s=_median([gap for turn in own_turns for gap in _gaps(turn)]),
    )


def burstiness(gaps: Sequence[float]) -> float | None:
    """B of times between events; null of fewer than two, and where all are 0."""
    if len(gaps) < 2:
        return None
    mean, spread = statistics.fmean(gaps), statistics.pstdev(gaps)
    return (spread - mean) / (spread + mean) if spread + mean > 0 else None


def _gaps(messages: Sequence[HistoryMessage]) -> list[float]:
    """Seconds between messages, where both times are known and in order."""
    gaps = [
        (second.at - first.at).total_seconds()
        for first, second in pairwise(messages)
        if first.at is not None and second.at is not None
    ]
    return [gap for gap in gaps if gap >= 0]


def _punctuation(text: str) -> int:
    return sum(letter in ".,;:!?\u2026-\u2013\u2014()\"'\u201c\u201d\u2018\u2019/" for letter in text)


def _mean(numbers: Sequence[float]) -> float | None:
    return statistics.fmean(numbers) if numbers else None


def _median(numbers: Sequence[float]) -> float | None:
    return statistics.median(numbers) if numbers else None
