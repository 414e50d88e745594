"""A scheduler that answers turns of conversations from a script."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import orjson

from agents.answers import TurnAnswer
from agents.contract import Declaration, Draw
from agents.language.filters.policies import Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.conversation import STRIDE, Conversation
from serving.conversations.scenario import PairSettings
from serving.scheduling.worker import AgentRequest

Script = Callable[[int, int], str]  # (turn, attempt in seeds) -> what is said
OWN = {"filter": "own", "rejected": True, "found": "y"}  # what an agent's own filter says


class Scripted:
    """Answers as a scheduler does, at once; counts what it is asked."""

    def __init__(self, script: Script, own: Mapping[tuple[int, int], str] | None = None) -> None:
        self.script = script
        self.own = own or {}  # how an agent's own filters or an error end a turn, by (turn, first attempt)
        self.asked: list[tuple[int, int]] = []
        self.seen: list[tuple[str, ConversationStimulus, Mapping[str, Any]]] = []

    def text(self, stimulus: ConversationStimulus, options: Mapping[str, Any], turn: int, attempt: int) -> str:
        return self.script(turn, attempt)

    async def answer(
        self,
        agent: str,
        stimulus: ConversationStimulus,
        sample: int,
        *,
        seed: int,
        turn: int,
        options: Mapping[str, Any],
        name: str,
        order: int,
        first_attempt: int,
        failed_before: str,
    ) -> AgentRequest:
        self.asked.append((turn, first_attempt))
        self.seen.append((agent, stimulus, options))
        item = AgentRequest(agent, b"", stimulus.id, sample, seed, name, turn, options, order)
        item.first_attempt = first_attempt
        item.draw_seed()
        text = self.text(stimulus, options, turn, first_attempt)
        item.status = "ok"
        item.answer = TurnAnswer(text=text).model_dump_json().encode()
        if (turn, first_attempt) in self.own:
            item.status = self.own[turn, first_attempt]  # type: ignore[assignment]
            item.error = None
            item.attempts = [item.attempt_record([{"filter": "noted", "rejected": False, "found": "x"}, OWN])]
        item.raw = orjson.dumps({"tokens": 10 * turn + first_attempt % STRIDE})
        item.worker = {"host": "h", "device": "cpu", "batch_size": 1}
        return item


def hold(
    scheduler: Scripted, settings: PairSettings, policy: Policy, stimulus: bytes, **more: Any
) -> tuple[AgentRequest, list[bytes]]:
    """A conversation of the agents a and b, and the lines of its journal."""
    lines: list[bytes] = []
    talk = Conversation("a~b", ("a", "b"), stimulus, 0, 7, 1, policy, settings, on_turn=lines.append, **more)
    return asyncio.run(talk.run(scheduler)), lines  # type: ignore[arg-type]


class _Talker:
    def instructions(self, stimulus: ConversationStimulus, draw: Draw) -> str:
        return f"You are {draw.options['speaker']}."


class SlowScheduler:
    """A scheduler of one agent, which takes a while over the next of its ``replies``, a text or an error."""

    run_seed = 7

    def __init__(self, replies: Sequence[str | Exception], seconds: float = 1.0) -> None:
        declared = Declaration(tasks=("conversation",), writes_dialogues=True)
        self.dispatchers = {"talker": SimpleNamespace(agent=_Talker(), declared=declared)}
        self.replies = list(replies)
        self.seconds = seconds
        self.requests: list[list[str]] = []

    def next_order(self) -> int:
        return 1

    async def answer(self, agent: str, stimulus: ConversationStimulus, sample: int = 0, **about: Any) -> AgentRequest:
        self.requests.append([line.text for line in stimulus.history])
        await asyncio.sleep(self.seconds)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        item = AgentRequest(agent, b"", stimulus.id, sample, about["seed"], about["name"], about["turn"])
        item.first_attempt = about["first_attempt"]
        item.draw_seed()
        item.status = "ok"
        item.answer = TurnAnswer(text=reply).model_dump_json().encode()
        item.raw = orjson.dumps({"text": f"B: {reply}", "tokens": 5})
        item.worker = {"host": "h", "device": "cpu", "batch_size": 2}
        if reply == "rejected":
            item.status = "rejected"
            item.attempts = [item.attempt_record([{"filter": "bad", "rejected": True, "found": "x"}])]
        return item


def row(**fields: Any) -> bytes:
    return json.dumps({"id": "c", "task": "conversation", "exchanges": 6, **fields}).encode()


def fresh(turn: int, attempt: int) -> str:
    return f"Message number {turn} of attempt {attempt} says something new."
