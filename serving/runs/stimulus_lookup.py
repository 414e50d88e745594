"""The stimulus that a record answers, in the sets of one run or of several."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import orjson

from agents.stimuli import IMAGES
from serving.runs.row_problems import count

if TYPE_CHECKING:
    from serving.runs.run import Run

# Fields that do not change what is asked.
NOT_ASKED = frozenset(("id", "benchmark_id", "source", "source_id", "meta"))
CONTENT = ("image", "cue", "topic")  # without any of them two rows are not known to ask the same
WARNING = "warning: "  # how such a sentence begins
NAMED = 3  # stimuli that a warning names

Row = dict[str, Any]
Names = dict[tuple[str, str], Row]  # by task and name


class StimulusLookup:
    """Finds the stimulus of a record in the sets of ``runs``: the one rule by which answers of several runs meet.

    The record's stimulus is looked for in all runs: as an id, then as a ``benchmark_id``, then as a cue (the first that
    has it) or as a picture's file name (if only one has it). Two rows of different runs are one stimulus if they have
    one id, else if they ask the same (:func:`asked_content`) and no other row of either run does. The row of the
    first run stands for both. Raises InputError if the rows of a set are damaged.
    """

    def __init__(self, *runs: Run) -> None:
        self._runs = runs
        self._matches: dict[tuple[str, str], tuple[int, Row] | None] = {}

    def get(self, record: Mapping[str, Any]) -> Row | None:
        """The row of a record's stimulus, or None."""
        match = self.find(record["task"], record["stimulus"])
        return None if match is None else match[1]

    def find(self, task: str, name: str) -> tuple[int, Row] | None:
        """The number of the run whose row stands for the stimulus ``name``, and the row; or None."""
        if (task, name) not in self._matches:
            self._matches[task, name] = self._named(task, name)
        return self._matches[task, name]

    def differing(self) -> Iterator[str]:
        """A warning for each two runs in which one id means different stimuli, apart from the folders of pictures."""
        for number, run in enumerate(self._runs[1:], start=1):
            for before, earlier in enumerate(self._by_id[:number]):
                ids = [
                    f"{row['id']!r}"
                    for key, row in self._by_id[number].items()
                    if key in earlier
                    and asked_content(_without_folders(row)) != asked_content(_without_folders(earlier[key]))
                ]
                if ids:
                    names = f"{self._runs[before].path} and {run.path}"
                    yield f"{WARNING}{count(len(ids), 'id')} of {names} mean different stimuli: {_first_few(ids)}"

    @cached_property
    def _by_id(self) -> list[Names]:
        return [_by_name(run.stimuli(), "id") for run in self._runs]

    @cached_property
    def _by_benchmark_id(self) -> list[Names]:
        return [_by_name(names.values(), "benchmark_id") for names in self._by_id]

    def _named(self, task: str, name: str) -> tuple[int, Row] | None:
        for sets in (self._by_id, self._by_benchmark_id):
            for number, names in enumerate(sets):
                if (task, name) in names:
                    row = names[task, name]
                    return self._earlier(number, row) or (number, row)
        key = name.casefold() if task == "word_association" else PurePath(name).name
        id = self._by_content_name.get((task, key))
        return None if id is None else self._named(task, id)

    @cached_property
    def _by_content_name(self) -> dict[tuple[str, str], str | None]:
        """The id of the stimulus with this cue or this picture; None where several of one run have the picture."""
        ids: dict[tuple[str, str], str | None] = {}
        for names in self._by_id:
            pictures = set[tuple[str, str]]()
            for (task, id), row in names.items():
                if isinstance(cue := row.get("cue"), str):
                    ids.setdefault((task, cue.casefold()), id)
                elif isinstance(image := row.get("image"), str):
                    key = (task, PurePath(image).name)
                    ids[key] = None if key in pictures else ids.get(key, id)
                    pictures.add(key)
        return ids

    @cached_property
    def _by_content(self) -> list[dict[bytes, str | None]]:
        """Of each run what its stimuli ask, with the id; None where two ask the same."""
        by_content = []
        for names in self._by_id:
            ids: dict[bytes, str | None] = {}
            for (_, id), row in names.items():
                content = asked_content(row)
                ids[content] = None if content in ids else id
            by_content.append(ids)
        return by_content

    def _earlier(self, number: int, row: Row) -> tuple[int, Row] | None:
        """The stimulus of an earlier run that asks the same as a row of run ``number``, or None."""
        if number == 0 or not any(row.get(name) for name in CONTENT):
            return None
        content = asked_content(row)
        if self._by_content[number].get(content) is None:
            return None
        for ids in self._by_content[:number]:
            if (id := ids.get(content)) is not None:
                return self._named(str(row["task"]), id)
        return None


def _by_name(rows: Iterator[Row] | Any, field: str) -> Names:
    """Rows by task and a name; the first of a name counts."""
    names: Names = {}
    for row in rows:
        if isinstance(name := row.get(field), str):
            names.setdefault((str(row.get("task")), name), row)
    return names


def asked_content(row: Mapping[str, Any]) -> bytes:
    """A digest of what a stimulus asks: its task and its fields, without its names, its source and its ``meta``."""
    asked = {name: value for name, value in row.items() if name not in NOT_ASKED}
    return hashlib.blake2b(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _without_folders(row: Mapping[str, Any]) -> Row:
    return {
        name: PurePath(value).name if name in IMAGES and isinstance(value, str) else value
        for name, value in row.items()
    }


def common_stimuli(names: Sequence[str], stimuli: Sequence[Mapping[Hashable, str]]) -> Iterator[str]:
    """Sentences on how many of the ``stimuli`` of folders, each with its name, stand in several of the folders."""
    union = len(set[Hashable]().union(*stimuli))
    if len(names) == 2 and union:
        first, second = stimuli
        common = len(first.keys() & second.keys())
        verb = "is" if union == 1 else "are"
        yield f"{common:,} of {count(union, 'stimulus', 'stimuli')} {verb} common to {names[0]} and {names[1]}"
    for at, (name, here) in enumerate(zip(names, stimuli, strict=True)):
        others = [there for number, there in enumerate(stimuli) if number != at]
        common = len(here.keys() & set[Hashable]().union(*others))
        if len(names) > 2 and here:
            yield f"{name}: {common:,} of its {count(len(here), 'stimulus', 'stimuli')} in other folders too"
        if here and not common and any(others) and (len(names) > 2 or at == 0):
            theirs = [text for there in others for text in there.values()]
            yield (
                f"{WARNING}no stimulus of {name} is in another folder: it has {_first_few([*here.values()])}, they "
                f"have {_first_few(theirs)}"
            )


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
