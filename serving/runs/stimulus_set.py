"""Reading a stimulus set, row by row: lines of JSON, a table (CSV, Parquet), a list of words (.txt) or a folder of
images with a task.

A set is never held in memory. Every row comes out, good or bad; a bad row has all its problems. In CSV an empty cell is
an absent field, lists and objects are JSON. ``meta.NAME`` is an entry of ``meta``. Where a table has no column ``id``,
a row's content is its id (:func:`serving.runs.set_rows.content_id`).
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from agents.errors import InputError, Problem, UnavailableError
from agents.stimuli import IMAGES
from serving.runs import csv_tables
from serving.runs.csv_tables import CsvReader, repeated_columns
from serving.runs.set_rows import (
    META,
    PICTURE_TASKS,
    Choose,
    Row,
    RowReader,
    header_problems,
    is_free,
    may_repeat_names,
    repeated_names,
    tasks_of,
    with_free_fields,
)

JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
SET_SUFFIXES = (*JSONL_SUFFIXES, ".csv", ".txt", ".parquet")
KINDS = (
    f"a set is a JSONL file ({', '.join(JSONL_SUFFIXES)}), a table (.csv, .parquet), a list of words (.txt), or a "
    "folder of images"
)
TEXT_TASKS = ("word_association", "conversation")  # that a list of words may be of
# Of pictures. Formats that no agent can decode are among them, so that such a picture is reported and not left out.
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".jp2", ".jxl", ".heic", ".heif", ".avif", ".svg", ".eps", ".ico", ".psd", ".ppm", ".pgm", ".tga", ".exr"),
    )
)
CHUNK = 1_000  # rows of Parquet
ROW_NUMBERS = re.compile("__index_level_[0-9]+__")  # what pandas calls an index without a name


def read_rows(
    path: Path | str, task: str | None = None, *, choose: Choose | None = None, root: Path | str | None = None
) -> Iterator[Row]:
    """The rows of the set at ``path``, in order.

    ``task`` is for rows without a task; a row with another task has a problem. Without it the fields of a row say its
    task; where several tasks have them, as of a picture, ``choose`` says which, a row for each. ``root`` is
    the folder that image names are relative to, by default the set's own. Raises InputError if there is no set to read:
    no such file, unknown kind, unusable header, no row.
    """
    if not str(path):
        raise InputError(f"there is no set; {KINDS}")
    where, path = str(path), Path(path)
    empty = True
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise InputError(f"{where}: not a regular file; {KINDS}")
        folder = path.parent if root is None else Path(root)
        if path.is_dir():
            rows = _folder_rows(path, where, task, choose)
        elif is_table(path):
            rows = _table_rows(path, RowReader(where, folder, task, choose))
        else:
            rows = _file_rows(path, RowReader(where, folder, task, choose))
        for row in rows:
            empty = False
            yield row
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None
    if empty:
        raise InputError(f"{where}: an empty set: there is no stimulus in it")


def _folder_rows(path: Path, where: str, task: str | None, choose: Choose | None) -> Iterator[Row]:
    tasks = [task] if task is not None else [] if choose is None else choose(tasks_of(["image"]))
    if not tasks:
        raise InputError(f"{where}: a folder of images; say with --task what is to be answered")
    for each in tasks:
        if each not in PICTURE_TASKS:
            raise InputError(f"{where}: {each} shows no image; its set is a JSONL or CSV file, not a folder")
    for name in image_names(path):
        file = os.fsencode(os.path.join(where, name)).decode("utf-8", "backslashreplace")
        for each in tasks:
            yield RowReader(file, path, each).from_cells({"id": name, "image": name}, None)


def _file_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    suffix = path.suffix.lower()
    if suffix not in (*JSONL_SUFFIXES, ".csv", ".txt"):
        raise InputError(f"{reader.where}: an unknown kind of set; {KINDS}")
    with path.open("rb") as file:
        csv_tables.skip_mark(file, reader.where)
        read = {".csv": _csv_rows, ".txt": _word_rows}.get(suffix, _jsonl_rows)
        yield from read(file, reader)


def _table_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    names = column_names(path)
    if may_repeat_names(names):
        reader.repeated = repeated_names(table_rows(path))
    for number, row in enumerate(table_rows(path), start=1):
        if any(isinstance(row.get(name), dict) for name in IMAGES):
            advice = "write them to files, or give the rows to `answer` in Python"
            raise InputError(f"{reader.where}: has its pictures in itself; {advice}")
        if number == 1:
            _renamed(reader, None, names)
        yield from reader.from_values(with_free_fields(row), number, unnamed="id" not in names)


def _word_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    if reader.task is None and reader.choose is not None:
        reader.task = next(iter(reader.choose(TEXT_TASKS)), None)
    reader.task = reader.task or TEXT_TASKS[0]
    field = "topic" if reader.task == "conversation" else "cue"
    for number, line in enumerate(csv_tables.lines(file, reader.where), start=1):
        if text := line.strip():
            yield reader.from_cells({field: text.decode("utf-8", "surrogateescape")}, number, unnamed=True)


def _jsonl_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    is_first = True
    for number, line in enumerate(csv_tables.lines(file, reader.where), start=1):
        text = line.strip()
        if not text:
            continue
        if is_first and (text in (b"{", b"[") or text.startswith(b"[{")):
            raise InputError(
                f"{reader.where}: a JSON document over several lines or a list; a set has an object "
                "{…} on each line (`jq -c '.[]' FILE` turns a list into that)"
            )
        is_first = False
        yield from reader.from_line(text, number)


def _csv_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    start = file.tell()
    table = CsvReader(file, reader.where)
    if not table.names:
        return
    names = _renamed(reader, table.line, table.names)
    if may_repeat_names(table.names):
        reader.repeated = repeated_names(row.cells for row in table)
        file.seek(start)
        table = CsvReader(file, reader.where)
    unnamed = "id" not in table.names
    for row in table:
        if row.problem is not None:
            yield reader.bad(row.line, None, [(None, row.problem)])
            continue
        filled = {names[name]: cell for name, cell in row.cells.items() if cell and name}
        for fields in reader.with_tasks(filled):
            yield reader.from_cells(fields, row.line, unnamed=unnamed)


def _renamed(reader: RowReader, line: int | None, names: Sequence[str]) -> dict[str, str]:
    """The field of each column of a table. Raises InputError for a header that no set can have."""
    renamed = {name: META + name if is_free(name) else name for name in names}
    problems = repeated_columns([renamed[name] if name else "" for name in names])
    problems += header_problems(names, reader.task, may_choose=reader.choose is not None)
    if problems:
        header = "the columns" if line is None else "the header (the first line, names with commas between them)"
        raise InputError(
            f"{reader.where}: {header} cannot be used",
            [Problem(reader.where, line, name, message) for name, message in problems],
        )
    return renamed


def image_names(folder: Path, above: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """Names of pictures relative to ``folder``, at any depth, with "/" between the parts, sorted as full names.

    Every name with a picture's suffix counts, apart from those that begin with a dot. Links to folders are followed,
    but never in a circle: ``above`` are the device and number of the folders on the way. Raises InputError for a folder
    that cannot be read.
    """
    try:
        about = folder.stat()
        here = (about.st_dev, about.st_ino)
        if here in above:
            return
        with os.scandir(folder) as entries:
            # A folder sorts as the names in it will.
            names = sorted(entry.name + "/" * _is_folder(entry) for entry in entries if entry.name[0] != ".")
    except OSError as error:
        path = os.fsencode(folder).decode("utf-8", "backslashreplace")
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    for name in names:
        if name.endswith("/"):
            for inner in image_names(folder / name, (*above, here)):
                yield name + inner
        elif os.path.splitext(name)[1].lower() in SUFFIXES:
            yield name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


# tables with types


def is_table(path: Path) -> bool:
    """Whether ``path`` is a Parquet file, by its name."""
    return path.suffix.lower() == ".parquet"


def column_names(path: Path) -> list[str]:
    """The columns of a table. Raises InputError and UnavailableError."""
    return [name for name in _parquet(path).schema_arrow.names if not ROW_NUMBERS.fullmatch(name)]


def table_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table without absent values; an image is its path, or as the table holds it, {"bytes", "path"}.

    Raises InputError for what cannot be read, and UnavailableError without pyarrow.
    """
    for batch in _parquet(path).iter_batches(CHUNK):
        for row in batch.to_pylist():
            yield {name: _image(value) for name, value in present(row).items()}


def present(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's fields without null, NaN, and the numbers that pandas gives rows."""
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


def _parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UnavailableError("the package pyarrow is not installed: pip install 'turinglike[parquet]'") from None
    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
