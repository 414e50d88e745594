"""Reading a stimulus set, row by row: a JSONL file, a CSV file, or a folder of images with a task.

A set is never held in memory. Every row comes out, good or bad; a bad one says everything that is wrong with it.

- JSONL (``.jsonl``, ``.ndjson``, ``.json``): one object a line. A key that stands twice, NaN and lone surrogates are
  problems, wherever in the row they stand.
- CSV (``.csv``): a header of field names; text is taken as it is, numbers, true and false by the field's type, lists
  and objects as JSON; an empty cell is an absent field.
- a folder: one stimulus per image file, at any depth; its id and image are the file's name relative to the folder with
  "/" between the parts, in sorted order. Names that begin with a dot are skipped.

Text is UTF-8, with or without a byte-order mark; blank lines and CRLF are fine.
"""

from __future__ import annotations

import csv
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, BinaryIO, Literal, Union, get_args, get_origin

import orjson
from pydantic import ValidationError

from agents.errors import InputError, Problem
from agents.images import Image
from agents.stimuli import ADAPTER, TASKS, Stimulus, canonical
from serving.runs.image_folder import image_names
from serving.runs.row_problems import (
    MODELS,
    Found,
    field_problems,
    kind_of,
    read_object,
    reads_as_json,
    repeats_a_key,
    unknown_names,
    unknown_task,
)

MAX_LINE = 16 * 1024 * 1024  # bytes of one line, line end included, and of one CSV cell
JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")


@dataclass(slots=True)
class Row:
    """One row of a set.

    ``where`` is the set's file as the user named it (for a folder: the image file), ``line`` its first line there,
    from 1. Without problems ``stimulus`` and ``canonical`` (its canonical JSON) are set. ``id`` and ``task`` are
    there whenever they are good in themselves. ``raw`` is the row as compact JSON, for keeping rows that are not
    good: empty if there was no object; equal to ``canonical`` for a good row. ``key`` is the id's hash, once checked.
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


def read_rows(path: Path | str, task: str | None = None, *, root: Path | str | None = None) -> Iterator[Row]:
    """The rows of the set at ``path``, in order.

    ``task`` is needed for a folder and otherwise fills in where a row has none; a row that says another task has a
    problem then, so that nobody takes ``task`` for a choice among the rows. ``root`` is the folder that image names
    are relative to (the set's own folder unless given). Raises InputError where there is no set to read: an empty
    path, no such file, unknown kind, unusable CSV header, no row at all, an error while reading.
    """
    if not str(path):
        raise InputError("no set is given; a set is a JSONL or CSV file, or a folder of images with --task")
    where, path = str(path), Path(path)
    if task is not None and task not in TASKS:
        raise InputError(f"--task: {unknown_task(task)}")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InputError(f"{where}: no such file or folder") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(mode):
        rows = _read_folder(path, where, _folder_task(where, task))
    elif not stat.S_ISREG(mode):
        raise InputError(f"{where}: not a regular file; a set is a JSONL or CSV file, or a folder of images")
    else:
        reader = _Reader(where, path.parent if root is None else Path(root), task)
        suffix = path.suffix.lower()
        if suffix not in (*JSONL_SUFFIXES, ".csv"):
            raise InputError(
                f"{where}: unknown kind of set; known are JSONL ({', '.join(JSONL_SUFFIXES)}), CSV (.csv), "
                "and a folder of images with --task"
            )
        rows = _read_file(path, where, reader.csv_rows if suffix == ".csv" else reader.jsonl_rows)
    return _not_empty(rows, where)


def _folder_task(where: str, task: str | None) -> str:
    if task is None:
        raise InputError(f"{where}: a folder of images; say with --task what is asked about them")
    if "image" not in MODELS[task].model_fields:
        raise InputError(f"{where}: {task} shows no image; its set is a JSONL or CSV file, not a folder")
    return task


def _not_empty(rows: Iterator[Row], where: str) -> Iterator[Row]:
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise InputError(f"{where}: an empty set: there is no stimulus in it")


def _read_file(path: Path, where: str, read: Callable[[BinaryIO], Iterator[Row]]) -> Iterator[Row]:
    try:
        with path.open("rb") as file:
            start = file.read(3)
            if start.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InputError(f"{where}: UTF-16 text; save it as UTF-8")
            if start != b"\xef\xbb\xbf":
                file.seek(0)
            yield from read(file)
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines with their ends; None for one that is longer than MAX_LINE, of which no more than that is ever held."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
        yield None


_TOO_LONG: Found = (None, f"longer than {MAX_LINE >> 20} MiB; left out unread")


class _Reader:
    """Reads the rows of one file. ``where`` names it in problems, ``task`` is for rows that have none, and no row may
    have another."""

    def __init__(self, where: str, root: Path, task: str | None) -> None:
        self.where = where
        self.root = root
        self.task = task
        self._context = {"root": root, "files": None}
        self._task_json = b"" if task is None else b'{"task":"' + task.encode() + b'"'

    def jsonl_rows(self, file: BinaryIO) -> Iterator[Row]:
        whole = file.name.lower().endswith(".json")
        first = True
        for number, line in enumerate(_lines(file), start=1):
            if line is None:
                yield self._bad(number, None, [_TOO_LONG])
                continue
            text = line.strip()
            if not text:
                continue
            if first and (text in (b"{", b"[") or (whole and text.startswith(b"["))):
                raise InputError(
                    f"{self.where}: one JSON document over several lines or a list; a set has one object "
                    f"{{…}} on each line (`jq -c '.[]' FILE` turns a list into that)"
                )
            first = False
            yield self.row(text, number)

    def row(self, text: bytes, line: int | None, unread: Mapping[str, tuple[str, str]] | None = None) -> Row:
        """One row from its JSON. ``unread`` holds cells that are left out of it: name -> (text, what is wrong)."""
        if self.task is not None and b'"task"' not in text and text.startswith(b"{"):
            rest = text[1:].lstrip()
            text = self._task_json + (b"" if rest.startswith(b"}") else b",") + rest
        good = None if unread else self._good(text, line)
        return good or self._diagnose(text, line, unread or {})

    def _good(self, text: bytes, line: int | None) -> Row | None:
        try:
            stimulus = ADAPTER.validate_json(text, context=self._context)
        except ValidationError:
            return None
        if self.task is not None and stimulus.task != self.task:
            return None
        # Each pair of a JSON object has a colon, so as many colons as fields leave no room for a repeated key.
        if text.count(b":") != len(stimulus.model_fields_set) and repeats_a_key(text):
            return None
        return self._row(stimulus, line)

    def _row(self, stimulus: Stimulus, line: int | None) -> Row:
        kept = canonical(stimulus)
        return Row(line, self.where, stimulus, kept, stimulus.id, stimulus.task, kept)

    def _diagnose(self, text: bytes, line: int | None, unread: Mapping[str, tuple[str, str]]) -> Row:
        found, problems = read_object(text)
        if found is None:
            return self._bad(line, None, problems)
        if self.task is not None:
            found.setdefault("task", self.task)
        found |= {name: cell for name, (cell, _) in unread.items()}
        problems += [(name, message) for name, (_, message) in unread.items()]
        try:
            stimulus = ADAPTER.validate_json(json.dumps(found), context=self._context)
        except ValidationError as error:
            said = {name for name, _ in problems}
            problems += [(name, message) for name, message in field_problems(error, found) if name not in said]
        else:
            if not problems and self.task in (None, stimulus.task):
                return self._row(stimulus, line)
        row = self._bad(line, found, problems)
        if self.task not in (None, row.task) and row.task is not None:
            other = Problem(self.where, line, "task", f"is {row.task!r}, but --task says {self.task!r}")
            row.problems = (other, *row.problems)
        return row

    def _bad(self, line: int | None, found: dict[str, Any] | None, problems: Sequence[Found]) -> Row:
        wrong = {name for name, _ in problems}
        one = (found or {}).get("id")
        task = (found or {}).get("task")
        return Row(
            line,
            self.where,
            None,
            None,
            one if isinstance(one, str) and "id" not in wrong else None,
            task if isinstance(task, str) and task in TASKS and "task" not in wrong else None,
            b"" if found is None else json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(),
            tuple(Problem(self.where, line, name, message) for name, message in problems),
        )

    def csv_rows(self, file: BinaryIO) -> Iterator[Row]:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        lines = _CsvLines(file)
        table = csv.reader(lines, strict=True)
        needed = ("id", "task") if self.task is None else ("id",)
        names: list[str] = []
        while True:
            start = lines.number + 1
            cells: list[str] = []
            error = None
            try:
                cells = next(table)
            except StopIteration:
                return
            except csv.Error as broken:
                error = _csv_problem(str(broken), start, lines.number)
            problems, lines.problems = lines.problems, []
            if error:
                problems.append((None, error))
            if not names and (problems or any(cells)):
                names = _header(self.where, start, cells, problems, needed)
            elif problems:
                yield self._bad(start, None, problems)
            elif any(cells):
                yield self._csv_row(names, cells, start)

    def _csv_row(self, names: list[str], cells: list[str], line: int) -> Row:
        if len(cells) != len(names):
            return self._bad(line, None, [(None, f"{len(cells)} cells, but the header has {len(names)}")])
        parts: list[bytes] = []
        unread: dict[str, tuple[str, str]] = {}
        for name, cell in zip(names, cells, strict=True):
            if not cell:
                continue
            value, problem = _cell(_CELLS[name], cell)
            if problem:
                unread[name] = (cell, problem)
            else:
                parts.append(b'"%b":%b' % (name.encode(), value))
        return self.row(b"{" + b",".join(parts) + b"}", line, unread)


class _CsvLines:
    """The lines of a CSV file as text. What is wrong with one is kept until the row it belongs to is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._lines = _lines(file)
        self.number = 0
        self.problems: list[Found] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if line is None:
            self.problems.append(_TOO_LONG)
            return "\n"
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            at = f"byte 0x{line[error.start]:02x} at position {error.start + 1} of line {self.number}"
            self.problems.append((None, f"not UTF-8: {at}"))
            return line.decode("utf-8", "replace")


def _csv_problem(said: str, start: int, end: int) -> str:
    if "field larger" in said or "unexpected end" in said:
        return f"a quoted cell that begins here is never closed (read as far as line {end})"
    if "expected after" in said:
        return 'a quoted cell is followed by something else than a comma; inside quotes, write " as ""'
    return f"not CSV: {said}"


def _header(where: str, line: int, cells: list[str], problems: list[Found], needed: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    found = list(problems)
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        found.append((None, "the columns must be separated by commas"))
    else:
        for at, name in enumerate(names, start=1):
            if not name:
                found.append((None, f"column {at} has no name"))
            elif names.index(name) < at - 1:
                found.append((name, f"two columns of this name, {names.index(name) + 1} and {at}"))
        found += unknown_names([name for name in names if name])
        found += [(name, "missing: there is no such column") for name in needed if name not in names]
    if found:
        raise InputError(
            f"{where}: the header (the first line) cannot be used",
            [Problem(where, line, name, message) for name, message in found],
        )
    return names


def _cell(kind: str, cell: str) -> tuple[bytes, str | None]:
    """A cell as JSON for a field of this kind, and what is wrong with it, if anything."""
    if kind == "text":
        return orjson.dumps(cell), None
    plain = cell.strip()
    if kind == "bool":
        plain = plain.lower()
    try:
        value = orjson.loads(plain) if kind in ("bool", "json") else _number(plain)
    except ValueError:
        if kind == "json" and reads_as_json(plain):
            return plain.encode(), None  # JSON but for NaN or half a character: said with the other problems
        return b"", f"must be {_NOT_A_CELL[kind]}, not {kind_of(cell)}"
    if kind == "int" and value == int(value):
        value = int(value)  # 24.0, as tables write whole numbers next to empty cells
    return plain.encode() if kind == "json" else orjson.dumps(value), None


def _number(text: str) -> float:
    """As tables write numbers, .5 and 007 too. ValueError for anything else, NaN and Infinity too."""
    value = float(text)
    if "_" in text or not math.isfinite(value):
        raise ValueError
    return value


_NOT_A_CELL = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "json": 'JSON such as ["a", "b"] or {"a": 1}',
}


def _cell_kind(annotation: Any) -> str:
    """How a CSV cell of a field of this type is read: "text", "int", "float", "bool", or "json" for all else."""
    if get_origin(annotation) is Annotated:
        return _cell_kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        [kind] = {_cell_kind(part) for part in get_args(annotation) if part is not NoneType}
        return kind
    if get_origin(annotation) is Literal or annotation in (str, Image):
        return "text"
    return {int: "int", float: "float", bool: "bool"}.get(annotation, "json")


_CELLS = {name: _cell_kind(field.annotation) for model in MODELS.values() for name, field in model.model_fields.items()}


def _read_folder(path: Path, where: str, task: str) -> Iterator[Row]:
    reader = _Reader(where, path, task)
    for name in image_names(os.fsencode(path)):
        shown = os.path.join(where, os.fsdecode(name))
        reader.where = shown.encode("utf-8", "backslashreplace").decode()
        try:
            text = name.decode()
        except UnicodeDecodeError:
            yield reader._bad(None, None, [(None, "the file's name is not UTF-8")])
            continue
        yield reader.row(orjson.dumps({"id": text, "image": text, "task": task}), None)
