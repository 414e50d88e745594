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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from pydantic import ValidationError

from agents.errors import InputError, Problem
from agents.stimuli import ADAPTER, ALL_TASKS, IMAGES, Stimulus, WordStimulus, as_dict, canonical
from serving.runs import csv_tables
from serving.runs.columns import (
    META,
    MOST_NOTES,
    NESTED,
    PICTURE_TASKS,
    Choose,
    header_problems,
    is_free,
    meant,
    name_of,
    need_a_look,
    needed_field,
    note,
    repeated_names,
    tasks_of,
)
from serving.runs.csv_tables import CsvReader, repeated_columns
from serving.runs.image_folder import image_names
from serving.runs.positions import id_key
from serving.runs.row_problems import Found, RepeatedKeyError, field_problems, shown, strict_json
from serving.runs.table_sets import column_names, is_table, table_rows

JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
SET_SUFFIXES = (*JSONL_SUFFIXES, ".csv", ".txt", ".parquet")
KINDS = (
    f"a set is a JSONL file ({', '.join(JSONL_SUFFIXES)}), a table (.csv, .parquet, a folder of Hugging Face's "
    "datasets), a list of words (.txt), or a folder of images"
)
ID_DIGITS = 16
TEXT_TASKS = ("word_association", "conversation")  # that a list of words may be of


@dataclass(slots=True)
class Row:
    """One row of a set.

    ``where`` is the set's file as the user named it (for a folder: the image file), ``line`` its first line there,
    from 1. Without problems ``stimulus`` and ``canonical`` (its canonical JSON) are set. ``id`` and ``task`` are
    there whenever they are good in themselves. ``raw`` is the row as compact JSON, for keeping rows that are not
    good: empty if there was no object; equal to ``canonical`` for a good row. ``key`` is the id's key, once checked.
    ``notes`` are sentences on columns that this row is the first to have.
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
    notes: tuple[str, ...] = ()


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
            if row.task is not None or (fields := _object(text)) is None:
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


class RowReader:
    """Makes rows of what stands in one file. ``where`` names it in problems, ``task`` is for rows that have none, and
    no row may have another; ``choose`` says what is asked of a row whose fields several tasks have. ``files`` are the
    bytes of images that are not read from ``root``. The content of an ``unnamed`` row becomes its id; of names with a
    key in ``repeated`` there are several."""

    def __init__(
        self,
        where: str,
        root: Path,
        task: str | None,
        choose: Choose | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.where = where
        self.task = task
        self.choose = choose
        self.repeated: Container[int] = frozenset()
        self._context = {"root": root, "files": files}
        self._noted: dict[str, None] = {}
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep what is to be said of a column for the next row, once."""
        if text not in self._noted and len(self._noted) < MOST_NOTES:
            self._noted[text] = None
            self.notes.append(f"{self.where}: {text}")

    def with_tasks(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The fields with each task that is asked; as they are where they or the file say it, or nothing does."""
        if self.task is not None or "task" in fields:
            return (fields,)
        tasks = tasks_of(fields)
        if len(tasks) > 1:
            tasks = () if self.choose is None else self.choose(tasks)
        return [{"task": task, **fields} for task in tasks] or (fields,)

    def from_json(self, text: bytes, line: int | None, *, unnamed: bool = False) -> Row:
        """One row from its JSON."""
        filled = text
        if self.task is not None and (fields := _object(text)) is not None and "task" not in fields:
            filled = orjson.dumps({"task": self.task, **fields})
        try:
            stimulus = ADAPTER.validator.validate_json(filled, context=self._context)
        except ValidationError as error:
            return self._mended(text, _object(filled), line, error, unnamed)
        # Each pair of a JSON object has a colon: as many colons as fields leave no room for a key that stands twice.
        if filled.count(b":") != len(stimulus.model_fields_set) and (repeated := _repeated(text)):
            return self.bad(line, _object(filled), repeated)
        return self._good(stimulus, line, unnamed)

    def _mended(
        self, text: bytes, fields: dict[str, Any] | None, line: int | None, error: ValidationError, unnamed: bool
    ) -> Row:
        """The row of JSON that is no stimulus as it stands: free fields go into ``meta``, and the rest is a problem."""
        problems = [*_repeated(text), *field_problems(error)]
        free = [name for name in fields or () if is_free(name)]
        if fields is None or not free:
            return self.bad(line, fields, problems, unnamed=unnamed)
        kept = {name: fields[name] for name in free if isinstance(fields[name], str | int | float | None)}
        for name in kept:
            self.note(note(name))
        others = [found for found in problems if found[0] not in kept]
        if not others:
            moved = {META + name if name in kept else name: value for name, value in fields.items()}
            return self.from_json(orjson.dumps(with_meta(moved)), line, unnamed=unnamed)
        needed = needed_field(str(fields.get("task")))
        near = [] if needed is None else [name for name in free if meant(name, [needed])]
        hint = f"; did you mean it by `{shown(near[0])}`?" if near else ""
        told = [(name, message + hint if name == needed else message) for name, message in others]
        return self.bad(line, fields, told, unnamed=unnamed)

    def from_values(self, values: Mapping[str, Any], line: int | None, *, unnamed: bool) -> Iterator[Row]:
        """The rows from the values of fields, one for each task that is asked."""
        for given in self.with_tasks(values):
            fields = with_meta({**given, "id": "?"} if unnamed else given)
            if type(fields.get("id")) is int:
                fields["id"] = str(fields["id"])
            try:
                yield self.from_json(orjson.dumps(fields), line, unnamed=unnamed)
            except TypeError:
                yield self.bad(line, None, [*filter(None, starmap(_not_json, given.items()))])

    def from_cells(self, cells: Mapping[str, str], line: int | None, *, unnamed: bool = False) -> Row:
        """One row from the texts of its fields."""
        values: dict[str, Any] = {**cells, "id": "?"} if unnamed else {**cells}
        problems: list[Found] = []
        for name, text in cells.items():
            if name in NESTED:
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
            stimulus.id = content_id(stimulus, self.repeated)
        kept = canonical(stimulus)
        row = Row(line, self.where, stimulus, kept, stimulus.id, stimulus.task, kept)
        if self.task not in (None, stimulus.task):
            message = f"is {stimulus.task!r}, but --task says {self.task!r}"
            row.problems, row.stimulus, row.canonical = (Problem(self.where, line, "task", message),), None, None
        return self._with_notes(row)

    def _with_notes(self, row: Row) -> Row:
        if self.notes:
            row.notes, self.notes = tuple(self.notes), []
        return row

    def bad(
        self, line: int | None, fields: dict[str, Any] | None, problems: Iterable[Found], *, unnamed: bool = False
    ) -> Row:
        """A row with problems. What stands in it is kept if JSON can hold it."""
        if fields is not None and unnamed:
            fields = {name: value for name, value in fields.items() if name != "id"}
        found = [Problem(self.where, line, name, message) for name, message in problems]
        row = self._with_notes(Row(line, self.where, None, None, None, None, b"", tuple(found)))
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


def content_id(stimulus: Stimulus, repeated: Container[int] = frozenset()) -> str:
    """An id for a stimulus without one: its picture, cue or topic; and 16 hex digits of a SHA-256 of all that it has
    where other rows have that name, too, and it is not all that this one has."""
    fields = {name: value for name, value in as_dict(stimulus).items() if name not in ("id", "task")}
    name = name_of(fields)
    if name is not None and ([*fields.values()] == [name] or id_key(name) not in repeated):
        try:
            return WordStimulus.model_validate({"id": name, "task": "word_association", "cue": "any"}).id
        except ValidationError:  # what no id may be: with a backslash, say
            pass
    row = orjson.dumps({"task": stimulus.task, **fields}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(row).hexdigest()[:ID_DIGITS]


def with_free_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a table that was made for something else: what is no field of a stimulus goes into ``meta``, if it is
    text, a number, true or false."""
    return {
        META + name if is_free(name) else name: value
        for name, value in values.items()
        if not is_free(name) or isinstance(value, str | int | float)
    }


def with_meta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with what is in the columns ``meta.NAME`` in ``meta``."""
    fields = {name: value for name, value in values.items() if not name.startswith(META)}
    free = {name.removeprefix(META): value for name, value in values.items() if name.startswith(META)}
    if free:
        fields["meta"] = {**(fields["meta"] if isinstance(fields.get("meta"), dict) else {}), **free}
    return fields


def _scalar(text: str) -> Any:
    """A cell as true or false, or as the number that is spelled so and no other way; else the text that it is. 007,
    1.10 and 3.0 are codes and versions; no computer keeps an id of 23 digits as a number."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(value, bool):
        return value
    is_number = isinstance(value, int) or (isinstance(value, float) and not value.is_integer())
    return value if is_number and str(value) == text else text


def _not_json(name: str, value: Any) -> Found | None:
    """The problem of a field's value that JSON cannot hold."""
    try:
        orjson.dumps(value)
    except TypeError as error:
        return name, f"must be text or a plain number ({error})"
    return None


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
