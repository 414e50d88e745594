"""The scheduler over workers in this process: one reply per request, in whatever batches."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from in_process import RUN_SEED, error_codes, requests, row, scheduled, stream
from PIL import Image as PILImage

from agents import catalogue
from agents.contract import Draw, Reply, Verdict
from agents.errors import AnswerError
from agents.stimuli import Stimulus, parse_row
from agents.universal.null import NullAgent, NullSettings
from serving.scheduling import worker as scheduling_worker
from serving.scheduling.device_errors import is_out_of_memory
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import PackedRequest, Worker, WorkerSpec


def expected_seed(stimulus: str, sample: int = 0, turn: int | None = None, attempt: int = 0) -> int:
    text = json.dumps([1, RUN_SEED, "null", stimulus, sample, turn, attempt], separators=(",", ":"))
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) >> (256 - 53)


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("null", {"batch_size": 7}),
        ("null", {"batch_size": 64, "replicas": 2}),
        ("null-one", {"replicas": 2}),
    ],
)
def test_answers_do_not_depend_on_batches_or_workers(agent: str, options: dict[str, Any]) -> None:
    for stimulus, request in stream(150, agent=agent, **options).items():
        seed = expected_seed(stimulus)
        assert (request.status, request.seed) == ("ok", seed)
        assert orjson.loads(request.answer or b"")["word"] == f"{seed:x}"
        assert request.sha256 == hashlib.sha256(row(int(stimulus[1:]))).hexdigest()


def test_a_batch_that_raises_is_bisected_to_the_stimuli_that_raise() -> None:
    found = stream(64, {"raise_batch": "w0(07|08|41)", "fail": "w013"}, batch_size=64)
    raised = dict.fromkeys(("w007", "w008", "w041"), "respond_failed")
    assert error_codes(found) == {**raised, "w013": "told_to_fail"}  # an error in a reply's place is of that one alone
    assert "told to raise for w007" in found["w007"].error[1]  # type: ignore[index]


def test_torchs_allocator_for_the_cpu_has_no_error_of_its_own() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator") as raised:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(raised.value)
    assert not is_out_of_memory(RuntimeError("can't allocate memory for a mistake of another kind"))


def test_out_of_memory_halves_the_batch_and_is_remembered() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        found = [request async for request in scheduler.stream(requests(100))]
        return dispatcher.batch_size, {request.status for request in found}, len(found)

    assert scheduled(work, {"batch_limit": 10}, batch_size=64) == (8, {"ok"}, 100)


class Hungry(NullAgent):
    """Has no room for w005 at all, and for at most 32 others."""

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        if len(batch) > 32 or any(stimulus.id == "w005" for stimulus in batch):
            raise MemoryError
        return super().respond(batch, draws)


def test_one_huge_stimulus_does_not_make_every_batch_small() -> None:
    worker = Worker(WorkerSpec(catalogue.get("null"), {}, "/"))
    worker.agent = Hungry(NullSettings(), "null")
    batch: list[PackedRequest] = [(row(number), None, 1, 0, 0, None) for number in range(64)]
    reply = asyncio.run(worker.answer(batch))
    assert [code for code, *_ in reply.replies] == [None] * 5 + ["out_of_memory"] + [None] * 58
    assert reply.limit is None  # what did not fit is explained by the one that never does
    reply = asyncio.run(worker.answer([one for one in batch if b"w005" not in one[0]] + batch[:1]))
    assert [code for code, *_ in reply.replies] == [None] * 64
    assert reply.limit == 32


def picture_batch(folder: Path, count: int) -> list[PackedRequest]:
    """Requests for the colour of as many pictures of 100 x 100, each twice."""
    found: list[PackedRequest] = []
    for number in range(count):
        PILImage.new("RGB", (100, 100), (number, 0, 0)).save(folder / f"{number}.png")
        row = orjson.dumps({"id": str(number), "image": f"{number}.png", "task": "color_estimation"})
        found += [(row, None, 1, sample, 0, None) for sample in range(2)]
    return found


def test_a_batch_is_answered_in_parts_whose_pictures_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_worker, "MOST_DECODED", 3 * 100 * 100 * 3)
    batch = picture_batch(tmp_path, 8)
    worker = Worker(WorkerSpec(catalogue.get("mmcq"), {}, str(tmp_path), threads=2))
    worker.load()
    sizes, respond = [], worker.agent.respond

    def noted(prepared: Any, draws: Any) -> Any:
        sizes.append(len(prepared))
        return respond(prepared, draws)

    monkeypatch.setattr(worker.agent, "respond", noted)
    found = asyncio.run(worker.answer(batch))
    assert (sizes, found.size) == ([6, 6, 4], 6)  # three pictures of each part, each asked twice
    monkeypatch.undo()
    assert [reply[:2] for reply in found.replies] == [reply[:2] for reply in asyncio.run(worker.answer(batch)).replies]


def test_batches_of_large_pictures_are_answered_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling_worker, "MOST_DECODED", 15 * 100 * 100 * 3)  # one batch has more than half of it
    batch = picture_batch(tmp_path, 8)
    worker = Worker(WorkerSpec(catalogue.get("mmcq"), {}, str(tmp_path), threads=2))
    worker.load()
    seen: list[str] = []
    prepare, respond = worker.agent.prepare, worker.agent.respond
    monkeypatch.setattr(worker.agent, "prepare", lambda stimulus: seen.append("prepare") or prepare(stimulus))
    monkeypatch.setattr(worker.agent, "respond", lambda *given: seen.append("respond") or respond(*given))

    async def both() -> list[Any]:
        return [one for reply in await asyncio.gather(*map(worker.answer, [batch, batch])) for one in reply.replies]

    assert [code for code, *_ in asyncio.run(both())] == [None] * 32
    assert seen == ([*["prepare"] * 8, "respond"]) * 2


def test_what_finds_no_memory_beside_others_is_prepared_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(WorkerSpec(catalogue.get("mmcq"), {}, str(tmp_path), threads=2))
    worker.load()
    prepare = worker.agent.prepare
    asked: Counter[str] = Counter()

    def starved(stimulus: Any) -> Any:
        asked[stimulus.id] += 1
        if stimulus.id == "never" or (stimulus.id in "3 5" and asked[stimulus.id] == 1):
            raise MemoryError
        return prepare(stimulus)

    monkeypatch.setattr(worker.agent, "prepare", starved)
    batch = [request for request in picture_batch(tmp_path, 8) if request[3] == 0]
    never = batch[0][0].replace(b'"id":"0"', b'"id":"never"')
    replies = asyncio.run(worker.answer([*batch, (never, *batch[0][1:])])).replies
    assert [code for code, *_ in replies] == [None] * 8 + ["out_of_memory"]
    assert asked == {**{str(number): 1 for number in range(8)}, "3": 2, "5": 2, "never": 2}


def test_a_continuous_engine_that_runs_out_of_memory_gets_fewer_at_once() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        found = [request async for request in scheduler.stream(requests(60, "null-one"))]
        return dispatcher.max_in_flight, {request.status for request in found}

    in_flight, statuses = scheduled(work, {"batch_limit": 5, "delay_s": 0.02}, agent="null-one")
    assert in_flight < 64
    assert statuses == {"ok"}


def test_rejected_attempts_are_kept_and_have_seeds_of_their_own() -> None:
    found = stream(200, {"reject": 0.5, "attempts": 3}, batch_size=32)
    assert [request.status for request in found.values()].count("rejected") > 5  # about 1 in 8
    for stimulus, request in found.items():
        drawn = [attempt["seed"] for attempt in request.attempts]
        assert drawn == [expected_seed(stimulus, attempt=k) for k in range(len(drawn))]
        assert [attempt["attempt"] for attempt in request.attempts] == list(range(len(drawn)))
        assert all(verdict["filter"] == "lottery" for attempt in request.attempts for verdict in attempt["verdicts"])
        assert len(request.attempts) == (3 if request.status == "rejected" else request.attempt)
        assert request.seed == expected_seed(stimulus, attempt=request.attempt)


def test_a_filter_that_raises_fails_its_request_alone() -> None:
    def picky(stimulus: Stimulus, reply: Reply) -> Verdict | None:
        if stimulus.id == "w003":
            raise ValueError("no opinion")
        return None

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        dispatcher.agent.filters = (picky,)
        return [request async for request in scheduler.stream(requests(10))]

    found = {request.stimulus: request for request in scheduled(work)}
    assert len(found) == 10
    assert error_codes(found) == {"w003": "filter_failed"}


def test_answer_is_the_stream_of_one() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        return await asyncio.gather(*(scheduler.answer("null", parse_row(row(i)), sample=2, turn=4) for i in range(50)))

    found = scheduled(work)
    for request in found:
        assert request.seed == expected_seed(request.stimulus, sample=2, turn=4)
    assert len({request.answer for request in found}) == 50


def test_a_deadline_and_a_cancellation_leave_the_rest_alone() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
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

    first, last = scheduled(work, {"delay_s": 0.5}, batch_size=1)
    assert (first.stimulus, last.stimulus) == ("w000", "w003")
    assert {first.status, last.status} == {"ok"}


def test_odd_replies_of_a_plugin_become_json() -> None:
    found = stream(5, {"unlike": "cue4"}, agent="echo", batch_size=5)
    assert orjson.loads(found["w001"].answer or b"")["word"] == "cue1!"
    assert orjson.loads(found["w001"].raw or b"") == {"surrogate": "\ufffd", "nan": None}
    assert error_codes(found) == {"w004": "bad_agent"}


def test_the_time_limit_of_a_batch_does_not_count_the_batch_before_it() -> None:
    found = stream(12, {"delay_s": 2}, batch_size=4, timeout=5.0)
    assert {request.status for request in found.values()} == {"ok"}
    assert {request.worker["batch_size"] for request in found.values()} == {4}  # type: ignore[index]
