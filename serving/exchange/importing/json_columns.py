"""Columns inside JSON: ``response.assoc`` is taken out of the objects in the cells of ``response``.

A path goes through names, numbers of a list (``choices.0.text``), and ``*`` for each entry of a list.
"""

import json
from collections.abc import Sequence
from typing import Any

from agents.errors import InputError, Problem
from serving.exchange.importing.people_table import PeopleTable, TableRow, text_of_json
from serving.exchange.importing.source import Source
from serving.exchange.importing.table_cells import UnreadableError, read_labels, structured
from serving.files.words import shown


def inside(names: Sequence[str], name: str) -> tuple[str, str] | None:
    """The column of a table with the columns ``names``, and the path in its cells, that a name means; None where there
    is no such column. Dots may be part of the column's own name."""
    column, _, path = name.partition(".")
    while path and column not in names and "." in path:
        further, _, path = path.partition(".")
        column = f"{column}.{further}"
    return (column, path) if path and column in names else None


def cell_at(row: TableRow, names: Sequence[str], name: str) -> str:
    """The text that a row has in a column of the table, or under a path in it; "" where there is nothing. Raises
    UnreadableError."""
    if name in names:
        return row.cells.get(name, "")
    place = inside(names, name)
    return "" if place is None else text_at(row.cells.get(place[0], ""), place[1])


def text_at(cell: str, path: str) -> str:
    """The text under a path in the JSON of a cell; "" where there is nothing. Raises UnreadableError."""
    value = structured(cell)
    if isinstance(value, dict) and path in value:
        return text_of_json(value[path])
    return text_of_json(value_at(value, path.split(".")))


def value_at(value: Any, parts: Sequence[str]) -> Any:
    """What stands under a path in a JSON value; None where there is nothing."""
    for place, part in enumerate(parts):
        if part == "*" and isinstance(value, list):
            found = [value_at(entry, parts[place + 1 :]) for entry in value]
            found = [entry for entry in found if entry is not None]
            return found[0] if len(found) == 1 else found or None
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def fill_columns(source: Source, table: PeopleTable) -> None:
    """Add the columns of ``--columns`` that the table has not: ``response.assoc`` is taken out of the JSON in the cells
    of ``response``, ``first+second`` puts two columns together. Raises InputError for those that are nowhere."""
    faults = []
    for field_name, name in table.columns.given.items():
        if name in table.columns.names or (field_name == "rt" and "*" in name):
            continue  # a pattern of times is for tables with a column for each stimulus
        parts = [part.strip() for part in name.split("+")]
        absent = [part for part in parts if not _add_column(source, table, part)]
        if absent:
            faults.append(f"--columns {field_name}={shown(name)}: there is no such column")
        elif field_name == "meta":
            continue
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
    place_inside = inside(table.columns.names, name)
    if place_inside is None:
        return False
    column, path = place_inside
    for place, row in enumerate(table.rows):
        try:
            text = text_at(row.cells.get(column, ""), path)
        except UnreadableError as error:
            table.problems.append(Problem(str(source.path), row.line, f"{row.prefix}{column}", str(error)))
            continue
        table.rows[place] = TableRow(row.line, row.prefix, {**row.cells, name: text}, row.not_texts)
    return True


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
