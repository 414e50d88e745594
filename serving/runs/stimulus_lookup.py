"""Stimuli by name, left on disk: for joining records with what was shown, in one folder or in several."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import Any

import orjson

from agents.stimuli import IMAGES
from serving.runs.display_text import count
from serving.runs.positions import Positions, joint_key
from serving.runs.reader import RunFolder

# What says where a stimulus is from; the rest is what is asked.
NOT_ASKED = frozenset(("id", "benchmark_id", "source", "source_id", "meta"))
SHOWN = ("image", "cue", "topic")  # without any of them two rows are not known to ask the same
WARNING = "warning: "  # how such a sentence begins
NAMED = 3  # stimuli that a warning names

Record = Mapping[str, Any]
Row = dict[str, Any]


class Lookup:
    """The stimuli of a run by (task, ``field``), ``field`` being "id" or "benchmark_id".

    Holds 20 bytes per stimulus and reads a row when it is wanted. Where several have one name the first counts.
    A context manager; raises InputError if the set's rows are damaged.
    """

    def __init__(self, folder: RunFolder, field: str = "id") -> None:
        keys, self._starts = array("Q"), array("q")
        for start, row in folder.located_stimuli():
            name = row.get(field)
            if isinstance(name, str):
                keys.append(joint_key(str(row.get("task")), name))
                self._starts.append(start)
        self._positions = Positions(keys)
        self._file = (folder.path / "stimuli.jsonl").open("rb") if keys else None

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, task: str, name: str) -> Row | None:
        """The stimulus of that task and name, or None."""
        [position] = self._positions.find([joint_key(task, name)])
        if self._file is None or position < 0:
            return None
        self._file.seek(self._starts[position])
        row: Row = orjson.loads(self._file.readline())
        return row


class StimulusLookup:
    """The stimulus that a record answers, in the sets of one folder or of several: the one rule by which answers meet.

    A record names its stimulus. The name is looked for in all folders: first as an id, then as a ``benchmark_id``, then
    as a cue (the first that has it) or as the file name of a picture (if one alone has it). Two rows of different
    folders are one stimulus if they have the same id, else if they ask the same (:func:`asked_content`) and no other
    row of either folder asks that. The first folder's row stands for both.

    A context manager; raises InputError if the rows of a set are damaged.
    """

    def __init__(self, *folders: RunFolder) -> None:
        self._folders = folders
        self._lookups: dict[str, list[Lookup]] = {}
        self._found: dict[tuple[str, str], tuple[int, Row] | None] = {}

    def __enter__(self) -> StimulusLookup:
        return self

    def __exit__(self, *_: object) -> None:
        for lookups in self._lookups.values():
            for lookup in lookups:
                lookup.__exit__()

    def get(self, record: Record) -> Row | None:
        """The row of a record's stimulus as its set has it, or None."""
        found = self.find(record["task"], record["stimulus"])
        return None if found is None else found[1]

    def of_id(self, task: str, name: str) -> Row | None:
        """The stimulus that has ``name`` for its id, or None."""
        found = self._by("id", task, name)
        return None if found is None else found[1]

    def find(self, task: str, name: str) -> tuple[int, Row] | None:
        """The stimulus that ``name`` means: the number of the folder whose row stands for it, and the row; or None."""
        if len(self._folders) == 1:
            return self._named(task, name)
        if (task, name) not in self._found:
            self._found[task, name] = self._named(task, name)
        return self._found[task, name]

    def differing(self) -> Iterator[str]:
        """A warning for each two folders that mean different stimuli by one id, apart from the folders of pictures."""
        for number, folder in enumerate(self._folders[1:], start=1):
            for before in range(number):
                ids = [
                    f"{row['id']!r}"
                    for _, row in folder.stimuli()
                    if (other := self._at("id", before, row["task"], row["id"])) is not None
                    and asked_content(_without_folders(row)) != asked_content(_without_folders(other))
                ]
                if ids:
                    names = f"{self._folders[before].path} and {folder.path}"
                    yield f"{WARNING}{count(len(ids), 'id')} of {names} mean different stimuli: {_some(ids)}"

    def _named(self, task: str, name: str) -> tuple[int, Row] | None:
        for field in ("id", "benchmark_id"):
            if (found := self._by(field, task, name)) is not None:
                return self._earlier(*found) or found
        key = name.casefold() if task == "word_association" else PurePath(name).name
        shown = self._by_shown.get((task, key))
        return None if shown is None else self._named(task, shown)

    def _by(self, field: str, task: str, name: str) -> tuple[int, Row] | None:
        for number in range(len(self._folders)):
            if (row := self._at(field, number, task, name)) is not None:
                return number, row
        return None

    def _at(self, field: str, number: int, task: str, name: str) -> Row | None:
        if field not in self._lookups:
            self._lookups[field] = [Lookup(folder, field) for folder in self._folders]
        return self._lookups[field][number].get(task, name)

    @cached_property
    def _by_shown(self) -> dict[tuple[str, str], str | None]:
        """The id of the stimulus with this cue or this picture; None where several of one folder have the picture."""
        shown: dict[tuple[str, str], str | None] = {}
        for folder in self._folders:
            pictures = set[tuple[str, str]]()
            for _, row in folder.stimuli():
                if isinstance(cue := row.get("cue"), str):
                    shown.setdefault((row["task"], cue.casefold()), row["id"])
                elif isinstance(image := row.get("image"), str):
                    key = (row["task"], PurePath(image).name)
                    shown[key] = None if key in pictures else shown.get(key, row["id"])
                    pictures.add(key)
        return shown

    @cached_property
    def _by_content(self) -> list[dict[bytes, str | None]]:
        """Of each folder what its stimuli ask, with the id; None where two ask the same."""
        return [_contents(folder) for folder in self._folders]

    def _earlier(self, number: int, row: Row) -> tuple[int, Row] | None:
        """The stimulus of an earlier folder that asks the same as a row of folder ``number``, or None."""
        if number == 0:
            return None
        if not any(row.get(name) for name in SHOWN):
            return None
        content = asked_content(row)
        if self._by_content[number].get(content) is None:
            return None
        for before in range(number):
            if (name := self._by_content[before].get(content)) is not None:
                return self._named(str(row["task"]), name)
        return None


def asked_content(row: Mapping[str, Any]) -> bytes:
    """A digest of all that a stimulus asks: its task and its fields, without its names, its source and its ``meta``."""
    asked = {name: value for name, value in row.items() if name not in NOT_ASKED}
    return hashlib.blake2b(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _without_folders(row: Mapping[str, Any]) -> Row:
    """A row whose pictures have their files' names alone, as two sets may lie in different places."""
    return {
        name: PurePath(value).name if name in IMAGES and isinstance(value, str) else value
        for name, value in row.items()
    }


def _contents(folder: RunFolder) -> dict[bytes, str | None]:
    found: dict[bytes, str | None] = {}
    for _, row in folder.stimuli():
        content = asked_content(row)
        found[content] = None if content in found else str(row.get("id"))
    return found


def common_stimuli(names: Sequence[str], stimuli: Sequence[Mapping[Hashable, str]]) -> Iterator[str]:
    """Sentences on how many of the ``stimuli`` of folders, each with its name, stand in several of the folders."""
    union = len(set[Hashable]().union(*stimuli))
    if len(names) == 2 and union:
        first, second = stimuli
        common = len(first.keys() & second.keys())
        verb = "is" if union == 1 else "are"
        yield f"{common:,} of {count(union, 'stimulus', 'stimuli')} {verb} common to {names[0]} and {names[1]}"
    for at, (name, own) in enumerate(zip(names, stimuli, strict=True)):
        others = [one for number, one in enumerate(stimuli) if number != at]
        common = len(own.keys() & set[Hashable]().union(*others))
        if len(names) > 2 and own:
            yield f"{name}: {common:,} of its {count(len(own), 'stimulus', 'stimuli')} in other folders too"
        if own and not common and any(others) and (len(names) > 2 or at == 0):
            theirs = [text for one in others for text in one.values()]
            yield (
                f"{WARNING}no stimulus of {name} is in another folder: it has {_some([*own.values()])}, they have "
                f"{_some(theirs)}"
            )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
