"""A chat agent that writes as a person does, from that person's chat history.

X-Turing (ACL 2025, arXiv 2408.09853) prompts a model with dialogues of the person, messages with times, and lets it go
on; its prompt is not published, and this one is this project's own. It is one log: the newest turns of the history,
what an agent wrote itself beforehand (:mod:`agents.language.pseudo_dialogue`), and the present conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, Field

from agents.contract import Draw, Settings
from agents.errors import InputError
from agents.language import prompts
from agents.language.engines.request import ChatMessage, Sampling, TextRequest
from agents.language.history import HistoryMessage, Style, measure, newest, read_history
from agents.language.prompts import Remembered
from agents.language.truncation import own_part
from agents.stimuli import ConversationStimulus, Utterance


class PersonSettings(Settings):
    """Whose chat history an agent writes from."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    person: Path | None = None
    """The chat history of the person as whom it writes; `turinglike history` makes it of a messenger's export."""
    person_turns: int = Field(100, ge=1, le=10_000)
    """How many of the newest turns of that history it is shown."""


def open_person(chosen: PersonSettings) -> Person | None:
    """The person whom the settings name, if they name one. Raises InputError."""
    if chosen.person is None:
        return None
    messages = newest(read_history(chosen.person), chosen.person_turns)
    if all(one.speaker != "person" for one in messages):
        raise InputError(f"{chosen.person}: no message in it is the person's")
    return Person(tuple(messages), measure(messages))


@dataclass(frozen=True, slots=True)
class Person:
    """The messages that the agent is shown, oldest first, and how the person writes in them."""

    messages: tuple[HistoryMessage, ...]
    style: Style

    def said(self, stimulus: ConversationStimulus, draw: Draw) -> list[Utterance]:
        """The history, whose speakers have the names of this conversation, and what was said in it."""
        name, other = prompts.speakers(stimulus, draw.options)
        names = {"person": name, "other": other}
        history = [
            Remembered.model_construct(speaker=names[one.speaker], text=one.text, time=_time(one))
            for one in self.messages
        ]
        return [*history, *stimulus.history]

    def about(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        """Who the model is, and how the person writes."""
        name, _ = prompts.speakers(stimulus, draw.options)
        style = self.style
        told = [
            instructions(stimulus, draw),
            f"{name}'s messages have {style.words_mean:.1f} words in the mean, {style.words_median:g} in the median.",
            f"{name} sends {style.messages_per_turn:.1f} messages in a row in the mean.",
            f"{style.ends_with_mark:.0%} of them end with a full stop or another mark.",
            f"{style.emoji:.2f} emoji stand in a message.",
        ]
        if style.begins_with_capital is not None:
            told.insert(4, f"{style.begins_with_capital:.0%} begin with a capital letter.")
        return " ".join(told)

    def request(
        self, stimulus: ConversationStimulus, draw: Draw, said: Sequence[Utterance], sampling: Sampling
    ) -> TextRequest:
        """The request for what the person writes after ``said``, the newest part of :meth:`said`."""
        name, other = prompts.speakers(stimulus, draw.options)
        is_burst = stimulus.mode == "burst"
        wanted = "messages, one or several, each on a line of its own" if is_burst else "message"
        topic = f"{name} and {other} talk about {stimulus.topic} now. " if stimulus.topic else ""
        parts = [prompts.log(said), f"{topic}Write {name}'s next {wanted}, and nothing else."]
        messages = (
            ChatMessage("system", self.about(stimulus, draw)),
            ChatMessage("user", "\n\n".join(filter(None, parts))),
        )
        return TextRequest(messages=messages, sampling=replace(sampling, stops=(f"\n{other}:",)))


def instructions(stimulus: ConversationStimulus, draw: Draw) -> str:
    """What every such model is told, whoever the person is."""
    name, other = prompts.speakers(stimulus, draw.options)
    return (
        f"You are {name} and write messages to {other}. You are shown what the two wrote, with the times where "
        f"they are known. Write as {name} does: in the same language and tone, with the same spelling, as briefly."
    )


def message(stimulus: ConversationStimulus, text: str, draw: Draw) -> str:
    """What is sent of what a model wrote: the person's messages, whether or not the name stands before them."""
    return own_part(stimulus, text, *prompts.speakers(stimulus, draw.options))


def _time(message: HistoryMessage) -> str | None:
    return None if message.at is None else f"{message.at:%Y-%m-%d %H:%M}"
