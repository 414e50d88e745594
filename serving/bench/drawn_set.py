"""The set that a measurement asks: stimuli drawn from the user's own, in random order.

A run that is measured for a minute answers only the beginning of a large set. Sets are often sorted, by length or by
source, so that the beginning says little of the rest. Stimuli that are drawn at random from all of the set do not have
this fault, and their rate can be carried over to the whole.
"""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson

from agents.errors import InputError, Problem
from serving.files.words import count
from serving.sets.checking import KEPT
from serving.sets.kinds import Kind, kind_of
from serving.sets.set_rows import Choose
from serving.sets.stimulus_set import read_rows

DRAWN = 20_000  # stimuli of one measurement at most, unless they are asked repeatedly


@dataclass(frozen=True, slots=True)
class Material:
    """A set's valid stimuli."""

    rows: list[bytes]
    """Drawn rows as JSON, at most :data:`DRAWN`, in random order; paths of pictures are absolute."""
    kinds: Counter[Kind]
    """The number of stimuli of each kind in the whole set."""


def read_material(source: Path, task: str | None, choose: Choose | None, seed: int = 0) -> Material:
    """Read the set ``source``, and draw from it. Raises InputError if it cannot be read or has problems; it has the
    first :data:`KEPT` of them.

    Rows are drawn by reservoir sampling (Vitter 1985, algorithm R), so that a set of any length takes little memory.
    Pictures are not opened here: the run that is measured checks them, as every run does.
    """
    draw = random.Random(seed)
    rows: list[bytes] = []
    kinds: Counter[Kind] = Counter()
    problems: list[Problem] = []
    total_problems = 0
    number = 0
    for row in read_rows(source, task, choose=choose):
        if row.stimulus is None or row.canonical is None:
            total_problems += len(row.problems)
            problems += row.problems[: KEPT - len(problems)]
            continue
        fields = orjson.loads(row.canonical)
        kinds[kind_of(fields)] += 1
        for name, image in row.stimulus.images_by_field().items():
            if image.path is not None:
                fields[name] = str(Path(image.path).absolute())
        line = orjson.dumps(fields)
        if len(rows) < DRAWN:
            rows.append(line)
        elif (place := draw.randrange(number + 1)) < DRAWN:
            rows[place] = line
        number += 1
    if total_problems:
        raise InputError(f"{source}: {count(total_problems, 'problem')}; nothing was started", problems)
    draw.shuffle(rows)
    return Material(rows, kinds)


def write_repeated(rows: list[bytes], times: int, path: Path) -> None:
    """Write ``rows`` to the set ``path``, ``times`` times, with another id each time."""
    with path.open("wb") as file:
        for line in rows:
            file.write(line + b"\n")
        for repetition in range(2, times + 1):
            for line in rows:
                fields = orjson.loads(line)
                fields["id"] = f"{fields['id']}#{repetition}"
                file.write(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
