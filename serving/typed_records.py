"""Records as Python objects: typed answers, tables, and a picture in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import PrivateAttr, model_validator

from agents.answers import BY_TASK
from agents.contract import is_installed
from agents.errors import UnavailableError
from agents.stimuli import Stimulus, as_dict, parse_row
from serving import notebook
from serving.runs.reader import RunFolder
from serving.runs.records import Record
from serving.runs.stimulus_lookup import StimulusLookup

if TYPE_CHECKING:
    import pandas
    import pyarrow

IN_A_NOTEBOOK = 24  # records that a list of them shows
WIDE = 160  # characters of an answer that a line of text shows


class TypedRecord(Record):
    """A ``serving.runs.records.Record`` whose ``answer`` is one of ``agents.answers.BY_TASK``, or None.

    ``model_dump(mode="json", by_alias=True)`` is the record as it is written.
    """

    answer: Any
    _shown: Callable[[], Stimulus | None] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _typed(self) -> TypedRecord:
        if isinstance(self.answer, dict):
            self.answer = BY_TASK[self.task].model_validate(self.answer)
        return self

    def shown(self) -> Stimulus | None:
        """The stimulus that is answered, where it is known."""
        return None if self._shown is None else self._shown()

    def __repr__(self) -> str:
        """One line of at most 200 characters or so."""
        said = self.status if self.answer is None else repr(self.answer)
        return f"<{self.agent} of {self.stimulus!r}: {said if len(said) <= WIDE else said[:WIDE] + '…'}>"

    def _repr_html_(self) -> str:
        return notebook.records_html([self])


def typed(record: bytes | dict[str, Any], shown: Callable[[], Stimulus | None] | None = None) -> TypedRecord:
    """A record from its JSON; ``shown`` gives its stimulus. Raises ``pydantic.ValidationError``."""
    load = TypedRecord.model_validate_json if isinstance(record, bytes) else TypedRecord.model_validate
    found = load(record)  # type: ignore[arg-type]
    found._shown = shown
    return found


class Records(list[TypedRecord]):
    """Records, in the order in which they were asked for."""

    def to_arrow(self) -> pyarrow.Table:
        """One row per record, nested values with their types; no column is empty. Raises UnavailableError without
        pyarrow."""
        from serving.export.parquet import arrow_table
        from serving.export.tables import columns_of

        pairs = [(record.model_dump(mode="json", by_alias=True), _row(record.shown())) for record in self]
        columns = columns_of({record.task for record in self}, (row for _, row in pairs))
        return arrow_table(columns, lambda: iter(pairs))

    def to_pandas(self) -> pandas.DataFrame:
        """As ``to_arrow``, with pandas."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return notebook.records_html(self[:IN_A_NOTEBOOK], len(self))


def _as_pandas(table: pyarrow.Table) -> pandas.DataFrame:
    if not is_installed("pandas"):
        raise UnavailableError("the package pandas is not installed: pip install pandas")
    return table.to_pandas()


def _row(stimulus: Stimulus | None) -> dict[str, Any]:
    return {} if stimulus is None else as_dict(stimulus)


class OpenRun:
    """The records of a run, read as they are wanted: the last one of each key, agent by agent, imports at the end.

    ``of`` narrows it down. ``len`` counts them, which reads them once.
    """

    def __init__(self, folder: RunFolder, chosen: dict[str, str] | None = None) -> None:
        self.folder = folder
        self._chosen = chosen or {}

    def of(self, *, agent: str | None = None, task: str | None = None, status: str | None = None) -> OpenRun:
        """Only the records of this agent, task, status."""
        given = {"agent": agent, "task": task, "status": status}
        return OpenRun(self.folder, self._chosen | {name: one for name, one in given.items() if one is not None})

    def _rows(self) -> Iterator[dict[str, Any]]:
        for name in [*self.folder.agents(), *self.folder.imports()]:
            yield from (record for record in self.folder.latest(name) if self._is_chosen(record))

    def __iter__(self) -> Iterator[TypedRecord]:
        """Raises InputError where a file is damaged."""
        for record in self._rows():
            yield typed(record, partial(self._shown, record))

    def __len__(self) -> int:
        return sum(1 for _ in self._rows())

    def to_arrow(self) -> pyarrow.Table:
        """One row per record, nested values with their types; no column is empty. Raises UnavailableError without
        pyarrow, and InputError for a record that no table can hold."""
        from serving.export.parquet import arrow_table
        from serving.export.selection import Selection
        from serving.export.tables import export_columns, selected

        def pairs() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
            return (pair for pair in selected(Selection(self.folder, None, True, True)) if self._is_chosen(pair[0]))

        return arrow_table(export_columns(Selection(self.folder, None, True, True)), pairs)

    def to_pandas(self) -> pandas.DataFrame:
        """As ``to_arrow``, with pandas."""
        return self.to_arrow().to_pandas()

    def _is_chosen(self, record: dict[str, Any]) -> bool:
        return all(record[key] == value for key, value in self._chosen.items())

    def _shown(self, record: dict[str, Any]) -> Stimulus | None:
        with StimulusLookup(self.folder) as stimuli:
            return self._parsed(stimuli.get(record))

    def _parsed(self, row: dict[str, Any] | None) -> Stimulus | None:
        return None if row is None else parse_row(orjson.dumps(row), root=self.folder.root)

    def _repr_html_(self) -> str:
        with StimulusLookup(self.folder) as stimuli:  # one look through the set, and not one for each record
            first = [
                typed(record, partial(self._parsed, stimuli.get(record)))
                for record in islice(self._rows(), IN_A_NOTEBOOK)
            ]
        return notebook.records_html(first, len(self))


def open_run(path: Path | str) -> OpenRun:
    """The run in the folder ``path``. Raises InputError if it is none, or is damaged."""
    return OpenRun(RunFolder(path))
