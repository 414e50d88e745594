"""Faults after public bug reports, second list: the rows about models, their servers and clients, named by number."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import catalogue
from agents.contract import Draw
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.words.replies import word_answer
from agents.language.words.rules import RuleSettings
from agents.models import checkpoints, smollm2
from agents.stimuli import ConversationStimulus, WordStimulus
from tests.helpers import misbehaving_server as bad
from tests.helpers import served_here, tiny_language

MADE = checkpoints.packaged_folder(smollm2.PACKAGE)
# What servers send for "star", with what the model thinks or a mark of its turn's end.
STAR = {
    "harmony": "analysisThe cue is sun. Most would say warm. I answer star.assistantfinalstar",
    "thought": "<thought>The cue is sun. Perhaps moon.</thought>\n\nstar",
    "thinking": "<thinking>Perhaps moon.</thinking>\nstar",
    "two thoughts": "<think>\n\n</think>\n\n<think>Perhaps moon.</think>star",
    "end of ChatML's turn": "star<|im_end|>",
    "end of a text": "star</s>",
    "half an emoji": "star \ud83d",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[bad.Misbehaving]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with bad.running() as running:
        yield running


@pytest.mark.parametrize("kind", STAR)
def test_03_replies_with_thoughts_and_marks(kind: str, server: bad.Misbehaving) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": STAR[kind]}, "finish_reason": "stop"}
    reply = bad.body(json.dumps({"model": "m", "choices": [choice]}).encode())
    server.otherwise = lambda request: reply
    agent = catalogue.get("openai-chat").make({"base_url": server.url, "model": "m", "retries": 0, "min_words": 1})

    async def answers() -> tuple[Any, Any]:
        word = await agent.respond_one(WordStimulus(id="a", task="word_association", cue="sun"), Draw(1))
        talk = ConversationStimulus(id="b", task="conversation", type="HM", exchanges=2, history=[])
        message = await agent.respond_one(talk, Draw(1))
        await agent.aclose()
        return word.answer, message.answer

    agent.open()
    word, message = asyncio.run(answers())
    assert word.word == "star"
    assert message.text.casefold().rstrip(" \ufffd") == "star"


def test_04_a_turn_ends_with_the_mark_that_the_template_writes(tmp_path: Path) -> None:
    """A folder whose configuration names another end; with random weights the token is drawn at once or late."""
    folder = tiny_language.llama(tmp_path)
    about = json.loads((folder / "config.json").read_text())
    for name in ("config.json", "generation_config.json"):
        content = json.loads((folder / name).read_text()) | {"eos_token_id": 4}
        (folder / name).write_text(json.dumps(content))
    tokens = json.loads((folder / "tokenizer_config.json").read_text()) | {"eos_token": "<|text_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    engine = TransformersEngine(folder)
    engine.open(chat=True)
    engine.load("cpu")
    assert 3 in about["eos_token_id"]  # <|eot|>, which the template writes behind each turn
    assert engine._ends == [3, 4]
    chats = [(ChatMessage("user", f"Say {number}"),) for number in range(12)]
    asked = [TextRequest(messages=chat, sampling=Sampling(1.0, max_tokens=60)) for chat in chats]
    texts = engine.generate_batch(asked, range(12))
    assert all("<|eot|>" not in text.raw for text in texts)
    assert any(text.finish == "stop" for text in texts)


@pytest.mark.skipif(not MADE.exists(), reason="needs `turinglike fetch smollm2-135m`")
def test_04_smollm2_whose_configuration_names_another_end(tmp_path: Path) -> None:
    """As published: SmolLM2's template ends turns with <|im_end|>; here its configuration names <|endoftext|> alone."""
    for path in MADE.iterdir():
        if path.name not in ("config.json", "generation_config.json", "tokenizer_config.json"):
            (tmp_path / path.name).symlink_to(path)
    end = {"eos_token_id": 0, "pad_token_id": 0}
    for name in ("config.json", "generation_config.json"):
        if (MADE / name).exists():
            (tmp_path / name).write_text(json.dumps(json.loads((MADE / name).read_text()) | end))
    tokens = json.loads((MADE / "tokenizer_config.json").read_text())
    named = dict.fromkeys(("eos_token", "pad_token", "unk_token"), "<|endoftext|>")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokens | named))
    engine = TransformersEngine(tmp_path)
    engine.open(chat=True)
    engine.load("cpu")
    question = ChatMessage("user", "What is the capital of France? Answer in one word.")
    asked = TextRequest(messages=(question,), sampling=Sampling(0.0, max_tokens=40))
    [reply] = engine.generate_batch([asked], [1])
    assert (reply.text, reply.finish) == ("The capital of France is Paris.", "stop")


@pytest.mark.parametrize(("cue", "reply"), [("apology", "Sorry"), ("forgive", "sorry."), ("regret", "**Sorry**")])
def test_10_sorry_is_a_word(cue: str, reply: str) -> None:
    stimulus = WordStimulus(id="a", task="word_association", cue=cue)
    assert word_answer(stimulus, reply, RuleSettings()).word == "sorry"


FIRST = {"role": "user", "content": "I like tea."}
LAST = {"role": "user", "content": "And rain."}
CACHED = {"type": "text", "text": "I like tea.", "cache_control": {"type": "ephemeral"}}
REFUSAL = {"type": "refusal", "refusal": "I cannot say."}
HISTORIES = {
    "null": [FIRST, {"role": "assistant", "content": None}, LAST],
    "refused": [FIRST, {"role": "assistant", "content": None, "refusal": "I cannot say."}, LAST],
    "refusal part": [FIRST, {"role": "assistant", "content": [REFUSAL]}, LAST],
    "cache_control": [{"role": "user", "content": [CACHED]}],
}


async def asked_of_eliza(body: bytes) -> tuple[int, Any]:
    async with served_here.serve({"eliza": {}}) as here:
        answer = await here.client.post(
            "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
        )
        return answer.status_code, answer.json()


def test_12_half_an_emoji_in_a_message() -> None:
    body = b'{"model": "eliza", "messages": [{"role": "user", "content": "I like tea \\ud83d"}]}'
    status, answer = asyncio.run(asked_of_eliza(body))
    assert status in (200, 422)
    assert "fault of this server" not in json.dumps(answer)


@pytest.mark.parametrize("kind", HISTORIES)
def test_15_histories_as_clients_send_them_back(kind: str) -> None:
    body = json.dumps({"model": "eliza", "messages": HISTORIES[kind]}).encode()
    status, answer = asyncio.run(asked_of_eliza(body))
    assert (status, bool(answer["choices"][0]["message"]["content"])) == (200, True)
