"""A conversation as judges may see it: who spoke as A (who spoke first) and B, in turns.

A turn is what one speaker says before the other does: one message, or several in a burst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from agents.answers import ConversationAnswer, Message
from serving.conversations.scenario import speaker_name

Letter = Literal["A", "B"]
PERSON = "human"


class Line(NamedTuple):
    """One message. ``agent`` is whose it is, empty for what the stimulus gives, its history and its opener; ``delay``
    is the seconds before it, None where nobody knows them."""

    speaker: Letter
    text: str
    agent: str
    delay: float | None


def heard(answer: ConversationAnswer, row: Mapping[str, Any]) -> list[Line] | None:
    """The messages of a conversation about the stimulus ``row``; None if more than two speak."""
    names = row.get("names")
    said: list[tuple[str, str, str, float | None]] = [
        (speaker_name(one["speaker"], names), one["text"], "", None) for one in row.get("history") or ()
    ]
    before: float | None = None
    for one in answer.messages:
        said.append((one.speaker, one.text, "" if one.finish == "opener" else one.agent, _delay(one, before)))
        before = one.at
    letters = _letters([speaker for speaker, *_ in said])
    if letters is None:
        return None
    return [Line(letters[speaker], text, agent, delay) for speaker, text, agent, delay in said]


def written(answer: ConversationAnswer, row: Mapping[str, Any]) -> list[Sequence[Line]]:
    """The turns that one agent wrote itself beforehand as if they had been said, with the letters that the speakers
    have in the conversation; of two who did, who may be called alike, the first's. A new topic begins a turn."""
    [*speakers] = (speaker_name(one["speaker"], row.get("names")) for one in row.get("history") or ())
    letters = _letters([*speakers, *(one.speaker for one in answer.messages)]) or {}
    own = [one for one in answer.pseudo if one.agent == answer.pseudo[0].agent and one.speaker in letters]
    found = [
        turn
        for _, some in groupby(own, key=lambda one: one.topic)
        for turn in turns([Line(letters[one.speaker], one.text, "", None) for one in some])
    ]
    asked = row.get("pseudo")
    return found[: asked["topics"] * asked["turns"]] if asked else found


def turns(lines: Sequence[Line]) -> list[Sequence[Line]]:
    """The messages by turns."""
    begins = [at for at, line in enumerate(lines) if at == 0 or line.speaker != lines[at - 1].speaker]
    return [lines[begin:end] for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True)]


def is_person(agent: str) -> bool:
    """Whether who speaks is a person."""
    return agent.partition(":")[0] == PERSON


def _delay(message: Message, before: float | None) -> float | None:
    if message.delay_s is not None or message.at is None or before is None:
        return message.delay_s
    return message.at - before


def _letters(speakers: Sequence[str]) -> dict[str, Letter] | None:
    names = list(dict.fromkeys(speakers))
    return dict(zip(names, ("A", "B"), strict=False)) if len(names) <= 2 else None
