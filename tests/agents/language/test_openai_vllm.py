"""The engine for servers against vLLM's own server with a tiny model of embeddings, on the CPU."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import server_process
import tiny_language
import tiny_vllm

from agents.contract import Draw, Reply
from agents.language.engines.openai import ChatSettings, OpenAIEngine
from agents.language.word_embeddings import OpenAIEmbeddingAgent
from agents.language.words import rules as word_rules
from agents.language.words.vocabulary import most_frequent

pytestmark = [tiny_vllm.needed, pytest.mark.slow]

WORDS = 150
CUES = ("music", "dog", "ice cream")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture(scope="module")
def served(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of vLLM's server. Its engine's process is a fork of it, so that nothing is imported twice."""
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--runner", "pooling"]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--dtype", "float32"]
    command += ["--enforce-eager", "--max-model-len", "64", "--disable-log-stats"]
    environment = {
        **os.environ,
        **tiny_vllm.ENVIRONMENT,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "fork",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with server_process.running(tmp_path_factory.mktemp("served"), command, environment) as server:
        server.wait_for("/health")
        yield f"{server.url}/v1"


@pytest.fixture(scope="module")
def vectors(model: Path) -> Mapping[str, Sequence[float]]:
    """What transformers itself makes of each text: the last token's state, scaled to length 1."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, inner = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model, dtype=torch.float32)
    found = {}
    with torch.inference_mode():
        for text in (*most_frequent(WORDS), *CUES):
            state = inner(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, -1]
            found[text] = (state / state.norm()).tolist()
    return found


def test_vectors_are_those_of_the_model_in_the_order_of_the_texts(
    served: str, vectors: Mapping[str, Sequence[float]]
) -> None:
    async def embed() -> list[list[float]]:
        engine = OpenAIEngine(ChatSettings(base_url=served, model="tiny"))
        try:
            return await engine.embed(list(vectors), batch=64)
        finally:
            await engine.aclose()

    found = asyncio.run(embed())
    assert len(found) == len(vectors)
    for text, vector in zip(vectors, found, strict=True):
        assert math.dist(vector, vectors[text]) < 1e-5, text


def test_the_answer_is_the_nearest_word(served: str, vectors: Mapping[str, Sequence[float]]) -> None:
    chosen = {"base_url": served, "model": "tiny", "vocabulary": WORDS, "candidates": 3}
    agent = OpenAIEmbeddingAgent(OpenAIEmbeddingAgent.Settings.model_validate(chosen), "openai-embedding")
    agent.open()
    agent.load("cpu")
    replies = agent.respond(CUES, [Draw(1)] * len(CUES))
    rules = word_rules.RuleSettings()
    for cue, reply in zip(CUES, replies, strict=True):
        assert isinstance(reply, Reply)
        near = sorted(most_frequent(WORDS), key=lambda word: math.dist(vectors[word], vectors[cue]))
        judged = [word_rules.judge(word, cue, rules) for word in near if word != cue]
        assert reply.answer.candidates == list(dict.fromkeys(one.word for one in judged if one.rule is None))[:3]
        assert reply.answer.word == reply.answer.candidates[0]
    agent.close()
