"""Workbooks of Excel and LibreOffice (.xlsx, .xls, .ods), read as the table of one of their sheets."""

import datetime
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agents.errors import InputError, Problem, UnavailableError
from serving.files.csv_tables import CsvTable, read_table, repeated_columns
from serving.files.words import count, shown

WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
BEGINNINGS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of zip archives, and of Excel's older files

ChooseSheet = Callable[[Mapping[str, Sequence[str]]], str]
"""The name of the sheet to read, of those by name with their headers. It may raise InputError."""


def first_sheet(headers: Mapping[str, Sequence[str]]) -> str:
    """The name of the first of some sheets."""
    return next(iter(headers))


def read_any_table(
    data: bytes,
    where: str,
    *,
    may_guess: bool = False,
    bare_quotes: bool = False,
    choose_sheet: ChooseSheet = first_sheet,
) -> CsvTable:
    """The table of a file's bytes, be it a workbook or a text; ``may_guess`` and ``bare_quotes`` are those of
    :func:`serving.files.csv_tables.read_table`, ``choose_sheet`` that of :func:`read_workbook`. Raises InputError, and
    UnavailableError without the package for workbooks."""
    if data.startswith(BEGINNINGS):
        return read_workbook(data, where, choose_sheet)
    return read_table(data, where, may_guess=may_guess, bare_quotes=bare_quotes)


def read_workbook(data: bytes, where: str, choose_sheet: ChooseSheet = first_sheet) -> CsvTable:
    """The table of a sheet of a workbook: ``choose_sheet`` names it among the visible sheets with a filled cell, and a
    remark names the others. The first filled row is the header. Raises InputError for what is no workbook and for a
    header that cannot be used."""
    sheets = {sheet.name: sheet for sheet in _filled_sheets(data, where)}
    if not sheets:
        return CsvTable([], 1, separator="")
    sheet = sheets[choose_sheet({name: sheet.header for name, sheet in sheets.items()})]
    if faults := repeated_columns(sheet.header):
        raise InputError(
            f"{where}: the header cannot be used", [Problem(where, sheet.line, *fault) for fault in faults]
        )
    table = CsvTable(sheet.header, sheet.line, separator="", sheet=sheet.name)
    table.other_sheets = [name for name in sheets if name != sheet.name]
    table.remarks.append(f"read from the sheet {shown(sheet.name)!r}")
    if table.other_sheets:
        listed = ", ".join(map(shown, table.other_sheets))
        table.remarks.append(f"{count(len(table.other_sheets), 'other sheet')} of the workbook not read: {listed}")
    for number, row in enumerate(sheet.rows, start=1):
        cells = [_text(cell) for cell in row]
        if number > sheet.line and any(cell.strip() for cell in cells):
            table.rows.append((number, dict(zip(sheet.header, cells, strict=True))))
    return table


class _Sheet(NamedTuple):
    name: str
    line: int
    """The row of the header, from 1."""
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


def _filled_sheets(data: bytes, where: str) -> list[_Sheet]:
    """The visible sheets that have a filled cell, in their order."""
    try:
        import python_calamine
    except ImportError:
        raise UnavailableError(
            "the package python-calamine is not installed: pip install 'turinglike[excel]'. Or save the table as CSV"
        ) from None
    try:
        book = python_calamine.load_workbook(io.BytesIO(data))
        visible = [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.visible == python_calamine.SheetVisibleEnum.Visible
            and sheet.typ == python_calamine.SheetTypeEnum.WorkSheet
        ]
        sheets = [(name, book.get_sheet_by_name(name).to_python(skip_empty_area=False)) for name in visible]
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        fault = f"is no workbook that can be read: {shown(str(error))}"
        raise InputError(f"{where}: {fault}", [Problem(where, None, None, fault)]) from None
    filled = []
    for name, rows in sheets:
        for line, row in enumerate(rows, start=1):
            header = [_text(cell).strip() for cell in row]
            if any(header):
                filled.append(_Sheet(name, line, header, rows))
                break
    return filled


def _text(cell: Any) -> str:
    """The text of a cell, as a CSV would have it: 3 for the number 3.0."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return repr(cell.total_seconds())
    return "" if cell is None else str(cell)
