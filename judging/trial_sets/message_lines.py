"""A conversation as judges see it: its messages by two speakers, A and B, and its turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from agents.answers import ConversationAnswer, Message
from agents.stimuli import ShownAnswer
from serving.conversations.scenario import speaker_name

Letter = Literal["A", "B"]
MOST_SECONDS = 86_400.0  # of a delay, a day: longer ones are errors of a clock
DECIMALS = 1  # of delays in seconds, as judges see them: records of people have more, and those of machines others


class MessageLine(NamedTuple):
    """A message of a conversation."""

    speaker: Letter
    """A for who writes first in the conversation, B for the other one."""
    text: str
    """The message as it was written, with its line breaks."""
    agent: str
    """The agent or participant who wrote it; "" where the stimulus has the text."""
    delay: float | None
    """Seconds that it took; None where that is not known."""


def messages_of(answer: ConversationAnswer, row: Mapping[str, Any]) -> list[MessageLine] | None:
    """The messages, the stimulus's history first; None if more than two speak."""
    messages: list[tuple[str, str, str, float | None]] = [(speaker, text, "", None) for speaker, text in _history(row)]
    before: float | None = None
    for message in answer.messages:
        agent = "" if message.finish == "opener" else message.agent
        messages.append((message.speaker, message.text, agent, _delay(message, before)))
        before = message.at
    letters = _letters([speaker for speaker, *_ in messages])
    if letters is None:
        return None
    return [MessageLine(letters[speaker], text, agent, delay) for speaker, text, agent, delay in messages]


def pseudo_turns(answer: ConversationAnswer, row: Mapping[str, Any]) -> list[Sequence[MessageLine]]:
    """The turns that an agent, of two the first, wrote beforehand; a new topic begins a turn."""
    speakers = [speaker for speaker, _ in _history(row)]
    letters = _letters([*speakers, *(message.speaker for message in answer.messages)]) or {}
    messages = [
        message for message in answer.pseudo if message.agent == answer.pseudo[0].agent and message.speaker in letters
    ]
    written = [
        turn
        for _, of_topic in groupby(messages, key=lambda message: message.topic)
        for turn in turns([MessageLine(letters[message.speaker], message.text, "", None) for message in of_topic])
    ]
    wanted = row.get("pseudo")
    return written[: wanted["topics"] * wanted["turns"]] if wanted else written


def turns(lines: Sequence[MessageLine]) -> list[Sequence[MessageLine]]:
    """What a speaker says before the other does."""
    return [list(turn) for _, turn in groupby(lines, key=lambda line: line.speaker)]


def as_shown(lines: Sequence[MessageLine], *, show_delays: bool = False) -> ShownAnswer:
    """Messages as judges see them: speakers A and B, each message in one line.

    With ``show_delays`` each message but the first says how long it took, in seconds with one decimal. The first one
    follows no other, so that its delay would be counted from something else, in each program from another moment."""
    messages = []
    for place, line in enumerate(lines):
        message: dict[str, Any] = {"speaker": line.speaker, "text": " ".join(line.text.split())}
        if show_delays and place > 0 and line.delay is not None:
            message["delay_s"] = round(line.delay, DECIMALS)
        messages.append(message)
    return ShownAnswer.model_validate({"messages": messages})


def are_delays_known(lines: Sequence[MessageLine]) -> bool:
    """Whether each message but the first has a delay of 0 seconds to a day.

    An excerpt with a gap is not shown beside others without: where a person's messages lack delays and a machine's do
    not, the gap itself says who is who. A clock that went backwards leaves a delay below 0, which is not known."""
    return all(line.delay is not None and 0 <= line.delay <= MOST_SECONDS for line in lines[1:])


def _history(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(speaker_name(line["speaker"], row.get("names")), line["text"]) for line in row.get("history") or ()]


def _delay(message: Message, before: float | None) -> float | None:
    if message.delay_s is not None or message.at is None or before is None:
        return message.delay_s
    return message.at - before


def _letters(speakers: Sequence[str]) -> dict[str, Letter] | None:
    names = list(dict.fromkeys(speakers))
    return dict(zip(names, ("A", "B"), strict=False)) if len(names) <= 2 else None
