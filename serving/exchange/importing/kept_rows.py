"""Which rows of a table are read: the rules of ``--rows``, or those of a form."""

from collections.abc import Sequence

from agents.errors import InputError
from serving.exchange.importing.form_files import Form
from serving.exchange.importing.json_columns import cell_at, inside
from serving.exchange.importing.people_table import PeopleTable, TableRow
from serving.exchange.importing.row_rules import RowRule
from serving.exchange.importing.source import Source, composed, listed
from serving.exchange.importing.table_cells import UnreadableError, without_decimals
from serving.files.words import shown


def keep_rows(source: Source, table: PeopleTable, rules: Sequence[RowRule]) -> None:
    """Keep the rows that obey ``--rows``; the others are counted. Raises InputError for a column that is not there."""
    if not rules:
        return
    source.used.add("rows")
    names = table.columns.names
    absent = [shown(rule.column) for rule in rules if rule.column not in names and inside(names, rule.column) is None]
    if absent:
        raise InputError(f"--rows: there is no column {', '.join(absent)}; the columns are {table.columns.listed()}")
    kept = []
    for row in table.rows:
        if all(_obeys(table, row, rule) for rule in rules):
            kept.append(row)
    for rule in rules:
        place = inside(names, rule.column)
        table.columns.use(rule.column if place is None else place[0])
    source.noticed["rows_that_--rows_leaves_out"] += len(table.rows) - len(kept)
    if not kept:
        raise InputError(f"--rows {' '.join(map(str, rules))}: no row is so; {_values(table, rules)}")
    for rule in rules:
        if all(_obeys(table, row, rule) for row in table.rows):
            source.remarks.append(f"--rows {rule} leaves no row out: {_values(table, [rule])}")
    table.rows = kept


def keep_rows_of_form(
    source: Source, table: PeopleTable, rules: Sequence[RowRule], form: Form, *, is_own: bool
) -> None:
    """Keep the rows that obey the rules of a form; a remark says what was left out, and how to choose.

    ``is_own`` tells the form of ``--form`` from a known program's. Raises InputError where no row obeys: such a rule is
    wrong, and no other column would mend it.
    """
    kept = [row for row in table.rows if all(_obeys(table, row, rule) for rule in rules)]
    left_out = len(table.rows) - len(kept)
    chosen = " and ".join(map(str, rules))
    name = shown(form.name)
    if table.rows and not kept:
        raise InputError(f"the rows of the form {name} ({chosen}): no row is so; {_values(table, rules)}")
    if left_out:
        what = "rows_that_the_form_leaves_out" if is_own else "rows_that_rules_for_the_program_leave_out"
        source.noticed[what] += left_out
        source.remarks.append(f"by the rules for {name} only rows with {chosen} are read; --rows chooses others")
    table.rows = kept


def _cell(table: PeopleTable, row: TableRow, column: str) -> str:
    try:
        return cell_at(row, table.columns.names, column).strip()
    except UnreadableError:
        return ""


def _obeys(table: PeopleTable, row: TableRow, rule: RowRule) -> bool:
    cell = composed(without_decimals(_cell(table, row, rule.column)))
    return (cell == without_decimals(rule.value.strip())) != rule.unlike


def _values(table: PeopleTable, rules: Sequence[RowRule]) -> str:
    texts = []
    for rule in rules:
        values = list(dict.fromkeys(_cell(table, row, rule.column) for row in table.rows))
        texts.append(f"{shown(rule.column)} is {listed([repr(shown(value)) for value in values])}")
    return "; ".join(texts)
