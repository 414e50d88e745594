"""Tables: JSONL, the records as they are, in one file; CSV, one row per record, flattened.

Columns, in this order: the record's own (``schema`` to ``status``), ``answer.*`` for every task in the export, the rest
of the record (``raw``, ``attempts``, ``rejected_attempts``, ``error.*``, ``provenance.*``, ``timing.*``, ``worker.*``,
``created``), the stimulus's own fields as ``stimulus.*``, and its ``meta`` as ``meta.*``. Nested values are JSON text;
``raw`` is text as it stands, and JSON text if it is anything else. Null is an empty cell.
An imported answer finds its stimulus by ``benchmark_id`` where no stimulus has its name for an id.
"""

from __future__ import annotations

import io
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Union, get_args, get_origin

import orjson

from agents.answers import BY_TASK
from agents.stimuli import ALL_TASKS
from serving.export.registry import FileFormat
from serving.export.selection import Record, Row, Selection, misfit
from serving.runs.csv_tables import write_rows
from serving.runs.records import Attempt

Pair = tuple[Record, Row]
Type = Literal["text", "int", "float", "bool", "time", "json"]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_FIRST = ("benchmark_id", "source", "source_id", "image")
_OWN: dict[str, Type] = {
    "schema": "text",
    "run": "text",
    "task": "text",
    "stimulus": "text",
    "stimulus_sha256": "text",
    "agent": "text",
    "kind": "text",
    "sample": "int",
    "seed": "int",
    "status": "text",
}
_REST: dict[str, Type] = {
    "raw": "text",
    "attempts": "json",
    "rejected_attempts": "int",
    "error.code": "text",
    "error.message": "text",
    "provenance.digest": "text",
    "provenance.checkpoint": "text",
    "provenance.revision": "text",
    "timing.waiting": "float",
    "timing.preparing": "float",
    "timing.responding": "float",
    "worker.host": "text",
    "worker.device": "text",
    "worker.batch_size": "int",
    "created": "time",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type in a table of plain cells, and its value in a record and that record's stimulus."""

    name: str
    type: Type
    value: Callable[[Record, Row], Any]
    shape: Any = None  # of nested values that have one: a type annotation


def write_jsonl(chosen: Selection, files: list[BinaryIO], folder: Path) -> dict[str, Any]:
    """Write the selected records as they are, one line each."""
    for record in chosen.everything():
        files[0].write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return {}


def write_csv(chosen: Selection, files: list[BinaryIO], folder: Path) -> dict[str, Any]:
    """Write the selected records as CSV (RFC 4180, UTF-8). Returns notes for the side-car: the columns."""
    columns = export_columns(chosen)
    text = io.TextIOWrapper(files[0], encoding="utf-8", newline="", write_through=True)
    truth = {True: "true", False: "false"}
    cells = (
        [truth[value] if isinstance(value, bool) else value for value in row] for row in rows(selected(chosen), columns)
    )
    write_rows(text, [column.name for column in columns], cells)
    text.detach()
    return columns_told(columns)


def columns_told(columns: list[Column]) -> dict[str, Any]:
    return {"columns": {column.name: column.type for column in columns}}


def export_columns(chosen: Selection) -> list[Column]:
    """The columns for what is selected."""
    tasks = {task for name in chosen.folder.agents() for task in chosen.tasks(name)}
    for name in chosen.folder.imports():
        tasks |= {record["task"] for record in chosen.folder.records(name)}
    return columns_of(tasks, chosen.folder.stimuli())


def columns_of(tasks: Collection[str], stimuli: Iterable[Row]) -> list[Column]:
    """The columns for answers to these tasks, of which these are the stimuli."""
    columns = [Column(name, kind, _part(name)) for name, kind in _OWN.items()]
    for task in ALL_TASKS:
        if task in tasks:
            for name, field in BY_TASK[task].model_fields.items():
                kind = _type_of(field.annotation)
                shape = field.annotation if kind == "json" else None
                columns.append(Column(f"answer.{name}", kind, _answer(name, task), shape))
    for name, kind in _REST.items():
        columns.append(Column(name, kind, _part(*name.split(".")), list[Attempt] if name == "attempts" else None))
    fields, meta = _stimulus_fields(stimuli)
    columns += [Column(f"stimulus.{name}", kind, _of_stimulus(name), shape) for name, (kind, shape) in fields.items()]
    columns += [Column(f"meta.{name}", kind, _of_meta(name)) for name, (kind, _) in meta.items()]
    return columns


def _part(*path: str) -> Callable[[Record, Row], Any]:
    if path == ("rejected_attempts",):
        return lambda record, _: sum(
            any(verdict["rejected"] for verdict in attempt["verdicts"]) for attempt in record["attempts"]
        )
    if len(path) == 1:
        return lambda record, _: record[path[0]]
    return lambda record, _: None if record[path[0]] is None else record[path[0]].get(path[1])


def _answer(name: str, task: str) -> Callable[[Record, Row], Any]:
    return lambda record, _: record["answer"].get(name) if record["answer"] and record["task"] == task else None


def _of_stimulus(name: str) -> Callable[[Record, Row], Any]:
    return lambda _, stimulus: stimulus.get(name)


def _of_meta(name: str) -> Callable[[Record, Row], Any]:
    return lambda _, stimulus: _meta(stimulus).get(name)


def _meta(stimulus: dict[str, Any]) -> dict[str, Any]:
    meta = stimulus.get("meta")
    return meta if isinstance(meta, dict) else {}  # an invalid row may have anything there


def _type_of(annotation: Any) -> Type:
    """The column type of an answer's field: of its annotation without None."""
    if get_origin(annotation) is Annotated:
        return _type_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        parts = {_type_of(part) for part in get_args(annotation) if part is not types.NoneType}
        return "float" if parts == {"int", "float"} else parts.pop() if len(parts) == 1 else "json"
    if get_origin(annotation) is Literal:
        return "text"
    plain: dict[Any, Type] = {str: "text", int: "int", float: "float", bool: "bool"}
    return plain.get(annotation, "json")


Known = tuple[Type, Any]  # a column's type and shape


def _stimulus_fields(stimuli: Iterable[Row]) -> tuple[dict[str, Known], dict[str, Known]]:
    """The fields of stimuli, and of their ``meta``, with types that hold all their values."""
    fields: dict[str, Known] = {}
    meta: dict[str, Known] = {}
    for row in stimuli:
        for kinds, values in ((fields, row), (meta, _meta(row))):
            for name, value in values.items():
                if value is not None and (kinds is meta or name not in ("id", "task", "meta")):
                    now = _kind(value), _shape(value)
                    kinds[name] = _common(kinds[name], now) if name in kinds else now
    order = {name: number for number, name in enumerate(_FIRST)}
    return (
        dict(sorted(fields.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))),
        dict(sorted(meta.items())),
    )


def _kind(value: Any) -> Type:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) < 2**53 else "json"
    return "float" if isinstance(value, float) else "text" if isinstance(value, str) else "json"


def _shape(value: Any) -> Any:
    """``list[str]``, ``list[float]`` or lists of these for a value of that form; None for any other."""
    if not isinstance(value, list) or not value:
        return None
    shapes = {str if isinstance(item, str) else float if type(item) in (int, float) else _shape(item) for item in value}
    inner = shapes.pop()
    return None if shapes or inner is None else list[inner]  # type: ignore[valid-type]


def _common(known: Known, now: Known) -> Known:
    """The type of a column that holds values of both types. Mixed values become JSON."""
    if known[0] == now[0]:
        return known if known[1] == now[1] else (known[0], None)
    return ("float" if {known[0], now[0]} == {"int", "float"} else "json"), None


def selected(chosen: Selection) -> Iterator[Pair]:
    """The selected records, each with its stimulus; of one that is not in the set it has nothing."""
    for record in chosen.everything():
        yield record, chosen.folder.stimulus_of(record) or {}


def rows(
    pairs: Iterator[Pair], columns: list[Column], cell: Callable[[Column, Record, Row], Any] | None = None
) -> Iterator[list[Any]]:
    """The cells of each record, by default plain ones. Raises InputError for a record that does not fit."""
    make = cell or plain_cell
    known = {task: set(model.model_fields) for task, model in BY_TASK.items()}
    names = {column.name for column in columns}
    for record, stimulus in pairs:
        task, answer = record["task"], record["answer"]
        unknown = set(answer or ()) - known.get(task, set())
        if unknown or (answer and f"answer.{next(iter(answer))}" not in names):
            raise misfit(record, "answer", f"an answer to {task} with {', '.join(sorted(answer))} was not expected")
        try:
            yield [make(column, record, stimulus) for column in columns]
        except (AttributeError, KeyError, TypeError) as error:
            raise misfit(record, "record", f"a part of it has a wrong type: {error}") from None


def plain_cell(column: Column, record: dict[str, Any], stimulus: dict[str, Any]) -> Any:
    """The value of a column, of the column's type. Raises InputError if it cannot be."""
    value = column.value(record, stimulus)
    if value is None:
        return None
    match column.type:
        case "json":
            return orjson.dumps(value).decode()
        case "text":
            return value if isinstance(value, str) else orjson.dumps(value).decode()
        case "time":
            fits = isinstance(value, str) and _TIME.fullmatch(value) is not None
        case "bool":
            fits = isinstance(value, bool)
        case "int":
            fits = type(value) is int
        case "float":
            fits = type(value) in (int, float)
    if not fits:
        raise misfit(record, column.name, f"{value!r} is not of the type {column.type}")
    return float(value) if column.type == "float" else value


JSONL = FileFormat(write_jsonl, with_stimuli=True)
CSV = FileFormat(write_csv)
