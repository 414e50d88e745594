"""Numbers as Excel and PsychoPy write them in much of Europe: 0,734 is 0.734, and 1 250,5 is 1250.5.

Which of two meanings a comma has can be known of a whole column alone: 1,234 is a thousand and more in English, and a
little more than one in French. Marks between thousands are read where they can be nothing else.
"""

import re
from typing import Literal, get_args

from agents.errors import InputError
from serving.exchange.importing.people_table import PeopleTable, TableRow
from serving.exchange.importing.source import Source, listed
from serving.exchange.importing.table_cells import NUMBER, is_empty, shortened
from serving.exchange.importing.table_columns import ACROSS, DOWN, DURATIONS, TIMES
from serving.files.words import count, shown

NUMBERS = {"rt": TIMES, "durations": DURATIONS, "x": ACROSS, "y": DOWN, "confidence": ("confidence",)}
"""The fields that are numbers, with the names of their columns."""
WITH_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,234 is a thousand and more in English
SPACES = " \u00a0\u2009\u202f"  # between thousands in French; the last three do not break a line
APOSTROPHES = "'\u2019"  # the same in Switzerland
GROUPED = re.compile(rf"[+-]?[1-9][0-9]{{0,2}}(?:[{SPACES}{APOSTROPHES}][0-9]{{3}})+(?:[.,][0-9]+)?")
GROUPED_BY_POINTS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+")  # 1.250,5 in German
GROUPED_BY_COMMAS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+\.[0-9]+")  # 1,250.5 in English
PLACES_SHOWN = 5  # of the rows that a message names

Spelling = Literal["whole", "whole with spaces", "point", "comma", "none"]


def read_decimal_commas(source: Source, table: PeopleTable) -> None:
    """Write decimal commas in a table's columns of numbers as decimal points, and leave marks between thousands out.
    Remarks name the columns.

    A column has decimal commas if one of its numbers at least has a comma, and more cells are numbers than are none.
    Lists such as ``[0.5, 0.9]`` say nothing. Where semicolons part the cells, commas are decimal ones; where commas
    part them, never. Elsewhere a column of numbers as 1,234 stays as it is, and whoever reads it as numbers refuses
    it. In a workbook numbers have a point, and beside them stand texts with a comma.

    Raises InputError for a column that is read and has decimal commas and decimal points; the rows of the fewer are
    named, since one of them is wrong.
    """
    is_text = table.separator != ""
    read: dict[str, _Column] = {}
    for name_of_field, names in NUMBERS.items():
        given = table.columns.given.get(name_of_field)
        columns = table.columns.named(names) if given is None else [given]
        for place, name in enumerate(columns):
            found = _Column(table, name)
            is_mixed = is_text and found.has_decimal_commas and bool(found.rows["point"])
            if is_mixed and place == 0:
                raise _both_signs(found)
            if not is_mixed:  # of several columns the first is read, and the others need no refusal
                read[name] = found
    with_commas = [shown(name) for name, found in read.items() if found.has_decimal_commas]
    if with_commas:
        source.remarks.append(f"numbers have decimal commas, in {listed(with_commas)}")
    for name, found in read.items():
        if found.grouped:
            cell = found.grouped[0].cells[name].strip()
            places = listed([row.place for row in found.grouped])
            written = " ".join(cell.split())  # a space as everybody sees it, and not as \\u202f
            source.remarks.append(
                f"column {shown(name)}: {count(len(found.grouped), 'number')} (at {places}) with marks between "
                f"thousands: {written!r} is read as {found.numbers[cell]}"
            )
    changed = {name: found.numbers for name, found in read.items() if found.numbers}
    if not changed:
        return
    for place, row in enumerate(table.rows):
        numbers_of_row = {name: numbers.get(row.cells.get(name, "").strip()) for name, numbers in changed.items()}
        plain = {name: number for name, number in numbers_of_row.items() if number is not None}
        if plain:
            table.rows[place] = TableRow(row.line, row.prefix, {**row.cells, **plain}, row.not_texts)


class _Column:
    """How the numbers of a column are written: ``rows`` has those with a filled cell by the spelling of its number.

    ``numbers`` are those that are read otherwise than they are written, by their cells, and ``grouped`` the rows with
    marks between thousands.
    """

    def __init__(self, table: PeopleTable, name: str) -> None:
        self.name = name
        self.rows: dict[Spelling, list[TableRow]] = {spelled: [] for spelled in get_args(Spelling)}
        cells: dict[str, Spelling | None] = {}
        for row in table.rows:
            cell = row.cells.get(name, "").strip()
            if cell not in cells:
                cells[cell] = spelling(cell)
            spelled = cells[cell]
            if spelled is not None:
                self.rows[spelled].append(row)
        self.has_decimal_commas = self._has_decimal_commas(table.separator)
        # Without decimal commas `812 640` may be two times.
        unread = {"none"} if self.has_decimal_commas else {"none", "comma", "whole with spaces"}
        self.numbers = {
            cell: _number(cell, spelled)
            for cell, spelled in cells.items()
            if spelled is not None and spelled not in unread and not NUMBER.fullmatch(cell)
        }
        in_groups = {cell for cell in self.numbers if not WITH_COMMA.fullmatch(cell)}
        self.grouped = []
        if in_groups:
            self.grouped = [row for row in table.rows if row.cells.get(name, "").strip() in in_groups]

    def _has_decimal_commas(self, separator: str) -> bool:
        commas = self.rows["comma"]
        numbers = sum(len(rows) for spelled, rows in self.rows.items() if spelled != "none")
        if not commas or numbers <= len(self.rows["none"]):
            return False
        if separator in (",", ";"):
            return separator == ";"  # nobody's program quotes decimal commas
        return not all(THOUSANDS.fullmatch(row.cells[self.name].strip()) for row in commas)


def spelling(cell: str) -> Spelling | None:
    """How the number in a cell is written; "none" for what is no number, None for an empty cell or a list."""
    if is_empty(cell) or cell.startswith("["):
        return None
    if NUMBER.fullmatch(cell):
        return "point" if "." in cell else "whole"
    if WITH_COMMA.fullmatch(cell) or GROUPED_BY_POINTS.fullmatch(cell):
        return "comma"
    if GROUPED_BY_COMMAS.fullmatch(cell):
        return "point"
    if not GROUPED.fullmatch(cell):
        return "none"
    if "," in cell:
        return "comma"
    if "." in cell:
        return "point"
    return "whole with spaces" if " " in cell else "whole"


def _number(cell: str, spelled: Spelling) -> str:
    """The number of a cell with a decimal point, and nothing between its thousands."""
    for mark in (*SPACES, *APOSTROPHES):
        cell = cell.replace(mark, "")
    if spelled == "comma":
        return cell.replace(".", "").replace(",", ".")
    return cell.replace(",", "")


def _both_signs(column: _Column) -> InputError:
    """The refusal of a column with decimal commas and decimal points: 1.250 may be one and a quarter, or a thousand."""
    sides = [(column.rows["comma"], "decimal commas"), (column.rows["point"], "decimal points")]
    sides.sort(key=lambda side: -len(side[0]))
    (most, usual), (fewest, odd) = sides
    cells = [f"{row.place} ({shortened(row.cells[column.name].strip())!r})" for row in fewest]
    return InputError(
        f"column {shown(column.name)} has {usual} in {count(len(most), 'row')}, and {odd} in "
        f"{count(len(fewest), 'row')}, at {listed(cells, PLACES_SHOWN)}: write all numbers alike"
    )
