"""A conversation's turns as lines of JSON, for replay."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from agents.answers import TurnAnswer
from agents.errors import InputError
from serving.scheduling.worker import AgentRequest

OLDER = {"status": "ok", "error": None, "raw": None}  # keys that a line of version 0.1 lacks

Turn = Mapping[str, Any]
Turns = Mapping[tuple[int, int], Turn]  # by (attempt at the conversation, turn)


def turn_line(request: AgentRequest, conversation_attempt: int) -> bytes:
    line = {
        "stimulus": request.stimulus,
        "sample": request.sample,
        "conversation_attempt": conversation_attempt,
        "turn": request.turn,
        "status": request.status,
        "error": request.error,
        "answer": None if request.answer is None else orjson.Fragment(request.answer),
        "raw": None if request.raw is None else orjson.Fragment(request.raw),
        "attempts": request.attempts,
        "timing": [request.waiting, request.preparing, request.responding],
        "worker": request.worker,
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def add_costs(conversation: AgentRequest, turns: Sequence[Turn]) -> None:
    """Add the turns' times, the last worker and the mean batch size to a conversation."""
    for turn in turns:
        waiting, preparing, responding = turn.get("timing") or (0.0, 0.0, 0.0)
        conversation.waiting += waiting
        conversation.preparing += preparing
        conversation.responding = round(conversation.responding + responding, 6)
    workers = [turn["worker"] for turn in turns if turn.get("worker")]
    if workers:
        mean = sum(worker["batch_size"] for worker in workers) / len(workers)
        conversation.worker = {**workers[-1], "batch_size": round(mean)}


class _Line(BaseModel):
    model_config = ConfigDict(strict=True)

    stimulus: str
    sample: int
    conversation_attempt: int
    turn: int
    status: Literal["ok", "rejected"] = "ok"
    answer: TurnAnswer
    attempts: list[dict[str, Any]]


def read_journal(path: Path, wanted: Callable[[str, int], bool]) -> dict[tuple[str, int], dict[tuple[int, int], Turn]]:
    """``wanted`` turns by (stimulus, sample), then (attempt, turn); a later line counts. Raises InputError."""
    conversations: dict[tuple[str, int], dict[tuple[int, int], Turn]] = {}
    if not path.exists():
        return conversations
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            try:
                line = _Line.model_validate_json(text)
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
