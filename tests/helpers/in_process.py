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
from serving.scheduling.batch import NOBODY, BatchReply, Listeners, PackedRequest
from serving.scheduling.dispatch import Dispatcher, ReplicaWorker
from serving.scheduling.placement import Node
from serving.scheduling.recovery import Cause, WorkerLost
from serving.scheduling.request import Outcome, Request
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.this_process import LocalWorker, ThisProcess
from serving.scheduling.worker import Worker, WorkerSpec
from serving.sets.stimulus_row import StimulusRow

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
        if any(re.search(self.poison, request.row.json.decode()) for request in batch):
            raise WorkerLost(self.cause, "the worker process died")
        return await super().call(batch, timeout, listeners)


def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``turinglike generate`` answer in this process."""
    monkeypatch.setattr("serving.generation.generate.Cluster", lambda address=None: ThisProcess(HERE, address))


def row(number: int) -> bytes:
    return orjson.dumps({"cue": f"cue{number}", "id": f"w{number:03d}", "task": "word_association"})


def stimulus_row(number: int) -> StimulusRow:
    return StimulusRow.of_line(row(number), number, None)


def packed(number: int, sample: int = 0) -> PackedRequest:
    return PackedRequest(stimulus_row(number), 1, sample)


def requests(count: int, agent: str = "null") -> list[Request]:
    rows = map(stimulus_row, range(count))
    return [Request(agent=agent, row=row, name="null", run_seed=RUN_SEED) for row in rows]


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
) -> dict[str, Outcome]:
    """Every request's outcome by stimulus; asserts that each comes back once."""

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> list[Outcome]:
        return [outcome async for outcome in scheduler.stream(requests(count, agent))]

    found = scheduled(work, settings, agent, **options)
    assert sorted(outcome.request.row.id for outcome in found) == [f"w{i:03d}" for i in range(count)]
    return {outcome.request.row.id: outcome for outcome in found}


def error_codes(found: dict[str, Outcome]) -> dict[str, str]:
    return {name: outcome.error.code for name, outcome in found.items() if outcome.error is not None}
