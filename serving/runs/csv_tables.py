"""CSV tables: the reader of sets, imports, control questions and keys of trials, and the writer.

Text is UTF-8, with or without a byte-order mark. Rows of empty cells are passed over. A row with more or fewer cells
than the header has a problem instead of cells.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from agents.errors import InputError, Problem
from serving.runs.row_problems import FieldProblem, count, shown

MAX_LINE = 16 * 1024 * 1024  # bytes of a line, line end included, and of a CSV cell
SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}  # of other programs


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row that begins on ``line``: its cells by column, or the ``problem``."""

    line: int
    cells: dict[str, str]
    problem: str | None = None


@dataclass(slots=True)
class Table:
    """A table: its columns, the line and cells of its rows, and the problems of rows that cannot be read."""

    names: Sequence[str]
    rows: list[tuple[int, dict[str, str]]]
    problems: list[Problem] = field(default_factory=list)


class CsvReader:
    """The rows of an open file, which problems call ``where``. ``names`` are its columns, which stand on ``line``; an
    empty file has none. Raises InputError for a header that cannot be read, and a line that is too long."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        self._where = where
        self._file = file
        self._start = ""  # the first line with text
        self._cells = csv.reader(self._lines(), strict=True)
        self.names: list[str] = []
        self.line = 0
        self._read_header()

    def __iter__(self) -> Iterator[CsvRow]:
        while True:
            line = self._cells.line_num + 1
            try:
                cells = next(self._cells)
            except StopIteration:
                return
            except csv.Error as error:
                yield CsvRow(line, {}, _not_csv(error))
                continue
            if not any(cells):
                continue
            if len(cells) == len(self.names):
                yield CsvRow(line, dict(zip(self.names, cells, strict=True)))
            else:
                yield CsvRow(line, {}, f"{count(len(cells), 'cell')}, but the header has {len(self.names)}")

    def _read_header(self) -> None:
        problem = None
        while not self.names and problem is None:
            self.line = self._cells.line_num + 1
            try:
                cells = next(self._cells)
            except StopIteration:
                return
            except csv.Error as error:
                problem = _not_csv(error)
            else:
                self.names = [cell.strip() for cell in cells] if any(cells) else []
        separator = _other_separator(self._start)
        if separator is not None:
            problem = f"cells are parted by {separator}; save the table with commas between them"
        if problem is not None:
            problems = [Problem(self._where, self.line, None, problem)]
            raise InputError(f"{self._where}: the header cannot be used", problems)

    def _lines(self) -> Iterator[str]:
        for line in lines(self._file, self._where):
            # What is not UTF-8 becomes lone surrogates, which are an error of the cell that they stand in.
            text = line.decode("utf-8", "surrogateescape")
            self._start = self._start or text.strip("\r\n")
            yield text


def read_table(data: bytes, where: str) -> Table:
    """The table of a file's bytes. Raises InputError if its header cannot be used."""
    file = io.BytesIO(data)
    skip_mark(file, where)
    reader = CsvReader(file, where)
    if twice := [Problem(where, reader.line, *problem) for problem in repeated_columns(reader.names)]:
        raise InputError(f"{where}: the header cannot be used", twice)
    table = Table(reader.names, [])
    for row in reader:
        wrong: list[FieldProblem] = [(None, row.problem)] if row.problem is not None else _undecoded(row)
        table.problems += [Problem(where, row.line, *problem) for problem in wrong]
        if not wrong:
            table.rows.append((row.line, row.cells))
    return table


def load_table(path: Path) -> Table:
    """The table of a file. Raises InputError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return read_table(data, str(path))


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    """A table's problems in the order of its lines."""
    return sorted(problems, key=lambda problem: problem.line or 0)


def repeated_columns(names: Sequence[str]) -> list[FieldProblem]:
    """A problem for each column whose name an earlier column has."""
    first: dict[str, int] = {}
    return [
        (shown(name), f"two columns of this name, {first[name]} and {at}")
        for at, name in enumerate(names, start=1)
        if name and first.setdefault(name, at) < at
    ]


def skip_mark(file: BinaryIO, where: str) -> None:
    """Pass over a byte-order mark at the start of a file. Raises InputError for UTF-16."""
    start = file.read(3)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{where}: is UTF-16", [Problem(where, None, None, "UTF-16 text; save it as UTF-8")])
    file.seek(3 if start == b"\xef\xbb\xbf" else 0)


def lines(file: BinaryIO, where: str) -> Iterator[bytes]:
    """Lines with their ends. Raises InputError for a line longer than MAX_LINE, which is never held."""
    for number in itertools.count(1):
        line = file.readline(MAX_LINE + 1)
        if not line:
            return
        if len(line) > MAX_LINE:
            problem = Problem(where, number, None, f"longer than {MAX_LINE:,} bytes")
            raise InputError(f"{where}: cannot be read on", [problem])
        yield line


def _not_csv(error: csv.Error) -> str:
    return f"not CSV: {str(error).partition(' - ')[0]}"  # the rest is about Python


def _other_separator(header: str) -> str | None:
    outside = re.sub(r'"[^"]*("|$)', "", header)
    most = max(SEPARATORS, key=outside.count)
    return SEPARATORS[most] if outside.count(most) > outside.count(",") else None


def _undecoded(row: CsvRow) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name, cell in row.cells.items():
        try:
            cell.encode()
        except UnicodeEncodeError:
            problems.append((shown(name) or None, "is not UTF-8"))
    return problems


_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four as East Asian keyboards type them
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def write_rows(file: TextIO, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write the header and the rows to ``file``, which must be open with ``newline=""``."""
    writer = csv.writer(file, lineterminator="\r\n")  # with "\n" a lone "\r" in a text would not be quoted
    writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(value) for value in row] for row in rows)


def unguarded(text: str) -> str:
    """The text of a cell that :func:`write_rows` wrote."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return None
    if not isinstance(value, str):
        return value
    text = _CONTROL.sub("\ufffd", value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
