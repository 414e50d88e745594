"""The service in this process, without Ray: places in a queue, deadlines, agents that fail, load late or restart."""

import asyncio
import json
from typing import Any

import pytest

from agents.errors import AgentStoppedError, UnavailableError
from serving.http.errors import QUOTING
from serving.scheduling.recovery import WorkerLost
from serving.scheduling.request import Outcome, Request
from serving.sets.stimulus_row import StimulusRow
from tests.helpers import served_here
from tests.helpers.in_process import InProcess
from tests.helpers.served_here import code, here

STREAM = "/answers/stream"
ONE = "/answers"
CONVERSATIONS = "/conversations"
ONLY: dict[str, Any] = {"null-one": {}}


def row(number: int = 0) -> dict[str, Any]:
    return {"id": f"w{number:04d}", "task": "word_association", "cue": f"cue {number}"}


def many(count: int, agent: str = "null-one") -> dict[str, Any]:
    return {"agent": agent, "items": [{"stimulus": row(number)} for number in range(count)]}


async def streamed(found: served_here.Here, content: Any) -> list[Any]:
    """The records of a stream."""
    answer = await found.client.post(STREAM, json=content)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


async def ask(found: served_here.Here, agent: str = "null-one", number: int = 0) -> tuple[int, Any]:
    return await found.post(ONE, {"agent": agent, "stimulus": row(number)})


async def ready(found: served_here.Here) -> tuple[int, Any]:
    answer = await found.client.get("/ready")
    return answer.status_code, answer.json()["agents"]


async def counted(found: served_here.Here, name: str) -> float:
    """A value of the metrics."""
    text = (await found.client.get("/metrics")).text
    [line] = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.rpartition(" ")[2])


def failed(agent: str) -> str:
    return f'turinglike_answers_total{{agent="{agent}",status="failed"}}'


# streams


def test_a_stream_of_any_length_is_answered_in_a_small_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(found: served_here.Here) -> None:
        asked: list[int] = []
        answer = found.service.scheduler.answer

        async def counted_answer(*more: Any, **options: Any) -> Outcome:
            asked.append(found.service.waiting()["null-one"])
            return await answer(*more, **options)

        monkeypatch.setattr(found.service.scheduler, "answer", counted_answer)
        records = await streamed(found, many(1000))
        assert sorted(record["stimulus"] for record in records) == [f"w{number:04d}" for number in range(1000)]
        assert {record["status"] for record in records} == {"ok"}
        assert max(asked) == 2
        _, alone = await ask(found, number=7)
        assert [record["answer"] for record in records if record["stimulus"] == "w0007"] == [alone["answer"]]
        assert found.service.waiting() == {"null-one": 0}

    here(work, ONLY, queue=4)


def test_a_stream_is_refused_where_the_queue_is_full_when_it_starts() -> None:
    async def work(found: served_here.Here) -> None:
        with found.service.queued("null-one", 4):
            answer = await found.client.post(STREAM, json=many(1))
            assert code((answer.status_code, answer.json())) == (429, "queue_full")
            assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert await counted(found, 'turinglike_refused_total{agent="null-one"}') == 1
        assert len(await streamed(found, many(1))) == 1

    here(work, ONLY, queue=4)


def test_a_stream_that_nobody_reads_any_more_frees_its_places() -> None:
    async def work(found: served_here.Here) -> None:
        gone = asyncio.create_task(found.hang_up(STREAM, json.dumps(many(100)).encode()))
        await found.asked.wait()
        while found.service.waiting() != {"null-one": 2}:
            await asyncio.sleep(0.001)
        found.leave.set()
        await gone
        assert found.service.waiting() == {"null-one": 0}
        assert found.service.scheduler.dispatchers["null-one"].queued == 0

    here(work, {"null-one": {"delay_s": 60}}, queue=4)


# deadlines


def test_who_waits_too_long_is_told_so_and_counted() -> None:
    async def work(found: served_here.Here) -> None:
        answers = await asyncio.gather(*(ask(found, number=number) for number in range(5)))
        assert [code(answer) for answer in answers] == [(504, "deadline")] * 5
        assert await counted(found, failed("null-one")) == 5
        records = await streamed(found, many(3))
        assert [(record["status"], record["error"]["code"]) for record in records] == [("failed", "deadline")] * 3
        assert await counted(found, failed("null-one")) == 8
        assert found.service.waiting() == {"null-one": 0}

    here(work, {"null-one": {"delay_s": 60}}, deadline=0.2)


@pytest.mark.parametrize(
    ("path", "content"),
    [(ONE, {"stimulus": row()}), (CONVERSATIONS, {"person": "B", "who_starts": "A"})],
    ids=["answer", "conversation"],
)
def test_loading_and_answering_share_one_deadline(path: str, content: Any) -> None:
    async def work(found: served_here.Here) -> None:
        asked = {"agent": "null-one", **content}
        assert code(await found.post(path, asked)) == (504, "deadline")  # each of the two alone would be in time
        assert (await ready(found))[1]["null-one"] == {"state": "ready"}

    here(work, {"null-one": {"load_s": 0.6, "delay_s": 0.6}}, deadline=1.0, lazy=True)


def test_an_agent_that_is_loaded_too_slowly_goes_on_loading() -> None:
    async def work(found: served_here.Here) -> None:
        assert (await ready(found)) == (200, {"null-one": {"state": "not loaded"}, "null": {"state": "not loaded"}})
        answer = await found.client.post(ONE, json={"agent": "null-one", "stimulus": row()})
        assert code((answer.status_code, answer.json())) == (503, "loading")
        assert int(answer.headers["retry-after"]) > 0
        assert (await ready(found)) == (503, {"null-one": {"state": "loading"}, "null": {"state": "not loaded"}})
        while (await ready(found))[0] == 503:
            await asyncio.sleep(0.01)
        assert (await ask(found))[0] == 200
        assert (await ready(found))[1] == {"null-one": {"state": "ready"}, "null": {"state": "not loaded"}}

    here(work, {"null-one": {"load_s": 1.0}, "null": {}}, deadline=0.5, lazy=True)


# agents that fail, restart, end


@pytest.mark.parametrize("lazy", [False, True])
def test_an_agent_that_cannot_be_loaded_says_why_and_the_others_answer(
    lazy: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(found: served_here.Here) -> None:
        for _ in range(2):
            assert code(await ask(found, "null")) == (503, "agent_failed")
        assert code(await found.post(STREAM, many(2, "null"))) == (503, "agent_failed")
        assert code(await found.post(CONVERSATIONS, {"agent": "null"})) == (503, "agent_failed")
        assert (await ask(found))[0] == 200
        status, agents = await ready(found)
        assert (status, agents["null-one"]) == (200, {"state": "ready"})
        assert agents["null"]["state"] == "failed"
        assert agents["null"]["error"] == "could not be loaded; the server's log says why"
        assert any("told to fail while loading" in str(getattr(one, "about", "")) for one in caplog.records)

    here(work, {"null": {"fail_load": True}, "null-one": {}}, lazy=lazy)


def test_an_agent_without_its_weights_takes_no_other_down() -> None:
    async def work(found: served_here.Here) -> None:
        _, agents = await ready(found)
        assert agents["git-base-coco"]["state"] == "failed"
        assert "nowhere" in agents["git-base-coco"]["error"]
        picture = {"stimulus": {"id": "x", "task": "image_captioning"}, "images": {"image": "AAAA"}}
        status, body = await found.post(ONE, {"agent": "git-base-coco", **picture})
        assert (status, body["error"]["code"]) == (503, "agent_failed")
        assert (await ask(found))[0] == 200

    lacking = {"git-base-coco": {"checkpoint": "./nowhere"}}
    here(work, {"null-one": {}, **lacking}, lazy=True)
    with pytest.raises(UnavailableError, match=r"agent git-base-coco: .*nowhere"):
        here(work, lacking, lazy=True)


@pytest.mark.parametrize("code", sorted(QUOTING))
def test_what_a_library_says_of_a_failure_is_for_the_log(code: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work(found: served_here.Here) -> None:
        line = StimulusRow.of_line(b'{"id":"a","task":"word_association","cue":"tea"}', 0, None)
        outcome = Outcome.failed(Request(agent="null", row=line), code, "/home/ann: at 0x7f00")
        assert "/home/ann" not in found.service.answered(outcome).record.decode()
        assert "/home/ann" in str([getattr(one, "about", "") for one in caplog.records])

    here(work)


def test_an_agent_whose_worker_is_lost_is_restarting_until_it_is_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = asyncio.Event()
    back = asyncio.Event()
    start = InProcess.start
    call = InProcess.call

    async def starts(self: InProcess, timeout: float) -> dict[str, Any]:
        if lost.is_set():
            await back.wait()
        return await start(self, timeout)

    async def calls(self: InProcess, works: Any, timeout: float, *more: Any) -> Any:
        if not lost.is_set():
            lost.set()
            raise WorkerLost("worker_died", "the worker process died")
        return await call(self, works, timeout, *more)

    monkeypatch.setattr(InProcess, "start", starts)
    monkeypatch.setattr(InProcess, "call", calls)

    async def work(found: served_here.Here) -> None:
        asked = asyncio.create_task(ask(found))
        await lost.wait()
        await asyncio.sleep(0)
        assert (await ready(found)) == (503, {"null-one": {"state": "restarting"}})
        assert await counted(found, 'turinglike_agent_ready{agent="null-one"}') == 0
        back.set()
        assert (await asked)[0] == 200
        assert (await ready(found)) == (200, {"null-one": {"state": "ready"}})

    here(work, ONLY)


GONE = "has stopped; the server's log says why"


def test_an_agent_that_has_stopped_fails_what_it_had() -> None:
    async def work(found: served_here.Here) -> None:
        asked = asyncio.create_task(ask(found))
        while not any(found.service.waiting().values()):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        found.service.scheduler.dispatchers["null-one"].stop(AgentStoppedError("it is over"))
        assert code(await asked) == (503, "agent_failed")
        assert await counted(found, failed("null-one")) == 1
        assert (await ready(found)) == (503, {"null-one": {"state": "failed", "error": GONE}})

    here(work, {"null-one": {"delay_s": 60}})


def test_a_server_that_ends_takes_nothing_more() -> None:
    async def work(found: served_here.Here) -> None:
        found.service.draining = True
        answer = await found.client.post(ONE, json={"agent": "null-one", "stimulus": row()})
        assert code((answer.status_code, answer.json())) == (503, "shutting_down")
        assert int(answer.headers["retry-after"]) > 0
        assert code(await found.post(STREAM, many(2))) == (503, "shutting_down")
        assert (await ready(found))[0] == 503
        assert (await found.client.get("/health")).status_code == 200

    here(work, ONLY)
