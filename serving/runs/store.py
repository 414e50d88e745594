"""Lines appended to files so that what is counted as written survives a crash."""

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.errors import StorageError
from serving.files.atomic_files import repair_tail, writing

BUFFER = 16 * 1024 * 1024  # bytes that may wait to be written
NOT_WRITTEN = "nothing can be written any more"


class _File:
    """A file that is open for appending; its lines wait here until the next write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self.counts: Counter[str] = Counter()
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


class _Round:
    """The lines that go to disk together, and whoever waits for them."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.is_on_disk = False


class Store:
    """Appends lines to files, and knows which of them are on disk.

    Whoever has a line calls :meth:`put`, which only remembers it. :meth:`run` is the one writer: every ``interval``
    seconds it writes and syncs what came, each file's lines at once. So an answer costs no sync of its own, and what
    :attr:`done` counts is safe from a crash and a power cut.

    Whoever waits for a line (:meth:`written`) ends the interval. Its round begins when the one before it is over, and
    takes all lines that have come until then. With many callers that wait, a sync is shared by as many lines as come
    during the sync before it (group commit); without the end of the interval, each caller would wait for most of it.

    Three things must stay as they are. A write is all or nothing: after an error the file is cut to where it was, or
    the next start would take a torn line for damage. ``check`` comes before each write: it raises once somebody has
    removed the run folder's lock, because from then on another process may write to the same files. The disk has a
    thread of its own: the event loop's threads may all be waiting for something that hangs, and records must not wait
    with them.
    """

    def __init__(self, check: Callable[[], None] = lambda: None, interval: float = 0.05) -> None:
        """``check`` may raise StorageError before a write; ``interval`` is in seconds."""
        self._check = check
        self._interval = interval
        self.done: dict[Path, Counter[str]] = {}
        """The lines on disk, by file and kind."""
        self.writing_s = 0.0
        """Seconds spent on writing and syncing so far."""
        self._files: dict[Path, _File] = {}
        self._buffered = 0
        self._room = asyncio.Event()
        self._room.set()
        self._round = _Round()  # of the lines that come now
        self._is_awaited = asyncio.Event()  # somebody waits, or the store is to close
        self._closing = False
        self._failed = False
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
        self._buffered += len(line)
        if self._buffered > BUFFER:
            self._room.clear()

    async def room(self) -> None:
        """Wait until few enough lines are waiting to be written: a disk may be slower than the agents."""
        await self._room.wait()

    async def written(self) -> None:
        """Wait until all lines that were put so far are on disk. Raises StorageError."""
        if not self._buffered:
            return
        if self._failed:
            raise StorageError(NOT_WRITTEN)
        awaited = self._round  # it follows the round that is being written, should the lines be in that one
        self._is_awaited.set()
        await awaited.is_over.wait()
        if not awaited.is_on_disk:
            raise StorageError(NOT_WRITTEN)

    async def run(self) -> None:
        """Write until :meth:`finish`. Raises StorageError."""
        try:
            while not self._closing:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._interval):
                        await self._is_awaited.wait()
                self._is_awaited.clear()
                await self.flush()
        except BaseException:
            self._fail()
            raise

    def _fail(self) -> None:
        self._failed = True
        self._round.is_over.set()  # nobody will write what has come since

    async def flush(self) -> None:
        """Write and sync what waits. Raises StorageError."""
        written = self._round
        self._round = _Round()
        try:
            await self._write()
            written.is_on_disk = True
        except BaseException:
            self._fail()
            raise
        finally:
            written.is_over.set()
        if self._buffered <= BUFFER:
            self._room.set()

    async def _write(self) -> None:
        waiting = []
        for file in self._files.values():
            if file.lines:
                waiting.append((file, b"".join(file.lines), file.counts))
                file.lines = []
                file.counts = Counter()
        if not waiting:
            return
        self._check()
        for file, data, counts in waiting:
            began = time.perf_counter()
            await asyncio.get_running_loop().run_in_executor(self._disk, file.append, data)
            self.writing_s += time.perf_counter() - began
            self.done[file.path] += counts
            self._buffered -= len(data)

    async def finish(self, writer: asyncio.Task[None]) -> None:
        """Write what is left, close the files, and end the task of :meth:`run`."""
        self._closing = True
        self._is_awaited.set()
        self._room.set()
        try:
            await asyncio.shield(writer)
            await self.flush()
        finally:
            for file in self._files.values():
                os.close(file.descriptor)
            self._files.clear()
            self._disk.shutdown(wait=False)
