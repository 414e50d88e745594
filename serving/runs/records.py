"""The record: an answer or a failure, with its provenance, as a line of JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.json_schema import models_json_schema
from pydantic_core import PydanticCustomError

from agents.answers import BY_TASK, LATER, TurnAnswer
from agents.errors import Problem
from agents.stimuli import ADAPTER, Task
from serving.files.row_problems import as_problems
from serving.files.timestamps import now

if TYPE_CHECKING:
    from serving.scheduling.worker import AgentRequest

RECORD = "turinglike.record/1"
UNKNOWN = "unknown"  # in "human:unknown": a person without a name


def schema_names(schema: str) -> tuple[str, str]:
    """A form's name now, and when the project was called Understudy."""
    return schema, schema.replace("turinglike.", "understudy.")


def schema_mismatch(name: object, schema: str) -> str | None:
    """Why a file of schema ``name`` is not read as ``schema``, or None."""
    if name in schema_names(schema):
        return None
    if isinstance(name, str) and re.fullmatch(schema.rstrip("0123456789") + r"\d+", name):
        return f"made by a newer version of Turinglike: {name}; this one reads {schema}"
    return f"does not say {schema}"


AgentKind = Literal["machine", "human", "published", "control"]
Status = Literal["ok", "rejected", "failed"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Timestamp = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Name = Annotated[str, StringConstraints(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class RecordedVerdict(_Strict):
    filter: str
    rejected: bool
    found: str


class Attempt(_Strict):
    """An attempt at an answer, or at turn ``turn``; accepted if no verdict rejects it."""

    attempt: Count
    turn: Count | None
    seed: Seed | None
    answer: dict[str, Any] | None
    raw: Any
    verdicts: list[RecordedVerdict]


class Failure(_Strict):
    """Why there is no answer: ``code`` for programs, ``message`` for people."""

    code: Name
    message: str


class Provenance(_Strict):
    """``digest`` is of settings and checkpoint; of imported answers the SHA-256 of their file."""

    digest: Digest | None
    checkpoint: str | None
    revision: str | None


class Timing(_Strict):
    """Seconds in the queue, in preparation, and in the model."""

    waiting: Seconds
    preparing: Seconds
    responding: Seconds


class Where(_Strict):
    """The worker that answered, and the size of its batch."""

    host: str
    device: str
    batch_size: Annotated[int, Field(ge=1)]


class Record(_Strict):
    """``raw`` is the output before cleaning; ``attempts`` are those with verdicts of filters.
    Answers of the kinds human and published may lack seed, timing, worker and time of creation."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, title=RECORD)

    schema_: Annotated[Literal["turinglike.record/1", "understudy.record/1"], Field(alias="schema")]
    run: RunId
    task: Task
    stimulus: Name
    stimulus_sha256: Digest | None
    agent: Name
    kind: AgentKind
    sample: Count
    seed: Seed | None
    status: Status
    answer: dict[str, Any] | None
    raw: Any
    attempts: list[Attempt]
    error: Failure | None
    provenance: Provenance
    timing: Timing | None
    worker: Where | None
    created: Timestamp | None

    @model_validator(mode="after")
    def _consistent(self) -> Record:
        if self.status == "ok" and (self.answer is None or self.error is not None):
            raise PydanticCustomError("status", "a record that is ok has an answer and no error")
        if self.status == "failed" and self.error is None:
            raise PydanticCustomError("status", "a failed record has an error")
        if self.created is None and self.kind not in ("human", "published"):
            raise PydanticCustomError("created", "only imported records may lack the time of their creation")
        if self.answer is not None:
            _check_answer(BY_TASK[self.task], self.answer, "answer")
        for index, attempt in enumerate(self.attempts):
            if attempt.answer is not None:
                model = BY_TASK[self.task] if attempt.turn is None else TurnAnswer
                _check_answer(model, attempt.answer, f"attempts.{index}.answer")
        return self


KEYS: tuple[str, ...] = tuple(field.alias or name for name, field in Record.model_fields.items())
_KEY_SET = frozenset(KEYS)
_SCHEMAS = schema_names(RECORD)
_STATUSES = get_args(Status)
_OBJECT_OR_NONE = (dict, NoneType)


def _check_answer(model: type[BaseModel], answer: dict[str, Any], where: str) -> None:
    later = {name: value for name, value in LATER.items() if name in model.model_fields}
    answer = {**later, **answer}
    absent = ", ".join(name for name in model.model_fields if name not in answer)
    if absent:
        raise PydanticCustomError("answer", "{where} lacks {absent}", {"where": where, "absent": absent})
    try:
        parsed = model.model_validate(answer, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join([where, *(str(part) for part in first["loc"])])
        raise PydanticCustomError("answer", "{where}: {reason}", {"where": place, "reason": first["msg"]}) from None
    if {**later, **parsed.model_dump()} != answer:
        raise PydanticCustomError("answer", "a value in {where} lacks some of its keys", {"where": where})


def problems(row: Any, where: str = "record", line: int | None = None) -> list[Problem]:
    try:
        Record.model_validate(row)
    except ValidationError as error:
        return as_problems(error, where, line)
    return []


def structural_fault(row: Any) -> str | None:
    """What makes parsed JSON unreadable as a record, or None; a cheap check."""
    if not isinstance(row, dict):
        return "not a JSON object"
    if row.get("schema") not in _SCHEMAS:
        return f"not a record: {schema_mismatch(row.get('schema'), RECORD)}"
    if row.keys() != _KEY_SET:
        return f"not a record: {', '.join(sorted(_KEY_SET ^ row.keys()))} lack or are unknown"
    good = (
        isinstance(row["task"], str)
        and isinstance(row["stimulus"], str)
        and isinstance(row["agent"], str)
        and type(row["sample"]) is int
        and 0 <= row["sample"] < 2**53
        and row["status"] in _STATUSES
        and isinstance(row["answer"], _OBJECT_OR_NONE)
        and isinstance(row["error"], _OBJECT_OR_NONE)
        and (row["status"] != "failed" or isinstance((row["error"] or {}).get("code"), str))
        and (row["seed"] is None or (type(row["seed"]) is int and row["seed"] >= 0))
        and isinstance(row["provenance"], dict)
        and isinstance(row["attempts"], list)
        and (not row["attempts"] or all(_is_attempt(attempt) for attempt in row["attempts"]))
    )
    return None if good else "not a record: a key, the status, seed, answer, error or attempts have a wrong type"


def _is_attempt(attempt: Any) -> bool:
    verdicts = attempt.get("verdicts") if isinstance(attempt, dict) else None
    return isinstance(verdicts, list) and all(
        isinstance(verdict, dict)
        and verdict.keys() >= RecordedVerdict.model_fields.keys()
        and isinstance(verdict["filter"], str)
        for verdict in verdicts
    )


@dataclass(frozen=True, slots=True)
class RecordHeader:
    run: str
    kind: str
    digest: str
    checkpoint: str | None
    revision: str | None

    @classmethod
    def of(cls, run: str, about: Mapping[str, Any]) -> RecordHeader:
        """Of an agent by its entry in ``run.json``."""
        return cls(run, about["kind"], about["digest"], about["checkpoint"], about["revision"])

    def line(self, request: AgentRequest, task: str) -> bytes:
        return orjson.dumps(
            {
                "schema": RECORD,
                "run": self.run,
                "task": task,
                "stimulus": request.stimulus,
                "stimulus_sha256": request.sha256,
                "agent": request.name or request.agent,
                "kind": self.kind,
                "sample": request.sample,
                "seed": request.seed,
                "status": request.status,
                "answer": None if request.answer is None else orjson.Fragment(request.answer),
                "raw": None if request.raw is None else orjson.Fragment(request.raw),
                "attempts": request.attempts,
                "error": None if request.error is None else {"code": request.error[0], "message": request.error[1]},
                "provenance": {"digest": self.digest, "checkpoint": self.checkpoint, "revision": self.revision},
                "timing": {
                    "waiting": round(request.waiting, 6),
                    "preparing": round(request.preparing, 6),
                    "responding": request.responding,
                },
                "worker": request.worker,
                "created": request.created or now(),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )


def people_record(run: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a person's or an imported answer; ``fields`` are its known keys."""
    unknown: dict[str, Any] = {
        **dict.fromkeys(KEYS),
        "schema": RECORD,
        "run": run,
        "kind": "human",
        "sample": 0,
        "status": "ok",
        "attempts": [],
        "provenance": {"digest": None, "checkpoint": None, "revision": None},
    }
    return {**unknown, **fields}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a record."""
    models: list[type[BaseModel]] = [Record, *BY_TASK.values(), TurnAnswer]
    _, definitions = models_json_schema([(model, "serialization") for model in models])
    parts: dict[str, Any] = definitions["$defs"]
    for part in parts.values():
        # No key is ever left out, with or without a default, apart from those that old records lack.
        part["required"] = [name for name in part["properties"] if name not in LATER]
    record: dict[str, Any] = parts.pop("Record")
    reference = {task: {"$ref": f"#/$defs/{model.__name__}"} for task, model in BY_TASK.items()}
    record["properties"]["answer"] = {"anyOf": [*reference.values(), {"type": "null"}]}
    parts["Attempt"]["properties"]["answer"] = {
        "anyOf": [*reference.values(), {"$ref": "#/$defs/TurnAnswer"}, {"type": "null"}]
    }

    def where(key: str, value: str, **then: Any) -> dict[str, Any]:
        return {"if": {"properties": {key: {"const": value}}}, "then": {"properties": then}}

    record["allOf"] = [
        *(where("task", task, answer={"anyOf": [answer, {"type": "null"}]}) for task, answer in reference.items()),
        where("status", "ok", answer={"type": "object"}, error={"type": "null"}),
        where("status", "failed", error={"type": "object"}),
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **record, "$defs": parts}


def stimulus_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line of a stimulus set."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "turinglike.stimulus/1",
        **ADAPTER.json_schema(mode="validation"),
    }
