"""Tables and log lines on a terminal."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

PIPE = 10_000  # columns: what is piped into a file or another program is not wrapped


def plain_table(*names: str) -> Table:
    """A table without lines, of plain text."""
    return Table(*names, box=None, pad_edge=False, show_header=bool(names))


def columns() -> int:
    """The terminal's width; for a pipe unlimited."""
    return Console().width if sys.stdout.isatty() else PIPE


def print_table(table: Table) -> None:
    Console(markup=False, highlight=False, width=columns()).print(table)


def print_json(value: Any) -> int:
    """Print JSON over several lines; returns 0."""
    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    return 0


class _Printing(logging.Handler):
    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())


@contextmanager
def printed_log(name: str, level: int, show: Callable[[str], None]) -> Iterator[None]:
    """Pass every line of the logger ``name`` from ``level`` on to ``show``."""
    log, handler = logging.getLogger(name), _Printing(show)
    before = log.level
    log.addHandler(handler)
    log.setLevel(level)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
