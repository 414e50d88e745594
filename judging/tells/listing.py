"""The transformations as a table: ``turinglike tells``, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agents.stimuli import SHORT, Asked
from judging.tells.registry import TRANSFORMATIONS
from serving.files.terminal import plain_table, print_table

SHORT_NAMES = {task: short for short, task in SHORT.items()}


class ListedTell(NamedTuple):
    """A row of the table."""

    name: str
    """By which ``--without`` and ``--plant`` know it."""
    tasks: str
    """The tasks whose answers have it, in their short names."""
    takes: str
    """What is taken away."""
    keeps: str
    """What may not change."""
    planted: str
    """What planting gives machines' answers, and for which tasks; "no" where it cannot be planted."""


def listed_tells() -> list[ListedTell]:
    """A row for each transformation, in the order in which they are applied."""
    rows = []
    for name, transformation in TRANSFORMATIONS.items():
        planted = transformation.plants or "no"
        if transformation.plant_tasks and transformation.plant_tasks != transformation.tasks:
            planted += f" ({_short(transformation.plant_tasks)})"
        tasks = _short(transformation.tasks)
        rows.append(ListedTell(name, tasks, transformation.takes, transformation.keeps, planted))
    return rows


def print_tells() -> None:
    """Print the table."""
    table = plain_table("name", "tasks", "takes away", "may not change", "planted")
    table.columns[0].no_wrap = True
    for row in listed_tells():
        table.add_row(*row)
    print_table(table)


def _short(tasks: Sequence[Asked]) -> str:
    return ", ".join(SHORT_NAMES[task] for task in tasks)
