"""Rows of sets that are typed tables: a Parquet file, or a folder of Hugging Face's ``datasets`` (``save_to_disk``)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from agents.errors import InputError, UnavailableError

HUGGING_FACE, SPLITS = "state.json", "dataset_dict.json"  # of a folder that save_to_disk has made, and of several
CHUNK = 1_000  # rows
ROW_NUMBERS = re.compile("__index_level_[0-9]+__")  # what pandas calls an index without a name


def is_table(path: Path) -> bool:
    """Whether ``path`` is such a file or folder, by its name and what is in it."""
    return path.suffix.lower() == ".parquet" or any((path / name).is_file() for name in (HUGGING_FACE, SPLITS))


def column_names(path: Path) -> list[str]:
    """The columns of a table. Raises InputError and UnavailableError."""
    schema = next(_batches(path)).schema if path.is_dir() else _parquet(path).schema_arrow
    return [name for name in schema.names if not ROW_NUMBERS.fullmatch(name)]


def table_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table without what is absent; an image is its path, or as the table holds it, {"bytes", "path"}.

    Raises InputError for what cannot be read, and UnavailableError without pyarrow.
    """
    for batch in _batches(path):
        for row in batch.to_pylist():
            yield {name: _image(value) for name, value in present(row).items()}


def present(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's fields without what says nothing: null, NaN, and the numbers that pandas gives rows."""
    return {
        name: value
        for name, value in row.items()
        if value is not None
        and not (isinstance(value, float) and math.isnan(value))
        and not ROW_NUMBERS.fullmatch(name)
    }


def _image(value: Any) -> Any:
    is_path = isinstance(value, dict) and value.keys() == {"bytes", "path"} and value["bytes"] is None
    return value["path"] if is_path else value


def _batches(path: Path) -> Iterator[Any]:
    if not path.is_dir():
        yield from _parquet(path).iter_batches(CHUNK)
        return
    if (path / SPLITS).is_file():
        there = ", ".join(sorted(one.name for one in path.iterdir() if one.is_dir()))
        raise InputError(f"{path}: holds several sets; give the folder of one: {there}")
    pa = _pyarrow()
    try:
        state = orjson.loads((path / HUGGING_FACE).read_bytes())
        files = [path / one["filename"] for one in state["_data_files"]]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {HUGGING_FACE} is not of Hugging Face's datasets: {error}") from None
    if state.get("_indices_data_files"):
        raise InputError(f"{path}: holds a choice of its rows; save dataset.flatten_indices() instead")
    for file in files:
        try:
            with pa.memory_map(str(file)) as source:
                yield from pa.ipc.open_stream(source)
        except pa.ArrowInvalid as error:
            raise InputError(f"{file}: cannot be read: {error}") from None


def _parquet(path: Path) -> Any:
    pa = _pyarrow()
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UnavailableError("the package pyarrow is not installed: pip install 'turinglike[parquet]'") from None
    return pyarrow
