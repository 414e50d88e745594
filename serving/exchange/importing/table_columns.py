"""Which column of a people's table says what: who answered, about which stimulus, with what, and how fast.

Programs name the same column in their own ways: ``subject_nr`` (OpenSesame), ``PROLIFIC_PID``, ``participant.code``
(oTree), ``Participant Private ID`` (Gorilla); ``column_names.toml`` has their names. Names are compared without
capitals, spaces, dots and underlines. Where the names leave open who answered, the table is refused: several people who
become one person make every figure wrong, and nothing on the score's page shows it.
"""

import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from agents.errors import InputError
from agents.stimuli import Task
from serving.exchange.importing.form_files import ColumnField
from serving.exchange.importing.source import listed
from serving.exchange.importing.table_cells import is_empty
from serving.files.words import count, shown

RowCells = Mapping[str, str]
_NAMES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("column_names.toml").read_text("utf-8"))
JUDGES: Sequence[str] = _NAMES["judges"]
PARTICIPANTS: Sequence[str] = _NAMES["participants"]
SUBMISSIONS: Sequence[str] = _NAMES["submissions"]
SESSIONS: Sequence[str] = _NAMES["sessions"]
ABOUT: Sequence[str] = _NAMES["about"]
PERSONAL: Sequence[str] = _NAMES["personal"]
STIMULI: Sequence[str] = _NAMES["stimuli"]
TRIALS: Sequence[str] = _NAMES["trials"]
RESPONSES: Mapping[str, Sequence[str]] = _NAMES["responses"]
TIMES: Sequence[str] = _NAMES["times"]
DURATIONS: Sequence[str] = _NAMES["durations"]
ACROSS: Sequence[str] = _NAMES["across"]
DOWN: Sequence[str] = _NAMES["down"]
ORDER: Sequence[str] = _NAMES["order"]
REPETITION: Sequence[str] = _NAMES["repetition"]
TRUTHS: Sequence[str] = _NAMES["truths"]
AGENTS: Sequence[str] = _NAMES["agents"]
PROOFS: Sequence[str] = _NAMES["proofs"]
PROOF_ENDINGS: Sequence[str] = _NAMES["proof_endings"]

COLUMNS_SHOWN = 40  # columns that a message names
FIELDS: Sequence[str] = get_args(ColumnField)
"""What ``--columns`` may give a column."""


@lru_cache(maxsize=4096)  # first cells of rows are looked at, too, whether they repeat the header
def plain_column(name: str) -> str:
    """A column's name in small letters, without what programs put between its words."""
    letters = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in letters if character.isalnum())


@dataclass(slots=True)
class Columns:
    """The columns of a table, and which of them were read."""

    names: Sequence[str]
    """The headers, in the order of the table."""
    given: dict[str, str] = field(default_factory=dict)
    """The columns of ``--columns`` and of forms, by field: ``{"subject": "participant.code"}``."""
    used: dict[str, None] = field(default_factory=dict)
    """The columns that were read, in that order; the others are named in a remark."""
    empty: Collection[str] = frozenset()
    """The columns without a single filled cell."""
    made: Collection[str] = frozenset()
    """The columns that the table has not, and that were made of others; no message names them."""

    def named(self, names: Iterable[str]) -> list[str]:
        """The table's columns of these plain names, in the order of ``names``; empty columns come last."""
        by_plain: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            by_plain[plain_column(name)].append(name)
        found: list[str] = []
        for name in names:
            same = by_plain.get(name, [])
            found += [column for column in same if column == name]  # `response` goes before `Response`
            found += [column for column in same if column != name]
        return sorted(found, key=lambda column: column in self.empty)

    def use(self, column: str) -> str:
        """Note that a column is read."""
        self.used[column] = None
        return column

    def find(self, wanted: str, names: Iterable[str]) -> str | None:
        """The column of a field: that of ``--columns``, else the first of ``names``; None where there is none."""
        column = self.given.get(wanted)
        if column is None:
            column = next(iter(self.named(names)), None)
        return None if column is None else self.use(column)

    def listed(self) -> str:
        """The first 40 columns of the table as text, for a message."""
        names = [shown(name) for name in self.names if name.strip() and name not in self.made]
        return listed(names, COLUMNS_SHOWN)

    def unread(self) -> list[str]:
        """The columns with a name that nobody read."""
        roots = {name.partition(".")[0] for name in self.used if name not in self.names}
        return [name for name in self.names if name.strip() and name not in self.used and name not in roots]


WIDE = (
    "One row must be one answer: if a row holds all answers of a person, --wide 'word_*' says which columns hold "
    "answers"
)


def find_person(columns: Columns, rows: Sequence[RowCells], task: Task) -> tuple[str | None, list[str]]:
    """The column of who answered, or None; and remarks on other columns that name people differently.

    ``rows`` are those with an answer. A column that is empty in all of them is taken only where there is no other.
    Raises InputError where another column parts one person of the chosen column into several. It does so, too, where
    all rows have one name and another column tells several submissions apart. Only the user knows which is right.
    """
    if "subject" in columns.given:
        return columns.use(columns.given["subject"]), []
    groups = (JUDGES, PARTICIPANTS) if task == "judgement" else (PARTICIPANTS, JUDGES)
    empty = [name for names in groups for name in columns.named(names)]
    for names in (*groups, SUBMISSIONS):
        filled = [name for name in columns.named(names) if any(not is_empty(cells.get(name, "")) for cells in rows)]
        if not filled:
            continue
        remarks = []
        if names is not SUBMISSIONS:
            remarks = _compare(filled[0], filled[1:], rows)
            _refuse_one_name_for_all(filled[0], columns, rows)
        return columns.use(filled[0]), remarks
    return (columns.use(empty[0]), []) if empty else (None, [])


def _refuse_one_name_for_all(column: str, columns: Columns, rows: Sequence[RowCells]) -> None:
    """Raises InputError where a column has a single name, such as the experimenter's, and another person's or session's
    column has several: all people would become one."""
    values = {cell for cells in rows if not is_empty(cell := cells.get(column, "").strip())}
    if len(values) != 1:
        return
    for other in columns.named((*PARTICIPANTS, *JUDGES, *SUBMISSIONS, *SESSIONS)):
        several = {cell for cells in rows if not is_empty(cell := cells.get(other, "").strip())}
        if other != column and len(several) > 1:
            raise InputError(
                f"does not say clearly who answered: column {shown(column)} is {shown(min(values))!r} in all rows, and "
                f"column {shown(other)} has {count(len(several), 'value')}; say which is right with "
                f"--columns subject={shown(other)} or subject={shown(column)}"
            )


def may_prove(name: str) -> bool:
    """Whether a column may show that equal rows are one row: it is of time, index or id, or has no name, as row numbers
    of R and pandas have none."""
    plain = plain_column(name)
    return not plain or plain.startswith("unnamed") or plain in PROOFS or plain.endswith(tuple(PROOF_ENDINGS))


def _compare(column: str, others: Sequence[str], rows: Sequence[RowCells]) -> list[str]:
    remarks = []
    for other in others:
        parted = _parted(column, other, rows)
        if parted:
            raise InputError(
                f"does not say clearly who answered: {shown(parted)!r} in column {shown(column)} is several people in "
                f"column {shown(other)}; say which is right with --columns subject={shown(other)} or "
                f"subject={shown(column)}"
            )
        joined = _parted(other, column, rows)
        if joined and len({cells.get(other, "") for cells in rows}) > 1:
            remarks.append(
                f"people are told by column {shown(column)}; column {shown(other)} has one name, such as "
                f"{shown(joined)!r}, for several of them"
            )
    return remarks


def _parted(column: str, other: str, rows: Sequence[RowCells]) -> str | None:
    """The first name of ``column`` beside which ``other`` has two names."""
    beside: dict[str, str] = {}
    for cells in rows:
        name = cells.get(column, "").strip()
        second = cells.get(other, "").strip()
        if not is_empty(name) and not is_empty(second) and beside.setdefault(name, second) != second:
            return name
    return None


def no_person(columns: Columns, task: Task) -> InputError:
    """The refusal of a table in which no column names who answered."""
    who = "judged" if task == "judgement" else "answered"
    message = (
        f"does not say who {who}: it has no column subject, participant, worker_id, PROLIFIC_PID or another known "
        f"name; its columns are {columns.listed()}. Say which with --columns subject=NAME"
    )
    if task != "judgement":
        message += "; if nobody noted it, --unnamed takes each answer as another person's"
    return InputError(message)


def find_response(columns: Columns, task: Task) -> str | None:
    """The column of the answers: ``response``, else a single one that is named after the task."""
    column = columns.find("response", ("response",))
    if column is not None:
        return column
    candidates = columns.named(RESPONSES[task])
    return columns.use(candidates[0]) if len(candidates) == 1 else None


def numbered_siblings(columns: Columns, task: Task, column: str | None) -> list[str]:
    """Filled columns with further answers of a row: ``object2`` and ``object3`` beside ``object`` (``column``), or
    ``word1`` and ``word2`` where ``column`` is None."""
    bases = {plain_column(column)} if column is not None else {"response", *RESPONSES[task]}
    siblings = []
    for name in columns.names:
        plain = plain_column(name)
        if plain.rstrip("0123456789") in bases and plain not in bases and name not in columns.empty:
            siblings.append(name)
    return siblings


def is_personal(column: str) -> bool:
    """Whether a column may tell a person's name or place to strangers: a name, an e-mail address, an IP address."""
    return plain_column(column.rpartition(".")[2]) in PERSONAL or plain_column(column) in PERSONAL


def unread_remarks(columns: Columns) -> list[str]:
    """Sentences that name the columns nobody read, those that are personal apart; none where all were read."""
    remarks = []
    personal = [shown(name) for name in columns.unread() if is_personal(name)]
    if personal:
        what = "column that may tell who a person is, left out"
        named = count(len(personal), what, what.replace("column", "columns"))
        remarks.append(f"{named}: {', '.join(personal)}")
    unread = [shown(name) for name in columns.unread() if not is_personal(name)]
    if unread:
        remarks.append(f"{count(len(unread), 'column')} not read: {', '.join(unread)}")
    return remarks
