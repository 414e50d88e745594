"""Histories as clients of OpenAI's interface send them back: what agents see of them, and what is named as ignored."""

import base64
import io
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.contract import derive_seed
from tests.helpers import served_here
from tests.helpers.served_here import here

CHAT = "/v1/chat/completions"
FIRST = {"role": "user", "content": "I like tea."}
LAST = {"role": "user", "content": "And rain."}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"role": "assistant", "content": "4."}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "4"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def picture() -> dict[str, Any]:
    file = io.BytesIO()
    PILImage.new("RGB", (8, 8), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", "detail": "low"}}


def parts(*given: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(given)}


def asked(messages: Any, **more: Any) -> tuple[int, Any]:
    """Status and body of a chat with the no-op agent, which tells its seed: that follows from the number of turns."""
    told = {"model": "null", "messages": messages, "stimulus": {"id": "talk"}, **more}
    found: tuple[int, Any] = here(lambda one: one.post(CHAT, told))
    return found


def said(turns: int) -> str:
    """What the no-op agent says at this turn."""
    return f"B says {derive_seed(0, 'null', 'talk', 0, turns, 0):x}."


A_PICTURE_BEFORE = {"type": "image_url", "image_url": {"url": "http://example.org/cat.png"}}
HISTORIES: dict[str, tuple[list[dict[str, Any]], int, list[str]]] = {
    "null": ([FIRST, {"role": "assistant", "content": None}, LAST], 2, ["messages.empty"]),
    "no content at all": ([FIRST, {"role": "assistant"}, LAST], 2, ["messages.empty"]),
    "an empty text": ([FIRST, {"role": "assistant", "content": ""}, LAST], 2, ["messages.empty"]),
    "no parts": ([FIRST, {"role": "assistant", "content": []}, LAST], 2, ["messages.empty"]),
    "refused": ([FIRST, {"role": "assistant", "content": None, "refusal": "I cannot say."}, LAST], 3, []),
    "a refusal part": ([FIRST, parts({"type": "refusal", "refusal": "No."}, role="assistant"), LAST], 3, []),
    "cache_control": (
        [parts({"type": "text", "text": "I like tea.", "cache_control": {"type": "ephemeral"}})],
        1,
        ["messages.content.cache_control"],
    ),
    "cache_control before": (
        [parts({"type": "text", "text": "I like tea.", "cache_control": {"type": "ephemeral"}}), LAST],
        2,
        ["messages.content.cache_control"],
    ),
    "a picture before": ([parts({"type": "text", "text": "See."}, picture()), LAST], 2, ["messages.image"]),
    "a picture alone before": ([parts(picture()), LAST], 1, ["messages.image"]),
    "an address before, which is not fetched": ([parts(A_PICTURE_BEFORE), LAST], 1, ["messages.image"]),
    "sound before": (
        [parts({"type": "text", "text": "Hear."}, {"type": "input_audio", "input_audio": {"data": "AAAA"}}), LAST],
        2,
        ["messages.input_audio"],
    ),
    "thinking before": (
        [FIRST, parts({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Y."}, role="assistant"), LAST],
        3,
        ["messages.thinking"],
    ),
    "a tool was called before": ([FIRST, CALLED, RESULT, ANSWER, LAST], 3, ["messages.tool"]),
    "a tool was called with a text": ([FIRST, {**CALLED, "content": "Wait."}, RESULT, LAST], 3, ["messages.tool"]),
    "a function was called before": (
        [
            FIRST,
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "4"},
            LAST,
        ],
        2,
        ["messages.tool"],
    ),
    "more of a message": ([{**FIRST, "name": "bob"}, {**LAST, "foo": 1}], 2, ["messages.name", "messages.foo"]),
    "instructions": ([{"role": "system", "content": "Be a pirate."}, FIRST], 1, ["messages.system"]),
    "what was said comes back with all its fields": (
        [
            FIRST,
            {
                "role": "assistant",
                "content": "Yes.",
                "refusal": None,
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": None,
            },
            LAST,
        ],
        3,
        [],
    ),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_15_a_history_is_taken_and_what_has_no_effect_is_named(case: str) -> None:
    messages, turns, ignored = HISTORIES[case]
    status, body = asked(messages)
    assert status == 200, body
    assert body["choices"][0]["message"]["content"] == said(turns)
    assert body["turinglike"]["ignored"] == ignored


@pytest.mark.parametrize(
    ("last", "status", "code", "why"),
    [
        ([FIRST, CALLED, RESULT], 400, "unsupported_parameter", "a tool's result is to be answered"),
        ([FIRST, {"role": "assistant", "content": "Yes."}], 422, "invalid_request", "the last message is the user's"),
        ([FIRST, parts({"type": "input_audio", "input_audio": {}})], 422, "invalid_request", "must be a text"),
        ([parts(picture(), picture())], 422, "invalid_request", "one image, and no more"),
        ([parts(A_PICTURE_BEFORE)], 422, "invalid_request", "nothing is fetched"),
        ([parts({"type": "image_url"})], 422, "invalid_request", "nothing is fetched"),
    ],
)
def test_the_last_message_is_one_that_can_be_answered(last: Any, status: int, code: str, why: str) -> None:
    found, body = asked(last)
    assert (found, body["error"]["code"]) == (status, code)
    assert why in body["error"]["message"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tool_choice": "auto"},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        {"functions": [{"name": "f"}], "function_call": "auto"},
    ],
)
def test_tools_that_need_not_be_called_are_ignored(more: Any) -> None:
    status, body = asked([FIRST], tools=[TOOL] * 36, **more)
    assert status == 200, body
    assert body["choices"][0]["message"]["content"] == said(1)
    assert body["turinglike"]["ignored"] == (["tools", "functions"] if "functions" in more else ["tools"])


@pytest.mark.parametrize("seed", [-1, None])
def test_a_seed_of_minus_one_is_none(seed: int | None) -> None:
    status, body = asked([FIRST], seed=seed)
    assert (status, body["choices"][0]["message"]["content"]) == (200, said(1))
    assert asked([FIRST], seed=-2)[0] == 422


def test_names_of_ignored_options_are_fit_for_a_header() -> None:
    names = ["ü", "a\r\nSet-Cookie: x=y", "b,c", "🙂", "plain_one", "x" * 5000]
    told = {"model": "null", "messages": [FIRST], **dict.fromkeys(names, 1)}

    async def work(found: served_here.Here) -> None:
        answer = await found.client.post(CHAT, json=told)
        assert answer.status_code == 200
        assert answer.json()["turinglike"]["ignored"] == names
        header = answer.headers["turinglike-ignored"]
        assert header.startswith("%C3%BC, a%0D%0ASet-Cookie: x=y, b%2Cc, %F0%9F%99%82, plain_one, xxx")
        assert header.isascii()
        assert header.endswith("x ...")
        assert "set-cookie" not in answer.headers

    here(work)
