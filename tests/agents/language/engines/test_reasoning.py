"""What a model thinks before it answers is kept apart: local models that say fixed tokens, and servers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.errors import AnswerError
from agents.language.engines.anthropic import AnthropicEngine, AnthropicSettings
from agents.language.engines.openai import ChatSettings, OpenAIEngine
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from tests.helpers import misbehaving_server as bad
from tests.helpers import tiny_language

TEMPLATE = "{{ messages[0]['content'] }}{{ ' thinks' if enable_thinking }}\nQ"
CHAT = (ChatMessage("user", "Hi"),)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        (TEMPLATE, ("<think>", "a", "b", "</think>", "c", "d", "e")),
        (TEMPLATE, ("[THINK]", "a", "b", "[/THINK]", "c", "d", "e")),
        (TEMPLATE + "<think>", ("a", "b", "</think>", "c", "d", "e")),
    ],
    ids=["think", "special", "begun by the template"],
)
def test_a_local_models_reasoning_is_heard_by_nobody_and_has_a_budget(
    tmp_path: Path, template: str, says: tuple[str, ...]
) -> None:
    engine = TransformersEngine(tiny_language.scripted(tmp_path, template, *says))
    engine.open(chat=True)
    engine.load("cpu")
    heard: list[str] = []
    sampling = Sampling(0.0, max_tokens=3, stops=("b", "e"), reasoning_tokens=4)
    long = TextRequest(messages=CHAT, sampling=sampling, say=heard.append)
    short = TextRequest(messages=CHAT, sampling=Sampling(0.0, max_tokens=2))
    answered, cut = engine.generate_batch([long, short], [0, 0])
    assert (answered.text, answered.reasoning, answered.finish) == ("cd", "ab", "stop")
    assert answered.raw == "".join(says)
    assert set(heard) == {"", "c", "cd"}
    assert (cut.code, "raise reasoning_tokens" in str(cut)) == ("unfinished_reasoning", True)
    assert isinstance(cut.raw, dict)
    assert (cut.raw["raw"], cut.raw["reasoning"]) == ("".join(says[:2]), "".join(says[:2]).strip("<[]>thinkTHINK"))
    assert "thinks" in engine._decode_all(engine.tokens(long))
    assert "thinks" not in engine._decode_all(engine.tokens(short))


def openai_message(finish: str = "stop", **message: Any) -> bad.Act:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return bad.body(bad.as_json({"model": "m", "choices": [choice]}))


def anthropic_message(finish: str, *blocks: dict[str, str]) -> bad.Act:
    return bad.body(bad.as_json({"model": "m", "content": list(blocks), "stop_reason": finish}))


THINKING = {"type": "thinking", "thinking": "Hm", "signature": "x"}


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("openai", openai_message(content="Yes", reasoning_content="Hm")),
        ("openai", openai_message(content="Yes", reasoning="Hm")),
        ("openai", openai_message(content="<think>Hm</think>\n\nYes")),
        ("openai", openai_message("length", content=None, reasoning_content="Hm")),
        ("openai", openai_message("length", content="<think>Hm")),
        ("openai", openai_message("stop", content="<think>Hm")),
        ("anthropic", anthropic_message("end_turn", THINKING, {"type": "text", "text": "Yes"})),
        ("anthropic", anthropic_message("max_tokens", THINKING)),
    ],
)
def test_a_servers_reasoning_is_no_part_of_the_text(server: bad.Misbehaving, kind: str, answer: bad.Act) -> None:
    server.otherwise = lambda request: answer
    request = TextRequest(messages=CHAT, sampling=Sampling(max_tokens=50, reasoning_tokens=1024, stops=("Hm",)))

    async def generated() -> Any:
        engine: Any
        if kind == "openai":
            engine = OpenAIEngine(ChatSettings(model="m", base_url=server.url, retries=0))
        else:
            url = server.url.removesuffix("/v1")
            engine = AnthropicEngine(AnthropicSettings(model="m", base_url=url, retries=0))
        try:
            return await engine.generate(request, 1)
        except AnswerError as error:
            return error
        finally:
            await engine.aclose()

    text = asyncio.run(generated())
    [sent] = server.requests
    assert sent.body["max_tokens"] == 1074
    assert not {"stop", "stop_sequences"} & sent.body.keys()  # which would end the reasoning
    if kind == "anthropic":
        assert sent.body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
        assert "temperature" not in sent.body
    if isinstance(text, AnswerError):
        assert (text.code, text.raw["text"], text.raw["reasoning"]) == ("unfinished_reasoning", "", "Hm")
        assert ("raise reasoning_tokens" in str(text)) is (text.raw["finish"] == "length")
    else:
        assert (text.text, text.reasoning, text.record()["reasoning"]) == ("Yes", "Hm", "Hm")
