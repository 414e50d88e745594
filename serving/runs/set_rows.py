"""Rows of a stimulus set: what stands in one place of a file becomes a stimulus, or problems by field."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from agents.errors import Problem
from agents.stimuli import ADAPTER, ALL_TASKS, Stimulus, WordStimulus, as_dict, canonical
from serving.runs.columns import (
    META,
    MOST_NOTES,
    NESTED,
    Choose,
    is_free,
    meant,
    name_of,
    needed_field,
    note,
    tasks_of,
)
from serving.runs.positions import id_key
from serving.runs.row_problems import Found, RepeatedKeyError, field_problems, shown, strict_json

ID_DIGITS = 16


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
        if self.task is not None and (fields := json_object(text)) is not None and "task" not in fields:
            filled = orjson.dumps({"task": self.task, **fields})
        try:
            stimulus = ADAPTER.validator.validate_json(filled, context=self._context)
        except ValidationError as error:
            return self._mended(text, json_object(filled), line, error, unnamed)
        # Each pair of a JSON object has a colon: as many colons as fields leave no room for a key that stands twice.
        if filled.count(b":") != len(stimulus.model_fields_set) and (repeated := _repeated(text)):
            return self.bad(line, json_object(filled), repeated)
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


def json_object(text: bytes) -> dict[str, Any] | None:
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
