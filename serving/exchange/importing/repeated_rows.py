"""Rows that stand twice, and several answers of one person to one stimulus.

Files are saved twice, put together twice, or hold practice beside the test. What can be proven is mended and told; the
rest is told alone, because only the user knows.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from serving.exchange.importing.people_table import PeopleTable, TableRow
from serving.exchange.importing.source import Source, listed, person
from serving.exchange.importing.table_cells import EMPTY_WORDS
from serving.exchange.importing.table_columns import may_prove
from serving.files.words import count, shown

VALUES_SHOWN = 5  # of a column with more values, in which answers differ, a remark names none
COLUMNS_SHOWN = 12  # columns that a remark names


def drop_equal_rows(
    source: Source, table: PeopleTable, person: str | None, *, drop: bool, are_fixations: bool = False
) -> None:
    """Take rows out that are equal in all cells, if they are proven to be one answer or ``drop`` says so; otherwise
    they stay, and a remark tells it.

    A column proves it by two things. Its name says time, index or id; and no two *different* rows of one person have
    the same value there. Then the value is a row's own, and equal rows are the same row, saved twice. Several such
    columns count together. A day or a person's number repeats from row to row, and proves nothing. ``person`` is the
    column of who answered. With ``are_fixations`` each row is a fixation: somebody may look at one place twice, so that
    equal rows without a proof are not even told.
    """
    hashes = [hash(_cells(row, table)) for row in table.rows]
    if len(set(hashes)) == len(hashes):
        return  # of a large table the hashes alone are held
    first: dict[tuple[str, ...], TableRow] = {}
    again: list[TableRow] = []
    for row in table.rows:
        if first.setdefault(_cells(row, table), row) is not row:
            again.append(row)
    if not again:
        return
    proofs = [name for name in table.columns.names if may_prove(name)]
    proven = bool(proofs) and _tells_rows_apart(list(first.values()), proofs, person)
    places = listed([row.place for row in again])
    if proven or drop:
        kept = {id(row) for row in first.values()}
        table.rows = [row for row in table.rows if id(row) in kept]
        source.noticed["equal_rows_counted_once"] += len(again)
        for name in proofs:
            table.columns.use(name)
        if proven:
            source.remarks.append(
                f"rows that repeat an earlier row, also in {listed(proofs)}: {len(again):,} (at {places}). Equal rows "
                "count once"
            )
    elif not are_fixations:
        source.noticed["equal_rows"] += len(again)
        source.remarks.append(
            f"rows that repeat an earlier row in all cells: {len(again):,} (at {places}). Each counts as one more "
            "answer. If a program saved rows twice, --drop-equal counts equal rows once"
        )


def _cells(row: TableRow, table: PeopleTable) -> tuple[str, ...]:
    names = table.columns.names
    if row.line is not None and len(row.cells) == len(names):  # of a CSV, whose cells have the order of its columns
        return tuple(row.cells.values())
    return tuple(row.cells.get(name, "") for name in names)


def _tells_rows_apart(rows: Sequence[TableRow], proofs: Sequence[str], person: str | None) -> bool:
    seen = set()
    for row in rows:
        values = tuple(row.cells.get(name, "").strip() for name in proofs)
        if not any(value and value not in EMPTY_WORDS for value in values):
            return False
        key = (row.cells.get(person, "") if person is not None else "", *values)
        if key in seen:
            return False
        seen.add(key)
    return True


# several answers of one person


def tell_several_answers(
    source: Source, table: PeopleTable, rows: Sequence[TableRow], what: str, *, counts_once: bool
) -> None:
    """Tell where one person has several answers to one stimulus, and in which columns these differ.

    ``rows`` are those of the source's answers, in their order; ``what`` is "answer" or "verdict"; ``counts_once``: only
    the first counts in scores. Machines, and people without a name, may have several.
    """
    seen: dict[str, set[str]] = defaultdict(set)
    again: set[tuple[str, str]] = set()  # of a large table few keys are held
    for answer in source.answers:
        stimuli = seen[answer.agent]
        if answer.stimulus in stimuli:
            again.add((answer.agent, answer.stimulus))
        stimuli.add(answer.stimulus)
    del seen
    if not again:
        return
    groups: dict[tuple[str, str], list[TableRow]] = defaultdict(list)
    for answer, row in zip(source.answers, rows, strict=True):
        key = (answer.agent, answer.stimulus)
        if key in again and answer.kind == "human" and answer.agent != person(""):
            groups[key].append(row)
    several = list(groups.values())
    if not several:
        return
    values: dict[str, dict[str, None]] = {}
    for group in several:
        for name in table.columns.names:
            cells = dict.fromkeys(row.cells.get(name, "").strip() for row in group)
            if len(cells) > 1:
                values.setdefault(name, {}).update(cells)
    further = sum(map(len, several)) - len(several)
    source.noticed[f"further_{what}s_of_one_person_to_one_stimulus"] += further
    if not values:
        return  # the rows are equal in all cells, which is told already
    cases = count(len(several), "case")
    text = f"In {cases} a person gave several {what}s to one stimulus ({count(further, f'additional {what}')})"

    def rank(name: str) -> tuple[bool, bool, int]:
        """Columns that part the experiment (phase, page) first, then what was answered, then times and numbers."""
        return len(values[name]) > VALUES_SHOWN, may_prove(name) or name in table.columns.used, len(values[name])

    ordered = sorted(values, key=rank)
    texts = [_differing(name, list(values[name])) for name in ordered[:COLUMNS_SHOWN]]
    text += f". These {what}s differ in {', '.join(texts)}"
    if counts_once:
        text += f". Only the first {what} counts in scores"
    parting = [name for name in ordered if _may_part(name, values[name], table)]
    if parting:
        value = next(value for value in reversed(values[parting[0]]) if value)
        text += f". To import only some rows: --rows {shown(parting[0])}={shown(value)}"
    source.remarks.append(text)


def _may_part(name: str, values: Collection[str], table: PeopleTable) -> bool:
    """Whether a column may part the experiment, into phases or pages: what somebody answered, and when, does not."""
    return any(values) and len(values) <= VALUES_SHOWN and not may_prove(name) and name not in table.columns.used


def _differing(name: str, values: Sequence[str]) -> str:
    if len(values) > VALUES_SHOWN:
        return shown(name)
    return f"{shown(name)} ({', '.join(shown(value) or 'empty' for value in values)})"


def tell_rows(source: Source, rows: Sequence[TableRow], reason: str, sentence: str) -> None:
    """Count ``rows`` in ``source.noticed[reason]``, and add a remark: in ``sentence`` stand ``{rows}`` ("3 rows") and
    ``{places}`` ("4, 9, 12"). Nothing happens where there are none."""
    if rows:
        source.noticed[reason] += len(rows)
        places = listed([row.place for row in rows])
        # Not by `format`: a column's name in the sentence may have braces of its own.
        source.remarks.append(sentence.replace("{rows}", count(len(rows), "row")).replace("{places}", places))
