"""Which columns and rows of a table its form means, be it a lab's own or that of a known program.

A form only fills in what a user did not say: ``--columns`` and ``--rows`` go before ``--form``, and ``--form`` goes
before a form that was recognised.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from agents.errors import InputError
from agents.stimuli import Task
from serving.exchange.importing.about_people import JOIN
from serving.exchange.importing.form_files import Form, absent_columns
from serving.exchange.importing.json_columns import cell_at, inside
from serving.exchange.importing.kept_rows import keep_rows_of_form
from serving.exchange.importing.loops import leave_practice_out
from serving.exchange.importing.people_table import PeopleTable, TableRow
from serving.exchange.importing.row_rules import RowRule
from serving.exchange.importing.source import ImportOptions, Source, listed
from serving.exchange.importing.table_cells import UnreadableError, is_empty, object_in
from serving.exchange.importing.table_columns import RESPONSES, STIMULI, TIMES, TRIALS, plain_column
from serving.files.words import shown

PLACEHOLDER = re.compile(r"\\\{(stimulus|response|rt)\\\}|\\\*")


def tell_form(source: Source, form: Form) -> None:
    """Say in one line what a table was recognised as. Raises InputError where no table of this form can be read."""
    signs = [shown(name) for name in form.recognised_by]
    if form.comment:
        signs.append(f"a line of # with {form.comment!r}")
    if form.line_below:
        signs.append(f"a line {form.line_below!r}")
    if form.refused:
        raise InputError(f"was recognised as {form.name} by {listed(signs)}. It {form.refused}")
    source.remarks.append(f"recognised as {form.name} by {listed(signs)}")


def refuse_other_table(form: Form, names: Sequence[str]) -> None:
    """Raises InputError where a table has not the columns by which the form of ``--form`` is recognised."""
    absent = absent_columns(form, names)
    if absent:
        raise InputError(
            f"is no table of the form {shown(form.name)}: it has no column {listed([shown(name) for name in absent])}"
        )


def with_form(options: ImportOptions, form: Form) -> ImportOptions:
    """The options of a command, with those of a form where the command says nothing."""
    return replace(
        options,
        task=options.task or form.task,
        frame=options.frame or form.frame,
        fit=options.fit or form.fit,
        origin=options.origin or form.origin,
        units=options.units or form.units,
        responses=options.responses or form.responses,
        rt=options.rt or form.rt,
        wide=options.wide or form.wide,
        color_words=options.color_words or form.color_words,
        sheet=form.sheet if options.sheet is None else options.sheet,
    )


def use_forms(source: Source, table: PeopleTable, forms: Sequence[Form], options: ImportOptions) -> None:
    """Take the rows and the columns that forms name, the first form before the others, where the command names none.
    Raises InputError where nobody can know which column is meant."""
    if not options.rows:
        form = next((form for form in forms if form.rows or form.loops is not None), None)
        if form is not None:
            leave_practice_out(source, table, form)
        rules = [] if form is None else [rule for written in form.rows for rule in _rules(table, written)]
        if form is not None and form is options.form:
            absent = [written.column for written in form.rows if not _rules(table, written)]
            if absent:
                raise InputError(
                    f"has no column {listed([shown(name) for name in absent])}, which the rows of the form "
                    f"{shown(form.name)} name; its columns are {table.columns.listed()}"
                )
        if form is not None and rules:
            keep_rows_of_form(source, table, rules, form, is_own=form is options.form)
    chosen: dict[str, str] = {}
    for form in forms:
        for field, patterns in form.columns.items():
            if field == "meta" and field not in table.columns.given:
                about = [name for pattern in patterns for name in _names(table, pattern) if fnmatchcase(name, pattern)]
                if about:
                    table.columns.given[field] = JOIN.join(about)
                    chosen[field] = table.columns.given[field]
                continue
            column = None if field in table.columns.given else _column(source, table, field, patterns)
            if column is None and field not in table.columns.given and form is options.form:
                names = listed([shown(pattern) for pattern in patterns])
                source.remarks.append(
                    f"no {field} is read: the form names {names}, and the table has none that is filled"
                )
            if column is not None:
                table.columns.given[field] = column
                chosen[field] = column
    if chosen:
        listed_columns = ", ".join(f"{field} is {shown(column)}" for field, column in chosen.items())
        source.remarks.append(f"columns by the form: {listed_columns}")


def _rules(table: PeopleTable, written: RowRule) -> list[RowRule]:
    """A rule for each column of a table that a rule's pattern fits."""
    names = [name for name in table.columns.names if fnmatchcase(name, written.column)]
    if not names and inside(table.columns.names, written.column) is not None:
        names = [written.column]
    return [replace(written, column=name) for name in names]


def _column(source: Source, table: PeopleTable, field: str, patterns: Sequence[str]) -> str | None:
    """The first filled column of a field. Raises InputError where one pattern fits several and nobody can know which
    is meant; of times a remark says it, and none is read."""
    rows = _rows_with_a_stimulus(table, source.task)
    for pattern in patterns:
        fitting = [name for name in _names(table, pattern) if _fits(name, pattern, source.task)]
        if not fitting and inside(table.columns.names, pattern) is not None:
            fitting = [pattern]
        filled = [name for name in fitting if _is_filled(table, name, rows)]
        if len(filled) > 1:
            sentence = (
                f"has several columns that may be the {field}: {listed([shown(name) for name in filled])}; say which "
                f"with --columns {field}={shown(filled[0])}"
            )
            if field != "rt":
                raise InputError(sentence)
            source.remarks.append(f"it {sentence}. No time is read")
            return None
        if filled:
            return filled[0]
    return None


def _names(table: PeopleTable, pattern: str) -> list[str]:
    """The columns of a table, and the names in the JSON objects that a pattern such as ``doc.{stimulus}`` leads to."""
    names = list(table.columns.names)
    head = pattern.rpartition(".")[0]
    if head not in names and inside(names, head) is None:
        return names
    for row in table.rows:
        keys = object_in(_text(row, names, head))
        if keys:
            return [*names, *(f"{head}.{key}" for key in keys)]
    return names


def _text(row: TableRow, names: Sequence[str], name: str) -> str:
    """The text that a row has under a name; "" also where JSON cannot be read, which a reader of the column refuses."""
    try:
        return cell_at(row, names, name)
    except UnreadableError:
        return ""


def _fits(name: str, pattern: str, task: Task) -> bool:
    known: Mapping[str, Sequence[str]] = {
        "stimulus": TRIALS if task == "judgement" else STIMULI,
        "response": RESPONSES.get(task, ()),
        "rt": TIMES,
    }
    groups: list[str] = []

    def group(match: re.Match[str]) -> str:
        if match[1] is None:
            return ".*"
        groups.append(match[1])
        return "(.*)"

    match = re.fullmatch(PLACEHOLDER.sub(group, re.escape(pattern)), name)
    if match is None:
        return False
    return all(plain_column(text) in known[kind] for kind, text in zip(groups, match.groups(), strict=True))


def _rows_with_a_stimulus(table: PeopleTable, task: Task) -> Sequence[TableRow]:
    """The rows that name a stimulus: components of a program also write rows of instructions and of the end."""
    given = table.columns.given.get("stimulus")
    columns = [given] if given is not None else table.columns.named(TRIALS if task == "judgement" else STIMULI)
    names = table.columns.names
    rows = [row for row in table.rows if any(not is_empty(_text(row, names, column)) for column in columns)]
    return rows or table.rows


def _is_filled(table: PeopleTable, name: str, rows: Sequence[TableRow]) -> bool:
    return any(not is_empty(_text(row, table.columns.names, name)) for row in rows)
