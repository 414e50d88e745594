"""What a table tells about who answered: age, sex, condition and the like, which go with each answer.

Programs write such a column in each row, or fill it in a single row, that of a questionnaire. What could tell strangers
who a person is, is never taken.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from agents.errors import InputError
from serving.exchange.importing.people_table import TableRow, whole_numbers
from serving.exchange.importing.source import Source, listed, person
from serving.exchange.importing.table_cells import is_empty, without_decimals
from serving.exchange.importing.table_columns import ABOUT, Columns, is_personal, plain_column
from serving.files.words import shown

OWNERS = frozenset({"player", "participant", "subject", "subsession", "session"})  # before a dot: player.age
JOIN = "+"  # between the columns of ``--columns meta=age+sex``


class AboutPeople:
    """What the rows of a table tell about who answered them."""

    def __init__(
        self, source: Source, columns: Columns, rows: Sequence[TableRow], person_of: Callable[[TableRow], str]
    ) -> None:
        """Read the columns in all ``rows``, also in those without an answer. Raises InputError for a column of
        ``--columns`` that names people."""
        self._names = _names(columns)
        self._person_of = person_of
        self._numbers = {column: whole_numbers(rows, column) for column in self._names}
        self._of_person = self._constant(rows)
        self._shared: dict[tuple[str | None, ...], Mapping[str, str] | None] = {}
        if self._names:
            told = [shown(name) for name in self._names.values()]
            source.remarks.append(f"told about who answered: {listed(told)}")

    @property
    def tells(self) -> bool:
        """Whether a column tells something."""
        return bool(self._names)

    def of(self, row: TableRow) -> Mapping[str, str] | None:
        """What is told of who answered in a row, by name: ``{"age": "31"}``; None where nothing is."""
        if not self._names:
            return None
        whole = self._of_person.get(self._person_of(row), {})
        values = tuple(self._cell(row, column) or whole.get(column) for column in self._names)
        if values not in self._shared:  # one object for all rows of a person
            found = {name: value for name, value in zip(self._names.values(), values, strict=True) if value}
            self._shared[values] = found or None
        return self._shared[values]

    def _cell(self, row: TableRow, column: str) -> str | None:
        cell = row.cells.get(column, "").strip()
        if is_empty(cell) or column in row.not_texts:
            return None
        return without_decimals(cell) if self._numbers[column] else cell

    def _constant(self, rows: Sequence[TableRow]) -> dict[str, dict[str, str]]:
        """The columns in which all filled rows of a person say the same: it is true of the person's other rows, too."""
        said: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        if not self._names:
            return {}
        for row in rows:
            for column in self._names:
                cell = self._cell(row, column)
                if cell is not None:
                    said[self._person_of(row)][column].add(cell)
        said.pop(person(""), None)
        return {
            agent: {column: next(iter(cells)) for column, cells in by_column.items() if len(cells) == 1}
            for agent, by_column in said.items()
        }


def _names(columns: Columns) -> dict[str, str]:
    """The columns that tell something about people, with the name that it gets: ``player.age`` is ``age``."""
    given = columns.given.get("meta")
    if given is not None:
        found = [part.strip() for part in given.split(JOIN)]
        personal = [shown(column) for column in found if is_personal(column)]
        if personal:
            raise InputError(
                f"--columns meta: column {listed(personal)} may tell strangers who a person is; it is not kept"
            )
    else:
        found = [column for column in columns.names if column not in columns.used and _is_about(column)]
    names: dict[str, str] = {}
    for column in found:
        name = re.sub(r"\W+", "_", column.rpartition(".")[2].strip().casefold())
        if name not in names.values() and column not in columns.empty:
            names[columns.use(column)] = name
    return names


def _is_about(column: str) -> bool:
    owner, dot, last = column.rpartition(".")
    return plain_column(last if dot and owner.casefold() in OWNERS else column) in ABOUT
