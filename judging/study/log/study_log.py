"""The log of a study while it is served: what happens is taken into the state at once, and then written to disk."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

from judging.study.log.events import Event
from judging.study.log.files import EVENTS, PERSONAL, forget, read_personal
from judging.study.log.state import State, read_state
from serving.files.timestamps import now
from serving.runs.store import Store

WRITE_SECONDS = 0.01  # between two writes to disk


class StudyLog:
    """The events and personal lines of the study in ``folder``.

    The caller holds the study's lock; ``check`` may raise StorageError before each write where it is lost. Opening the
    log deletes who had left when an earlier server was killed. Raises InputError for damaged files, and StorageError.
    """

    def __init__(self, folder: Path, check: Callable[[], None]) -> None:
        self.folder = folder
        _forget_who_left(folder, read_state(folder))
        self.state: State = read_state(folder)
        self.personal = read_personal(folder)
        """By participant, what they say of themselves; a panel's id is ``worker``."""
        # Also of who left and deleted, until this process ends and the files are without them: at the same browser
        # somebody else must not be taken for them, and they themselves are told that they have left.
        self._panel_ids = {code: str(said["worker"]) for code, said in self.personal.items() if "worker" in said}
        self._store = Store(check, interval=WRITE_SECONDS)
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin to write; the task ends with StorageError where nothing can be written any more."""
        for name in (EVENTS, PERSONAL):
            self._store.open(self.folder / name)
        self._writer = asyncio.create_task(self._store.run())
        return self._writer

    async def close(self) -> None:
        """Write what is left, and delete who has left the study. Raises StorageError."""
        if self._writer is not None:
            await self._store.finish(self._writer)
            _forget_who_left(self.folder, self.state)

    async def note(self, *events: Event) -> None:
        """Take events in; on return they are on disk. Raises StorageError, and KeyError for events of nobody."""
        for event in events:
            self.put(event)
        await self.written()

    def put(self, event: Event) -> None:
        """Take an event in, which will be on disk when :meth:`written` returns."""
        line = event.line  # what cannot be written never happened
        self.state.apply(event)
        self._store.put(self.folder / EVENTS, line)

    def keep(self, code: str, said: Mapping[str, str]) -> None:
        """Keep what a participant says of themselves, by name, apart from the events."""
        if said:
            self.personal.setdefault(code, {}).update(said)
            if "worker" in said:
                self._panel_ids[code] = said["worker"]
            line = {"judge": code, "at": now(), "said": said}
            self._store.put(self.folder / PERSONAL, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def panel_id(self, code: str) -> str:
        """A participant's id at a panel; "" without one."""
        return self._panel_ids.get(code, "")

    async def written(self) -> None:
        """Wait until all that was taken in is on disk. Raises StorageError where nothing can be written any more."""
        await self._store.written()


def _forget_who_left(folder: Path, state: State) -> None:
    forget(folder, [code for code, judge in state.judges.items() if judge.ended == "left"])
