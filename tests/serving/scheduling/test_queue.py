"""Which worker gets a turn: workers that only note what they are given, and Python's own counting."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import scheduled

from agents.stimuli import parse_row
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.queue import RequestQueue
from serving.scheduling.recovery import WorkerLost
from serving.scheduling.request import NOBODY, AgentRequest, Listeners
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import BatchReply, PackedRequest


def turn(conversation: int, number: int | None = 0, order: int = 1) -> AgentRequest:
    row = orjson.dumps({"cue": "c", "id": f"w{conversation:03d}", "task": "word_association"})
    return AgentRequest("null-one", row, f"w{conversation:03d}", name="a~b", turn=number, order=order)


class Noting:
    """A worker that answers after a moment, and notes whose turns it was given."""

    def __init__(self, log: list[tuple[int, str]], number: int) -> None:
        self.host, self.device = "here", "cpu"
        self.log, self.number = log, number
        self.may_start = asyncio.Event()
        self.dies = False
        self.most = self.busy = 0

    async def start(self, timeout: float) -> dict[str, Any]:
        if self.number >= 3:  # the replacement of a lost one
            await self.may_start.wait()
        return {}

    async def died(self) -> WorkerLost:
        await asyncio.Event().wait()
        raise AssertionError

    async def call(self, batch: list[PackedRequest], timeout: float, listeners: Listeners = NOBODY) -> BatchReply:
        self.busy += 1
        self.most = max(self.most, self.busy)
        for row, *_ in batch:
            self.log.append((self.number, orjson.loads(row)["id"]))
        await asyncio.sleep(0.002)
        self.busy -= 1
        if self.dies:
            raise WorkerLost("worker_died", "told to die")
        answer = orjson.dumps({"word": "x"})
        return BatchReply([(None, answer, None, "0", 0.0) for _ in batch], 0.002, len(batch))

    def kill(self) -> None:
        self.dies = True


def with_workers(
    work: Callable[[Scheduler, list[Noting]], Coroutine[Any, Any, None]], replicas: int
) -> list[tuple[int, str]]:
    """Run ``work`` with noting workers; returns (worker's number, stimulus) as given."""
    log: list[tuple[int, str]] = []
    workers: list[Noting] = []

    def make() -> Noting:
        workers.append(Noting(log, len(workers)))
        return workers[-1]

    async def begun(scheduler: Scheduler, dispatcher: Dispatcher) -> None:
        dispatcher.max_in_flight = 4
        await work(scheduler, workers)

    scheduled(begun, agent="null-one", replicas=replicas, make=make)
    return log


async def converse(scheduler: Scheduler, conversation: int, turns: int) -> None:
    """One turn after the other, as a conversation does."""
    for number in range(turns):
        stimulus = parse_row(turn(conversation, number).row)
        answered = await scheduler.answer("null-one", stimulus, turn=number, name="a~b", order=conversation)
        assert answered.status == "ok"


def test_a_lost_workers_conversations_go_on_elsewhere_and_come_back_with_its_replacement() -> None:
    states: list[int] = []

    async def converse_all(scheduler: Scheduler, workers: list[Noting], turns: int) -> None:
        await asyncio.gather(*(converse(scheduler, number, turns) for number in range(30)))
        states.append(len(workers[0].log))

    async def work(scheduler: Scheduler, workers: list[Noting]) -> None:
        dispatcher = scheduler.dispatchers["null-one"]
        await converse_all(scheduler, workers, 2)
        workers[0].dies = True
        await converse_all(scheduler, workers, 4)
        workers[3].may_start.set()
        while dispatcher.loaded_workers < 3:
            await asyncio.sleep(0.005)
        await converse_all(scheduler, workers, 2)
        assert all(worker.most <= 4 for worker in workers)  # none is given more at once than it takes

    log = with_workers(work, 3)
    first, second, third = log[: states[0]], log[states[0] : states[1]], log[states[1] :]
    before = {stimulus: number for number, stimulus in first}
    assert len(set(first)) == len(before) == 30  # one worker for each conversation
    moved = {stimulus for stimulus, number in before.items() if number == 0}
    assert 1 <= len(moved) <= 24
    for number, stimulus in second:
        assert number in (before[stimulus], 1, 2)
        assert stimulus in moved or number == before[stimulus]  # the others stay where they are
    answered = Counter(stimulus for number, stimulus in second if number != 0)
    assert all(answered[stimulus] == 4 for stimulus in moved)  # nothing is lost
    assert all(number == (3 if stimulus in moved else before[stimulus]) for number, stimulus in third)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.booleans()), max_size=40), st.data())
def test_nothing_is_lost_and_the_oldest_goes_first(given_: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    queue = RequestQueue(sticky=True)
    left = [turn(conversation, 0 if has_turn else None, order) for conversation, order, has_turn in given_]
    arrival = {request: number for number, request in enumerate(left)}
    replicas = data.draw(st.sets(st.integers(0, 3), min_size=1))
    for number, request in enumerate(left):
        if number == len(left) // 2:
            queue.set_replicas(replicas)
        queue.push(request)
    queue.set_replicas(replicas)
    assert len(queue) == len(left)
    worker_of: dict[str, int] = {}
    while left:
        replica = data.draw(st.sampled_from([one for one in sorted(replicas) if queue.first(one) is not None]))
        [request] = queue.pop(1, replica)
        older = [one for one in left if (one.order, arrival[one]) < (request.order, arrival[request])]
        assert all(one.turn is not None for one in older)  # turns of others, which are bound to other replicas
        if request.turn is not None:
            assert worker_of.setdefault(request.stimulus, replica) == replica
        left.remove(request)
    for request in arrival:
        queue.push(request)
    assert queue.clear() == sorted(arrival, key=lambda request: (request.order, arrival[request]))
    assert len(queue) == 0
    assert all(queue.first(replica) is None for replica in replicas)
