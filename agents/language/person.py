"""A chat agent that writes as a person does, after X-Turing (ACL 2025, arXiv 2408.09853).

The prompt shows the newest turns of the person's own chat history and says in numbers how the person writes. Errors
never quote the history.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from agents.contract import Draw, Settings
from agents.errors import InputError, Problem
from agents.language import prompts
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.prompts import Remembered
from agents.stimuli import ConversationStimulus, Utterance
from agents.word_boundaries import count_words

_PICTURE = "[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u3030\u303d\u203c\u2049]"
_JOINABLE = f"{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]*"
EMOJI = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|{_JOINABLE}(?:\u200d{_JOINABLE})*|[0-9#*]\ufe0f?\u20e3")
"""A single emoji, of however many characters: with a tone of skin, joined to others, a flag, a key."""


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message of a person's chat history."""

    speaker: Literal["person", "other"]
    """Who wrote it: the person as whom the agent writes, or the other."""
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000, strip_whitespace=True)]
    """What was written."""
    at: datetime | None = None
    """When, if that is known; only the minute is shown."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)


_MESSAGE = TypeAdapter(HistoryMessage)
_FORM = "is no JSON object of speaker (person or other), text (at most 100,000 letters) and, if known, at (ISO 8601)"


class PersonSettings(Settings):
    """Whose chat history an agent writes from."""

    person: Path | None = None
    """The chat history of the person as whom it writes: a line of JSON a message, with speaker, text and at."""
    person_turns: int = Field(100, ge=1, le=10_000)
    """How many of the newest turns of that history the model is shown."""


def open_person(settings: PersonSettings) -> Person | None:
    """The person whose history the settings name, or None. Raises InputError for a bad file, and for one without a
    message of the person's."""
    if settings.person is None:
        return None
    turns = [list(turn) for _, turn in groupby(read_message_file(settings.person), key=lambda message: message.speaker)]
    newest = turns[-settings.person_turns :]
    own_turns = [turn for turn in newest if turn[0].speaker == "person"]
    if not own_turns:
        raise InputError(f"{settings.person}: no message in it is the person's")
    return Person([message for turn in newest for message in turn], style(own_turns))


def read_message_file(path: Path) -> list[HistoryMessage]:
    """The messages of a file with a JSON object on each line. Raises InputError that names every bad line and quotes
    none."""
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
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
    return messages


def style(turns: Sequence[Sequence[HistoryMessage]]) -> str:
    """How the person writes whose ``turns`` these are: lengths, marks, capitals and emoji, in sentences in which
    ``{name}`` stands for the name."""
    texts = [message.text for turn in turns for message in turn]
    words = [count_words(text) for text in texts]
    marks = statistics.fmean(text[-1] in ".!?\u2026" for text in texts)
    emoji = statistics.fmean(len(EMOJI.findall(text)) for text in texts)
    cased = [[letter for letter in text if letter.lower() != letter.upper()] for text in texts]
    capitals = [letters[0].isupper() for letters in cased if letters]
    mean = statistics.fmean(words)
    median = statistics.median(words)
    sentences = [
        f"{{name}}'s messages have {mean:.1f} words in the mean, {median:g} in the median.",
        f"{{name}} sends {len(texts) / len(turns):.1f} messages in a row in the mean.",
        f"{marks:.0%} of them end with a full stop or another mark.",
    ]
    if capitals:
        sentences.append(f"{statistics.fmean(capitals):.0%} begin with a capital letter.")
    sentences.append(f"{emoji:.2f} emoji stand in a message.")
    return " ".join(sentences)


@dataclass(frozen=True, slots=True)
class Person:
    """A person's history as a prompt needs it."""

    messages: Sequence[HistoryMessage]
    """The messages of the newest turns, in order of time."""
    style: str
    """What :func:`style` says of them."""

    def earlier(self, stimulus: ConversationStimulus, draw: Draw) -> list[Utterance]:
        """The history under this conversation's names, with its times, and then the conversation's own messages."""
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
        """The system message: who the model is, and how the person writes."""
        name, _ = prompts.speakers(stimulus, draw.options)
        return f"{instructions(stimulus, draw)} {self.style.replace('{name}', name)}"

    def request(
        self, stimulus: ConversationStimulus, draw: Draw, earlier: Sequence[Utterance], sampling: Sampling
    ) -> TextRequest:
        """The request for the person's next message after ``earlier``, or for one or several in a burst. It stops where
        the other would speak."""
        name, other = prompts.speakers(stimulus, draw.options)
        is_burst = stimulus.mode == "burst"
        wanted = "messages, one or several, each on a line of its own" if is_burst else "message"
        topic = f"{name} and {other} talk about {stimulus.topic} now. " if stimulus.topic else ""
        parts = [prompts.chat_log(earlier), f"{topic}Write {name}'s next {wanted}, and nothing else."]
        messages = (
            ChatMessage("system", self.character(stimulus, draw)),
            ChatMessage("user", "\n\n".join(filter(None, parts))),
        )
        return TextRequest(messages=messages, sampling=replace(sampling, stops=(f"\n{other}:",)))


def instructions(stimulus: ConversationStimulus, draw: Draw) -> str:
    """How every prompt of a person begins; it says nothing of the history, so that it may be shown."""
    name, other = prompts.speakers(stimulus, draw.options)
    return (
        f"You are {name} and write messages to {other}. You are shown what the two wrote, with the times where "
        f"they are known. Write as {name} does: in the same language and tone, with the same spelling, as briefly."
    )
