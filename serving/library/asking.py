"""Answers of agents in this process, without Ray: for Python programs, for notebooks and for ``turinglike ask``. ::

    records = answer("mmcq", images=["a.jpg", "b.jpg"])
    with load(["gbvs", "center"]) as agents:
        agents.answer("stimuli.jsonl", samples=3)

The scheduler runs in a thread with an event loop of its own, because a notebook's event loop is already running.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack, get_args

from agents.catalogue import pair as pair_of
from agents.catalogue.selection import checked_agents, resolve
from agents.errors import InputError
from agents.stimuli import ConversationStimulus
from serving.conversations.scenario import as_recorded, next_turn
from serving.generation.assignments import ConversingPair, check_usage, nothing_to_answer, run_entries
from serving.library.typed_records import Records, TypedRecord, typed
from serving.runs.records import RecordHeader
from serving.scheduling.placement import DeviceChoice
from serving.scheduling.request import Outcome, Request
from serving.scheduling.scheduler import ReplicaPool, Scheduler, WorkerOptions
from serving.scheduling.tasks import all_of
from serving.scheduling.this_process import ThisProcess
from serving.sets.checked_stimuli import CheckedStimuli, check_stimuli
from serving.sets.kinds import is_asked, tasks_asked
from serving.sets.stimulus_row import StimulusRow

T = TypeVar("T")
SettingsByAgent = Mapping[str, Mapping[str, Any]]
"""Settings by agent: ``{"mmcq": {"colors": 8}}``."""
FOREVER = 7 * 24 * 3600.0  # seconds: only the caller ends what is computed in this process
PROBLEMS_SHOWN = 50  # in a traceback


class GivenStimuli(TypedDict, total=False):
    """What agents answer, where no set is given: one of ``images``, ``cues``, ``topics`` and ``messages``."""

    images: Any
    """A path, bytes, a Pillow image or an array; a list of them; or a folder."""
    cues: str | Iterable[str] | None
    """Words to associate with."""
    topics: str | Iterable[str] | None
    """What a pair of agents talks about."""
    messages: str | Iterable[str] | None
    """What a person says; the agent replies with the next message."""
    task: str | None
    """The task, by its full or short name, where agents and stimuli leave a choice."""
    samples: int
    """Answers of each agent to each stimulus (1)."""
    seed: int
    """The run's seed (0), from which the seed of each answer follows."""


def answer(
    agents: str | Sequence[str],
    stimuli: str | Path | Iterable[Any] | None = None,
    *,
    settings: SettingsByAgent | None = None,
    config: str | Path | None = None,
    batch_size: int | None = None,
    device: DeviceChoice = "auto",
    **material: Unpack[GivenStimuli],
) -> Records:
    """Ask one or several agents, or pairs ``a~b`` that converse, and return their records. ::

        answer("mmcq", images="a.jpg")[0].answer.color
        answer(["gbvs", "center"], "stimuli.jsonl", samples=3, seed=7)
        answer("eliza", messages="My cat is sad.")[0].text()

    The records come agent by agent, in the order of the stimuli. They are those of ``turinglike generate`` for the same
    stimuli, seed and settings; only times differ.

    - ``stimuli``: the path of a set, or its rows as mappings. In their place, and for ``samples`` and ``seed``, see
      :class:`GivenStimuli`.
    - ``settings``: settings by agent, ``{"mmcq": {"colors": 8}}``; ``config``: a TOML file of them and of variants.
    - ``batch_size``: stimuli in a batch; None: as each agent says. It changes the speed, not the answers.
    - ``device``: "auto" (a GPU where there is one), "cpu" or "cuda".

    Raises InputError with all faults before anything is loaded, UnavailableError where an agent lacks something on this
    machine, AgentStoppedError for one that keeps failing. A single stimulus that fails has a record with the status
    "failed".
    """
    with _explained():
        loaded = Agents(agents, settings=settings, config=config, batch_size=batch_size, device=device)
        checked = loaded.check(stimuli, **material)
        with loaded:
            return loaded.answer_checked(checked)


def load(
    agents: str | Sequence[str],
    *,
    settings: SettingsByAgent | None = None,
    config: str | Path | None = None,
    batch_size: int | None = None,
    device: DeviceChoice = "auto",
) -> Agents:
    """Load agents, and keep them loaded until :meth:`Agents.close`. Arguments and errors are those of :func:`answer`.
    ::

        with load(["gbvs", "center"], device="cpu") as agents:
            agents.answer(images="a.jpg")
            agents.answer(images="b.jpg")
    """
    with _explained():
        return Agents(agents, settings=settings, config=config, batch_size=batch_size, device=device).start()


@dataclass(frozen=True, slots=True)
class Query:
    """Checked stimuli, ready to be asked."""

    stimuli: CheckedStimuli
    """What is asked, with the pictures' bytes where they are in no file."""
    samples: int
    """Answers of each agent to each stimulus."""
    seed: int
    """The run's seed."""


class Agents:
    """Agents that this process loads: a context manager, or :meth:`start` and :meth:`close`.

    The arguments are those of :func:`answer`; ``assignments`` are settings as the command line gives them,
    "agent.field=value". ``names`` are the agents and pairs that are asked, ``entries`` the agents' entries of the
    catalogue. Raises InputError.
    """

    def __init__(
        self,
        agents: str | Sequence[str],
        *,
        settings: SettingsByAgent | None = None,
        config: str | Path | None = None,
        assignments: Sequence[str] = (),
        batch_size: int | None = None,
        device: DeviceChoice = "auto",
    ) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        names = [agents] if isinstance(agents, str) else [*agents]
        if not names or len(set(names)) != len(names):
            raise InputError("name at least one agent, and each once")
        if device not in get_args(DeviceChoice):
            raise InputError(f"device must be one of {', '.join(get_args(DeviceChoice))}, not {device!r}")
        selection = resolve(names, assignments, None if config is None else Path(config), "agents")
        self.names = selection.names
        self.entries = selection.entries
        by_name = {selection.plain.get(name, name): values for name, values in (settings or {}).items()}
        self.settings = {**selection.settings, **by_name}
        strangers = self.settings.keys() - self.entries.keys() - {*self.names}
        if strangers:
            raise InputError(f"settings are given for agents that are not asked: {', '.join(sorted(strangers))}")
        self._agents = checked_agents(self.entries, self.settings)
        self._run_entries = run_entries(self.names, self.entries, self._agents, self.settings)
        check_usage(self.names, self.entries, self._agents, 1)
        run = secrets.token_hex(6)
        self._headers = {name: RecordHeader.of(run, entry) for name, entry in self._run_entries.items()}
        self._process = ThisProcess.of(self._agents, device)
        self._scheduler = Scheduler()
        self._options = WorkerOptions(
            entries=self.entries,
            settings=self.settings,
            replicas=1,
            batch_size=batch_size,
            device=device,
            timeout=FOREVER,
            load_timeout=FOREVER,
        )
        self._pool: ReplicaPool | None = None
        self._answering = threading.Lock()

    def start(self) -> Self:
        """Load all agents, if they are not loaded; returns itself. Raises UnavailableError, InputError and
        AgentStoppedError."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=[self._loop], name="turinglike", daemon=True).start()
            try:
                self._wait_for(self._load())
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Unload the agents. :meth:`start` loads them again."""
        ended = self._end()
        if ended is not None:
            ended.result()

    def _end(self) -> Future[None] | None:
        loop = self._loop
        self._loop = None
        if loop is None:
            return None
        ended = asyncio.run_coroutine_threadsafe(self._close(), loop)
        ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        return ended

    async def _close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
        await self._process.stop()

    def __del__(self) -> None:
        self._end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, stimuli: str | Path | Iterable[Any] | None = None, **material: Unpack[GivenStimuli]) -> Records:
        """The records of the loaded agents, as :func:`answer` gives them. Calls from several threads take turns."""
        with _explained():
            return self.answer_checked(self.check(stimuli, **material))

    def check(
        self,
        stimuli: str | Path | Iterable[Any] | None,
        images: Any = None,
        cues: str | Iterable[str] | None = None,
        topics: str | Iterable[str] | None = None,
        messages: str | Iterable[str] | None = None,
        task: str | None = None,
        samples: int = 1,
        seed: int = 0,
    ) -> Query:
        """Check what is to be asked, before anything is loaded. Raises InputError with all faults; also where an agent
        has nothing to answer."""
        if not 0 <= seed < 2**53 or samples < 1:
            raise InputError(f"a seed is from 0 to 2**53 - 1, not {seed}, and samples are from 1, not {samples}")
        check_usage(self.names, self.entries, self._agents, samples)
        tasks = {name: tasks_asked(entry) for name, entry in self._run_entries.items()}
        checked = check_stimuli(stimuli, images, cues, topics, messages, task, tasks)
        kinds = checked.kinds()
        problems = [
            nothing_to_answer(checked.where, name, entry, kinds)
            for name, entry in self._run_entries.items()
            if not any(is_asked(entry, kind) for kind in kinds)
        ]
        if problems:
            raise InputError("agents have nothing to answer here: leave them out, or ask another task", problems)
        return Query(checked, samples, seed)

    def answer_checked(self, query: Query) -> Records:
        """The records of what :meth:`check` has checked. The agents must be loaded."""
        with self._answering:
            return self._wait_for(self._answer(query))

    # in the thread of the scheduler

    async def _load(self) -> None:
        await self._process.start()
        pool = ReplicaPool(self._process, self._scheduler, self._agents, self._options, "")
        pool.fit([[*self.entries]], lambda name: 1)
        self._pool = pool
        await all_of(pool.load(name) for name in self.entries)

    async def _answer(self, query: Query) -> Records:
        by_agent = await all_of(self._answer_by(name, query) for name in self.names)
        return Records(record for records in by_agent for record in records)

    async def _answer_by(self, name: str, query: Query) -> list[TypedRecord]:
        rows = [row for row in query.stimuli.stimuli if is_asked(self._run_entries[name], row.kind)]
        requests = [self._request(name, row, sample, query.seed) for row in rows for sample in range(query.samples)]
        if "~" in name:
            pair = ConversingPair(name, self._agents, self.settings.get(name))
            outcomes = await all_of(pair.conversation(request).run(self._scheduler) for request in requests)
        else:
            async with aclosing(self._scheduler.stream(requests)) as stream:
                outcomes = [outcome async for outcome in stream]
        outcomes.sort(key=lambda outcome: (outcome.request.row.position, outcome.request.sample))
        return [self._record(name, outcome) for outcome in outcomes]

    def _request(self, name: str, row: StimulusRow, sample: int, seed: int) -> Request:
        request = Request(agent=name, row=row, name=name, sample=sample, run_seed=seed)
        if "~" in name:
            return request._replace(agent=pair_of(name)[0], order=self._scheduler.next_order())
        if isinstance(stimulus := row.parsed(), ConversationStimulus):  # with a person, whom the agent answers
            turn, options = next_turn(stimulus)
            return request._replace(turn=turn, options=options)
        return request

    def _record(self, name: str, outcome: Outcome) -> TypedRecord:
        return typed(self._headers[name].line(as_recorded(outcome)), outcome.request.row.parsed)

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise InputError("these agents were closed; load them again")
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        if not error.problems:
            raise
        more = len(error.problems) - PROBLEMS_SHOWN
        problems = [str(problem) for problem in error.problems[:PROBLEMS_SHOWN]]
        if more > 0:
            problems.append(f"and {more} more")
        raise InputError(f"{error}: {'; '.join(problems)}", error.problems) from None
