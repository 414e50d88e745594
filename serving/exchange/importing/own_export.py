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
from serving.exchange.importing.source import ImportOptions, Source, refuse
from serving.files.csv_tables import CsvTable, by_line, read_table, unguarded
from serving.files.row_problems import as_problems
from serving.files.table_text import table_text

COLUMNS = ("schema", "run", "task", "stimulus", "stimulus_sha256", "agent", "kind", "sample", "seed", "status")
"""The first columns of our own table of records."""
HEAD = 4096  # bytes, more than the names of the columns have
IDENTITY = ("run", "task", "stimulus", "agent", "kind", "sample")  # columns that tell one record from another
SHORT_OF: dict[str, str] = {name: short for short, name in SHORT.items()}
KINDS = ("machine", "human", "published", "control")


def is_own_export(data: bytes) -> bool:
    """Whether a CSV begins as our own export of records does."""
    try:
        head = table_text(data[:HEAD], "", may_guess=True)  # a spreadsheet may have saved it with other separators
        cells = next(csv.reader(io.StringIO(head.text), delimiter=head.separator), [])
    except (csv.Error, InputError):
        return False  # it is no CSV, which its reader tells
    return tuple(cells)[: len(COLUMNS)] == COLUMNS


def add_own_export(source: Source, data: bytes, options: ImportOptions) -> None:
    """Add the answers to one task in the bytes of our own CSV of records. Raises InputError with every problem."""
    table = read_table(data, str(source.path))
    source.form = "records"
    rows = _rows_once(source, table)
    tasks = list(dict.fromkeys(cells["task"] for _, cells in rows))
    task = options.task or (tasks[0] if len(tasks) == 1 else None)
    if task is None:
        names = ", ".join(SHORT_OF.get(name, name) for name in tasks)
        raise InputError(f"holds answers to several tasks; say with --task which: {names}")
    if task not in tasks or task not in BY_TASK:
        raise InputError(f"holds no answers to {task}, but to {', '.join(tasks)}")
    source.task = next(name for name in BY_TASK if name == task)
    problems = list(table.problems)
    left_out: Counter[str] = Counter()
    for line, cells in rows:
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


def _rows_once(source: Source, table: CsvTable) -> list[tuple[int, dict[str, str]]]:
    """The rows without header lines (of tables that were put together), each record once: its run, agent, stimulus and
    sample are its own. Raises InputError for two rows of one record that differ."""
    rows = []
    first: dict[tuple[str, ...], tuple[int, dict[str, str]]] = {}
    problems = []
    for line, cells in table.rows:
        if cells["task"] == "task":
            source.noticed["header_lines_again"] += 1
            continue
        key = tuple(cells[name] for name in IDENTITY)
        first_line, first_cells = first.setdefault(key, (line, cells))
        if first_cells is cells:
            rows.append((line, cells))
        elif first_cells == cells:
            source.noticed["equal_rows_counted_once"] += 1
        else:
            message = f"is the same record as line {first_line}, and differs from it"
            problems.append(Problem(str(source.path), line, "sample", message))
    refuse(problems)
    return rows


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
            fields[name] = cell if name in _text_fields(model) else orjson.loads(cell)
    for name in _text_fields(model):
        if model.model_fields[name].is_required():
            fields.setdefault(name, "")  # an empty answer is an empty cell
    return fields


@cache
def _text_fields(model: type[BaseModel]) -> frozenset[str]:
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
