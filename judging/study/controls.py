"""Control questions: what a judge who looked at a trial can answer.

``topic`` asks which of five topics a conversation has, as the papers did. ``object`` asks of a picture whether an
object is there, which is so of half of the pictures, and of a clip which of three objects is in it, as the papers did:
from what the stimuli say is ``present`` and ``absent``. Otherwise a table of the lab's own (columns ``stimulus``,
``question``, ``options`` parted by ``|``, ``right``).

A question is the same for all answers to a stimulus: it tells nothing of whose an answer is.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem
from agents.stimuli import Asked
from serving.runs.csv_tables import by_line, load_table

TOPIC, OBJECT = "topic", "object"
OBJECT_TASKS: tuple[Asked, ...] = ("color_estimation", "object_detection", "attention_prediction", "image_captioning")
COLUMNS = ("stimulus", "question", "options", "right")
SHOWN = 5  # topics, of which one is right
SHOWN_OBJECTS = 3  # of a clip, of which one is right
TOPICS = (
    "movies", "music", "food", "sports", "science", "technology", "general_entertainment", "traffic", "quarrel",
    "emotions", "fashion", "books", "politics",
)  # fmt: skip
"""Those of the papers' conversations."""


@dataclass(frozen=True, slots=True)
class Control:
    """``question`` is empty where the pages' own ``phrase`` asks, of an ``object`` or of none; ``options`` that are
    ``phrases`` have words of the pages', too."""

    question: str
    options: Sequence[str]
    right: str
    phrase: str = ""
    object: str = ""

    @property
    def shown(self) -> dict[str, Any]:
        """What a browser is sent: all but what is right."""
        return {
            "question": self.question,
            "options": list(self.options),
            "phrase": self.phrase,
            "object": self.object,
        }


def read_controls(given: str, study: Path, rows: Mapping[str, Mapping[str, Any]], seed: str) -> dict[str, Control]:
    """The control question of each stimulus of the key's ``rows``, drawn by ``seed``. Raises InputError where one has
    none."""
    stimuli = {str(row["stimulus"]): row for row in rows.values()}
    if not given:
        return {}
    if given == OBJECT:
        return _of_objects(stimuli, random.Random(f"object {seed}"))
    found = _of_topics(stimuli) if given == TOPIC else _of_table((study / given).resolve())
    lacking = sorted(stimuli.keys() - found.keys())
    if lacking:
        raise InputError(f"trials.control: {given}: {_named(lacking, stimuli)} have no control question")
    return found


def _named(lacking: Sequence[str], stimuli: Mapping[str, Any]) -> str:
    names = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
    return f"{len(lacking):,} of {len(stimuli):,} stimuli ({names})"


def _of_objects(stimuli: Mapping[str, Mapping[str, Any]], chance: random.Random) -> dict[str, Control]:
    present = {name: _words(row["objects"].get("present")) for name, row in stimuli.items()}
    absent = {name: [one for one in _words(row["objects"].get("absent")) if one not in present[name]]
              for name, row in stimuli.items()}  # fmt: skip
    of_clips = {name for name, row in stimuli.items() if row["asked"] == "attention_prediction"}
    every = {word for words in present.values() for word in words}
    for name in of_clips:
        if len(absent[name]) < SHOWN_OBJECTS - 1:
            absent[name] = sorted(every - set(present[name]))
    fewest = {name: SHOWN_OBJECTS - 1 if name in of_clips else 1 for name in stimuli}
    wrong = {
        "present": sorted(name for name in stimuli if not present[name]),
        "absent": sorted(name for name in stimuli if len(absent[name]) < fewest[name]),
    }
    told = [f"{_named(lacking, stimuli)} lack `{field}`" for field, lacking in wrong.items() if lacking]
    if told:
        raise InputError(
            f"trials.control: {OBJECT}: {' and '.join(told)}: give them in the stimulus set before `turinglike "
            'generate` and `trials`, or name a table of your own, or set it to "" (and exclude.controls to 0)'
        )
    order = sorted(stimuli)
    chance.shuffle(order)
    found = {}
    for at, name in enumerate(order):
        there, not_there = (chance.choice(some[name]) for some in (present, absent))
        if name in of_clips:
            options = [there, *chance.sample(absent[name], SHOWN_OBJECTS - 1)]
            found[name] = Control("", sorted(options), there, phrase="clip_shows")
        else:
            is_true = at % 2 == 0
            found[name] = Control(
                "", ("yes", "no"), "yes" if is_true else "no", phrase="is_there", object=there if is_true else not_there
            )
    return found


def _words(given: Sequence[str] | None) -> list[str]:
    return sorted({one.strip().casefold() for one in given or () if one.strip()})


def _of_topics(stimuli: Mapping[str, Mapping[str, Any]]) -> dict[str, Control]:
    topics = {name: row.get("meta.topic") for name, row in stimuli.items()}
    every = sorted({*(str(topic) for topic in topics.values() if topic), *TOPICS})
    found = {}
    for name, topic in topics.items():
        if topic:
            chance = random.Random(f"topic {name}")
            options = [*chance.sample([one for one in every if one != topic], SHOWN - 1), str(topic)]
            found[name] = Control("", sorted(options), str(topic), phrase="topic")
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
