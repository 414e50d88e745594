"""A scheduler that answers turns of conversations from a script."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import orjson

from agents.answers import TurnAnswer
from agents.contract import Declaration, Draw, Finding
from agents.language.filters.policies import Policy
from agents.stimuli import ConversationStimulus
from serving.conversations.conversation import STRIDE, Conversation
from serving.conversations.scenario import PairSettings
from serving.scheduling.request import Attempt, Outcome, OutcomeStatus, Request, Where
from serving.sets.stimulus_row import StimulusRow

Script = Callable[[int, int], str]  # (turn, attempt in seeds) -> what is said
OWN = Finding("own", True, "y")  # what an agent's own filter says
NOTED = Finding("noted", False, "x")


class Scripted:
    """Answers as a scheduler does, at once; counts what it is asked."""

    def __init__(self, script: Script, own: Mapping[tuple[int, int], OutcomeStatus] | None = None) -> None:
        self.script = script
        self.own = own or {}  # how an agent's own filters or an error end a turn, by (turn, first attempt)
        self.asked: list[tuple[int, int]] = []
        self.seen: list[tuple[str, ConversationStimulus, Mapping[str, Any]]] = []

    def text(self, stimulus: ConversationStimulus, options: Mapping[str, Any], turn: int, attempt: int) -> str:
        return self.script(turn, attempt)

    async def answer(self, request: Request) -> Outcome:
        assert request.turn is not None
        assert request.options is not None
        stimulus = request.row.parsed()
        assert isinstance(stimulus, ConversationStimulus)
        asked = (request.turn, request.first_attempt)
        self.asked.append(asked)
        self.seen.append((request.agent, stimulus, request.options))
        text = self.text(stimulus, request.options, *asked)
        outcome = Outcome(
            request=request,
            status=self.own.get(asked, "ok"),
            seed=request.seed(request.first_attempt),
            attempt=request.first_attempt,
            answer=TurnAnswer(text=text).model_dump_json().encode(),
            worker=Where("h", "cpu", 1),
        )
        attempts: tuple[Attempt, ...] = ()
        if asked in self.own:
            attempts = (outcome.as_attempt((NOTED, OWN)),)
        raw = orjson.dumps({"tokens": 10 * request.turn + request.first_attempt % STRIDE})
        return outcome._replace(raw=raw, attempts=attempts)


def hold(
    scheduler: Scripted, settings: PairSettings, policy: Policy, stimulus: bytes, **more: Any
) -> tuple[Outcome, list[bytes]]:
    """A conversation of the agents a and b, and the lines of its journal."""
    lines: list[bytes] = []
    request = Request(agent="a", row=StimulusRow.of_line(stimulus, 0, None), name="a~b", run_seed=7, order=1)
    talk = Conversation(request, ("a", "b"), policy, settings, on_turn=lines.append, **more)
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

    async def answer(self, request: Request) -> Outcome:
        stimulus = request.row.parsed()
        assert isinstance(stimulus, ConversationStimulus)
        self.requests.append([line.text for line in stimulus.history])
        await asyncio.sleep(self.seconds)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        outcome = Outcome(
            request=request,
            status="rejected" if reply == "rejected" else "ok",
            seed=request.seed(request.first_attempt),
            attempt=request.first_attempt,
            answer=TurnAnswer(text=reply).model_dump_json().encode(),
            raw=orjson.dumps({"text": f"B: {reply}", "tokens": 5}),
            worker=Where("h", "cpu", 2),
        )
        if reply != "rejected":
            return outcome
        return outcome._replace(attempts=(outcome.as_attempt((Finding("bad", True, "x"),)),))


def row(**fields: Any) -> bytes:
    return json.dumps({"id": "c", "task": "conversation", "exchanges": 6, **fields}).encode()


def fresh(turn: int, attempt: int) -> str:
    return f"Message number {turn} of attempt {attempt} says something new."
