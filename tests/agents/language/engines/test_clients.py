"""The engines of OpenAI's interface and Anthropic's, against a local server that answers well or misbehaves."""

import asyncio
import base64
import logging
import math
import pickle
import socket
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from agents.contract import Draw
from agents.errors import AnswerError, Code, UnavailableError
from agents.language.engines import clients
from agents.language.engines.anthropic import AnthropicEngine, AnthropicSettings
from agents.language.engines.openai import ChatSettings, OpenAIEngine
from agents.language.engines.server_replies import ServerText
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.word_embeddings import OpenAIEmbeddingAgent
from agents.language.words.vocabulary import most_frequent
from tests.helpers import misbehaving_server as bad
from tests.helpers.misbehaving_server import KEY

QUICK = {"model": "m", "timeout_s": 20.0, "patience_s": 60.0, "retries": 0}
CHAT = TextRequest(messages=(ChatMessage("user", "Hi!"),))
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
KINDS = ("openai", "anthropic")


def run(url: str, use: Callable[[Any], Coroutine[Any, Any, Any]], kind: str = "openai", **settings: Any) -> Any:
    """The result of ``use`` with an engine, in a loop of its own."""

    async def main() -> Any:
        engine: Any
        if kind == "openai":
            engine = OpenAIEngine(ChatSettings(**{**QUICK, "base_url": url, **settings}))
        else:
            engine = AnthropicEngine(AnthropicSettings(**{**QUICK, "base_url": url.removesuffix("/v1"), **settings}))
        try:
            return await use(engine)
        finally:
            await engine.aclose()

    return asyncio.run(main())


def generate(
    server: bad.Misbehaving, request: TextRequest = CHAT, seed: int = 5, kind: str = "openai", **settings: Any
) -> ServerText:
    return run(server.url, lambda engine: engine.generate(request, seed), kind, **settings)


def failure(server: bad.Misbehaving, request: TextRequest = CHAT, **settings: Any) -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        generate(server, request, **settings)
    return caught.value


def error(status: int, text: str, headers: dict[str, str] | None = None, **details: str) -> bad.Act:
    """An error of Anthropic's."""
    inner = {"type": "x_error", "message": text, **({"details": details} if details else {})}
    return bad.body(bad.as_json({"type": "error", "error": inner, "request_id": "req_011CS"}), status, headers)


# requests


ALL = Sampling(0.8, frequency_penalty=2.0, presence_penalty=1.5, max_tokens=33, stops=("A:", "B:", "C:", "D:", "E:"))
HI = {"model": "m", "messages": [{"role": "user", "content": "Hi!"}], "temperature": 1.0}
PROMPT = {
    "model": "m",
    "prompt": "Alice:",
    "temperature": 0.8,
    "frequency_penalty": 2.0,
    "presence_penalty": 1.5,
    "max_tokens": 33,
    "stop": ["A:", "B:", "C:", "D:"],
}


@pytest.mark.parametrize(
    ("request_", "settings", "path", "body"),
    [
        (CHAT, {}, "/v1/chat/completions", {**HI, "max_tokens": 60, "seed": 2**53 - 1}),
        (
            CHAT,
            {"seed_bits": 0, "length_field": "max_completion_tokens"},
            "/v1/chat/completions",
            {**HI, "max_completion_tokens": 60},
        ),
        (
            TextRequest(prompt="Alice:", sampling=ALL),
            {"seed_bits": 31, "length_field": "max_completion_tokens"},
            "/v1/completions",
            {**PROMPT, "seed": 2**31 - 1},
        ),  # completions know no other name of the limit
    ],
)
def test_what_differs_from_the_defaults_is_sent_and_nothing_else(
    server: bad.Misbehaving, request_: TextRequest, settings: dict[str, Any], path: str, body: dict[str, Any]
) -> None:
    generate(server, request_, 2**53 - 1, **settings)
    [request] = server.requests
    assert request.path == path
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == body


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0jpeg", "jpeg"),
        (b"RIFF1234WEBP", "webp"),
        (b"BM bitmap", None),
    ],
)
def test_an_image_is_sent_as_it_is(server: bad.Misbehaving, data: bytes, kind: str | None) -> None:
    request = TextRequest(messages=(ChatMessage("user", "What is it? " * 9, data, "low"),))
    if kind is None:
        assert failure(server, request).code == "bad_image"
        assert server.requests == []
        return
    generate(server, request)
    text, image = server.requests[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is it? " * 9}
    assert image["image_url"]["detail"] == "low"
    head, _, body = image["image_url"]["url"].partition(",")
    assert (head, base64.b64decode(body)) == (f"data:image/{kind};base64", data)
    server.acts = [bad.anthropic("fine")]
    generate(server, request, kind="anthropic")
    source = {"type": "base64", "media_type": f"image/{kind}", "data": body}
    assert server.requests[1].body["messages"][0]["content"] == [{"type": "image", "source": source}, text]


def test_anthropic_is_sent_what_its_interface_has(server: bad.Misbehaving) -> None:
    server.otherwise = lambda request: bad.anthropic("fine")
    chat = (("system", "Be brief."), ("user", "Hi!"), ("assistant", "Hello."), ("user", "Well?"))
    messages = tuple(ChatMessage(role, text) for role, text in chat)  # type: ignore[arg-type]
    sampling = Sampling(0.68, max_tokens=80, stops=("A:",))
    generate(server, TextRequest(messages=messages, sampling=sampling), kind="anthropic")
    generate(server, replace(CHAT, schema={"type": "object"}), kind="anthropic", send_temperature=False)
    first, second = server.requests
    assert first.path == "/v1/messages"
    assert first.headers["anthropic-version"] == "2023-06-01"  # later versions have no temperature
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body == {
        "model": "m",
        "max_tokens": 80,
        "system": "Be brief.",
        "messages": [{"role": role, "content": text} for role, text in chat[1:]],
        "stop_sequences": ["A:"],
        "temperature": 0.68,
    }
    assert second.body == {
        "model": "m",
        "max_tokens": 60,
        "messages": [{"role": "user", "content": "Hi!"}],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    }


# replies


def test_a_reply_is_read_with_its_counts_and_its_model(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer(" Fine.\nAnd you? "), bad.anthropic("Fine.")]
    fields = ("text", "finish", "prompt_tokens", "tokens", "model", "fingerprint", "tries")
    for kind, values in (
        ("openai", (" Fine.\nAnd you? ", "stop", 7, 3, "told-2026", "fp_1", 1)),
        ("anthropic", ("Fine.", "stop", 12, 6, "told", None, 1)),
    ):
        assert generate(server, kind=kind).record() == dict(zip(fields, values, strict=True))


@pytest.mark.parametrize(
    ("choice", "stops", "text", "finish"),
    [
        ({"finish_reason": "length"}, (), "One. Bob: two. Alice: three", "length"),
        ({"finish_reason": "stop"}, ("Alice:", "Bob:"), "One. ", "stop"),
        ({"finish_reason": "length"}, ("1:", "2:", "3:", "4:", "Alice:"), "One. Bob: two. ", "stop"),
        ({"finish_reason": "content_filter"}, (), "One. Bob: two. Alice: three", "filtered"),
        ({"finish_reason": None}, (), "One. Bob: two. Alice: three", "stop"),
    ],
)
def test_texts_end_before_the_first_stop(
    server: bad.Misbehaving, choice: dict[str, Any], stops: tuple[str, ...], text: str, finish: str
) -> None:
    server.otherwise = lambda request: bad.answer("One. Bob: two. Alice: three", **choice)
    for request in (CHAT, TextRequest(prompt="x")):
        reply = generate(server, replace(request, sampling=Sampling(stops=stops)))
        assert (reply.text, reply.finish, reply.raw) == (text, finish, "One. Bob: two. Alice: three")
        assert ("raw" in reply.record()) == (reply.raw != text)


@pytest.mark.parametrize(
    ("act", "text", "finish"),
    [
        (bad.answer(message={"content": None, "refusal": "No."}), "No.", "filtered"),
        (bad.answer(message={"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "ab", "stop"),
        (bad.anthropic("One", "two"), "One two", "stop"),
        (bad.anthropic("One", stop_reason="max_tokens"), "One", "length"),
        (bad.anthropic("One", stop_reason="model_context_window_exceeded"), "One", "length"),
        (bad.anthropic(stop_reason="refusal"), "", "filtered"),
        (bad.anthropic(content=[{"type": "thinking", "thinking": "Hm", "signature": "s"}]), "", "stop"),
        (bad.anthropic("One", usage=None, model=7), "One", "stop"),
    ],
)
def test_other_forms_of_a_reply(server: bad.Misbehaving, act: bad.Act, text: str, finish: str) -> None:
    kind = "openai" if "answer" in act.__qualname__ else "anthropic"
    server.acts = [act]
    reply = generate(server, kind=kind)
    assert (reply.text, reply.finish) == (text, finish)


# misbehaviour

OF_BOTH: list[tuple[bad.Act, str, str]] = [
    (bad.body(b"", 307, {"Location": "/v1/elsewhere"}), "server_refused", "answered 307"),
    (bad.body(b"<html>gateway</html>", 502), "server_busy", "<html>gateway</html>"),
    (bad.body(b"<html>welcome</html>"), "server_bad_reply", "another form: Invalid JSON"),
    (bad.body(b"\xff\xfe{}"), "server_bad_reply", "another form"),
    (bad.hang, "server_timeout", "no reply within 0.3 s"),
    (bad.drip, "server_timeout", "no reply within 0.5 s, all tries together"),
    (bad.cut, "server_unreachable", "no connection"),
    (bad.half, "server_unreachable", "no connection"),
]
MISBEHAVIOUR = [
    *((kind, *case) for kind in KINDS for case in OF_BOTH),
    ("openai", bad.status(429, "slow down"), "server_busy", "answered 429: slow down"),
    ("openai", bad.status(408), "server_busy", "answered 408"),
    ("openai", bad.status(429, "pay", code="insufficient_quota"), "server_refused", "pay"),
    ("openai", bad.status(401, "Incorrect API key"), "server_auth", "answered 401: Incorrect API key"),
    ("openai", bad.status(400, "bad field"), "server_refused", "answered 400: bad field"),
    ("openai", bad.status(400, "This model's maximum context length is 512 tokens"), "no_room", "512 tokens"),
    ("openai", bad.status(400, "too long", code="context_length_exceeded"), "no_room", "too long"),
    ("openai", bad.status(500, "image input is not supported"), "server_refused", "not supported"),
    ("openai", bad.body(b'{"detail": "no such field"}', 422), "server_refused", "answered 422: no such field"),
    ("openai", bad.body(b"{}"), "server_bad_reply", "choices Field required"),
    ("openai", bad.body(b'{"choices": [{}]}'), "server_bad_reply", "no text"),
    ("anthropic", error(403, "not yours"), "server_auth", "answered 403: not yours"),
    ("anthropic", error(402, "pay"), "server_refused", "answered 402: pay"),
    ("anthropic", error(429, "spent", error_code="enforced_spend_limit_reached"), "server_refused", "429: spent"),
    ("anthropic", error(529, "Overloaded"), "server_busy", "answered 529: Overloaded"),
    ("anthropic", bad.anthropic(content=[{"type": "text", "text": 5}]), "server_bad_reply", "another form"),
]


@pytest.mark.parametrize(("kind", "act", "code", "words"), MISBEHAVIOUR)
def test_every_misbehaviour_has_its_code(
    server: bad.Misbehaving, kind: str, act: bad.Act, code: str, words: str
) -> None:
    server.otherwise = lambda request: act
    settings: dict[Any, dict[str, Any]] = {bad.hang: {"timeout_s": 0.3}, bad.drip: {"patience_s": 0.5}}
    patience = settings.get(act, {})
    caught = failure(server, kind=kind, **patience)
    assert caught.code == code
    assert caught.code in get_args(Code)
    assert words in str(caught)
    assert str(caught).startswith(server.url.removesuffix("/v1"))
    assert "\n" not in str(caught)
    assert caught.__context__ is None  # which would hold the request, and its headers
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_pass_is_tried_again_with_the_same_request(server: bad.Misbehaving, kind: str) -> None:
    soon = {"retry-after-ms": "1"}
    good = bad.answer("at last") if kind == "openai" else bad.anthropic("at last")
    server.acts = [bad.status(429, headers=soon), bad.status(529, headers=soon), bad.cut, good]
    text = generate(server, kind=kind, retries=3)
    assert (text.text, text.tries, len(server.requests)) == ("at last", 4, 4)
    assert all(request.body == server.requests[0].body for request in server.requests)
    server.otherwise = lambda request: bad.status(503, headers=soon)
    server.requests.clear()
    assert failure(server, kind=kind, retries=2).code == "server_busy"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "act", [bad.status(500, "image input is not supported"), bad.status(429, code="insufficient_quota")]
)
def test_what_a_server_will_never_take_is_sent_once(server: bad.Misbehaving, act: bad.Act) -> None:
    server.otherwise = lambda request: act
    assert failure(server, retries=3).code == "server_refused"
    assert len(server.requests) == 1


# pictures

ASK = TextRequest(messages=(ChatMessage("user", "Which one of the eleven colors has this picture most of?", PNG),))


def seen(picture: str | None) -> tuple[int, str]:
    return 20 + 64 * (picture is not None), "red"


def dropped(picture: str | None) -> tuple[int, str]:
    return 20, "red"


def uncounted(picture: str | None) -> tuple[int, str]:
    return 20, f"a picture that ends with {(picture or '')[-40:]}"


@pytest.mark.parametrize(
    ("server_of", "requests", "refused"), [(seen, 3 + 1, False), (dropped, 3 + 3, True), (uncounted, 3 + 3, False)]
)
def test_a_server_that_leaves_pictures_out_is_noticed(
    server: bad.Misbehaving, server_of: Callable[[str | None], tuple[int, str]], requests: int, refused: bool
) -> None:
    def otherwise(request: bad.Request) -> bad.Act:
        content = request.body["messages"][0]["content"]
        tokens, text = server_of(content[1]["image_url"]["url"] if isinstance(content, list) else None)
        return bad.body(bad.as_json({**bad.good(request, text), "usage": {"prompt_tokens": tokens}}))

    server.otherwise = otherwise

    async def use(engine: OpenAIEngine) -> list[Any]:
        return await asyncio.gather(*(engine.generate(ASK, seed) for seed in range(3)), return_exceptions=True)

    replies = run(server.url, use)
    assert [isinstance(reply, AnswerError) for reply in replies] == [refused] * 3
    if refused:
        assert {reply.code for reply in replies} == {"server_refused"}
        assert "sees no pictures" in str(replies[0])
    assert len(server.requests) == requests


@pytest.mark.parametrize("others", [(), (ChatMessage("user", "Hi"),), (ChatMessage("assistant", "Yes?"),)])
def test_a_server_without_a_system_is_asked_otherwise(
    server: bad.Misbehaving, caplog: pytest.LogCaptureFixture, others: tuple[ChatMessage, ...]
) -> None:
    def otherwise(request: bad.Request) -> bad.Act:
        is_refused = request.body["messages"][0]["role"] == "system"
        return bad.status(400, "System role not supported (TemplateError)") if is_refused else bad.answer("fine")

    async def use(engine: OpenAIEngine) -> list[str]:
        request = TextRequest(messages=(ChatMessage("system", "Be kind."), *others))
        return [(await engine.generate(request, seed)).text for seed in range(3)]

    server.otherwise = otherwise
    assert run(server.url, use) == ["fine"] * 3
    first = "Be kind.\n\nHi" if others and others[0].role == "user" else "Be kind."
    assert [request.body["messages"][0]["content"] for request in server.requests] == ["Be kind.", *[first] * 3]
    assert len(server.requests[-1].body["messages"]) == len({"user", *(message.role for message in others)})
    assert sum("takes no system message" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_model_refuses_is_left_out_and_recorded(
    server: bad.Misbehaving, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    def otherwise(request: bad.Request) -> bad.Act:
        if kind == "anthropic":
            is_new = "temperature" in request.body
            good = bad.anthropic("fine")
            return bad.status(400, "`temperature` is deprecated for this model.") if is_new else good
        for name in ("max_tokens", "temperature", "frequency_penalty"):
            if name in request.body:
                return bad.status(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        return bad.answer("fine")

    async def use(engine: Any) -> list[ServerText]:
        request = replace(CHAT, sampling=Sampling(0.5, frequency_penalty=1.0, max_tokens=9))
        return await asyncio.gather(*(engine.generate(request, seed) for seed in range(3)))

    server.otherwise = otherwise
    unsent = ("temperature",) if kind == "anthropic" else ("frequency_penalty", "temperature")
    assert [text.record()["unsent"] for text in run(server.url, use, kind)] == [unsent] * 3
    limit = "max_tokens" if kind == "anthropic" else "max_completion_tokens"
    assert server.requests[-1].body[limit] == 9
    assert sum(" takes no " in record.getMessage() for record in caplog.records) == len(unsent)
    server.acts = [bad.status(400, "Unsupported parameter: 'messages' is not supported with this model.")]
    assert failure(server).code == "server_refused"


# embeddings


@pytest.mark.parametrize(
    ("index", "vector"), [(0, [1.0]), (2, [1.0]), (1, []), (1, "AACAPw=="), (1, [math.nan]), (1, [1.0, 2.0])]
)
def test_bad_vectors_are_refused(server: bad.Misbehaving, index: int, vector: Any) -> None:
    data = [{"index": 0, "embedding": [1.0]}, {"index": index, "embedding": vector}]
    server.otherwise = lambda request: bad.body(bad.as_json({"data": data}))
    with pytest.raises(AnswerError) as caught:
        run(server.url, lambda engine: engine.embed(["a", "b"]))
    assert caught.value.code == "server_bad_reply"


def embedding_agent(server: bad.Misbehaving) -> OpenAIEmbeddingAgent:
    settings = {**QUICK, "base_url": server.url, "vocabulary": 300, "rules": [], "candidates": 3}
    agent = OpenAIEmbeddingAgent(OpenAIEmbeddingAgent.Settings.model_validate(settings), "openai-embedding")
    agent.open()
    return agent


def test_the_nearest_word_by_a_servers_vectors(server: bad.Misbehaving) -> None:
    vocabulary = most_frequent(300)
    agent = embedding_agent(server)
    agent.load("cpu")
    assert sum(len(request.body["input"]) for request in server.requests) == 300
    cues = ["zebra", "government", "zebra"]
    replies = agent.respond([*cues], [Draw(1), Draw(1), Draw(1, sample=1)])
    for cue, reply, rank in zip(cues, replies, (0, 0, 1), strict=True):
        distances = sorted(math.dist(bad.vector(cue), bad.vector(word)) for word in vocabulary if word != cue)
        assert math.dist(bad.vector(cue), bad.vector(reply.answer.word)) == pytest.approx(distances[rank])
    assert replies[0] != replies[2]
    server.otherwise = lambda request: bad.status(500)
    [caught] = agent.respond(["zebra"], [Draw(1)])
    assert caught.code == "server_busy"
    agent.close()


def test_a_server_that_has_not_begun_is_named_at_once_and_what_to_start(server: bad.Misbehaving) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        free = embedding_agent(bad.Misbehaving(f"http://127.0.0.1:{closed.getsockname()[1]}/v1"))
        with pytest.raises(
            UnavailableError, match=rf"nothing answers at {free.settings.base_url} \(Connection refused"
        ):
            free.load("cpu")
    assert embedding_agent(server).settings.unreachable() is None


def test_a_vocabulary_that_cannot_be_embedded_ends_the_agent(server: bad.Misbehaving) -> None:
    server.otherwise = lambda request: bad.echo(401)
    with pytest.raises(UnavailableError, match=r"cannot be embedded: .*answered 401") as caught:
        embedding_agent(server).load("cpu")
    assert KEY not in everything(caught.value)


# the key


def everything(caught: BaseException) -> str:
    """All that could be printed or sent of an error."""
    printed = "".join(traceback.format_exception(caught)) + repr(caught) + repr(vars(caught))
    return printed + repr(pickle.dumps(caught)) + repr((caught.__context__, caught.__cause__))


def echo_of_anthropic(handler: bad.Handler) -> None:
    key = handler.request_seen.headers["authorization"]
    bad.anthropic(key, model=key)(handler)


def echo_in_error_of_anthropic(handler: bad.Handler) -> None:
    error(401, handler.request_seen.headers["authorization"])(handler)


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        *(("openai", bad.echo(status)) for status in (200, 400, 401, 500)),
        ("anthropic", echo_of_anthropic),
        ("anthropic", echo_in_error_of_anthropic),
        *((kind, act) for kind in KINDS for act in (bad.hang, bad.cut)),
        ("openai", bad.body(KEY.encode())),
    ],
)
def test_the_key_is_in_no_error_answer_or_log(
    server: bad.Misbehaving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    act: bad.Act,
) -> None:
    server.otherwise = lambda request: act
    for name in clients.LOGGERS:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)  # put back afterwards

    async def use(engine: Any) -> str:
        try:
            text = repr(await engine.generate(CHAT, 1))
        except AnswerError as caught:
            text = everything(caught)
        return text + repr(engine) + repr(vars(engine))

    with caplog.at_level(logging.DEBUG):
        printed = run(server.url, use, kind, timeout_s=0.3 if act is bad.hang else 20.0)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    outside = capfd.readouterr()
    for text in (printed, caplog.text, outside.out, outside.err):
        assert KEY not in text
        assert KEY[3:20] not in text
    if act.__qualname__.startswith("echo"):
        assert "[key]" in printed


@pytest.mark.parametrize("key", ["sk-one\nX-Injected: yes", "sk-\u00e9", 'sk-"quoted"', "sk-two words", "sk-\x01"])
def test_what_cannot_be_a_key_is_neither_sent_nor_printed(
    server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UnavailableError) as caught:
        generate(server)
    assert "OPENAI_API_KEY holds something that cannot be a key" in str(caught.value)
    assert "sk-" not in everything(caught.value)
    assert server.requests == []


def test_which_key_is_sent(server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)  # which the client would take by itself
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    monkeypatch.setenv("OTHER_KEY", "sk-other-0123")
    generate(server)
    generate(server, key_variable="")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    generate(server)
    generate(server, key_variable="OTHER_KEY")
    server.otherwise = lambda request: bad.anthropic("fine")
    generate(server, kind="anthropic")
    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [f"Bearer {KEY}", None, None, "Bearer sk-other-0123", None]


@pytest.mark.parametrize(
    ("url", "needs_key"),
    [
        ("https://api.openai.com/v1", True),
        ("http://192.168.0.7:8000/v1", True),
        ("http://0.0.0.0:8000/v1", True),
        ("https://localhost.evil.org/v1", True),
        ("http://localhost:8000/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://[::1]:8000/v1", False),
    ],
)
def test_a_server_elsewhere_needs_a_key(monkeypatch: pytest.MonkeyPatch, url: str, needs_key: bool) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    missing = OpenAIEngine(ChatSettings(model="m", base_url=url)).missing() or ""
    assert ("OPENAI_API_KEY holds no key" in missing) == needs_key
    assert OpenAIEngine(ChatSettings(model="m", base_url=url, key_variable="")).missing() is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("key_variable", "sk-secret0123456789"),
        ("base_url", "https://user:secret0123@host/v1"),
        ("base_url", "https://host/v1?api_key=secret0123"),
        ("api_key", "sk-secret0123456789"),
    ],
)
def test_settings_take_no_secret(setting: str, value: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ChatSettings.model_validate({"model": "m", setting: value})
    assert "secret0123" not in str(caught.value.errors(include_url=False, include_input=False, include_context=False))
