"""The engine for Anthropic's servers: its client against a local server that replies as is documented, or badly."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import misbehaving_server as bad
import pytest

from agents.errors import CODES, AnswerError, UnavailableError
from agents.language.claude import AnthropicEngine, AnthropicSettings
from agents.language.engines import clients as server_engine
from agents.language.engines.clients import ServerText
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest

KEY = "sk-ant-planted.Key_0123456789-abcdefg"
CHAT = TextRequest(messages=(ChatMessage("user", "Hi!"),))


def message(*texts: str, **changes: Any) -> bad.Act:
    """A good reply."""
    return bad.body(
        bad.as_json(
            {
                "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
                "type": "message",
                "role": "assistant",
                "model": "claude-told",
                "content": [{"type": "text", "text": text} for text in texts],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 12, "output_tokens": 6, "cache_read_input_tokens": 0},
                **changes,
            }
        )
    )


def error(status: int, kind: str, text: str, headers: dict[str, str] | None = None, **details: str) -> bad.Act:
    """An error as Anthropic puts it."""
    inner = {"type": kind, "message": text, **({"details": details} if details else {})}
    return bad.body(bad.as_json({"type": "error", "error": inner, "request_id": "req_011CS"}), status, headers)


def echo(status: int) -> bad.Act:
    """The key that was sent comes back, in an error or as the answer."""

    def act(handler: bad.Handler) -> None:
        sent = handler.request_seen.headers["authorization"]
        (message(sent, model=sent) if status == 200 else error(status, "api_error", sent))(handler)

    return act


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[bad.Misbehaving]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing but the local server is ever reached
    with bad.running() as told:
        told.url = told.url.removesuffix("/v1")
        yield told


def complete(server: bad.Misbehaving, asked: TextRequest = CHAT, **settings: Any) -> ServerText:
    async def main() -> ServerText:
        chosen = {"base_url": server.url, "model": "m", "timeout_s": 20.0, "patience_s": 60.0, "retries": 0, **settings}
        engine = AnthropicEngine(AnthropicSettings(**chosen))
        try:
            return await engine.generate(asked, 5)
        finally:
            await engine.aclose()

    return asyncio.run(main())


def failure(server: bad.Misbehaving, **settings: Any) -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        complete(server, **settings)
    return caught.value


def test_a_chat_is_sent_with_what_the_interface_has(server: bad.Misbehaving) -> None:
    server.otherwise = lambda request: message("fine")
    complete(server)
    said = (("system", "Be brief."), ("user", "Hi!"), ("assistant", "Hello."), ("user", "Well?"))
    messages = tuple(ChatMessage(role, text) for role, text in said)  # type: ignore[arg-type]
    complete(server, TextRequest(messages=messages, sampling=Sampling(0.68, max_tokens=80, stops=("A:",))))
    complete(server, send_temperature=False)
    first, second, third = server.requests
    assert first.path == "/v1/messages"
    assert first.headers["anthropic-version"] == "2023-06-01"  # later versions have no temperature
    assert first.headers["authorization"] == f"Bearer {KEY}"
    chat = {"model": "m", "max_tokens": 60, "messages": [{"role": "user", "content": "Hi!"}]}
    assert first.body == {**chat, "temperature": 1.0}
    assert second.body == {
        "model": "m",
        "max_tokens": 80,
        "system": "Be brief.",
        "messages": [{"role": role, "content": text} for role, text in said[1:]],
        "stop_sequences": ["A:"],
        "temperature": 0.68,
    }
    assert third.body == chat


def test_no_key_is_sent_where_there_is_none(server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)  # which the client would take by itself
    server.otherwise = lambda request: message("fine")
    complete(server, key_variable="")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    complete(server)
    assert [request.headers.get("authorization") for request in server.requests] == [None, None]
    with pytest.raises(UnavailableError, match="ANTHROPIC_API_KEY holds no key for https://api"):
        complete(bad.Misbehaving("https://api.anthropic.com"))


def test_a_reply_is_read_with_its_counts(server: bad.Misbehaving) -> None:
    server.acts = [message("Fine. And you?")]
    assert complete(server).record() == {
        "text": "Fine. And you?",
        "finish": "stop",
        "prompt_tokens": 12,
        "tokens": 6,
        "model": "claude-told",
        "fingerprint": None,
        "tries": 1,
    }


@pytest.mark.parametrize(
    ("texts", "changes", "text", "finish"),
    [
        (["One", "two"], {}, "One two", "stop"),
        (["One"], {"stop_reason": "stop_sequence", "stop_sequence": "A:"}, "One", "stop"),
        (["One"], {"stop_reason": "max_tokens"}, "One", "length"),
        (["One"], {"stop_reason": "model_context_window_exceeded"}, "One", "length"),
        (["One"], {"stop_reason": None}, "One", "stop"),
        ([], {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio"}}, "", "filtered"),
        ([], {}, "", "stop"),
        ([], {"content": [{"type": "thinking", "thinking": "Hm", "signature": "s"}]}, "", "stop"),
        (["One"], {"usage": None, "model": 7}, "One", "stop"),
    ],
)
def test_replies_end_for_many_reasons(
    server: bad.Misbehaving, texts: list[str], changes: dict[str, Any], text: str, finish: str
) -> None:
    server.acts = [message(*texts, **changes)]
    said = complete(server)
    assert (said.text, said.finish) == (text, finish)


@pytest.mark.parametrize(
    ("act", "code", "said"),
    [
        (error(401, "authentication_error", "invalid x-api-key"), "server_auth", "answered 401: invalid x-api-key"),
        (error(403, "permission_error", "not yours"), "server_auth", "answered 403: not yours"),
        (error(400, "invalid_request_error", "temperature: no"), "server_refused", "answered 400: temperature: no"),
        (error(402, "billing_error", "pay"), "server_refused", "answered 402: pay"),
        (error(404, "not_found_error", "model: m"), "server_refused", "answered 404: model: m"),
        (error(429, "rate_limit_error", "slow", {"retry-after": "9"}), "server_busy", "answered 429: slow"),
        (
            error(429, "rate_limit_error", "spent", error_code="enforced_spend_limit_reached"),
            "server_refused",
            "answered 429: spent",
        ),
        (error(529, "overloaded_error", "Overloaded"), "server_busy", "answered 529: Overloaded"),
        (bad.body(b"<html>gateway</html>", 502), "server_busy", "<html>gateway</html>"),
        (bad.body(b"", 307, {"Location": "/v1/elsewhere"}), "server_refused", "answered 307"),
        (bad.body(b"<html>welcome</html>"), "server_bad_reply", "another form: Invalid JSON"),
        (bad.body(b"{}"), "server_bad_reply", "content Field required"),
        (message(content="text"), "server_bad_reply", "another form"),
        (message(content=[{"type": "text", "text": 5}]), "server_bad_reply", "another form"),
        (bad.hang, "server_timeout", "no reply within 0.3 s"),
        (bad.drip, "server_timeout", "no reply within 0.5 s, all tries together"),
        (bad.cut, "server_unreachable", "no connection"),
        (bad.half, "server_unreachable", "no connection"),
    ],
)
def test_every_misbehaviour_has_its_code(
    server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch, act: bad.Act, code: str, said: str
) -> None:
    server.otherwise = lambda request: act
    found = failure(server, **{bad.hang: {"timeout_s": 0.3}, bad.drip: {"patience_s": 0.5}}.get(act, {}))
    assert found.code == code
    assert found.code in CODES
    assert said in str(found)
    assert str(found).startswith(server.url)
    assert "\n" not in str(found)
    assert found.__context__ is None  # which would hold the request, and its headers
    assert len(server.requests) == 1


def test_the_client_tries_again(server: bad.Misbehaving) -> None:
    soon = {"retry-after-ms": "1"}
    server.acts = [error(429, "rate_limit_error", "slow", soon), error(529, "overloaded_error", "no", soon), bad.cut]
    server.otherwise = lambda request: message("at last")
    said = complete(server, retries=3)
    assert (said.text, said.tries, len(server.requests)) == ("at last", 4, 4)
    server.otherwise = lambda request: error(529, "overloaded_error", "no", soon)
    server.requests.clear()
    assert failure(server, retries=2).code == "server_busy"
    assert len(server.requests) == 3


@pytest.mark.parametrize("act", [echo(200), echo(400), echo(401), echo(500), bad.hang, bad.cut, bad.body(KEY.encode())])
def test_the_key_is_in_no_error_answer_or_log(
    server: bad.Misbehaving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    act: bad.Act,
) -> None:
    server.otherwise = lambda request: act
    for name in server_engine.LOGGERS:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)  # put back afterwards
    with caplog.at_level(logging.DEBUG):
        try:
            shown = str(complete(server, timeout_s=0.3 if act is bad.hang else 20.0).record())
        except AnswerError as raised:
            shown = "".join(traceback.format_exception(raised)) + repr(vars(raised)) + repr(pickle.dumps(raised))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    outside = capfd.readouterr()
    for text in (shown, caplog.text, outside.out, outside.err):
        assert KEY not in text
    if act.__qualname__.startswith("echo"):
        assert "[key]" in shown


def test_without_the_package_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_engine, "find_spec", lambda name: None)
    missing = AnthropicEngine(AnthropicSettings(model="m")).missing()
    assert missing == "the package anthropic is not installed: pip install 'turinglike[cloud]'"
