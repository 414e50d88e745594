"""The scheduler, by which files, HTTP requests and conversations share batches, filters, attempts and recovery; and the
pool that loads agents on workers."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents import stimuli
from agents.capabilities import Keyed, SeveralGPUs, device_bytes
from agents.contract import Agent, Entry
from agents.errors import AgentStoppedError, AnswerError, UnavailableError
from agents.stimuli import Stimulus
from serving.scheduling.cluster import Cluster
from serving.scheduling.dispatch import Dispatcher, ReplicaWorker
from serving.scheduling.placement import (
    CONTEXT,
    Admission,
    DeviceChoice,
    Need,
    fits,
    fitting_replicas,
    gpu_share,
    most_replicas,
    sizes,
)
from serving.scheduling.tasks import cancel
from serving.scheduling.this_process import ThisProcess
from serving.scheduling.worker import AgentRequest, WorkerSpec

log = logging.getLogger("turinglike.scheduling")


class Scheduler:
    def __init__(self, run_seed: int = 0) -> None:
        self.run_seed = run_seed
        self.dispatchers: dict[str, Dispatcher] = {}
        self._orders = 0

    async def remove(self, name: str) -> None:
        """End an agent's workers; open requests come back unanswered."""
        if name in self.dispatchers:
            await self.dispatchers.pop(name).close()

    def next_order(self) -> int:
        self._orders += 1
        return self._orders

    async def stream(self, requests: Iterable[AgentRequest]) -> AsyncGenerator[AgentRequest, None]:
        """Yield requests as they are answered, as fast as workers can use them. Raises AgentStoppedError."""
        finished: deque[AgentRequest] = deque()
        wake = asyncio.Event()

        def deliver(request: AgentRequest) -> None:
            finished.append(request)
            wake.set()

        pending: set[AgentRequest] = set()
        dispatchers: set[Dispatcher] = set()
        source = iter(requests)
        try:
            while True:
                for request in source:
                    request.deliver = deliver
                    pending.add(request)
                    dispatcher = self._submit(request)
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
                    request = finished.popleft()
                    pending.discard(request)
                    if request.status == "unanswered":
                        raise self._why_unanswered(request.agent)
                    yield request
        finally:
            for request in pending:
                request.cancelled = True

    async def answer(
        self,
        agent: str,
        stimulus: Stimulus,
        sample: int = 0,
        *,
        seed: int | None = None,
        turn: int | None = None,
        options: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        name: str = "",
        order: int | None = None,
        first_attempt: int = 0,
        files: Mapping[str, bytes] | None = None,
        failed_before: str = "",
        say: Callable[[str], None] | None = None,
    ) -> AgentRequest:
        """Answer a stimulus; ``seed`` is the run's. Raises AgentStoppedError, and AnswerError after ``deadline`` s."""
        answered: asyncio.Future[AgentRequest] = asyncio.get_running_loop().create_future()
        request = AgentRequest(
            agent,
            stimuli.canonical(stimulus),
            stimulus.id,
            sample,
            self.run_seed if seed is None else seed,
            name,
            turn,
            options,
            order or 0,
            lambda request: None if answered.done() else answered.set_result(request),
            files,
            failed_before,
            say,
            first_attempt=first_attempt,
        )
        self._submit(request).dispatch()
        try:
            async with asyncio.timeout(deadline):
                await answered
        except TimeoutError:
            raise AnswerError("deadline", f"no answer within {deadline:g} s") from None
        finally:  # what nobody waits for may stay in the queue, but not its images
            request.cancelled = True
            request.deliver = None
            request.files = None
        if request.status == "unanswered":
            raise self._why_unanswered(agent)
        return request

    def _submit(self, request: AgentRequest) -> Dispatcher:
        dispatcher = self._dispatcher(request.agent)
        request.order = request.order or self.next_order()
        dispatcher.submit(request)
        return dispatcher

    def _dispatcher(self, agent: str) -> Dispatcher:
        try:
            return self.dispatchers[agent]
        except KeyError:
            raise AgentStoppedError(f"agent {agent} is not loaded") from None

    def _why_unanswered(self, agent: str) -> AgentStoppedError:
        return self._dispatcher(agent).stopped or AgentStoppedError(f"agent {agent} was ended")

    async def close(self) -> None:
        for name in list(self.dispatchers):
            await self.remove(name)


@dataclass(slots=True, kw_only=True)
class WorkerOptions:
    """The options of commands that load agents. ``replicas`` None: as many as are useful; timeouts are seconds."""

    entries: Mapping[str, Entry]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replicas: int | None = None
    batch_size: int | None = None
    address: str | None = None
    device: DeviceChoice = "auto"
    timeout: float = 600.0
    load_timeout: float = 1800.0


@dataclass(slots=True)
class ReplicaPool:
    """Loads agents on a started ``cluster``; ``root`` is the folder of image paths."""

    cluster: Cluster | ThisProcess
    scheduler: Scheduler
    agents: Mapping[str, Agent[Any]]
    options: WorkerOptions
    root: str
    breaker: bool = True
    admission: Admission = field(init=False)
    _loads: dict[str, asyncio.Task[None]] = field(init=False, default_factory=dict)
    _batch_sizes: dict[str, int] = field(init=False, default_factory=dict)  # of agents whose batches were halved

    def fit(self, groups: Iterable[Sequence[str]], batches: Callable[[str], int]) -> None:
        """Place agents, whose ``groups`` are loaded together; ``batches`` counts an agent's. Raises InputError for
        groups that can never fit, and UnavailableError without the wanted device."""
        nodes = self.cluster.nodes
        has_gpu = any(node.gpu_count for node in nodes)
        if self.options.device == "cuda" and not has_gpu:
            raise UnavailableError("--device cuda: there is no GPU here; leave --device out to run on the CPU")
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
        await self._end_loads(name)
        await self.scheduler.remove(name)
        left = {place for other, places in self.admission.places.items() if other != name for place in places}
        await self.cluster.keep_places(left)

    async def close(self) -> None:
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

        def make_worker(number: int) -> ReplicaWorker:
            place = places[number]  # also of a replacement
            node = nodes[place.node]
            here = replace(spec, threads=max(1, node.cpus // self.admission.workers_on(place.node)))
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
        self.scheduler.dispatchers[name] = dispatcher
        each = sizes(need.memory, need.devices, need.device_memory)
        log.debug("%s: %d workers with %s each, batches of %d", name, len(places), each, dispatcher.batch_size)
        await dispatcher.start(need.replicas)
