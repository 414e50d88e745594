"""This process in place of a Ray cluster. An agent whose code ends its process ends this process, and an agent that
hangs can only be left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from agents.contract import Agent
from serving.scheduling import machine
from serving.scheduling.placement import Device, Node, Place
from serving.scheduling.recovery import FatalDeviceError, WorkerLost, load_in_time
from serving.scheduling.request import NOBODY, Listeners, in_loop
from serving.scheduling.worker import BatchReply, PackedRequest, Worker, WorkerSpec

_loading = threading.Lock()  # libraries change what is global to a process while they load a model


class LocalWorker:
    """One agent in this process; image paths are relative to the ``root`` that ``process`` has at the time."""

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
        if self._process.root is not None:
            self.worker.spec = replace(self.worker.spec, root=self._process.root)
        try:
            async with asyncio.timeout(timeout):
                return await self.worker.answer(batch, in_loop(listeners))
        except FatalDeviceError as error:
            raise WorkerLost.by_device(error) from None
        except TimeoutError:
            raise WorkerLost.by_timeout(timeout) from None

    async def died(self) -> WorkerLost:
        """Return never: there is no process of its own."""
        await asyncio.Event().wait()
        raise AssertionError

    def kill(self) -> None:
        """Let go of the agent once what it has in hand is answered."""
        self._process.ending.add(asyncio.create_task(self._end()))

    async def _end(self) -> None:
        with contextlib.suppress(Exception):  # of a library: nothing more is wanted of it
            await self.worker.agent.aclose()
        self.worker.close()


@dataclass(slots=True)
class ThisProcess:
    """As :class:`serving.scheduling.cluster.Cluster`; of this machine's GPUs the first counts. ``root``, once set,
    is the folder of images in place of that of the workers' specs."""

    nodes: Sequence[Node] = ()
    address: str | None = None
    root: str | None = None
    has_use_for_gpu: bool = True
    ending: set[asyncio.Task[None]] = field(init=False, default_factory=set)  # what workers do at their end

    @classmethod
    def of(cls, agents: Mapping[str, Agent[Any]], device: Device) -> ThisProcess:
        """For these agents, on that device."""
        wanted = device == "auto" and any(agent.device_memory for agent in agents.values())
        return cls(has_use_for_gpu=wanted or device == "cuda")

    async def start(self, log_progress: Callable[[str], None] = lambda text: None) -> None:
        """Measure what there is here; to look for a GPU takes seconds."""
        if not self.nodes:
            here = machine.host()
            gpu = await asyncio.to_thread(machine.gpu) if self.has_use_for_gpu else None
            memory = machine.available() or here.memory
            self.nodes = [Node("here", here.name, here.cores, memory, int(gpu is not None), gpu.memory if gpu else 0)]

    def worker(self, spec: WorkerSpec, place: Place, resources: Mapping[str, float]) -> LocalWorker:
        """A worker here, wherever it is placed."""
        return LocalWorker(spec, self)

    async def keep_places(self, places: Collection[Place]) -> None:
        """Nothing is reserved here."""

    async def watch(self) -> None:
        """Return never."""
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Wait for the ends of workers, but not for what they have in hand."""
        await asyncio.gather(*self.ending)
        self.ending.clear()
