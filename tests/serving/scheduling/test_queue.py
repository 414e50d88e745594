"""Which worker gets a turn: workers that only note what they are given, and Python's own counting."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import catalogue
from agents.stimuli import parse_row
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.queue import RequestQueue, home
from serving.scheduling.ray_workers import WorkerLost
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import BatchReply, PackedRequest


def turn(conversation: int, number: int | None = 0, order: int = 1) -> AgentRequest:
    row = orjson.dumps({"cue": "c", "id": f"w{conversation:03d}", "task": "word_association"})
    return AgentRequest("null-one", row, f"w{conversation:03d}", name="a~b", turn=number, order=order)


class Noting:
    """A worker that answers after a moment, and notes whose turns it was given."""

    def __init__(self, log: list[tuple[int, str]], number: int, seconds: float) -> None:
        self.host, self.device = "here", "cpu"
        self.log, self.number, self.seconds = log, number, seconds
        self.dies = False
        self.most = self.busy = 0

    async def start(self, timeout: float) -> dict[str, Any]:
        return {}

    async def call(self, works: list[PackedRequest], timeout: float) -> BatchReply:
        self.busy += 1
        self.most = max(self.most, self.busy)
        for row, *_ in works:
            self.log.append((self.number, orjson.loads(row)["id"]))
        await asyncio.sleep(self.seconds)
        self.busy -= 1
        if self.dies:
            raise WorkerLost("worker_died", "told to die")
        answer = orjson.dumps({"word": "x"})
        return BatchReply([(None, answer, None, "0", 0.0) for _ in works], self.seconds, len(works))

    def kill(self) -> None:
        self.dies = True


def with_workers(work: Any, replicas: int, agent: str = "null-one", seconds: float = 0.002) -> list[tuple[int, str]]:
    """Run ``work(scheduler, workers)`` with a lane of noting workers; returns (worker's number, stimulus) as given."""
    log: list[tuple[int, str]] = []
    workers: list[Noting] = []

    def make() -> Noting:
        workers.append(Noting(log, len(workers), seconds))
        return workers[-1]

    async def main() -> None:
        lane = Dispatcher(catalogue.get(agent).make({}), make)
        lane.depth = 4 if lane.continuous else lane.depth
        scheduler = Scheduler(7)
        scheduler.add(lane)
        await lane.start(replicas)
        await work(scheduler, workers)
        await scheduler.close()

    asyncio.run(main())
    return log


async def converse(scheduler: Scheduler, conversation: int, turns: int, agent: str = "null-one") -> None:
    """One turn after the other, as a conversation does."""
    for number in range(turns):
        item = turn(conversation, number)
        done = await scheduler.answer(agent, parse_row(item.row), turn=number, name="a~b", order=conversation)
        assert done.status == "ok"


def test_the_turns_of_a_conversation_go_to_one_worker_and_all_workers_have_some() -> None:
    async def work(scheduler: Scheduler, workers: list[Noting]) -> None:
        await asyncio.gather(*(converse(scheduler, number, 6) for number in range(60)))
        assert all(worker.most == 4 for worker in workers)  # and none is given more at once than it takes

    log = with_workers(work, 3)
    assert len(log) == 360
    workers = {stimulus: {number for number, other in log if other == stimulus} for _, stimulus in log}
    assert {len(one) for one in workers.values()} == {1}
    assert min(Counter(number for number, _ in log).values()) >= 60  # of 120 each


def test_items_without_a_turn_go_to_whoever_is_free() -> None:
    async def work(scheduler: Scheduler, workers: list[Noting]) -> None:
        items = [turn(number % 2, None) for number in range(40)]
        assert len([item async for item in scheduler.stream(items)]) == 40

    log = with_workers(work, 3)
    assert {number for number, stimulus in log if stimulus == "w000"} == {0, 1, 2}


def test_batches_take_turns_of_any_conversation() -> None:
    async def work(scheduler: Scheduler, workers: list[Noting]) -> None:
        scheduler.dispatchers["null"].batch_size = 2
        await asyncio.gather(*(converse(scheduler, number, 10, "null") for number in range(12)))

    log = with_workers(work, 2, agent="null")
    assert len(set(log)) > 12  # most conversations were at both workers


def test_a_lost_workers_conversations_go_on_elsewhere_and_come_back_with_its_replacement() -> None:
    states: list[int] = []

    async def work(scheduler: Scheduler, workers: list[Noting]) -> None:
        lane = scheduler.dispatchers["null-one"]
        may_start = asyncio.Event()
        spawn = lane._spawn

        async def late(place: int) -> None:
            await may_start.wait()
            await spawn(place)

        await asyncio.gather(*(converse(scheduler, number, 2) for number in range(30)))
        states.append(len(workers[0].log))
        lane._spawn = late  # type: ignore[method-assign]
        workers[0].dies = True
        await asyncio.gather(*(converse(scheduler, number, 4) for number in range(30)))
        states.append(len(workers[0].log))
        may_start.set()
        while len(workers) < 4 or len(lane._slots) < 3:
            await asyncio.sleep(0.005)
        await asyncio.gather(*(converse(scheduler, number, 2) for number in range(30)))

    log = with_workers(work, 3)
    first, second, third = log[: states[0]], log[states[0] : states[1]], log[states[1] :]
    homes = {stimulus: number for number, stimulus in first}
    ill = {stimulus for stimulus, number in homes.items() if number == 0}
    assert 3 <= len(ill) <= 20
    for number, stimulus in second:
        assert number in (homes[stimulus], 1, 2)
        assert stimulus in ill or number == homes[stimulus]  # the others stay where they are
    answered = Counter(stimulus for number, stimulus in second if number != 0)
    assert all(answered[stimulus] == 4 for stimulus in ill)  # nothing is lost
    assert {stimulus for number, stimulus in third if number == 3} == ill  # the replacement has its place
    assert all(number == (3 if stimulus in ill else homes[stimulus]) for number, stimulus in third)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.booleans()), max_size=40), st.data())
def test_nothing_is_lost_and_the_oldest_goes_first(asked: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    queue = RequestQueue(sticky=True)
    items = [turn(conversation, 0 if has_turn else None, order) for conversation, order, has_turn in asked]
    there = data.draw(st.sets(st.integers(0, 3), min_size=1))
    for number, item in enumerate(items):
        if number == len(items) // 2:
            queue.open(there)
        queue.push(item)
    queue.open(there)
    assert len(queue) == len(items)
    left, took = list(items), []
    while left:
        able = [place for place in sorted(there) if queue.has(place)]
        place = data.draw(st.sampled_from(able))
        mine = [item for item in left if item.turn is None or len(there) == 1 or home(item, there) == place]
        [item] = queue.pop(1, place)
        assert item is min(mine, key=lambda one: (one.order, items.index(one)))
        left.remove(item)
        took.append(item)
    assert len(queue) == 0
    assert not any(queue.has(place) for place in there)


def test_a_home_changes_only_when_it_goes() -> None:
    conversations = [turn(number) for number in range(300)]
    before = [home(item, (0, 1, 2, 3)) for item in conversations]
    assert min(Counter(before).values()) > 40
    assert [home(turn(number, 9), (3, 2, 1, 0)) for number in range(300)] == before  # whatever the turn
    for gone in range(4):
        after = [home(item, [place for place in range(4) if place != gone]) for item in conversations]
        assert all(new == old for new, old in zip(after, before, strict=True) if old != gone)
        assert len({new for new, old in zip(after, before, strict=True) if old == gone}) == 3
    other = [AgentRequest("x", b"", item.stimulus, sample=1, name="a~b", turn=0) for item in conversations]
    assert [home(item, (0, 1, 2, 3)) for item in other] != before


@pytest.mark.parametrize("sticky", [True, False])
def test_clear_gives_everything_back(sticky: bool) -> None:
    queue = RequestQueue(sticky)
    queue.open([0, 1])
    items = [turn(number, 0 if number % 2 else None, order=-number) for number in range(9)]
    for item in items:
        queue.push(item)
    assert queue.clear() == items[::-1]
    assert len(queue) == 0
