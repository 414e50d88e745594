"""A run folder: ``run.json``, ``stimuli.jsonl`` (the set's rows) and ``records/AGENT.jsonl``. The last line of a key
(task, agent, stimulus, sample) counts. Lines that are no records are damage, except a torn last line. A :class:`Store`
appends to files and syncs them; an agent's entry in ``run.json`` says which stimuli it answers."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agents.errors import InputError, Problem, StorageError
from serving.files.atomic_files import repair_tail, replacing, write_json, writing
from serving.files.run_folder_names import OWN
from serving.runs.records import people_record, structural_fault
from serving.runs.run_json import read_run_json
from serving.sets.kinds import Kind, kind_of

IMPORTS = ("humans", "published")
PERSON = "human"

BUFFER = 16 * 1024 * 1024

NumberedRecord = tuple[int, bytes, dict[str, Any]]  # line number from 1, line, record


@dataclass(slots=True)
class Damage:
    """How many lines of a file are not records, and the first."""

    lines: int = 0
    first: Problem | None = None

    def add(self, problem: Problem) -> None:
        self.lines += 1
        self.first = self.first or problem

    def summary(self) -> dict[str, Any] | None:
        return None if self.first is None else {"lines": self.lines, "first": str(self.first)}


class Run:
    """``invalid`` maps positions in ``stimuli.jsonl`` to (code, message); ``skipped`` counts rows without a record.
    Both are known only after a check. Raises InputError for a folder that is no run, damaged, or of a newer version."""

    def __init__(self, path: Path | str, meta: dict[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.meta = read_run_json(self.path) if meta is None else meta
        self.invalid: Mapping[int, tuple[str, str]] = {}
        self.skipped = 0

    @property
    def root(self) -> Path | None:
        root = self.meta["set"].get("root")
        return None if root is None else Path(root)

    def image_path(self, name: str) -> Path:
        return (self.root or self.path) / name

    def records_path(self, name: str) -> Path:
        return self.path / "records" / f"{name}.jsonl"

    def journal_path(self, pair: str) -> Path:
        return self.path / "turns" / f"{pair}.jsonl"

    def save(self) -> None:
        write_json(self.path / "run.json", self.meta)

    # records

    def agents(self) -> list[str]:
        """Agents and pairs with a record file, those of ``run.json`` first."""
        names = [name for name in self._record_files() if name not in IMPORTS]
        known = [name for name in self.meta["agents"] if name in names]
        return known + [name for name in names if name not in known]

    def imports(self) -> list[str]:
        """Those of "humans" and "published" with a record file."""
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
        return bool(self.meta["set"]) or (self.path / "stimuli.jsonl").exists()

    def rows(self) -> Iterator[bytes]:
        with (self.path / "stimuli.jsonl").open("rb") as file:
            for line in file:
                yield line[:-1]

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
        raise InputError(f"{path} is not empty and not a run folder; choose another --out")


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
    """Raises InputError."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


class _File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self.put = 0  # lines, written or not
        self.size = repair_tail(path)
        with writing(path):
            self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, data: bytes) -> None:
        """Write and sync all or nothing; nothing if the name leads to another file or none."""
        try:
            if not os.path.samestat(os.stat(self.path), os.fstat(self.descriptor)):
                raise StorageError(
                    f"{self.path} was replaced by another file; everything counted as done is in the former"
                )
            view = memoryview(data)
            while view:
                view = view[os.write(self.descriptor, view) :]
            os.fsync(self.descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # if even that fails, the next start cuts the torn line
                os.ftruncate(self.descriptor, self.size)
            raise StorageError(
                f"cannot write {self.path}: {error.strerror}; everything counted as done is safe: "
                "make room and run the same command again to resume"
            ) from error
        self.size += len(data)


class Store:
    """``done`` counts, per file, what is on disk. ``check`` may raise StorageError before each write, of which there is
    one in ``interval`` seconds."""

    def __init__(self, check: Callable[[], None] = lambda: None, interval: float = 0.05) -> None:
        self._check = check
        self._interval = interval
        self.done: dict[Path, Counter[str]] = {}
        self._files: dict[Path, _File] = {}
        self._buffered = 0
        self._room = asyncio.Event()
        self._room.set()
        self._flushed = asyncio.Event()  # a new event after each flush
        self._closing = self._failed = False
        self._disk = ThreadPoolExecutor(1, "disk")  # what hangs elsewhere must not keep it waiting

    def open(self, path: Path) -> None:
        """Open a file and cut its torn tail. Raises StorageError."""
        if path not in self._files:
            self._files[path] = _File(path)
            self.done[path] = Counter()

    def put(self, path: Path, line: bytes, kind: str = "line") -> None:
        """Append a line, newline included; once on disk it counts as ``kind``."""
        file = self._files[path]
        file.lines.append(line)
        file.counts[kind] += 1
        file.put += 1
        self._buffered += len(line)
        if self._buffered > BUFFER:
            self._room.clear()

    async def room(self) -> None:
        await self._room.wait()

    async def written(self, paths: Sequence[Path]) -> None:
        """Wait until these files are on disk. Raises StorageError."""
        wanted = {path: self._files[path].put for path in paths}
        while any(self.done[path].total() < put for path, put in wanted.items()):
            if self._failed:
                raise StorageError("nothing can be written any more")
            await self._flushed.wait()

    async def run(self) -> None:
        """Write until :meth:`finish`. Raises StorageError."""
        try:
            while not self._closing:
                await asyncio.sleep(self._interval)
                await self.flush()
        except BaseException:
            self._failed = True
            self._flushed.set()
            raise

    async def flush(self) -> None:
        if any(file.lines for file in self._files.values()):
            self._check()
        for file in self._files.values():
            if file.lines:
                lines = file.lines
                file.lines = []
                counts = file.counts
                file.counts = Counter()
                data = b"".join(lines)
                await asyncio.get_running_loop().run_in_executor(self._disk, file.append, data)
                self.done[file.path] += counts
                self._buffered -= len(data)
        if self._buffered <= BUFFER:
            self._room.set()
        self._flushed.set()
        self._flushed = asyncio.Event()

    async def finish(self, writer: asyncio.Task[None]) -> None:
        """Write what is left, close the files, and end the task of :meth:`run`."""
        self._closing = True
        self._room.set()
        try:
            await asyncio.shield(writer)
            await self.flush()
        finally:
            for file in self._files.values():
                os.close(file.descriptor)
            self._files.clear()
            self._disk.shutdown(wait=False)
