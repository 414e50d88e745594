"""A conversation: a coroutine that asks its two agents for one turn after the other, through the scheduler.

It holds no device. Every accepted turn goes into the run's journal; a conversation that is resumed takes its turns
from there and goes on where it ended.

What its filters find may mean that a turn, or the whole conversation, is sampled again (see
:mod:`agents.language.filters`). The first attempt of a turn has number 0, further ones count on; those in the c-th
attempt at the conversation (from 0) begin at :data:`STRIDE` c, and everything that is drawn for the conversation
(topic, names, personas, who starts) comes from the seed of that attempt. Filters are pure functions, so a conversation
that is replayed is rejected again where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.contract import Draw
from agents.errors import InputError
from agents.language.filters.policies import Judgement
from agents.language.filters.settings import FilterSettings, Policy
from agents.stimuli import ConversationStimulus, parse_row
from serving.conversations import turns
from serving.conversations.scenario import SIDES, draw_scenario
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler

STRIDE = 10_000
OLDER = {"status": "ok", "error": None, "raw": None}  # what a line of version 0.1 does not say
Told = Callable[[ConversationStimulus, Draw], str | None]
Turns = Mapping[tuple[int, int], Mapping[str, Any]]  # journal lines by (attempt at the conversation, turn)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is done about bad turns and conversations, and how often they are tried."""

    policy: Policy = field(default_factory=Policy)
    thresholds: FilterSettings = field(default_factory=FilterSettings)
    attempts: int = 1


@dataclass(slots=True)
class Conversation:
    """One conversation of the pair ``name`` = (``first``, ``second``) about one stimulus.

    ``turns`` are journalled turns to replay, ``on_turn`` is called with each new one's journal line. ``told`` are the
    two agents' :meth:`agents.contract.Agent.instructions`. :meth:`run` returns an item as the scheduler would, its
    answer the whole conversation.
    """

    name: str
    pair: tuple[str, str]
    row: bytes
    sample: int
    run_seed: int
    order: int
    rules: Rules = field(default_factory=Rules)
    turns: Turns = field(default_factory=dict)
    on_turn: Callable[[bytes], None] = lambda line: None
    told: tuple[Told, Told] = (lambda stimulus, draw: None, lambda stimulus, draw: None)
    _messages: list[Message] = field(init=False, default_factory=list)
    _replays: bool = field(init=False, default=True)
    _batches: list[int] = field(init=False, default_factory=list)
    _raws: list[Any] = field(init=False, default_factory=list)

    async def run(self, scheduler: Scheduler) -> AgentRequest:
        """Hold the conversation. Raises AgentStoppedError if one of the two stops."""
        stimulus = parse_row(self.row)
        assert isinstance(stimulus, ConversationStimulus)
        whole = AgentRequest(
            self.pair[0], self.row, stimulus.id, self.sample, self.run_seed, self.name, order=self.order
        )
        whole.sha256 = hashlib.sha256(self.row).hexdigest()
        if stimulus.mode == "burst":  # to hold it in turns would be an answer to another stimulus
            whole.draw_seed()
            whole.status, whole.error = "failed", ("unsupported_mode", "only ping-pong conversations are held")
            return whole
        for whole.attempt in range(self.rules.attempts):
            shown = draw_scenario(stimulus, whole.draw_seed())
            self._messages.clear()
            self._raws.clear()
            found = await self._hold(scheduler, shown, whole)
            said = {"turns": self._raws} if any(self._raws) else {}
            whole.raw = orjson.dumps({**turns.drawn(shown), **said})
            whole.answer = None
            if self._messages or whole.status != "failed":
                ended_early = len(self._messages) < shown.exchanges
                answer = ConversationAnswer(messages=self._messages, ended_early=ended_early)
                whole.answer = answer.model_dump_json().encode()
            if found:
                whole.attempts.append(whole.attempt_record(found))
            if whole.status != "rejected":
                break
        if whole.worker is not None and self._batches:
            whole.worker = {**whole.worker, "batch_size": round(sum(self._batches) / len(self._batches))}
        return whole

    async def _hold(
        self, scheduler: Scheduler, stimulus: ConversationStimulus, whole: AgentRequest
    ) -> list[dict[str, Any]]:
        """One attempt at the conversation: puts its status into ``whole`` and returns what the filters found; where an
        agent's own end it, what these found in the turn's last attempt."""
        assert stimulus.who_starts is not None
        starts = SIDES.index(stimulus.who_starts)
        whole.status = "ok"
        for turn in range(stimulus.exchanges):
            side = (starts + turn) % 2
            done, rejected = await self._turn(scheduler, stimulus, whole, side, turn)
            self._add(whole, done)
            if done["status"] != "ok":
                whole.status, whole.error = done["status"], done["error"] and tuple(done["error"])
                last = done["attempts"][-1]["verdicts"] if whole.status == "rejected" and done["attempts"] else []
                return [one for one in last if one["rejected"]]
            answer = TurnAnswer.model_validate(done["answer"])
            self._messages.append(turns.next_message(stimulus, self._messages, side, self.pair[side], answer))
            if rejected:
                whole.status = "rejected"
                return [turns.verdict(one) for one in rejected]
        prompts = [self._prompt(stimulus, side) for side in range(2)]
        found = turns.judge_whole(stimulus, self._messages, self.rules.policy, self.rules.thresholds, prompts)
        # Nothing is sampled again for what the history did before the two spoke.
        return [{**turns.verdict(one), "rejected": False} for one in found]

    async def _turn(
        self, scheduler: Scheduler, stimulus: ConversationStimulus, whole: AgentRequest, side: int, turn: int
    ) -> tuple[Mapping[str, Any], list[Judgement]]:
        """One turn: its journal line, and for which findings the conversation ends with it.

        A turn that is to be sampled again is, as often as the rules allow; after that the conversation is. What failed
        is not journalled: it may be asked again.
        """
        if turn == 0 and stimulus.opener is not None:
            opener = TurnAnswer(text=stimulus.opener, finish="opener").model_dump()
            return {"status": "ok", "answer": opener, "attempts": [], "raw": None}, []
        known = self.turns.get((whole.attempt, turn)) if self._replays else None
        if known is not None:
            said = known["answer"]["text"] if known["status"] == "ok" else None
            return known, [] if said is None else _again(self._judged(stimulus, side, said))
        self._replays = False  # what comes after a turn that is asked anew is not what was said after the old one
        earlier: list[dict[str, Any]] = []
        number = STRIDE * whole.attempt
        for tried in range(1, self.rules.attempts + 1):
            item = await self._ask(scheduler, stimulus, side, turn, number)
            if item.status == "ok" and (wrong := turns.unusable(item)) is not None:
                item.status, item.error = "failed", ("bad_turn", wrong)
            item.attempts = [*earlier, *item.attempts]
            found = []
            if item.status != "ok":
                break
            found = self._judged(stimulus, side, TurnAnswer.model_validate_json(item.answer or b"").text)
            bad = [one for one in found if one.action == "resample_turn"]
            if not bad or tried == self.rules.attempts:
                break
            earlier = [*item.attempts, item.attempt_record([turns.verdict(one) for one in bad])]
            number = item.first_attempt + item.attempt + 1
        line = self._line(item, whole.attempt)
        if item.status in ("ok", "rejected"):
            self.on_turn(line)
        return orjson.loads(line), _again(found)

    def _judged(self, stimulus: ConversationStimulus, side: int, text: str) -> list[Judgement]:
        """What the filters find in a new message."""
        policy, thresholds = self.rules.policy, self.rules.thresholds
        prompt = self._prompt(stimulus, side)
        return turns.judge_next(stimulus, self._messages, side, text, policy, thresholds, prompt)

    def _prompt(self, stimulus: ConversationStimulus, side: int) -> str | None:
        """What the agent on ``side`` was told, as it stands before its next message."""
        draw = Draw(0, self.sample, options={"speaker": SIDES[side]})
        return self.told[side](turns.shown(stimulus, self._messages), draw)

    async def _ask(
        self, scheduler: Scheduler, stimulus: ConversationStimulus, side: int, turn: int, first_attempt: int
    ) -> AgentRequest:
        return await scheduler.answer(
            self.pair[side],
            turns.shown(stimulus, self._messages),
            self.sample,
            seed=self.run_seed,
            turn=turn,
            options={"speaker": SIDES[side], "turn": turn},
            name=self.name,
            order=self.order,
            first_attempt=first_attempt,
        )

    def _line(self, item: AgentRequest, attempt: int) -> bytes:
        """The journal's line of a turn."""
        return orjson.dumps(
            {
                "stimulus": item.stimulus,
                "sample": item.sample,
                "conversation_attempt": attempt,
                "turn": item.turn,
                "status": item.status,
                "error": item.error,
                "answer": None if item.answer is None else orjson.Fragment(item.answer),
                "raw": None if item.raw is None else orjson.Fragment(item.raw),
                "attempts": item.attempts,
                "timing": [item.waiting, item.preparing, item.responding],
                "worker": item.worker,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )

    def _add(self, whole: AgentRequest, done: Mapping[str, Any]) -> None:
        """Add one turn's cost and rejected attempts to the whole."""
        whole.attempts += done["attempts"]
        self._raws.append(done["raw"])
        waiting, preparing, responding = done.get("timing") or (0.0, 0.0, 0.0)
        whole.waiting += waiting
        whole.preparing += preparing
        whole.responding = round(whole.responding + responding, 6)
        if done.get("worker"):
            whole.worker = done["worker"]
            self._batches.append(done["worker"]["batch_size"])


def _again(found: Sequence[Judgement]) -> list[Judgement]:
    """The findings for which a conversation is sampled again: also a turn that has been sampled often enough."""
    return [one for one in found if one.rejected]


class _Worker(BaseModel):
    batch_size: int


class _Line(BaseModel):
    """What a journal's line must say for its turn to be replayed."""

    model_config = ConfigDict(strict=True)

    stimulus: str
    sample: int
    conversation_attempt: int
    turn: int
    status: Literal["ok", "rejected"] = "ok"
    answer: TurnAnswer | None
    attempts: list[dict[str, Any]]
    timing: Annotated[list[float], Field(min_length=3, max_length=3)] | None = None
    worker: _Worker | None = None

    @model_validator(mode="after")
    def _something_was_said(self) -> _Line:
        if self.status == "ok" and self.answer is None:
            raise ValueError("no answer")
        return self


def read_journal(path: Path, wanted: Callable[[str, int], bool]) -> dict[tuple[str, int], dict[tuple[int, int], Any]]:
    """The journalled turns of the ``wanted`` conversations by (stimulus, sample), and there by (attempt at the
    conversation, turn). Raises InputError for a line that is no turn.

    A turn that stands there again was asked anew, as a line had been lost: what was said after the old one goes.
    """
    found: dict[tuple[str, int], dict[tuple[int, int], Any]] = {}
    for turn in _lines(path):
        if wanted(turn["stimulus"], turn["sample"]):
            turns = found.setdefault((turn["stimulus"], turn["sample"]), {})
            place = turn["conversation_attempt"], turn["turn"]
            while turns and next(reversed(turns)) >= place:
                turns.popitem()
            turns[place] = {**OLDER, **turn}
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    _Line.model_validate_json(line)
                except ValidationError:
                    raise InputError(
                        f"{path}:{number} is not a turn of a conversation; take the line out, then resume"
                    ) from None
                yield orjson.loads(line)
