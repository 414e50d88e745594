"""Reading a stimulus set, row by row: a JSONL file, a CSV file, or a folder of images with a task.

A set is never held in memory. Every row comes out, good or bad; a bad one says everything that is wrong with it. In
CSV text is taken as it is, numbers, true and false by the field's type, lists and objects as JSON; an empty cell is an
absent field. Text is UTF-8, with or without a byte-order mark; blank lines and CRLF are fine.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic import ValidationError

from agents.errors import InputError, Problem
from agents.stimuli import ADAPTER, ALL_TASKS, Stimulus, canonical
from serving.runs.image_folder import image_names
from serving.runs.row_problems import Found, RepeatedKeyError, field_problems, shown, strict_json

MAX_LINE = 16 * 1024 * 1024  # bytes of one line, line end included, and of one CSV cell
JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
KINDS = f"a set is a JSONL file ({', '.join(JSONL_SUFFIXES)}), a CSV file (.csv), or a folder of images with --task"


@dataclass(slots=True)
class Row:
    """One row of a set.

    ``where`` is the set's file as the user named it (for a folder: the image file), ``line`` its first line there,
    from 1. Without problems ``stimulus`` and ``canonical`` (its canonical JSON) are set. ``id`` and ``task`` are
    there whenever they are good in themselves. ``raw`` is the row as compact JSON, for keeping rows that are not
    good: empty if there was no object; equal to ``canonical`` for a good row. ``key`` is the id's key, once checked.
    """

    line: int | None
    where: str
    stimulus: Stimulus | None
    canonical: bytes | None
    id: str | None
    task: str | None
    raw: bytes
    problems: tuple[Problem, ...] = ()
    key: int = 0


def _properties_by_task() -> dict[str, dict[str, Any]]:
    schema = ADAPTER.json_schema()
    models = [schema["$defs"][one["$ref"].rsplit("/", 1)[1]] for one in schema["oneOf"]]
    return {model["properties"]["task"]["const"]: model["properties"] for model in models}


def _is_nested(field: dict[str, Any]) -> bool:
    return any(one.get("type") in ("array", "object") for one in field.get("anyOf", [field]))


_PROPERTIES = _properties_by_task()
PICTURE_TASKS = frozenset(task for task, fields in _PROPERTIES.items() if "image" in fields)
FIELDS = frozenset(name for fields in _PROPERTIES.values() for name in fields)
_NESTED = frozenset(name for fields in _PROPERTIES.values() for name, field in fields.items() if _is_nested(field))


def read_rows(path: Path | str, task: str | None = None, *, root: Path | str | None = None) -> Iterator[Row]:
    """The rows of the set at ``path``, in order.

    ``task`` is needed for a folder and otherwise fills in where a row has none; a row that says another task has a
    problem then, so that nobody takes ``task`` for a choice among the rows. ``root`` is the folder that image names
    are relative to (the set's own folder unless given). Raises InputError where there is no set to read: no such file,
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
        for row in _folder_rows(path, where, task) if stat.S_ISDIR(mode) else _file_rows(path, where, folder, task):
            empty = False
            yield row
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None
    if empty:
        raise InputError(f"{where}: an empty set: there is no stimulus in it")


def _folder_rows(path: Path, where: str, task: str | None) -> Iterator[Row]:
    if task is None:
        raise InputError(f"{where}: a folder of images; say with --task what is asked about them")
    if task not in PICTURE_TASKS:
        raise InputError(f"{where}: {task} shows no image; its set is a JSONL or CSV file, not a folder")
    for name in image_names(path):
        shown = os.fsencode(os.path.join(where, name)).decode("utf-8", "backslashreplace")
        yield RowReader(shown, path, task).from_cells({"id": name, "image": name}, None)


def _file_rows(path: Path, where: str, root: Path, task: str | None) -> Iterator[Row]:
    suffix = path.suffix.lower()
    if suffix not in (*JSONL_SUFFIXES, ".csv"):
        raise InputError(f"{where}: an unknown kind of set; {KINDS}")
    reader = RowReader(where, root, task)
    with path.open("rb") as file:
        start = file.read(3)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{where}: UTF-16 text; save it as UTF-8")
        file.seek(3 if start == b"\xef\xbb\xbf" else 0)
        yield from _csv_rows(file, reader) if suffix == ".csv" else _jsonl_rows(file, reader)


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines with their ends; None for one that is longer than MAX_LINE, of which no more than that is ever held."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
        yield None


def _jsonl_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    first = True
    for number, line in enumerate(_lines(file), start=1):
        if line is None:
            yield reader.bad(number, None, [(None, f"longer than {MAX_LINE:,} bytes; left out unread")])
        elif text := line.strip():
            if first and (text in (b"{", b"[") or text.startswith(b"[{")):
                raise InputError(
                    f"{reader.where}: one JSON document over several lines or a list; a set has one object "
                    "{…} on each line (`jq -c '.[]' FILE` turns a list into that)"
                )
            first = False
            yield reader.from_json(text, number)


def _csv_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    # What is not UTF-8 becomes lone surrogates, which are an error of the cell that they stand in.
    table = csv.reader(_csv_lines(file, reader.where), strict=True)
    names: list[str] = []
    while True:
        start = table.line_num + 1
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            yield reader.bad(start, None, [(None, f"not CSV: {error}")])
            continue
        if not any(cells):
            continue
        if not names:
            names = _header(reader, start, cells)
        elif len(cells) != len(names):
            yield reader.bad(start, None, [(None, f"{len(cells)} cells, but the header has {len(names)}")])
        else:
            yield reader.from_cells({name: cell for name, cell in zip(names, cells, strict=True) if cell}, start)


def _csv_lines(file: BinaryIO, where: str) -> Iterator[str]:
    for number, line in enumerate(_lines(file), start=1):
        if line is None:
            problem = Problem(where, number, None, f"longer than {MAX_LINE:,} bytes")
            raise InputError(f"{where}: cannot be read on", [problem])
        yield line.decode("utf-8", "surrogateescape")


def _header(reader: RowReader, line: int, cells: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    found: list[Found] = []
    first: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        if name not in FIELDS:
            found.append((shown(name) or None, "no field of a stimulus; free ones go into meta"))
        elif first.setdefault(name, at) < at:
            found.append((name, f"two columns of this name, {first[name]} and {at}"))
    needed = ("id", "task") if reader.task is None else ("id",)
    found += [(name, "missing: there is no such column") for name in needed if name not in names]
    if found:
        raise InputError(
            f"{reader.where}: the header (the first line, names with commas between them) cannot be used",
            [Problem(reader.where, line, name, message) for name, message in found],
        )
    return names


class RowReader:
    """Makes rows of what stands in one file. ``where`` names it in problems, ``task`` is for rows that have none, and
    no row may have another. ``files`` are the bytes of images that are not read from ``root``."""

    def __init__(self, where: str, root: Path, task: str | None, files: Mapping[str, bytes] | None = None) -> None:
        self.where = where
        self.task = task
        self._context = {"root": root, "files": files}

    def from_json(self, text: bytes, line: int) -> Row:
        """One row from its JSON."""
        filled = text
        if self.task is not None and (fields := _object(text)) is not None and "task" not in fields:
            filled = orjson.dumps({"task": self.task, **fields})
        try:
            stimulus = ADAPTER.validate_json(filled, context=self._context)
        except ValidationError as error:
            return self.bad(line, _object(filled), [*_repeated(text), *field_problems(error)])
        # Each pair of a JSON object has a colon: as many colons as fields leave no room for a key that stands twice.
        if filled.count(b":") != len(stimulus.model_fields_set) and (repeated := _repeated(text)):
            return self.bad(line, _object(filled), repeated)
        return self._good(stimulus, line)

    def from_cells(self, cells: dict[str, Any], line: int | None) -> Row:
        """One row from the texts of its fields."""
        fields = {"task": self.task, **cells} if self.task is not None else cells
        problems: list[Found] = []
        for name in _NESTED.intersection(fields):
            try:
                fields[name] = strict_json(fields[name])
            except ValueError as error:
                problems.append((name, shown(f"not JSON: {error}")))
        try:
            stimulus = ADAPTER.validate_python(fields, strict=False, context=self._context)
        except ValidationError as error:
            said = {name for name, _ in problems}
            problems += [found for found in field_problems(error) if found[0] not in said]
        if problems:
            return self.bad(line, fields, problems)
        return self._good(stimulus, line)

    def _good(self, stimulus: Stimulus, line: int | None) -> Row:
        kept = canonical(stimulus)
        row = Row(line, self.where, stimulus, kept, stimulus.id, stimulus.task, kept)
        if self.task not in (None, stimulus.task):
            message = f"is {stimulus.task!r}, but --task says {self.task!r}"
            row.problems, row.stimulus, row.canonical = (Problem(self.where, line, "task", message),), None, None
        return row

    def bad(self, line: int | None, fields: dict[str, Any] | None, problems: Iterable[Found]) -> Row:
        """A row with problems. What stands in it is kept if JSON can hold it."""
        found = [Problem(self.where, line, name, message) for name, message in problems]
        row = Row(line, self.where, None, None, None, None, b"", tuple(found))
        try:
            row.raw = b"" if fields is None else orjson.dumps(fields)
        except TypeError:
            return row
        wrong = {problem.field for problem in found}
        if fields is not None:
            id, task = fields.get("id"), fields.get("task")
            row.id = id if isinstance(id, str) and "id" not in wrong else None
            row.task = task if isinstance(task, str) and task in ALL_TASKS else None
        return row


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _repeated(text: bytes) -> list[Found]:
    """The problem that a key stands twice, if one does; what else is no JSON is told by pydantic."""
    try:
        strict_json(text)
    except RepeatedKeyError as error:
        return [(None, str(error))]
    except ValueError:
        pass
    return []
