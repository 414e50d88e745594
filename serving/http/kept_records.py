"""``serve --out``: a server's run folder. A conversation's last line counts; ``asked.jsonl`` has the stimuli."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.errors import StorageError
from serving.files.atomic_files import lock
from serving.files.output_paths import make_parent
from serving.http.errors import ApiError
from serving.runs.opening import open_served
from serving.runs.run import refuse_other_folder
from serving.runs.store import Store

log = logging.getLogger("turinglike.http")


class KeptRecords:
    """Use as ``start()``, :meth:`keep`, ``await close()``; ``run`` is the folder's id."""

    def __init__(self, folder: Path, run: str, store: Store) -> None:
        self.run = run
        self._folder = folder
        self._store = store
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin to write; the task ends with StorageError."""
        self._writer = asyncio.create_task(self._store.run())
        return self._writer

    async def keep(self, name: str, record: bytes, row: bytes | None = None) -> None:
        """Write ``record`` of ``name`` and the stimulus's ``row`` to disk. Raises ApiError 503."""
        lines = [(self._folder / "records" / f"{name}.jsonl", record)]
        if row is not None:
            lines.insert(0, (self._folder / "asked.jsonl", row + b"\n"))
        try:
            for path, line in lines:
                self._store.open(path)
                self._store.put(path, line)
            await self._store.written([path for path, _ in lines])
        except StorageError as error:
            log.error("answer", extra={"about": {"agent": name, "not_kept": str(error)}})
            raise ApiError(503, "not_kept", "the answer could not be kept, and is lost; the log says why") from None

    async def close(self) -> None:
        """Write the rest and close the files. Raises StorageError."""
        if self._writer is not None:
            await self._store.finish(self._writer)


@contextmanager
def kept_records(
    folder: Path, seed: int, described: Mapping[str, dict[str, Any]], accept_changed_code: bool = False
) -> Iterator[KeptRecords]:
    """Make or continue the folder. Raises InputError, IdentityError (other seed, agent), StorageError, LockedError."""
    refuse_other_folder(folder)
    make_parent(folder / "records" / "x")
    with lock(folder) as check:
        run = open_served(folder, seed, described, accept_changed_code)
        yield KeptRecords(folder, run.meta["run"], Store(check))
