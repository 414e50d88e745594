"""Reading a stimulus set, row by row: a JSONL file, a table (CSV, Parquet, a folder of Hugging Face's ``datasets``), a
list of words (.txt) or a folder of images with a task.

A set is never held in memory. Every row comes out, good or bad; a bad one says everything that is wrong with it. In
CSV text is taken as it is, numbers, true and false by the field's type, lists and objects as JSON; an empty cell is an
absent field. A table's column ``meta.NAME`` is an entry of ``meta``, a number only where it is spelled as one. Text is
UTF-8, with or without a byte-order mark; blank lines and CRLF are fine. Where a table has no column ``id``, a row's
content is its id (:func:`serving.runs.set_rows.content_id`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import orjson

from agents.errors import InputError, Problem
from agents.stimuli import IMAGES
from serving.runs import csv_tables
from serving.runs.columns import (
    META,
    PICTURE_TASKS,
    Choose,
    header_problems,
    is_free,
    need_a_look,
    note,
    repeated_names,
    tasks_of,
)
from serving.runs.csv_tables import CsvReader, repeated_columns
from serving.runs.row_problems import shown
from serving.runs.set_rows import Row, RowReader, json_object, with_free_fields
from serving.runs.table_sets import column_names, is_table, table_rows

JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
SET_SUFFIXES = (*JSONL_SUFFIXES, ".csv", ".txt", ".parquet")
KINDS = (
    f"a set is a JSONL file ({', '.join(JSONL_SUFFIXES)}), a table (.csv, .parquet, a folder of Hugging Face's "
    "datasets), a list of words (.txt), or a folder of images"
)
TEXT_TASKS = ("word_association", "conversation")  # that a list of words may be of


def read_rows(
    path: Path | str, task: str | None = None, *, choose: Choose | None = None, root: Path | str | None = None
) -> Iterator[Row]:
    """The rows of the set at ``path``, in order.

    ``task`` fills in where a row has none; a row that says another task has a problem then, so that nobody takes
    ``task`` for a choice among the rows. Without it the fields of a row say its task; where several tasks have them,
    as of a picture, ``choose`` says which are asked, one row for each. ``root`` is the folder that image names are
    relative to (the set's own folder unless given). Raises InputError where there is no set to read: no such file,
    unknown kind, unusable CSV header, no row at all, an error while reading.
    """
    if not str(path):
        raise InputError(f"no set is given; {KINDS}")
    where, path = str(path), Path(path)
    empty = True
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise InputError(f"{where}: not a regular file; {KINDS}")
        folder = path.parent if root is None else Path(root)
        if is_image_folder(path):
            rows = _folder_rows(path, where, task, choose)
        elif is_table(path):
            rows = _table_rows(path, RowReader(where, path if path.is_dir() else folder, task, choose))
        else:
            rows = _file_rows(path, RowReader(where, folder, task, choose))
        for row in rows:
            empty = False
            yield row
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None
    if empty:
        raise InputError(f"{where}: an empty set: there is no stimulus in it")


def is_image_folder(path: Path) -> bool:
    """Whether a set is a folder of images, which says nothing of tasks."""
    return path.is_dir() and not is_table(path)


def _folder_rows(path: Path, where: str, task: str | None, choose: Choose | None) -> Iterator[Row]:
    tasks = [task] if task is not None else [] if choose is None else choose(tasks_of(["image"]))
    if not tasks:
        raise InputError(f"{where}: a folder of images; say with --task what is asked about them")
    for one in tasks:
        if one not in PICTURE_TASKS:
            raise InputError(f"{where}: {one} shows no image; its set is a JSONL or CSV file, not a folder")
    for name in image_names(path):
        shown = os.fsencode(os.path.join(where, name)).decode("utf-8", "backslashreplace")
        for one in tasks:
            yield RowReader(shown, path, one).from_cells({"id": name, "image": name}, None)


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
    if need_a_look(names):
        reader.repeated = repeated_names(table_rows(path))
    for number, row in enumerate(table_rows(path), start=1):
        if any(isinstance(row.get(name), dict) for name in IMAGES):
            make = f"`turinglike set {reader.where} --out FOLDER` makes files of them, and a set"
            raise InputError(f"{reader.where}: has its pictures in itself; {make}")
        if number == 1:
            whole = [
                name for name in names if is_free(name) and not isinstance(row.get(name), str | int | float | None)
            ]
            _renamed(reader, None, [name for name in names if name not in whole])
            for name in whole:
                reader.note(f"column `{shown(name)}` is left out: meta holds text, numbers, true and false alone")
        yield from reader.from_values(with_free_fields(row), number, unnamed="id" not in names)


def _word_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    """A cue, or with the task conversation a topic, on each line."""
    if reader.task is None and reader.choose is not None:
        reader.task = next(iter(reader.choose(TEXT_TASKS)), None)
    reader.task = reader.task or TEXT_TASKS[0]
    field = "topic" if reader.task == "conversation" else "cue"
    for number, line in enumerate(csv_tables.lines(file), start=1):
        if line is None:
            yield reader.bad(number, None, [(None, f"longer than {csv_tables.MAX_LINE:,} bytes; left out unread")])
        elif word := line.strip():
            yield reader.from_cells({field: word.decode("utf-8", "surrogateescape")}, number, unnamed=True)


def _jsonl_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    first = True
    for number, line in enumerate(csv_tables.lines(file), start=1):
        if line is None:
            yield reader.bad(number, None, [(None, f"longer than {csv_tables.MAX_LINE:,} bytes; left out unread")])
        elif text := line.strip():
            if first and (text in (b"{", b"[") or text.startswith(b"[{")):
                raise InputError(
                    f"{reader.where}: one JSON document over several lines or a list; a set has one object "
                    "{…} on each line (`jq -c '.[]' FILE` turns a list into that)"
                )
            first = False
            row = reader.from_json(text, number)
            if row.task is not None or (fields := json_object(text)) is None:
                yield row
            else:
                reader.notes += row.notes  # of this reading, which goes on
                yield from (reader.from_json(orjson.dumps(one), number) for one in reader.with_tasks(fields))


def _csv_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    start = file.tell()
    table = CsvReader(file, reader.where)
    if not table.names:
        return
    names = _renamed(reader, table.line, table.names)
    if need_a_look(table.names):
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
    """What each column of a table is called in a row; free ones are noted. Raises InputError for columns that no set
    can have, or that have to be there."""
    renamed = {name: META + name if is_free(name) else name for name in names}
    problems = repeated_columns([renamed[name] if name else "" for name in names])
    problems += header_problems(names, reader.task, may_choose=reader.choose is not None)
    if problems:
        header = "the columns" if line is None else "the header (the first line, names with commas between them)"
        raise InputError(
            f"{reader.where}: {header} cannot be used",
            [Problem(reader.where, line, name, message) for name, message in problems],
        )
    for name in filter(is_free, renamed):
        reader.note(note(name) if name else "a column without a name is left out")
    return renamed


# Formats that no agent can decode are among them, so that such a picture is reported and not silently left out.
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".jp2", ".jxl", ".heic", ".heif", ".avif", ".svg", ".eps", ".ico", ".psd", ".ppm", ".pgm", ".tga", ".exr"),
    )
)


def image_names(folder: Path, above: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """Names relative to ``folder``, at any depth, with "/" between the parts, sorted as whole names.

    Whatever has an image's suffix in its name counts, regular file or not; names that begin with a dot do not. Links
    to folders are followed, but never in a circle: ``above`` are the device and number of the folders on the way.
    Raises InputError for a folder that cannot be read.
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
        shown = os.fsencode(folder).decode("utf-8", "backslashreplace")
        raise InputError(f"{shown}: cannot be read: {error.strerror or error}") from None
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
