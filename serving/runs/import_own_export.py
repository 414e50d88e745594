"""Answers that ``turinglike export --format csv`` wrote, in this project or another lab's, read back as they were.

Each row is a record: people stay people, and machines become ``published:NAME``. The text of a cell is as it was before
the export put an apostrophe before what a spreadsheet would take for a formula.
"""

import csv
import io
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from agents.answers import BY_TASK, plain
from agents.errors import InputError, Problem
from agents.stimuli import SHORT, Task
from serving.runs.csv_tables import by_line, read_table, unguarded
from serving.runs.import_source import ImportOptions, Source, refuse
from serving.runs.row_problems import as_problems

COLUMNS = ("schema", "run", "task", "stimulus", "stimulus_sha256", "agent", "kind", "sample", "seed", "status")
"""The first columns of our own table of records."""
SHORT_OF: dict[str, str] = {name: short for short, name in SHORT.items()}
KINDS = ("machine", "human", "published", "control")


def is_own_export(data: bytes) -> bool:
    """Whether a CSV begins as our own export of records does."""
    first = data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    return tuple(next(csv.reader(io.StringIO(first)), ()))[: len(COLUMNS)] == COLUMNS


def add_own_export(source: Source, data: bytes, options: ImportOptions) -> None:
    """Add the answers of our own CSV of records to one task. Raises InputError with every problem."""
    table = read_table(data, str(source.path))
    source.form = "records"
    tasks = list(dict.fromkeys(cells["task"] for _, cells in table.rows))
    task = options.task or (tasks[0] if len(tasks) == 1 else None)
    if task is None:
        names = ", ".join(SHORT_OF.get(name, name) for name in tasks)
        raise InputError(f"holds answers to several tasks; say with --task which: {names}")
    if task not in tasks or task not in BY_TASK:
        raise InputError(f"holds no answers to {task}, but to {', '.join(tasks)}")
    source.task = next(name for name in BY_TASK if name == task)
    problems = list(table.problems)
    left_out: Counter[str] = Counter()
    for line, cells in table.rows:
        if cells["task"] != task:
            left_out["answers_to_other_tasks"] += 1
        elif cells["kind"] == "control":
            left_out["catch_trials"] += 1
        elif cells["status"] != "ok":
            left_out[f"{cells['status']}_answers"] += 1
        elif cells["kind"] not in KINDS:
            problems.append(Problem(str(source.path), line, "kind", f"must be one of {', '.join(KINDS)}"))
        else:
            problems += _add_record(source, line, cells)
    source.noticed += left_out
    refuse(by_line(problems))


def _add_record(source: Source, line: int, cells: Mapping[str, str]) -> list[Problem]:
    model = BY_TASK[source.task]
    agent = unguarded(cells["agent"])
    if cells["kind"] == "machine":
        agent = f"published:{agent}"
    try:
        answer = model.model_validate(_answer(source.task, model, cells))
    except (ValidationError, orjson.JSONDecodeError) as error:
        if isinstance(error, ValidationError):
            return as_problems(error, str(source.path), line)
        return [Problem(str(source.path), line, "answer", "holds a value that is no JSON")]
    source.add(unguarded(cells["stimulus"]), agent, _raw(unguarded(cells.get("raw", ""))), plain(answer))
    return []


def _answer(task: Task, model: type[BaseModel], cells: Mapping[str, str]) -> dict[str, Any]:
    """The fields of an answer that have a filled cell; the others keep their defaults."""
    fields: dict[str, Any] = {}
    for name in model.model_fields:
        cell = unguarded(cells.get(f"answer.{name}", ""))
        if cell != "":
            fields[name] = cell if name in _texts(model) else orjson.loads(cell)
    if task == "word_association":
        fields.setdefault("word", "")
    return fields


@cache
def _texts(model: type[BaseModel]) -> frozenset[str]:
    """The fields of an answer that are texts; in our table the others are JSON."""
    names = set()
    for name, schema in model.model_json_schema()["properties"].items():
        if any(variant.get("type") == "string" for variant in schema.get("anyOf", [schema])):
            names.add(name)
    return frozenset(names)


def _raw(text: str) -> Any:
    if text[:1] in ("{", "["):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text
