"""A set's rows: fields of a file become a stimulus, or problems by field."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from types import NoneType
from typing import Any

import orjson
from pydantic import ValidationError

from agents.errors import InputError, Problem
from agents.stimuli import ADAPTER, ALL_TASKS, SHORT, TASKS, Stimulus, WordStimulus, as_dict, canonical
from serving.files.row_problems import FieldProblem, RepeatedKeyError, field_problems, strict_json
from serving.files.words import shown

META = "meta."  # of the names of columns
SIMPLE = (str, int, float, NoneType)
OTHER_TASK = "but the task that is asked is"
"""What a row's problem says where the row names a task, and the caller another."""
CONTENT = ("image", "cue", "topic")  # fields whose content is the id of a row without an id
FILE_NAME = "file_name"  # of a picture, in the metadata of an ImageFolder
ID_DIGITS = 16
SHORT_OF: Mapping[str, str] = {name: short for short, name in SHORT.items()}

Choose = Callable[[Sequence[str]], Mapping[str, bool]]
"""Which of several tasks a row has that names none, and whether its row of this task gets an id of its own."""
TasksByAgent = Mapping[str, Sequence[str]]


def _properties_by_task() -> dict[str, dict[str, Any]]:
    schema = ADAPTER.json_schema()
    models = [schema["$defs"][variant["$ref"].rsplit("/", 1)[1]] for variant in schema["oneOf"]]
    return {model["properties"]["task"]["const"]: model["properties"] for model in models}


_PROPERTIES = _properties_by_task()
PICTURE_TASKS = frozenset(task for task, fields in _PROPERTIES.items() if "image" in fields)
FIELDS = frozenset(name for fields in _PROPERTIES.values() for name in fields)
NESTED = frozenset(  # lists and objects
    name
    for fields in _PROPERTIES.values()
    for name, field in fields.items()
    if any(variant.get("type") in ("array", "object") for variant in field.get("anyOf", [field]))
)
_COMMON = frozenset.intersection(*(frozenset(fields) for fields in _PROPERTIES.values()))


def is_free(name: str) -> bool:
    """Whether a column is neither a stimulus's field nor ``meta.NAME``."""
    return name not in FIELDS and not name.startswith(META)


def tasks_of(fields: Collection[str]) -> Sequence[str]:
    """The tasks of participants that have all of these fields."""
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


def chosen_by(tasks_by_agent: TasksByAgent, asked: Sequence[str] = (), narrowed: Set[str] = frozenset()) -> Choose:
    """The tasks of rows that name none: those that are ``asked``; without any those that agents answer, of pictures
    :func:`image_tasks`. The tasks of the agents ``narrowed`` were chosen."""

    def choose(tasks: Sequence[str]) -> Mapping[str, bool]:
        if asked:
            return own_ids([task for task in asked if task in tasks], tasks_by_agent)
        if PICTURE_TASKS.issuperset(tasks):
            return own_ids([task for task in image_tasks(tasks_by_agent, narrowed) if task in tasks], tasks_by_agent)
        has_words = any("word_association" in answered for answered in tasks_by_agent.values())
        return {task: False for task in tasks if (task == "word_association") == has_words}

    return choose


def only(*asked: str) -> Choose:
    """The ``asked`` tasks of rows that name none, where they fit."""
    return lambda tasks: {task: False for task in asked if task in tasks}


def own_ids(tasks: Sequence[str], tasks_by_agent: TasksByAgent) -> dict[str, bool]:
    """The ``tasks`` that a row has, and which of them get rows with ids of their own: the second and all after it, if
    an agent answers several. A record's key is its stimulus, agent and sample, so that two tasks of one agent cannot
    share an id."""
    answers_several = any(len({*tasks}.intersection(answered)) > 1 for answered in tasks_by_agent.values())
    return {task: answers_several and place > 0 for place, task in enumerate(tasks)}


def image_tasks(tasks_by_agent: TasksByAgent, narrowed: Set[str] = frozenset()) -> list[str]:
    """The tasks about images, if none is asked for: the only one that all agents answer, else those of the agents that
    have a single one, and all of the agents ``narrowed``, whose tasks were chosen. Raises InputError where that leaves
    an agent of several tasks without one."""
    about_images = {
        name: [task for task in tasks if task in PICTURE_TASKS and task != "judgement"]
        for name, tasks in tasks_by_agent.items()
    }
    answered = [*about_images.values()]
    if not any(answered):
        listed = "; ".join(
            f"{name} answers {', '.join(tasks) or 'in conversations'}" for name, tasks in tasks_by_agent.items()
        )
        raise InputError(f"these agents answer nothing about images: {listed}")
    common = [task for task in answered[0] if all(task in tasks for tasks in answered)]
    if len(common) == 1 and not narrowed:
        return common
    single = [*dict.fromkeys(tasks[0] for tasks in answered if len(tasks) == 1)]
    for name, tasks in about_images.items():
        if name in narrowed:
            single += [task for task in tasks if task not in single]
    for name, tasks in about_images.items():
        if len(tasks) > 1 and not {*tasks}.intersection(single):
            names = " or ".join(SHORT_OF.get(task, task) for task in tasks)
            raise InputError(
                f"{name} answers several tasks about images: say with task (--task) which one it shall answer here, "
                f"{names}; or several with commas between them; or for this agent alone with {name}=TASK"
            )
    return single


def name_of(fields: Mapping[str, Any]) -> str | None:
    """What a row without an id is called: its cue, topic or picture; None without any."""
    for field in CONTENT:
        if isinstance(text := fields.get(field), str) and text.strip():
            if field != "image":
                return text.strip()
            path = PurePath(text)
            return path.name if path.is_absolute() or ".." in path.parts else text
    return None


@dataclass(slots=True)
class Row:
    """A row of a set for one task: a valid stimulus, or what is wrong with it."""

    line: int | None
    """The line of the file, from 1; None where there is no file."""
    where: str
    """What messages call the source."""
    stimulus: Stimulus | None = None
    """The parsed row; None if it has problems."""
    canonical: bytes | None = None
    """The stimulus as canonical JSON; None if the row has problems."""
    id: str | None = None
    """The stimulus's id; None where it cannot be read or is itself a problem."""
    task: str | None = None
    """The name of a task; None where the row gives none that exists."""
    raw: bytes = b""
    """The row as compact JSON; empty where it was no object."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with it, a field each."""


@dataclass(slots=True)
class RowReader:
    """Makes rows from lines of JSON, cells of tables and values. An ``unnamed`` row's content becomes its id."""

    where: str
    """What messages call the source."""
    root: Path
    """The folder in which the paths of pictures begin."""
    task: str | None
    """The task of rows without one; None: what their fields fit."""
    choose: Choose | None = None
    """Picks among the tasks that a row fits; None: a row that fits several has a problem."""
    files: Mapping[str, bytes] | None = None
    """The bytes of pictures that are not below ``root``, by the name that rows give them."""

    def from_line(self, text: bytes, line: int) -> Iterator[Row]:
        """The rows of a line of JSON, one for each task."""
        try:
            fields = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            yield self.bad(line, [(None, f"not JSON: {error.msg} at column {error.colno}")])
            return
        if not isinstance(fields, dict):
            yield self.bad(line, [(None, "must be an object")])
            return
        # Each pair of a JSON object has a colon: as many colons as fields leave no room for a key that stands twice.
        repeated = _repeated_key(text) if text.count(b":") != len(fields) else []
        yield from self.from_values(fields, line, problems=repeated)

    def from_cells(self, cells: Mapping[str, str], line: int | None, *, unnamed: bool = False) -> Iterator[Row]:
        """The rows of a table's row, whose ``cells`` are text by column; as :meth:`from_values`."""
        values: dict[str, Any] = {**cells}
        problems: list[FieldProblem] = []
        for name, text in cells.items():
            if name in NESTED:
                try:
                    values[name] = strict_json(text)
                except ValueError as error:
                    problems.append((name, shown(f"not JSON: {error}")))
            elif name.startswith(META):
                values[name] = _scalar(text)
        yield from self.from_values(values, line, unnamed=unnamed, problems=problems, strict=False)

    def from_values(
        self,
        values: Mapping[str, Any],
        line: int | None,
        *,
        unnamed: bool = False,
        problems: Sequence[FieldProblem] = (),
        strict: bool = True,
    ) -> Iterator[Row]:
        """A row for each task. If ``strict``, text is no number."""
        if FILE_NAME in values and not any(name in values for name in CONTENT):
            # The metadata of an ImageFolder (the package datasets) name the picture so, beside them in the folder.
            values = {"image" if name == FILE_NAME else name: value for name, value in values.items()}
            unnamed = unnamed or "id" not in values
        tasks: Mapping[str, bool] = {}
        if "task" not in values:
            fitting = [self.task] if self.task is not None else tasks_of(values)
            if len(fitting) <= 1:
                tasks = dict.fromkeys(fitting, False)
            elif self.choose is not None:
                tasks = self.choose(fitting)
        fields = with_meta({**values, "id": "?"} if unnamed else values)
        for task, has_own_id in tasks.items():
            with_task = {"task": task, **fields}
            if has_own_id and not unnamed:
                _give_own_id(with_task)
            yield self._row(with_task, line, unnamed, [*problems], strict, has_own_id)
        if not tasks:
            yield self._row(fields, line, unnamed, [*problems], strict)

    def bad(self, line: int | None, problems: Iterable[FieldProblem]) -> Row:
        """A row that has nothing but problems."""
        return Row(line, self.where, problems=tuple(Problem(self.where, line, *problem) for problem in problems))

    def _row(
        self,
        fields: dict[str, Any],
        line: int | None,
        unnamed: bool,
        problems: list[FieldProblem],
        strict: bool,
        has_own_id: bool = False,
    ) -> Row:
        try:
            raw = orjson.dumps(fields)
        except TypeError:
            return self.bad(line, _not_json(fields))
        context = {"root": self.root, "files": self.files}
        try:
            stimulus = ADAPTER.validator.validate_json(raw, strict=strict, context=context)
        except ValidationError as error:
            fields_with_problems = {name for name, _ in problems if name is not None}
            problems += [problem for problem in field_problems(error) if problem[0] not in fields_with_problems]
        else:
            if unnamed:
                fields["id"] = content_id(stimulus)
                if has_own_id:
                    _give_own_id(fields)
                    stimulus.benchmark_id = fields["benchmark_id"]
                stimulus.id = fields["id"]
            if self.task not in (None, stimulus.task):
                problems.append(("task", f"is {stimulus.task!r}, {OTHER_TASK} {self.task!r}"))
            if not problems:
                raw = canonical(stimulus)
                return Row(line, self.where, stimulus, raw, stimulus.id, stimulus.task, raw)
        if fields.get("id") == "?" and unnamed:
            del fields["id"]
        row = self.bad(line, problems)
        id = fields.get("id")
        task = fields.get("task")
        row.raw = orjson.dumps(fields)
        row.id = id if isinstance(id, str) and "id" not in {problem.field for problem in row.problems} else None
        row.task = task if isinstance(task, str) and task in ALL_TASKS else None
        return row


def _give_own_id(fields: dict[str, Any]) -> None:
    """Put the task before the id; what the stimulus was called stays as ``benchmark_id``, unless it has one."""
    name = fields.get("id")
    if isinstance(name, str):
        fields.setdefault("benchmark_id", name)
        fields["id"] = f"{fields['task']}/{name}"


def content_id(stimulus: Stimulus) -> str:
    """The id of a stimulus without id: its picture, cue or topic, else a hash of its fields."""
    fields = {name: value for name, value in as_dict(stimulus).items() if name not in ("id", "task")}
    try:
        return WordStimulus.model_validate({"id": name_of(fields), "task": "word_association", "cue": "any"}).id
    except ValidationError:
        row = orjson.dumps({"task": stimulus.task, **fields}, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(row).hexdigest()[:ID_DIGITS]


def without_nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields without lists and objects that are no field of a stimulus."""
    return {name: value for name, value in values.items() if not is_free(name) or isinstance(value, SIMPLE)}


def with_meta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields, with ``meta.NAME`` and simple values that are no field of a stimulus in ``meta``."""
    if values.keys() <= FIELDS:
        return {**values}  # nearly every row
    fields: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith(META) or (name not in FIELDS and isinstance(value, SIMPLE)):
            free[name.removeprefix(META)] = value
        else:
            fields[name] = value
    meta = fields.get("meta") or {}
    if free and isinstance(meta, dict):
        fields["meta"] = {**meta, **free}
    return fields


def _scalar(text: str) -> Any:
    """A cell as number, true or false where that is the only spelling, else as text: 007 and 1.10 are codes."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(value, bool):
        return value
    is_number = isinstance(value, int) or (isinstance(value, float) and not value.is_integer())
    return value if is_number and str(value) == text else text


def _not_json(fields: Mapping[str, Any], above: str = "") -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name, value in fields.items():
        try:
            orjson.dumps({name: value})
        except TypeError as error:
            within = _not_json(value, META) if name == "meta" and isinstance(value, dict) else []
            problems += within or [(shown(above + name), f"must be text or a plain number ({error})")]
    return problems


def _repeated_key(text: bytes) -> list[FieldProblem]:
    try:
        strict_json(text)
    except RepeatedKeyError as error:
        return [(None, str(error))]
    except ValueError:
        pass
    return []
