"""A table of people's answers before anybody reads its cells: from CSV, or from a JSON list of rows.

Programs write rows that are no answers: Qualtrics writes its questions and import ids below the header, Gorilla ends
with ``END OF FILE``, tables that were put together repeat the header. They are left out and counted. Rows that stand
twice are one answer where a column of time, index or id shows it.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.errors import InputError, Problem
from serving.runs.csv_tables import read_table, unguarded
from serving.runs.import_source import RowRule, Source, listed
from serving.runs.row_problems import count, shown
from serving.runs.table_cells import NO_ANSWER, is_whole, structured, without_decimals
from serving.runs.table_columns import Columns, may_prove, plain_name

JSPSYCH = ("trial_type", "trial_index")  # columns that each row of jsPsych's data has
END_OF_FILE = "END OF FILE"  # Gorilla's last line
VALUES_SHOWN = 5  # of a column in which several answers differ
COLUMNS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its line in a CSV, or in JSON None and the ``prefix`` of its fields' names, "[4]."; and its cells as text.
    ``not_texts`` are fields whose JSON value is no text and no number."""

    line: int | None
    prefix: str
    cells: Mapping[str, str]
    not_texts: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        """Where the row stands, for a remark: a line, or "[4]"."""
        return str(self.line) if self.line is not None else self.prefix.rstrip(".")


@dataclass(slots=True)
class PeopleTable:
    """``problems`` are of rows that cannot be read at all."""

    columns: Columns
    rows: list[TableRow]
    is_jspsych: bool
    problems: list[Problem] = field(default_factory=list)


def table_of_csv(source: Source, data: bytes, given: Mapping[str, str]) -> PeopleTable:
    """The table of a CSV. An apostrophe that our own export put before ``=`` goes. Raises InputError."""
    data = _without_last_line(source, data)
    table = read_table(data, str(source.path))
    columns = Columns(table.names, given)
    is_jspsych = set(JSPSYCH) <= set(table.names)
    rows = [TableRow(line, "", _unguarded(cells)) for line, cells in table.rows]
    return PeopleTable(columns, _only_answers(source, columns, rows), is_jspsych, list(table.problems))


def table_of_json(source: Source, content: Sequence[Any], given: Mapping[str, str]) -> PeopleTable:
    """The table of a JSON list of objects, such as jsPsych's data. Raises InputError."""
    if not all(isinstance(row, dict) for row in content):
        raise InputError("is a list, but not of rows: each entry must be an object with the columns' names")
    names = list(dict.fromkeys(name for row in content for name in row))
    rows = [_row_of_json(at, row) for at, row in enumerate(content)]
    is_jspsych = bool(content) and all(set(JSPSYCH) <= row.keys() for row in content)
    return PeopleTable(Columns(names, given), rows, is_jspsych)


def _row_of_json(at: int, row: Mapping[str, Any]) -> TableRow:
    cells = {}
    not_texts = set()
    for name, value in row.items():
        if isinstance(value, bool | list | dict):
            not_texts.add(name)
        cells[name] = _text_of_json(value)
    return TableRow(None, f"[{at}].", cells, frozenset(not_texts))


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
    named = [name for name in columns.names if name.strip()]
    headers = set()
    for at, row in enumerate(rows):
        if any("ImportId" in cell and _is_import_id(cell) for cell in row.cells.values()):
            headers |= {at - 1, at}  # Qualtrics' import ids, and above them its questions
    kept = []
    for at, row in enumerate(rows):
        filled = [cell.strip() for cell in row.cells.values() if cell.strip()]
        if at in headers or _is_header(row, named):
            source.noticed["header_lines_again"] += 1
        elif filled == [END_OF_FILE]:
            source.noticed["end_of_file_lines"] += 1
        else:
            kept.append(row)
    return kept


def _is_import_id(cell: str) -> bool:
    value = structured(cell)
    return isinstance(value, dict) and "ImportId" in value


def _is_header(row: TableRow, names: Sequence[str]) -> bool:
    """Whether a row repeats the header, or has Qualtrics' labels of its own columns ("Start Date" of ``StartDate``)."""
    cells = [row.cells.get(name, "").strip() for name in names]
    if cells == [name.strip() for name in names]:
        return True
    labels = [(name, cell) for name, cell in zip(names, cells, strict=True) if name in ("StartDate", "ResponseId")]
    return bool(labels) and all(cell != name and plain_name(cell) == plain_name(name) for name, cell in labels)


def keep_rows(source: Source, table: PeopleTable, rules: Sequence[RowRule]) -> None:
    """Keep the rows that obey ``--rows``; the others are counted. Raises InputError for a column that is not there."""
    if not rules:
        return
    source.used.add("rows")
    absent = [shown(rule.column) for rule in rules if rule.column not in table.columns.names]
    if absent:
        raise InputError(f"--rows: there is no column {', '.join(absent)}; the columns are {table.columns.there()}")
    kept = []
    for row in table.rows:
        if all(_obeys(row, rule) for rule in rules):
            kept.append(row)
    for rule in rules:
        table.columns.use(rule.column)
    left_out = len(table.rows) - len(kept)
    source.noticed["rows_that_--rows_leaves_out"] += left_out
    if not kept:
        raise InputError(f"--rows {' '.join(map(str, rules))}: no row is so; {_values_there(table, rules)}")
    table.rows = kept


def _obeys(row: TableRow, rule: RowRule) -> bool:
    cell = without_decimals(row.cells.get(rule.column, "").strip())
    return (cell == without_decimals(rule.value.strip())) != rule.unlike


def _values_there(table: PeopleTable, rules: Sequence[RowRule]) -> str:
    texts = []
    for rule in rules:
        values = list(dict.fromkeys(row.cells.get(rule.column, "").strip() for row in table.rows))
        texts.append(f"{shown(rule.column)} is {listed([repr(shown(value)) for value in values])}")
    return "; ".join(texts)


def fill_columns(table: PeopleTable) -> None:
    """Add the columns that ``--columns`` takes out of JSON cells, as ``response.assoc``. Raises InputError for those
    that are nowhere."""
    problems = []
    for field_name, name in table.columns.given.items():
        if name in table.columns.names:
            continue
        column, _, path = name.partition(".")
        while path and column not in table.columns.names and "." in path:
            further, _, path = path.partition(".")
            column = f"{column}.{further}"
        if not path or column not in table.columns.names:
            problems.append(f"--columns {field_name}={shown(name)}: there is no such column")
            continue
        for at, row in enumerate(table.rows):
            cells = {**row.cells, name: _inside(row.cells.get(column, ""), path)}
            table.rows[at] = TableRow(row.line, row.prefix, cells, row.not_texts)
    if problems:
        raise InputError(f"{'; '.join(problems)}; the columns are {table.columns.there()}")


def _inside(cell: str, path: str) -> str:
    value = structured(cell)
    if isinstance(value, dict) and path in value:
        return _text_of_json(value[path])
    for part in path.split("."):
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    return _text_of_json(value)


# names that are numbers


def whole_numbers(rows: Sequence[TableRow], column: str) -> bool:
    """Whether all cells of a column are whole numbers, with or without ``.0``: then ``1`` and ``1.0`` are one name.
    One cell such as ``007``, ``01`` or ``1.10`` makes all names of the column texts."""
    cells = [row.cells.get(column, "").strip() for row in rows]
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(map(is_whole, filled))


# rows that stand twice


def drop_equal_rows(source: Source, table: PeopleTable, person: str | None, *, drop: bool) -> None:
    """Take out rows that are equal in all cells where a column of time, index or id proves that they are one answer, or
    where ``drop`` says so; otherwise they stay and are told.

    A column proves it if its name says time, index or id and no two *different* rows of one person have the same value
    there: then the value is a row's own, and equal rows are the same row, saved twice. Several such columns count
    together. A day or a person's number repeats from row to row, and proves nothing.
    """
    hashes = [hash(_cells(row, table)) for row in table.rows]
    if len(set(hashes)) == len(hashes):
        return  # of a large table the hashes alone are held
    first: dict[tuple[str, ...], TableRow] = {}
    again: list[TableRow] = []
    for row in table.rows:
        if first.setdefault(_cells(row, table), row) is not row:
            again.append(row)
    if not again:
        return
    proofs = [name for name in table.columns.names if may_prove(name)]
    proven = bool(proofs) and _tells_rows_apart(list(first.values()), proofs, person)
    places = listed([row.place for row in again])
    if proven or drop:
        kept = {id(row) for row in first.values()}
        table.rows = [row for row in table.rows if id(row) in kept]
        source.noticed["equal_rows_counted_once"] += len(again)
        for name in proofs:
            table.columns.use(name)
        if proven:
            source.remarks.append(
                f"{count(len(again), 'row')} (at {places}) stand there before, equal in {listed(proofs)} too, and "
                "count once"
            )
    else:
        source.noticed["equal_rows"] += len(again)
        source.remarks.append(
            f"{count(len(again), 'row')} (at {places}) stand twice, equal in all cells, and count as further answers; "
            "if the file was saved twice, --drop-equal counts each once"
        )


def _cells(row: TableRow, table: PeopleTable) -> tuple[str, ...]:
    return tuple(row.cells.get(name, "") for name in table.columns.names)


def _tells_rows_apart(rows: Sequence[TableRow], proofs: Sequence[str], person: str | None) -> bool:
    seen = set()
    for row in rows:
        values = tuple(row.cells.get(name, "").strip() for name in proofs)
        if not any(value and value not in NO_ANSWER for value in values):
            return False
        key = (row.cells.get(person, "") if person is not None else "", *values)
        if key in seen:
            return False
        seen.add(key)
    return True


# several answers of one person


def tell_several_answers(
    source: Source, table: PeopleTable, answered: Sequence[tuple[str, str, TableRow]], what: str, *, counts_once: bool
) -> None:
    """Tell where one person has several answers to one stimulus, and in which columns these differ.

    ``answered`` has the person, the stimulus and the row of each answer; ``what`` is "answer" or "verdict";
    ``counts_once``: only the first counts in scores.
    """
    times = Counter(hash((agent, stimulus)) for agent, stimulus, _ in answered)
    groups: dict[tuple[str, str], list[TableRow]] = defaultdict(list)
    for agent, stimulus, row in answered:
        if times[hash((agent, stimulus))] > 1:  # of a large table few keys are held
            groups[agent, stimulus].append(row)
    several = [rows for rows in groups.values() if len(rows) > 1]
    if not several:
        return
    values: dict[str, dict[str, None]] = {}
    for rows in several:
        for name in table.columns.names:
            cells = dict.fromkeys(row.cells.get(name, "").strip() for row in rows)
            if len(cells) > 1:
                values.setdefault(name, {}).update(cells)
    further = sum(map(len, several)) - len(several)
    source.noticed[f"further_{what}s_of_one_person_to_one_stimulus"] += further
    if not values:
        return  # the rows are equal in all cells, which is told already
    text = f"{count(len(several), 'time')} one person gave several {what}s to one stimulus ({further:,} further ones)"

    def rank(name: str) -> tuple[bool, bool, int]:
        """Columns that part the experiment (phase, page) first, then what was answered, then times and numbers."""
        return len(values[name]) > VALUES_SHOWN, may_prove(name) or name in table.columns.used, len(values[name])

    ordered = sorted(values, key=rank)
    texts = [_differing(name, list(values[name])) for name in ordered[:COLUMNS_SHOWN]]
    text += f"; they differ in {', '.join(texts)}"
    if counts_once:
        text += "; the first one counts in scores"
    example = ordered[0]
    if len(values[example]) <= VALUES_SHOWN:
        value = list(values[example])[-1]
        text += f". To take some rows alone: --rows {shown(example)}={shown(value)}"
    source.remarks.append(text)


def _differing(name: str, values: Sequence[str]) -> str:
    if len(values) > VALUES_SHOWN:
        return shown(name)
    return f"{shown(name)} ({', '.join(shown(value) or 'empty' for value in values)})"


def tell_rows(source: Source, rows: Sequence[TableRow], reason: str, sentence: str) -> None:
    """Count ``rows`` as ``reason``, and add a remark: ``sentence`` has ``{rows}`` and ``{places}``."""
    if rows:
        source.noticed[reason] += len(rows)
        places = listed([row.place for row in rows])
        source.remarks.append(sentence.format(rows=count(len(rows), "row"), places=places))


_NAME_OF_TRIAL = re.compile(r"t[0-9]{4,}")


def trial_column(table: PeopleTable, names: Sequence[str]) -> list[str]:
    """The columns that may name a judged trial, best first: those in which most cells look like a trial's id,
    ``t0001``."""
    candidates = table.columns.named(names)

    def likeness(column: str) -> float:
        filled = [cell for row in table.rows if (cell := row.cells.get(column, "").strip())]
        return sum(_NAME_OF_TRIAL.fullmatch(cell) is not None for cell in filled) / max(1, len(filled))

    return sorted(candidates, key=lambda column: -likeness(column))
