"""Tables of figures, for a terminal, a page, CSV and JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from markupsafe import Markup

from serving.files.csv_tables import write_rows
from serving.files.terminal import plain_table, print_table

R = TypeVar("R")
FILE_NAMES = {"task": "asked"}  # of fields that files call otherwise
MOST_DIGITS = 9  # of a figure; what is nearer to another is rounding


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval; as text it is "0.62 (0.55 to 0.70)", or "–" without a value."""

    value: float = math.nan
    """The figure, in its own unit; NaN for none."""
    low: float = math.nan
    """The interval's lower end; NaN without an interval."""
    high: float = math.nan
    """Its upper end, likewise."""
    form: str = ".2f"
    """How the three numbers are written, as :func:`format` takes it."""

    def __str__(self) -> str:
        return self._written("{} ({} to {})")

    def __html__(self) -> Markup:
        return Markup(self._written("{} <small>({} to {})</small>"))

    def apart_from(self, null: float) -> Estimate:
        """This figure with so many digits that no end of its interval looks like ``null`` unless it is ``null``.

        With two digits 0.004 is 0.00: an interval from 0.004 to 0.1 leaves 0 out, and would seem to hold it."""
        digits = int(self.form[-2])
        for more in range(digits, MOST_DIGITS + 1):
            written = replace(self, form=f"{self.form[:-2]}{more}f")
            if all(end == null or round(end, more) != round(null, more) for end in (self.low, self.high)):
                return written
        return written

    def significant(self) -> Estimate:
        """This figure, with three significant digits where its own form leaves fewer than two: a slope by the
        millisecond is 1.3e-10, and would be written 0.0000."""
        digits = int(self.form[-2])
        finite = [abs(end) for end in (self.value, self.low, self.high) if math.isfinite(end)]
        is_small = 0 < max(finite, default=0.0) < 10.0 ** (1 - digits)
        return replace(self, form=f"{self.form[:-2]}3g") if is_small else self

    def _written(self, with_interval: str) -> str:
        if math.isnan(self.value):
            return "–"
        ends = [self.value, self.low, self.high]
        if not self.form.endswith("g"):
            ends = [round(end, int(self.form[-2])) + 0.0 for end in ends]  # no -0.00
        texts = [f"{end:{self.form}}" for end in ends]
        return texts[0] if math.isnan(self.low) else with_interval.format(*texts).replace("inf", "∞")


NO_FIGURE = Estimate()


class Grid(NamedTuple):
    """A table as it is seen; a row's first cell is its header."""

    caption: str
    """What stands above the table; "" for nothing."""
    columns: Sequence[str]
    """The headings, as many as a row has cells."""
    rows: Sequence[Sequence[Any]]
    """The cells: texts, numbers, :class:`Estimate`; None and NaN are seen as "–"."""

    def html(self) -> Markup:
        """The table for a notebook."""
        columns = Markup("").join(Markup("<th>{}</th>").format(column) for column in self.columns)
        rows = Markup("").join(Markup("<tr>{}</tr>").format(_cells(row)) for row in self.rows)
        return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(columns, rows)

    def print(self) -> None:
        """The table on standard output; nothing without rows."""
        table = plain_table(*self.columns)
        for row in self.rows:
            table.add_row(*map(_text, row))
        if self.rows:
            print_table(table)


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """Rows of one dataclass, which are written to files field by field."""

    data: Sequence[R]
    """The rows, in the order in which they are seen."""
    omit: Collection[str] = ()
    """Fields that files lack, as these rows do not use them."""

    def __iter__(self) -> Iterator[R]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def where(self, **values: Any) -> Table[R]:
        """The rows whose fields have these values."""
        rows = [row for row in self.data if all(getattr(row, name) == value for name, value in values.items())]
        return replace(self, data=rows)

    def distinct(self, name: str) -> list[Any]:
        """The values of a field, each once, in the order of the rows."""
        return list(dict.fromkeys(getattr(row, name) for row in self.data))

    def grid(self, view: Mapping[str, str] | str, caption: str = "") -> Grid:
        """The rows as they are seen; ``view`` has by heading a field ("p_human.value"), or is the names of fields."""
        if isinstance(view, str):
            view = {name.replace("_", " "): name for name in view.split()}
        cells = list(map(attrgetter, view.values()))
        return Grid(caption, list(view), [[cell(row) for cell in cells] for row in self.data])

    def records(self) -> list[dict[str, Any]]:
        """The rows as files have them: an estimate as ``name``, ``name_low`` and ``name_high``."""
        return [record(row, self.omit) for row in self.data]

    def write_csv(self, path: Path) -> None:
        """Write a CSV file; none for a table without rows."""
        if records := self.records():
            with path.open("w", encoding="utf-8", newline="") as file:
                write_rows(file, records[0], (row.values() for row in records))


def record(row: Any, omit: Collection[str] = ()) -> dict[str, Any]:
    """A dataclass as files have it, without the fields ``omit``; an estimate becomes three entries."""
    values: dict[str, Any] = {}
    for entry in fields(row):
        name = FILE_NAMES.get(entry.name, entry.name)
        value = getattr(row, entry.name)
        if entry.name in omit:
            continue
        if isinstance(value, Estimate):
            values |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            values[name] = as_json(value)
    return values


def as_json(value: Any) -> Any:
    """Tables and dataclasses in a value as JSON has them."""
    if isinstance(value, Table):
        return value.records()
    if is_dataclass(value):
        return record(value)
    return {name: as_json(part) for name, part in value.items()} if isinstance(value, dict) else value


def _cells(row: Sequence[Any]) -> Markup:
    return Markup("").join(Markup("<td>{}</td>").format(_text(cell)) for cell in row)


def _text(cell: Any) -> str:
    if cell is None or cell != cell:
        return "–"
    if isinstance(cell, float):
        return f"{round(cell, 2) + 0.0:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
