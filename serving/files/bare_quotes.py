"""Tables of programs that put quotation marks around a cell with a comma or a line break, and leave the marks in it as
they are: ``"fish, "blue""`` is one cell. PsychoPy is one of them."""

import re
from collections.abc import Iterator

from serving.files.table_text import TableText

LONGEST = 20_000  # characters of a cell between marks


def rows_of_bare_quotes(found: TableText) -> Iterator[tuple[int, list[str], str | None]]:
    """The rows of a text: the line on which each begins, its cells, and None, as no row of theirs is a fault.

    A cell that begins with a mark ends at a mark before a separator, or, as ``"Stop" sign``, where an even number of
    marks stands before. Nothing says which; of two readings with the header's number of cells the shorter is taken.
    """
    part = re.escape(found.separator)
    end = rf"({part}|\r?\n|\r|\Z)"
    plain = rf'[^"{part}\r\n][^{part}\r\n]*'
    marked = rf'"[^,\n"]*(?:"[^,\n"]*)*[,\n](?s:.{{0,{LONGEST}}}?)"'
    even = rf'(?:[^"{part}\r\n]+|"[^"]{{0,{LONGEST}}}(?:"|\Z))*'
    rules = [re.compile(rf"({plain}|{cell}|){end}") for cell in (marked, even)]
    width = None
    line = found.line
    place = 0
    while place < len(found.text):
        readings = sorted((_row_by(rule, found, place) for rule in rules), key=lambda reading: reading[1])
        fitting = [reading for reading in readings if width in (None, len(reading[0]))]
        cells, after = (fitting or readings)[0]
        width = width or len(cells)
        if any(cells):
            yield line, cells, None
        line += found.text.count("\n", place, after)
        place = after


def _row_by(cell: re.Pattern[str], found: TableText, place: int) -> tuple[list[str], int]:
    """The cells of the row that begins at a place, and where the next row begins. ``cell`` fits a cell and what ends
    it."""
    part = re.escape(found.separator)
    cells = []
    while True:
        match = cell.match(found.text, place)
        if match is None:
            match = re.compile(rf"([^{part}\r\n]*)({part}|\r?\n|\r|\Z)").match(found.text, place)
        assert match is not None
        text = match[1]
        place = match.end()
        if len(text) > 1 and text[0] == text[-1] == '"' and ("," in text or "\n" in text):
            text = text[1:-1]
        cells.append(text)
        if match[2] != found.separator:
            return cells, place
