"""Tables: JSONL, the records as they are, in one file; CSV and Parquet, one row per record, flattened.

Columns, in this order: the record's own (``schema`` to ``status``), ``answer.*`` for every task in the export, the rest
of the record (``raw``, ``attempts``, ``rejected_attempts``, ``error.*``, ``provenance.*``, ``timing.*``, ``worker.*``,
``created``), the stimulus's own fields as ``stimulus.*``, and its ``meta`` as ``meta.*``. Nested values are JSON text;
``raw`` is text as it stands, and JSON text if it is anything else. Null is an empty cell in CSV and null in Parquet.
An imported answer finds its stimulus by ``benchmark_id`` where no stimulus has its name for an id.
"""

from __future__ import annotations

import csv
import io
import re
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Union, get_args, get_origin

import orjson

from agents.answers import BY_TASK
from agents.errors import UnavailableError
from agents.stimuli import ALL_TASKS
from serving.export.registry import FileFormat, FormatOptions
from serving.export.selection import Record, Row, Selection, StimulusLookup, misfit

Type = Literal["text", "int", "float", "bool", "time", "json"]
CHUNK = 10_000
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
    """A column: its name, its type, and its value in a record and that record's stimulus."""

    name: str
    type: Type
    value: Callable[[Record, Row], Any]


def write_jsonl(chosen: Selection, files: list[BinaryIO], options: FormatOptions, folder: Path) -> dict[str, Any]:
    """Write the selected records as they are, one line each."""
    for record in chosen.everything():
        files[0].write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return {}


def write_csv(chosen: Selection, files: list[BinaryIO], options: FormatOptions, folder: Path) -> dict[str, Any]:
    """Write the selected records as CSV (RFC 4180, UTF-8). Returns notes for the side-car: the columns."""
    columns = _columns(chosen)
    text = io.TextIOWrapper(files[0], encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")  # with "\n" a lone "\r" in a text would not be quoted
    writer.writerow([column.name for column in columns])
    truth = {True: "true", False: "false"}
    for row in _rows(chosen, columns):
        writer.writerow([truth[value] if isinstance(value, bool) else value for value in row])
    text.detach()
    return _told(columns)


def write_parquet(chosen: Selection, files: list[BinaryIO], options: FormatOptions, folder: Path) -> dict[str, Any]:
    """Write the selected records as Parquet, :data:`CHUNK` rows at a time. Returns notes for the side-car: the
    columns."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UnavailableError("the package pyarrow is not installed: pip install 'turinglike[parquet]'") from None

    arrow = {
        "text": pa.string(),
        "json": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("ms", tz="UTC"),
    }
    columns = _columns(chosen)
    schema = pa.schema([(column.name, arrow[column.type]) for column in columns])
    rows = _rows(chosen, columns)
    with pq.ParquetWriter(files[0], schema, compression="zstd") as writer:
        while chunk := list(islice(rows, CHUNK)):
            values = zip(*chunk, strict=True)
            arrays = [
                pa.array(_parsed(column, cells), type=arrow[column.type])
                for column, cells in zip(columns, values, strict=True)
            ]
            writer.write_table(pa.table(arrays, schema=schema))
    return _told(columns)


def _parsed(column: Column, cells: tuple[Any, ...]) -> Sequence[Any]:
    if column.type != "time":
        return cells
    return [None if cell is None else datetime.fromisoformat(cell) for cell in cells]


def _told(columns: list[Column]) -> dict[str, Any]:
    return {"columns": {column.name: column.type for column in columns}}


def _columns(chosen: Selection) -> list[Column]:
    tasks = {task for name in chosen.folder.agents() for task in chosen.tasks(name)}
    for name in chosen.folder.imports():
        tasks |= {record["task"] for record in chosen.folder.records(name)}
    columns = [Column(name, kind, _part(name)) for name, kind in _OWN.items()]
    for task in ALL_TASKS:
        if task in tasks:
            columns += [
                Column(f"answer.{name}", _type_of(field.annotation), _answer(name, task))
                for name, field in BY_TASK[task].model_fields.items()
            ]
    columns += [Column(name, kind, _part(*name.split("."))) for name, kind in _REST.items()]
    fields, meta = _stimulus_fields(chosen)
    columns += [Column(f"stimulus.{name}", kind, _of_stimulus(name)) for name, kind in fields.items()]
    columns += [Column(f"meta.{name}", kind, _of_meta(name)) for name, kind in meta.items()]
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


def _stimulus_fields(chosen: Selection) -> tuple[dict[str, Type], dict[str, Type]]:
    """The fields of the run's stimuli, and of their ``meta``, with types that hold all their values."""
    fields: dict[str, Type] = {}
    meta: dict[str, Type] = {}
    for _, row in chosen.folder.stimuli():
        for found, values in ((fields, row), (meta, _meta(row))):
            for name, value in values.items():
                if value is not None and (found is meta or name not in ("id", "task", "meta")):
                    found[name] = _common(found.get(name), value)
    order = {name: number for number, name in enumerate(_FIRST)}
    return (
        dict(sorted(fields.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))),
        dict(sorted(meta.items())),
    )


def _common(known: Type | None, value: Any) -> Type:
    """The type of a column that holds ``value`` beside values of the type ``known``. Mixed values become JSON."""
    now: Type = "json"
    if isinstance(value, bool):
        now = "bool"
    elif isinstance(value, int):
        now = "int" if abs(value) < 2**53 else "json"
    elif isinstance(value, float):
        now = "float"
    elif isinstance(value, str):
        now = "text"
    if known is None or known == now:
        return now
    return "float" if {known, now} == {"int", "float"} else "json"


def _rows(chosen: Selection, columns: list[Column]) -> Iterator[list[Any]]:
    known = {task: set(model.model_fields) for task, model in BY_TASK.items()}
    names = {column.name for column in columns}
    with StimulusLookup(chosen.folder) as stimuli:
        for record in chosen.everything():
            task, answer = record["task"], record["answer"]
            unknown = set(answer or ()) - known.get(task, set())
            if unknown or (answer and f"answer.{next(iter(answer))}" not in names):
                raise misfit(record, "answer", f"an answer to {task} with {', '.join(sorted(answer))} was not expected")
            stimulus = stimuli.get(record) or {}
            try:
                row = [_cell(column, record, stimulus) for column in columns]
            except (AttributeError, KeyError, TypeError) as error:
                raise misfit(record, "record", f"a part of it has a wrong type: {error}") from None
            yield row


def _cell(column: Column, record: dict[str, Any], stimulus: dict[str, Any]) -> Any:
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
PARQUET = FileFormat(write_parquet)
