"""The journal of conversations: each turn is a line of JSON as soon as it is answered, for resumed runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from agents.answers import TurnAnswer
from agents.errors import InputError
from serving.runs.records import attempt_row
from serving.scheduling.request import Outcome, Timing, Where

OLDER = {"status": "ok", "error": None, "raw": None}  # keys that a line of version 0.1 lacks

Turn = Mapping[str, Any]
"""A turn as its line holds it: ``status``, ``answer``, ``error``, ``attempts``, ``timing``, …"""
Turns = Mapping[tuple[int, int], Turn]
"""Turns by (attempt at the conversation, number of the turn)."""


def turn_line(outcome: Outcome, conversation_attempt: int) -> bytes:
    """The line of a turn, of the attempt at the whole conversation that has this number from 0."""
    timing = outcome.timing
    line = {
        "stimulus": outcome.request.row.id,
        "sample": outcome.request.sample,
        "conversation_attempt": conversation_attempt,
        "turn": outcome.request.turn,
        "status": outcome.status,
        "error": None if outcome.error is None else [*outcome.error],
        "answer": None if outcome.answer is None else orjson.Fragment(outcome.answer),
        "raw": None if outcome.raw is None else orjson.Fragment(outcome.raw),
        "attempts": [attempt_row(attempt) for attempt in outcome.attempts],
        "timing": [timing.waiting, timing.preparing, timing.responding],
        "worker": None if outcome.worker is None else outcome.worker._asdict(),
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def costs(turns: Sequence[Turn]) -> tuple[Timing, Where | None]:
    """The sum of the turns' times; the worker of the last, with the mean batch size."""
    waiting = 0.0
    preparing = 0.0
    responding = 0.0
    for turn in turns:
        turn_waiting, turn_preparing, turn_responding = turn.get("timing") or (0.0, 0.0, 0.0)
        waiting += turn_waiting
        preparing += turn_preparing
        responding = round(responding + turn_responding, 6)
    timing = Timing(waiting, preparing, responding)
    workers = [turn["worker"] for turn in turns if turn.get("worker")]
    if not workers:
        return timing, None
    mean = sum(worker["batch_size"] for worker in workers) / len(workers)
    return timing, Where(workers[-1]["host"], workers[-1]["device"], round(mean))


class _JournalLine(BaseModel):
    """What is checked of a line."""

    model_config = ConfigDict(strict=True)

    stimulus: str
    sample: int
    conversation_attempt: int
    turn: int
    status: Literal["ok", "rejected"] = "ok"
    answer: TurnAnswer
    attempts: list[dict[str, Any]]


def read_journal(path: Path, wanted: Callable[[str, int], bool]) -> dict[tuple[str, int], dict[tuple[int, int], Turn]]:
    """The turns of a journal: by (stimulus, sample), and of each conversation by (attempt, number of the turn).

    Only conversations are read of which ``wanted(stimulus, sample)`` says so. A line for a turn that is there already
    takes the place of it and of all later turns: the run was resumed there. No file is an empty journal. Raises
    InputError for a line that is no turn.
    """
    conversations: dict[tuple[str, int], dict[tuple[int, int], Turn]] = {}
    if not path.exists():
        return conversations
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            try:
                line = _JournalLine.model_validate_json(text)
            except ValidationError:
                raise InputError(
                    f"{path}:{number} is not a turn of a conversation; take the line out, then resume"
                ) from None
            if wanted(line.stimulus, line.sample):
                turns = conversations.setdefault((line.stimulus, line.sample), {})
                key = line.conversation_attempt, line.turn
                while turns and next(reversed(turns)) >= key:
                    turns.popitem()
                turns[key] = {**OLDER, **orjson.loads(text)}
    return conversations
