"""The writer of every CSV that texts of people or of models reach, so that a text is one cell and nothing else.

RFC 4180 and UTF-8. What would end a row is quoted. Spreadsheets compute a cell that begins like a formula: such a text
gets an apostrophe before it, as OWASP has it, unless it is a number; so does one that begins with apostrophes and then
like a formula, so that :func:`unguarded` gives back every text. Control characters but for tabs and line ends become
U+FFFD; records keep them. None and NaN are empty cells.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

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
