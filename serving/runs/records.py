"""The record: an answer or a failure, with its provenance, as a line of JSON.

:class:`Record` and its parts say which keys a record has, in which order, and what may stand in them. A line that is
written takes its keys from :meth:`RecordPart.row`, the JSON Schema from the models. The cheap check of lines that are
read comes from the marks :class:`Readable` at the fields. Timing, error and place come from a scheduler as named tuples
with the fields of :class:`Timing`, :class:`Failure` and :class:`Where` in the same order; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agents.answers import BY_TASK, LATER, TurnAnswer
from agents.contract import Finding
from agents.errors import Problem
from agents.stimuli import Task
from serving.files.row_problems import as_problems
from serving.files.timestamps import now
from serving.runs.readable import Readable, is_count, is_object, is_object_or_null, is_seed, is_text
from serving.runs.schema_names import schema_mismatch, schema_names
from serving.scheduling import request as asked

RECORD = "turinglike.record/1"
UNKNOWN = "unknown"  # in "human:unknown": a person without a name

AgentKind = Literal["machine", "human", "published", "control"]
Status = Literal["ok", "rejected", "failed"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Timestamp = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Name = Annotated[str, StringConstraints(min_length=1)]
_STATUSES = get_args(Status)


def _is_status(value: Any) -> bool:
    return value in _STATUSES


def _is_list_of_attempts(value: Any) -> bool:
    return isinstance(value, list) and (not value or all(map(_is_attempt, value)))


def _is_attempt(attempt: Any) -> bool:
    verdicts = attempt.get("verdicts") if isinstance(attempt, dict) else None
    return isinstance(verdicts, list) and all(
        isinstance(verdict, dict)
        and verdict.keys() >= RecordedVerdict.model_fields.keys()
        and isinstance(verdict["filter"], str)
        for verdict in verdicts
    )


class RecordPart(BaseModel):
    """A JSON object in a record: no key may lack, and none may be added."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    keys: ClassVar[tuple[str, ...]] = ()
    """The keys in the order in which they are written."""
    _empty: ClassVar[dict[str, None]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Take the keys from the fields."""
        cls.keys = tuple(info.alias or name for name, info in cls.model_fields.items())
        cls._empty = dict.fromkeys(cls.keys)

    @classmethod
    def row(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object to write: all keys in their order, those that are not given null. Raises TypeError for a key
        that there is not. Values are not validated: this runs once per answer, and tests validate what it writes."""
        row: dict[str, Any] = {**cls._empty, **values}
        if len(row) != len(cls._empty):
            raise TypeError(f"{cls.__name__} has no {', '.join(row.keys() - cls._empty.keys())}")
        return row


class RecordedVerdict(RecordPart):
    """What a filter found in an attempt; ``rejected`` asked for another attempt."""

    filter: str
    """The filter's name, as settings have it."""
    rejected: bool
    """Whether this filter refused the attempt; False: it only noted something."""
    found: str
    """What it found, in words for people."""


class Attempt(RecordPart):
    """An attempt at an answer, or at turn ``turn``; accepted if no verdict rejects it."""

    attempt: Count
    """Its number in seeds, from 0; docs/records.md says where conversations begin to count."""
    turn: Annotated[int, Field(ge=-1_000_000)] | None
    """The number of the message, from 0; negative in a pseudo-dialogue; null for a whole answer or conversation."""
    seed: Seed | None
    """What the agent drew with; null where nothing was drawn."""
    answer: dict[str, Any] | None
    """The answer in its task's form, with ``turn`` a message's; null where there was none."""
    raw: Any
    """The model's output before it was cleaned, as JSON of the agent's own form."""
    verdicts: list[RecordedVerdict]
    """What filters found, in the order in which they looked."""


class Failure(RecordPart):
    """Why there is no answer: ``code`` for programs, ``message`` for people."""

    code: Name
    """One of the codes in docs/records.md, or an agent's own."""
    message: str
    """A sentence that says why."""


class Provenance(RecordPart):
    """``digest`` is of settings and checkpoint; of imported answers the SHA-256 of their file."""

    digest: Digest | None
    """A SHA-256 of 64 hex digits; null where nobody knows what answered."""
    checkpoint: str | None
    """The model's name; null without a model."""
    revision: str | None
    """The commit or version of the model's weights; null without one."""


class Timing(RecordPart):
    """Seconds in the queue, in preparation, and in the model."""

    waiting: Seconds
    """From the question until a worker took it."""
    preparing: Seconds
    """Reading and decoding, in the agent's ``prepare``."""
    responding: Seconds
    """The model's time for the whole batch, in the agent's ``respond``."""


class Where(RecordPart):
    """The worker that answered, and the size of its batch."""

    host: str
    """The machine's name."""
    device: str
    """The processor: "cpu", or a GPU as "cuda:0"."""
    batch_size: Annotated[int, Field(ge=1)]
    """How many stimuli were answered at once; for a conversation the mean over its turns, rounded."""


class Record(RecordPart):
    """``raw`` is the output before cleaning; ``attempts`` are those with verdicts of filters.
    Answers of the kinds human and published may lack seed, timing, worker and time of creation."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, title=RECORD)

    schema_: Annotated[Literal["turinglike.record/1", "understudy.record/1"], Field(alias="schema")]
    """The key ``schema``; old files have the second name."""
    run: RunId
    """The run's id, 12 hex digits."""
    task: Annotated[Task, Readable(is_text)]
    """By which the form of ``answer`` is chosen."""
    stimulus: Annotated[Name, Readable(is_text)]
    """The stimulus's id; with ``agent`` and ``sample`` the record's key."""
    stimulus_sha256: Digest | None
    """A hash of what was seen: the only picture's bytes, or the row. Null where it could not be read."""
    agent: Annotated[Name, Readable(is_text)]
    """An agent, a pair ``a~b``, or a person as "human:NAME"."""
    kind: AgentKind
    """Where the answer comes from; "control" is a catch trial's."""
    sample: Annotated[Count, Readable(is_count)]
    """The number of the answer among those of this agent to this stimulus, from 0."""
    seed: Annotated[Seed | None, Readable(is_seed)]
    """What the attempt that became the answer drew with."""
    status: Annotated[Status, Readable(_is_status)]
    """What became of it: "ok"; "rejected" where filters refused every attempt; "failed" without an answer."""
    answer: Annotated[dict[str, Any] | None, Readable(is_object_or_null)]
    """The answer in its task's form; after "rejected" the last attempt's, null after "failed"."""
    raw: Any
    """What the model wrote, as JSON of the agent's own form."""
    attempts: Annotated[list[Attempt], Readable(_is_list_of_attempts)]
    """The attempts in their order; an attempt of which no filter noted anything is not among them."""
    error: Annotated[Failure | None, Readable(is_object_or_null)]
    """Why it failed; null otherwise."""
    provenance: Annotated[Provenance, Readable(is_object)]
    """By which program and weights, or from which file."""
    timing: Timing | None
    """Summed over attempts and turns."""
    worker: Where | None
    """Who answered last; null where nobody was asked."""
    created: Timestamp | None
    """When the answer was ready, in UTC to the millisecond."""

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


_KEY_SET = frozenset(Record.keys)
_SCHEMAS = schema_names(RECORD)
_READABLE = [
    (info.alias or name, mark.is_readable)
    for name, info in Record.model_fields.items()
    for mark in info.metadata
    if isinstance(mark, Readable)
]

# The keys of the two objects that each line makes anew. A call of row() would make a line a fifth slower.
_WAITING, _PREPARING, _RESPONDING = Timing.keys
_CODE, _MESSAGE = Failure.keys


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
    """What makes parsed JSON no valid record, by field; empty for a record. The full check: 20 µs and more."""
    try:
        Record.model_validate(row)
    except ValidationError as error:
        return as_problems(error, where, line)
    return []


def structural_fault(row: Any) -> str | None:
    """What makes parsed JSON unreadable as a record, or None; a cheap check, see :class:`Readable`."""
    if not isinstance(row, dict):
        return "not a JSON object"
    if row.get("schema") not in _SCHEMAS:
        return f"not a record: {schema_mismatch(row.get('schema'), RECORD)}"
    if row.keys() != _KEY_SET:
        return f"not a record: {', '.join(sorted(_KEY_SET ^ row.keys()))} lack or are unknown"
    has_reason = row["status"] != "failed" or (is_object(row["error"]) and is_text(row["error"].get("code")))
    for key, is_readable in _READABLE:
        if not (has_reason and is_readable(row[key])):
            return "not a record: a key, the status, seed, answer, error or attempts have a wrong type"
    return None


def _json(content: bytes | None) -> orjson.Fragment | None:
    """JSON that stands in a line as it is."""
    return None if content is None else orjson.Fragment(content)


@lru_cache(maxsize=256)
def worker_row(worker: asked.Where) -> dict[str, Any]:
    """A worker as records have it. A whole batch has the same one, so it is made once; whoever gets it must not change
    it."""
    return Where.row(worker._asdict())


def attempt_row(attempt: asked.Attempt) -> dict[str, Any]:
    """An attempt as records and journals have it."""
    return Attempt.row(
        {
            "attempt": attempt.number,
            "turn": attempt.turn,
            "seed": attempt.seed,
            "answer": _json(attempt.answer),
            "raw": _json(attempt.raw),
            "verdicts": [
                RecordedVerdict.row(
                    {
                        "filter": finding.filter,
                        "rejected": finding.rejected,
                        "found": finding.found,
                    }
                )
                for finding in attempt.findings
            ],
        }
    )


def read_attempt(row: Mapping[str, Any]) -> asked.Attempt:
    """The attempt that :func:`attempt_row` wrote."""
    return asked.Attempt(
        number=row["attempt"],
        turn=row["turn"],
        seed=row["seed"],
        answer=None if row["answer"] is None else orjson.dumps(row["answer"]),
        raw=None if row["raw"] is None else orjson.dumps(row["raw"]),
        findings=tuple(Finding(one["filter"], one["rejected"], one["found"]) for one in row["verdicts"]),
    )


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """What all records of an agent have in common."""

    run: str
    """The run's id."""
    kind: str
    """The agent's kind: "machine" or "control"."""
    digest: str
    """The SHA-256 of what made the answers, as run.json has it."""
    checkpoint: str | None
    """The model's name; None without one."""
    revision: str | None
    """The model's revision; None without one."""
    _common: dict[str, Any] = field(init=False, repr=False, compare=False)  # a record with only these filled in

    def __post_init__(self) -> None:
        parts = {"digest": self.digest, "checkpoint": self.checkpoint, "revision": self.revision}
        common = {"schema": RECORD, "run": self.run, "kind": self.kind, "provenance": Provenance.row(parts)}
        object.__setattr__(self, "_common", Record.row(common))

    @classmethod
    def of(cls, run: str, about: Mapping[str, Any]) -> RecordHeader:
        """The header of an agent, from its entry in ``run.json``."""
        return cls(run, about["kind"], about["digest"], about["checkpoint"], about["revision"])

    def line(self, outcome: asked.Outcome) -> bytes:
        """The record of an outcome: a line of JSON, newline included."""
        request = outcome.request
        answer = outcome.answer
        raw = outcome.raw
        error = outcome.error
        worker = outcome.worker
        waiting, preparing, responding = outcome.timing
        row = {
            **self._common,  # has every key, in Record's order
            "task": request.row.kind[0],
            "stimulus": request.row.id,
            "stimulus_sha256": outcome.sha256,
            "agent": request.answerer,
            "sample": request.sample,
            "seed": outcome.seed,
            "status": outcome.status,
            "answer": None if answer is None else orjson.Fragment(answer),
            "raw": None if raw is None else orjson.Fragment(raw),
            "attempts": [attempt_row(attempt) for attempt in outcome.attempts] if outcome.attempts else [],
            "error": None if error is None else {_CODE: error.code, _MESSAGE: error.message},
            "timing": {_WAITING: round(waiting, 6), _PREPARING: round(preparing, 6), _RESPONDING: responding},
            "worker": None if worker is None else worker_row(worker),
            "created": outcome.created or now(),
        }
        if len(row) != len(self._common):
            raise TypeError(f"a record has no {', '.join(row.keys() - self._common.keys())}")
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def people_record(run: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a person's or an imported answer. ``fields`` are the keys that are known of it; the others get what
    every such record has in common, or null. Raises TypeError for a key that no record has."""
    common: dict[str, Any] = {
        "schema": RECORD,
        "run": run,
        "kind": "human",
        "sample": 0,
        "status": "ok",
        "attempts": [],
        "provenance": Provenance.row({}),
    }
    return Record.row({**common, **fields})
