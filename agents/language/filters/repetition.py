"""Filters that compare a message with those before it.

Each takes all messages and returns its findings by the place (from 0) of the message in which they came true; what one
says counts the messages up to that one. Messages are numbered from 1 in what is said. The time is linear in the text,
however many messages there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from agents.language.filters.texts import key, quoted, sentences, words


class Finding(NamedTuple):
    """What was found, and how much of it: times, messages."""

    size: int
    text: str


def repeated_sentence(texts: Sequence[str], times: int, least: int) -> dict[int, Finding]:
    """A sentence of at least ``least`` words that stands in ``times`` messages, whoever says it."""
    said: Counter[str] = Counter()
    found: dict[int, Finding] = {}
    for i, text in enumerate(texts):
        here: dict[str, str] = {}
        for sentence in sentences(text):
            spoken = words(sentence)
            if len(spoken) >= least:
                here.setdefault(" ".join(spoken), sentence)
        said.update(here.keys())
        if here and said[most := max(here, key=said.__getitem__)] >= times:
            found[i] = Finding(said[most], f"{quoted(here[most])} in {said[most]} messages")
    return found


def repeated_block(texts: Sequence[str], length: int) -> dict[int, Finding]:
    """``length`` messages in a row that all repeat, in their order, messages before the first of them."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(key(text), len(numbers)) for text in texts]
    first_end: dict[tuple[int, ...], int] = {}
    found: dict[int, Finding] = {}
    before, run = -1, 0
    for i in range(length - 1, len(codes)):
        end = first_end.setdefault(tuple(codes[i - length + 1 : i + 1]), i)
        if i - end < length:
            before, run = -1, 0
            continue
        # The block is as long as the places go on together, up to where it would overlap itself.
        run = min(run + 1, i - end) if before >= 0 and end == before + 1 else length
        before = end
        found[i] = Finding(run, f"{_span(i, run)} as {_span(end, run)}")
    return found


def same_message(messages: Sequence[tuple[str, str]], times: int) -> dict[int, Finding]:
    """A whole message, however short, that its speaker says for the ``times``-th time or more."""
    said: Counter[tuple[str, str]] = Counter()
    found: dict[int, Finding] = {}
    for i, (speaker, text) in enumerate(messages):
        what = (speaker, key(text))
        said[what] += 1
        if said[what] >= times:
            found[i] = Finding(said[what], f"{quoted(text)} {said[what]} times from {speaker}")
    return found


def _span(end: int, length: int) -> str:
    """Messages by their numbers from 1: the ``length`` that end at place ``end``."""
    return f"message {end + 1}" if length == 1 else f"messages {end + 2 - length} to {end + 1}"
