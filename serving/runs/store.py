"""The store: appends records and journal lines so that what counts as done is on disk.

Lines are collected for ``interval`` seconds, then written, whole, in one write a file, and synced (group commit);
only then are they counted. A write that fails (a full disk) is cut back to what was there before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.errors import StorageError
from serving.runs.atomic_files import repair_tail

INTERVAL = 0.05
BUFFER = 16 * 1024 * 1024


class _File:
    """One append-only file."""

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
        """Write and sync; all of it or nothing. Nothing where the name leads to no file or another one."""
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
    """``put`` lines; ``done`` counts, per file, what is on disk. ``check`` is called before each group of writes, and
    raises StorageError where there must be none."""

    def __init__(self, check: Callable[[], None] = lambda: None, interval: float = INTERVAL) -> None:
        self._check = check
        self._interval = interval
        self.done: dict[Path, Counter[str]] = {}
        self._files: dict[Path, _File] = {}
        self._buffered = 0
        self._room = asyncio.Event()
        self._room.set()
        self._flushed = asyncio.Event()  # another one after each flush
        self._closing = self._failed = False
        self._disk = ThreadPoolExecutor(1, "disk")  # what hangs elsewhere must not keep it waiting

    def open(self, path: Path) -> None:
        """Open a file for appending, its torn tail cut. Raises StorageError."""
        if path not in self._files:
            self._files[path] = _File(path)
            self.done[path] = Counter()

    def put(self, path: Path, line: bytes, kind: str = "line") -> None:
        """Append one line, newline included, soon; it is counted under ``kind`` once it is on disk."""
        file = self._files[path]
        file.lines.append(line)
        file.counts[kind] += 1
        file.put += 1
        self._buffered += len(line)
        if self._buffered > BUFFER:
            self._room.clear()

    async def room(self) -> None:
        """Wait while too much is waiting to be written."""
        await self._room.wait()

    async def written(self, paths: Sequence[Path]) -> None:
        """Wait until all that was put in these files is on disk. Raises StorageError where :meth:`run` has failed."""
        wanted = {path: self._files[path].put for path in paths}
        while any(self.done[path].total() < put for path, put in wanted.items()):
            if self._failed:
                raise StorageError("nothing can be written any more")
            await self._flushed.wait()

    async def run(self) -> None:
        """Write until :meth:`finish`; raises StorageError."""
        try:
            while not self._closing:
                await asyncio.sleep(self._interval)
                await self.flush()
        except BaseException:
            self._failed = True
            self._flushed.set()
            raise

    async def flush(self) -> None:
        """Write what there is now."""
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
