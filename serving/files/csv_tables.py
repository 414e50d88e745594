"""Tables of text: CSV, and the same with semicolons or tabs between cells. Empty rows are passed over."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from agents.errors import InputError, Problem
from serving.files.bare_quotes import rows_of_bare_quotes
from serving.files.row_problems import FieldProblem
from serving.files.table_text import UNDECODED, TableText, table_text
from serving.files.words import count, shown

MAX_CELL = 16 * 1024 * 1024  # characters
MOST_SHARED = 200_000  # different cells


@dataclass(slots=True)
class CsvTable:
    """A file's header and rows, with what is wrong with some of them."""

    names: Sequence[str]
    """The column names of the header, in their order, without spaces around them."""
    line: int
    """The line of the header, from 1; 2 below Excel's own ``sep=``."""
    separator: str = ","
    """What stands between cells."""
    comments: list[str] = field(default_factory=list)
    """The lines with ``#`` above the header, as they stand."""
    remarks: list[str] = field(default_factory=list)
    """Sentences on what a reader could not know: the separator, a guessed encoding."""
    guess: str = ""
    """The one of ``remarks`` that says which encoding was guessed; "" where none was."""
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """The readable rows: the line on which each begins, from 1, and its cells as text by column."""
    problems: list[Problem] = field(default_factory=list)
    """Why the other rows cannot be read: a wrong number of cells, or text that is not UTF-8."""
    broken: set[int] = field(default_factory=set)
    """The lines of rows with a wrong number of cells."""


def read_table(data: bytes, where: str, *, may_guess: bool = False, bare_quotes: bool = False) -> CsvTable:
    """The table of a file's bytes. Raises InputError if its header cannot be used.

    With ``may_guess`` a file that is not UTF-8 may be read as Windows-1252, as
    :func:`serving.files.table_text.table_text` says; who allows it must print ``remarks``. With ``bare_quotes``
    quotation marks inside a cell are not doubled: ``"fish, "blue""`` is one cell.
    """
    # What is not UTF-8 becomes lone surrogates, which are an error of the cell that they stand in.
    found = table_text(data, where, may_guess=may_guess)
    rows = rows_of_bare_quotes(found) if bare_quotes else _rows(found)
    line, header, problem = next(rows, (1, [], None))
    names = [cell.strip() for cell in header]
    if wrong := [(None, problem)] if problem is not None else repeated_columns(names):
        raise InputError(f"{where}: the header cannot be used", [Problem(where, line, *fault) for fault in wrong])
    table = CsvTable(names, line)
    table.separator = found.separator
    table.comments = found.comments
    table.remarks = found.remarks
    table.guess = found.guess
    is_damaged = UNDECODED.search(found.text) is not None
    swallowed: list[int] = []
    shared: dict[str, str] = {}  # cells that come again are held once: names and cues stand there a million times
    is_simple = found.separator != "\t" and not is_damaged
    for number, cells, fault in rows:
        if is_simple and fault is None and len(cells) == len(names):  # nearly all rows of nearly all tables
            if len(shared) < MOST_SHARED:
                table.rows.append((number, dict(zip(names, map(shared.setdefault, cells, cells), strict=True))))
            else:
                table.rows.append((number, dict(zip(names, cells, strict=True))))
            continue
        if fault is None and len(cells) != len(names):
            fault = f"{count(len(cells), 'cell')}, but the header has {len(names)}"
            table.broken.add(number)
        if found.separator == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
            swallowed.append(number)
        if len(shared) < MOST_SHARED:
            cells = list(map(shared.setdefault, cells, cells))
        row = dict(zip(names, cells, strict=False))
        undecoded = [name for name, cell in row.items() if UNDECODED.search(cell)] if is_damaged else []
        if fault is not None:
            table.problems.append(Problem(where, number, None, fault))
        elif undecoded:
            table.problems += [Problem(where, number, shown(name) or None, "is not UTF-8") for name in undecoded]
        else:
            table.rows.append((number, row))
    if swallowed:
        rows_with = f"{count(len(swallowed), 'row')} with a cell of several lines and tabs"
        what = "if a quotation mark begins an answer there, other rows are lost in this cell"
        table.remarks.append(f"{rows_with}, the first on line {swallowed[0]}: {what}")
    return table


def load_table(path: Path) -> CsvTable:
    """The table in the CSV file at ``path``; rows that cannot be read are among its ``problems``. Raises InputError for
    a file that cannot be read, and for a header that cannot be used."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return read_table(data, str(path))


def without_mark(data: bytes, where: str) -> bytes:
    """Bytes without a byte-order mark. Raises InputError for UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{where}: is UTF-16", [Problem(where, None, None, "UTF-16 text; save it as UTF-8")])
    return data.removeprefix(b"\xef\xbb\xbf")


def _rows(found: TableText) -> Iterator[tuple[int, list[str], str | None]]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    reader = csv.reader(_lines(found.text), delimiter=found.separator, strict=True)
    while True:
        line = found.line + reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, [], f"not CSV: {str(error).partition(' - ')[0]}"  # the rest is about Python
        else:
            if any(cells):
                yield line, cells, None


def _lines(text: str) -> Iterator[str]:
    """The lines of a text with their ends. ``io.StringIO`` would hold a copy of four bytes for each letter."""
    return io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass")), "utf-8", "surrogatepass", newline="\n")


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    """Problems in the order of their lines, those without a line first."""
    return sorted(problems, key=lambda problem: problem.line or 0)


def repeated_columns(names: Sequence[str]) -> list[FieldProblem]:
    """A problem for each column whose name stands earlier in the header."""
    first: dict[str, int] = {}
    return [
        (shown(name), f"two columns of this name, {first[name]} and {at}")
        for at, name in enumerate(names, start=1)
        if name and first.setdefault(name, at) < at
    ]


SHORT_TEXT = 64  # letters of a cell that may come again
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four as East Asian keyboards type them
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def write_rows(file: TextIO, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table to ``file``, which must be open with ``newline=""``."""
    write_guarded(file, columns, ([guarded(value) for value in row] for row in rows))


def write_guarded(file: TextIO, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """As :func:`write_rows`, of values that went through :func:`guarded` before."""
    writer = csv.writer(file, lineterminator="\r\n")  # with "\n" a lone "\r" in a text would not be quoted
    writer.writerow([guarded(name) for name in columns])
    writer.writerows(rows)


def unguarded(text: str) -> str:
    """The text of a cell that :func:`write_rows` wrote."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def read_back(text: str) -> str:
    """The text of a cell as a reader of our tables gets it: without control characters."""
    return _CONTROL.sub("\ufffd", text)


def guarded(value: Any) -> Any:
    """A value as a cell has it: no formula of a spreadsheet, no control characters, and nothing where it is missing."""
    if isinstance(value, str):
        return _repeated_text(value) if len(value) <= SHORT_TEXT else _text(value)
    return None if value is None or value != value else value


def _text(value: str) -> str:
    text = read_back(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


_repeated_text = lru_cache(maxsize=4096)(_text)  # names, tasks and words stand in a table thousands of times
