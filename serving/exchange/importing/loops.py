"""The loops of an experiment, such as PsychoPy's: which rows are practice, and which loops stand in one table.

Practice is known by the loop's name alone. Where a name says nothing, all rows are read, and a remark names the loops:
only the user knows which of them is the test.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import combinations

from serving.exchange.importing.form_files import Form
from serving.exchange.importing.people_table import PeopleTable
from serving.exchange.importing.source import Source, listed
from serving.exchange.importing.table_cells import is_empty
from serving.files.words import shown

Loops = Mapping[str, set[int]]
"""The places of a loop's rows in a table, by the loop's name; none is empty."""


def leave_practice_out(source: Source, table: PeopleTable, form: Form) -> None:
    """Leave the rows of loops out that are called practice, unless nothing would stay; remarks name the loops."""
    if form.loops is None:
        return
    ending = form.loops.number.removeprefix("*")
    loops = _loops(table, ending)
    practice = {name: places for name, places in loops.items() if _is_named(name, form.loops.practice)}
    left_out = set[int]().union(*practice.values())
    names = listed([shown(name) for name in practice])
    if practice and len(left_out) == len(table.rows):
        source.remarks.append(f"all rows are of the loop {names}, so that none is left out as practice")
    elif practice:
        source.noticed["rows_that_rules_for_the_program_leave_out"] += len(left_out)
        number = f"{len(left_out):,}"
        source.remarks.append(
            f"rows of the loop {names} are left out as practice ({number}); --rows chooses other rows"
        )
        table.rows = [row for place, row in enumerate(table.rows) if place not in left_out]
    _tell_several(source, _loops(table, ending), ending)


def _tell_several(source: Source, loops: Loops, ending: str) -> None:
    """Name the loops with rows of their own. A loop inside of another has rows of both."""
    apart = set()
    for one, other in combinations(loops, 2):
        if loops[one].isdisjoint(loops[other]):
            apart |= {one, other}
    if not apart:
        return
    named = [f"{shown(name)} ({len(loops[name]):,})" for name in loops if name in apart]
    largest = max((name for name in reversed([*loops]) if name in apart), key=lambda name: len(loops[name]))
    source.remarks.append(
        f"rows of several loops are read: {listed(named)}. If the others are practice, --rows "
        f"'{shown(largest + ending)}!=' reads the loop {shown(largest)} alone"
    )


def _loops(table: PeopleTable, ending: str) -> dict[str, set[int]]:
    loops = {}
    for column in table.columns.names:
        name = column.removesuffix(ending)
        if name and name != column:
            loops[name] = {place for place, row in enumerate(table.rows) if not is_empty(row.cells.get(column, ""))}
    return {name: places for name, places in loops.items() if places}


def _is_named(name: str, words: Sequence[str]) -> bool:
    """Whether one of ``words`` stands in a name, whatever its capitals and accents."""
    letters = _without_accents(name)
    return any(_without_accents(word) in letters for word in words)


def _without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))
