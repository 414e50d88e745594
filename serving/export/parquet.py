"""Parquet and Arrow: the columns of :mod:`serving.export.tables` with nested types, without those that are empty.

A fixation is a struct of x and y, a box one of x, y, width and height; palettes, messages, attempts are lists of
structs. What may be anything (``raw``, the answer of an attempt) is JSON text.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, Union, get_args, get_origin

import orjson
from pydantic import BaseModel

from agents.errors import InputError, UnavailableError
from serving.export.registry import FileFormat
from serving.export.selection import Selection
from serving.export.tables import Column, Pair, columns_told, export_columns, plain_cell, rows, selected

if TYPE_CHECKING:
    import pyarrow

CHUNK = 10_000  # rows
PARTS = {"answer.fixations": ("x", "y"), "answer.boxes": ("x", "y", "width", "height")}  # of what is a list of numbers


def write_parquet(chosen: Selection, files: list[BinaryIO], folder: Path) -> dict[str, Any]:
    """Write the selected records, :data:`CHUNK` rows at a time. Returns notes for the side-car: the columns. Raises
    UnavailableError without pyarrow."""
    pa = _pyarrow()
    import pyarrow.parquet as pq

    columns = _filled(export_columns(chosen), selected(chosen.uncounted()))
    schema = pa.schema([(column.name, _type(pa, column)) for column in columns])
    with pq.ParquetWriter(files[0], schema, compression="zstd") as writer:
        for table in _tables(pa, columns, selected(chosen)):
            writer.write_table(table)
    return columns_told(columns)


def arrow_table(columns: list[Column], pairs: Callable[[], Iterator[Pair]]) -> pyarrow.Table:
    """The records as a table in memory. ``pairs`` gives each with its stimulus. Raises UnavailableError without
    pyarrow."""
    pa = _pyarrow()
    filled = _filled(columns, pairs())
    schema = pa.schema([(column.name, _type(pa, column)) for column in filled])
    return pa.concat_tables([schema.empty_table(), *_tables(pa, filled, pairs())])


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UnavailableError("the package pyarrow is not installed: pip install 'turinglike[parquet]'") from None
    return pyarrow


def _filled(columns: list[Column], pairs: Iterator[Pair]) -> list[Column]:
    """The columns in which a record has something."""
    empty = {*range(len(columns))}
    for values in rows(pairs, columns, lambda column, record, stimulus: column.value(record, stimulus)):
        empty -= {place for place in empty if values[place] is not None}
        if not empty:
            break
    return [column for place, column in enumerate(columns) if place not in empty]


def _tables(pa: Any, columns: list[Column], pairs: Iterator[Pair]) -> Iterator[pyarrow.Table]:
    names = [column.name for column in columns]
    types = [_type(pa, column) for column in columns]
    read = rows(pairs, columns, _cell)
    while chunk := list(islice(read, CHUNK)):
        arrays = []
        for name, type_, cells in zip(names, types, zip(*chunk, strict=True), strict=True):
            try:
                arrays.append(pa.array(cells, type=type_))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise InputError(f"{name}: a value is not of the column's type: {error}") from None
        yield pa.table(arrays, names=names)


def _cell(column: Column, record: dict[str, Any], stimulus: Any) -> Any:
    """The value of a column, as Arrow takes it. Raises InputError if it is none of the column's type."""
    if column.shape is None:
        value = plain_cell(column, record, stimulus)
        return datetime.fromisoformat(value) if column.type == "time" and value is not None else value
    value = column.value(record, stimulus)
    if value is not None and column.name in PARTS:
        return [dict(zip(PARTS[column.name], numbers, strict=True)) for numbers in value]
    return _with_texts(column.shape, value)


def _with_texts(shape: Any, value: Any) -> Any:
    """The value with JSON text for every part that may be anything."""
    inner = _inner(shape)
    if value is None:
        return None
    if get_origin(inner) in (list, tuple):
        return [_with_texts(get_args(inner)[0], item) for item in value]
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        fields = {field.alias or name: field.annotation for name, field in inner.model_fields.items()}
        return {name: _with_texts(annotation, value[name]) for name, annotation in fields.items()}
    return value if inner in (int, float, bool, str) else orjson.dumps(value).decode()


def _type(pa: Any, column: Column) -> Any:
    """Arrow's type of a column."""
    if column.shape is not None:
        names = PARTS.get(column.name)
        return _nested(pa, column.shape) if names is None else pa.list_(pa.struct([(n, pa.float64()) for n in names]))
    plain = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "time": pa.timestamp("ms", tz="UTC")}
    return plain.get(column.type, pa.string())


def _nested(pa: Any, shape: Any) -> Any:
    """Arrow's type of what pydantic's annotation ``shape`` allows, besides null."""
    inner = _inner(shape)
    if get_origin(inner) in (list, tuple):
        return pa.list_(_nested(pa, get_args(inner)[0]))
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        fields = inner.model_fields.items()
        return pa.struct([(field.alias or name, _nested(pa, field.annotation)) for name, field in fields])
    return {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}.get(inner, pa.string())


def _inner(shape: Any) -> Any:
    """An annotation without None and without what it asks of values; numbers of both kinds as float."""
    if get_origin(shape) is Annotated:
        return _inner(get_args(shape)[0])
    if get_origin(shape) in (Union, types.UnionType):
        parts = {_inner(part) for part in get_args(shape) if part is not types.NoneType}
        return parts.pop() if len(parts) == 1 else float if parts == {int, float} else Any
    return str if get_origin(shape) is Literal else shape


PARQUET = FileFormat(write_parquet)
