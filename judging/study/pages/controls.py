"""Control questions: ``topic`` of a conversation, ``object`` in a picture or clip (stimuli's ``present``, ``absent``),
or a table with ``stimulus``, ``question``, ``options`` parted by ``|``, and ``right``."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import InputError, Problem
from judging.study.design.tables import OBJECT, TOPIC
from serving.files.csv_tables import by_line, load_table

COLUMNS = ("stimulus", "question", "options", "right")
TOPIC_OPTIONS = 5
"""Topics among which judges choose, with a single right one."""
CLIP_OPTIONS = 3
"""Objects among which judges of a clip choose, with a single right one."""
TOPICS = (
    "movies",
    "music",
    "food",
    "sports",
    "science",
    "technology",
    "general_entertainment",
    "traffic",
    "quarrel",
    "emotions",
    "fashion",
    "books",
    "politics",
)
"""The topics of the papers' conversations."""
Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Control:
    """A question beside a trial that shows whether somebody has looked at it."""

    question: str
    """The study's own question; "" where ``phrase`` asks."""
    options: Sequence[str]
    """What judges choose among; ``correct`` is one of them."""
    correct: str
    """The option that is right."""
    phrase: str = ""
    """The name of the phrase that asks."""
    object: str = ""
    """The object that the phrase asks about."""

    @property
    def sent(self) -> dict[str, Any]:
        """What the page gets, without the right option."""
        return {
            "question": self.question,
            "phrase": self.phrase,
            "object": self.object,
            "options": list(self.options),
        }


def read_controls(name: str, study: Path, rows: Rows, seed: str) -> dict[str, Control]:
    """The control question of each stimulus, by its id.

    ``name`` is ``trials.control``: "" for none, "topic", "object", or the path of a table in the folder ``study``.
    ``rows`` is the key of the trials, by their id. ``seed`` draws options. Raises InputError where any is lacking.
    """
    stimuli = {str(row["stimulus"]): row for row in rows.values()}
    if not name:
        return {}
    if name == OBJECT:
        return _of_objects(stimuli, random.Random(f"object {seed}"))
    controls = _of_topics(stimuli) if name == TOPIC else _of_table((study / name).resolve())
    if lacking := stimuli.keys() - controls.keys():
        raise InputError(f"trials.control: {name}: {_named(lacking, stimuli)} have no control question")
    return controls


def _named(lacking: Collection[str], stimuli: Mapping[str, Any]) -> str:
    names = ", ".join(sorted(lacking)[:3])
    if len(lacking) > 3:
        names += ", …"
    return f"{len(lacking):,} of {len(stimuli):,} stimuli ({names})"


def uncertain_options(name: str, rows: Rows) -> str | None:
    """A warning on clips of which nothing says what is absent, or None.

    The wrong options are then the targets of other searches, which may be in the picture, too: a judge who looks well
    may be counted as wrong.
    """
    stimuli = {str(row["stimulus"]): row for row in rows.values()}
    of_others = [
        stimulus
        for stimulus, row in stimuli.items()
        if row["asked"] == "attention_prediction" and len(_absent(row)) < CLIP_OPTIONS - 1
    ]
    if name != OBJECT or not of_others:
        return None
    return (
        f"trials.control: {OBJECT}: nothing says what is absent of {_named(of_others, stimuli)}. The wrong options are "
        "other stimuli's objects, which may be in the picture, too. Give `absent` in the stimulus set, or name a table "
        "of your own"
    )


def _absent(row: Mapping[str, Any]) -> list[str]:
    present = _words(row["objects"].get("present"))
    return [word for word in _words(row["objects"].get("absent")) if word not in present]


def _of_objects(stimuli: Rows, chance: random.Random) -> dict[str, Control]:
    present = {name: _words(row["objects"].get("present")) for name, row in stimuli.items()}
    every = sorted({word for words in present.values() for word in words})
    order = sorted(stimuli)
    chance.shuffle(order)
    controls = dict[str, Control]()
    lacking = dict[str, list[str]]()
    for number, name in enumerate(order):
        is_clip = stimuli[name]["asked"] == "attention_prediction"
        needed = CLIP_OPTIONS - 1 if is_clip else 1  # objects that are not there
        absent = _absent(stimuli[name])
        if is_clip and len(absent) < needed:  # see uncertain_options
            absent = [word for word in every if word not in present[name]]
        lacks = [] if present[name] else ["present"]
        if len(absent) < needed:
            lacks.append("absent")
        for field in lacks:
            lacking.setdefault(field, []).append(name)
        if lacks:
            continue
        there = chance.choice(present[name])
        not_there = chance.choice(absent)
        if is_clip:
            options = [there, *chance.sample(absent, CLIP_OPTIONS - 1)]
            controls[name] = Control("", sorted(options), there, phrase="clip_shows")
        else:
            is_there = number % 2 == 0
            right = "yes" if is_there else "no"
            word = there if is_there else not_there
            controls[name] = Control("", ("yes", "no"), right, phrase="is_there", object=word)
    if lacking:
        problems = [f"{_named(names, stimuli)} lack `{field}`" for field, names in lacking.items()]
        raise InputError(
            f"trials.control: {OBJECT}: {' and '.join(problems)}: give them in the stimulus set before `turinglike "
            'generate` and `trials`, or name a table of your own, or set it to "" (and exclude.controls to 0)'
        )
    return controls


def _words(words: Sequence[str] | None) -> list[str]:
    return sorted({word.strip().casefold() for word in words or () if word.strip()})


def _of_topics(stimuli: Rows) -> dict[str, Control]:
    topics = {name: str(row["meta.topic"]) for name, row in stimuli.items() if row.get("meta.topic")}
    every = sorted({*topics.values(), *TOPICS})
    controls = {}
    for name, topic in topics.items():
        chance = random.Random(f"topic {name}")
        others = chance.sample([other for other in every if other != topic], TOPIC_OPTIONS - 1)
        controls[name] = Control("", sorted([*others, topic]), topic, phrase="topic")
    return controls


def _of_table(path: Path) -> dict[str, Control]:
    table = load_table(path)
    if not set(COLUMNS) <= set(table.names):
        raise InputError(f"{path}: must have the columns {', '.join(COLUMNS)}")
    controls: dict[str, Control] = {}
    problems = table.problems
    for line, cells in table.rows:
        stimulus = cells["stimulus"].strip()
        question = cells["question"].strip()
        right = cells["right"].strip()
        options = [option.strip() for option in cells["options"].split("|") if option.strip()]
        if not question or stimulus in controls or right not in options or len(set(options)) < max(2, len(options)):
            why = "must have a question, a stimulus of its own, options parted by | and among them what is right"
            problems.append(Problem(str(path), line, None, why))
        controls[stimulus] = Control(question, options, right)
    if problems:
        raise InputError(f"{path} cannot be used", by_line(problems))
    return controls
