"""The engine for servers, against one that misbehaves and against transformers' own."""

from __future__ import annotations

import asyncio
import base64
import logging
import math
import os
import pickle
import re
import socket
import sys
import traceback
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import misbehaving_server as bad
import pytest
import server_process
import tiny_captioners
import tiny_language
from pydantic import ValidationError

from agents.contract import Draw, Reply
from agents.errors import CODES, AnswerError, UnavailableError
from agents.language.engines import clients as server_engine
from agents.language.engines.clients import ServerText
from agents.language.engines.openai import ChatSettings, OpenAIEngine
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.openai_chat import OpenAIChatAgent
from agents.language.word_embeddings import OpenAIEmbeddingAgent
from agents.language.words.vocabulary import most_frequent

KEY = "sk-planted.Key_0123456789-abcdefg"
QUICK = {"model": "m", "timeout_s": 20.0, "patience_s": 60.0, "retries": 0}
CHAT = TextRequest(messages=(ChatMessage("user", "Hi!"),))
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[bad.Misbehaving]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with bad.running() as told:
        yield told


def run(url: str, use: Callable[[OpenAIEngine], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
    """What ``use`` makes of an engine, in a loop of its own."""

    async def main() -> Any:
        engine = OpenAIEngine(ChatSettings(**{**QUICK, "base_url": url, **settings}))
        try:
            return await use(engine)
        finally:
            await engine.aclose()

    return asyncio.run(main())


def complete(server: bad.Misbehaving, asked: TextRequest = CHAT, seed: int = 5, **settings: Any) -> ServerText:
    said = run(server.url, lambda engine: engine.generate(asked, seed), **settings)
    assert isinstance(said, ServerText)
    return said


def failure(server: bad.Misbehaving, asked: TextRequest = CHAT, **settings: Any) -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        complete(server, asked, **settings)
    return caught.value


# what is sent


def test_a_chat_sends_what_differs_from_the_defaults_and_nothing_else(server: bad.Misbehaving) -> None:
    complete(server)
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi!"}],
        "temperature": 1.0,
        "max_tokens": 60,
        "seed": 5,
    }


def test_everything_that_sampling_says_is_sent(server: bad.Misbehaving) -> None:
    sampling = Sampling(0.8, 0.9, 7, 2.0, 1.5, 33, 4, ("A:", "B:", "C:", "D:", "E:"))
    complete(server, TextRequest(prompt="Alice:", sampling=sampling), 2**53 - 1, seed_bits=31)
    [request] = server.requests
    assert request.path == "/v1/completions"
    assert request.body == {
        "model": "m",
        "prompt": "Alice:",
        "temperature": 0.8,
        "top_p": 0.9,
        "top_k": 7,
        "frequency_penalty": 2.0,
        "presence_penalty": 1.5,
        "max_tokens": 33,
        "min_tokens": 4,
        "stop": ["A:", "B:", "C:", "D:"],
        "seed": 2**31 - 1,
    }


def test_servers_that_want_no_seed_or_another_name_for_the_limit_get_it(server: bad.Misbehaving) -> None:
    complete(server, seed_bits=0, length_field="max_completion_tokens")
    complete(server, TextRequest(prompt="x"), length_field="max_completion_tokens")
    assert {"seed", "max_tokens"}.isdisjoint(server.requests[0].body)
    assert server.requests[0].body["max_completion_tokens"] == 60
    assert server.requests[1].body["max_tokens"] == 60  # completions know the one name only


@pytest.mark.parametrize(
    ("data", "kind"), [(PNG, "png"), (b"\xff\xd8\xff\xe0jpeg", "jpeg"), (b"GIF89a..", "gif"), (b"RIFF1234WEBP", "webp")]
)
def test_an_image_goes_as_it_is(server: bad.Misbehaving, data: bytes, kind: str) -> None:
    asked = TextRequest(messages=(ChatMessage("system", "Look."), ChatMessage("user", "What is it?", data, "low")))
    complete(server, asked)
    system, user = server.requests[0].body["messages"]
    assert system == {"role": "system", "content": "Look."}
    text, image = user["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image["image_url"]["detail"] == "low"
    head, _, body = image["image_url"]["url"].partition(",")
    assert (head, base64.b64decode(body)) == (f"data:image/{kind};base64", data)


def test_bytes_of_another_kind_are_not_sent(server: bad.Misbehaving) -> None:
    assert failure(server, TextRequest(messages=(ChatMessage("user", "?", b"BM bitmap"),))).code == "bad_image"
    assert server.requests == []


def test_no_key_is_sent_where_there_is_none(server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch) -> None:
    complete(server, key_variable="")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OTHER_KEY", "sk-other-0123")
    complete(server)
    complete(server, key_variable="OTHER_KEY")
    assert [request.headers.get("authorization") for request in server.requests] == [None, None, "Bearer sk-other-0123"]


# what comes back


def test_a_reply_is_read_with_its_counts_and_who_gave_it(server: bad.Misbehaving) -> None:
    server.acts = [bad.answer(" Fine.\nAnd you? ")]
    said = complete(server)
    assert said == ServerText(" Fine.\nAnd you? ", "stop", " Fine.\nAnd you? ", 7, 3, "told-2026", "fp_1", 1)
    assert said.record() == {
        "text": " Fine.\nAnd you? ",
        "finish": "stop",
        "prompt_tokens": 7,
        "tokens": 3,
        "model": "told-2026",
        "fingerprint": "fp_1",
        "tries": 1,
    }


@pytest.mark.parametrize(
    ("choice", "stops", "text", "finish"),
    [
        ({"finish_reason": "length"}, (), "One. Bob: two. Alice: three", "length"),
        ({"finish_reason": "stop"}, ("Alice:", "Bob:"), "One. ", "stop"),
        ({"finish_reason": "length"}, ("1:", "2:", "3:", "4:", "Alice:"), "One. Bob: two. ", "stop"),
        ({"finish_reason": "length"}, ("Carl:",), "One. Bob: two. Alice: three", "length"),
        ({"finish_reason": "content_filter"}, (), "One. Bob: two. Alice: three", "filtered"),
        ({"finish_reason": None}, (), "One. Bob: two. Alice: three", "stop"),
    ],
)
@pytest.mark.parametrize("asked", [CHAT, TextRequest(prompt="x")])
def test_texts_end_before_the_first_stop_and_say_why(
    server: bad.Misbehaving, asked: TextRequest, choice: dict[str, Any], stops: tuple[str, ...], text: str, finish: str
) -> None:
    server.acts = [bad.answer("One. Bob: two. Alice: three", **choice)]
    said = complete(server, TextRequest(asked.prompt, asked.messages, Sampling(stops=stops)))
    assert (said.text, said.finish, said.raw) == (text, finish, "One. Bob: two. Alice: three")
    assert ("raw" in said.record()) == (said.raw != text)


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"content": None, "refusal": "No."}, "No.", "filtered"),
        ({"content": None}, "", "stop"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", "stop"),
        ({"content": None, "tool_calls": [{}]}, "", "stop"),
    ],
)
def test_other_forms_of_a_message(server: bad.Misbehaving, message: dict[str, Any], text: str, finish: str) -> None:
    server.acts = [bad.answer(message=message)]
    said = complete(server)
    assert (said.text, said.finish) == (text, finish)


# misbehaviour


@pytest.mark.parametrize(
    ("act", "code", "said"),
    [
        (bad.status(429, "slow down"), "server_busy", "answered 429: slow down"),
        (bad.status(500, "oops"), "server_busy", "answered 500: oops"),
        (bad.status(408), "server_busy", "answered 408"),
        (bad.status(429, headers={"Retry-After": "3600"}), "server_busy", "answered 429"),
        (bad.status(429, "pay", code="insufficient_quota"), "server_refused", "pay"),
        (bad.status(401, "Incorrect API key"), "server_auth", "answered 401: Incorrect API key"),
        (bad.status(403), "server_auth", "answered 403"),
        (bad.status(400, "bad field"), "server_refused", "answered 400: bad field"),
        (bad.status(400, "This model's maximum context length is 512 tokens"), "no_room", "512 tokens"),
        (bad.status(400, "too long", code="context_length_exceeded"), "no_room", "too long"),
        (bad.status(500, "image input is not supported"), "server_refused", "not supported"),
        (bad.body(b"", 307, {"Location": "/v1/elsewhere"}), "server_refused", "answered 307"),
        (bad.body(b"<html>gateway</html>", 502), "server_busy", "<html>gateway</html>"),
        (bad.body(b'{"detail": "no such field"}', 422), "server_refused", "answered 422: no such field"),
        (bad.body(b"<html>welcome</html>"), "server_bad_reply", "another form: Invalid JSON"),
        (bad.body(b"\xff\xfe{}"), "server_bad_reply", "another form"),
        (bad.body(b"[" * 100_000), "server_bad_reply", "another form"),
        (bad.body(b""), "server_bad_reply", "another form"),
        (bad.body(b"null"), "server_bad_reply", "another form"),
        (bad.body(b"{}"), "server_bad_reply", "choices Field required"),
        (bad.body(b'{"choices": []}'), "server_bad_reply", "choices List should have at least 1 item"),
        (bad.body(b'{"choices": [{}]}'), "server_bad_reply", "no text"),
        (bad.body(b'{"choices": "text"}'), "server_bad_reply", "another form"),
        (bad.body(b'{"choices": [{"message": {"content": 5}}]}'), "server_bad_reply", "another form"),
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
    patience = {bad.hang: {"timeout_s": 0.3}, bad.drip: {"patience_s": 0.5}}.get(act, {})
    error = failure(server, **patience)
    assert error.code == code
    assert error.code in CODES
    assert said in str(error)
    assert server.url in str(error)
    assert "\n" not in str(error)
    assert error.__context__ is None  # which would hold the request, and its headers
    assert len(server.requests) == 1


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(AnswerError) as caught:
            run(url, lambda engine: engine.generate(CHAT, 1))
    assert caught.value.code == "server_unreachable"


SOON = {"retry-after-ms": "1"}


def test_what_helps_is_tried_until_it_is_answered_with_the_same_seed(server: bad.Misbehaving) -> None:
    server.acts = [bad.status(429, headers=SOON), bad.status(500, headers=SOON), bad.cut, bad.answer("at last")]
    text = complete(server, retries=3)
    assert (text.text, text.tries, len(server.requests)) == ("at last", 4, 4)
    assert {request.body["seed"] for request in server.requests} == {5}
    server.otherwise = lambda request: bad.status(503, headers=SOON)
    server.requests.clear()
    assert failure(server, retries=2).code == "server_busy"
    assert len(server.requests) == 3


def test_an_agent_takes_as_many_at_once_as_its_setting_says() -> None:
    agent = OpenAIChatAgent(OpenAIChatAgent.Settings(model="m", concurrency=3), "x")
    assert agent.continuous()
    assert agent.max_in_flight == 3


def test_one_engine_serves_one_event_loop_after_the_other(server: bad.Misbehaving) -> None:
    engine = OpenAIEngine(ChatSettings(**{**QUICK, "base_url": server.url}))

    async def once() -> str:
        try:
            return (await engine.generate(CHAT, 1)).text
        finally:
            await engine.aclose()

    assert [asyncio.run(once()) for _ in range(3)] == ["fine"] * 3


# embeddings


def test_vectors_come_in_the_order_of_the_texts_whatever_the_servers(server: bad.Misbehaving) -> None:
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    found = run(server.url, lambda engine: engine.embed(texts, batch=2))
    assert found == [[1, 97, 0.5], [2, 98, 0.5], [3, 99, 0.5], [4, 100, 0.5], [5, 101, 0.5]]
    assert [request.body["input"] for request in server.requests] == [texts[:2], texts[2:4], texts[4:]]
    assert run(server.url, lambda engine: engine.embed([])) == []


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": "1", "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": []}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": "AACAPw=="}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [float("nan")]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [None]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}],
        ["a", "b"],
    ],
)
def test_vectors_that_are_none_are_refused(server: bad.Misbehaving, data: Any) -> None:
    server.otherwise = lambda request: bad.body(bad.as_json({"data": data}))
    with pytest.raises(AnswerError) as caught:
        run(server.url, lambda engine: engine.embed(["a", "b"]))
    assert caught.value.code == "server_bad_reply"


def embedding_agent(server: bad.Misbehaving, **settings: Any) -> OpenAIEmbeddingAgent:
    chosen = {**QUICK, "base_url": server.url, "vocabulary": 300, "rules": [], "candidates": 3, **settings}
    agent = OpenAIEmbeddingAgent(OpenAIEmbeddingAgent.Settings.model_validate(chosen), "openai-embedding")
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
        assert isinstance(reply, Reply)
        distances = sorted(math.dist(bad.vector(cue), bad.vector(word)) for word in vocabulary if word != cue)
        assert math.dist(bad.vector(cue), bad.vector(reply.answer.word)) == pytest.approx(distances[rank])
    assert replies[0] != replies[2]
    server.otherwise = lambda request: bad.status(500)
    [error] = agent.respond(["zebra"], [Draw(1)])
    assert isinstance(error, AnswerError)
    assert error.code == "server_busy"
    agent.close()


def test_a_vocabulary_that_cannot_be_embedded_ends_the_agent(server: bad.Misbehaving) -> None:
    server.otherwise = lambda request: bad.echo(401)
    agent = embedding_agent(server)
    with pytest.raises(UnavailableError, match=r"cannot be embedded: .*answered 401") as caught:
        agent.load("cpu")
    assert KEY not in everything(caught.value)


# the key


def everything(error: BaseException) -> str:
    """All that could be shown or sent of an error."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    return shown + repr(pickle.dumps(error)) + repr((error.__context__, error.__cause__))


@pytest.mark.parametrize(
    "act", [bad.echo(200), bad.echo(400), bad.echo(401), bad.echo(500), bad.hang, bad.cut, bad.body(KEY.encode())]
)
@pytest.mark.parametrize("asked", [CHAT, TextRequest(prompt="x")])
def test_the_key_is_in_no_error_answer_or_log(
    server: bad.Misbehaving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    act: bad.Act,
    asked: TextRequest,
) -> None:
    server.otherwise = lambda request: act
    for name in server_engine.LOGGERS:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)  # put back afterwards
    shown = []
    with caplog.at_level(logging.DEBUG):
        limit = 0.3 if act is bad.hang else 20.0
        engine = OpenAIEngine(ChatSettings(**{**QUICK, "base_url": server.url, "timeout_s": limit}))

        async def main() -> None:
            try:
                said = await engine.generate(asked, 1)
                shown.append(repr(said) + repr(asdict(said)))
            except AnswerError as error:
                shown.append(everything(error))
            shown.append(repr(engine) + repr(vars(engine)))
            await engine.aclose()

        asyncio.run(main())
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    outside = capfd.readouterr()
    for text in (*shown, caplog.text, outside.out, outside.err):
        assert KEY not in text
        assert KEY[3:20] not in text
    if act.__qualname__.startswith("echo"):
        assert "[key]" in shown[0]


@pytest.mark.parametrize("key", ["sk-one\nX-Injected: yes", "sk-\u00e9", 'sk-"quoted"', "sk-two words", "sk-\x01"])
def test_what_cannot_be_a_key_is_not_sent_and_not_shown(
    server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UnavailableError) as caught:
        complete(server)
    assert "OPENAI_API_KEY holds something that cannot be a key" in str(caught.value)
    assert "sk-" not in everything(caught.value)
    assert server.requests == []


def test_a_key_with_a_line_break_at_its_end_is_taken_without(
    server: bad.Misbehaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    complete(server)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1", "http://192.168.0.7:8000/v1", "https://localhost.evil.org/v1"]
)
def test_a_server_elsewhere_needs_a_key(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    missing = OpenAIEngine(ChatSettings(model="m", base_url=url)).missing()
    assert missing is not None
    assert "OPENAI_API_KEY holds no key" in missing
    assert OpenAIEngine(ChatSettings(model="m", base_url=url, key_variable="")).missing() is None


@pytest.mark.parametrize("url", ["http://localhost:8000/v1", "http://127.0.0.1:8000/v1", "http://[::1]:8000/v1"])
def test_a_server_on_this_machine_needs_none(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert OpenAIEngine(ChatSettings(model="m", base_url=url)).missing() is None


def test_without_the_package_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_engine, "find_spec", lambda name: None)
    missing = OpenAIEngine(ChatSettings(model="m")).missing()
    assert missing == "the package openai is not installed: pip install 'turinglike[openai]'"


@pytest.mark.parametrize(
    "setting",
    [
        {"key_variable": "sk-abcdef0123456789"},
        {"key_variable": "abcdef0123456789"},
        {"key_variable": "A" * 65},
        {"base_url": "https://user:secret0123@host/v1"},
        {"base_url": "https://host/v1?api_key=secret0123"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "https://host:99999/v1"},
        {"api_key": "sk-abcdef0123456789"},
    ],
)
def test_settings_take_no_secret(setting: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        ChatSettings(model="m", **setting)
    for problem in caught.value.errors(include_url=False, include_input=False):
        assert not re.search("secret0123|abcdef", problem["msg"])


# transformers' own server


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A chat model and a model of images and text, tiny and untrained."""
    folder = tmp_path_factory.mktemp("models")
    return tiny_language.llama(folder / "llama"), tiny_captioners.MAKERS["llava_next"](folder / "llava")


@pytest.fixture(scope="module")
def served(models: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `transformers serve`."""
    command = [str(Path(sys.executable).with_name("transformers")), "serve", "--host", "127.0.0.1"]
    command += ["--device", "cpu", "--dtype", "float32"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with server_process.running(tmp_path_factory.mktemp("served"), command, environment) as server:
        server.wait_for("/health", 120)
        yield f"{server.url}/v1"


def ask(
    served: str, model: Path, *asked: tuple[TextRequest, int], concurrency: int = 1, **settings: Any
) -> list[ServerText]:
    async def all_of(engine: OpenAIEngine) -> list[ServerText]:
        return await asyncio.gather(*(engine.generate(one, seed) for one, seed in asked))

    chosen = {"model": str(model), "timeout_s": 120.0, "patience_s": 120.0, **settings}
    found: list[ServerText] = run(served, all_of, **chosen)
    return found


def greedy(folder: Path, inputs: Any, tokens: int) -> tuple[str, int, int, str]:
    """What transformers itself says, the lengths of prompt and answer in tokens, and why it ended."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = GenerationConfig(max_new_tokens=tokens, do_sample=False, eos_token_id=model.generation_config.eos_token_id)
    prompt = inputs(tokenizer)["input_ids"]
    done = model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config)
    said = done[0, prompt.shape[1] :]
    text = tokenizer.decode(said, skip_special_tokens=True)
    return text, prompt.shape[1], len(said), "length" if len(said) == tokens else "stop"


GREEDY = Sampling(temperature=0.0, max_tokens=12)


def test_transformers_server_says_what_transformers_says(served: str, models: tuple[Path, Path]) -> None:
    folder, _ = models
    messages = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hi!"), ChatMessage("assistant", "Hello, you"))
    messages += (ChatMessage("user", "What do you think about music?"),)
    chat = [{"role": one.role, "content": one.text} for one in messages]
    text = "Alice: I like long books. John:"
    said = ask(
        served, folder, (TextRequest(messages=messages, sampling=GREEDY), 1), (TextRequest(text, sampling=GREEDY), 1)
    )
    expected = [
        greedy(
            folder,
            lambda tokenizer: tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
            ),
            12,
        ),
        greedy(folder, lambda tokenizer: tokenizer(text, return_tensors="pt"), 12),
    ]
    assert [(one.text, one.prompt_tokens, one.tokens, one.finish) for one in said] == expected
    assert str(folder) in str(said[0].model)


def test_transformers_server_draws_by_the_seed(served: str, models: tuple[Path, Path]) -> None:
    asked = TextRequest(messages=(ChatMessage("user", "Hi!"),), sampling=Sampling(max_tokens=12))
    seeds = (2**52, 3, 2**52, 3, 4)
    texts = [one.text for seed in seeds for one in ask(served, models[0], (asked, seed))]
    assert texts[:2] == texts[2:4]
    assert len(set(texts)) == 3


def test_transformers_server_is_shown_images(served: str, models: tuple[Path, Path]) -> None:
    examples = Path(__file__).parents[4] / "examples" / "images"
    pictures = [(examples / name).read_bytes() for name in ("china.jpg", "coffee.png")]
    asked = [
        TextRequest(messages=(ChatMessage("user", "What is it?", picture),), sampling=GREEDY) for picture in pictures
    ]
    asked.append(TextRequest(messages=(ChatMessage("user", "What is it?"),), sampling=GREEDY))
    first, second, blind = ask(served, models[1], *((one, 1) for one in asked))
    assert first.prompt_tokens is not None
    assert blind.prompt_tokens is not None
    assert first.prompt_tokens > blind.prompt_tokens + 10  # an image's own tokens
    assert len({first.text, second.text, blind.text}) == 3


def test_what_transformers_server_does_not_know_it_refuses_with_its_own_words(
    served: str, models: tuple[Path, Path]
) -> None:
    with pytest.raises(AnswerError, match=r"422: Unexpected fields") as caught:
        ask(served, models[0], (TextRequest("x", sampling=Sampling(top_k=5)), 1))
    assert caught.value.code == "server_refused"
