"""Images in base64 as clients spell it, and values that JSON does not have."""

import base64
import json
import textwrap
import threading
import urllib.parse
from collections.abc import Callable

import pytest

from serving.http import bodies, question
from serving.http.bodies import from_base64
from serving.http.errors import ApiError
from tests.helpers import served_here
from tests.helpers.served_here import here

ROW = {"id": "a", "task": "word_association", "cue": "tea"}


def test_what_json_has_not_is_refused() -> None:
    async def work(found: served_here.Here) -> None:
        for text in ("NaN", "1e999", "-Infinity", str(2**64), "[" * 300 + "]" * 300, '"\\udfff"'):
            row = json.dumps(ROW).replace('"tea"', f'"tea", "meta": {{"n": [null, {text}]}}')
            answer = await found.client.post(
                "/answers",
                content=f'{{"agent": "null", "stimulus": {row}}}',
                headers={"content-type": "application/json"},
            )
            assert answer.status_code == 422

    here(work)


@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda text: "\r\n".join(textwrap.wrap(text, 76)) + "\r\n",
        lambda text: text.rstrip("="),
        lambda text: text.replace("+", "-").replace("/", "_").rstrip("="),
        urllib.parse.quote_plus,
    ],
    ids=["plain", "line ends", "no padding", "URL-safe without padding", "percent-encoded"],
)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000])
def test_common_spellings_of_base64_are_read(size: int, spell: Callable[[str], str]) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert from_base64(spell(base64.b64encode(data).decode()), "image") == data


@pytest.mark.parametrize("text", ["A", "AA=A", "AAA=AAAA", "AA===", "A A A A A", "A%", "é"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="image: is no base64"):
        from_base64(text, "image")


def test_images_are_decoded_in_other_threads_than_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def decode(text: str, field: str) -> bytes:
        threads.append(threading.current_thread())
        return from_base64(text, field)

    async def work(found: served_here.Here) -> None:
        item = {"stimulus": {"id": "a", "task": "color_estimation"}, "images": {"image": "AAAA"}}
        assert (await found.post("/answers", {"agent": "null", **item}))[0] == 200
        assert (await found.client.post("/answers/stream", json={"agent": "null", "items": [item]})).status_code == 200
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        chat = {"model": "null", "messages": [{"role": "user", "content": [image]}]}
        assert (await found.post("/v1/chat/completions", chat))[0] == 200

    monkeypatch.setattr(bodies, "from_base64", decode)
    monkeypatch.setattr(question, "from_base64", decode)
    here(work)
    assert len(threads) == 3
    assert threading.main_thread() not in threads


def test_a_stream_names_the_items_of_all_problems() -> None:
    async def work(found: served_here.Here) -> None:
        right = {"stimulus": {"id": "a", "task": "word_association", "cue": "sun"}}
        items = [right, {**right, "images": {"image": "A"}}, {"stimulus": {"id": "b", "task": "word_association"}}]
        status, body = await found.post("/answers/stream", {"agent": "null", "items": items})
        assert status == 422
        assert [problem["field"] for problem in body["error"]["problems"]] == [
            "items.1.images.image",
            "items.2.stimulus.cue",
        ]

    here(work)
