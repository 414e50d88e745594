"""Control questions: what a judge who looked at a trial can answer.

``topic`` asks which of five topics a conversation has, as the papers did. Otherwise a table of the lab's own (columns
``stimulus``, ``question``, ``options`` parted by ``|``, ``right``), such as what is to be seen in a clip, or whether an
object is in the picture.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem
from serving.runs.csv_tables import by_line, load_table

TOPIC = "topic"
COLUMNS = ("stimulus", "question", "options", "right")
SHOWN = 5  # topics, of which one is right
TOPICS = (
    "movies", "music", "food", "sports", "science", "technology", "general_entertainment", "traffic", "quarrel",
    "emotions", "fashion", "books", "politics",
)  # fmt: skip
"""Those of the papers' conversations."""


@dataclass(frozen=True, slots=True)
class Control:
    """``question`` is empty where the pages' own phrase for topics asks."""

    question: str
    options: Sequence[str]
    right: str


def read_controls(given: str, study: Path, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Control]:
    """The control question of each stimulus of the key's ``rows``. Raises InputError where one has none."""
    stimuli = {str(row["stimulus"]): row for row in rows.values()}
    if not given:
        return {}
    found = _of_topics(stimuli) if given == TOPIC else _of_table((study / given).resolve())
    lacking = sorted(stimuli.keys() - found.keys())
    if lacking:
        names = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        raise InputError(f"trials.control: {given}: {len(lacking):,} stimuli have no control question ({names})")
    return found


def _of_topics(stimuli: Mapping[str, Mapping[str, Any]]) -> dict[str, Control]:
    topics = {name: row.get("meta.topic") for name, row in stimuli.items()}
    every = sorted({*(str(topic) for topic in topics.values() if topic), *TOPICS})
    found = {}
    for name, topic in topics.items():
        if topic:
            chance = random.Random(f"topic {name}")
            options = [*chance.sample([one for one in every if one != topic], SHOWN - 1), str(topic)]
            found[name] = Control("", sorted(options), str(topic))
    return found


def _of_table(path: Path) -> dict[str, Control]:
    table = load_table(path)
    if not set(COLUMNS) <= set(table.names):
        raise InputError(f"{path}: must have the columns {', '.join(COLUMNS)}")
    found: dict[str, Control] = {}
    problems = table.problems
    for line, cells in table.rows:
        stimulus, question, right = (cells[name].strip() for name in ("stimulus", "question", "right"))
        options = [one.strip() for one in cells["options"].split("|") if one.strip()]
        if len(options) < 2 or len(set(options)) < len(options):
            problems.append(Problem(str(path), line, "options", "must be two or more, each once, parted by |"))
        elif right not in options:
            problems.append(Problem(str(path), line, "right", f"{right!r} is not among the options"))
        elif not question:
            problems.append(Problem(str(path), line, "question", "is empty"))
        elif stimulus in found:
            problems.append(Problem(str(path), line, "stimulus", f"{stimulus!r} stands in two rows"))
        else:
            found[stimulus] = Control(question, options, right)
    if problems:
        raise InputError(f"{path} cannot be used", by_line(problems))
    return found
