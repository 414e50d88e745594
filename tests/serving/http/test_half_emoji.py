"""Half an emoji, as of a text that was cut by UTF-16 units: refused with 422, whatever holds it, on all routes."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers import served_here
from tests.helpers.served_here import here

HALF = "tea \ud83d"
WORD = {"id": "w", "task": "word_association", "cue": "tea"}
BODIES: dict[str, Any] = {
    "/answers": {"agent": "null", "stimulus": {**WORD, "meta": {"note": "x"}}},
    "/answers/stream": {"agent": "null", "items": [{"stimulus": WORD}]},
    "/conversations": {"agent": "null", "topic": "tea", "personas": ["Ann", "Ben"], "opener": "Hi!"},
    "/conversations/none/messages": {"text": "Hi!"},
    "/v1/chat/completions": {
        "model": "null",
        "messages": [
            {"role": "user", "content": "I like tea."},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, {"type": "refusal", "refusal": "No."}]},
            {"role": "user", "content": "And rain."},
        ],
        "stop": ["x"],
        "metadata": {"who": "me"},
        "user": "me",
        "stimulus": {"id": "talk", "names": ["Ann", "Ben"]},
    },
    "/v1/completions": {"model": "null", "prompt": ["I like tea."], "stop": "x", "user": "me"},
    "/v1/responses": {
        "model": "null",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "I like tea."}]},
            {"type": "item_reference", "id": "msg_1"},
            {"role": "user", "content": "And rain."},
        ],
        "instructions": "Be kind.",
        "metadata": {"who": "me"},
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all texts."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield from places(inside, (*path, key))
    elif isinstance(value, list):
        for number, inside in enumerate(value):
            yield from places(inside, (*path, number))


def with_half(body: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(body)
    inside = changed
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = HALF
    return changed


@pytest.mark.parametrize("route", BODIES)
def test_12_half_an_emoji_is_refused_in_every_text_of_every_route(route: str) -> None:
    async def work(found: served_here.Here) -> None:
        for path in places(BODIES[route]):
            body = json.dumps(with_half(BODIES[route], path))
            answer = await found.client.post(route, content=body, headers={"content-type": "application/json"})
            assert answer.status_code == 422, (path, answer.text)
            error = answer.json()["error"]
            assert (error["code"], error["param"]) == ("invalid_request", ".".join(map(str, path)))
            assert "half of a character" in error["message"]
        with_key = json.dumps({**BODIES[route], HALF: 1})
        answer = await found.client.post(route, content=with_key, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["message"][:16]) == (422, "body: a key hold")

    here(work)


@pytest.mark.parametrize("kind", ["escaped", "utf-8", "utf-16", "utf-32"])
def test_12_half_an_emoji_is_seen_in_every_encoding_of_json(kind: str) -> None:
    told = {"model": "null", "messages": [{"role": "user", "content": HALF}]}
    text = json.dumps(told, ensure_ascii=kind == "escaped")
    body = text.encode("ascii") if kind == "escaped" else text.encode(kind, "surrogatepass")

    async def work(found: served_here.Here) -> None:
        answer = await found.client.post(
            "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "messages.0.content")

    here(work)


def test_whole_emojis_are_taken() -> None:
    async def work(found: served_here.Here) -> None:
        for ensure_ascii in (True, False):
            told = {"model": "null", "messages": [{"role": "user", "content": "tea \U0001f642\\ \\ud83d é"}]}
            body = json.dumps(told, ensure_ascii=ensure_ascii).encode()
            answer = await found.client.post(
                "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 200

    here(work)
