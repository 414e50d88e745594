"""A column that says which rows of a people's table are a machine's: ``kind``, ``truth``, ``groundtruth``.

A machine's answer that becomes a person's spoils every figure in silence, so that a column that speaks of people or
machines must speak of them in every row.
"""

from collections.abc import Mapping, Sequence

from agents.errors import InputError
from serving.exchange.importing.people_table import TableRow
from serving.exchange.importing.source import listed
from serving.exchange.importing.table_cells import is_empty, shortened
from serving.exchange.importing.table_columns import AGENTS, JUDGES, PARTICIPANTS, TRUTHS, plain_column
from serving.exchange.importing.table_reader import TableReader
from serving.files.words import count, shown

HUMAN_WORDS = frozenset({"human", "humans", "person", "people"})
CODES = frozenset(
    {
        *("h", "m", "p", "0", "1", "2", "real", "fake", "true", "false", "yes", "no", "natural", "synthetic"),
        *("generated", "subject", "participant", "chatbot", "gpt"),
    }
)  # what may stand for a person and a machine, and is not known to
MACHINE_WORDS = frozenset({"machine", "machines", "published", "ai", "model", "bot", "llm"})


def machines_of(reader: TableReader, rows: Sequence[TableRow]) -> Mapping[int, str]:
    """The machines that answered, "published:NAME" by ``id(row)``. Rows that are absent there are people's; faults of
    rows go to ``reader``.

    A column of these names that says neither human nor machine in any row is about something else. Raises InputError
    where nothing names the machines.
    """
    columns = reader.columns
    if reader.options.name is not None:
        _refuse_people(reader, rows)
        return {id(row): f"published:{reader.options.name}" for row in rows}
    if reader.table.form is not None and reader.table.form.form.machine:
        return _all_machines(reader, rows)
    given = [columns.given["truth"]] if "truth" in columns.given else []
    for column in given or columns.named(TRUTHS):
        words = {row.cells.get(column, "").strip().casefold() for row in rows}
        if words & (HUMAN_WORDS | MACHINE_WORDS):
            columns.use(column)
            return _named_machines(reader, rows, column)
        if words and words <= CODES and plain_column(column) != "kind":
            raise InputError(
                f"column {shown(column)} says of each row {listed([repr(word) for word in sorted(words)])}: write "
                "human or machine there, or give the column another name if it says something else"
            )
        if given:
            raise InputError(
                f"column {shown(column)} says neither human nor machine: it is {listed([repr(word) for word in words])}"
            )
    _refuse_unread(reader, rows)
    return {}


def _refuse_people(reader: TableReader, rows: Sequence[TableRow]) -> None:
    """Raises InputError where ``--name`` says that a machine gave all answers, and a column says who did."""
    columns = reader.columns
    for column in columns.named((*TRUTHS[:2], *PARTICIPANTS, *JUDGES)):
        if any(not is_empty(row.cells.get(column, "")) for row in rows):
            raise InputError(
                f"says in column {shown(column)} who answered; --name is for a table with the answers of one machine "
                "alone"
            )


def _all_machines(reader: TableReader, rows: Sequence[TableRow]) -> Mapping[int, str]:
    """The machines of a table that holds answers of machines alone, as its form says. Raises InputError where nothing
    names them."""
    column = reader.columns.find("agent", AGENTS)
    if column is None:
        raise InputError("holds a machine's answers and does not say whose; give the machine with --name")
    machines = {}
    for row in rows:
        name = row.cells.get(column, "").strip()
        if is_empty(name):
            reader.fault(row, column, "is empty, so that nobody knows which machine answered; --name gives it")
        machines[id(row)] = f"published:{name}"
    return machines


def _refuse_unread(reader: TableReader, rows: Sequence[TableRow]) -> None:
    """Raises InputError where a column of another name says that rows are a machine's; a remark tells of a column such
    as ``model`` that is filled in some rows alone."""
    columns = reader.columns
    for column in columns.names:
        if column in columns.used:
            continue
        cells = {row.cells.get(column, "") for row in rows}
        words = {word for cell in cells if not is_empty(word := cell.strip().casefold())}
        if words & MACHINE_WORDS and words <= HUMAN_WORDS | MACHINE_WORDS:
            raise InputError(
                f"says in column {shown(column)} that answers are a machine's; read it with --columns "
                f"truth={shown(column)}, or give the column another name if it says something else"
            )
    for column in columns.named(AGENTS):
        filled = [row for row in rows if not is_empty(row.cells.get(column, ""))]
        if 0 < len(filled) < len(rows):
            reader.source.remarks.append(
                f"column {shown(column)} is filled in {len(filled):,} of {count(len(rows), 'row')}, which count as "
                "people's answers; if they are a machine's, add a column truth that says human or machine"
            )


def _named_machines(reader: TableReader, rows: Sequence[TableRow], column: str) -> Mapping[int, str]:
    columns = reader.columns
    name_column = columns.find("agent", AGENTS)
    if name_column is None:
        name_column = columns.find("subject", (*PARTICIPANTS, *JUDGES))
    machines = {}
    for row in rows:
        word = row.cells.get(column, "").strip()
        if word.casefold() in HUMAN_WORDS:
            continue
        if word.casefold() not in MACHINE_WORDS:
            said = "is empty" if not word else f"is {shortened(word)!r}"
            rule = "it must be human or machine, as in other rows; a column that says something else needs another name"
            reader.fault(row, column, f"{said}; {rule}")
            continue
        name = "" if name_column is None else row.cells.get(name_column, "").strip()
        if name_column is None:
            reader.fault(row, column, "is a machine, and no column names it; add a column machine")
        elif is_empty(name):
            reader.fault(row, name_column, "is empty, so that nobody knows which machine answered")
        else:
            machines[id(row)] = f"published:{name}"
    return machines
