"""vLLM's real engine on the CPU with a tiny Llama: what it says beside the transformers engine, and how it ends.

One engine is started for the whole file; the test at its end kills its process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_language
import tiny_vllm
from text_requests import DRAWN, PROMPTS

from agents.contract import GIB
from agents.language.chat import LocalChatAgent
from agents.language.dialogue_models import DialoGPTAgent
from agents.language.engines import vllm as vllm_engine
from agents.language.engines import vllm_processes
from agents.language.engines.text_request import GeneratedText, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from serving.scheduling.recovery import is_fatal

pytestmark = [
    pytest.mark.slow,
    # vLLM leaves the context of its sockets to Python, which says so when it clears up.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function Context:pytest.PytestUnraisableExceptionWarning"
    ),
]

GREEDY = [
    Sampling(temperature=0.0, max_tokens=24),
    Sampling(temperature=0.0, max_tokens=20, frequency_penalty=2, presence_penalty=2),
    Sampling(temperature=0.0, max_tokens=24, stops=("a", "Guess:")),
    Sampling(temperature=0.0, max_tokens=7, min_tokens=7, frequency_penalty=-1.5),
    Sampling(temperature=0.0, max_tokens=30, presence_penalty=1.5, stops=("o", "")),
    Sampling(temperature=0.0, max_tokens=1),
    Sampling(temperature=0.0, max_tokens=16, top_k=3, top_p=0.4, stops=("e", "t", " ")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint. Not to be changed by a test."""
    return tiny_language.llama(tmp_path_factory.mktemp("vllm") / "llama")


@pytest.fixture(scope="module")
def plain(folder: Path) -> TransformersEngine:
    """The transformers engine with the same model."""
    engine = TransformersEngine(folder)
    engine.open(chat=True)
    engine.load("cpu")
    return engine


def _own_processes() -> list[str]:
    return vllm_processes.owned(str(vllm_processes.identity(os.getpid())))


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[VLLMEngine]:
    if tiny_vllm.reason:
        pytest.skip(tiny_vllm.reason)
    with tiny_vllm.told():
        found = _engine(folder, chat=True)
        found.load("cpu")
        yield found
        found.close()
        gc.collect()  # here, and not in a test of another file


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """An engine belongs to the event loop that asks it first."""
    with asyncio.Runner() as runner:
        yield runner


def _engine(folder: Path, *, chat: bool = False, device_memory: int = GIB, **chosen: Any) -> VLLMEngine:
    engine = VLLMEngine(folder, VLLMSettings(**{**tiny_vllm.SMALL, **chosen}), device_memory=device_memory)
    engine.open(chat=chat)
    return engine


def _say(
    loop: asyncio.Runner, engine: VLLMEngine, asked: Sequence[TextRequest], seeds: Sequence[int]
) -> list[GeneratedText]:
    """All at once."""

    async def ask() -> list[GeneratedText]:
        return await asyncio.gather(*(engine.generate(one, seed) for one, seed in zip(asked, seeds, strict=True)))

    return loop.run(ask())


# what is said


def test_who_listens_hears_beginnings_of_the_same_text(loop: asyncio.Runner, engine: VLLMEngine) -> None:
    asked = [TextRequest(prompt, sampling=sampling) for prompt in PROMPTS[:2] for sampling in GREEDY]
    heard: list[list[str]] = [[] for _ in asked]
    listened = [replace(one, say=said.append) for one, said in zip(asked, heard, strict=True)]
    whole = _say(loop, engine, listened, range(len(asked)))
    assert whole == _say(loop, engine, asked, range(len(asked)))
    for said, text in zip(heard, whole, strict=True):
        assert all(text.text.startswith(one) for one in said)
    assert any(len(set(said)) > 1 for said in heard)  # how often it tells is a matter of how busy the machine is


def test_the_likeliest_texts_are_those_of_the_transformers_engine(
    loop: asyncio.Runner, engine: VLLMEngine, plain: TransformersEngine
) -> None:
    """Each request has its own stops, penalties and limits, and hot ones are drawn beside them. The checkpoint's
    generation_config.json, which asks for a repetition penalty, changes nothing."""
    asked = [TextRequest(prompt, sampling=sampling) for prompt in PROMPTS for sampling in GREEDY]
    hot = [TextRequest(prompt, sampling=DRAWN[0]) for prompt in PROMPTS]
    said = _say(loop, engine, [*asked, *hot], range(len(asked) + len(hot)))[: len(asked)]
    assert said == plain.generate_batch(asked, [0] * len(asked))
    assert {one.finish for one in said} == {"stop", "length"}
    assert len({one.text for one in said}) > 30


def test_a_seed_draws_the_same_text_in_any_company(loop: asyncio.Runner, engine: VLLMEngine) -> None:
    """Also where the prompts, 22 long ones among them, are too much for one step."""
    prompts = [*PROMPTS, *(f"{number}: " + "I like long books. " * 60 for number in range(22))]
    asked = [TextRequest(prompt, sampling=DRAWN[(i + i // 8) % 8]) for i, prompt in enumerate(prompts)]
    seeds = [(1 << 53) - 1 - 1000 * index for index in range(30)]
    assert sum(len(engine.fitted_tokens(one)) for one in asked) > vllm_engine.CPU_TOKENS
    together = _say(loop, engine, asked, seeds)
    assert [_say(loop, engine, [one], [seed])[0] for one, seed in zip(asked, seeds, strict=True)] == together
    assert _say(loop, engine, asked[::-1], seeds[::-1])[::-1] == together
    others = _say(loop, engine, asked, [seed + 1 for seed in seeds])
    assert sum(one != other for one, other in zip(together, others, strict=True)) > 15
    assert len({one.text for one in together}) > 15


def test_a_text_is_held_to_its_schema(loop: asyncio.Runner, engine: VLLMEngine) -> None:
    properties = {"sure": {"type": "boolean"}, "verdict": {"enum": ["human", "machine"]}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    request = TextRequest(prompt=PROMPTS[0], sampling=Sampling(1.0, max_tokens=60), schema=schema)
    said = json.loads(loop.run(engine.generate(request, 3)).text)
    assert said.keys() == properties.keys()
    assert isinstance(said["sure"], bool)
    assert said["verdict"] in ("human", "machine")


# how it is asked


@tiny_vllm.needed
def test_the_settings_become_vllms_arguments(folder: Path) -> None:
    engine = _engine(folder, chat=True, tensor_parallel=2, sequences=77, positions=300, load_format="dummy")
    with tiny_vllm.told():
        from vllm import AsyncEngineArgs
        from vllm.platforms import current_platform

        told = engine.engine_arguments("cpu")
        made = AsyncEngineArgs(**told)
        total = current_platform.get_device_total_memory()
        on_gpu = _engine(folder, device_memory=total // 4).engine_arguments("cuda:0")
    assert (made.model, made.dtype) == (str(folder), "float32")
    assert (made.tensor_parallel_size, made.distributed_executor_backend) == (2, "mp")
    assert (made.max_num_seqs, made.max_model_len, made.load_format) == (77, 300, "dummy")
    assert (made.trust_remote_code, made.kv_cache_memory_bytes) == (False, GIB // 8)
    assert (on_gpu["dtype"], on_gpu["gpu_memory_utilization"]) == ("bfloat16", pytest.approx(0.25))


def test_without_vllm_it_is_said_before_anything_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.language.hosts.is_installed", lambda name: False)
    assert (
        _agent(LocalChatAgent, folder).missing() == "the package vllm is not installed: pip install 'turinglike[vllm]'"
    )
    assert _agent(LocalChatAgent, folder, engine="transformers").missing() is None


def _agent(cls: Any, folder: Path, **chosen: Any) -> Any:
    options = {"engine": "vllm", "vllm": {**tiny_vllm.SMALL, "cache_gib": 2}, "min_words": 0, **chosen}
    return cls(cls.Settings(checkpoint=str(folder), **options), "agent")


# how it ends


def test_an_engine_whose_process_dies_says_so(loop: asyncio.Runner, engine: VLLMEngine) -> None:
    from vllm.v1.engine.exceptions import EngineDeadError

    [process] = _own_processes()
    asked = TextRequest(PROMPTS[0], sampling=replace(DRAWN[0], max_tokens=400, min_tokens=400))

    async def killed() -> list[Any]:
        tasks = [asyncio.create_task(engine.generate(asked, seed)) for seed in range(8)]
        await asyncio.sleep(0.2)
        os.kill(int(process.partition("-")[0]), signal.SIGKILL)
        return await asyncio.gather(*tasks, return_exceptions=True)

    died = loop.run(killed())
    assert {type(one) for one in died} == {EngineDeadError}
    assert all(is_fatal(one) for one in died)
    with pytest.raises(EngineDeadError):
        _say(loop, engine, [TextRequest("Hi", sampling=GREEDY[0])], [0])
    engine.close()
    assert _own_processes() == []


# after the engine's death, so that pytest has let go of what vLLM logged of it when the file ends


def test_an_agent_declares_what_vllm_will_take(folder: Path) -> None:
    batched, one = _agent(LocalChatAgent, folder, engine="transformers"), _agent(LocalChatAgent, folder)
    assert (batched.continuous(), one.continuous()) == (False, True)
    assert one.max_in_flight == 64
    assert one.memory == batched.memory + 2 * GIB
    assert one.device_memory == batched.device_memory + 2 * GIB
    split = _agent(LocalChatAgent, folder, vllm={"tensor_parallel": 4, "cache_gib": 1})
    weights = batched.device_memory - LocalChatAgent.working_memory
    assert split.device_memory == LocalChatAgent.working_memory + weights // 4 + GIB
    assert not DialoGPTAgent(DialoGPTAgent.Settings(checkpoint=str(folder)), "x").continuous()
