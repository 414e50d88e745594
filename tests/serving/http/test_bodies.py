"""Bodies that would keep others waiting: refused before they are looked at, or read beside the event loop."""

from __future__ import annotations

import asyncio
import base64
import json
import textwrap
import threading
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
import served_here
from served_here import here

from serving.http import bodies
from serving.http.bodies import LARGE, MOST_VALUES, PIECE, from_base64

ROUTES = ["/answers", "/answers/stream", "/v1/chat/completions", "/conversations"]
ROW = {"id": "a", "task": "word_association", "cue": "tea"}


def body_of(content: Any) -> bytes:
    return json.dumps(content).encode()


MANY = {
    "unknown fields": body_of({str(number): 1 for number in range(MOST_VALUES + 1)}),
    "lists": b"[" * (MOST_VALUES + 1),
    "entries of meta": body_of({"agent": "null", "stimulus": {**ROW, "meta": {str(n): [1] for n in range(30_000)}}}),
}


@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
@pytest.mark.parametrize("path", ROUTES)
def test_a_body_of_too_many_values_is_refused_unread(path: str, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "from_json", None)

    async def work(found: served_here.Here) -> None:
        answer = await found.client.post(path, content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")

    here(work)


def test_texts_are_limited() -> None:
    async def work(found: served_here.Here) -> None:
        long = {"agent": "null", "stimulus": {**ROW, "meta": {"note": "x" * (4 << 20)}}}
        assert served_here.code(await found.post("/answers", long)) == (413, "too_large")
        for text in ("NaN", "1e999", "-Infinity"):
            row = json.dumps(ROW).replace('"tea"', f'"tea", "meta": {{"n": [null, {text}]}}')
            answer = await found.client.post(
                "/answers",
                content=f'{{"agent": "null", "stimulus": {row}}}',
                headers={"content-type": "application/json"},
            )
            assert answer.status_code == 422
        number = {"agent": "null", "stimulus": {**ROW, "meta": {"n": 2**64}}}
        assert served_here.code(await found.post("/answers", number)) == (422, "invalid_request")

    here(work)


@pytest.mark.parametrize("path", ROUTES)
def test_a_large_body_is_read_beside_the_loop(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it does not go on before another request has been answered."""
    answered, read = threading.Event(), bodies.from_json

    def waits(body: bytes, **options: Any) -> Any:
        assert answered.wait(20)
        return read(body, **options)

    monkeypatch.setattr(bodies, "from_json", waits)

    async def work(found: served_here.Here) -> None:
        asked = asyncio.create_task(found.post(path, {"agent": "x" * LARGE}))
        await asyncio.sleep(0.05)
        assert (await found.client.get("/health")).status_code == 200
        answered.set()
        assert (await asked)[0] == 422

    here(work)


@pytest.mark.parametrize("size", [0, 1, 2, 3, PIECE - 1, PIECE, 3 * PIECE // 4, 3 * PIECE // 4 + 1, 3 * PIECE + 5])
def test_base64_is_read_in_pieces_as_it_is_as_a_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    assert from_base64(base64.b64encode(data[:size]).decode()) == data[:size]


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: "\r\n".join(textwrap.wrap(text, 76)) + "\r\n",
        lambda text: text.rstrip("="),
        lambda text: text.replace("+", "-").replace("/", "_"),
        lambda text: text.replace("+", "-").replace("/", "_").rstrip("="),
        urllib.parse.quote_plus,
    ],
    ids=["line ends", "no padding", "URL-safe", "URL-safe without padding", "percent-encoded"],
)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, PIECE + 1])
def test_common_spellings_of_base64_are_read(size: int, spell: Callable[[str], str]) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert from_base64(spell(base64.b64encode(data).decode())) == data


@pytest.mark.parametrize(
    "text", ["A", "AA=A", "AAA=AAAA", "A" * (PIECE - 1) + "=" + "AAAA", "AA===", "A A A A A", "A%", "é"]
)
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"padding|base64|ASCII"):
        from_base64(text)
