"""The stimulus that a record answers, in the sets of runs."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import Any

from agents.stimulus_parts import IMAGES
from serving.files.words import count
from serving.runs.run import Run

# Fields that do not change the question.
NOT_ASKED = frozenset(("id", "benchmark_id", "source", "source_id", "meta"))
WARNING = "warning: "  # how such a sentence begins
NAMED = 3  # stimuli that a warning names

StimulusFields = dict[str, Any]
"""A stimulus as parsed JSON."""
TaskAndName = tuple[str, str]
"""A task and what a stimulus is called: id, ``benchmark_id``, cue or file name."""


class StimulusLookup:
    """Finds a record's stimulus in all ``runs``: by id, else ``benchmark_id``, else cue, else a picture's unique
    file name. Where several runs have an id, the first run's row counts. Raises InputError for damaged rows."""

    def __init__(self, *runs: Run) -> None:
        self._runs = runs

    def get(self, record: Mapping[str, Any]) -> StimulusFields | None:
        """The fields of the stimulus that a record answers; None where no run has it."""
        match = self.find(record["task"], record["stimulus"])
        return None if match is None else match[1]

    def find(self, task: str, name: str) -> tuple[int, StimulusFields] | None:
        """The run's number and the row of the stimulus ``name``, or None."""
        if (task, name) in self._named:
            return self._named[task, name]
        composed = unicodedata.normalize("NFC", name)  # macOS writes é as two characters, in names of files
        if (task, composed) in self._composed:
            return self._named[self._composed[task, composed]]
        content = composed.casefold() if task == "word_association" else PurePath(composed).name
        id = self._by_content.get((task, content))
        return None if id is None else self._named[task, id]

    def differing(self) -> Iterator[str]:
        """A warning for each two runs in which an id means different stimuli."""
        for number, run in enumerate(self._runs):
            for before, earlier in enumerate(self._by_id[:number]):
                here = self._by_id[number]
                common = [key for key in here if key in earlier]
                ids = [f"{key[1]!r}" for key in common if _asked(here[key]) != _asked(earlier[key])]
                if ids:
                    names = f"{self._runs[before].path} and {run.path}"
                    few = ", ".join([*ids[:NAMED], "…"] if len(ids) > NAMED else ids)
                    yield f"{WARNING}{count(len(ids), 'id')} of {names} mean different stimuli: {few}"

    @cached_property
    def _by_id(self) -> list[dict[TaskAndName, StimulusFields]]:
        sets: list[dict[TaskAndName, StimulusFields]] = []
        for run in self._runs:
            rows: dict[TaskAndName, StimulusFields] = {}
            for row in run.stimuli():
                if isinstance(id := row.get("id"), str):
                    rows.setdefault((str(row.get("task")), id), row)
            sets.append(rows)
        return sets

    @cached_property
    def _named(self) -> dict[TaskAndName, tuple[int, StimulusFields]]:
        named: dict[TaskAndName, tuple[int, StimulusFields]] = {}
        for field in ("id", "benchmark_id"):
            for number, rows in enumerate(self._by_id):
                for (task, _), row in rows.items():
                    if isinstance(name := row.get(field), str):
                        named.setdefault((task, name), (number, row))
        return named

    @cached_property
    def _composed(self) -> dict[TaskAndName, TaskAndName]:
        composed: dict[TaskAndName, TaskAndName] = {}
        for task, name in self._named:
            composed.setdefault((task, unicodedata.normalize("NFC", name)), (task, name))
        return composed

    @cached_property
    def _by_content(self) -> dict[TaskAndName, str | None]:
        ids: dict[TaskAndName, str | None] = {}
        for rows in self._by_id:
            pictures = set[TaskAndName]()
            for (task, id), row in rows.items():
                if isinstance(cue := row.get("cue"), str):
                    ids.setdefault((task, unicodedata.normalize("NFC", cue).casefold()), id)
                elif isinstance(image := row.get("image"), str):
                    key = (task, unicodedata.normalize("NFC", PurePath(image).name))
                    ids[key] = None if key in pictures else ids.get(key, id)
                    pictures.add(key)
        return ids


def _asked(row: StimulusFields) -> StimulusFields:
    return {
        name: PurePath(value).name if name in IMAGES and isinstance(value, str) else value
        for name, value in row.items()
        if name not in NOT_ASKED
    }


def common_stimuli(names: Sequence[str], stimuli: Sequence[Mapping[Hashable, str]]) -> Iterator[str]:
    """Sentences on what folders ``names`` have in common: of each the ids of its ``stimuli``, by stimulus and task."""
    union = len(set[Hashable]().union(*stimuli))
    if len(names) == 2 and union:
        common = len(stimuli[0].keys() & stimuli[1].keys())
        yield f"{common:,} of {count(union, 'stimulus', 'stimuli')} are in both {names[0]} and {names[1]}"
    for at, (name, here) in enumerate(zip(names, stimuli, strict=True)):
        others = set[Hashable]().union(*(there for number, there in enumerate(stimuli) if number != at))
        if here and others and here.keys().isdisjoint(others) and (len(names) > 2 or at == 0):
            of_others = {id for number, there in enumerate(stimuli) if number != at for id in there.values()}
            same = [id for id in here.values() if id in of_others]
            few = ", ".join((same or [*here.values()])[:NAMED])
            if same:  # two runs over the same pictures
                yield f"{name} has {count(len(same), 'id')} of another folder, but for another task: {few}"
            else:
                yield f"{WARNING}no stimulus of {name} is in another folder; it has {few}"
