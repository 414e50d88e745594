"""Tables and log lines on a terminal."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from agents.errors import printable

PIPE = 10_000  # columns: what is piped into a file or another program is not wrapped


class PlainTable(Table):
    """A table whose cells may be anybody's words: nothing in them is obeyed, by the terminal or as rich's markup. A
    cell that has lines of its own is given as a ``Text``."""

    def add_row(self, *cells: RenderableType | None, **style: Any) -> None:
        """Add a row; texts are escaped, so that none makes a line that looks like another row."""
        super().add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in cells), **style)


def plain_table(*names: str) -> PlainTable:
    """A table without lines, of plain text."""
    return PlainTable(*names, box=None, pad_edge=False, show_header=bool(names))


def columns() -> int:
    """The terminal's width; for a pipe unlimited."""
    return Console().width if sys.stdout.isatty() else PIPE


def print_table(table: Table) -> None:
    """Print a table of plain text, as wide as the terminal."""
    Console(markup=False, highlight=False, width=columns()).print(table)


def print_line(text: str) -> None:
    """Print a line that may hold anybody's words. Printing goes by this, :func:`print_table` and :func:`print_json`."""
    print(printable(text), flush=True)


def print_warning(text: str) -> None:
    """Print a line that may hold anybody's words to stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def print_json(value: Any, *, is_indented: bool = True) -> int:
    """Print JSON, by default over several lines; returns 0."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if is_indented else None).decode()
    # JSON lets controls from U+007F on stand as they are, among them those that turn the direction of a line.
    print(text if text.isprintable() else "".join(map(_in_json, text)))
    return 0


def _in_json(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class _Printing(logging.Handler):
    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())


@contextmanager
def printed_log(name: str, level: int, show: Callable[[str], None]) -> Iterator[None]:
    """Pass every line of the logger ``name`` from ``level`` on to ``show``."""
    log = logging.getLogger(name)
    handler = _Printing(show)
    before = log.level
    log.addHandler(handler)
    log.setLevel(level)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
