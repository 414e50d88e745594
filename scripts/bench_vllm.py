"""Turns per second of conversations on vLLM: through the scheduler and a worker, and by vLLM's own ``LLM.generate``.

A model is made here, with a tokenizer and random weights. Of each conversation all turns are asked for, one after the
other, as a run asks for them; what was said before is fixed here, so that the prompts are known beforehand. Then the
very same tokens go to ``LLM.generate`` in one list, with the same settings and seeds, in a process of its own. Rounds
alternate; each has prompts of its own, which no engine has seen, and the first is not counted.

On a machine without a GPU vLLM needs operators of a CPU build: they are in tests/plugin, and taken from there.

    python scripts/bench_vllm.py [--conversations 256] [--turns 4] [--repeats 3] [--device cpu|cuda] [--model tiny|8b]

prints a table and, as the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

AGENT = "llama-3.1-8b"
TOKENS = 80  # of each text at most, as the agent has it
WORDS = (
    "music", "movies", "sports", "fashion", "science", "politics", "technology", "books", "travel", "food", "weather",
    "friends",
)  # fmt: skip
SEED = 1


def make_model(folder: Path, size: str) -> Path:
    """A checkpoint: the tests' tiny Llama with heads of 64, or the configuration of Llama 3.1 8B with weights that take
    no room on the disk, for load format "dummy"."""
    import tiny_language
    from safetensors.torch import save_file
    from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM

    tiny_language.llama(folder, positions=4096)
    tokens = AutoConfig.from_pretrained(folder)
    shape = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"num_key_value_heads": 1, "vocab_size": tokens.vocab_size, "max_position_embeddings": 4096}
    if size == "8b":
        shape = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
        shape |= {"num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192}
    config = LlamaConfig(
        **shape, rope_theta=500_000.0, tie_word_embeddings=False, bos_token_id=tokens.bos_token_id,
        eos_token_id=tokens.eos_token_id, architectures=["LlamaForCausalLM"],
        dtype="bfloat16" if size == "8b" else "float32",
    )  # fmt: skip
    config.save_pretrained(folder)
    if size == "tiny":
        import torch

        torch.manual_seed(0)
        save_file(LlamaForCausalLM(config).state_dict(), folder / "model.safetensors", {"format": "pt"})
    else:
        _write_hollow(config, folder / "model.safetensors")
    return folder


def _write_hollow(config: Any, path: Path) -> None:
    """A safetensors file whose header tells all weights, so that the agent knows how many there are, and whose data is
    a hole."""
    import torch
    from transformers import LlamaForCausalLM

    with torch.device("meta"):
        shapes = {name: list(value.shape) for name, value in LlamaForCausalLM(config).state_dict().items()}
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 2 * torch.Size(shape).numel()
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def settings(options: argparse.Namespace, checkpoint: Path) -> dict[str, Any]:
    """The agent's settings: one attempt at a message, so that both sides are asked for the same texts."""
    small = options.model == "tiny"
    return {
        "checkpoint": str(checkpoint),
        "engine": "vllm",
        "attempts": 1,
        "min_words": 0,
        "max_tokens": TOKENS,
        "vllm": {
            "sequences": options.conversations,
            "cache_gib": options.cache_gib,
            "positions": 4096,
            "load_format": "auto" if small else "dummy",
            "enforce_eager": options.device == "cpu",
        },
    }


def stimuli(options: argparse.Namespace, round_: int) -> Iterator[tuple[int, int, Any]]:
    """(conversation, turn, stimulus) of one round, the turns of a conversation in order."""
    from agents.stimuli import ConversationStimulus

    for number in range(options.conversations):
        said = []
        for turn in range(2 * options.turns):
            words = [WORDS[(number * 5 + turn * 7 + k * (1 + turn % 5)) % 12] for k in range(12)]
            said.append({"speaker": "AB"[turn % 2], "text": f"{' '.join(words)} {turn}"})
        for turn in range(options.turns):
            fields = {
                "id": f"r{round_}c{number:04d}",
                "task": "conversation",
                "topic": f"{WORDS[number % 12]} {round_} {number}",
                "history": said[: 2 * turn],
            }
            yield number, 2 * turn, ConversationStimulus.model_validate_json(json.dumps(fields))


def make_agent(options: argparse.Namespace, checkpoint: Path) -> Any:
    """The agent, as the worker has it."""
    from agents import catalogue

    return catalogue.get(AGENT).make(settings(options, checkpoint))


def prompts(options: argparse.Namespace, agent: Any, round_: int) -> list[tuple[list[int], int, Any]]:
    """What vLLM is given in one round: tokens, seed, sampling; first turns first."""
    from agents import seeds
    from agents.contract import Draw

    found = []
    for _, turn, stimulus in sorted(stimuli(options, round_), key=lambda one: one[1]):
        seed = seeds.derive(SEED, AGENT, stimulus.id, 0, turn, 0)
        asked = agent._request(stimulus, Draw(seed, options={"speaker": "A", "turn": turn})).asked
        found.append((agent._engine._fitted(asked), seed, asked.sampling))
    return found


def peer(options: argparse.Namespace, checkpoint: Path) -> None:
    """LLM.generate: for each round's number on stdin a line with its seconds and tokens."""
    agent = make_agent(options, checkpoint)
    agent.open()
    from vllm import LLM

    from agents.language.engines.vllm_sampling import sampling_params

    arguments = agent._engine._arguments("cpu" if options.device == "cpu" else "cuda:0")
    model = LLM(**arguments)
    print("\nREADY", flush=True)
    for line in sys.stdin:
        asked = prompts(options, agent, int(line))
        tokens = [{"prompt_token_ids": one} for one, _, _ in asked]
        parameters = [sampling_params(sampling, seed, agent._engine._ends) for _, seed, sampling in asked]
        began = time.perf_counter()
        done = model.generate(tokens, parameters, use_tqdm=False)
        took = time.perf_counter() - began
        said = sum(len(one.outputs[0].token_ids) for one in done)
        print(f"\nRESULT {took} {len(done)} {said}", flush=True)


class Peer:
    """The process of LLM.generate."""

    def __init__(self, arguments: list[str]) -> None:
        # As nice as Ray makes its workers, so that both suffer alike from what else the machine does.
        command = ["nice", "-n", "15", sys.executable, __file__, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read("READY")

    def round(self, number: int) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        took, turns, tokens = map(float, self._read("RESULT").split()[1:])
        return {"turns_s": turns / took, "tokens_s": tokens / took}

    def close(self) -> None:
        self._process.communicate()

    def _read(self, word: str) -> str:
        """The next line that begins so; vLLM writes what it likes between them."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line
        raise SystemExit("the process of LLM.generate ended early")


async def round_of_ours(options: argparse.Namespace, scheduler: Any, number: int) -> dict[str, float]:
    """All conversations of a round at once, each turn after the one before it."""
    whole: dict[int, list[tuple[int, Any]]] = {}
    for conversation, turn, stimulus in stimuli(options, number):
        whole.setdefault(conversation, []).append((turn, stimulus))
    tokens = 0

    async def hold(conversation: int) -> None:
        nonlocal tokens
        for turn, stimulus in whole[conversation]:
            item = await scheduler.answer(
                AGENT, stimulus, seed=SEED, turn=turn, options={"speaker": "A", "turn": turn}, order=conversation + 1
            )
            if item.error is not None:
                raise SystemExit(f"a turn failed: {item.error}")
            tokens += json.loads(item.raw)["tokens"]

    began = time.perf_counter()
    await asyncio.gather(*(hold(conversation) for conversation in whole))
    took = time.perf_counter() - began
    return {"turns_s": options.conversations * options.turns / took, "tokens_s": tokens / took}


async def compare(options: argparse.Namespace, checkpoint: Path) -> dict[str, list[dict[str, float]]]:
    from agents import catalogue
    from serving.scheduling.cluster import Cluster
    from serving.scheduling.dispatch import Dispatcher
    from serving.scheduling.placement import Need, gpu_share
    from serving.scheduling.ray_workers import RemoteWorker
    from serving.scheduling.scheduler import Scheduler
    from serving.scheduling.worker import WorkerSpec

    cluster = Cluster()
    await cluster.start()
    agent = make_agent(options, checkpoint)
    on_gpu = options.device == "cuda"
    share = 0.0
    if on_gpu:
        total = min(node.gpu_memory for node in cluster.nodes if node.gpu_count)
        share = gpu_share(Need(AGENT, agent.memory, agent.device_memory), total)
    spec = WorkerSpec(
        catalogue.get(AGENT), settings(options, checkpoint), "/", "cuda:0" if on_gpu else "cpu", 2, share or None
    )
    scheduler = Scheduler(SEED)
    scheduler.add(Dispatcher(agent, lambda: RemoteWorker(spec, 1 << 30, share, agent.continuous(), {})))
    found: dict[str, list[dict[str, float]]] = {"scheduler": [], "generate": []}
    try:
        await scheduler.dispatchers[AGENT].start()
        other = await asyncio.to_thread(Peer, ["--peer", str(checkpoint), *sys.argv[1:]])
        for number in range(options.repeats + 1):
            ours = await round_of_ours(options, scheduler, number)
            theirs = await asyncio.to_thread(other.round, number)
            if number:
                found["scheduler"].append(ours)
                found["generate"].append(theirs)
        await asyncio.to_thread(other.close)
    finally:
        await scheduler.close()
        await cluster.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=256)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", choices=("tiny", "8b"), default="tiny")
    parser.add_argument("--cache-gib", type=float, default=1.0)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device == "cpu":
        import tiny_vllm

        path = os.pathsep.join([str(ROOT / "tests" / "plugin"), os.environ.get("PYTHONPATH", "")])
        os.environ |= {**tiny_vllm.ENVIRONMENT, "PYTHONPATH": path.strip(os.pathsep)}
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"  # as vLLM has it by itself
        sys.path.insert(0, str(ROOT / "tests" / "plugin"))
    os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    if options.peer:
        peer(options, Path(options.peer))
        return
    with tempfile.TemporaryDirectory(prefix="vllm-") as name:
        checkpoint = make_model(Path(name) / "model", options.model)
        found = asyncio.run(compare(options, checkpoint))
    middle = {
        side: {key: statistics.median(one[key] for one in rounds) for key in ("turns_s", "tokens_s")}
        for side, rounds in found.items()
    }
    ratio = middle["scheduler"]["tokens_s"] / middle["generate"]["tokens_s"]
    print(f"{'':14} {'turns/s':>9} {'tokens/s':>10}   tokens/s of each round")
    for side, title in (("scheduler", "scheduler"), ("generate", "LLM.generate")):
        rounds = " ".join(f"{one['tokens_s']:.0f}" for one in found[side])
        print(f"{title:14} {middle[side]['turns_s']:9.1f} {middle[side]['tokens_s']:10.0f}   {rounds}")
    print(f"ratio of tokens/s {ratio:.3f}")
    about = {key: getattr(options, key) for key in ("conversations", "turns", "device", "model")}
    print(json.dumps({**about, "ratio": round(ratio, 4), **found}))


if __name__ == "__main__":
    main()
