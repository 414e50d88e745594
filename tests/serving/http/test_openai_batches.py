"""OpenAI's batch files by the unchanged ``openai`` client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
import served_here
from served_here import here

CHAT = "/v1/chat/completions"


def line(custom_id: str, url: str = CHAT, **body: Any) -> dict[str, Any]:
    asked = {"model": "null", "messages": [{"role": "user", "content": custom_id}], "seed": 7, **body}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": asked}


async def begun(client: openai.AsyncOpenAI, lines: list[Any], endpoint: Any = CHAT) -> Any:
    content = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines).encode()
    file = await client.files.create(file=("asked.jsonl", content), purpose="batch")
    assert (file.filename, file.bytes, file.status) == ("asked.jsonl", len(content), "processed")
    assert await client.files.retrieve(file.id) == file
    return await client.batches.create(
        input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"of": "a test"}
    )


async def ended(client: openai.AsyncOpenAI, batch: Any) -> Any:
    async with asyncio.timeout(60):
        while batch.status in ("validating", "in_progress"):
            await asyncio.sleep(0.005)
            batch = await client.batches.retrieve(batch.id)
    return batch


async def read(client: openai.AsyncOpenAI, file: str | None) -> dict[str, Any]:
    """The replies of a file of answers, by their custom ids."""
    assert file is not None
    lines = [json.loads(one) for one in (await client.files.content(file)).text.splitlines()]
    assert all(one["error"] is None for one in lines)
    return {one["custom_id"]: one["response"] for one in lines}


def test_a_batch_has_the_answers_that_its_requests_have_alone() -> None:
    async def work(found: served_here.Here) -> None:
        client = found.openai()
        lines = [line(f"talk {number}") for number in range(20)]
        wrong = [line("of nobody", model="nobody"), line("no model", model=3), line("in pieces", stream=True)]
        batch = await ended(client, await begun(client, [*lines, "", *wrong]))
        assert (batch.status, batch.metadata) == ("completed", {"of": "a test"})
        assert batch.completed_at >= batch.in_progress_at >= batch.created_at
        counts = batch.request_counts
        assert (counts.total, counts.completed, counts.failed) == (23, 20, 3)
        said = await read(client, batch.output_file_id)
        for one in lines:
            _, alone = await found.post(CHAT, one["body"])
            reply = said[one["custom_id"]]
            assert reply["status_code"] == 200
            assert reply["body"]["choices"] == alone["choices"]
        failed = await read(client, batch.error_file_id)
        assert {name: reply["status_code"] for name, reply in failed.items()} == {
            "of nobody": 404, "no model": 422, "in pieces": 422
        }  # fmt: skip
        assert failed["of nobody"]["body"]["error"]["code"] == "unknown_agent"
        assert (await client.files.delete(batch.output_file_id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.files.content(batch.output_file_id)

    here(work, queue=3)


def test_prompts_are_answered_too() -> None:
    async def work(found: served_here.Here) -> None:
        client, url = found.openai(), "/v1/completions"
        one = {**line("one", url), "body": {"model": "null", "prompt": "Hi", "n": 2}}
        batch = await ended(client, await begun(client, [one], url))
        assert len((await read(client, batch.output_file_id))["one"]["body"]["choices"]) == 2

    here(work)


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([line("a"), "no JSON", line("b")], [2]),
        ([line("a"), line("b"), line("a")], [3]),
        ([line("a"), line("b", "/v1/embeddings"), {"custom_id": "c"}], [2, 3]),
        ([""], [None]),
    ],
)
def test_a_wrong_file_is_answered_in_no_part(lines: list[Any], wrong: list[int | None]) -> None:
    async def work(found: served_here.Here) -> None:
        client = found.openai()
        batch = await ended(client, await begun(client, lines))
        assert (batch.status, batch.output_file_id, batch.request_counts.completed) == ("failed", None, 0)
        assert [one.line for one in batch.errors.data] == wrong

    here(work)


def test_a_wrong_file_is_read_no_further_than_its_errors_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from serving.http import openai_batches

    monkeypatch.setattr(openai_batches, "MOST_REQUESTS", 2)

    async def work(found: served_here.Here) -> None:
        client = found.openai()
        batch = await ended(client, await begun(client, [line("a"), line("b"), line("c"), "no JSON"]))
        assert [(one.line, one.message) for one in batch.errors.data] == [(None, "a batch has 1 to 2 requests")]
        batch = await ended(client, await begun(client, [{"custom_id": "a", "method": "PUT", "url": CHAT}]))
        assert "method: " in batch.errors.data[0].message
        assert "; body: " in batch.errors.data[0].message

    here(work)


def test_who_waits_for_a_batch_hears_of_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from serving.http import openai_batches

    async def broken(*asked: Any) -> None:
        raise OSError("no space left")

    async def work(found: served_here.Here) -> None:
        client = found.openai()
        with monkeypatch.context() as patch:
            patch.setattr(openai_batches, "respond", broken)
            batch = await ended(client, await begun(client, [line("a"), line("b")]))
        assert (batch.status, [one.code for one in batch.errors.data]) == ("failed", ["internal_error"])
        assert "no space left" not in batch.model_dump_json()
        assert (await ended(client, await begun(client, [line("next")]))).status == "completed"

    here(work)
    [about] = [vars(one)["about"] for one in caplog.records if one.message == "fault"]
    assert about["fault"].startswith("OSError (test_openai_batches.py:")


def test_a_batch_is_cancelled_with_what_it_has() -> None:
    async def work(found: served_here.Here) -> None:
        client = found.openai()
        batch = await begun(client, [line("quick"), *(line(f"slow {number}", model="null-one") for number in range(9))])
        waiting = await begun(client, [line("later")])
        async with asyncio.timeout(60):
            while batch.request_counts.completed == 0:
                batch = await client.batches.retrieve(batch.id)
                await asyncio.sleep(0.005)
        assert (await client.batches.retrieve(waiting.id)).status == "validating"  # one after the other
        batch = await client.batches.cancel(batch.id)
        assert (batch.status, batch.request_counts.completed) == ("cancelled", 1)
        assert list(await read(client, batch.output_file_id)) == ["quick"]
        assert found.service.waiting()["null-one"] == 0
        assert (await ended(client, waiting)).status == "completed"

    here(work, {"null": {}, "null-one": {"delay_s": 600}})


def test_more_than_the_queue_is_an_error_and_not_waited_for() -> None:
    async def work(found: served_here.Here) -> None:
        client = found.openai()
        batch = await ended(client, await begun(client, [line("many", n=5)]))
        assert (await read(client, batch.error_file_id))["many"]["status_code"] == 429

    here(work, queue=4)


def test_files_are_bounded_and_forms_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from serving.http import openai_batches

    monkeypatch.setattr(openai_batches, "MOST_BYTES", 100)
    monkeypatch.setattr(openai_batches, "MOST_KEPT", 2)

    async def work(found: served_here.Here) -> None:
        create = found.openai().files.create
        with pytest.raises(openai.APIStatusError) as caught:
            await create(file=("a", b"x" * 101), purpose="batch")
        assert caught.value.status_code == 413
        for _ in range(2):
            await create(file=("a", b"x" * 50), purpose="batch")
        with pytest.raises(openai.APIStatusError) as caught:
            await create(file=("a", b""), purpose="batch")
        assert caught.value.status_code == 413
        with pytest.raises(openai.UnprocessableEntityError):
            await create(file=("a", b"x"), purpose="fine-tune")
        for way in (found.client.get, found.client.delete):
            assert (await way("/v1/files/..%2f..%2fetc%2fpasswd")).status_code == 404
        with pytest.raises(openai.NotFoundError):
            await found.openai().batches.create(input_file_id="file-0", endpoint=CHAT, completion_window="24h")
        with pytest.raises(openai.NotFoundError):
            await found.openai().batches.cancel("batch_0")

    here(work)
