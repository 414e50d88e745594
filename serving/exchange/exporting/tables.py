"""Records as tables: JSONL as they are; CSV and Parquet with a column for each field of a record and of its stimulus.

Nested values are JSON text in CSV, and lists and structs in Parquet. The columns come from :class:`Record` and from
what the set's rows hold, so that all runs of a task have the same columns, whether filled or not.
"""

from __future__ import annotations

import io
import types
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import orjson
from pydantic import BaseModel

from agents.answers import BY_TASK
from agents.errors import InputError
from agents.stimuli import ALL_TASKS, Task
from serving.exchange.exporting.export import Export, misfit
from serving.files.csv_tables import write_rows
from serving.runs import words_by_rules
from serving.runs.records import Record, problems
from serving.sets.stimulus_set import arrow

if TYPE_CHECKING:
    import pyarrow

RecordAndStimulus = tuple[dict[str, Any], dict[str, Any]]
"""A record, and the row of its stimulus; {} where the set has none."""
CHUNK = 10_000  # rows of Parquet that are held in memory
TYPE_NAMES = {int: "int", float: "float", bool: "bool", str: "text", datetime: "time"}  # as the side-car calls them
FIRST = ("benchmark_id", "source", "source_id", "image")  # fields of a stimulus whose columns go before the others


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table."""

    name: str
    """The header: "agent", "answer.color", "stimulus.image", "meta.block"."""
    type: Any
    """int, float, bool, str, datetime, list[…] or a model of pydantic; Any for values of several types, which Parquet
    holds as text or JSON text."""
    path: tuple[str, ...]
    """The keys that lead to the value, from the record or from its stimulus: ("answer", "color")."""
    of_stimulus: bool = False
    """Whether ``path`` begins at the stimulus."""

    def value(self, record: dict[str, Any], stimulus: dict[str, Any]) -> Any:
        """The column's value of a record and its stimulus; None where a key of the path is absent."""
        if self.name == "rejected_attempts":
            return sum(any(verdict["rejected"] for verdict in attempt["verdicts"]) for attempt in record["attempts"])
        part: Any = stimulus if self.of_stimulus else record
        for key in self.path:
            part = part.get(key) if isinstance(part, dict) else None
        return part


BY_RULES = (Column("by_rules.word", str, ("by_rules", "word")), Column("by_rules.rule", str, ("by_rules", "rule")))
"""A word after the papers' rules, as judges see it, and the rule that drops it."""


def write_jsonl(export: Export) -> dict[str, Any]:
    """Write the records as JSON, a line each, as the run holds them. Returns {}: there are no notes."""
    file = export.open()
    for record in export.all_records():
        file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return {}


def write_csv(export: Export) -> dict[str, Any]:
    """Write the records as CSV (RFC 4180, UTF-8). Returns the columns' types for the side-car."""
    columns = _columns(export)
    text = io.TextIOWrapper(export.open(), encoding="utf-8", newline="", write_through=True)
    cells = ([_plain(column.value(*pair)) for column in columns] for pair in _pairs(export))
    write_rows(text, [column.name for column in columns], cells)
    text.detach()
    return _notes(columns)


def write_parquet(export: Export) -> dict[str, Any]:
    """Write the records as Parquet (zstd). Returns the columns' types for the side-car. Raises UnavailableError without
    pyarrow, InputError for a value of another type than its column."""
    pa = arrow()
    columns = _columns(export)
    pairs = _pairs(export)
    with pa.parquet.ParquetWriter(export.open(), _schema(pa, columns), compression="zstd") as writer:
        while chunk := list(islice(pairs, CHUNK)):
            writer.write_table(_table(pa, columns, chunk))
    return _notes(columns)


def arrow_table(pairs: Sequence[RecordAndStimulus]) -> pyarrow.Table:
    """A row for each record and its stimulus, without columns that are empty in all of them. Raises UnavailableError
    without pyarrow."""
    columns = columns_of({record["task"] for record, _ in pairs}, (row for _, row in pairs))
    table = _table(arrow(), columns, pairs)
    return table.select([name for name in table.column_names if table[name].null_count < len(table)])


def _columns(export: Export) -> list[Column]:
    tasks: set[Task] = set()
    for name in [*export.run.agents(), *export.run.imports()]:
        tasks |= {record["task"] for record in export.run.records(name)}
    columns = columns_of(tasks, export.run.stimuli())
    if words_by_rules.TASK in tasks and words_by_rules.are_known():
        place = next(at for at, column in enumerate(columns) if column.name == "raw")
        columns[place:place] = BY_RULES
    return columns


def _pairs(export: Export) -> Iterator[RecordAndStimulus]:
    for record in export.all_records():
        for problem in problems(record):
            raise misfit(record, problem.field or "record", problem.message)
        row = export.stimuli.get(record) or {}
        by_rules = words_by_rules.word_by_rules(record, row)
        yield (record if by_rules is None else {**record, "by_rules": by_rules}), row


def _notes(columns: Iterable[Column]) -> dict[str, Any]:
    types_by_name = {column.name: TYPE_NAMES.get(column.type, "json") for column in columns}
    notes: dict[str, Any] = {"columns": types_by_name}
    if "answer.word" in types_by_name and BY_RULES[0].name not in types_by_name:
        notes["remarks"] = [words_by_rules.MISSING]
    return notes


def columns_of(tasks: Collection[Task], stimuli: Iterable[dict[str, Any]]) -> list[Column]:
    """The columns of a table of records of ``tasks`` on ``stimuli``: the record's fields in their order, its answer's
    fields by task, then ``stimulus.*`` and ``meta.*`` by name."""
    columns = []
    answers = [BY_TASK[task].model_fields for task in ALL_TASKS if task in tasks]
    for name, field in Record.model_fields.items():
        kind = _bare(field.annotation)
        key = field.alias or name
        is_group = isinstance(kind, type) and issubclass(kind, BaseModel)
        groups = []
        if name == "answer":
            groups = answers
        elif is_group:
            groups = [kind.model_fields]
        for parts in groups:
            columns += [Column(f"{key}.{part}", _bare(inner.annotation), (key, part)) for part, inner in parts.items()]
        if name != "answer" and not is_group:
            columns.append(Column(key, datetime if name == "created" else kind, (key,)))
        if name == "attempts":
            columns.append(Column("rejected_attempts", int, ()))
    fields: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    for row in stimuli:
        _note_types(fields, row, ("id", "task", "meta"))
        if isinstance(row.get("meta"), dict):  # an invalid row may have anything there
            _note_types(meta, row["meta"], ())
    order = {name: number for number, name in enumerate(FIRST)}
    for name in sorted(fields, key=lambda name: (order.get(name, len(order)), name)):
        columns.append(Column(f"stimulus.{name}", fields[name], (name,), of_stimulus=True))
    return columns + [Column(f"meta.{name}", meta[name], ("meta", name), of_stimulus=True) for name in sorted(meta)]


# types


def _bare(annotation: Any) -> Any:
    """The type of a field without Annotated, None and Literal: ``list[float]`` of ``Annotated[list[float], …] |
    None``."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return _common({_bare(part) for part in get_args(annotation) if part is not types.NoneType})
    if get_origin(annotation) is Literal:
        return str
    if get_origin(annotation) is list:
        return list[_bare(get_args(annotation)[0])]  # type: ignore[misc]
    return annotation


def _common(kinds: set[Any]) -> Any:
    """The type that values of all ``kinds`` fit into."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else Any


def _note_types(types_by_name: dict[str, Any], values: dict[str, Any], without: Collection[str]) -> None:
    for name, value in values.items():
        if value is not None and name not in without:
            types_by_name[name] = _common({types_by_name.get(name, _type_of(value)), _type_of(value)})


def _type_of(value: Any) -> Any:
    if isinstance(value, list) and value:
        return list[_common({float if type(item) is int else _type_of(item) for item in value})]  # type: ignore[misc]
    is_plain = type(value) in (bool, float, str) or (type(value) is int and abs(value) < 2**53)
    return type(value) if is_plain else Any


def _plain(value: Any) -> Any:
    """A value for a cell of CSV."""
    if isinstance(value, list | dict | bool):
        return orjson.dumps(value).decode()
    return value


# Arrow


def _schema(pa: Any, columns: Iterable[Column]) -> Any:
    return pa.schema([(column.name, _arrow_type(pa, column.type)) for column in columns])


def _table(pa: Any, columns: Sequence[Column], pairs: Sequence[RecordAndStimulus]) -> pyarrow.Table:
    schema = _schema(pa, columns)
    arrays = []
    for column, kind in zip(columns, schema.types, strict=True):
        cells = [_typed(column.type, column.value(*pair)) for pair in pairs]
        try:
            arrays.append(pa.array(cells, type=kind))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"{column.name}: a value is not of the column's type: {error}") from None
    return pa.table(arrays, schema=schema)


def _arrow_type(pa: Any, kind: Any) -> Any:
    if get_origin(kind) is list:
        return pa.list_(_arrow_type(pa, get_args(kind)[0]))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return pa.struct([(name, _arrow_type(pa, _bare(field.annotation))) for name, field in fields])
    plain = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), datetime: pa.timestamp("ms", tz="UTC")}
    return plain.get(kind, pa.string())


def _typed(kind: Any, value: Any) -> Any:
    """A value as pyarrow takes it for a column of ``kind``."""
    if value is None or kind in (int, float, bool, str):
        return value
    if kind is datetime:
        return datetime.fromisoformat(value)
    if get_origin(kind) is list:
        return [_typed(get_args(kind)[0], item) for item in value]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: _typed(_bare(field.annotation), value.get(name)) for name, field in kind.model_fields.items()}
    return value if isinstance(value, str) else orjson.dumps(value).decode()
