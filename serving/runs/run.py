"""A run folder, read: ``run.json``, ``stimuli.jsonl`` (the set's rows) and ``records/AGENT.jsonl``.

An agent's entry in ``run.json`` says which stimuli it answers. Files of records are only appended to while a run goes
on, so that an answer may stand in several lines: the last line of a key (task, agent, stimulus, sample) counts. A line
that is no record is damage. Only a torn last line is none: a process that was killed leaves one, and the next start
cuts it off. :mod:`serving.runs.store` appends.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agents.errors import InputError, Problem
from serving.files.atomic_files import replacing, write_json
from serving.files.run_folder_names import OWN
from serving.runs.records import people_record, structural_fault
from serving.runs.run_json import read_run_json
from serving.sets.kinds import Kind, kind_of

IMPORTS = ("humans", "published")  # the files of imported records
PERSON = "human"  # in records and names of pairs: a person

NumberedRecord = tuple[int, bytes, dict[str, Any]]
"""A line's number from 1, the line, and the record in it."""


@dataclass(slots=True)
class Damage:
    """What a file has besides records, counted while it is read."""

    lines: int = 0
    """How many lines are not records."""
    first: Problem | None = None
    """Where the first such line is, and what is wrong with it; None without damage."""

    def add(self, problem: Problem) -> None:
        """Count a line that is no record."""
        self.lines += 1
        self.first = self.first or problem

    def summary(self) -> dict[str, Any] | None:
        """For a report: ``lines`` and ``first`` as text; None without damage."""
        return None if self.first is None else {"lines": self.lines, "first": str(self.first)}


class Run:
    """A run folder."""

    def __init__(self, path: Path | str, meta: dict[str, Any] | None = None) -> None:
        """``meta`` is what ``run.json`` says; None: it is read. Raises InputError for a folder that is no run, damaged,
        or of a newer version."""
        self.path = Path(path)
        self.meta = read_run_json(self.path) if meta is None else meta
        """The content of ``run.json``; :meth:`save` writes it."""

    @property
    def root(self) -> Path | None:
        """The folder in which the paths of pictures begin; None for a run without a set."""
        root = self.meta["set"].get("root")
        return None if root is None else Path(root)

    def image_path(self, name: str) -> Path:
        """Where the picture of that name in a row is."""
        return (self.root or self.path) / name

    def records_path(self, name: str) -> Path:
        """The file of records of an agent, a pair, or imported answers ("humans", "published")."""
        return self.path / "records" / f"{name}.jsonl"

    def journal_path(self, pair: str) -> Path:
        """The file of a pair's turns, which is there while conversations are unfinished."""
        return self.path / "turns" / f"{pair}.jsonl"

    def save(self) -> None:
        """Write ``run.json``. Raises StorageError."""
        write_json(self.path / "run.json", self.meta)

    # records

    def agents(self) -> list[str]:
        """Agents and pairs with a record file, those of ``run.json`` first."""
        names = [name for name in self._record_files() if name not in IMPORTS]
        described = [name for name in self.meta["agents"] if name in names]
        return described + [name for name in names if name not in described]

    def imports(self) -> list[str]:
        """The names "humans" and "published", where they have a record file."""
        return [name for name in IMPORTS if name in self._record_files()]

    def _record_files(self) -> list[str]:
        return sorted(path.stem for path in (self.path / "records").glob("[!.]*.jsonl"))

    def records(self, name: str, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
        """Every record, superseded ones too. Damage raises InputError, or is counted in ``damage``."""
        path = self.records_path(name)
        with open_to_read(path) as file:
            yield from (record for _, _, record in numbered_records(file, path, damage))

    def latest(self, name: str, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
        """The last record of every key; damage as for :meth:`records`."""
        path = self.records_path(name)
        with open_to_read(path) as file:
            last: dict[tuple[Any, ...], int] = {}
            for number, _, record in numbered_records(file, path, damage):
                last[record["task"], record["agent"], record["stimulus"], record["sample"]] = number
            numbers = set(last.values())
            del last
            file.seek(0)
            for number, line in zip(range(1, max(numbers, default=0) + 1), file, strict=False):
                if number in numbers:
                    yield orjson.loads(line)

    def write_records(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Replace a record file by ``records``, with missing keys filled in."""
        with replacing(self.records_path(name)) as file:
            for record in records:
                file.write(orjson.dumps(people_record(self.meta["run"], record), option=orjson.OPT_APPEND_NEWLINE))

    # stimuli

    def has_stimuli(self) -> bool:
        """Whether the run is of a set; what a server keeps and imports alone have none."""
        return bool(self.meta["set"]) or (self.path / "stimuli.jsonl").exists()

    def stimuli(self) -> Iterator[dict[str, Any]]:
        """The set's rows. Raises InputError for damaged or missing rows."""
        path = self.path / "stimuli.jsonl"
        if not self.has_stimuli():
            return
        number = 0
        with open_to_read(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    _damaged(Problem(str(path), number, None, f"not JSON: {error}"), None)
                if not isinstance(row, dict):
                    _damaged(Problem(str(path), number, None, "not a JSON object"), None)
                yield row
        expected = self.meta["set"].get("count")
        if expected is not None and number < expected:
            message = f"the rows end here, but the set has {expected:,}"
            _damaged(Problem(str(path), max(number, 1), None, message), None)

    @cached_property
    def kinds(self) -> dict[tuple[str, str], Kind]:
        """Kinds by (task, id), in the set's order."""
        return {
            (row["task"], row["id"]): kind_of(row)
            for row in self.stimuli()
            if isinstance(row.get("task"), str) and isinstance(row.get("id"), str)
        }


def refuse_other_folder(path: Path) -> None:
    """Raise InputError for a folder that holds something else than a run."""
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    if "run.json" not in names and any(name not in OWN and name[0] != "." for name in names):
        raise InputError(f"{path} is not empty and not a run folder; choose another folder")


def numbered_records(file: BinaryIO, path: Path, damage: Damage | None = None) -> Iterator[NumberedRecord]:
    """Numbered lines and records; damage as for :meth:`Run.records`."""
    for number, line, record in numbered_lines(file, path, damage):
        fault = structural_fault(record)
        if fault is None:
            yield number, line, record
        else:
            _damaged(Problem(str(path), number, None, fault), damage)


def numbered_lines(file: BinaryIO, path: Path, damage: Damage | None = None) -> Iterator[tuple[int, bytes, Any]]:
    """Numbered lines and their JSON, which need be no record."""
    left = os.fstat(file.fileno()).st_size
    unparsed: Problem | None = None
    for number, line in enumerate(file, start=1):
        left -= len(line)
        if left < 0 or not line.endswith(b"\n"):
            break
        if unparsed is not None:
            _damaged(unparsed, damage)
            unparsed = None
        try:
            yield number, line, orjson.loads(line)
        except orjson.JSONDecodeError as error:
            unparsed = Problem(str(path), number, None, f"not JSON: {error}")


def _damaged(problem: Problem, damage: Damage | None) -> None:
    if damage is None:
        raise InputError(f"damaged: {problem}", [problem])
    damage.add(problem)


def open_to_read(path: Path) -> BinaryIO:
    """The file at ``path``, opened to read its bytes; the caller closes it. Raises InputError where it cannot be
    opened."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
