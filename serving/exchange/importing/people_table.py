"""A table of people's answers before anybody reads its cells: from CSV, or from a JSON list of rows.

Programs write rows that are no answers: Qualtrics writes its questions and import ids below the header, Gorilla ends
with ``END OF FILE``, tables that were put together repeat the header. They are left out and counted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.errors import InputError, Problem
from serving.exchange.importing.source import RowRule, Source, listed
from serving.exchange.importing.table_cells import (
    UnreadableError,
    is_whole,
    object_in,
    read_labels,
    structured,
    without_decimals,
)
from serving.exchange.importing.table_columns import Columns, plain_column
from serving.files.csv_tables import read_table, unguarded
from serving.files.words import shown

JSPSYCH = ("trial_type", "trial_index")  # columns that each row of jsPsych's data has
END_OF_FILE = "END OF FILE"  # Gorilla's last line


@dataclass(frozen=True, slots=True)
class TableRow:
    """One answer or screen of people's data, before its cells are read."""

    line: int | None
    """The row's line in a CSV, from 1; None in JSON."""
    prefix: str
    """What stands before a column's name in a message: "" in a CSV, "[4]." in JSON."""
    cells: Mapping[str, str]
    """The cells as text, by column. A column without a value in JSON is absent."""
    not_texts: frozenset[str] = frozenset()
    """The columns whose value in JSON is true, false, a list or an object; ``cells`` has its JSON."""

    @property
    def place(self) -> str:
        """Where the row stands, for a remark: a line, or "[4]"."""
        return str(self.line) if self.line is not None else self.prefix.rstrip(".")


@dataclass(slots=True)
class PeopleTable:
    """A table before its cells are read."""

    columns: Columns
    """The headers, with what ``--columns`` says of them."""
    rows: list[TableRow]
    """The rows that are still to be read, in the order of the file."""
    is_jspsych: bool
    """Whether jsPsych wrote it: its rows are screens, and not every screen is an answer."""
    problems: list[Problem] = field(default_factory=list)
    """Faults of rows that cannot be read at all."""
    separator: str = ","
    """What stood between the cells; a comma for JSON."""


def table_of_csv(source: Source, data: bytes, given: Mapping[str, str]) -> PeopleTable:
    """The table in the bytes of a CSV; ``given`` are the columns of ``--columns``, by field. An apostrophe that our own
    export put before ``=`` goes. Raises InputError."""
    data = _without_last_line(source, data)
    table = read_table(data, str(source.path), may_guess=True)
    source.remarks += table.remarks
    columns = Columns(table.names, given)
    is_jspsych = set(JSPSYCH) <= set(table.names)
    rows = [TableRow(line, "", _unguarded(cells)) for line, cells in table.rows]
    rows = _only_answers(source, columns, rows)
    return PeopleTable(columns, rows, is_jspsych, list(table.problems), table.separator)


def table_of_json(source: Source, content: Sequence[Any], given: Mapping[str, str]) -> PeopleTable:
    """The table in a JSON list of objects, such as jsPsych's data; ``given`` are the columns of ``--columns``, by
    field. Raises InputError."""
    if not all(isinstance(row, dict) for row in content):
        raise InputError("is a list, but not of rows: each entry must be an object with the columns' names")
    names = list(dict.fromkeys(name for row in content for name in row))
    rows = [_row_of_json(place, row) for place, row in enumerate(content)]
    is_jspsych = bool(content) and all(set(JSPSYCH) <= row.keys() for row in content)
    return PeopleTable(Columns(names, given), rows, is_jspsych)


def _row_of_json(place: int, row: Mapping[str, Any]) -> TableRow:
    cells = {}
    not_texts = set()
    for name, value in row.items():
        if isinstance(value, bool | list | dict):
            not_texts.add(name)
        cells[name] = _text_of_json(value)
    return TableRow(None, f"[{place}].", cells, frozenset(not_texts))


def _text_of_json(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return without_decimals(repr(value))  # 1 and 1.0 are one number in JSON
    return json.dumps(value, ensure_ascii=False)


def _unguarded(cells: Mapping[str, str]) -> Mapping[str, str]:
    if not any(cell.startswith("'") for cell in cells.values()):
        return cells
    return {name: unguarded(cell) for name, cell in cells.items()}


# rows that are no answers


def _without_last_line(source: Source, data: bytes) -> bytes:
    """A CSV without Gorilla's last line, which has a single cell."""
    before, _, last = data.rstrip().rpartition(b"\n")
    if before and last.strip().decode("utf-8", "replace") == END_OF_FILE:
        source.noticed["end_of_file_lines"] += 1
        return before
    return data


def _only_answers(source: Source, columns: Columns, rows: Sequence[TableRow]) -> list[TableRow]:
    """The rows without header lines and last lines of other programs, which are counted."""
    header = {name: plain_column(name) for name in columns.names if name.strip()}
    headers = set()
    for place, row in enumerate(rows):
        if any("ImportId" in cell and _is_import_id(cell) for cell in row.cells.values()):
            headers |= {place - 1, place}  # Qualtrics' import ids, and above them its questions
    kept = []
    for place, row in enumerate(rows):
        filled = [cell.strip() for cell in row.cells.values() if cell.strip()]
        if place in headers or _is_header(row, header):
            source.noticed["header_lines_again"] += 1
        elif filled == [END_OF_FILE]:
            source.noticed["end_of_file_lines"] += 1
        else:
            kept.append(row)
    return kept


def _is_import_id(cell: str) -> bool:
    return "ImportId" in object_in(cell)


def _is_header(row: TableRow, header: Mapping[str, str]) -> bool:
    """Whether a row repeats the header (names and their plain forms), or has Qualtrics' labels of its own columns
    ("Start Date" of ``StartDate``).

    Raises InputError for the same names in another order: below it all cells would be read as another column's.
    """
    first = next(iter(header))
    if plain_column(row.cells.get(first, "")) not in header.values() and "StartDate" not in header:
        return False  # as nearly all rows
    plain_cells = [plain_column(row.cells.get(name, "")) for name in header]
    if plain_cells == list(header.values()):
        return True
    if len(header) > 1 and sorted(plain_cells) == sorted(header.values()):
        raise InputError(f"line {row.place} repeats the header with its columns in another order; write two files")
    labels = [(name, row.cells.get(name, "").strip()) for name in ("StartDate", "ResponseId") if name in header]
    return bool(labels) and all(cell != name and plain_column(cell) == header[name] for name, cell in labels)


def keep_rows(source: Source, table: PeopleTable, rules: Sequence[RowRule]) -> None:
    """Keep the rows that obey ``--rows``; the others are counted. Raises InputError for a column that is not there."""
    if not rules:
        return
    source.used.add("rows")
    absent = [shown(rule.column) for rule in rules if rule.column not in table.columns.names]
    if absent:
        raise InputError(f"--rows: there is no column {', '.join(absent)}; the columns are {table.columns.listed()}")
    kept = []
    for row in table.rows:
        if all(_obeys(row, rule) for rule in rules):
            kept.append(row)
    for rule in rules:
        table.columns.use(rule.column)
    source.noticed["rows_that_--rows_leaves_out"] += len(table.rows) - len(kept)
    if not kept:
        raise InputError(f"--rows {' '.join(map(str, rules))}: no row is so; {_values(table, rules)}")
    for rule in rules:
        if all(_obeys(row, rule) for row in table.rows):
            source.remarks.append(f"--rows {rule} leaves no row out: {_values(table, [rule])}")
    table.rows = kept


def _obeys(row: TableRow, rule: RowRule) -> bool:
    cell = without_decimals(row.cells.get(rule.column, "").strip())
    return (cell == without_decimals(rule.value.strip())) != rule.unlike


def _values(table: PeopleTable, rules: Sequence[RowRule]) -> str:
    texts = []
    for rule in rules:
        values = list(dict.fromkeys(row.cells.get(rule.column, "").strip() for row in table.rows))
        texts.append(f"{shown(rule.column)} is {listed([repr(shown(value)) for value in values])}")
    return "; ".join(texts)


def note_empty_columns(table: PeopleTable) -> None:
    """Note which columns have no filled cell in any row: another column of the same meaning goes before them."""
    empty = dict.fromkeys(table.columns.names)
    for row in table.rows:
        for name in [name for name in empty if row.cells.get(name, "").strip()]:
            del empty[name]
        if not empty:
            break
    table.columns.empty = frozenset(empty)


def fill_columns(source: Source, table: PeopleTable) -> None:
    """Add the columns of ``--columns`` that the table has not: ``response.assoc`` is taken out of the JSON in the cells
    of ``response``, ``first+second`` puts two columns together. Raises InputError for those that are nowhere."""
    faults = []
    for field_name, name in table.columns.given.items():
        if name in table.columns.names:
            continue
        parts = [part.strip() for part in name.split("+")]
        absent = [part for part in parts if not _add_column(source, table, part)]
        if absent:
            faults.append(f"--columns {field_name}={shown(name)}: there is no such column")
        elif len(parts) > 1 and (field_name != "response" or source.task != "object_detection"):
            faults.append(
                f"--columns {field_name}={shown(name)}: only the labels of objects may stand in several columns"
            )
        elif len(parts) > 1:
            put_together(table, name, parts)
    if faults:
        raise InputError(f"{'; '.join(faults)}; the columns are {table.columns.listed()}")


def _add_column(source: Source, table: PeopleTable, name: str) -> bool:
    """Add a column of what stands under a name in JSON cells; False where there is no such column."""
    if name in table.columns.names:
        return True
    column, _, path = name.partition(".")
    while path and column not in table.columns.names and "." in path:
        further, _, path = path.partition(".")
        column = f"{column}.{further}"
    if not path or column not in table.columns.names:
        return False
    for place, row in enumerate(table.rows):
        try:
            text = _inside(row.cells.get(column, ""), path)
        except UnreadableError as error:
            table.problems.append(Problem(str(source.path), row.line, f"{row.prefix}{column}", str(error)))
            continue
        table.rows[place] = TableRow(row.line, row.prefix, {**row.cells, name: text}, row.not_texts)
    return True


def _inside(cell: str, path: str) -> str:
    value = structured(cell)
    if isinstance(value, dict) and path in value:
        return _text_of_json(value[path])
    for part in path.split("."):
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    return _text_of_json(value)


def put_together(table: PeopleTable, name: str, parts: Sequence[str]) -> None:
    """Add a column ``name`` that lists the labels in the cells of ``parts``, as one text of JSON."""
    for part in parts:
        table.columns.use(part)
    for place, row in enumerate(table.rows):
        labels = []
        for part in parts:
            labels += read_labels(row.cells.get(part, ""))[1]
        text = json.dumps(labels, ensure_ascii=False) if labels else ""
        table.rows[place] = TableRow(row.line, row.prefix, {**row.cells, name: text}, row.not_texts)


# names that are numbers


def whole_numbers(rows: Sequence[TableRow], column: str) -> bool:
    """Whether all filled cells of a column are whole numbers, with or without ``.0``; then ``1`` and ``1.0`` are one
    name. One cell such as ``007``, ``01`` or ``1.10`` makes all names of the column texts."""
    cells = [row.cells.get(column, "").strip() for row in rows]
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(map(is_whole, filled))


NAME_OF_TRIAL = re.compile(r"t[0-9]{4,}")


def trial_column(table: PeopleTable, names: Sequence[str]) -> list[str]:
    """The columns that may name a judged trial, best first: those in which most cells look like a trial's id,
    ``t0001``."""
    candidates = table.columns.named(names)

    def likeness(column: str) -> float:
        filled = [cell for row in table.rows if (cell := row.cells.get(column, "").strip())]
        return sum(NAME_OF_TRIAL.fullmatch(cell) is not None for cell in filled) / max(1, len(filled))

    return sorted(candidates, key=lambda column: -likeness(column))
