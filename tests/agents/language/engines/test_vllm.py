"""vLLM's real server on the CPU with a tiny Llama: what it says beside the transformers engine, and how it ends.

One server is started for the whole file; a test at its end kills a process of it.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from agents.contract import GIB
from agents.errors import EngineDeadError, UnavailableError
from agents.language.chat import LocalChatAgent
from agents.language.dialogue_models import DialoGPTAgent
from agents.language.engines import vllm as vllm_engine
from agents.language.engines.text_request import GeneratedText, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
from serving.scheduling.recovery import is_fatal
from tests.helpers import tiny_language, tiny_vllm
from tests.helpers.text_requests import DRAWN, PROMPTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where temporary files are."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        for name, value in {**tiny_vllm.ENVIRONMENT, "SOME_API_KEY": "secret", "VLLM_API_KEY": "secret"}.items():
            patch.setenv(name, value)
        yield Path(folder)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """An engine belongs to the event loop that asks it first."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def engine(folder: Path, place: Path, loop: asyncio.Runner) -> Iterator[VLLMEngine]:
    if tiny_vllm.reason:
        pytest.skip(tiny_vllm.reason)
    engine = _engine(folder, chat=True)
    engine.load("cpu")
    yield engine
    loop.run(engine.aclose())
    engine.close()


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


def test_the_settings_become_vllms_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _engine(folder, chat=True, tensor_parallel=2, sequences=77, positions=300, load_format="dummy")
    told = engine.arguments("cpu")
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda _: SimpleNamespace(total_memory=4 * GIB))
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda *_: True)
    on_gpu = _engine(folder, device_memory=GIB).arguments("cuda:0")
    expected = "dtype=float32 max-model-len=300 max-num-seqs=77 tensor-parallel-size=2 load-format=dummy"
    assert {f"--{word}" for word in expected.split()} <= set(told)
    assert f"--kv-cache-memory-bytes={GIB // 8}" in told
    assert {"--dtype=bfloat16", "--gpu-memory-utilization=0.25", "--enforce-eager"} <= set(on_gpu)


def test_nobody_else_reaches_the_server(engine: VLLMEngine, place: Path) -> None:
    """Its sockets are in a folder of this user alone; its processes have no keys and no ports beyond the loopback."""
    [folder] = place.glob("turinglike-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert engine.provenance()["vllm"] == version("vllm")
    processes = tiny_vllm.processes(place)
    assert len(processes) > 2
    for process in processes:
        assert "secret" not in process.environ().values()
        listening = [each.laddr.ip for each in process.net_connections() if each.status == psutil.CONN_LISTEN]
        assert set(listening) <= {"127.0.0.1", "::1"}, listening


def test_without_vllm_it_is_said_before_anything_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.language.hosts.vllm_program", lambda: None)
    missing = _agent(LocalChatAgent, folder).missing()
    assert missing.startswith("there is no command vllm in this environment or on the PATH")
    assert _agent(LocalChatAgent, folder, engine="transformers").missing() is None


def _agent(cls: Any, folder: Path, **chosen: Any) -> Any:
    options = {"engine": "vllm", "vllm": {**tiny_vllm.SMALL, "cache_gib": 2}, "min_words": 0, **chosen}
    return cls(cls.Settings(checkpoint=str(folder), **options), "agent")


# how it ends


def _cores(place: Path) -> list[psutil.Process]:
    """The processes that have the models."""
    cores = []
    for process in tiny_vllm.processes(place):
        with suppress(psutil.Error):
            if "EngineCore" in "".join(process.cmdline()):
                cores.append(process)
    return cores


@tiny_vllm.needed
@pytest.mark.parametrize("why", ["broken", "no room", "killed"])
def test_a_server_that_cannot_start_says_why(why: str, folder: Path, place: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    if why == "broken":
        (model / "model.safetensors").write_bytes(b"x" * 100)
    engine = _engine(model, cache_gib=1e-5 if why == "no room" else 0.125)
    before = tiny_vllm.processes(place)

    def kill() -> None:
        while not (new := [core for core in _cores(place) if core not in before]):
            time.sleep(0.1)
        new[0].kill()

    if why == "killed":
        threading.Thread(target=kill, daemon=True).start()
    said = {
        "broken": "Error while deserializing header",
        "no room": r"No available memory for the cache blocks\. Raise vllm\.cache_gib or lower vllm\.positions$",
        "killed": vllm_engine.KILLED,
    }
    with pytest.raises(UnavailableError, match=f"vLLM cannot load .*model: {said[why]}"):
        engine.load("cpu")
    left = [process for process in tiny_vllm.processes(place) if process not in before]
    assert psutil.wait_procs(left, 300)[1] == []  # the guardian, until it has removed its folder


def test_the_error_of_one_of_several_gpus_is_heard(folder: Path, tmp_path: Path) -> None:
    """Lines as vLLM writes them; the engine's process has an error of its own afterwards."""
    first = "(VllmWorker-1 pid=7) ERROR 11-26 16:52:55 [executor.py:948] torch.OutOfMemoryError: CUDA out of memory\n"
    (tmp_path / "log").write_text(f"{first}RuntimeError: Engine core initialization failed. See root cause above.\n")
    engine = _engine(folder)
    engine._socket = tmp_path / "socket"
    assert engine._last_words() == "CUDA out of memory"


def test_a_server_whose_process_dies_says_so(loop: asyncio.Runner, engine: VLLMEngine, place: Path) -> None:
    processes = tiny_vllm.processes(place)
    [core] = _cores(place)
    asked = TextRequest(PROMPTS[0], sampling=replace(DRAWN[0], max_tokens=400, min_tokens=400))

    async def killed() -> list[Any]:
        tasks = [asyncio.create_task(engine.generate(asked, seed)) for seed in range(8)]
        await asyncio.sleep(0.2)
        core.kill()
        return await asyncio.gather(*tasks, return_exceptions=True)

    died = loop.run(killed())
    assert {type(one) for one in died} == {EngineDeadError}
    assert {str(one) for one in died} == {f"vLLM has ended: {vllm_engine.KILLED}"}
    assert all(is_fatal(one) for one in died)
    with pytest.raises(EngineDeadError):
        _say(loop, engine, [TextRequest("Hi", sampling=GREEDY[0])], [0])
    engine.close()
    assert psutil.wait_procs(processes, 300)[1] == []
    assert not any(place.iterdir())


# Loads a server and says so.
OWNER = """
import sys, time
from pathlib import Path
from agents.language.engines.vllm import VLLMEngine, VLLMSettings
engine = VLLMEngine(Path(sys.argv[1]), VLLMSettings(cache_gib=0.125, enforce_eager=True), device_memory=1)
engine.open()
engine.load("cpu")
print("ready", flush=True)
time.sleep(1000)
"""


@tiny_vllm.needed
def test_nothing_of_vllm_outlives_a_killed_process(folder: Path, place: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, folder], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as owner:
        assert owner.stdout is not None
        began = owner.stdout.readline()
        processes = tiny_vllm.processes(place)
        owner.kill()
    assert began == "ready\n"
    assert len(processes) > 2
    assert psutil.wait_procs(processes, 300)[1] == []
    assert not any(place.glob("turinglike-*"))


def test_an_agent_declares_what_vllm_will_take(folder: Path) -> None:
    batched = _agent(LocalChatAgent, folder, engine="transformers").declaration()
    one = _agent(LocalChatAgent, folder).declaration()
    assert (batched.batches_by_itself, one.batches_by_itself) == (False, True)
    assert one.max_in_flight == 64
    assert one.memory == batched.memory + 2 * GIB
    assert one.device_memory == batched.device_memory + 2 * GIB
    split = _agent(LocalChatAgent, folder, vllm={"tensor_parallel": 4, "cache_gib": 1}).declaration()
    weights = batched.device_memory - LocalChatAgent.working_memory
    assert split.device_memory == LocalChatAgent.working_memory + weights // 4 + GIB
    dialogpt = DialoGPTAgent(DialoGPTAgent.Settings(checkpoint=str(folder)), "x")
    assert not dialogpt.declaration().batches_by_itself
