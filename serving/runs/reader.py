"""Reading run folders without holding them in memory.

A run folder holds ``run.json``, ``stimuli.jsonl`` (the set's rows) and ``records/AGENT.jsonl``. It may be read while
it is written: a file counts as it was when it was opened, and its last line does not count if it has no newline or
does not parse (a writer was cut off, or is at it). Any other line that is not a record is damage.

A key is (agent, stimulus, sample). The last line of a key counts. Imported records of several tasks may share the
name of a stimulus ("672.jpg" is shown for its colour and for its objects), so the task is part of the key here; in a
run it follows from the stimulus.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from agents.errors import InputError, Problem
from serving.runs.positions import joint_key, last_of_each
from serving.runs.records import structural_fault
from serving.runs.run_json import read_run_json

IMPORTS = ("humans", "published")

NumberedRecord = tuple[int, bytes, dict[str, Any]]  # line number from 1, line, record


@dataclass(slots=True)
class Damage:
    """The lines of one file that are not records: how many, and the first of them."""

    lines: int = 0
    first: Problem | None = None

    def add(self, problem: Problem) -> None:
        self.lines += 1
        self.first = self.first or problem

    def told(self) -> dict[str, Any] | None:
        """What ``status`` says of it; None without damage."""
        return None if self.first is None else {"lines": self.lines, "first": str(self.first)}


class RunFolder:
    """One run folder. Raises InputError if ``path`` is not one, is damaged, or was made by a newer version.

    ``meta`` is ``run.json`` as it stands; ``root`` the folder that the set's image paths are relative to, or None.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.meta = read_run_json(self.path)
        root = self.meta["set"].get("root")
        self.root = None if root is None else Path(root)

    def agents(self) -> list[str]:
        """The names of agents and pairs that have a file of records: those of ``run.json`` first, in its order."""
        found = [name for name in self._files() if name not in IMPORTS]
        known = [name for name in self.meta["agents"] if name in found]
        return known + [name for name in found if name not in known]

    def imports(self) -> list[str]:
        """Which of "humans" and "published" have a file of records."""
        return [name for name in IMPORTS if name in self._files()]

    def records_path(self, name: str) -> Path:
        """The file of an agent's, a pair's or an import's records."""
        return self.path / "records" / f"{name}.jsonl"

    def image_path(self, name: str) -> Path:
        """Where the image is that a stimulus of this run calls ``name``."""
        return (self.root or self.path) / name

    def stimuli(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(index from 0, row) for every stimulus of the set. A row that was invalid is what it was in the set."""
        return enumerate(row for _, row in self.located_stimuli())

    def has_stimuli(self) -> bool:
        """Whether the folder keeps a set's rows, or should; a folder of imports alone does not."""
        return bool(self.meta["set"]) or (self.path / "stimuli.jsonl").exists()

    def located_stimuli(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(place in bytes in ``stimuli.jsonl``, row) for every stimulus of the set. Raises InputError with file and
        line where one is damaged, and if there are fewer than ``run.json`` says.

        These rows are put in place whole, so a torn last line is damage too. (There may be more than ``run.json``
        says for a moment, while stimuli are added to the run.)
        """
        path = self.path / "stimuli.jsonl"
        if not self.has_stimuli():
            return
        start, number = 0, 0
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                yield start, _stimulus(path, number, line)
                start += len(line)
        expected = self.meta["set"].get("count")
        if expected is not None and number < expected:
            message = f"the rows end here, but the set has {expected:,}"
            raise InputError(f"damaged: {Problem(str(path), max(number, 1), None, message)}")

    def records(self, name: str, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
        """Every record of an agent, a pair or an import ("humans", "published"), superseded ones too, in file order.

        A damaged line raises InputError with file and line, or is counted in ``damage`` and passed over.
        """
        path = self.records_path(name)
        with _open(path) as file:
            yield from (record for _, _, record in numbered_records(file, path, damage))

    def latest(self, name: str, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
        """The last record of every key, in file order; otherwise as :meth:`records`.

        Two passes over the file: the first keeps each line's key and number (12 bytes per record, 40 at its peak),
        the second decodes the lines that count.
        """
        path = self.records_path(name)
        with _open(path) as file:
            keys, numbers = array("Q"), array("I")
            for number, _, record in numbered_records(file, path, damage):
                keys.append(joint_key(record["task"], record["agent"], record["stimulus"], record["sample"]))
                numbers.append(number)
            wanted = iter(np.asarray(numbers)[last_of_each(keys)].tolist())
            del keys, numbers
            file.seek(0)
            following = next(wanted, 0)
            for number, line in enumerate(file, start=1):
                if number == following:
                    yield orjson.loads(line)
                    following = next(wanted, 0)
                    if not following:
                        return

    def _files(self) -> list[str]:
        return sorted(path.stem for path in (self.path / "records").glob("[!.]*.jsonl"))


def numbered_records(file: BinaryIO, path: Path, damage: Damage | None = None) -> Iterator[NumberedRecord]:
    """Every record of an open file, with the number of its line and the line itself.

    Only complete lines within the file's present size count, and a last one that does not parse does not. Any other
    line that is not a record raises InputError with file and line, or is counted in ``damage`` and passed over. What
    readers rely on is checked here and nowhere else (:func:`serving.runs.records.structural_fault`).
    """
    rest = os.fstat(file.fileno()).st_size
    unparsed: Problem | None = None
    for number, line in enumerate(file, start=1):
        rest -= len(line)
        if rest < 0 or not line.endswith(b"\n"):
            break
        if unparsed is not None:
            _damaged(unparsed, damage)
            unparsed = None
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            unparsed = Problem(str(path), number, None, f"not JSON: {error}")
            continue
        fault = structural_fault(record)
        if fault is None:
            yield number, line, record
        else:
            _damaged(Problem(str(path), number, None, fault), damage)


def _damaged(problem: Problem, damage: Damage | None) -> None:
    if damage is None:
        raise InputError(f"damaged: {problem}", [problem])
    damage.add(problem)


def _open(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _stimulus(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"damaged: {Problem(str(path), number, None, f'not JSON: {error}')}") from None
    if not isinstance(row, dict):
        raise InputError(f"damaged: {Problem(str(path), number, None, 'not a JSON object')}")
    return row
