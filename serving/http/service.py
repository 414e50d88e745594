"""The served agents: loaded, bounded queues, orderly end."""

import asyncio
import logging
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from agents.answers import ConversationAnswer, Message
from agents.contract import Agent
from agents.errors import AgentStoppedError, AnswerError, ClusterError, InputError, UnavailableError
from agents.stimuli import AttentionStimulus, ConversationStimulus, Stimulus, canonical, parse_row
from serving.conversations.dialogue import Dialogue
from serving.conversations.scenario import as_conversation, next_side, next_turn
from serving.http.errors import ApiError, agent_failed, failure, quotes_others
from serving.http.kept_records import KeptRecords
from serving.http.monitoring import Metrics
from serving.runs.records import RecordHeader
from serving.runs.run import PERSON
from serving.runs.run_json import run_entry
from serving.scheduling.cluster import Cluster
from serving.scheduling.interrupts import declare_answers_here
from serving.scheduling.recovery import describe
from serving.scheduling.scheduler import ReplicaPool, Scheduler, WorkerOptions
from serving.scheduling.tasks import cancel
from serving.scheduling.this_process import ThisProcess
from serving.scheduling.worker import AgentRequest
from serving.sets.kinds import task_of

log = logging.getLogger("turinglike.http")
LOGGED = "the server's log says why"


@dataclass(slots=True, kw_only=True)
class ServeOptions(WorkerOptions):
    """``queue``: an agent's unfinished answers; ``deadline``: seconds per answer; ``lazy``: load agents on use."""

    seed: int = 0
    replicas: int | None = 1
    queue: int = 256
    deadline: float = 120.0
    lazy: bool = False


class _CountingScheduler(Scheduler):
    def __init__(self, run_seed: int, metrics: Metrics) -> None:
        super().__init__(run_seed)
        self._metrics = metrics

    async def answer(self, agent: str, stimulus: Stimulus, sample: int = 0, **more: Any) -> AgentRequest:
        try:
            item = await super().answer(agent, stimulus, sample, **more)
        except (AnswerError, AgentStoppedError):
            self._metrics.unanswered(agent)
            raise
        self._metrics.answered(agent, item)
        return item


class Service:
    """Use as ``await start()``, :meth:`answer`, :meth:`record`, ``await close()``. Raises UnavailableError."""

    def __init__(
        self, options: ServeOptions, agents: Mapping[str, Agent[Any]], kept: KeptRecords | None = None
    ) -> None:
        self.options = options
        self.agents = agents
        self.metrics = Metrics(agents)
        self.scheduler: Scheduler = _CountingScheduler(options.seed, self.metrics)
        self.draining = False
        self._queued: Counter[str] = Counter()
        self._errors = {name: lacking for name, agent in agents.items() if (lacking := agent.missing()) is not None}
        if len(self._errors) == len(agents):
            raise UnavailableError("; ".join(f"agent {name}: {lacking}" for name, lacking in self._errors.items()))
        self._usable = {name: agent for name, agent in agents.items() if name not in self._errors}
        self._loading: dict[str, asyncio.Task[None]] = {}
        here = options.address is None and all(agent.declaration().is_elsewhere for agent in self._usable.values())
        self._cluster = ThisProcess.of(agents, options.device) if here else Cluster(options.address)
        if here:
            declare_answers_here()
        self._folder = tempfile.TemporaryDirectory(prefix="turinglike-serve-")
        self._replicas: ReplicaPool | None = None
        self.metrics.watch(self._queued.__getitem__, lambda name: self._state(name)["state"] == "ready")
        self._kept = kept
        run = secrets.token_hex(6) if kept is None else kept.run
        self.headers: dict[str, RecordHeader] = {}
        for name, agent in agents.items():
            self.headers[name] = RecordHeader.of(run, run_entry([(options.entries[name], agent)]))

    async def start(self, say: Callable[[str], None] = lambda text: None) -> None:
        """Start workers and, unless lazy, load agents. Raises ClusterError, UnavailableError and InputError."""
        for name, lacking in self._errors.items():
            _log_failed(name, lacking)
        await self.start_workers(say)
        if not self.options.lazy:
            for name in self._usable:
                self._begin(name)

    async def watch(self) -> None:
        """Never returns; raises ClusterError when Ray has died."""
        try:
            await self._cluster.watch()
        except ClusterError:
            raise ClusterError("a process of Ray's died, and the agents with it: start the server again") from None

    async def close(self) -> None:
        self.draining = True
        await cancel(*self._loading.values())
        if self._replicas is not None:
            await self._replicas.close()
        await self._cluster.stop()
        self._folder.cleanup()

    # loading

    async def start_workers(self, say: Callable[[str], None]) -> None:
        """Start or join Ray if needed; plan what fits."""
        if isinstance(self._cluster, Cluster):
            say("starting Ray")
        await self._cluster.start(say)
        self._replicas = ReplicaPool(
            self._cluster, self.scheduler, self._usable, self.options, self._folder.name, breaker=False
        )
        self._replicas.fit([tuple(self._usable)], lambda name: 1 << 30)

    async def load(self, name: str) -> None:
        """Return when the agent is loaded. Raises its error."""
        assert self._replicas is not None, "start_workers() first"
        await self._replicas.load(name)

    def _begin(self, name: str) -> asyncio.Task[None]:
        if name not in self._loading:
            self._loading[name] = asyncio.create_task(self._load(name))
        return self._loading[name]

    async def _load(self, name: str) -> None:
        try:
            await self.load(name)
        except (InputError, UnavailableError) as error:
            self._errors[name] = str(error)
            _log_failed(name, str(error))
        except Exception as error:  # in the words of libraries
            self._errors[name] = f"could not be loaded; {LOGGED}"
            _log_failed(name, str(error) if isinstance(error, AgentStoppedError) else describe(error))

    async def loaded(self, name: str) -> float:
        """Await the agent; returns the seconds left for its answer. Raises ApiError."""
        if name in self.scheduler.dispatchers and self._state(name)["state"] != "loading":
            return self.options.deadline
        loop = asyncio.get_running_loop()
        until = loop.time() + self.options.deadline
        try:
            async with asyncio.timeout_at(until):
                await asyncio.shield(self._begin(name))
        except TimeoutError:
            raise ApiError(503, "loading", f"agent {name} is being loaded", headers={"retry-after": "10"}) from None
        if self._state(name)["state"] == "failed":
            raise agent_failed(name, "could not be loaded")
        return max(0.0, until - loop.time())

    def states(self) -> dict[str, dict[str, Any]]:
        """Each agent's ``state``, and ``error`` if it failed."""
        return {name: self._state(name) for name in self.agents}

    def _state(self, name: str) -> dict[str, Any]:
        dispatcher = self.scheduler.dispatchers.get(name)
        error = self._errors.get(name) or (
            f"has stopped; {LOGGED}" if dispatcher is not None and dispatcher.stopped else None
        )
        if error is not None:
            return {"state": "failed", "error": error}
        if dispatcher is not None and dispatcher.provenance is not None:
            return {"state": "ready" if dispatcher.loaded_workers else "restarting"}
        return {"state": "loading" if name in self._loading else "not loaded"}

    @property
    def ready(self) -> bool:
        """Whether nothing is being loaded and an agent is usable."""
        states = {about["state"] for about in self.states().values()}
        return not self.draining and "loading" not in states and not states.isdisjoint({"ready", "not loaded"})

    # the queue

    def waiting(self) -> dict[str, int]:
        return {name: self._queued[name] for name in self.agents}

    def check_queue(self, name: str, count: int = 1) -> None:
        """Raises ApiError: 429 if ``count`` more do not fit, 503 if the agent cannot answer."""
        self.agent(name)
        if self.draining:
            raise ApiError(503, "shutting_down", "this server is ending", headers={"retry-after": "30"})
        if self._state(name)["state"] == "failed":
            raise agent_failed(name, "is not available")
        if self._queued[name] + count > self.options.queue:
            self.metrics.refused(name)
            raise ApiError(429, "queue_full", f"agent {name} has as much to do as it may", headers={"retry-after": "5"})

    @contextmanager
    def queued(self, name: str, count: int = 1) -> Iterator[None]:
        """Count answers as unfinished during the block. Raises as :meth:`check_queue`."""
        self.check_queue(name, count)
        self._queued[name] += count
        try:
            yield
        finally:
            self._queued[name] -= count

    # answers

    def agent(self, name: str) -> Agent[Any]:
        """The agent of that name. Raises ApiError."""
        agent = self.agents.get(name)
        if agent is None:
            raise ApiError(404, "unknown_agent", "no such agent is served here; GET /agents lists them")
        return agent

    def check(self, name: str, stimulus: Stimulus) -> None:
        """Raises ApiError for an unfit stimulus."""
        agent = self.agent(name)
        declared = agent.declaration()
        if stimulus.task not in declared.tasks:
            raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(declared.tasks)}, not {stimulus.task}")
        if isinstance(stimulus, AttentionStimulus) and stimulus.mode not in declared.modes:
            raise ApiError(422, "wrong_task", f"agent {name} answers mode {', '.join(declared.modes)} only")

    async def answer(
        self,
        name: str,
        stimulus: Stimulus,
        *,
        files: Mapping[str, bytes] | None = None,
        sample: int = 0,
        seed: int | None = None,
        say: Callable[[str], None] | None = None,
        keep: bool = True,
    ) -> AgentRequest:
        """An answer already :meth:`queued`, or a conversation's next message. Raises ApiError.

        ``say`` gets pieces of its text, unless it must be kept first. Without ``keep`` no record is kept of it."""
        self.check(name, stimulus)
        deadline = await self.loaded(name)
        kept_in = self._kept if keep else None
        turn: int | None = None
        options: Mapping[str, Any] | None = None
        if isinstance(stimulus, ConversationStimulus):
            turn, options = next_turn(stimulus)
        try:
            item = await self.scheduler.answer(
                name,
                stimulus,
                sample,
                seed=seed,
                turn=turn,
                files=files,
                options=options,
                deadline=deadline,
                say=say if kept_in is None else None,
            )
        except AnswerError:  # its time is over
            message = f"agent {name} had no answer in {self.options.deadline:g} s"
            raise ApiError(504, "deadline", message) from None
        except AgentStoppedError as error:
            _log_failed(name, str(error))
            raise agent_failed(name, "has stopped") from None
        if kept_in is not None:
            kept = self._in_full(item)
            await kept_in.keep(kept.name or kept.agent, self._line(kept), item.row)
        elif self._kept is not None:
            self.metrics.not_kept(name)
            log.info("answer", extra={"about": {"agent": name, "not_kept": "as its request asked"}})
        return item

    async def keep(self, dialogue: Dialogue) -> None:
        """Write a conversation's record if records are kept. Raises ApiError."""
        if self._kept is not None:
            record = await dialogue.record(self.headers[dialogue.agent])
            await self._kept.keep(_pair(dialogue.agent, 1 - dialogue.person), record)

    def record(self, item: AgentRequest) -> bytes:
        """The item's line of JSON, without a library's failure message."""
        if item.error is not None and quotes_others(item.error[0]):
            code, message = item.error
            log.error("answer", extra={"about": {"agent": item.agent, "code": code, "message": message}})
        return self._line(item)

    def _line(self, item: AgentRequest) -> bytes:
        if item.error is not None and quotes_others(item.error[0]):
            item = replace(item, error=(item.error[0], failure(item.agent, item.error[0]).detail))
        task = self._task(item)
        if task == "conversation" and item.answer is not None and not item.name:
            item = replace(item, answer=as_conversation(item).model_dump_json().encode())
        return self.headers[item.agent].line(item, task)

    def _task(self, item: AgentRequest) -> str:
        tasks = self.agents[item.agent].declaration().tasks
        return tasks[0] if len(tasks) == 1 else task_of(item.row)

    def _in_full(self, item: AgentRequest) -> AgentRequest:
        if self._task(item) != "conversation" or item.answer is None:
            return item
        stimulus = parse_row(item.row)
        assert isinstance(stimulus, ConversationStimulus)
        last = as_conversation(item).messages[0]
        history = [
            Message(
                turn=turn,
                speaker=line.speaker,
                agent=item.agent if line.speaker == last.speaker else PERSON,
                text=line.text,
            )
            for turn, line in enumerate(stimulus.history)
        ]
        answer = ConversationAnswer(messages=[*history, last], ended_early=len(history) + 1 < stimulus.exchanges)
        return replace(item, name=_pair(item.agent, next_side(stimulus)), answer=answer.model_dump_json().encode())

    async def stream(
        self,
        name: str,
        each: Iterable[tuple[Stimulus, Mapping[str, bytes] | None, int]],
        seed: int | None,
        keep: bool = True,
    ) -> AsyncGenerator[AgentRequest, None]:
        """Answers as they are ready, failed if late; takes at most half of the queue, at least a place."""
        source = iter(each)
        share = max(1, self.options.queue // 2)
        tasks: set[asyncio.Task[AgentRequest]] = set()
        try:
            while True:
                while not tasks or (len(tasks) < share and self._queued[name] < self.options.queue):
                    request = next(source, None)
                    if request is None:
                        break
                    self._queued[name] += 1
                    task = asyncio.create_task(self._or_failed(name, *request, seed, keep))
                    task.add_done_callback(lambda task: self._queued.subtract([name]))
                    tasks.add(task)
                if not tasks:
                    return
                finished, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    yield task.result()
        finally:
            await cancel(*tasks)

    async def _or_failed(
        self,
        name: str,
        stimulus: Stimulus,
        files: Mapping[str, bytes] | None,
        sample: int,
        seed: int | None,
        keep: bool,
    ) -> AgentRequest:
        try:
            return await self.answer(name, stimulus, files=files, sample=sample, seed=seed, keep=keep)
        except ApiError as error:
            item = AgentRequest(
                name, canonical(stimulus), stimulus.id, sample, self.options.seed if seed is None else seed
            )
            item.draw_seed()
            item.status = "failed"
            item.error = (error.code, error.detail)
            return item


def _log_failed(name: str, why: str) -> None:
    log.error("agent", extra={"about": {"agent": name, "failed": why}})


def _pair(agent: str, side: int) -> str:
    return f"{PERSON}~{agent}" if side else f"{agent}~{PERSON}"
