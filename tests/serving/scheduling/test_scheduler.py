"""The scheduler over workers in this process: one reply per request, in whatever batches."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from null_agent import NullAgent, NullSettings
from PIL import Image as PILImage

from agents import catalogue
from agents.contract import Draw, Reply, Verdict
from agents.errors import AnswerError
from agents.stimuli import Stimulus
from serving.scheduling import worker as scheduling_worker
from serving.scheduling.batch import PackedRequest
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.request import Request
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.under_way import UnderWay
from serving.scheduling.worker import Worker, WorkerSpec
from serving.sets.stimulus_row import StimulusRow
from tests.helpers.in_process import RUN_SEED, error_codes, packed, requests, row, scheduled, stimulus_row, stream


def expected_seed(stimulus: str, sample: int = 0, turn: int | None = None, attempt: int = 0) -> int:
    text = json.dumps([1, RUN_SEED, "null", stimulus, sample, turn, attempt], separators=(",", ":"))
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) >> (256 - 53)


@pytest.mark.parametrize(
    ("agent", "options"),
    [("null", {"batch_size": 7}), ("null", {"batch_size": 64, "replicas": 2}), ("null-one", {"replicas": 2})],
)
def test_answers_do_not_depend_on_batches_or_workers(agent: str, options: dict[str, Any]) -> None:
    for stimulus, request in stream(150, agent=agent, **options).items():
        seed = expected_seed(stimulus)
        assert (request.status, request.seed) == ("ok", seed)
        assert orjson.loads(request.answer or b"")["word"] == f"{seed:x}"
        assert request.sha256 == hashlib.sha256(row(int(stimulus[1:]))).hexdigest()


def test_a_batch_that_raises_is_bisected_to_the_stimuli_that_raise() -> None:
    outcomes = stream(64, {"raise_batch": "w0(07|08|41)", "fail": "w013"}, batch_size=64)
    raised = dict.fromkeys(("w007", "w008", "w041"), "respond_failed")
    assert error_codes(outcomes) == {**raised, "w013": "told_to_fail"}  # an error in a reply's place is of that alone
    assert "told to raise for w007" in outcomes["w007"].error[1]  # type: ignore[index]


def test_out_of_memory_halves_the_batch_and_is_remembered() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        statuses = [request.status async for request in scheduler.stream(requests(100))]
        return dispatcher.batch_size, statuses

    assert scheduled(work, {"batch_limit": 10}, batch_size=64) == (8, ["ok"] * 100)


def test_a_continuous_engine_that_runs_out_of_memory_gets_fewer_at_once() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        statuses = {request.status async for request in scheduler.stream(requests(60, "null-one"))}
        return dispatcher.max_in_flight, statuses

    in_flight, statuses = scheduled(work, {"batch_limit": 5, "delay_s": 0.02}, agent="null-one")
    assert in_flight < 64
    assert statuses == {"ok"}


class Hungry(NullAgent):
    """Has no room for w005 at all, and for at most 32 others."""

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        if len(batch) > 32 or any(stimulus.id == "w005" for stimulus in batch):
            raise MemoryError
        return super().respond(batch, draws)


def test_a_huge_stimulus_does_not_make_every_batch_small() -> None:
    worker = Worker(WorkerSpec(catalogue.get("null"), {}, "/"))
    worker.agent = Hungry(NullSettings(), "null")
    batch = [packed(number) for number in range(64)]
    reply = asyncio.run(worker.answer(batch))
    assert [packed.code for packed in reply.replies] == [None] * 5 + ["out_of_memory"] + [None] * 58
    assert reply.limit is None  # w005 explains it
    reply = asyncio.run(worker.answer([request for request in batch if request.row.id != "w005"] + batch[:1]))
    assert [packed.code for packed in reply.replies] == [None] * 64
    assert reply.limit == 32


def color_worker(folder: Path, count: int = 8) -> tuple[Worker, list[PackedRequest]]:
    """A worker, and requests for the colour of as many pictures of 100 x 100, each twice."""
    batch: list[PackedRequest] = []
    for number in range(count):
        PILImage.new("RGB", (100, 100), (number, 0, 0)).save(folder / f"{number}.png")
        picture = orjson.dumps({"id": str(number), "image": f"{number}.png", "task": "color_estimation"})
        stimulus = StimulusRow.of_line(picture, number, str(folder))
        batch += [PackedRequest(stimulus, 1, sample) for sample in range(2)]
    worker = Worker(WorkerSpec(catalogue.get("mmcq"), {}, str(folder), threads=2))
    worker.load()
    return worker, batch


def test_a_batch_is_answered_in_parts_whose_pictures_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, batch = color_worker(tmp_path)
    sizes = []
    respond = worker.agent.respond

    def note_size(prepared: Any, draws: Any) -> Any:
        sizes.append(len(prepared))
        return respond(prepared, draws)

    monkeypatch.setattr(scheduling_worker, "MOST_DECODED", 6 * 100 * 100 * 3)
    monkeypatch.setattr(worker.agent, "respond", note_size)
    reply = asyncio.run(worker.answer(batch))
    assert (sizes, reply.size) == ([6, 6, 4], 6)
    monkeypatch.undo()
    assert [part[:2] for part in reply.replies] == [part[:2] for part in asyncio.run(worker.answer(batch)).replies]


def test_what_gets_no_memory_beside_others_is_prepared_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, batch = color_worker(tmp_path)
    prepare = worker.agent.prepare
    prepared: Counter[str] = Counter()

    def starved(stimulus: Any) -> Any:
        prepared[stimulus.id] += 1
        if stimulus.id == "never" or (stimulus.id in "3 5" and prepared[stimulus.id] == 1):
            raise MemoryError
        return prepare(stimulus)

    monkeypatch.setattr(worker.agent, "prepare", starved)
    batch = [request for request in batch if request.sample == 0]
    picture = batch[0].row.json.replace(b'"id":"0"', b'"id":"never"')
    never = PackedRequest(StimulusRow.of_line(picture, 8, str(tmp_path)), 1)
    replies = asyncio.run(worker.answer([*batch, never])).replies
    assert [packed.code for packed in replies] == [None] * 8 + ["out_of_memory"]
    assert prepared == {**{str(number): 1 for number in range(8)}, "3": 2, "5": 2, "never": 2}


def test_rejected_attempts_are_kept_and_have_seeds_of_their_own() -> None:
    outcomes = stream(200, {"reject": 0.5, "attempts": 3}, batch_size=32)
    assert [request.status for request in outcomes.values()].count("rejected") > 5  # about 1 in 8
    for stimulus, request in outcomes.items():
        drawn = [attempt.seed for attempt in request.attempts]
        assert drawn == [expected_seed(stimulus, attempt=k) for k in range(len(drawn))]
        assert [attempt.number for attempt in request.attempts] == list(range(len(drawn)))
        assert {finding.filter for attempt in request.attempts for finding in attempt.findings} <= {"lottery"}
        assert len(request.attempts) == (3 if request.status == "rejected" else request.attempt)
        assert request.seed == expected_seed(stimulus, attempt=request.attempt)


def test_a_filter_that_raises_fails_its_request_alone() -> None:
    def picky(stimulus: Stimulus, reply: Reply) -> Verdict | None:
        if stimulus.id == "w003":
            raise ValueError("no opinion")
        return None

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        dispatcher.declared = dispatcher.declared.replace(filters=(picky,))
        return {outcome.request.row.id: outcome async for outcome in scheduler.stream(requests(10))}

    outcomes = scheduled(work)
    assert len(outcomes) == 10
    assert error_codes(outcomes) == {"w003": "filter_failed"}


def ask(number: int, deadline: float | None = None) -> Request:
    return Request(agent="null", row=stimulus_row(number), deadline=deadline)


def test_a_deadline_and_a_cancellation_leave_others_alone() -> None:
    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Any:
        slow = asyncio.create_task(scheduler.answer(ask(0)))
        await asyncio.sleep(0.05)
        late = asyncio.create_task(scheduler.answer(ask(1, deadline=0.1)))
        gone = asyncio.create_task(scheduler.answer(ask(2)))
        await asyncio.sleep(0.05)
        gone.cancel()
        with pytest.raises(AnswerError, match=r"no answer within 0.1 s"):
            await late
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await slow, await scheduler.answer(ask(3))

    first, last = scheduled(work, {"delay_s": 0.5}, batch_size=1)
    assert (first.request.row.id, last.request.row.id) == ("w000", "w003")
    assert {first.status, last.status} == {"ok"}


def test_the_smallest_order_goes_first_and_of_equals_the_first_to_arrive() -> None:
    finished: list[Any] = []

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> None:
        orders = (3, 1, 2, 1, 3, 1)
        queued = [UnderWay(request, lambda under_way, _: finished.append(under_way)) for request in requests(6)]
        dispatcher.max_in_flight = 1  # of two batches in hand the threads of this process may end the second first
        for under_way, under_way.order in zip(queued, orders, strict=True):
            dispatcher.submit(under_way)
        dispatcher.dispatch()
        while len(finished) < 6:
            await asyncio.sleep(0)
        assert finished == sorted(queued, key=lambda under_way: under_way.order)

    scheduled(work, batch_size=1)


def test_odd_replies_of_a_plugin_become_json() -> None:
    outcomes = stream(5, {"unlike": "cue4"}, agent="echo", batch_size=5)
    assert orjson.loads(outcomes["w001"].answer or b"")["word"] == "cue1!"
    assert orjson.loads(outcomes["w001"].raw or b"") == {"surrogate": "\ufffd", "nan": None}
    assert error_codes(outcomes) == {"w004": "bad_agent"}


def served(monkeypatch: pytest.MonkeyPatch, raw_of: Callable[[Draw], dict[str, Any]]) -> None:
    """Let the null agent answer as an agent on a server does."""
    real = NullAgent.respond

    def respond(agent: NullAgent, batch: Sequence[Stimulus], seeds: Sequence[Draw]) -> Sequence[Reply | Exception]:
        for reply, draw in zip(replies := real(agent, batch, seeds), seeds, strict=True):
            reply.raw = {"model": "m", **raw_of(draw)}
        return replies

    monkeypatch.setattr(NullAgent, "respond", respond)


@pytest.mark.parametrize(("draws", "warnings"), [(False, 1), (True, 0)])
def test_a_server_that_draws_nothing_is_noticed(
    draws: bool, warnings: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served(monkeypatch, lambda draw: {"text": f"The scene has {draw.seed if draws else 'at least 8'} words."})
    with caplog.at_level("WARNING", "turinglike.scheduling"):
        outcomes = stream(20, {"reject": 1.0, "attempts": 4})
    assert {request.status for request in outcomes.values()} == {"rejected"}
    assert [line.message.count("draws nothing") for line in caplog.records] == [1] * warnings


@pytest.mark.parametrize(
    ("samples", "stimuli", "text", "warnings"),
    [
        (4, 2, "I like tea, and books about the sea.", 1),
        (4, 2, "I like tea, and books about the sea {seed}.", 0),
        (1, 20, "I like tea, and books about the sea.", 0),  # other questions may well have the same answer
        (4, 9, "sea", 0),  # of a word a model may be sure
        (4, 10, "sea", 1),
        (4, 30, "sea{seed}", 0),
    ],
)
def test_samples_that_a_server_repeats_are_noticed(
    samples: int,
    stimuli: int,
    text: str,
    warnings: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    served(monkeypatch, lambda draw: {"text": text.format(seed=draw.seed)})

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> None:
        asked = [request._replace(sample=number) for request in requests(stimuli) for number in range(samples)]
        assert {request.status async for request in scheduler.stream(iter(asked))} == {"ok"}

    with caplog.at_level("WARNING", "turinglike.scheduling"):
        scheduled(work)
    assert [line.message.count("draws nothing") for line in caplog.records] == [1] * warnings


def test_the_same_seed_twice_shows_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    served(monkeypatch, lambda draw: {"text": f"I like tea, and {draw.seed} books about the sea."})

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> None:
        asked = [request for _ in range(20) for request in requests(2)]
        assert {request.status async for request in scheduler.stream(iter(asked))} == {"ok"}

    with caplog.at_level("WARNING", "turinglike.scheduling"):
        scheduled(work)
    assert not caplog.records


def test_what_a_server_ignores_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    served(monkeypatch, lambda draw: {"text": str(draw.seed), "ignored": ["max_tokens", "response_format"]})
    with caplog.at_level("WARNING", "turinglike.scheduling"):
        stream(20)
    assert [line.message for line in caplog.records] == [
        "null: the server ignores max_tokens; `ignored` in records says where",
        "null: the server ignores response_format; `ignored` in records says where",
    ]
