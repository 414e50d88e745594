"""Tables with a row for each person and a column for each stimulus, as Qualtrics, SoSci Survey and Google Forms write
them: each answer becomes a row."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from agents.errors import InputError
from serving.exchange.importing.people_table import PeopleTable, TableRow
from serving.exchange.importing.source import Source, listed
from serving.exchange.importing.table_columns import (
    ABOUT,
    JUDGES,
    PARTICIPANTS,
    PROOFS,
    SESSIONS,
    SUBMISSIONS,
    is_personal,
)
from serving.files.words import count, shown

STIMULUS = "(stimulus)"  # the columns that the rows get; no program's column is called so
RESPONSE = "(response)"
TIME = "(time)"
ANY = "*"


def make_long(source: Source, table: PeopleTable, patterns: Sequence[str]) -> None:
    """Give each answer of a table a row of its own. A column that fits one of ``patterns`` holds the answers to one
    stimulus, whose name is what ``*`` stands for, or the column's own where the pattern has none.

    ``rt=time_*`` of ``--columns`` names the columns of the times in the same way. Raises InputError for a pattern that
    fits no column, and for two columns of one stimulus.
    """
    if not patterns:
        of_times = table.columns.given.get("rt", "")
        if ANY in of_times and of_times not in table.columns.names:
            raise InputError(f"--columns rt={shown(of_times)}: there is no such column; * is for tables with --wide")
        return
    source.used.add("wide")
    stimuli: dict[str, str] = {}
    for pattern in patterns:
        found = _fitting(table, pattern)
        if not found:
            raise InputError(f"--wide {shown(pattern)}: no column is so; the columns are {table.columns.listed()}")
        for column, stimulus in found.items():
            before = stimuli.setdefault(stimulus, column)
            if before != column:
                raise InputError(
                    f"--wide: columns {shown(before)} and {shown(column)} both hold answers to {shown(stimulus)}"
                )
    times = _times(table, stimuli)
    moved = {*stimuli.values(), *times.values()}
    others = [name for name in table.columns.names if name not in moved]
    source.remarks.append(
        f"{count(len(stimuli), 'column')} of answers, one for each stimulus: "
        f"{listed([shown(column) for column in stimuli.values()])}"
    )
    table.rows = list(chain.from_iterable(_answers_of(row, others, stimuli, times) for row in table.rows))
    table.columns.names = [*others, STIMULUS, RESPONSE, *([TIME] if times else [])]
    table.columns.made = frozenset({STIMULUS, RESPONSE, TIME})
    table.columns.given |= {"stimulus": STIMULUS, "response": RESPONSE}
    if times:
        table.columns.given["rt"] = TIME


def _answers_of(
    row: TableRow, others: Sequence[str], stimuli: Mapping[str, str], times: Mapping[str, str]
) -> list[TableRow]:
    kept = {name: row.cells[name] for name in others if name in row.cells}
    rows = []
    for stimulus, column in stimuli.items():
        cells = {**kept, STIMULUS: stimulus, RESPONSE: row.cells.get(column, "")}
        if stimulus in times:
            cells[TIME] = row.cells.get(times[stimulus], "")
        not_texts = (row.not_texts & kept.keys()) | ({RESPONSE} if column in row.not_texts else set())
        rows.append(TableRow(row.line, row.prefix, cells, frozenset(not_texts)))
    return rows


def _fitting(table: PeopleTable, pattern: str) -> dict[str, str]:
    """The columns that a pattern fits, with what ``*`` stands for in each. Columns of who answered and of when are not
    among them, unless the pattern is their name."""
    if pattern.count(ANY) > 1:
        raise InputError(f"--wide {shown(pattern)}: one * at most says what is a stimulus's name")
    rule = re.compile(re.escape(pattern).replace(re.escape(ANY), r"(.*\S.*)"))
    known = {*table.columns.given.values(), *table.columns.named((*JUDGES, *PARTICIPANTS, *SUBMISSIONS, *SESSIONS))}
    known |= {*table.columns.named((*ABOUT, *PROOFS)), *filter(is_personal, table.columns.names)}
    found = {}
    for name in table.columns.names:
        match = rule.fullmatch(name)
        if match is not None and (name == pattern or name not in known):
            found[name] = match[1].strip() if ANY in pattern else name
    return found


def _times(table: PeopleTable, stimuli: Mapping[str, str]) -> dict[str, str]:
    """The column of the time of each stimulus, by ``rt=time_*`` of ``--columns``."""
    pattern = table.columns.given.get("rt", "")
    if ANY not in pattern:
        return {}
    columns = {stimulus: pattern.replace(ANY, stimulus) for stimulus in stimuli}
    found = {stimulus: column for stimulus, column in columns.items() if column in table.columns.names}
    if not found:
        raise InputError(f"--columns rt={shown(pattern)}: no stimulus has such a column of times")
    return found
