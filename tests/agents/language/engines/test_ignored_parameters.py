"""Servers that answer with 200 and drop what they do not know, as real ones do."""

import asyncio
import functools
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from agents.errors import AnswerError
from agents.language.engines.openai import ChatSettings, OpenAIEngine
from agents.language.engines.server_replies import ServerText
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from tests.helpers import misbehaving_server as bad

CHAT = TextRequest(messages=(ChatMessage("user", "Tell me about tea."),), sampling=Sampling(max_tokens=5))
LONG = "Tea is a beverage that is made from the leaves of a plant"
NAMES = ("max_tokens", "max_completion_tokens")


def words_of(obeyed: Collection[str], counts: bool = True, refused: str = "") -> Any:
    """A server that knows the ``obeyed`` names of a limit alone; a token is a word."""

    def otherwise(request: bad.Request) -> bad.Act:
        if refused in request.body:
            return bad.status(400, f"Unsupported parameter: '{refused}' is not supported with this model.")
        most = next((request.body[name] for name in obeyed if name in request.body), 1024)
        words = LONG.split()[:most]
        body = bad.good(request, " ".join(words), finish_reason="length" if len(words) == most else "stop")
        return bad.body(bad.as_json({**body, "usage": {"completion_tokens": len(words)} if counts else None}))

    return otherwise


def texts(
    server: bad.Misbehaving, number: int, field: str, at_once: bool, request: TextRequest = CHAT, retries: int = 0
) -> Any:
    """What an engine gives for so many requests."""

    async def main() -> list[ServerText]:
        settings = ChatSettings.model_validate(
            {"model": "m", "base_url": server.url, "retries": retries, "length_field": field, "timeout_s": 20.0}
        )
        engine = OpenAIEngine(settings)
        try:
            if at_once:
                return await asyncio.gather(*(engine.generate(request, seed) for seed in range(number)))
            return [await engine.generate(request, seed) for seed in range(number)]
        finally:
            await engine.aclose()

    return asyncio.run(main())


def fields_sent(server: bad.Misbehaving) -> list[str]:
    return [name for request in server.requests for name in NAMES if name in request.body]


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("field", NAMES)
def test_a_limit_that_is_dropped_is_sent_by_its_other_name_from_then_on(
    server: bad.Misbehaving, caplog: pytest.LogCaptureFixture, field: str, counts: bool
) -> None:
    [other] = {*NAMES} - {field}
    server.otherwise = words_of([other], counts)
    replies = texts(server, 3, field, at_once=False)
    assert [(reply.text, reply.finish, reply.tries) for reply in replies] == [
        ("Tea is a beverage that", "length", 2),
        ("Tea is a beverage that", "length", 1),
        ("Tea is a beverage that", "length", 1),
    ]
    assert fields_sent(server) == [field, other, other, other]
    assert server.requests[0].body["seed"] == server.requests[1].body["seed"]
    assert "ignored" not in replies[0].record()
    assert [line.getMessage() for line in caplog.records] == [f"m drops {field}: {other} is sent instead"]


def test_requests_at_once_find_the_other_name_too(server: bad.Misbehaving, caplog: pytest.LogCaptureFixture) -> None:
    server.otherwise = words_of(["max_tokens"])
    replies = texts(server, 8, "max_completion_tokens", at_once=True)
    assert {reply.text for reply in replies} == {"Tea is a beverage that"}
    assert len(caplog.records) == 1


@pytest.mark.parametrize("refused", ["", "max_tokens", "max_completion_tokens"])
def test_a_server_without_limits_is_named_in_the_records(
    server: bad.Misbehaving, caplog: pytest.LogCaptureFixture, refused: str
) -> None:
    server.otherwise = words_of([], refused=refused or "none")
    with caplog.at_level(logging.WARNING):
        replies = texts(server, 3, "max_completion_tokens", at_once=False)
    [kept] = {*NAMES} - {refused} if refused else ["max_tokens"]
    assert {reply.text for reply in replies} == {LONG}
    assert {reply.record()["ignored"] for reply in replies[1:]} == {(kept,)}
    assert fields_sent(server)[-1] == kept
    assert len(server.requests) <= 3 + 3


def test_a_limit_that_is_heeded_costs_no_request(server: bad.Misbehaving) -> None:
    server.otherwise = words_of(NAMES)
    for max_tokens, text in ((5, "Tea is a beverage that"), (40, LONG)):
        request = replace(CHAT, sampling=Sampling(max_tokens=max_tokens))
        [reply] = texts(server, 1, "max_tokens", at_once=False, request=request)
        assert (reply.text, reply.ignored) == (text, None)
    assert len(server.requests) == 2


def test_a_prompt_has_one_name_of_its_limit(server: bad.Misbehaving) -> None:
    server.otherwise = words_of([])
    request = TextRequest(prompt="Tea", sampling=Sampling(max_tokens=5))
    replies = texts(server, 2, "max_completion_tokens", at_once=False, request=request)
    assert [reply.record()["ignored"] for reply in replies] == [("max_tokens",)] * 2
    assert fields_sent(server) == ["max_tokens"] * 2


def test_a_server_that_refuses_both_names_is_asked_a_few_times(server: bad.Misbehaving) -> None:
    def otherwise(request: bad.Request) -> bad.Act:
        name = next(name for name in NAMES if name in request.body)
        return bad.status(400, f"Unsupported parameter: '{name}' is not supported with this model.")

    server.otherwise = otherwise
    with pytest.raises(AnswerError, match="is not supported"):
        texts(server, 1, "max_tokens", at_once=False)
    assert fields_sent(server) == ["max_tokens", "max_completion_tokens", "max_tokens"]


@pytest.mark.parametrize(
    ("text", "choice", "ignored"),
    [
        ('{"word": "tea"}', {}, None),
        ("Tea, I think.", {}, ("response_format",)),
        ('{"word": "te', {"finish_reason": "length"}, None),  # its limit cut it
        ("Tea, I thi", {"finish_reason": "length"}, ("response_format",)),
        ("I cannot say.", {"finish_reason": "content_filter"}, None),
    ],
)
def test_a_schema_that_is_dropped_is_in_the_record(
    server: bad.Misbehaving, text: str, choice: dict[str, Any], ignored: Any
) -> None:
    server.otherwise = lambda request: bad.answer(text, **choice)
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    [reply] = texts(server, 1, "max_tokens", at_once=False, request=replace(CHAT, schema=schema))
    assert reply.record().get("ignored") == ignored


def test_a_stop_that_the_server_leaves_in_the_text_is_cut_off(server: bad.Misbehaving) -> None:
    """As transformers' server does: the text ends with the stop, or with what its last token has beyond it."""
    stops = ("Alice:", "Bob:", "Carol:", "Dan:", "Eve:")  # one more than is sent
    for end in ("Bob:", "Bob: ", "Eve: I"):
        act = bad.answer(f"I like tea.\n{end}")
        server.otherwise = functools.partial(lambda act, request: act, act)
        request = replace(CHAT, sampling=Sampling(stops=stops))
        [reply] = texts(server, 1, "max_tokens", at_once=False, request=request)
        assert (reply.text, reply.finish) == ("I like tea.\n", "stop")


def test_a_form_that_a_server_does_not_know_is_asked_for_once(server: bad.Misbehaving) -> None:
    """In the words of llama-cpp-python, which has 500 for it."""
    why = "1 validation error: {'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or "
    why += "'json_object'\"}"
    server.otherwise = lambda request: bad.status(500, why)
    with pytest.raises(AnswerError) as caught:
        texts(server, 1, "max_tokens", at_once=False, request=replace(CHAT, schema={"type": "object"}), retries=3)
    assert caught.value.code == "server_refused"
    assert len(server.requests) == 1
