"""Workers of a dispatcher in this process: no Ray, no actor; and a whole run without Ray."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest

from agents import catalogue
from agents.capabilities import Connected
from agents.contract import GIB
from serving.scheduling.dispatch import Dispatcher, ReplicaWorker
from serving.scheduling.placement import Node
from serving.scheduling.recovery import Cause, WorkerLost
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.this_process import LocalWorker, ThisProcess
from serving.scheduling.worker import NOBODY, AgentRequest, BatchReply, Listeners, PackedRequest, Worker, WorkerSpec

RUN_SEED = 7
HERE = (Node("here", "here", 2, 64 * GIB),)  # room for whatever a test names, whether or not it is there


class InProcess(LocalWorker):
    """A worker in this process around a :class:`Worker` that is there already, and that others may go on with."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.host = "here"
        self.device = "cpu"
        self._process = ThisProcess(HERE)
        self._loader = ThreadPoolExecutor(1)

    async def _end(self) -> None:
        if isinstance(self.worker.agent, Connected):
            await self.worker.agent.aclose()


class Mortal(InProcess):
    """Dies, as a process would, of batches that have a stimulus whose row ``poison`` finds. ``calls`` are the sizes of
    its batches."""

    def __init__(self, worker: Worker, poison: str = "$^", cause: Cause = "worker_died") -> None:
        super().__init__(worker)
        self.poison = poison
        self.cause = cause
        self.calls: list[int] = []

    async def call(self, batch: list[PackedRequest], timeout: float, listeners: Listeners = NOBODY) -> BatchReply:
        self.calls.append(len(batch))
        await asyncio.sleep(0)
        if any(re.search(self.poison, row.decode()) for row, *_ in batch):
            raise WorkerLost(self.cause, "the worker process died")
        return await super().call(batch, timeout, listeners)


def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``turinglike generate`` answer in this process."""
    monkeypatch.setattr("serving.generation.generate.Cluster", lambda address=None: ThisProcess(HERE, address))


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
        scheduler.dispatchers[dispatcher.name] = dispatcher
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
