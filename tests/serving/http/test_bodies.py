"""Images in base64 as clients spell it, and values that JSON does not have."""

from __future__ import annotations

import base64
import json
import textwrap
import urllib.parse
from collections.abc import Callable

import pytest
import served_here
from pydantic_core import PydanticCustomError
from served_here import here

from serving.http.bodies import from_base64

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
    assert from_base64(spell(base64.b64encode(data).decode())) == data


@pytest.mark.parametrize("text", ["A", "AA=A", "AAA=AAAA", "AA===", "A A A A A", "A%", "é"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(PydanticCustomError, match="is no base64"):
        from_base64(text)
