"""A chat agent that writes as a person does, after X-Turing (ACL 2025, arXiv 2408.09853)."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from agents.contract import Draw, Settings
from agents.errors import InputError, Problem
from agents.language import prompts
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.prompts import Remembered
from agents.stimuli import ConversationStimulus, Utterance

MOST_BYTES = 64 * 1024 * 1024
Speaker = Literal["person", "other"]


# histories


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message; its time ``at`` may be unknown."""

    speaker: Speaker
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000, strip_whitespace=True)]
    at: datetime | None = None

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)


_MESSAGE = TypeAdapter(HistoryMessage)
_FORM = "is no JSON object of speaker (person or other), text (at most 100,000 letters) and, if known, at (ISO 8601)"


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """A file's content. Raises InputError beyond ``most`` bytes."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise InputError(f"{path}: has more than {most // 2**20} MiB; give a part of it")
    return content


def read_history(path: Path) -> list[HistoryMessage]:
    """The messages of a file. Raises InputError that names every bad line, but quotes none."""
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    messages: list[HistoryMessage] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                messages.append(_MESSAGE.validate_json(line))
            except ValidationError:
                problems.append(Problem(str(path), number, None, _FORM))
    if problems:
        raise InputError(f"{path}: {len(problems)} of {len(messages) + len(problems)} lines are no messages", problems)
    if not messages:
        raise InputError(f"{path}: holds no message")
    if len({message.at.tzinfo is None for message in messages if message.at is not None}) > 1:
        raise InputError(f"{path}: some of its times have an offset and some have none")
    return messages


def history_lines(messages: Sequence[HistoryMessage]) -> bytes:
    """The file that :func:`read_history` reads."""
    return b"".join(orjson.dumps(message) + b"\n" for message in messages)


def turns(messages: Sequence[HistoryMessage]) -> list[list[HistoryMessage]]:
    """The messages by turns."""
    return [list(turn) for _, turn in groupby(messages, key=lambda message: message.speaker)]


# style

_PICTURE = "[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u3030\u303d\u203c\u2049]"
_JOINABLE = f"{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]*"
EMOJI = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|{_JOINABLE}(?:\u200d{_JOINABLE})*|[0-9#*]\ufe0f?\u20e3")
"""One emoji, however many characters it is made of: with a tone of skin, joined to others, a flag, a key."""
MARKS = ".!?\u2026"


Style = dict[str, float | None]


def measure(messages: Sequence[HistoryMessage], speaker: Speaker = "person") -> Style:
    """How ``speaker`` writes, by name. ``ends_with_mark`` and ``begins_with_capital`` are shares of messages, ``emoji``
    a count per message."""
    own_turns = [turn for turn in turns(messages) if turn[0].speaker == speaker]
    own = [message for turn in own_turns for message in turn]
    texts = [message.text for message in own]
    words = [len(text.split()) for text in texts]
    cased = [[letter for letter in text if letter.lower() != letter.upper()] for text in texts]
    return {
        "messages": len(own),
        "turns": len(own_turns),
        "words_mean": _mean(words),
        "words_median": statistics.median(words) if words else None,
        "ends_with_mark": _mean([text.rstrip()[-1:] in MARKS for text in texts]),
        "begins_with_capital": _mean([of_text[0].isupper() for of_text in cased if of_text]),
        "emoji": _mean([len(EMOJI.findall(text)) for text in texts]),
        "messages_per_turn": len(own) / len(own_turns) if own_turns else None,
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return statistics.fmean(numbers) if numbers else None


# the agent's person


class PersonSettings(Settings):
    """Whose chat history an agent writes from."""

    person: Path | None = None
    """The chat history of the person as whom it writes; `turinglike history` makes it of a messenger's export."""
    person_turns: int = Field(100, ge=1, le=10_000)
    """How many of the newest turns of that history it is shown."""


def open_person(settings: PersonSettings) -> Person | None:
    """The person of the settings, if any. Raises InputError."""
    if settings.person is None:
        return None
    newest = turns(read_history(settings.person))[-settings.person_turns :]
    messages = tuple(message for turn in newest for message in turn)
    if all(message.speaker != "person" for message in messages):
        raise InputError(f"{settings.person}: no message in it is the person's")
    return Person(messages, measure(messages))


@dataclass(frozen=True, slots=True)
class Person:
    """The prompt's messages, and how the person writes."""

    messages: tuple[HistoryMessage, ...]
    style: Style

    def earlier(self, stimulus: ConversationStimulus, draw: Draw) -> list[Utterance]:
        """The history under this conversation's names, and the conversation."""
        name, other = prompts.speakers(stimulus, draw.options)
        names = {"person": name, "other": other}
        history = [
            Remembered.model_construct(
                speaker=names[message.speaker],
                text=message.text,
                time=None if message.at is None else f"{message.at:%Y-%m-%d %H:%M}",
            )
            for message in self.messages
        ]
        return [*history, *stimulus.history]

    def character(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        """Who the model is, and how the person writes."""
        name, _ = prompts.speakers(stimulus, draw.options)
        sentences = [
            "{name}'s messages have {words_mean:.1f} words in the mean, {words_median:g} in the median.",
            "{name} sends {messages_per_turn:.1f} messages in a row in the mean.",
            "{ends_with_mark:.0%} of them end with a full stop or another mark.",
            "{emoji:.2f} emoji stand in a message.",
        ]
        if self.style["begins_with_capital"] is not None:
            sentences.insert(3, "{begins_with_capital:.0%} begin with a capital letter.")
        return " ".join([instructions(stimulus, draw), " ".join(sentences).format(name=name, **self.style)])

    def request(
        self, stimulus: ConversationStimulus, draw: Draw, earlier: Sequence[Utterance], sampling: Sampling
    ) -> TextRequest:
        """The request for the person's message after ``earlier``."""
        name, other = prompts.speakers(stimulus, draw.options)
        is_burst = stimulus.mode == "burst"
        wanted = "messages, one or several, each on a line of its own" if is_burst else "message"
        topic = f"{name} and {other} talk about {stimulus.topic} now. " if stimulus.topic else ""
        parts = [prompts.log(earlier), f"{topic}Write {name}'s next {wanted}, and nothing else."]
        messages = (
            ChatMessage("system", self.character(stimulus, draw)),
            ChatMessage("user", "\n\n".join(filter(None, parts))),
        )
        return TextRequest(messages=messages, sampling=replace(sampling, stops=(f"\n{other}:",)))


def instructions(stimulus: ConversationStimulus, draw: Draw) -> str:
    """How every such prompt begins."""
    name, other = prompts.speakers(stimulus, draw.options)
    return (
        f"You are {name} and write messages to {other}. You are shown what the two wrote, with the times where "
        f"they are known. Write as {name} does: in the same language and tone, with the same spelling, as briefly."
    )
