"""What happens when a worker dies, cannot be loaded again, or an agent keeps failing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from in_process import InProcess, Mortal, error_codes, row, scheduled, stream

from agents import catalogue
from agents.errors import OF_STIMULUS, AgentStoppedError
from agents.stimuli import parse_row
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.recovery import CircuitBreaker, WorkerLost
from serving.scheduling.request import NOBODY, AgentRequest, Listeners
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import BatchReply, PackedRequest, Worker, WorkerSpec

WORKER = Worker(WorkerSpec(catalogue.get("null"), {}, "/"))
CONTINUOUS = Worker(WorkerSpec(catalogue.get("null-one"), {}, "/"))


def stream_over(
    make: Callable[[int], InProcess], count: int, agent: str = "null", **options: Any
) -> tuple[dict[str, AgentRequest], int]:
    """The outcomes by stimulus, from workers that ``make`` makes by their number; and how many it made."""
    numbers = itertools.count(1)
    found = stream(count, agent=agent, make=lambda: make(next(numbers)), **options)
    return found, next(numbers) - 1


@pytest.mark.parametrize("agent", ["null", "null-one"])
def test_a_stimulus_that_kills_its_worker_fails_alone(agent: str) -> None:
    worker = WORKER if agent == "null" else CONTINUOUS
    found, made = stream_over(lambda number: Mortal(worker, poison="w017"), 60, agent, batch_size=16)
    assert error_codes(found) == {"w017": "worker_died"}
    assert {name: request.deaths for name, request in found.items() if request.deaths} == {"w017": 3}
    assert made <= 5  # in company once, then alone three times, and the last that takes their place


def test_after_a_death_suspects_are_tried_one_at_a_time() -> None:
    workers: list[Mortal] = []

    def make(number: int) -> Mortal:
        workers.append(Mortal(WORKER, poison="w003" if number == 1 else "$^"))
        return workers[-1]

    found, _ = stream_over(make, 16, batch_size=8)
    assert {request.status for request in found.values()} == {"ok"}
    assert not any(request.deaths for request in found.values())  # in company it counts against nobody
    assert workers[0].calls == [8, 8]
    assert workers[1].calls == [1] * 16


def test_a_worker_that_ends_for_want_of_memory_halves_the_batch_and_blames_nobody() -> None:
    def make(number: int) -> Mortal:
        return Mortal(WORKER, poison="w003" if number == 1 else "$^", cause="out_of_memory")

    found, _ = stream_over(make, 32, batch_size=8)
    assert {request.status for request in found.values()} == {"ok"}
    assert max(request.worker["batch_size"] for request in found.values()) == 4  # type: ignore[index]


def test_a_device_error_replaces_the_worker_and_finds_the_culprit() -> None:
    found = stream(6, {"device_error_on": "cue3"}, agent="echo", batch_size=3)
    assert error_codes(found) == {"w003": "device_error"}


def test_the_breaker_needs_one_code_in_a_row() -> None:
    breaker = CircuitBreaker()
    assert not any(breaker.note(code) for code in ["a", "b"] * 200)
    assert not any(breaker.note(code) for code in [*["a"] * 49, None] * 3)
    assert not any(breaker.note(code) for code in sorted(OF_STIMULUS) for _ in range(60))
    assert not any(breaker.note("a", before="a") for _ in range(60))
    found = [breaker.note("a", before="b") for _ in range(50)]
    assert found == [None] * 49 + ["50 answers in a row failed with a"]


@pytest.mark.parametrize(
    ("breaker", "fails", "pauses"),
    [
        (True, 2, [1.0, 2.0]),
        (True, 3, [1.0, 2.0]),  # and the agent stops
        (False, 1200, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 1194]),
    ],
)
def test_a_lost_worker_is_loaded_again(
    breaker: bool, fails: int, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For ever where strangers ask, at most three times in a run; the answer that it had under way is not lost."""
    started, paused, sleep = 0, [], asyncio.sleep

    class Fragile(InProcess):
        async def start(self, timeout: float) -> dict[str, Any]:
            nonlocal started
            started += 1
            if 1 < started <= 1 + fails:
                raise AgentStoppedError("there is no room")
            return await super().start(timeout)

        async def call(self, batch: list[PackedRequest], timeout: float, listeners: Listeners = NOBODY) -> BatchReply:
            if started == 1:
                raise WorkerLost("worker_died", "the worker process died")
            return await super().call(batch, timeout, listeners)

    async def slept(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0)

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> AgentRequest:
        monkeypatch.setattr(asyncio, "sleep", slept)
        return await scheduler.answer("null-one", parse_row(row(1)))

    def answered() -> AgentRequest:
        return scheduled(work, agent="null-one", make=lambda: Fragile(CONTINUOUS), breaker=breaker)

    if breaker and fails == 3:
        with pytest.raises(AgentStoppedError, match="there is no room"):
            answered()
    else:
        assert answered().status == "ok"
    assert paused == pauses
    assert started == 1 + fails + (not breaker or fails < 3)
