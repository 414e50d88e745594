"""The agent ``eliza``: conversation by keywords, in the manner of Weizenbaum 1966; no model, no weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from agents.answers import TurnAnswer
from agents.contract import MIB, Agent, Draw, Reply, Settings
from agents.language import eliza_past
from agents.language.eliza_talk import Chat, Doctor, Scene, Talk
from agents.stimuli import ConversationStimulus, Stimulus, Task

HERE = Path(__file__).parent
SCRIPT = HERE / "eliza_script.json"
TOPICS = HERE / "eliza_topics.json"


class ElizaSettings(Settings):
    """How it talks."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    script: Literal["chat", "doctor"] = "chat"
    """How it talks: "chat" also speaks for itself, about the topic; "doctor" only asks back, as in 1966."""
    max_words: int = Field(30, ge=10, le=200)
    """The longest message, in words; what does not fit is left out by whole sentences."""


class ElizaAgent(Agent[ElizaSettings]):
    """Weizenbaum, "ELIZA", CACM 9(1), 1966; see :mod:`agents.language.eliza_engine`.

    A reply depends on the history, the speaker and the seed alone, and the seed decides only between rules that have
    been used equally often. No message is said twice in a conversation, nor a sentence of four words or more.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("conversation",)
    Settings = ElizaSettings
    memory = 128 * MIB
    batch_size = 64
    parallel = False

    def open(self) -> None:
        shared = json.loads(SCRIPT.read_text("utf-8"))
        words = self.settings.max_words
        if self.settings.script == "doctor":
            self._talk: Talk = Doctor(shared["doctor"], shared, words)
        else:
            self._talk = Chat(shared["chat"], shared, words, json.loads(TOPICS.read_text("utf-8")))

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        return [self._reply(stimulus, draw) for stimulus, draw in zip(batch, draws, strict=True)]

    def _reply(self, stimulus: Stimulus, draw: Draw) -> Reply:
        assert isinstance(stimulus, ConversationStimulus)
        side = draw.options.get("speaker") or eliza_past.next_side(stimulus)
        partner = stimulus.names[1 - eliza_past.SIDES.index(side)] if stimulus.names else None
        scene = Scene(side, partner, stimulus.topic)
        return Reply(TurnAnswer(text=self._talk.say(eliza_past.past(stimulus, side), scene, draw.seed), finish="stop"))
