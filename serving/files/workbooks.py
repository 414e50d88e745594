"""Workbooks of Excel and LibreOffice (.xlsx, .xls, .ods), read as the table of their first sheet."""

import datetime
import io
from typing import Any

from agents.errors import InputError, Problem, UnavailableError
from serving.files.csv_tables import CsvTable, read_table, repeated_columns
from serving.files.words import count, shown

WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
BEGINNINGS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # of zip archives, and of Excel's older files


def read_any_table(data: bytes, where: str, *, may_guess: bool = False, bare_quotes: bool = False) -> CsvTable:
    """The table of a file's bytes, be it a workbook or a text; ``may_guess`` and ``bare_quotes`` are those of
    :func:`serving.files.csv_tables.read_table`. Raises InputError, and UnavailableError without the package for
    workbooks."""
    if data.startswith(BEGINNINGS):
        return read_workbook(data, where)
    return read_table(data, where, may_guess=may_guess, bare_quotes=bare_quotes)


def read_workbook(data: bytes, where: str) -> CsvTable:
    """The table of a workbook's first visible sheet with a filled cell; a remark names the others. The first filled row
    is the header. Raises InputError for what is no workbook and for a header that cannot be used."""
    name, rows, others = _first_sheet(data, where)
    lines = [(number, [_text(cell) for cell in row]) for number, row in enumerate(rows, start=1)]
    filled = [(number, cells) for number, cells in lines if any(cell.strip() for cell in cells)]
    if not filled:
        return CsvTable([], 1)
    line, header = filled[0]
    names = [cell.strip() for cell in header]
    if faults := repeated_columns(names):
        raise InputError(f"{where}: the header cannot be used", [Problem(where, line, *fault) for fault in faults])
    table = CsvTable(names, line, separator="")
    table.remarks.append(f"read from the sheet {shown(name)!r}")
    if others:
        listed = ", ".join(map(shown, others))
        table.remarks.append(f"{count(len(others), 'other sheet')} of the workbook not read: {listed}")
    table.rows = [(number, dict(zip(names, cells, strict=True))) for number, cells in filled[1:]]
    return table


def _first_sheet(data: bytes, where: str) -> tuple[str, list[list[Any]], list[str]]:
    """The name and the cells of the first filled visible sheet, and the names of the other filled ones."""
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
    filled = [(name, rows) for name, rows in sheets if any(cell not in ("", None) for row in rows for cell in row)]
    if not filled:
        return "", [], []
    name, rows = filled[0]
    return name, rows, [other for other, _ in filled[1:]]


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
