"""All transformations by their names, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.contract import is_installed
from agents.errors import InputError, UnavailableError
from agents.stimuli import SHORT, TASKS, Asked
from judging.tells.delay import Delay
from judging.tells.hedging import Hedging
from judging.tells.label_order import LabelOrder
from judging.tells.length import Length
from judging.tells.letters import Case, Inflection, Punctuation
from judging.tells.scanpaths import FirstFixation, PathLength
from judging.tells.transformation import Transformation

TRANSFORMATIONS: Mapping[str, Transformation] = {
    transformation.name: transformation
    for transformation in (
        Hedging(),
        Inflection(),
        Punctuation(),
        Case(),
        LabelOrder(),
        FirstFixation(),
        Delay(),
        Length(),
        PathLength(),
    )
}
"""In the order of application. Hedges are found by their commas and capitals, and so they go first. Lengths are matched
after all that changes them, and path lengths after the first fixation is set and the last ones are cut."""
AND = "+"
"""Between the names of transformations in a version's name."""
PLANT = "plant:"
"""Before the name of what was planted."""


def check_names(
    without: Sequence[str], plant: Sequence[str], tasks: Sequence[Asked], *, shows_delays: bool = False
) -> None:
    """Raises InputError with all that is wrong with the names for trials of these tasks, which show delays or do not,
    and UnavailableError where a package is missing."""
    problems = []
    for option, names in (("without", without), ("plant", plant)):
        problems += [f"{option}: {name} stands there twice" for name in dict.fromkeys(names) if names.count(name) > 1]
        for name in dict.fromkeys(names):
            transformation = TRANSFORMATIONS.get(name)
            if transformation is None:
                problems.append(f"{option}: there is no {name!r}, but {', '.join(TRANSFORMATIONS)}")
            elif option == "plant" and transformation.why_no_plant:
                problems.append(f"plant: {name} cannot be planted: {transformation.why_no_plant}")
            elif set(tasks).isdisjoint(of_tasks := tasks_of(name, is_planted=option == "plant")):
                problems.append(
                    f"{option}: {name} is of other tasks: {', '.join(SHORT_NAMES[one] for one in of_tasks)}"
                )
            elif transformation.needs_delays and not shows_delays:
                problems.append(f"{option}: {name} needs trials that show delays: add --show-delays (show_delays=True)")
    if problems:
        raise InputError("; ".join(problems))
    for name in (*without, *plant):
        package = TRANSFORMATIONS[name].package
        if package is not None and not is_installed(package):
            raise UnavailableError(f"{name} needs the package {package}: pip install 'turinglike[judging]'")


def tasks_of(name: str, *, is_planted: bool = False) -> tuple[Asked, ...]:
    """The tasks for which a transformation takes its property away, or plants it."""
    transformation = TRANSFORMATIONS[name]
    return transformation.plant_tasks if is_planted else transformation.tasks


def in_order(names: Sequence[str], task: Asked, *, is_planted: bool = False) -> list[str]:
    """Those of the names that there are for a task, in the order of application."""
    return [name for name in TRANSFORMATIONS if name in names and task in tasks_of(name, is_planted=is_planted)]


def version_sets(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Which transformations each version applies: none, each alone, all, and all but each."""
    sets: list[tuple[str, ...]] = [(), *((name,) for name in names)]
    if len(names) > 1:
        sets.append(tuple(names))
    if len(names) > 2:
        sets += [tuple(name for name in names if name != other) for other in names]
    return sets


SHORT_NAMES: Mapping[Asked, str] = {task: short for short, task in SHORT.items() if task in TASKS}
