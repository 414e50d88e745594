"""Rows of a stimulus set: fields of a file become a stimulus, or problems by field; and what columns
mean: fields of a stimulus, entries of ``meta``, and the task of a row that names none."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import starmap
from pathlib import Path, PurePath
from typing import Any

import orjson
from pydantic import ValidationError

from agents.errors import Problem
from agents.stimuli import ADAPTER, ALL_TASKS, TASKS, Stimulus, WordStimulus, as_dict, canonical
from serving.runs.row_problems import FieldProblem, RepeatedKeyError, field_problems, shown, strict_json

META = "meta."  # of the names of columns
CONTENT = ("image", "cue", "topic")  # fields whose content is the id of a row without an id
NO_TASK = "is missing, and the columns do not say it: name the task with --task, or in a column `task`"
ID_DIGITS = 16

Choose = Callable[[Sequence[str]], Sequence[str]]
"""Which of several tasks a row has that names none."""


def _properties_by_task() -> dict[str, dict[str, Any]]:
    schema = ADAPTER.json_schema()
    models = [schema["$defs"][variant["$ref"].rsplit("/", 1)[1]] for variant in schema["oneOf"]]
    return {model["properties"]["task"]["const"]: model["properties"] for model in models}


def _is_nested(field: dict[str, Any]) -> bool:
    return any(variant.get("type") in ("array", "object") for variant in field.get("anyOf", [field]))


_PROPERTIES = _properties_by_task()
PICTURE_TASKS = frozenset(task for task, fields in _PROPERTIES.items() if "image" in fields)
FIELDS = frozenset(name for fields in _PROPERTIES.values() for name in fields)
NESTED = frozenset(name for fields in _PROPERTIES.values() for name, field in fields.items() if _is_nested(field))
_COMMON = frozenset.intersection(*(frozenset(fields) for fields in _PROPERTIES.values()))


def is_free(name: str) -> bool:
    """Whether a column is no field of a stimulus, nor an entry of ``meta`` by its name."""
    return name not in FIELDS and not name.startswith(META)


def tasks_of(fields: Collection[str]) -> Sequence[str]:
    """The tasks of participants that have all of these fields, and of which the fields show something."""
    return _tasks_of(FIELDS.intersection(fields))


@cache
def _tasks_of(fields: frozenset[str]) -> Sequence[str]:
    if not fields - _COMMON:
        return ()
    needed = {"word_association": "cue", "conversation": None}
    return tuple(
        task
        for task in TASKS
        if fields <= _PROPERTIES[task].keys() and (needed.get(task, "image") or next(iter(fields))) in fields
    )


def needed_field(task: str) -> str | None:
    """The field without which no row of a task can be."""
    return "image" if task in PICTURE_TASKS else "cue" if task == "word_association" else None


def header_problems(names: Sequence[str], task: str | None, *, may_choose: bool) -> list[FieldProblem]:
    """The problems of a table's columns: those that every row needs and that are not there."""
    if unprintable := [shown(name) for name in names if not name.isprintable()]:
        return [(name, "is not printable text in UTF-8") for name in unprintable]
    wanted = CONTENT if task is None else tuple(filter(None, [needed_field(task)]))
    if task is not None and wanted and "task" not in names and wanted[0] not in names:
        return [(wanted[0], "missing: there is no such column")]
    if task is None and "task" not in names:
        tasks = tasks_of(names) or [task for name in CONTENT if name in names for task in tasks_of([name])]
        if not tasks or not (may_choose or len(tasks) == 1 or {"cue", "topic"} & {*names}):
            return [("task", NO_TASK)]
    return []


def name_of(fields: Mapping[str, Any]) -> str | None:
    """The name of a row without an id: its picture, cue or topic."""
    for field in CONTENT:
        if isinstance(text := fields.get(field), str) and text.strip():
            if field != "image":
                return text.strip()
            path = PurePath(text)
            return path.name if path.is_absolute() or ".." in path.parts else text
    return None


def repeated_names(rows: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The names that several of the rows have; an id is a name, too."""
    counts = Counter(row.get("id") or name_of(row) for row in rows)
    return frozenset(name for name, number in counts.items() if isinstance(name, str) and number > 1)


def may_repeat_names(names: Collection[str]) -> bool:
    """Whether rows with these columns may have the same name and different contents."""
    return "id" not in names and ("image" in names or len({*names} - {"task", ""}) > 1)


@dataclass(slots=True)
class Row:
    """One row of a set, from line ``line`` (from 1) of ``where``: the set's file, or the image's in a folder.

    Without problems ``stimulus`` and ``canonical`` (its canonical JSON) are set. ``id`` and ``task`` are there where
    they are good in themselves. ``raw`` is the row as compact JSON, empty if there was no object.
    """

    line: int | None
    where: str
    stimulus: Stimulus | None
    canonical: bytes | None
    id: str | None
    task: str | None
    raw: bytes
    problems: tuple[Problem, ...] = ()


class RowReader:
    """Makes rows of a file, which problems call ``where``.

    ``task`` is for rows without a task, and no row may have another; ``choose`` says the tasks of a row whose
    fields several tasks have. ``files`` are the bytes of images that are not read from ``root``. The content of an
    ``unnamed`` row becomes its id, unless its name is among the ``repeated``.
    """

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
        self.repeated: Container[str] = frozenset()
        self._context = {"root": root, "files": files}

    def with_tasks(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The fields with each of their tasks; as they are where they or the file say it, or nothing does."""
        if self.task is not None or "task" in fields:
            return (fields,)
        tasks = tasks_of(fields)
        if len(tasks) > 1:
            tasks = () if self.choose is None else self.choose(tasks)
        return [{"task": task, **fields} for task in tasks] or (fields,)

    def from_line(self, text: bytes, line: int) -> Iterator[Row]:
        """The rows of a line of JSON, a row for each task."""
        row = self._from_json(text, line)
        fields = _json_object(text) if row.task is None else None
        if fields is None:
            yield row
            return
        for with_task in self.with_tasks(fields):
            yield self._from_json(orjson.dumps(with_task), line)

    def from_values(self, values: Mapping[str, Any], line: int | None, *, unnamed: bool) -> Iterator[Row]:
        """The rows of the values of fields, a row for each task."""
        for row_values in self.with_tasks(values):
            fields = with_meta({**row_values, "id": "?"} if unnamed else row_values)
            if type(fields.get("id")) is int:
                fields["id"] = str(fields["id"])
            try:
                yield self._from_json(orjson.dumps(fields), line, unnamed=unnamed)
            except TypeError:
                yield self.bad(line, None, [*filter(None, starmap(_not_json, row_values.items()))])

    def from_cells(self, cells: Mapping[str, str], line: int | None, *, unnamed: bool = False) -> Row:
        """The row of the texts of fields."""
        values: dict[str, Any] = {**cells, "id": "?"} if unnamed else {**cells}
        problems: list[FieldProblem] = []
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
            known = {name for name, _ in problems}
            problems += [problem for problem in field_problems(error) if problem[0] not in known]
        if problems:
            return self.bad(line, fields, problems, unnamed=unnamed)
        return self._good(stimulus, line, unnamed)

    def bad(
        self,
        line: int | None,
        fields: dict[str, Any] | None,
        problems: Iterable[FieldProblem],
        *,
        unnamed: bool = False,
    ) -> Row:
        """A row with problems; its fields are kept if JSON can hold them."""
        if fields is not None and unnamed:
            fields = {name: value for name, value in fields.items() if name != "id"}
        listed = tuple(Problem(self.where, line, name, message) for name, message in problems)
        row = Row(line, self.where, None, None, None, None, b"", listed)
        try:
            row.raw = b"" if fields is None else orjson.dumps(fields)
        except TypeError:
            return row
        if fields is not None:
            id, task = fields.get("id"), fields.get("task")
            row.id = id if isinstance(id, str) and "id" not in {problem.field for problem in listed} else None
            row.task = task if isinstance(task, str) and task in ALL_TASKS else None
        return row

    def _from_json(self, text: bytes, line: int | None, *, unnamed: bool = False) -> Row:
        filled = text
        if self.task is not None and (fields := _json_object(text)) is not None and "task" not in fields:
            filled = orjson.dumps({"task": self.task, **fields})
        try:
            stimulus = ADAPTER.validator.validate_json(filled, context=self._context)
        except ValidationError as error:
            return self._mended(text, _json_object(filled), line, error, unnamed)
        # Each pair of a JSON object has a colon: as many colons as fields leave no room for a key that stands twice.
        if filled.count(b":") != len(stimulus.model_fields_set) and (repeated := _repeated_key(text)):
            return self.bad(line, _json_object(filled), repeated)
        return self._good(stimulus, line, unnamed)

    def _mended(
        self, text: bytes, fields: dict[str, Any] | None, line: int | None, error: ValidationError, unnamed: bool
    ) -> Row:
        """The row of JSON that is no stimulus as it stands: free fields go into ``meta``, the others are problems."""
        problems = [*_repeated_key(text), *field_problems(error)]
        free = [name for name in fields or () if is_free(name)]
        if fields is None or not free:
            return self.bad(line, fields, problems, unnamed=unnamed)
        kept = {name for name in free if isinstance(fields[name], str | int | float | None)}
        others = [problem for problem in problems if problem[0] not in kept]
        if not others:
            moved = {META + name if name in kept else name: value for name, value in fields.items()}
            return self._from_json(orjson.dumps(with_meta(moved)), line, unnamed=unnamed)
        return self.bad(line, fields, others, unnamed=unnamed)

    def _good(self, stimulus: Stimulus, line: int | None, unnamed: bool) -> Row:
        if unnamed:
            stimulus.id = content_id(stimulus, self.repeated)
        row = canonical(stimulus)
        if self.task in (None, stimulus.task):
            return Row(line, self.where, stimulus, row, stimulus.id, stimulus.task, row)
        problem = Problem(self.where, line, "task", f"is {stimulus.task!r}, but --task says {self.task!r}")
        return Row(line, self.where, None, None, stimulus.id, stimulus.task, row, (problem,))


def content_id(stimulus: Stimulus, repeated: Container[str] = frozenset()) -> str:
    """An id for a stimulus without id: its picture, cue or topic; but 16 hex digits of the SHA-256 of its fields where
    other rows have that name, too, and it is not all that this row has."""
    fields = {name: value for name, value in as_dict(stimulus).items() if name not in ("id", "task")}
    name = name_of(fields)
    if name is not None and ([*fields.values()] == [name] or name not in repeated):
        try:
            return WordStimulus.model_validate({"id": name, "task": "word_association", "cue": "any"}).id
        except ValidationError:  # it cannot be an id: with a backslash, say
            pass
    row = orjson.dumps({"task": stimulus.task, **fields}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(row).hexdigest()[:ID_DIGITS]


def with_free_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """A table's fields: those that are none of a stimulus go into ``meta``, if they are text, numbers or booleans."""
    return {
        META + name if is_free(name) else name: value
        for name, value in values.items()
        if not is_free(name) or isinstance(value, str | int | float)
    }


def with_meta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields, with those called ``meta.NAME`` in ``meta``."""
    fields = {name: value for name, value in values.items() if not name.startswith(META)}
    free = {name.removeprefix(META): value for name, value in values.items() if name.startswith(META)}
    if free:
        fields["meta"] = {**(fields["meta"] if isinstance(fields.get("meta"), dict) else {}), **free}
    return fields


def _scalar(text: str) -> Any:
    """A cell as true or false, or as the number that is spelled so and no other way; else as text. 007, 1.10 and 3.0
    are codes and versions; no computer keeps an id of 23 digits as a number."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(value, bool):
        return value
    is_number = isinstance(value, int) or (isinstance(value, float) and not value.is_integer())
    return value if is_number and str(value) == text else text


def _not_json(name: str, value: Any) -> FieldProblem | None:
    try:
        orjson.dumps(value)
    except TypeError as error:
        return name, f"must be text or a plain number ({error})"
    return None


def _json_object(text: bytes) -> dict[str, Any] | None:
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def _repeated_key(text: bytes) -> list[FieldProblem]:
    """The problem that a key stands twice; pydantic names what else is no JSON."""
    try:
        strict_json(text)
    except RepeatedKeyError as error:
        return [(None, str(error))]
    except ValueError:
        pass
    return []
