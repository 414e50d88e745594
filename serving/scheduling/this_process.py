"""This process in place of a Ray cluster. An agent that ends its process ends this."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from agents.capabilities import Connected
from agents.contract import Agent
from serving.scheduling import machine
from serving.scheduling.batch import NOBODY, BatchReply, Listeners, PackedRequest, in_loop
from serving.scheduling.placement import DeviceChoice, Node, Place
from serving.scheduling.recovery import FatalDeviceError, WorkerLost, load_in_time
from serving.scheduling.worker import Worker, WorkerSpec

_loading = threading.Lock()  # libraries change what is global to a process while they load a model


class LocalWorker:
    """An agent in this process."""

    def __init__(self, spec: WorkerSpec, process: ThisProcess) -> None:
        # A fraction of the GPU's memory would be that of all agents of this process.
        self.worker = Worker(replace(spec, memory_fraction=None))
        self.host = machine.host().name
        self.device = spec.device
        self._process = process
        self._loader = ThreadPoolExecutor(1, "load")  # not the event loop's own, whose end would wait for a load

    async def start(self, timeout: float) -> dict[str, Any]:
        """Load the agent; returns its provenance. Raises AgentStoppedError."""
        loading = asyncio.get_running_loop().run_in_executor(self._loader, self._load)
        return await load_in_time(self.worker.agent.name, asyncio.wait_for(loading, timeout), timeout, self.kill)

    def _load(self) -> dict[str, Any]:
        try:
            with _loading:
                return self.worker.load()
        finally:
            self._loader.shutdown(wait=False)

    async def call(self, batch: list[PackedRequest], timeout: float, listeners: Listeners = NOBODY) -> BatchReply:
        """As :meth:`serving.scheduling.worker.Worker.answer`. Raises WorkerLost."""
        try:
            async with asyncio.timeout(timeout):
                return await self.worker.answer(batch, in_loop(listeners))
        except FatalDeviceError as error:
            raise WorkerLost.by_device(error) from None
        except TimeoutError:
            raise WorkerLost.by_timeout(timeout) from None

    async def died(self) -> WorkerLost:
        """Return never: a worker here dies with the process."""
        await asyncio.Event().wait()
        raise AssertionError

    def kill(self) -> None:
        """Let go of the agent, in the background."""
        self._process.ending.add(asyncio.create_task(self._end()))

    async def _end(self) -> None:
        agent = self.worker.agent
        if isinstance(agent, Connected):
            with contextlib.suppress(Exception):  # of a library: nothing more is wanted of it
                await agent.aclose()
        self.worker.close()


@dataclass(slots=True)
class ThisProcess:
    """This process in the part of a cluster: it has the verbs of :class:`serving.scheduling.cluster.Cluster`."""

    nodes: Sequence[Node] = ()
    """This machine alone; measured by :meth:`start` unless it is given."""
    address: str | None = None
    """Always None: there is no cluster elsewhere."""
    has_use_for_gpu: bool = True
    """Whether an agent would run on a GPU; to look for one takes seconds."""
    ending: set[asyncio.Task[None]] = field(init=False, default_factory=set)
    """What workers still do at their end; :meth:`stop` waits for it."""

    @classmethod
    def of(cls, agents: Mapping[str, Agent[Any]], device: DeviceChoice) -> ThisProcess:
        """For these agents on that device."""
        wanted = device == "auto" and any(agent.declaration().device_memory for agent in agents.values())
        return cls(has_use_for_gpu=wanted or device == "cuda")

    async def start(self, log_progress: Callable[[str], None] = lambda text: None) -> None:
        """Measure memory and look for a GPU, which takes seconds."""
        if not self.nodes:
            here = machine.host()
            gpu = await asyncio.to_thread(machine.gpu) if self.has_use_for_gpu else None
            memory = machine.available() or here.memory
            self.nodes = [Node("here", here.name, here.cores, memory, int(gpu is not None), gpu.memory if gpu else 0)]

    def worker(self, spec: WorkerSpec, place: Place, resources: Mapping[str, float]) -> LocalWorker:
        """An agent's worker, not started yet; it is wherever this process is."""
        return LocalWorker(spec, self)

    async def keep_places(self, places: Collection[Place]) -> None:
        """Nothing is reserved here."""

    async def watch(self) -> None:
        """Return never: nothing here can die alone."""
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Wait until all workers have ended."""
        await asyncio.gather(*self.ending)
        self.ending.clear()
