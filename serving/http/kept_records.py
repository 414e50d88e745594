"""``serve --out``: the run folder that a server fills.

It has a record for each answer, and in ``asked.jsonl`` the stimuli. A conversation is written anew after each message;
its last line counts.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.answers import ConversationAnswer, Message
from agents.errors import StorageError
from agents.stimuli import ConversationStimulus
from serving.conversations.dialogue import Dialogue
from serving.conversations.scenario import as_conversation, is_message, next_side
from serving.files.atomic_files import lock
from serving.files.output_paths import make_parent
from serving.http.errors import ApiError
from serving.runs.opening import open_served
from serving.runs.records import RecordHeader
from serving.runs.run import PERSON, refuse_other_folder
from serving.runs.store import Store
from serving.scheduling.request import Outcome

log = logging.getLogger("turinglike.http")


class KeptRecords:
    """Writes records to an open run folder. Call :meth:`start`, then :meth:`keep_answer` and :meth:`keep_dialogue` as
    often as wanted, and ``await`` :meth:`close`. ``run`` is the run's id."""

    def __init__(self, folder: Path, run: str, store: Store) -> None:
        self.run = run
        self._folder = folder
        self._store = store
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin to write in a task, which is returned: it ends early only with a StorageError."""
        self._writer = asyncio.create_task(self._store.run())
        return self._writer

    async def keep_answer(self, outcome: Outcome, record: bytes, header: RecordHeader) -> None:
        """Keep an answer's ``record``, a line of JSON, and its stimulus; return when both are on disk.

        A message has another record here, with the agent's ``header``: that of the pair, which has the whole
        conversation so far. Raises ApiError 503."""
        kept = outcome
        if is_message(outcome):
            kept = conversation_so_far(outcome)
            record = header.line(kept)
        await self._keep(kept.request.answerer, record, outcome.request.row.json)

    async def keep_dialogue(self, dialogue: Dialogue, header: RecordHeader) -> None:
        """Keep the record of an open conversation so far; return when it is on disk. Raises ApiError 503."""
        pair = pair_with_person(dialogue.agent, 1 - dialogue.person)
        await self._keep(pair, await dialogue.record(header))

    async def _keep(self, name: str, record: bytes, row: bytes | None = None) -> None:
        lines = [(self._folder / "records" / f"{name}.jsonl", record)]
        if row is not None:
            lines.insert(0, (self._folder / "asked.jsonl", row + b"\n"))
        try:
            for path, line in lines:
                self._store.open(path)
                self._store.put(path, line)
            await self._store.written()
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
    """Make the run folder, or go on with it. ``described`` are the agents' entries of ``run.json``.

    Raises InputError for another folder, IdentityError where the folder was made with another seed or other settings of
    an agent, StorageError where it cannot be written, LockedError while another command writes to it.
    """
    refuse_other_folder(folder)
    make_parent(folder / "records" / "x")
    with lock(folder) as check:
        run = open_served(folder, seed, described, accept_changed_code)
        yield KeptRecords(folder, run.meta["run"], Store(check))


def conversation_so_far(outcome: Outcome) -> Outcome:
    """The outcome of a message, as the pair's: its answer is the whole conversation, history and message."""
    request = outcome.request
    stimulus = request.row.parsed()
    assert isinstance(stimulus, ConversationStimulus)
    last = as_conversation(outcome).messages[0]
    history = [
        Message(
            turn=turn,
            speaker=line.speaker,
            agent=request.agent if line.speaker == last.speaker else PERSON,
            text=line.text,
        )
        for turn, line in enumerate(stimulus.history)
    ]
    answer = ConversationAnswer(messages=[*history, last], ended_early=len(history) + 1 < stimulus.exchanges)
    pair = request._replace(name=pair_with_person(request.agent, next_side(stimulus)))
    return outcome._replace(request=pair, answer=answer.model_dump_json().encode())


def pair_with_person(agent: str, side: int) -> str:
    """The name of an agent and a person as a pair ``a~b``; the agent is the one on ``side``, 0 or 1."""
    return f"{PERSON}~{agent}" if side else f"{agent}~{PERSON}"
