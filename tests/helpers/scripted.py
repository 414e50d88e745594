"""A scheduler that answers turns of conversations from a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from agents.answers import TurnAnswer
from agents.stimuli import ConversationStimulus
from serving.conversations.conversation import STRIDE
from serving.scheduling.request import AgentRequest

Script = Callable[[int, int], str]  # (turn, attempt in seeds) -> what is said
OWN = {"filter": "own", "rejected": True, "found": "y"}  # what an agent's own filter says


class Scripted:
    """Answers as a scheduler does, at once; counts what it is asked."""

    def __init__(self, script: Script, own: Mapping[tuple[int, int], str] | None = None) -> None:
        self.script = script
        self.own = own or {}  # how an agent's own filters or an error end a turn, by (turn, first attempt)
        self.asked: list[tuple[int, int]] = []
        self.seen: list[tuple[str, ConversationStimulus, Mapping[str, Any]]] = []

    async def answer(
        self, agent: str, stimulus: ConversationStimulus, sample: int, *, seed: int, turn: int,
        options: Mapping[str, Any], name: str, order: int, first_attempt: int, failed_before: str,
    ) -> AgentRequest:  # fmt: skip
        self.asked.append((turn, first_attempt))
        self.seen.append((agent, stimulus, options))
        item = AgentRequest(agent, b"", stimulus.id, sample, seed, name, turn, options, order)
        item.first_attempt = first_attempt
        item.draw_seed()
        item.status, item.answer = "ok", TurnAnswer(text=self.script(turn, first_attempt)).model_dump_json().encode()
        if (turn, first_attempt) in self.own:
            item.status, item.error = self.own[turn, first_attempt], None  # type: ignore[assignment]
            item.attempts = [item.attempt_record([{"filter": "noted", "rejected": False, "found": "x"}, OWN])]
        item.raw = orjson.dumps({"tokens": 10 * turn + first_attempt % STRIDE})
        item.worker = {"host": "h", "device": "cpu", "batch_size": 1}
        return item


def row(**fields: Any) -> bytes:
    return json.dumps({"id": "c", "task": "conversation", "exchanges": 6, **fields}).encode()


def fresh(turn: int, attempt: int) -> str:
    return f"Message number {turn} of attempt {attempt} says something new."
