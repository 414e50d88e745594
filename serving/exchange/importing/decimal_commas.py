"""Numbers with a decimal comma, as Excel and PsychoPy write them in much of Europe: 0,734 is 0.734."""

import re

from serving.exchange.importing.people_table import PeopleTable, TableRow
from serving.exchange.importing.source import Source, listed
from serving.exchange.importing.table_cells import NUMBER, is_empty
from serving.exchange.importing.table_columns import ACROSS, DOWN, DURATIONS, TIMES
from serving.files.words import shown

NUMBERS = {"rt": TIMES, "durations": DURATIONS, "x": ACROSS, "y": DOWN, "confidence": ("confidence",)}
"""The fields that are numbers, with the names of their columns."""
WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,234 is a thousand and more in English


def read_decimal_commas(source: Source, table: PeopleTable) -> None:
    """Write decimal commas in a table's columns of numbers as decimal points; a remark names the columns.

    A column has decimal commas if every filled cell is a number, one at least has a comma and none a point. Lists such
    as ``[0.5, 0.9]`` say nothing. Where semicolons part the cells, commas are decimal ones. Elsewhere a column of
    numbers as 1,234 stays as it is, and whoever reads it as numbers refuses it.
    """
    if table.separator == ",":
        return  # nobody's program quotes decimal commas
    columns = []
    for field, names in NUMBERS.items():
        given = [table.columns.given[field]] if field in table.columns.given else table.columns.named(names)
        columns += [name for name in given if _has_decimal_commas(table, name)]
    if not columns:
        return
    source.remarks.append(f"numbers have decimal commas, in {listed([shown(name) for name in columns])}")
    for place, row in enumerate(table.rows):
        pointed = {name: row.cells[name].replace(",", ".") for name in columns if _is_with_comma(row, name)}
        table.rows[place] = TableRow(row.line, row.prefix, {**row.cells, **pointed}, row.not_texts)


def _is_with_comma(row: TableRow, name: str) -> bool:
    return WITH_COMMA.fullmatch(row.cells.get(name, "").strip()) is not None


def _has_decimal_commas(table: PeopleTable, name: str) -> bool:
    with_comma = 0
    are_thousands = True
    for row in table.rows:
        cell = row.cells.get(name, "").strip()
        if WITH_COMMA.fullmatch(cell):
            with_comma += 1
            are_thousands = are_thousands and THOUSANDS.fullmatch(cell) is not None
        elif not is_empty(cell) and not cell.startswith("[") and (not NUMBER.fullmatch(cell) or "." in cell):
            return False
    return with_comma > 0 and (table.separator == ";" or not are_thousands)
