"""What becomes of a generated message: it is cut to the lengths of people's, put in small letters, or too short.

The 2025 paper draws a length in words for each reply and cuts a longer reply "at the most appropriate punctuation
mark". In its programs that is the last full stop, exclamation or question mark within the length. Words are what spaces
separate.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.answers import TurnAnswer, WordAnswer, is_blank
from agents.contract import Draw, Reply, Settings, Verdict
from agents.errors import InputError, Problem
from agents.language.labels import called, short_names, without_label
from agents.language.pseudo_dialogue import read_messages
from agents.language.words.replies import no_word
from agents.stimuli import ConversationStimulus, Stimulus

Fallback = Literal["empty", "whole"]

GREETED = "greeting"  # the finish of a first message that no model says
_LONGEST = 100_000


class TruncationSettings(Settings):
    """How long a reply may be, and how a longer one is cut."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    shape: float = Field(2.09, ge=0.01, le=10_000)
    """The shape of the Gamma distribution of lengths; 2.09 and a scale of 7.0 have the mean and spread of people's."""
    scale: float = Field(7.0, gt=0, le=10_000)
    """The scale, in words, of the Gamma distribution of lengths."""
    least: int = Field(1, ge=1)
    """The shortest length that is drawn, in words."""
    lengths: Path | None = None
    """People's messages, whose lengths are drawn instead: records of conversations (.jsonl), or a length a line."""
    people: bool = False
    """Whether messages to people are cut, too; the papers cut none but in their online test."""
    fallback: Fallback = "empty"
    """What is left where no mark stands within the length: empty (nothing, so that it is asked for again), or whole."""


def draw_length(seed: int, settings: TruncationSettings, lengths: Sequence[int] = ()) -> int:
    """A target length in words, the same for the same seed: one of ``lengths`` (of :func:`read_lengths`) or, if there
    is none, a draw from the Gamma distribution, rounded; never below ``settings.least``."""
    numbers = random.Random(seed)
    drawn = lengths[int(numbers.random() * len(lengths))] if lengths else _rounded(numbers, settings)
    return max(settings.least, drawn)


def read_lengths(settings: TruncationSettings | None) -> tuple[int, ...]:
    """The lengths in words in the file that ``settings`` name; none if they name no file.

    A ``.jsonl`` file holds records: the lengths are those of the messages of speakers called "human…". Any other has
    one whole number from 0 a line; empty lines do not count. Raises InputError.
    """
    path = None if settings is None else settings.lengths
    if path is None:
        return ()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a file of lengths: {error}") from None
    found: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if path.suffix == ".jsonl" and text:
            try:
                found += _peoples_lengths(text)
            except ValidationError as error:
                problems.append(Problem(str(path), number, None, f"no record: {error.errors()[0]['msg']}"))
        elif text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= _LONGEST:
            found.append(int(text))
        elif text:
            problems.append(Problem(str(path), number, None, f"{text[:40]!r} is no whole number from 0 to {_LONGEST}"))
    if problems:
        raise InputError(f"{path}: {len(problems)} of {len(lines)} lines hold no length", problems)
    if not found:
        raise InputError(f"{path}: holds no length")
    return tuple(found)


class _Said(BaseModel):
    agent: str | None = None
    text: str


class _Talk(BaseModel):
    messages: list[_Said] = []


class _Record(BaseModel):
    """As much of a record as tells what people said in a conversation."""

    answer: _Talk | None


def _peoples_lengths(line: str) -> list[int]:
    said = _Record.model_validate_json(line).answer or _Talk()
    return [len(one.text.split()) for one in said.messages if (one.agent or "").startswith("human")]


def spoken(stimulus: ConversationStimulus, text: str, name: str, other: str, *also: str) -> str:
    """What ``name``, who is called as ``also`` says too, says of what a model wrote: all of it on one line, or in a
    burst the messages, one a line, up to where it goes on as ``other``. See :func:`said_alone`."""
    if stimulus.mode == "burst":
        return own_part(stimulus, text, name, other)
    return said_alone(stimulus, " ".join(text.split()), name, other, *also)


def own_part(stimulus: ConversationStimulus, text: str, name: str, other: str) -> str:
    """What ``name`` says where a model wrote lines of "Name: message", up to where it goes on as ``other``."""
    own = takewhile(lambda one: one.speaker == name, read_messages(text, (name, other), name, stimulus.mode))
    said = [said_alone(stimulus, one.text, name, other) for one in own]
    return "\n".join(filter(None, said))


def said_alone(stimulus: ConversationStimulus, text: str, name: str, other: str, *also: str) -> str:
    """A message without the speaker's own label before it and quotation marks around it. To a person none goes out
    with any label; between machines another's stays, as it is a finding of the filters."""
    names = stimulus.names or (name, other)
    own, others = short_names(names, name) if name in names else (called(name), called(other))
    whose = ("own",) if stimulus.type == "MM" else ("own", "other", "nobody")
    return without_label(text, own.union(also), others, whose=whose)


def sent_message(
    stimulus: ConversationStimulus,
    text: str,
    draw: Draw,
    truncation: TruncationSettings | None,
    lengths: Sequence[int],
    lower_case: float,
) -> str:
    """What is sent of ``text`` (of :func:`spoken`): each line is cut to a length of its own, drawn by ``truncation`` or
    from ``lengths``.

    ``lower_case`` is the share of messages that are put in small letters.
    """
    if truncation is not None and (stimulus.type == "MM" or truncation.people):
        lines = [
            truncate(line, draw_length(draw.seed + index, truncation, lengths), truncation.fallback)
            for index, line in enumerate(text.split("\n"))
        ]
        text = "\n".join(filter(None, lines))
    return text.lower() if random.Random(f"case {draw.seed}").random() < lower_case else text


def says_too_little(
    stimulus: Stimulus, reply: Reply, least: int, attempts: int, *, before_cut: bool = False
) -> Verdict | None:
    """The filter of replies without an acceptable word, and of messages of fewer than ``least`` words, as they are sent
    or ``before_cut``. The last of the ``attempts`` at a message is kept if it has any word; every message to a person
    that is not empty is ("We applied no filtering to human-human or human-AI dialogues", 2025 paper, Methods), and
    every part of a pseudo-dialogue."""
    if isinstance(reply.answer, WordAnswer):
        return no_word(reply.answer, reply.raw if isinstance(reply.raw, str) else reply.raw["text"])
    if not isinstance(reply.answer, TurnAnswer) or reply.answer.finish == GREETED:
        return None
    if reply.raw.get("pseudo"):
        return None
    if isinstance(stimulus, ConversationStimulus) and stimulus.type != "MM":
        found = f"no text: {reply.raw['text'][:200]}"
        return Verdict("too_few_words", True, found) if is_blank(reply.answer.text) else None
    text = reply.raw["text"] if before_cut else reply.answer.text
    count = sum(any(map(str.isalnum, word)) for word in text.split())
    if count >= max(least, 1):
        return None
    is_last = reply.raw["attempt"] + 1 >= attempts
    return Verdict("too_few_words", count == 0 or not is_last, f"{count} words: {reply.raw['text'][:200]}")


def truncate(text: str, words: int, fallback: Fallback = "empty") -> str:
    """``text`` if it has at most ``words`` words; otherwise its beginning, up to the last ``.``, ``!`` or ``?`` within
    them. Where there is none ``fallback`` says what is left: nothing, or all of the text."""
    found = text.split()
    if len(found) <= words:
        return text
    begins = " ".join(found[:words])
    kept = begins[: max(begins.rfind(mark) for mark in ".!?") + 1]
    return text if fallback == "whole" and not kept else kept


def _rounded(numbers: random.Random, settings: TruncationSettings) -> int:
    """A draw from the Gamma distribution in whole words, kept below what any message may have."""
    return round(min(_LONGEST, numbers.gammavariate(settings.shape, settings.scale)))
