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
from serving.exchange.importing.form_files import Form, KnownForm, Screens, known_forms, recognised
from serving.exchange.importing.source import Source, listed
from serving.exchange.importing.table_cells import is_whole, object_in, without_decimals
from serving.exchange.importing.table_columns import Columns, plain_column
from serving.files.csv_tables import unguarded
from serving.files.workbooks import BEGINNINGS, read_any_table


@dataclass(slots=True, eq=False)
class TableRow:
    """One answer or screen of people's data, before its cells are read. Nobody changes one. It is not frozen, because a
    table may have a million rows, and a frozen one takes three times as long to make."""

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
    form: KnownForm | None = None
    """What is known of the program that wrote it; None for an unknown one."""
    problems: list[Problem] = field(default_factory=list)
    """Faults of rows that cannot be read at all."""
    separator: str = ","
    """What stood between the cells; a comma for JSON."""

    @property
    def screens(self) -> Screens | None:
        """What is true where rows are screens, of which not every one is an answer; None where rows are answers."""
        return None if self.form is None else self.form.form.screens


def table_of_file(source: Source, data: bytes, given: Mapping[str, str]) -> PeopleTable:
    """The table in the bytes of a text or a workbook; ``given`` are the columns of ``--columns``, by field. An
    apostrophe that our own export put before ``=`` goes. Raises InputError."""
    data = _without_last_line(source, data)
    table = read_any_table(data, str(source.path), may_guess=True)
    form = recognised(table.names, table.comments)
    if form is not None and form.form.bare_quotes and table.problems:
        # Only then: a spreadsheet that saves the program's table again doubles the marks.
        table = read_any_table(data, str(source.path), may_guess=True, bare_quotes=True)
    source.remarks += table.remarks
    columns = Columns(table.names, dict(given))
    problems = list(table.problems)
    if form is not None and form.form.broken_lines == "left out" and table.broken:
        problems = [problem for problem in problems if problem.line not in table.broken]
        source.noticed["broken_lines"] += len(table.broken)
        places = listed([str(line) for line in sorted(table.broken)])
        source.remarks.append(f"lines with too few or too many cells are left out: {places}")
    if b"'" in data or data.startswith(BEGINNINGS):  # a workbook is packed
        rows = [TableRow(line, "", _unguarded(cells)) for line, cells in table.rows]
    else:
        rows = [TableRow(line, "", cells) for line, cells in table.rows]
    if form is not None and form.form.doubled_quotes:
        rows = [TableRow(row.line, "", _with_single_quotes(row.cells)) for row in rows]
    rows = _only_answers(source, columns, rows, data)
    return PeopleTable(columns, rows, form, problems, table.separator)


def table_of_json(source: Source, content: Sequence[Any], given: Mapping[str, str]) -> PeopleTable:
    """The table in a JSON list of objects, such as jsPsych's data; ``given`` are the columns of ``--columns``, by
    field. Raises InputError."""
    if not all(isinstance(row, dict) for row in content):
        raise InputError("is a list, but not of rows: each entry must be an object with the columns' names")
    form = recognised([name for name in content[0] if all(name in row for row in content)]) if content else None
    if form is not None and form.form.rows_in:
        content = _rows_in(content, form.form)
    names = list(dict.fromkeys(name for row in content for name in row))
    rows = [_row_of_json(place, row) for place, row in enumerate(content)]
    return PeopleTable(Columns(names, dict(given)), rows, form=form)


def _rows_in(content: Sequence[Mapping[str, Any]], form: Form) -> list[dict[str, Any]]:
    """A row for each entry of the list that a form names. Raises InputError where there is no list, or no entry."""
    rows = []
    for place, whole in enumerate(content):
        entries = whole[form.rows_in]
        if not isinstance(entries, list):
            raise InputError(f"[{place}].{form.rows_in} must be a list, as in {form.name}")
        rows += [{**whole, form.rows_in: entry} for entry in entries]
    if not rows:
        raise InputError(f"contains no answers that can be imported: no entry of it has {form.rows_in}")
    return rows


def _row_of_json(place: int, row: Mapping[str, Any]) -> TableRow:
    cells = {}
    not_texts = set()
    for name, value in row.items():
        if isinstance(value, bool | list | dict):
            not_texts.add(name)
        cells[name] = text_of_json(value)
    return TableRow(None, f"[{place}].", cells, frozenset(not_texts))


def text_of_json(value: Any) -> str:
    """A value of JSON as a cell has it: a text as it is, null as "", anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return without_decimals(repr(value))  # 1 and 1.0 are one number in JSON
    return json.dumps(value, ensure_ascii=False)


def _unguarded(cells: Mapping[str, str]) -> Mapping[str, str]:
    if "'" not in "".join(cells.values()):
        return cells
    return {name: unguarded(cell) for name, cell in cells.items()}


def _with_single_quotes(cells: Mapping[str, str]) -> Mapping[str, str]:
    if not any('""' in cell for cell in cells.values()):
        return cells
    return {name: cell.replace('""', '"') for name, cell in cells.items()}


# rows that are no answers


def _without_last_line(source: Source, data: bytes) -> bytes:
    """A CSV without the last line of a program such as Gorilla, which has a single cell."""
    before, _, last = data.rstrip().rpartition(b"\n")
    if before and last.strip().decode("utf-8", "replace") in _last_lines():
        source.noticed["end_of_file_lines"] += 1
        return before
    return data


def _only_answers(source: Source, columns: Columns, rows: Sequence[TableRow], data: bytes) -> list[TableRow]:
    """The rows without header lines and last lines of other programs, which are counted. A program's words that are
    nowhere in the file's ``data`` are not looked for in a million rows."""
    header = {name: plain_column(name) for name in columns.names if name.strip()}
    if not header:
        return list(rows)
    headers = set()
    ids = [form.header_ids for _, form in known_forms() if form.header_ids and _may_hold(data, form.header_ids)]
    for place, row in enumerate(rows if ids else ()):
        whole = "\n".join(row.cells.values())
        if any(name in whole and _has_id(row, name) for name in ids):
            headers |= {place - 1, place}  # a program's ids of its columns, and above them its questions
    kept = []
    last_lines = {line for line in _last_lines() if _may_hold(data, line)}
    plain_names = set(header.values())
    first = next(iter(header))
    labelled = [name for _, form in known_forms() for name in form.header_labels if name in header]
    for place, row in enumerate(rows):
        may_be_header = labelled or plain_column(row.cells.get(first, "")) in plain_names
        if place in headers or (may_be_header and _is_header(row, header, labelled)):
            source.noticed["header_lines_again"] += 1
        elif (
            last_lines
            and not last_lines.isdisjoint(row.cells.values())
            and sum(bool(cell.strip()) for cell in row.cells.values()) == 1
        ):
            source.noticed["end_of_file_lines"] += 1
        else:
            kept.append(row)
    return kept


def _may_hold(data: bytes, text: str) -> bool:
    """Whether ``text``, of ASCII, may be in a file; always where its letters have several bytes, or are packed."""
    return text.encode() in data or b"\x00" in data or data.startswith(BEGINNINGS)


def _has_id(row: TableRow, name: str) -> bool:
    return any(name in cell and name in object_in(cell) for cell in row.cells.values())


def _last_lines() -> list[str]:
    return [form.last_line for _, form in known_forms() if form.last_line]


def _is_header(row: TableRow, header: Mapping[str, str], labelled: Sequence[str]) -> bool:
    """Whether a row repeats the header (names and their plain forms), or has a program's labels of its own columns
    ("Start Date" of Qualtrics' ``StartDate``), which stand below those of ``labelled``.

    Raises InputError for the same names in another order: below it all cells would be read as another column's.
    """
    plain_cells = [plain_column(row.cells.get(name, "")) for name in header]
    if plain_cells == list(header.values()):
        return True
    if len(header) > 1 and sorted(plain_cells) == sorted(header.values()):
        raise InputError(f"line {row.place} repeats the header with its columns in another order; write two files")
    labels = [(name, row.cells.get(name, "").strip()) for name in labelled]
    return bool(labels) and all(cell != name and plain_column(cell) == header[name] for name, cell in labels)


def note_empty_columns(table: PeopleTable) -> None:
    """Note which columns have no filled cell in any row: another column of the same meaning goes before them."""
    empty = dict.fromkeys(table.columns.names)
    for row in table.rows:
        for name in [name for name in empty if row.cells.get(name, "").strip()]:
            del empty[name]
        if not empty:
            break
    table.columns.empty = frozenset(empty)


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
