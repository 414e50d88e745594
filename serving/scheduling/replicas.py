"""The agents of one process on their workers: where each runs, in how many replicas, loaded once, whoever needs it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.contract import Agent
from agents.entry import Entry
from agents.errors import UnavailableError
from serving.scheduling.cluster import Cluster
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.placement import Admission, Device, Need, gpu_share, replicas_for
from serving.scheduling.ray_workers import Probe, RemoteWorker
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import WorkerSpec


@dataclass(slots=True)
class ReplicaPool:
    """Loads agents, each with a dispatcher of ``scheduler``, on the workers of ``cluster``, which has started.

    ``root`` is the folder that image paths are relative to, ``probe`` a file by which a worker on another machine is
    seen to share it. ``replicas`` None: as :func:`serving.scheduling.placement.replicas_for` says.
    """

    cluster: Cluster
    scheduler: Scheduler
    agents: Mapping[str, Agent[Any]]
    entries: Mapping[str, Entry]
    settings: Mapping[str, Mapping[str, Any]]
    root: str
    device: Device = "auto"
    replicas: int | None = None
    batch_size: int | None = None
    timeout: float = 600.0
    load_timeout: float = 1800.0
    probe: Probe | None = None
    breaker: bool = True
    admission: Admission = field(init=False)
    _loads: dict[str, asyncio.Task[None]] = field(init=False, default_factory=dict)
    _locks: dict[tuple[str, ...], asyncio.Lock] = field(init=False, default_factory=dict)

    def admit(self, groups: Iterable[Sequence[str]], batches: Callable[[str], int]) -> None:
        """Find out what each agent needs. ``groups`` are the agents that have to be loaded together; ``batches`` says
        how many batches an agent has to answer. Raises UnavailableError without the device that was asked for, and
        InputError for groups that can never fit."""
        nodes = self.cluster.nodes
        has_gpu = any(node.gpu_count for node in nodes)
        if self.device == "cuda" and not has_gpu:
            raise UnavailableError("--device cuda: Ray sees no GPU here; leave --device out to run on the CPU")
        needs = {}
        for name, agent in self.agents.items():
            on_gpu = has_gpu and self.device != "cpu" and agent.device_memory > 0
            device_memory = agent.device_memory if on_gpu else 0
            need = Need(name, agent.memory, device_memory, devices=agent.devices if device_memory else 1)
            replicas = self.replicas
            if replicas is None:
                replicas = replicas_for(need, batches(name), nodes)
                if agent.continuous() and not device_memory:
                    replicas = 1  # it has its own limit of calls at once; a server's is for all of them
            needs[name] = replace(need, replicas=replicas)
        self.admission = Admission(nodes, needs)
        self.admission.check(groups)

    async def load(self, name: str) -> None:
        """Load an agent, once. Raises AgentStoppedError."""
        if name not in self._loads:
            self._loads[name] = asyncio.create_task(self._load(name))
        await asyncio.shield(self._loads[name])

    async def unload(self, name: str) -> None:
        """End an agent's workers, and its load if that is under way."""
        await self._end_loads(name)
        if name in self.scheduler.dispatchers:
            await self.scheduler.remove(name)

    async def close(self) -> None:
        """End what is being loaded, and all workers; before Ray ends."""
        await self._end_loads(*self._loads)
        await self.scheduler.close()

    async def _end_loads(self, *names: str) -> None:
        loads = [self._loads.pop(name) for name in names if name in self._loads]
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)

    def _environment(self, agent: Agent[Any]) -> dict[str, str]:
        """The keys that an agent reads; on a cluster they are where its owner has set them."""
        return (
            {} if self.cluster.address else {key: os.environ[key] for key in agent.environment() if key in os.environ}
        )

    async def _load(self, name: str) -> None:
        need, agent = self.admission.needs[name], self.agents[name]
        nodes = self.cluster.nodes
        share = 0.0
        if need.device_memory:
            share = gpu_share(need, min(node.gpu_memory for node in nodes if node.gpu_count))
        cpus = min(node.cpus for node in nodes) or 1
        together = sum(one.replicas for one in self.admission.needs.values()) if len(nodes) == 1 else need.replicas
        spec = WorkerSpec(
            entry=self.entries[name],
            settings=self.settings.get(name, {}),
            root=self.root,
            device="cuda:0" if need.device_memory else "cpu",
            threads=max(1, cpus // max(1, min(together, cpus))),
            memory_fraction=min(share, 1.0) or None,
            environment=self._environment(agent),
        )

        def make_worker() -> RemoteWorker:
            return RemoteWorker(spec, need.memory, share, agent.continuous(), self._locks, self.probe)

        dispatcher = Dispatcher(
            agent,
            make_worker,
            batch_size=self.batch_size,
            timeout=self.timeout,
            load_timeout=self.load_timeout,
            breaker=self.breaker,
        )
        self.scheduler.add(dispatcher)
        await dispatcher.start(need.replicas)
