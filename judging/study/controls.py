"""Control questions: what a judge who looked at a trial can answer.

``topic`` asks which of five topics a conversation has, as the papers did. Otherwise a table of the lab's own (columns
``stimulus``, ``question``, ``options`` parted by ``|``, ``right``), such as what is to be seen in a clip, or whether an
object is in the picture.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem

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
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise InputError(f"{path}: must have the columns {', '.join(COLUMNS)}")
            rows = list(enumerate(reader, start=2))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    found, problems = {}, []
    for line, row in rows:
        options = [one.strip() for one in (row["options"] or "").split("|") if one.strip()]
        right = (row["right"] or "").strip()
        if len(options) < 2 or len(set(options)) < len(options):
            problems.append(Problem(str(path), line, "options", "must be two or more, each once, parted by |"))
        elif right not in options:
            problems.append(Problem(str(path), line, "right", f"{right!r} is not among the options"))
        elif not (row["question"] or "").strip():
            problems.append(Problem(str(path), line, "question", "is empty"))
        else:
            found[row["stimulus"].strip()] = Control(row["question"].strip(), options, right)
    if problems:
        raise InputError(f"{path} cannot be used", problems)
    return found
