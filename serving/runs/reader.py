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
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress, count
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import orjson

from agents.errors import InputError, Problem
from serving.runs.hash_join import last_of_each
from serving.runs.records import KEYS, OLD_SCHEMA, SCHEMA

RUN_SCHEMA = "turinglike.run/1"
OLD_RUN_SCHEMA = "understudy.run/1"  # the same, before the project was renamed
IMPORTS = ("humans", "published")

Types = type | tuple[type, ...]

_KEYS = frozenset(KEYS)
_STATUSES = ("ok", "rejected", "failed")
# The start of a record as our writer writes it. A string with an escape in it is left to the JSON parser.
_KEY = re.compile(
    rb'\{"schema":"[^"\\]*","run":"[^"\\]*","task":"([^"\\]*)","stimulus":"([^"\\]*)",'
    rb'"stimulus_sha256":(?:null|"[^"\\]*"),"agent":"([^"\\]*)","kind":"[^"\\]*","sample":(\d+),'
)


@dataclass(slots=True)
class Damage:
    """The lines of one file that are not records: how many, and the first of them."""

    lines: int = 0
    first: Problem | None = None

    def add(self, problem: Problem) -> None:
        self.lines += 1
        self.first = self.first or problem


class RunFolder:
    """One run folder. Raises InputError if ``path`` is not one, is damaged, or was made by a newer version.

    ``meta`` is ``run.json`` as it stands; ``root`` the folder that the set's image paths are relative to, or None.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.meta = _read_meta(self.path)
        root = (self.meta.get("set") or {}).get("root")
        self.root = Path(root) if isinstance(root, str) else None

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
        for index, (_, row) in enumerate(self.located_stimuli()):
            yield index, row

    def has_stimuli(self) -> bool:
        """Whether the folder keeps a set's rows, or should; a folder of imports alone does not."""
        return bool(self.meta.get("set")) or (self.path / "stimuli.jsonl").exists()

    def located_stimuli(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(place in bytes in ``stimuli.jsonl``, row) for every stimulus of the set. Raises InputError with file and
        line where one is damaged, and if there are fewer than ``run.json`` says.

        Unlike records, these rows are put in place whole before a run starts, so a torn last line is damage too.
        (There may be more than ``run.json`` says for a moment, while stimuli are added to the run.)
        """
        path = self.path / "stimuli.jsonl"
        if not self.has_stimuli():
            return
        start, number = 0, 0
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                yield start, _stimulus(path, number, line)
                start += len(line)
        expected = (self.meta.get("set") or {}).get("count")
        if expected is not None and number < expected:
            message = f"the rows end here, but the set has {expected:,}"
            raise InputError(f"damaged: {Problem(str(path), max(number, 1), None, message)}")

    def records(self, name: str, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
        """Every record of an agent, a pair or an import ("humans", "published"), superseded ones too, in file order.

        A damaged line raises InputError with file and line, or is counted in ``damage`` and passed over.
        """
        path = self.records_path(name)
        with _open(path) as file:
            yield from _checked(_numbered(file, _size(file)), path, damage)

    def latest(self, name: str, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
        """The last record of every key, in file order; otherwise as :meth:`records`. (Without ``damage``, a damaged
        line of a key that has a later record goes unnoticed.)

        Two passes over the file: the first keeps a 64-bit hash of each line's key (25 bytes per record at its peak),
        the second parses the lines that count.
        """
        path = self.records_path(name)
        with _open(path) as file:
            size = _size(file)
            keys, size = _key_hashes(_lines(file, size), size, damage is not None)
            keep = last_of_each(keys)
            del keys
            numbered = _numbered(file, size)
            yield from _checked(numbered if keep is None else compress(numbered, keep), path, damage)

    def _files(self) -> list[str]:
        folder = self.path / "records"
        try:
            return sorted(
                entry.name.removesuffix(".jsonl")
                for entry in os.scandir(folder)
                if entry.name.endswith(".jsonl") and not entry.name.startswith(".") and entry.is_file()
            )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{folder} cannot be read: {error.strerror}") from error


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        reason = "it has no run.json" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{folder} is not a run folder: {reason}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        meta = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is damaged: {error}") from None
    schema = meta.get("schema") if isinstance(meta, dict) else None
    if schema not in (RUN_SCHEMA, OLD_RUN_SCHEMA):
        if isinstance(schema, str) and re.fullmatch(r"turinglike\.run/\d+", schema):
            raise InputError(
                f"{folder} was made by a newer version of Turinglike: {schema}; this one reads {RUN_SCHEMA}"
            )
        raise InputError(f"{folder} is not a run folder: its run.json does not say {RUN_SCHEMA}")
    fault = _meta_fault(meta)
    if fault is not None:
        raise InputError(f"{path} is damaged: {fault}")
    return dict(meta)


# What the readers of run.json rely on; anything else in it may be as it likes.
_META: Mapping[str, tuple[Types, str]] = {
    "run": (str, "text"),
    "agents": (dict, "an object of agents"),
    "seed": (int, "a whole number"),
    "samples": (int, "a whole number"),
    "set": ((dict, NoneType), "an object"),
    "created": ((str, NoneType), "text"),
    "turinglike": ((str, NoneType), "text"),
}
_SET: Mapping[str, tuple[Types, str]] = {
    "source": ((str, NoneType), "text"),
    "root": ((str, NoneType), "text"),
    "sha256": ((str, NoneType), "text"),
    "count": ((int, NoneType), "a whole number"),
}
_AGENT: Mapping[str, tuple[Types, str]] = {
    "task": (list, "a list of tasks"),
    "kind": (str, "text"),
    "samples": (int, "a whole number"),
    "digest": ((str, NoneType), "text"),
}


def _meta_fault(meta: dict[str, Any]) -> str | None:
    """The first thing in ``run.json`` that is not of its type, as a sentence, or None."""
    for name in ("run", "agents"):
        if name not in meta:
            return f"it has no {name!r}"
    fault = _wrong_type(meta, _META, "") or _wrong_type(meta.get("set") or {}, _SET, "set.")
    if fault is not None:
        return fault
    for name, agent in meta["agents"].items():
        if not isinstance(agent, dict):
            return f"'agents.{name}' must be an object, is {_shown(agent)}"
        fault = _wrong_type(agent, _AGENT, f"agents.{name}.")
        if fault is None and not all(isinstance(task, str) for task in agent.get("task", ())):
            fault = f"'agents.{name}.task' must be a list of tasks, is {_shown(agent['task'])}"
        if fault is not None:
            return fault
    return None


def _wrong_type(values: dict[str, Any], types: Mapping[str, tuple[Types, str]], prefix: str) -> str | None:
    for name, (fitting, called) in types.items():
        if name not in values:
            continue
        value = values[name]
        if not isinstance(value, fitting) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
            return f"{prefix + name!r} must be {called}, is {_shown(value)}"
    return None


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:60]}…"


def _open(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _numbered(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    return zip(count(1), _lines(file, size), strict=False)


def _lines(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The complete lines within the first ``size`` bytes."""
    file.seek(0)
    position = 0
    for line in file:
        position += len(line)
        if position > size or not line.endswith(b"\n"):
            return
        yield line


def _stimulus(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        fault = f"not JSON: {error}"
    else:
        fault = "not a JSON object" if not isinstance(row, dict) else "cut off: it has no newline"
        if isinstance(row, dict) and line.endswith(b"\n"):
            return row
    raise InputError(f"damaged: {Problem(str(path), number, None, fault)}")


def _objects(
    lines: Iterator[tuple[int, bytes]], path: Path, damage: Damage | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object on each numbered line. The last line may fail to parse; any other that does is damage."""
    item = next(lines, None)
    while item is not None:
        following = next(lines, None)
        number, line = item
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if following is not None:
                _damaged(Problem(str(path), number, None, f"not JSON: {error}"), damage)
        else:
            if isinstance(row, dict):
                yield number, row
            else:
                _damaged(Problem(str(path), number, None, "not a JSON object"), damage)
        item = following


def _checked(lines: Iterator[tuple[int, bytes]], path: Path, damage: Damage | None) -> Iterator[dict[str, Any]]:
    """The records among numbered lines. What every reader relies on is checked here; all of it is in
    :func:`serving.runs.records.problems`, at fifty times the cost."""
    for number, row in _objects(lines, path, damage):
        fault = _fault(row)
        if fault is None:
            yield row
        else:
            _damaged(Problem(str(path), number, None, fault), damage)


def _fault(row: dict[str, Any]) -> str | None:
    schema = row.get("schema")
    if schema not in (SCHEMA, OLD_SCHEMA):
        if isinstance(schema, str) and re.fullmatch(r"turinglike\.record/\d+", schema):
            return f"made by a newer version of Turinglike: {schema}; this one reads {SCHEMA}"
        return f"not a record of {SCHEMA}: schema {schema!r}"
    if row.keys() != _KEYS:
        return f"not a record: {', '.join(sorted(_KEYS ^ row.keys()))} lack or are unknown"
    plain = (
        isinstance(row["task"], str)
        and isinstance(row["stimulus"], str)
        and isinstance(row["agent"], str)
        and type(row["sample"]) is int
        and 0 <= row["sample"] < 2**53
        and row["status"] in _STATUSES
        and isinstance(row["answer"], dict | None)
        and isinstance(row["error"], dict | None)
        and isinstance(row["attempts"], list)
        and (not row["attempts"] or all(_is_attempt(attempt) for attempt in row["attempts"]))
    )
    return None if plain else "not a record: a key, the status, answer, error or attempts have a wrong type"


def _is_attempt(attempt: Any) -> bool:
    verdicts = attempt.get("verdicts") if isinstance(attempt, dict) else None
    return isinstance(verdicts, list) and all(
        isinstance(verdict, dict)
        and verdict.keys() >= {"filter", "rejected", "found"}
        and isinstance(verdict["filter"], str)
        for verdict in verdicts
    )


def _damaged(problem: Problem, damage: Damage | None) -> None:
    if damage is None:
        raise InputError(f"damaged: {problem}", [problem])
    damage.add(problem)


def _key_hashes(lines: Iterator[bytes], size: int, thorough: bool) -> tuple[array[int], int]:
    """A hash of every line's key, and the size of the file without a last line that does not parse.

    A line that is not a record gets a key of its own: the second pass will come upon it. That it is none is seen for
    certain only if ``thorough``; otherwise the start of a line is taken for the whole.
    """
    hashes = array("q")
    line = b""
    for line in lines:
        match = None if thorough else _KEY.match(line)
        hashes.append(hash(match.groups()) if match else _parsed_key(line, len(hashes)))
    if hashes:
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            hashes.pop()
            return hashes, size - len(line)
    return hashes, size


def _parsed_key(line: bytes, number: int) -> int:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return hash((b"not a record", number))
    if not isinstance(row, dict) or _fault(row) is not None:
        return hash((b"not a record", number))
    return hash((row["task"].encode(), row["stimulus"].encode(), row["agent"].encode(), b"%d" % row["sample"]))
