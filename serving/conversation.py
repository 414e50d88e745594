"""A conversation: a coroutine that asks its two agents for one turn after the other, through the scheduler.

It holds no device. Every accepted turn goes into the run's journal; a conversation that is resumed takes its turns
from there and goes on where it ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from agents import seeds
from agents.answers import ConversationAnswer, Message, TurnAnswer
from agents.stimuli import ConversationStimulus, Utterance, parse_row
from serving.items import Item
from serving.scheduler import Scheduler

SIDES = ("A", "B")


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
    turns: Sequence[dict[str, Any]] = ()
    on_turn: Callable[[bytes], None] = lambda line: None
    _messages: list[Message] = field(init=False, default_factory=list)

    async def run(self, scheduler: Scheduler) -> Item:
        """Hold the conversation. Raises AgentStoppedError if one of the two stops."""
        stimulus = parse_row(self.row)
        assert isinstance(stimulus, ConversationStimulus)
        whole = Item(self.pair[0], self.row, stimulus.id, self.sample, self.run_seed, self.name, order=self.order)
        whole.draw_seed()
        whole.sha256 = hashlib.sha256(self.row).hexdigest()
        names = stimulus.names or SIDES
        starts = self._who_starts(stimulus)
        batches: list[int] = []
        clock: float | None = 0.0
        for turn in range(stimulus.exchanges):
            side = (starts + turn) % 2
            if turn == 0 and stimulus.opener is not None:
                done = {"answer": TurnAnswer(text=stimulus.opener, finish="opener").model_dump(), "attempts": []}
            elif turn < len(self.turns):
                done = self.turns[turn]
            else:
                item = await self._ask(scheduler, stimulus, names, side, turn)
                done = orjson.loads(self._line(item))
                if item.status == "ok" and (wrong := _unusable(item)) is not None:
                    item.status, item.error = "failed", ("bad_turn", wrong)
                if item.status != "ok":
                    whole.status, whole.error = item.status, item.error
                    _add(whole, done, batches)
                    break
                self.on_turn(self._line(item))
            answer = TurnAnswer.model_validate(done["answer"])
            clock = None if clock is None or answer.delay_s is None else clock + answer.delay_s
            self._messages.append(
                Message(turn=turn, speaker=names[side], agent=self.pair[side], at=clock, **answer.model_dump())
            )
            _add(whole, done, batches)
        else:
            whole.status = "ok"
        if self._messages or whole.status == "ok":
            whole.answer = ConversationAnswer(messages=self._messages).model_dump_json().encode()
        if whole.worker is not None and batches:
            whole.worker = {**whole.worker, "batch_size": round(sum(batches) / len(batches))}
        return whole

    def _who_starts(self, stimulus: ConversationStimulus) -> int:
        """The given side, or one drawn from the conversation's own seed."""
        if stimulus.who_starts is not None:
            return SIDES.index(stimulus.who_starts)
        return seeds.derive(self.run_seed, self.name, stimulus.id, self.sample, None, 0) & 1

    async def _ask(
        self, scheduler: Scheduler, stimulus: ConversationStimulus, names: Sequence[str], side: int, turn: int
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
        )

    def _line(self, item: Item) -> bytes:
        """The journal's line of a turn."""
        return orjson.dumps(
            {
                "stimulus": item.stimulus,
                "sample": item.sample,
                "turn": item.turn,
                "answer": None if item.answer is None else orjson.Fragment(item.answer),
                "attempts": item.attempts,
                "timing": [item.waiting, item.preparing, item.responding],
                "worker": item.worker,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )


def _unusable(item: Item) -> str | None:
    """What keeps a turn from being said to the other speaker, or None."""
    try:
        said = TurnAnswer.model_validate_json(item.answer or b"")
        Utterance(speaker="A", text=said.text)
    except ValidationError as error:
        return "; ".join(problem["msg"] for problem in error.errors(include_url=False))
    return None


def _add(whole: Item, done: dict[str, Any], batches: list[int]) -> None:
    """Add one turn's cost and rejected attempts to the whole."""
    whole.attempts += done["attempts"]
    waiting, preparing, responding = done.get("timing") or (0.0, 0.0, 0.0)
    whole.waiting += waiting
    whole.preparing += preparing
    whole.responding = round(whole.responding + responding, 6)
    if done.get("worker"):
        whole.worker = done["worker"]
        batches.append(done["worker"]["batch_size"])


def read_journal(path: Path, wanted: Callable[[str, int], bool]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """The journalled turns of the ``wanted`` conversations by (stimulus, sample), in order; a turn journalled twice
    counts once, as first said."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for turn in _lines(path):
        if not wanted(turn["stimulus"], turn["sample"]):
            continue
        turns = found.setdefault((turn["stimulus"], turn["sample"]), [])
        expected = turns[-1]["turn"] + 1 if turns else turn["turn"]
        if turn["turn"] == expected:
            turns.append(turn)
    return {key: _from_zero(turns) for key, turns in found.items()}


def _from_zero(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns by their number: an opener takes turn 0 without being journalled."""
    opener = {"answer": {"text": ""}, "attempts": []}
    return [opener, *turns] if turns[0]["turn"] == 1 else turns


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                yield orjson.loads(line)
