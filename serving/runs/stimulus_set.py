"""Reading a stimulus set, row by row: a JSONL file, a table (CSV, Parquet, a folder of Hugging Face's ``datasets``), a
list of words (.txt) or a folder of images with a task.

A set is never held in memory. Every row comes out, good or bad; a bad one says everything that is wrong with it. In
CSV text is taken as it is, numbers, true and false by the field's type, lists and objects as JSON; an empty cell is an
absent field. A table's column ``meta.NAME`` is an entry of ``meta``, a number only where it is spelled as one. Text is
UTF-8, with or without a byte-order mark; blank lines and CRLF are fine. Where a table has no column ``id``, a row's
content is its id (:func:`content_id`).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic import ValidationError

from agents.errors import InputError, Problem
from agents.stimuli import ADAPTER, ALL_TASKS, IMAGES, Stimulus, as_dict, canonical
from serving.runs import csv_tables
from serving.runs.csv_tables import CsvReader, repeated_columns
from serving.runs.image_folder import image_names
from serving.runs.row_problems import Found, RepeatedKeyError, field_problems, shown, strict_json
from serving.runs.table_sets import column_names, is_table, table_rows

JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
KINDS = (
    f"a set is a JSONL file ({', '.join(JSONL_SUFFIXES)}), a table (.csv, .parquet, a folder of Hugging Face's "
    "datasets), a list of words (.txt), or a folder of images"
)
ID_DIGITS = 16
META = "meta."  # of the names of columns
WHOLE = ("image", "cue", "topic")  # fields that are the id of a row which has nothing else


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


def read_rows(
    path: Path | str, task: str | Sequence[str] | None = None, *, root: Path | str | None = None
) -> Iterator[Row]:
    """The rows of the set at ``path``, in order.

    ``task`` is needed for a folder of images, of which several may be asked (picture by picture), and otherwise fills
    in where a row has none; a row that says another task has a problem then, so that nobody takes ``task`` for a choice
    among the rows. ``root`` is the folder that image names
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
        if is_image_folder(path):
            rows = _folder_rows(path, where, [task] if isinstance(task, str) else task or [])
        elif not isinstance(task, str | None):
            raise InputError(f"{where}: several tasks are asked about the images of a folder, and of no other set")
        elif is_table(path):
            rows = _table_rows(path, RowReader(where, path if path.is_dir() else folder, task))
        else:
            rows = _file_rows(path, where, folder, task)
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


def _folder_rows(path: Path, where: str, tasks: Sequence[str]) -> Iterator[Row]:
    if not tasks:
        raise InputError(f"{where}: a folder of images; say with --task what is asked about them")
    for task in tasks:
        if task not in PICTURE_TASKS:
            raise InputError(f"{where}: {task} shows no image; its set is a JSONL or CSV file, not a folder")
    for name in image_names(path):
        shown = os.fsencode(os.path.join(where, name)).decode("utf-8", "backslashreplace")
        for task in tasks:
            yield RowReader(shown, path, task).from_cells({"id": name, "image": name}, None)


def _file_rows(path: Path, where: str, root: Path, task: str | None) -> Iterator[Row]:
    suffix = path.suffix.lower()
    if suffix not in (*JSONL_SUFFIXES, ".csv", ".txt"):
        raise InputError(f"{where}: an unknown kind of set; {KINDS}")
    reader = RowReader(where, root, task)
    with path.open("rb") as file:
        csv_tables.skip_mark(file, where)
        read = {".csv": _csv_rows, ".txt": _word_rows}.get(suffix, _jsonl_rows)
        yield from read(file, reader)


def _table_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    names = column_names(path)
    for number, row in enumerate(table_rows(path), start=1):
        if any(isinstance(row.get(name), dict) for name in IMAGES):
            make = f"`turinglike set {reader.where} --out FOLDER` makes files of them, and a set"
            raise InputError(f"{reader.where}: has its pictures in itself; {make}")
        if number == 1:
            _check_columns(reader, None, names)
        yield reader.from_values(row, number, unnamed="id" not in names)


def _word_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    """A cue, or with the task conversation a topic, on each line."""
    reader.task = reader.task or "word_association"
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
            yield reader.from_json(text, number)


def _csv_rows(file: BinaryIO, reader: RowReader) -> Iterator[Row]:
    table = CsvReader(file, reader.where)
    unnamed = "id" not in table.names
    if table.names:
        _check_columns(reader, table.line, table.names)
    for row in table:
        if row.problem is not None:
            yield reader.bad(row.line, None, [(None, row.problem)])
        else:
            filled = {name: cell for name, cell in row.cells.items() if cell}
            yield reader.from_cells(filled, row.line, unnamed=unnamed)


def _check_columns(reader: RowReader, line: int | None, names: Sequence[str]) -> None:
    """Raises InputError for columns that no set can have, or that have to be there."""
    unknown = [name for name in names if name not in FIELDS and not name.startswith(META)]
    found: list[Found] = [
        (shown(name) or None, f"no field of a stimulus; a free one is called {META}NAME") for name in unknown
    ]
    found += repeated_columns(names)
    if reader.task is None and "task" not in names:
        found.append(("task", "missing: there is no such column"))
    if found:
        header = "the columns" if line is None else "the header (the first line, names with commas between them)"
        raise InputError(
            f"{reader.where}: {header} cannot be used",
            [Problem(reader.where, line, name, message) for name, message in found],
        )


class RowReader:
    """Makes rows of what stands in one file. ``where`` names it in problems, ``task`` is for rows that have none, and
    no row may have another. ``files`` are the bytes of images that are not read from ``root``. The content of an
    ``unnamed`` row becomes its id."""

    def __init__(self, where: str, root: Path, task: str | None, files: Mapping[str, bytes] | None = None) -> None:
        self.where = where
        self.task = task
        self._context = {"root": root, "files": files}

    def from_json(self, text: bytes, line: int | None, *, unnamed: bool = False) -> Row:
        """One row from its JSON."""
        filled = text
        if self.task is not None and (fields := _object(text)) is not None and "task" not in fields:
            filled = orjson.dumps({"task": self.task, **fields})
        try:
            stimulus = ADAPTER.validate_json(filled, context=self._context)
        except ValidationError as error:
            return self.bad(line, _object(filled), [*_repeated(text), *field_problems(error)], unnamed=unnamed)
        # Each pair of a JSON object has a colon: as many colons as fields leave no room for a key that stands twice.
        if filled.count(b":") != len(stimulus.model_fields_set) and (repeated := _repeated(text)):
            return self.bad(line, _object(filled), repeated)
        return self._good(stimulus, line, unnamed)

    def from_values(self, values: Mapping[str, Any], line: int | None, *, unnamed: bool) -> Row:
        """One row from its fields' values."""
        fields = with_meta({**values, "id": "?"} if unnamed else values)
        if type(fields.get("id")) is int:
            fields["id"] = str(fields["id"])
        try:
            return self.from_json(orjson.dumps(fields), line, unnamed=unnamed)
        except TypeError as error:
            found = [(name, "must be a path or text, is bytes") for name in fields if isinstance(fields[name], bytes)]
            return self.bad(line, None, found or [(None, f"not JSON: {error}")])

    def from_cells(self, cells: Mapping[str, str], line: int | None, *, unnamed: bool = False) -> Row:
        """One row from the texts of its fields."""
        values: dict[str, Any] = {**cells, "id": "?"} if unnamed else {**cells}
        problems: list[Found] = []
        for name, text in cells.items():
            if name in _NESTED:
                try:
                    values[name] = strict_json(text)
                except ValueError as error:
                    problems.append((name, shown(f"not JSON: {error}")))
            elif name.startswith(META):
                values[name] = _scalar(text)
        fields = with_meta(values if self.task is None else {"task": self.task, **values})
        try:
            stimulus = ADAPTER.validate_python(fields, strict=False, context=self._context)
        except ValidationError as error:
            said = {name for name, _ in problems}
            problems += [found for found in field_problems(error) if found[0] not in said]
        if problems:
            return self.bad(line, fields, problems, unnamed=unnamed)
        return self._good(stimulus, line, unnamed)

    def _good(self, stimulus: Stimulus, line: int | None, unnamed: bool) -> Row:
        if unnamed:
            stimulus.id = content_id(stimulus)
        kept = canonical(stimulus)
        row = Row(line, self.where, stimulus, kept, stimulus.id, stimulus.task, kept)
        if self.task not in (None, stimulus.task):
            message = f"is {stimulus.task!r}, but --task says {self.task!r}"
            row.problems, row.stimulus, row.canonical = (Problem(self.where, line, "task", message),), None, None
        return row

    def bad(
        self, line: int | None, fields: dict[str, Any] | None, problems: Iterable[Found], *, unnamed: bool = False
    ) -> Row:
        """A row with problems. What stands in it is kept if JSON can hold it."""
        if fields is not None and unnamed:
            fields = {name: value for name, value in fields.items() if name != "id"}
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


def content_id(stimulus: Stimulus) -> str:
    """An id for a stimulus without one: the image's name, the cue or the topic where it has nothing else, and 16 hex
    digits of a SHA-256 of all that it has otherwise."""
    fields = {name: value for name, value in as_dict(stimulus).items() if name not in ("id", "task")}
    if len(fields) == 1 and (name := next(iter(fields))) in WHOLE:
        try:
            return type(stimulus).model_validate({"id": fields[name], "task": stimulus.task, name: fields[name]}).id
        except ValidationError:  # what no id may be: a path that begins with "/", say
            pass
    row = orjson.dumps({"task": stimulus.task, **fields}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(row).hexdigest()[:ID_DIGITS]


def with_free_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a table that was made for something else: what is no field of a stimulus goes into ``meta``, if it is
    text, a number, true or false."""
    return {
        name if name in FIELDS or name.startswith(META) else META + name: value
        for name, value in values.items()
        if name in FIELDS or isinstance(value, str | int | float)
    }


def with_meta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with what is in the columns ``meta.NAME`` in ``meta``."""
    fields = {name: value for name, value in values.items() if not name.startswith(META)}
    free = {name.removeprefix(META): value for name, value in values.items() if name.startswith(META)}
    if free:
        fields["meta"] = {**(fields["meta"] if isinstance(fields.get("meta"), dict) else {}), **free}
    return fields


def _scalar(text: str) -> Any:
    """A cell as true or false, or as the number that is spelled exactly so; else the text that it is: 007 and 1.10 are
    codes and versions, and an id of 23 digits is no number that a computer keeps."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    is_number = isinstance(value, int | float) and str(value) == text
    return value if isinstance(value, bool) or is_number else text


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
