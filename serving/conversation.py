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
from typing import Any

import orjson
from pydantic import ValidationError

from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.language.casting import SIDES, cast
from agents.language.filters.policies import Judgement, judge_conversation, judge_turn
from agents.language.filters.settings import FilterSettings, Policy
from agents.stimuli import ConversationStimulus, Utterance, parse_row
from serving.items import Item
from serving.scheduler import Scheduler

STRIDE = 10_000
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

    ``turns`` are journalled turns to replay, ``on_turn`` is called with each new one's journal line. :meth:`run`
    returns an item as the scheduler would, its answer the whole conversation.
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
    _messages: list[Message] = field(init=False, default_factory=list)
    _replays: bool = field(init=False, default=True)
    _batches: list[int] = field(init=False, default_factory=list)

    async def run(self, scheduler: Scheduler) -> Item:
        """Hold the conversation. Raises AgentStoppedError if one of the two stops."""
        stimulus = parse_row(self.row)
        assert isinstance(stimulus, ConversationStimulus)
        whole = Item(self.pair[0], self.row, stimulus.id, self.sample, self.run_seed, self.name, order=self.order)
        whole.sha256 = hashlib.sha256(self.row).hexdigest()
        for whole.attempt in range(self.rules.attempts):
            shown = cast(stimulus, whole.draw_seed())
            self._messages.clear()
            found = await self._hold(scheduler, shown, whole)
            whole.raw = orjson.dumps({key: getattr(shown, key) for key in ("topic", "names", "personas", "who_starts")})
            whole.answer = None
            if self._messages or whole.status != "failed":
                whole.answer = ConversationAnswer(messages=self._messages).model_dump_json().encode()
            if found:
                whole.attempts.append(whole.rejected_attempt([_verdict(one) for one in found]))
            if whole.status != "rejected":
                break
        if whole.worker is not None and self._batches:
            whole.worker = {**whole.worker, "batch_size": round(sum(self._batches) / len(self._batches))}
        return whole

    async def _hold(self, scheduler: Scheduler, stimulus: ConversationStimulus, whole: Item) -> list[Judgement]:
        """One attempt at the conversation: puts its status into ``whole`` and returns what the filters found."""
        assert stimulus.names is not None
        assert stimulus.who_starts is not None
        starts = SIDES.index(stimulus.who_starts)
        clock: float | None = 0.0
        whole.status = "ok"
        for turn in range(stimulus.exchanges):
            side = (starts + turn) % 2
            done, item, rejected = await self._turn(scheduler, stimulus, whole, side, turn)
            self._add(whole, done)
            if item is not None and item.status != "ok":
                whole.status, whole.error = item.status, item.error
                return []
            answer = TurnAnswer.model_validate(done["answer"])
            clock = None if clock is None or answer.delay_s is None else clock + answer.delay_s
            self._messages.append(
                Message(turn=turn, speaker=stimulus.names[side], agent=self.pair[side], at=clock, **answer.model_dump())
            )
            if rejected:
                whole.status = "rejected"
                return rejected
        said = [(message.speaker, message.text) for message in self._messages]
        before = [(one.speaker, one.text) for one in stimulus.history]
        total = len(before) + stimulus.exchanges
        return judge_conversation(
            [*before, *said], self.rules.policy, self.rules.thresholds, names=stimulus.names, total=total
        )

    async def _turn(
        self, scheduler: Scheduler, stimulus: ConversationStimulus, whole: Item, side: int, turn: int
    ) -> tuple[Mapping[str, Any], Item | None, list[Judgement]]:
        """One turn: its journal line, its item if it was asked now, and why the conversation ends with it, if it does.

        A turn that is to be sampled again is, as often as the rules allow; after that the conversation is.
        """
        if turn == 0 and stimulus.opener is not None:
            return {"answer": TurnAnswer(text=stimulus.opener, finish="opener").model_dump(), "attempts": []}, None, []
        known = self.turns.get((whole.attempt, turn)) if self._replays else None
        if known is not None:
            return known, None, _again(self._judged(stimulus, side, known["answer"]["text"]))
        self._replays = False  # what comes after a turn that is asked anew is not what was said after the old one
        earlier: list[dict[str, Any]] = []
        number = STRIDE * whole.attempt
        for tried in range(1, self.rules.attempts + 1):
            item = await self._ask(scheduler, stimulus, side, turn, number)
            if item.status == "ok" and (wrong := _unusable(item)) is not None:
                item.status, item.error = "failed", ("bad_turn", wrong)
            item.attempts = [*earlier, *item.attempts]
            if item.status != "ok":
                return orjson.loads(self._line(item, whole.attempt)), item, []
            found = self._judged(stimulus, side, TurnAnswer.model_validate_json(item.answer or b"").text)
            bad = [one for one in found if one.action == "resample_turn"]
            if not bad or tried == self.rules.attempts:
                break
            earlier = [*item.attempts, item.rejected_attempt([_verdict(one) for one in bad])]
            number = item.first_attempt + item.attempt + 1
        line = self._line(item, whole.attempt)
        self.on_turn(line)
        return orjson.loads(line), item, _again(found)

    def _judged(self, stimulus: ConversationStimulus, side: int, text: str) -> list[Judgement]:
        """What the filters find in a new message."""
        assert stimulus.names is not None
        before = [(one.speaker, one.text) for one in stimulus.history]
        history = [*before, *((one.speaker, one.text) for one in self._messages)]
        total = len(stimulus.history) + stimulus.exchanges
        return judge_turn(
            history,
            stimulus.names[side],
            text,
            self.rules.policy,
            self.rules.thresholds,
            names=stimulus.names,
            total=total,
        )

    async def _ask(
        self, scheduler: Scheduler, stimulus: ConversationStimulus, side: int, turn: int, first_attempt: int
    ) -> Item:
        said = [Utterance(speaker=m.speaker, text=m.text, at=m.at) for m in self._messages]
        return await scheduler.answer(
            self.pair[side],
            stimulus.model_copy(update={"history": [*stimulus.history, *said]}),
            self.sample,
            seed=self.run_seed,
            turn=turn,
            options={"speaker": SIDES[side], "turn": turn},
            name=self.name,
            order=self.order,
            first_attempt=first_attempt,
        )

    def _line(self, item: Item, attempt: int) -> bytes:
        """The journal's line of a turn."""
        return orjson.dumps(
            {
                "stimulus": item.stimulus,
                "sample": item.sample,
                "conversation_attempt": attempt,
                "turn": item.turn,
                "answer": None if item.answer is None else orjson.Fragment(item.answer),
                "attempts": item.attempts,
                "timing": [item.waiting, item.preparing, item.responding],
                "worker": item.worker,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )

    def _add(self, whole: Item, done: Mapping[str, Any]) -> None:
        """Add one turn's cost and rejected attempts to the whole."""
        whole.attempts += done["attempts"]
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


def _verdict(judgement: Judgement) -> dict[str, Any]:
    verdict = judgement.verdict()
    return {"filter": verdict.filter, "rejected": verdict.rejected, "found": verdict.found}


def _unusable(item: Item) -> str | None:
    """What keeps a turn from being said to the other speaker, or None."""
    try:
        said = TurnAnswer.model_validate_json(item.answer or b"")
        Utterance(speaker="A", text=said.text)
    except ValidationError as error:
        return "; ".join(problem["msg"] for problem in error.errors(include_url=False))
    return None


def read_journal(path: Path, wanted: Callable[[str, int], bool]) -> dict[tuple[str, int], dict[tuple[int, int], Any]]:
    """The journalled turns of the ``wanted`` conversations by (stimulus, sample), and there by (attempt at the
    conversation, turn); a turn journalled twice counts once, as first said."""
    found: dict[tuple[str, int], dict[tuple[int, int], Any]] = {}
    for turn in _lines(path):
        if wanted(turn["stimulus"], turn["sample"]):
            turns = found.setdefault((turn["stimulus"], turn["sample"]), {})
            turns.setdefault((turn["conversation_attempt"], turn["turn"]), turn)
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                yield orjson.loads(line)
