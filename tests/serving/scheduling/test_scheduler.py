"""The scheduler over real Ray workers: one reply per item, whatever happens to a batch or a worker."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from in_process import InProcess

from agents import catalogue
from agents.contract import Draw, Reply, Verdict
from agents.errors import AgentStoppedError, AnswerError
from agents.stimuli import Stimulus, parse_row
from agents.universal.null import NullAgent, NullSettings
from serving.scheduling.dispatch import CircuitBreaker, Dispatcher
from serving.scheduling.ray_workers import RemoteWorker, WorkerLost
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import BatchReply, PackedRequest, Worker, WorkerSpec, is_out_of_memory

RUN_SEED = 7

pytestmark = pytest.mark.usefixtures("ray_address")


def row(number: int) -> bytes:
    return orjson.dumps({"cue": f"cue{number}", "id": f"w{number:03d}", "task": "word_association"})


def items(count: int, agent: str = "null", name: str = "", sample: int = 0) -> list[AgentRequest]:
    return [AgentRequest(agent, row(i), f"w{i:03d}", sample, RUN_SEED, name) for i in range(count)]


def with_lane(
    work: Callable[[Scheduler, Dispatcher], Coroutine[Any, Any, Any]],
    settings: dict[str, Any] | None = None,
    agent: str = "null",
    replicas: int = 1,
    **options: Any,
) -> Any:
    """Run ``work`` with a scheduler that has one loaded agent."""

    async def main() -> Any:
        entry = catalogue.get(agent)
        made = entry.make(settings)
        spec = WorkerSpec(entry, settings or {}, "/", threads=2)
        lane = Dispatcher(made, lambda: RemoteWorker(spec, 1 << 20, 0.0, made.continuous(), {}), **options)
        scheduler = Scheduler(RUN_SEED)
        scheduler.add(lane)
        try:
            await lane.start(replicas)
            return await work(scheduler, lane)
        finally:
            await scheduler.close()

    return asyncio.run(main())


def stream(
    count: int, settings: dict[str, Any] | None = None, agent: str = "null", **options: Any
) -> dict[str, AgentRequest]:
    """Every item's outcome by stimulus; asserts that each comes back once."""

    async def work(scheduler: Scheduler, lane: Dispatcher) -> list[AgentRequest]:
        return [item async for item in scheduler.stream(items(count, agent, name="null"))]

    found = with_lane(work, settings, agent, **options)
    assert sorted(item.stimulus for item in found) == [f"w{i:03d}" for i in range(count)]
    return {item.stimulus: item for item in found}


def expected_seed(stimulus: str, sample: int = 0, turn: int | None = None, attempt: int = 0, name: str = "null") -> int:
    text = json.dumps([1, RUN_SEED, name, stimulus, sample, turn, attempt], separators=(",", ":"))
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) >> (256 - 53)


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("null", {"batch_size": 1}),
        ("null", {"batch_size": 7}),
        ("null", {"batch_size": 64, "replicas": 2}),
        ("null-one", {}),
        ("null-one", {"replicas": 2}),
    ],
)
def test_answers_do_not_depend_on_batches_or_workers(agent: str, options: dict[str, Any]) -> None:
    found = stream(150, agent=agent, **options)
    for stimulus, item in found.items():
        seed = expected_seed(stimulus)
        assert item.status == "ok"
        assert item.seed == seed
        assert orjson.loads(item.answer or b"")["word"] == f"{seed:x}"
        assert item.sha256 == hashlib.sha256(row(int(stimulus[1:]))).hexdigest()


def test_a_batch_that_raises_is_bisected_to_the_items_that_raise() -> None:
    found = stream(64, {"raise_batch": "w0(07|08|41)"}, batch_size=64)
    failed = {name for name, item in found.items() if item.status == "failed"}
    assert failed == {"w007", "w008", "w041"}
    assert all(found[name].error[0] == "respond_failed" for name in failed)  # type: ignore[index]
    assert "told to raise for w007" in found["w007"].error[1]  # type: ignore[index]


def test_an_error_in_an_items_place_fails_that_item_alone() -> None:
    found = stream(30, {"fail": "w013"}, batch_size=30)
    assert [name for name, item in found.items() if item.status == "failed"] == ["w013"]
    assert found["w013"].error == ("told_to_fail", "told to fail w013")


def test_torchs_allocator_for_the_cpu_has_no_error_of_its_own() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator") as raised:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(raised.value)
    elsewhere = (
        "[enforce fail at alloc_cpu.cpp:80] data. DefaultCPUAllocator: not enough memory: you tried to allocate 8"
    )
    assert is_out_of_memory(RuntimeError(elsewhere))
    assert not is_out_of_memory(RuntimeError("can't allocate memory for a mistake of another kind"))


def test_out_of_memory_halves_the_batch_and_is_remembered() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        found = [item async for item in scheduler.stream(items(100))]
        return lane.batch_size, found

    batch_size, found = with_lane(work, {"batch_limit": 5}, batch_size=64)
    assert batch_size == 4  # 64, 32, 16, 8, 4
    assert {item.status for item in found} == {"ok"}
    assert len(found) == 100


@pytest.mark.parametrize("agent", ["null", "null-one"])
def test_a_stimulus_that_kills_its_worker_fails_alone(agent: str) -> None:
    found = stream(40, {"crash": "w017"}, agent=agent, **({"batch_size": 16} if agent == "null" else {}))
    failed = {name: item.error for name, item in found.items() if item.status == "failed"}
    assert list(failed) == ["w017"]
    assert failed["w017"][0] == "worker_died"  # type: ignore[index]
    assert found["w017"].deaths == 3
    assert sum(item.deaths for item in found.values()) == 3


def test_a_death_with_others_in_flight_counts_against_nobody(tmp_path: Path) -> None:
    found = stream(40, {"crash": "w017", "crash_unless": str(tmp_path / "died")}, batch_size=16)
    assert {item.status for item in found.values()} == {"ok"}
    assert sum(item.deaths for item in found.values()) == 0


def test_a_device_error_replaces_the_worker_and_finds_the_culprit() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        return [item async for item in scheduler.stream(items(6, "echo"))]

    found = with_lane(work, {"device_error_on": "cue3"}, agent="echo", batch_size=3)
    failed = [item for item in found if item.status == "failed"]
    assert [item.stimulus for item in failed] == ["w003"]
    assert failed[0].error[0] == "device_error"


def test_a_batch_without_end_is_ended(tmp_path: Path) -> None:
    found = stream(6, {"hang": "w002"}, batch_size=3, timeout=1.0)
    failed = [name for name, item in found.items() if item.status == "failed"]
    assert failed == ["w002"]
    assert found["w002"].error[0] == "timeout"  # type: ignore[index]


def test_the_breaker_stops_an_agent_whose_first_items_fail() -> None:
    found = []

    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        async for item in scheduler.stream(items(500)):
            found.append(item)

    with pytest.raises(AgentStoppedError, match="first 20 answers failed with told_to_fail"):
        with_lane(work, {"fail": "."}, batch_size=64)
    assert len(found) == 20
    assert {item.status for item in found} == {"failed"}


def test_the_breaker_needs_one_code_in_a_row() -> None:
    breaker = CircuitBreaker()
    assert not any(breaker.note(code) for code in ["a", "b"] * 200)
    assert not any(breaker.note(code) for code in [*["a"] * 49, None] * 3)
    assert [breaker.note("a") for _ in range(50)].index(True) == 49
    first = CircuitBreaker()
    assert [first.note("a") for _ in range(20)].index(True) == 19


def test_rejected_attempts_are_kept_and_have_seeds_of_their_own() -> None:
    found = stream(200, {"reject": 0.5, "attempts": 3}, batch_size=32)
    statuses = [item.status for item in found.values()]
    assert statuses.count("rejected") > 5  # about 1 in 8
    for stimulus, item in found.items():
        seeds = [attempt["seed"] for attempt in item.attempts]
        assert seeds == [expected_seed(stimulus, attempt=k) for k in range(len(seeds))]
        assert [attempt["attempt"] for attempt in item.attempts] == list(range(len(seeds)))
        assert all(verdict["filter"] == "lottery" for attempt in item.attempts for verdict in attempt["verdicts"])
        assert len(item.attempts) == (3 if item.status == "rejected" else item.attempt)
        assert item.seed == expected_seed(stimulus, attempt=item.attempt)


def test_an_agent_that_cannot_load_says_why() -> None:
    with pytest.raises(AgentStoppedError, match="null could not be loaded: told to fail while loading"):
        stream(3, {"fail_load": True})


def test_loading_has_a_time_limit() -> None:
    with pytest.raises(AgentStoppedError, match=r"not loaded within 0\.5 s"):
        stream(3, {"load_s": 60}, load_timeout=0.5)


def test_answer_is_the_stream_of_one() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        return await asyncio.gather(*(scheduler.answer("null", parse_row(row(i)), sample=2, turn=4) for i in range(50)))

    found = with_lane(work)
    for item in found:
        assert item.seed == expected_seed(item.stimulus, sample=2, turn=4)
    assert len({item.answer for item in found}) == 50


def test_a_deadline_and_a_cancellation_leave_the_rest_alone() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        slow = asyncio.create_task(scheduler.answer("null", parse_row(row(0))))
        await asyncio.sleep(0.05)
        late = asyncio.create_task(scheduler.answer("null", parse_row(row(1)), deadline=0.1))
        gone = asyncio.create_task(scheduler.answer("null", parse_row(row(2))))
        await asyncio.sleep(0.05)
        gone.cancel()
        with pytest.raises(AnswerError, match=r"no answer within 0.1 s"):
            await late
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await slow, await scheduler.answer("null", parse_row(row(3)))

    first, last = with_lane(work, {"delay_s": 0.5}, batch_size=1)
    assert (first.stimulus, last.stimulus) == ("w000", "w003")
    assert {first.status, last.status} == {"ok"}


def test_older_items_go_first() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        order: list[str] = []

        async def ask(number: int, age: int) -> None:
            order.append((await scheduler.answer("null", parse_row(row(number)), order=age)).stimulus)

        tasks = [asyncio.create_task(ask(number, age)) for number, age in [(0, 1), (1, 1), (5, 90), (6, 80), (7, 70)]]
        await asyncio.gather(*tasks)
        return order

    assert with_lane(work, {"delay_s": 0.1}, batch_size=1)[2:] == ["w007", "w006", "w005"]


def test_a_stream_that_is_left_leaves_nothing_behind() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        stream = scheduler.stream(items(300))
        async for _ in stream:
            break
        await stream.aclose()
        return await scheduler.answer("null", parse_row(row(999)))

    assert with_lane(work, {"delay_s": 0.01}, batch_size=4).status == "ok"


def test_a_plugin_answers_and_odd_replies_become_json() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        return [item async for item in scheduler.stream(items(5, "echo"))]

    found = {item.stimulus: item for item in with_lane(work, {"unlike": "cue4"}, agent="echo", batch_size=5)}
    assert orjson.loads(found["w001"].answer)["word"] == "cue1!"
    assert orjson.loads(found["w001"].raw) == {"surrogate": "\ufffd", "nan": None}
    assert found["w004"].error[0] == "bad_agent"


class Picky(NullAgent):
    """A filter that raises for one stimulus."""

    def __init__(self, settings: NullSettings, name: str) -> None:
        super().__init__(settings, name)
        self.filters = (self._raise,)

    def _raise(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        if stimulus.id == "w003":
            raise ValueError("no opinion")
        return None


def test_a_filter_that_raises_fails_its_item_alone() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        lane.agent = Picky(NullSettings(), "null")
        return [item async for item in scheduler.stream(items(10))]

    found = {item.stimulus: item for item in with_lane(work)}
    assert [name for name, item in found.items() if item.status == "failed"] == ["w003"]
    assert found["w003"].error[0] == "filter_failed"
    assert len(found) == 10


def test_a_turn_number_does_not_change_what_an_answer_is() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        return await scheduler.answer("null", parse_row(row(1)), turn=4, options={"turn": 4})

    assert with_lane(work, {"reject": 0.0001}).status == "ok"


def test_items_whose_time_is_over_fail() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        late = items(4)
        for item in late:
            item.deadline = asyncio.get_running_loop().time() + 0.3
        return [item async for item in scheduler.stream(late)]

    found = with_lane(work, {"delay_s": 0.5}, batch_size=1)
    assert len(found) == 4
    assert {item.error[0] for item in found if item.status == "failed"} == {"deadline"}


def test_the_time_limit_of_a_batch_does_not_count_the_batch_before_it() -> None:
    found = stream(24, {"delay_s": 0.6}, batch_size=4, timeout=1.0)
    assert {item.status for item in found.values()} == {"ok"}
    assert {item.worker["batch_size"] for item in found.values()} == {4}  # type: ignore[index]


@pytest.mark.parametrize(
    ("breaker", "fails", "pauses"),
    [
        (True, 2, [1.0, 1.0]),
        (True, 3, [1.0, 1.0]),  # and the agent stops
        (False, 3, [1.0, 2.0, 4.0]),
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

        async def call(self, works: list[PackedRequest], timeout: float) -> BatchReply:
            if started == 1:
                raise WorkerLost("worker_died", "the worker process died")
            return await super().call(works, timeout)

    async def slept(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0)

    async def work() -> AgentRequest:
        worker = Worker(WorkerSpec(catalogue.get("null-one"), {}, "/"))
        lane = Dispatcher(catalogue.get("null-one").make({}), lambda: Fragile(worker), breaker=breaker)
        scheduler = Scheduler(RUN_SEED)
        scheduler.add(lane)
        try:
            await lane.start()
            monkeypatch.setattr(asyncio, "sleep", slept)
            return await scheduler.answer("null-one", parse_row(row(1)))
        finally:
            await scheduler.close()

    if breaker and fails == 3:
        with pytest.raises(AgentStoppedError, match="there is no room"):
            asyncio.run(work())
    else:
        assert asyncio.run(work()).status == "ok"
    assert paused == pauses
    assert started == 1 + fails + (not breaker or fails < 3)


def test_one_poison_costs_few_workers() -> None:
    started = []

    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        make = lane._make_worker

        def counted() -> Any:
            started.append(1)
            return make()

        lane._make_worker = counted
        return [item async for item in scheduler.stream(items(60))]

    found = with_lane(work, {"crash": "w017"}, batch_size=16)
    assert [item.stimulus for item in found if item.status == "failed"] == ["w017"]
    assert len(started) == 4  # in company once, then alone three times


def test_a_continuous_engine_that_runs_out_of_memory_gets_fewer_at_once() -> None:
    async def work(scheduler: Scheduler, lane: Dispatcher) -> Any:
        found = [item async for item in scheduler.stream(items(60, "null-one"))]
        return lane.depth, found

    depth, found = with_lane(work, {"batch_limit": 5, "delay_s": 0.05}, agent="null-one")
    assert {item.status for item in found} == {"ok"}
    assert depth < 64


class Hungry(NullAgent):
    """Has no room for w005 at all, and for at most 32 others."""

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        if len(batch) > 32 or any(stimulus.id == "w005" for stimulus in batch):
            raise MemoryError
        return super().respond(batch, draws)


def test_one_huge_stimulus_does_not_make_every_batch_small() -> None:
    worker = Worker(WorkerSpec(catalogue.get("null"), {}, "/"))
    worker.agent = Hungry(NullSettings(), "null")
    works: list[PackedRequest] = [(row(number), None, 1, 0, 0, None) for number in range(64)]
    batch = asyncio.run(worker.answer(works))
    codes = [code for code, *_ in batch.results]
    assert codes == [None] * 5 + ["out_of_memory"] + [None] * 58
    assert batch.limit is None  # what did not fit is explained by the one that never does
    batch = asyncio.run(worker.answer([work for work in works if b"w005" not in work[0]] + works[:1]))
    assert [code for code, *_ in batch.results] == [None] * 64
    assert batch.limit == 32
