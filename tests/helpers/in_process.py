"""Workers of a dispatcher in this process: no Ray, no actor; and a whole run without Ray."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from agents import catalogue
from agents.errors import AgentStoppedError
from serving.scheduling.device_errors import FatalDeviceError
from serving.scheduling.dispatch import Dispatcher, ReplicaWorker
from serving.scheduling.placement import GIB, Node
from serving.scheduling.recovery import Cause, WorkerLost
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import BatchReply, PackedRequest, Worker, WorkerSpec

RUN_SEED = 7
_loading = threading.Lock()  # libraries change what is global to a process while they load a model


@dataclass
class InProcess:
    """The worker that an actor hosts, without the actor."""

    worker: Worker
    host: str = "here"
    device: str = "cpu"

    async def start(self, timeout: float) -> dict[str, Any]:
        try:
            return await asyncio.to_thread(self._load)
        except Exception as error:
            name = self.worker.agent.name
            raise AgentStoppedError(f"agent {name} could not be loaded: {error}") from None

    def _load(self) -> dict[str, Any]:
        with _loading:
            return self.worker.load()

    async def call(self, batch: list[PackedRequest], timeout: float) -> BatchReply:
        try:
            async with asyncio.timeout(timeout):
                if self.worker.agent.continuous():
                    return await self.worker.answer_one(batch[0])
                return await self.worker.answer(batch)
        except FatalDeviceError as error:
            raise WorkerLost("device_error", str(error)) from None
        except TimeoutError:
            raise WorkerLost("timeout", "no answer in time") from None

    async def died(self) -> WorkerLost:
        await asyncio.Event().wait()
        raise AssertionError

    def kill(self) -> None:
        """There is no process to end."""


@dataclass
class Mortal(InProcess):
    """Dies, as a process would, of batches that have a stimulus whose row ``poison`` finds."""

    poison: str = "$^"
    cause: Cause = "worker_died"
    calls: list[int] = field(default_factory=list)  # the size of each batch

    async def call(self, batch: list[PackedRequest], timeout: float) -> BatchReply:
        self.calls.append(len(batch))
        await asyncio.sleep(0)
        if any(re.search(self.poison, row.decode()) for row, *_ in batch):
            raise WorkerLost(self.cause, "the worker process died")
        return await super().call(batch, timeout)


class LocalWorker(InProcess):
    """Made as :class:`serving.scheduling.ray_workers.RemoteWorker` is."""

    def __init__(self, spec: WorkerSpec, *options: Any) -> None:
        super().__init__(Worker(spec))


@dataclass
class LocalCluster:
    """This machine in place of Ray."""

    address: str | None = None
    nodes: Sequence[Node] = (Node("here", "here", 2, 64 * GIB),)

    async def start(self) -> None:
        """There is nothing to start."""

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """There is nothing to end."""


def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``turinglike generate`` answer in this process."""
    monkeypatch.setattr("serving.generation.Cluster", LocalCluster)
    monkeypatch.setattr("serving.scheduling.replicas.RemoteWorker", LocalWorker)


def row(number: int) -> bytes:
    return orjson.dumps({"cue": f"cue{number}", "id": f"w{number:03d}", "task": "word_association"})


def requests(count: int, agent: str = "null") -> list[AgentRequest]:
    return [AgentRequest(agent, row(i), f"w{i:03d}", 0, RUN_SEED, "null") for i in range(count)]


def scheduled(
    work: Callable[[Scheduler, Dispatcher], Coroutine[Any, Any, Any]],
    settings: dict[str, Any] | None = None,
    agent: str = "null",
    replicas: int = 1,
    make: Callable[[], ReplicaWorker] | None = None,
    **options: Any,
) -> Any:
    """Run ``work`` with a scheduler that has one loaded agent, on workers in this process or those that ``make``
    makes."""

    async def main() -> Any:
        entry = catalogue.get(agent)
        spec = WorkerSpec(entry, settings or {}, "/", threads=2)
        dispatcher = Dispatcher(
            entry.make(settings), lambda number: make() if make else InProcess(Worker(spec)), **options
        )
        scheduler = Scheduler(RUN_SEED)
        scheduler.add(dispatcher)
        try:
            await dispatcher.start(replicas)
            return await work(scheduler, dispatcher)
        finally:
            await scheduler.close()

    return asyncio.run(main())


def stream(
    count: int, settings: dict[str, Any] | None = None, agent: str = "null", **options: Any
) -> dict[str, AgentRequest]:
    """Every request's outcome by stimulus; asserts that each comes back once."""

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> list[AgentRequest]:
        return [request async for request in scheduler.stream(requests(count, agent))]

    found = scheduled(work, settings, agent, **options)
    assert sorted(request.stimulus for request in found) == [f"w{i:03d}" for i in range(count)]
    return {request.stimulus: request for request in found}


def error_codes(found: dict[str, AgentRequest]) -> dict[str, str]:
    return {name: request.error[0] for name, request in found.items() if request.error is not None}
