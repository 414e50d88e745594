"""The served agents: loaded, each with a bounded queue, and ended in order."""

import asyncio
import logging
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agents.contract import Agent, Declaration
from agents.errors import AgentStoppedError, AnswerError, ClusterError, InputError, UnavailableError
from agents.stimuli import AttentionStimulus, ConversationStimulus, Stimulus
from serving.conversations.dialogue import Dialogue
from serving.conversations.scenario import as_recorded, next_turn
from serving.files.words import duration
from serving.http.errors import ApiError, agent_failed, failure, quotes_others
from serving.http.kept_records import KeptRecords
from serving.http.monitoring import Metrics
from serving.runs.records import RecordHeader
from serving.runs.run_json import run_entry
from serving.scheduling.cluster import Cluster
from serving.scheduling.interrupts import declare_answers_here
from serving.scheduling.recovery import describe_error
from serving.scheduling.request import Failure, Listener, Outcome, Request
from serving.scheduling.scheduler import ReplicaPool, Scheduler, WorkerOptions
from serving.scheduling.tasks import cancel
from serving.scheduling.this_process import ThisProcess
from serving.sets.stimulus_row import StimulusRow

log = logging.getLogger("turinglike.http")
LOGGED = "the server's log says why"  # what clients read instead of a library's words


@dataclass(slots=True, kw_only=True)
class ServeOptions(WorkerOptions):
    """The options of ``turinglike serve`` that concern agents and their workers."""

    seed: int = 0
    """The run's seed, for requests that give none."""
    replicas: int | None = 1
    """Workers for each agent."""
    queue: int = 256
    """The answers of one agent that may be unfinished at once."""
    deadline: float = 120.0
    """Seconds that an answer may take, with the loading of its agent."""
    lazy: bool = False
    """Whether an agent is loaded only when it is first asked."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of a request, and its record."""

    outcome: Outcome
    """What became of it."""
    record: bytes
    """The record as the client gets it, a line of JSON: a library's message of failure is not in it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places in an agent's queue. Whoever holds some may ask as many questions; :meth:`Service.queued` gives them."""

    service: "Service"
    """The service whose queue it is."""
    agent: str
    """The agent that is asked."""

    async def answer(
        self,
        row: StimulusRow,
        *,
        sample: int = 0,
        seed: int | None = None,
        listener: Listener | None = None,
        keep: bool = True,
    ) -> Answered:
        """An answer, or a conversation's next message. Raises ApiError.

        ``row`` is the stimulus with its pictures, ``seed`` the run's seed (None: the server's). ``listener`` gets the
        text as it grows, unless it must be kept first. Without ``keep`` no record is kept of it."""
        return await self.service.answer_queued(self.agent, row, sample, seed, listener, keep)


class Service:
    """The served agents. ``await`` :meth:`start`; then ask by :meth:`queued` or :meth:`stream`; ``await``
    :meth:`close`.

    ``agents`` are those of ``options.entries``, not loaded; ``kept`` is the run folder of ``--out``. Raises
    UnavailableError where none of them can run here.
    """

    def __init__(
        self, options: ServeOptions, agents: Mapping[str, Agent[Any]], kept: KeptRecords | None = None
    ) -> None:
        self.options = options
        self.agents = agents
        self.metrics = Metrics(agents)
        self.scheduler = Scheduler(options.seed, self.metrics)
        self.draining = False
        self._say: Callable[[str], None] = lambda text: None
        self._queued: Counter[str] = Counter()
        self._errors = {name: lacking for name, agent in agents.items() if (lacking := agent.missing()) is not None}
        if len(self._errors) == len(agents):
            raise UnavailableError("; ".join(f"agent {name}: {lacking}" for name, lacking in self._errors.items()))
        self._usable = {name: agent for name, agent in agents.items() if name not in self._errors}
        self._loading: dict[str, asyncio.Task[None]] = {}
        # Made once: each request looks at it.
        self._declared = {name: agent.declaration() for name, agent in agents.items()}
        here = options.address is None and all(self._declared[name].is_elsewhere for name in self._usable)
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
        """Start Ray or this process's worker, and begin to load the agents unless ``lazy``. ``say`` gets sentences on
        progress. Raises ClusterError, UnavailableError and InputError."""
        for name, lacking in self._errors.items():
            _log_failed(name, lacking)
        await self.start_workers(say)
        self._say = say
        if not self.options.lazy:
            for name in self._usable:
                self._begin(name)

    async def watch(self) -> None:
        """Wait until Ray dies, then raise ClusterError. It never returns."""
        try:
            await self._cluster.watch()
        except ClusterError:
            raise ClusterError("a process of Ray's died, and the agents with it: start the server again") from None

    async def close(self) -> None:
        """Take no more requests; end workers and Ray."""
        self.draining = True
        await cancel(*self._loading.values())
        if self._replicas is not None:
            await self._replicas.close()
        await self._cluster.stop()
        self._folder.cleanup()

    # loading

    async def start_workers(self, say: Callable[[str], None]) -> None:
        """Start or join Ray, if it is needed, and plan which workers fit where."""
        if isinstance(self._cluster, Cluster):
            say("starting Ray")
        await self._cluster.start(say)
        self._replicas = ReplicaPool(
            self._cluster, self.scheduler, self._usable, self.options, self._folder.name, breaker=False
        )
        self._replicas.fit([tuple(self._usable)], lambda name: 1 << 30)

    async def load(self, name: str) -> None:
        """Load an agent; return when it is loaded. Raises what its loading raises."""
        assert self._replicas is not None, "start_workers() first"
        await self._replicas.load(name)

    def _begin(self, name: str) -> asyncio.Task[None]:
        if name not in self._loading:
            self._loading[name] = asyncio.create_task(self._load(name))
        return self._loading[name]

    async def _load(self, name: str) -> None:
        began = time.monotonic()
        try:
            await self.load(name)
            self._say(f"{name} is loaded, after {duration(time.monotonic() - began)}")
        except (InputError, UnavailableError) as error:
            self._errors[name] = str(error)
            _log_failed(name, str(error))
        except Exception as error:  # in the words of libraries
            self._errors[name] = f"could not be loaded; {LOGGED}"
            _log_failed(name, str(error) if isinstance(error, AgentStoppedError) else describe_error(error))

    async def loaded(self, name: str) -> float:
        """Wait until an agent is loaded, and return the seconds that are left for its answer. Raises ApiError 503 where
        it is not loaded in time, or cannot be."""
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
        """By agent its "state" ("ready", "loading", "not loaded", "restarting" or "failed"), and the "error" of one
        that has failed."""
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
        states = {state["state"] for state in self.states().values()}
        return not self.draining and "loading" not in states and not states.isdisjoint({"ready", "not loaded"})

    # the queue

    def waiting(self) -> dict[str, int]:
        """How many answers are unfinished, by agent."""
        return {name: self._queued[name] for name in self.agents}

    def check_queue(self, name: str, count: int = 1) -> None:
        """Raises ApiError: 404 for an agent that is not served, 429 if ``count`` more answers do not fit into its
        queue, 503 if it cannot answer."""
        self.agent(name)
        if self.draining:
            raise ApiError(503, "shutting_down", "this server is ending", headers={"retry-after": "30"})
        if self._state(name)["state"] == "failed":
            raise agent_failed(name, "is not available")
        if self._queued[name] + count > self.options.queue:
            self.metrics.refused(name)
            raise ApiError(429, "queue_full", f"agent {name} has as much to do as it may", headers={"retry-after": "5"})

    @contextmanager
    def queued(self, name: str, count: int = 1) -> Iterator[Places]:
        """Hold ``count`` places in the agent's queue during the block. Raises as :meth:`check_queue`."""
        self.check_queue(name, count)
        self._queued[name] += count
        try:
            yield Places(self, name)
        finally:
            self._queued[name] -= count

    # answers

    def agent(self, name: str) -> Agent[Any]:
        """The agent of that name. Raises ApiError 404."""
        agent = self.agents.get(name)
        if agent is None:
            raise ApiError(404, "unknown_agent", "no such agent is served here; GET /agents lists them")
        return agent

    def declared(self, name: str) -> Declaration:
        """What the agent of that name declares. Raises ApiError 404."""
        self.agent(name)
        return self._declared[name]

    def check(self, name: str, stimulus: Stimulus) -> None:
        """Raises ApiError 422 for a stimulus whose task or mode the agent does not answer."""
        declared = self.declared(name)
        if stimulus.task not in declared.tasks:
            raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(declared.tasks)}, not {stimulus.task}")
        if isinstance(stimulus, AttentionStimulus) and stimulus.mode not in declared.modes:
            raise ApiError(422, "wrong_task", f"agent {name} answers mode {', '.join(declared.modes)} only")

    async def answer_queued(
        self, name: str, row: StimulusRow, sample: int, seed: int | None, listener: Listener | None, keep: bool
    ) -> Answered:
        """The answer to a request that has a place in the queue; see :class:`Places`."""
        stimulus = row.parsed()
        self.check(name, stimulus)
        deadline = await self.loaded(name)
        kept_in = self._kept if keep else None
        request = Request(
            agent=name,
            row=row,
            sample=sample,
            run_seed=self.options.seed if seed is None else seed,
            deadline=deadline,
            listener=listener if kept_in is None else None,
        )
        if isinstance(stimulus, ConversationStimulus):
            turn, options = next_turn(stimulus)
            request = request._replace(turn=turn, options=options)
        try:
            outcome = await self.scheduler.answer(request)
        except AnswerError:  # its time is over
            message = f"agent {name} had no answer in {self.options.deadline:g} s"
            raise ApiError(504, "deadline", message) from None
        except AgentStoppedError as error:
            _log_failed(name, str(error))
            raise agent_failed(name, "has stopped") from None
        answered = self.answered(outcome)
        if kept_in is not None:
            await kept_in.keep_answer(outcome, answered.record, self.headers[name])
        elif self._kept is not None:
            self.metrics.not_kept(name)
            log.info("answer", extra={"about": {"agent": name, "not_kept": "as its request asked"}})
        return answered

    def answered(self, outcome: Outcome) -> Answered:
        """An outcome with its record. What a library says of a failure stands in the server's log alone."""
        error = outcome.error
        shown = outcome
        if error is not None and quotes_others(error.code):
            agent = outcome.request.agent
            log.error("answer", extra={"about": {"agent": agent, "code": error.code, "message": error.message}})
            shown = outcome._replace(error=Failure(error.code, failure(agent, error.code).detail))
        return Answered(outcome, self.headers[outcome.request.agent].line(as_recorded(shown)))

    async def keep(self, dialogue: Dialogue) -> None:
        """Write the record of a conversation so far, if records are kept. Raises ApiError 503 where that fails."""
        if self._kept is not None:
            await self._kept.keep_dialogue(dialogue, self.headers[dialogue.agent])

    async def stream(
        self,
        name: str,
        questions: Iterable[tuple[StimulusRow, int]],
        seed: int | None,
        keep: bool = True,
    ) -> AsyncGenerator[Answered, None]:
        """The answers to (row of a stimulus, sample), as they are ready; a failure is an answer, too.

        It takes at most half of the agent's queue, and at least one place, so that other requests are answered
        meanwhile.
        """
        source = iter(questions)
        share = max(1, self.options.queue // 2)
        tasks: set[asyncio.Task[Answered]] = set()
        try:
            while True:
                while not tasks or (len(tasks) < share and self._queued[name] < self.options.queue):
                    request = next(source, None)
                    if request is None:
                        break
                    self._queued[name] += 1
                    row, sample = request
                    task = asyncio.create_task(self._or_failed(name, row, sample, seed, keep))
                    task.add_done_callback(lambda task: self._queued.subtract([name]))
                    tasks.add(task)
                if not tasks:
                    return
                finished, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    yield task.result()
        finally:
            await cancel(*tasks)

    async def _or_failed(self, name: str, row: StimulusRow, sample: int, seed: int | None, keep: bool) -> Answered:
        try:
            return await self.answer_queued(name, row, sample, seed, None, keep)
        except ApiError as error:
            run_seed = self.options.seed if seed is None else seed
            request = Request(agent=name, row=row, sample=sample, run_seed=run_seed)
            return self.answered(Outcome.failed(request, error.code, error.detail))


def _log_failed(name: str, why: str) -> None:
    log.error("agent", extra={"about": {"agent": name, "failed": why}})
