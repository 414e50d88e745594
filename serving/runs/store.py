"""Agents' record files: appended and synced every ``interval`` seconds, read back, and put in order."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import sys
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from agents.errors import InputError, StorageError
from serving.runs.atomic_files import repair_tail, replacing
from serving.runs.records import problems
from serving.runs.row_problems import shown
from serving.runs.run import numbered_records

AnswerKey = tuple[int, int]  # position of the stimulus in the set, sample
INTERVAL = 0.05
BUFFER = 16 * 1024 * 1024


class _File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self.put = 0  # lines, written or not
        self.size = repair_tail(path)
        try:
            self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

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
    """``done`` counts, per file, what is on disk. ``check`` may raise StorageError before each write."""

    def __init__(self, check: Callable[[], None] = lambda: None, interval: float = INTERVAL) -> None:
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
                lines, file.lines = file.lines, []
                counts, file.counts = file.counts, Counter()
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


@dataclass(frozen=True, slots=True)
class Maker:
    """Whose records a file has; a checksum covers its first ``known`` bytes."""

    name: str
    tasks: Container[str]
    digest: str
    known: int = 0

    def fault(self, record: Mapping[str, Any], end: int) -> str | None:
        """Why a record that ends at ``end`` bytes is not this maker's, or None."""
        if record["agent"] != self.name or record["task"] not in self.tasks:
            return f"is a record of {shown(record['agent'])} in {shown(record['task'])}: it belongs elsewhere"
        if record["provenance"].get("digest") != self.digest:
            return "was made with other settings than run.json says; choose another --out"
        if end > self.known and (wrong := problems(record)):
            return f"is not a record: {': '.join(filter(None, (wrong[0].field, wrong[0].message)))}"
        return None


class ResumeState:
    """``status`` and failure ``codes`` by (position of the stimulus, sample)."""

    def __init__(self, samples: int) -> None:
        self.status: dict[AnswerKey, str] = {}
        self.codes: dict[AnswerKey, str] = {}
        self._samples = samples
        self._places: list[int] = []  # of each line its key's place in the set's order; -1 for a key of no stimulus

    @classmethod
    def read(
        cls, path: Path, positions: Mapping[tuple[str, str], int], samples: int, maker: Maker, kept: int = 0
    ) -> ResumeState:
        """Read a record file. ``positions`` are by (task, id); ``kept`` samples are in the file, ``samples`` are
        wanted. Raises InputError for a line that is no record of ``maker``."""
        state = cls(max(samples, kept))
        if not path.exists():
            return state
        end = 0
        with path.open("rb") as file:
            for number, line, record in numbered_records(file, path):
                end += len(line)
                if (fault := maker.fault(record, end)) is not None:
                    raise InputError(f"{path}:{number} {fault}")
                position, sample = positions.get((record["task"], record["stimulus"]), -1), record["sample"]
                state.note(position, sample)
                if position >= 0 and sample < samples:
                    state.status[position, sample] = sys.intern(record["status"])
                    if record["status"] == "failed":
                        state.codes[position, sample] = sys.intern(record["error"]["code"])
        return state

    def note(self, position: int, sample: int) -> None:
        """Note the key of the last line; position -1 is no stimulus of the set."""
        is_of_run = position >= 0 and sample < self._samples
        self._places.append(position * self._samples + sample if is_of_run else -1)

    def counts(self, limit: int | None = None) -> Counter[str]:
        """Answers by status to the first ``limit`` stimuli."""
        counts = Counter({"ok": 0, "rejected": 0, "failed": 0})
        counts.update(status for (position, _), status in self.status.items() if limit is None or position < limit)
        return counts

    def is_in_order(self) -> bool:
        """Whether lines stand as the set does, each key once, those of no stimulus at the end."""
        return all(place == -1 or -1 < before < place for before, place in pairwise(self._places))

    def tidy(self, path: Path) -> None:
        """Put the last line of each key in order, unless other lines are there. Raises StorageError."""
        if not self._places:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            starts = [0, *accumulate(len(line) for line in file)]
            if len(starts) != len(self._places) + 1:
                return
            last = {place: line for line, place in enumerate(self._places)}
            others = [line for line, place in enumerate(self._places) if place == -1]
            last.pop(-1, None)
            with replacing(path) as out:
                for line in [*(last[place] for place in sorted(last)), *others]:
                    out.write(content[starts[line] : starts[line + 1]])
