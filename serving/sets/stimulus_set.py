"""Reading a stimulus set by row: JSON lines, CSV, Parquet, words (.txt) or a folder of images. In CSV an empty cell is
an absent field; lists and objects are JSON. ``meta.NAME`` is an entry of ``meta``.

Tables and lists of words that are not UTF-8 are read as Windows-1252, and a warning shows a word of them: Excel in
Western Europe saves them so."""

import itertools
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem, UnavailableError
from agents.stimulus_parts import IMAGES
from serving.files.csv_tables import repeated_columns, without_mark
from serving.files.table_text import decode
from serving.files.terminal import print_warning
from serving.files.words import shown
from serving.files.workbooks import WORKBOOKS, read_any_table
from serving.sets.set_rows import (
    CONTENT,
    META,
    PICTURE_TASKS,
    Choose,
    Row,
    RowReader,
    is_free,
    tasks_of,
    without_nested,
)

JSONL_SUFFIXES = (".jsonl", ".ndjson", ".json")
SET_SUFFIXES = (*JSONL_SUFFIXES, ".csv", ".tsv", ".txt", ".parquet", *WORKBOOKS)
KINDS = (
    f"a set is a JSONL file ({', '.join(JSONL_SUFFIXES)}), a table (.csv, .tsv, .xlsx, .parquet), a list of words "
    "(.txt), or a folder of images"
)
TEXT_TASKS = ("word_association", "conversation")  # that a list of words may be of
# Of pictures. Formats that no agent can decode are among them, so that such a picture is reported and not left out.
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"),
        *(".jp2", ".jxl", ".heic", ".heif", ".avif", ".svg", ".eps", ".ico", ".psd", ".ppm", ".pgm", ".tga", ".exr"),
    )
)
WHITESPACE = " \t\r\f\v"  # around a word; other spaces of Unicode are part of it
MAX_LINE = 16 * 1024 * 1024  # bytes of a line of JSON or of a list
CHUNK = 1_000  # rows of Parquet
ROW_NUMBERS = re.compile("__index_level_[0-9]+__")  # what pandas calls an index without a name


def read_rows(path: Path | str, task: str | None = None, *, choose: Choose | None = None) -> Iterator[Row]:
    """All rows in order, with their problems. Raises InputError if there is no set to read. ``task`` is for rows
    without a task; else the fields say it, or ``choose`` where they fit several, a row for each."""
    if not str(path):
        raise InputError(f"there is no set; {KINDS}")
    where = str(path)
    path = Path(path)
    empty = True
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise InputError(f"{where}: not a regular file; {KINDS}")
        suffix = path.suffix.lower()
        if path.is_dir():
            rows = _folder_rows(path, where, task, choose)
        elif suffix in ROWS_OF:
            rows = ROWS_OF[suffix](path, RowReader(where, path.parent, task, choose))
        else:
            raise InputError(f"{where}: an unknown kind of set; {KINDS}")
        for row in rows:
            empty = False
            yield row
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from None
    if empty:
        raise InputError(f"{where}: an empty set: there is no stimulus in it")


def _folder_rows(path: Path, where: str, task: str | None, choose: Choose | None) -> Iterator[Row]:
    tasks: Mapping[str, bool] = {}
    if task is not None:
        tasks = {task: False}
    elif choose is not None:
        tasks = choose(tasks_of(["image"]))
    if not tasks:
        raise InputError(f"{where}: a folder of images; say with task (--task) what is to be answered")
    for name in tasks:
        if name not in PICTURE_TASKS:
            raise InputError(f"{where}: {name} shows no image; its set is a JSONL or CSV file, not a folder")
    for name in image_names(path):
        file = os.fsencode(os.path.join(where, name)).decode("utf-8", "backslashreplace")
        reader = RowReader(file, path, task, lambda fitting: tasks)
        yield from reader.from_values({"id": name, "image": name}, None)


def _lines(path: Path, where: str) -> Iterator[tuple[int, bytes]]:
    """Numbered lines with text. Raises InputError for a line longer than MAX_LINE."""
    with path.open("rb") as file:
        for number in itertools.count(1):
            line = file.readline(MAX_LINE + 1)
            if not line:
                return
            if len(line) > MAX_LINE:
                raise _too_long(where, number)
            if text := (without_mark(line, where) if number == 1 else line).strip():
                yield number, text


def _too_long(where: str, line: int) -> InputError:
    problem = Problem(where, line, None, f"longer than {MAX_LINE:,} bytes")
    return InputError(f"{where}: cannot be read on", [problem])


def _table_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    table = _parquet(path)
    names = [name for name in table.schema_arrow.names if not ROW_NUMBERS.fullmatch(name)]
    _renamed(reader, None, names)
    rows = (row for batch in table.iter_batches(CHUNK) for row in batch.to_pylist())
    for number, row in enumerate(map(present, rows), start=1):
        for name in IMAGES:
            if isinstance(image := row.get(name), dict):
                if image.get("bytes") is not None:
                    advice = "write them to files, or give the rows to `answer` in Python"
                    raise InputError(f"{reader.where}: has its pictures in itself; {advice}")
                row[name] = image.get("path")
        yield from reader.from_values(without_nested(row), number, unnamed="id" not in names)


def _word_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    if reader.task is None and reader.choose is not None:
        reader.task = next(iter(reader.choose(TEXT_TASKS)), None)
    reader.task = reader.task or TEXT_TASKS[0]
    field = "topic" if reader.task == "conversation" else "cue"
    decoded = decode(path.read_bytes(), reader.where, may_guess=True)
    if decoded.is_guessed:
        print_warning(f"{reader.where}: {decoded.remark}")
    for number, line in enumerate(decoded.text.split("\n"), start=1):
        if len(line) > MAX_LINE:
            raise _too_long(reader.where, number)
        if text := line.strip(WHITESPACE):
            yield from reader.from_values({field: text}, number, unnamed=True)


def _jsonl_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    is_first = True
    for number, text in _lines(path, reader.where):
        if is_first and (text in (b"{", b"[") or text.startswith(b"[{")):
            raise InputError(
                f"{reader.where}: a JSON document over several lines or a list; a set has an object "
                "{…} on each line (`jq -c '.[]' FILE` turns a list into that)"
            )
        is_first = False
        yield from reader.from_line(text, number)


def _csv_rows(path: Path, reader: RowReader) -> Iterator[Row]:
    table = read_any_table(path.read_bytes(), reader.where, may_guess=True, choose_sheet=_sheet_of_set)
    if table.other_sheets:
        others = ", ".join(map(shown, table.other_sheets))
        print_warning(f"{reader.where}: the sheet {shown(table.sheet)!r} is read; not read: {others}")
    if table.guess:
        print_warning(f"{reader.where}: {table.guess}")
    if not table.names:
        return
    names = _renamed(reader, table.line, table.names)
    unnamed = "id" not in table.names
    bad = {line: tuple(problems) for line, problems in itertools.groupby(table.problems, attrgetter("line"))}
    rows = dict(table.rows)
    for line in sorted([*rows, *bad]):
        if line in bad:
            yield Row(line, reader.where, problems=bad[line])
        else:
            filled = {names[name]: cell for name, cell in rows[line].items() if cell and name}
            yield from reader.from_cells(filled, line, unnamed=unnamed)


def _sheet_of_set(headers: Mapping[str, Sequence[str]]) -> str:
    """The sheet of a workbook with columns of a set, else its first: a page of remarks may stand before the table."""
    fitting = [name for name, header in headers.items() if not {*CONTENT, "task"}.isdisjoint(header)]
    if len(fitting) > 1:
        raise InputError(
            f"a workbook with several sheets that may be the set ({', '.join(map(shown, fitting))}): save one of them "
            "as a file of its own"
        )
    return fitting[0] if fitting else next(iter(headers))


ROWS_OF = {
    **dict.fromkeys((".csv", ".tsv", *WORKBOOKS), _csv_rows),
    ".txt": _word_rows,
    ".parquet": _table_rows,
    **dict.fromkeys(JSONL_SUFFIXES, _jsonl_rows),
}


def _renamed(reader: RowReader, line: int | None, names: Sequence[str]) -> dict[str, str]:
    renamed = {name: META + name if is_free(name) else name for name in names}
    problems = repeated_columns([renamed[name] if name else "" for name in names])
    problems += [(shown(name), "is not printable text in UTF-8") for name in names if not name.isprintable()]
    if problems:
        header = "the columns" if line is None else "the header (the first line, names with commas between them)"
        raise InputError(
            f"{reader.where}: {header} cannot be used",
            [Problem(reader.where, line, name, message) for name, message in problems],
        )
    return renamed


def image_names(folder: Path) -> list[str]:
    """Sorted names of pictures below ``folder``, without dot files. Raises InputError."""

    def refuse(error: OSError) -> None:
        path = os.fsencode(error.filename).decode("utf-8", "backslashreplace")
        raise InputError(f"{path}: cannot be read: {error.strerror or error}")

    names: list[str] = []
    seen = set[str]()
    for path, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        if (real := os.path.realpath(path)) in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if name[0] != "."]
        within = Path(path).relative_to(folder)
        pictures = (name for name in files if name[0] != "." and os.path.splitext(name)[1].lower() in SUFFIXES)
        names += [(within / name).as_posix() for name in pictures]
    return sorted(names)


def present(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's fields without null, NaN and pandas's row numbers; a number as id becomes text."""
    return {
        name: str(value) if name == "id" and type(value) is int else value
        for name, value in row.items()
        if value is not None
        and not (isinstance(value, float) and math.isnan(value))
        and not ROW_NUMBERS.fullmatch(name)
    }


def arrow() -> Any:
    """The package pyarrow. Raises UnavailableError."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UnavailableError("the package pyarrow is not installed: pip install 'turinglike[parquet]'") from None
    return pyarrow


def _parquet(path: Path) -> Any:
    pa = arrow()
    try:
        return pa.parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
