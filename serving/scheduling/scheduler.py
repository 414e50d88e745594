"""The scheduler, by which files, HTTP requests and conversations share batches, filters, attempts and recovery; and the
pool that loads agents on workers."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agents.capabilities import Keyed, SeveralGPUs, device_bytes
from agents.contract import Agent, Entry
from agents.errors import AgentStoppedError, AnswerError, UnavailableError
from serving.scheduling.cluster import Cluster
from serving.scheduling.dispatch import Dispatcher, ReplicaWorker
from serving.scheduling.placement import (
    CONTEXT,
    Admission,
    DeviceChoice,
    Need,
    Place,
    fits,
    fitting_replicas,
    gpu_share,
    most_replicas,
    sizes,
)
from serving.scheduling.request import Outcome, Request
from serving.scheduling.tasks import cancel
from serving.scheduling.this_process import ThisProcess
from serving.scheduling.under_way import UnderWay
from serving.scheduling.worker import WorkerSpec

log = logging.getLogger("turinglike.scheduling")


class Observer(Protocol):
    """Hears what becomes of each request of :meth:`Scheduler.answer`."""

    def answered(self, outcome: Outcome) -> None:
        """A request has an outcome, which may be a failure."""

    def unanswered(self, agent: str) -> None:
        """A request has none: its deadline is over, or its agent has stopped."""


class Scheduler:
    """Hands requests to the dispatchers of their agents, and their outcomes to whoever asked."""

    def __init__(self, run_seed: int = 0, observer: Observer | None = None) -> None:
        """``run_seed`` is for callers whose requests have no seed of their own. ``observer`` hears of all answers, such
        as a server's that it counts."""
        self.run_seed = run_seed
        self._observer = observer
        self.dispatchers: dict[str, Dispatcher] = {}
        self._orders = 0

    async def remove(self, name: str) -> None:
        """End an agent's workers; open requests come back unanswered."""
        if name in self.dispatchers:
            await self.dispatchers.pop(name).close()

    def next_order(self) -> int:
        """A number for ``Request.order`` after all that were given so far."""
        self._orders += 1
        return self._orders

    async def stream(self, requests: Iterable[Request]) -> AsyncGenerator[Outcome, None]:
        """Yield outcomes as they are ready, as fast as workers can answer. Raises AgentStoppedError.

        ``requests`` is read only as far as the workers need; whoever closes the generator asks no more."""
        finished: deque[tuple[UnderWay, Outcome]] = deque()
        wake = asyncio.Event()

        def deliver(under_way: UnderWay, outcome: Outcome) -> None:
            finished.append((under_way, outcome))
            wake.set()

        pending: set[UnderWay] = set()
        dispatchers: set[Dispatcher] = set()
        source = iter(requests)
        try:
            while True:
                for request in source:
                    under_way = UnderWay(request, deliver)
                    pending.add(under_way)
                    dispatcher = self._submit(under_way)
                    dispatchers.add(dispatcher)
                    if dispatcher.queued >= dispatcher.window:
                        break
                for dispatcher in dispatchers:
                    dispatcher.dispatch()
                if not pending:
                    return
                await wake.wait()
                wake.clear()
                while finished:
                    under_way, outcome = finished.popleft()
                    pending.discard(under_way)
                    if outcome.status == "unanswered":
                        raise self._why_unanswered(outcome.request.agent)
                    yield outcome
        finally:
            for under_way in pending:
                under_way.cancel()

    async def answer(self, request: Request) -> Outcome:
        """The outcome of one request. Raises AgentStoppedError, and AnswerError after the request's deadline."""
        try:
            outcome = await self._outcome(request)
        except (AnswerError, AgentStoppedError):
            if self._observer is not None:
                self._observer.unanswered(request.agent)
            raise
        if self._observer is not None:
            self._observer.answered(outcome)
        return outcome

    async def _outcome(self, request: Request) -> Outcome:
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def deliver(_: UnderWay, outcome: Outcome) -> None:
            if not answered.done():
                answered.set_result(outcome)

        under_way = UnderWay(request, deliver)
        self._submit(under_way).dispatch()
        try:
            async with asyncio.timeout(request.deadline):
                outcome = await answered
        except TimeoutError:
            raise AnswerError("deadline", f"no answer within {request.deadline:g} s") from None
        finally:
            under_way.cancel()
        if outcome.status == "unanswered":
            raise self._why_unanswered(request.agent)
        return outcome

    def _submit(self, under_way: UnderWay) -> Dispatcher:
        dispatcher = self._dispatcher(under_way.request.agent)
        under_way.order = under_way.request.order or self.next_order()
        dispatcher.submit(under_way)
        return dispatcher

    def _dispatcher(self, agent: str) -> Dispatcher:
        try:
            return self.dispatchers[agent]
        except KeyError:
            raise AgentStoppedError(f"agent {agent} is not loaded") from None

    def _why_unanswered(self, agent: str) -> AgentStoppedError:
        return self._dispatcher(agent).stopped or AgentStoppedError(f"agent {agent} was ended")

    async def close(self) -> None:
        """End all workers; open requests come back unanswered."""
        for name in list(self.dispatchers):
            await self.remove(name)


@dataclass(slots=True, kw_only=True)
class WorkerOptions:
    """The options of commands that load agents."""

    entries: Mapping[str, Entry]
    """The agents, by name."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Their settings, by name, where they are not the defaults."""
    replicas: int | None = None
    """How many workers an agent gets; None: as many as are useful."""
    batch_size: int | None = None
    """Stimuli that are answered at once; None: as the agent declares."""
    address: str | None = None
    """The Ray cluster's address; None: no cluster elsewhere."""
    device: DeviceChoice = "auto"
    """Where agents run: on a GPU if there is one ("auto"), or as said."""
    timeout: float = 600.0
    """Seconds that a batch may take."""
    load_timeout: float = 1800.0
    """Seconds that loading may take."""


@dataclass(slots=True)
class ReplicaPool:
    """Loads agents on a started cluster, and registers their dispatchers with the scheduler."""

    cluster: Cluster | ThisProcess
    """Where workers live."""
    scheduler: Scheduler
    """Gets the agents' dispatchers."""
    agents: Mapping[str, Agent[Any]]
    """The agents, made but not opened, by name."""
    options: WorkerOptions
    """Replicas, devices, timeouts."""
    root: str
    """The folder in which the paths of pictures begin."""
    breaker: bool = True
    """Whether an agent stops after many failures; a server's does not, because strangers may cause them."""
    admission: Admission = field(init=False)
    """Who is where; made by :meth:`fit`."""
    _loads: dict[str, asyncio.Task[None]] = field(init=False, default_factory=dict)
    _batch_sizes: dict[str, int] = field(init=False, default_factory=dict)  # of agents whose batches were halved

    def fit(self, groups: Iterable[Sequence[str]], batches: Callable[[str], int]) -> None:
        """Place agents, whose ``groups`` are loaded together; ``batches`` counts an agent's. Raises InputError for
        groups that can never fit, and UnavailableError without the wanted device."""
        nodes = self.cluster.nodes
        has_gpu = any(node.gpu_count for node in nodes)
        if self.options.device == "cuda" and not has_gpu:
            raise UnavailableError("device cuda: there is no GPU here; leave device out to run on the CPU")
        groups = [tuple(dict.fromkeys(group)) for group in groups]
        needs = self._needs(has_gpu)
        while not all(fits([needs[name] for name in group], nodes) for group in groups) and self._halve_batches(needs):
            needs = self._needs(has_gpu)
        if self.options.replicas is None:
            for name, need in needs.items():
                # A server's limit of calls at once is for all its workers.
                is_server = self.agents[name].declaration().batches_by_itself and not need.device_memory
                needs[name] = replace(need, replicas=1 if is_server else most_replicas(need, batches(name), nodes))
            needs = fitting_replicas(needs, groups, nodes)
        self.admission = Admission(nodes, needs, self.unload)
        self.admission.check(groups)

    def _needs(self, has_gpu: bool) -> dict[str, Need]:
        needs = {}
        replicas = self.options.replicas or 1
        for name, agent in self.agents.items():
            declared = agent.declaration()
            needs[name] = Need(name, declared.memory, replicas=replicas)
            if has_gpu and self.options.device != "cpu" and declared.device_memory > 0:
                self._spread(agent)
                declared = agent.declaration()
                memory = declared.memory if declared.memory_beside_gpu is None else declared.memory_beside_gpu
                largest = self.batch_size(name)
                on_gpu = device_bytes(agent, min(self.options.batch_size or largest, largest)) + CONTEXT
                needs[name] = Need(name, memory, on_gpu, replicas, declared.devices)
        return needs

    def _spread(self, agent: Agent[Any]) -> None:
        """Double the GPUs of an agent until it fits, where it can be spread."""
        if not isinstance(agent, SeveralGPUs):
            return
        declared = agent.declaration()
        size = self.batch_size(agent.name)
        most = min(declared.most_devices, max(node.gpu_count for node in self.cluster.nodes))
        each = max(node.gpu_memory for node in self.cluster.nodes if node.gpu_count)
        devices = declared.devices
        while 2 * devices <= most and device_bytes(agent, size) + CONTEXT > each:
            devices *= 2
            agent.use_devices(devices)

    def batch_size(self, name: str) -> int:
        """Stimuli in a batch of the agent at most: as many as it declares, or fewer where memory is short."""
        return self._batch_sizes.get(name) or self.agents[name].declaration().batch_size

    def _halve_batches(self, needs: Mapping[str, Need]) -> bool:
        """Halve the batches of agents on GPUs whose memory grows with them; returns whether there was one."""
        sizes = {name: self.batch_size(name) for name in self.agents if needs[name].device_memory}
        large = [
            name
            for name, size in sizes.items()
            if size > 1 and device_bytes(self.agents[name], size) > self.agents[name].declaration().device_memory
        ]
        for name in large:
            self._batch_sizes[name] = sizes[name] // 2
        return bool(large)

    async def load(self, name: str) -> None:
        """Load an agent, once. Raises AgentStoppedError."""
        if name not in self._loads:
            self._loads[name] = asyncio.create_task(self._load(name))
        await asyncio.shield(self._loads[name])

    async def unload(self, name: str) -> None:
        """End an agent's workers and free its places."""
        await self._end_loads(name)
        await self.scheduler.remove(name)
        left = {place for other, places in self.admission.places.items() if other != name for place in places}
        await self.cluster.keep_places(left)

    async def close(self) -> None:
        """End all agents' workers."""
        await self._end_loads(*self._loads)
        await self.scheduler.close()
        await self.cluster.keep_places(())

    async def _end_loads(self, *names: str) -> None:
        await cancel(*(self._loads.pop(name) for name in names if name in self._loads))

    async def _load(self, name: str) -> None:
        need = self.admission.needs[name]
        agent = self.agents[name]
        options = self.options
        nodes = self.cluster.nodes
        places = self.admission.places[name]
        # The keys that an agent reads; on a cluster they are where its owner has set them.
        keys = agent.environment() if isinstance(agent, Keyed) and not self.cluster.address else ()
        environment = {key: os.environ[key] for key in keys if key in os.environ}
        spec = WorkerSpec(options.entries[name], options.settings.get(name, {}), self.root, environment=environment)

        def threads(place: Place) -> int:
            return max(1, nodes[place.node].cpus // self.admission.workers_on(place.node))

        def make_worker(number: int) -> ReplicaWorker:
            place = places[number]  # also of a replacement
            node = nodes[place.node]
            here = replace(spec, threads=threads(place))
            resources = {"memory": float(need.memory)}
            if place.gpus:
                limit = self.admission.device_limit(name, place)
                fraction = (limit - CONTEXT) / node.gpu_memory if limit < node.gpu_memory else None
                here = replace(here, device="cuda:0", memory_fraction=fraction, devices=need.devices)
                resources = {"num_gpus": gpu_share(need, node.gpu_memory)}
            return self.cluster.worker(here, place, resources)

        dispatcher = Dispatcher(
            agent,
            make_worker,
            batch_size=options.batch_size or self.batch_size(name),
            timeout=options.timeout,
            load_timeout=options.load_timeout,
            breaker=self.breaker,
        )
        dispatcher.threads = threads(places[0])
        self.scheduler.dispatchers[name] = dispatcher
        each = sizes(need.memory, need.devices, need.device_memory)
        log.debug("%s: %d workers with %s each, batches of %d", name, len(places), each, dispatcher.batch_size)
        await dispatcher.start(need.replicas)
