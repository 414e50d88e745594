"""Agents that compute with torch, loaded by their real path onto a pretended GPU: answers as on the CPU, a single wait
for a batch, and none of the project's for a token."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import check_gpu
import device_cases
import pytest
import torch
from device_cases import Waits, count_waits
from pretended_cuda import is_ours, pretended_cuda

from agents import loading
from agents.sampling import Sampler, Warp
from agents.transfer import downloaded, uploaded

Tiny = Callable[[str], tuple[dict[str, Any], Path]]
ENTRIES = device_cases.entries()
NAMES = list({entry.agent: name for name, entry in ENTRIES.items()}.values())  # one of each class
TEXTS = [name for name in NAMES if device_cases.says(ENTRIES[name])]
OTHERS = [name for name in NAMES if name not in TEXTS]
# What these do on a device the others do, too: the same layers and the same search, or another's embedding.
REPEATS = {
    "blip-base", "blip2-opt-2.7b", "llava-v1.6-mistral-7b", "clipcap-mlp", "openflamingo-4b", "torchvision-maskrcnn",
    "return-fixations", "gpt2-embedding", "openai-embedding", "gpt2-completion", "llama-3-70b-online-ai",
}  # fmt: skip
WITH_PRECISION = [name for name in NAMES if device_cases.takes_precision(ENTRIES[name])]
WAYS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in TEXTS} | {
    "drawn": ("git-base-coco", {"decoding": "sample", "top_k": 30, "top_p": 0.9}),
    "a mass of tokens": ("dialogpt", {"top_p": 0.9}),
}
MIXED = [name for name in TEXTS if name.startswith("llava") or ENTRIES[name].tasks == ("conversation",)]
THEIRS = "transformers/generation/utils.py:"  # where it looks whether all rows are at their end


@pytest.fixture(scope="module")
def answers(tiny: Tiny) -> Callable[..., list[dict[str, Any]]]:
    """The answers of an agent on a device."""

    @functools.cache
    def answers(name: str, device: str, precision: str | None) -> list[dict[str, Any]]:
        entry, (settings, folder) = ENTRIES[name], tiny(name)
        count = 2 if entry.agent.startswith(device_cases.FULL_SIZE) else 4
        if precision is not None:
            settings = {**settings, "precision": precision}
        with pretended_cuda() as cuda:
            agent = device_cases.loaded(entry, settings, device)
            replies = device_cases.answers(agent, device_cases.stimuli(entry, folder, count))
            assert bool(cuda.asked) == (device != "cpu")
        return replies

    return answers


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in REPEATS else name for name in NAMES]
)
def test_answers_are_those_of_the_cpu(answers: Callable[..., Any], name: str) -> None:
    precision = "fp32" if name in WITH_PRECISION else None
    assert_alike(answers(name, "cuda:0", precision), answers(name, "cpu", precision))


def assert_alike(value: Any, other: Any) -> None:
    """Equal, but for the last digit of rounded scores."""
    if isinstance(value, dict):
        assert value.keys() == other.keys()
        assert_alike([*value.values()], [other[key] for key in value])
    elif isinstance(value, list | tuple):
        assert len(value) == len(other)
        for item, counterpart in zip(value, other, strict=True):
            assert_alike(item, counterpart)
    else:
        assert value == (pytest.approx(other, abs=2e-4) if isinstance(other, float) else other)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_wait_for_a_token_is_ours(tiny: Tiny, way: str) -> None:
    name, chosen = WAYS[way]
    settings, folder = tiny(name)
    per_step, per_batch = count_waits(ENTRIES[name], {**settings, **chosen}, folder, 3, alike=way not in MIXED)
    waits = {place: number for place, number in per_step.items() if number > 0.01}
    assert [(place.startswith(THEIRS), number) for place, number in waits.items()] == [(True, 1)]
    assert ours(per_batch) == 1  # for the texts


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_a_batch_is_waited_for_once(name: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long paths are; nothing can end these searches, for which no target is there."""
    monkeypatch.setattr(device_cases, "SHORT", 2)
    monkeypatch.setattr(device_cases, "LONG", 4)
    settings, folder = tiny(name)
    per_step, per_batch = count_waits(ENTRIES[name], settings, folder, 2)
    assert ours(per_step) == 0
    assert ours(per_batch) == (2 if name == "minilm" else 1)  # its cues are embedded, checked by the host, and compared


def ours(waits: Waits) -> float:
    return sum(number for place, number in waits.items() if is_ours(place))


@pytest.mark.parametrize(
    "warp", [Warp(), Warp(0.7, 3), Warp(1.3, 0, 0.6), Warp(0.8, 5, 0.7, 0.5, 0.2), Warp(0), Warp(1.0, 2, 0.05)]
)
def test_draws_are_those_of_the_cpu(warp: Warp) -> None:
    """There noise is made for the kept tokens alone, here for all. Ties at the edges are among them."""
    logits = torch.randn(6, 40, generator=torch.Generator().manual_seed(1)).round(decimals=1)
    ids = torch.randint(0, 40, (6, 5), generator=torch.Generator().manual_seed(2))
    logits[2, 3:] = -torch.inf
    warps = [warp, Warp(0.9), Warp(1.1, 4), Warp(1, 0, 0.5), warp, Warp()]

    def draw(device: str) -> list[torch.Tensor]:
        sampler = Sampler(range(6), warps)
        return [sampler(ids[:, :length].to(device), logits.to(device)).cpu() for length in (2, 5)]

    with pretended_cuda() as cuda:
        drawn = draw("cuda")
        assert not [where for (why, where) in cuda.waits if "sampling.py" in where]
    assert all(map(torch.equal, drawn, draw("cpu")))


def test_tensors_go_there_and_back_in_one_copy_each() -> None:
    tensors = [
        torch.arange(7, dtype=torch.uint8),
        torch.tensor(True),
        torch.arange(24).view(2, 3, 4).permute(2, 0, 1),
        torch.zeros(0, 4, dtype=torch.float64),
        torch.arange(5).half(),
        torch.arange(12).view(3, 4)[:1, 1::9],
    ]
    with pretended_cuda() as cuda:
        there = uploaded(tensors, torch.device("cuda:0"))
        assert not cuda.waits
        back = downloaded(there)
        assert sum(cuda.waits.values()) == 1
    assert all(tensor.device.type == "cuda" for tensor in there)
    assert [tensor.dtype for tensor in back] == [tensor.dtype for tensor in tensors]
    assert all(map(torch.equal, back, tensors))
    assert downloaded(tensors) == tensors


def test_float32_is_not_rounded_to_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.get_device_name", lambda number: "NVIDIA H100")
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        loading.use_full_float32("cpu")
        assert torch.backends.cuda.matmul.allow_tf32 is True
        loading.use_full_float32("cuda")
        assert torch.backends.cuda.matmul.allow_tf32 is False
        about = loading.gpu_provenance()
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
    assert set(about.pop("sdpa")) <= {"flash", "efficient", "cudnn", "math"}
    assert about == {"cuda": torch.version.cuda, "gpu": "NVIDIA H100", "float32": "highest", "tf32_convolutions": False}


def test_the_script_that_checks_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its JSON, a broken promise, and that it needs a GPU unless it pretends."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["check_gpu.py", *arguments])
        return check_gpu.main(), capsys.readouterr().out

    monkeypatch.setattr(check_gpu, "ALIKE", 2)
    code, out = run("--pretend", "--agents", "git-base-coco")
    [row] = json.loads(out.splitlines()[-1])["agents"]
    assert (code, row["broken"], row["other_than_cpu"], row["other_alone"]) == (0, [], 0, 0)
    waits: tuple[Waits, Waits] = {"agents/vision/git.py:1": 2.0}, {}
    monkeypatch.setattr(device_cases, "count_waits", lambda *arguments, **options: waits)
    code, out = run("--pretend", "--agents", "detr-resnet-50")
    assert (code, json.loads(out.splitlines()[-1])["agents"][0]["broken"]) == (1, ["2.0 waits of ours in every step"])
    assert run("--pretend", "--agents", "mmcq")[0] == 2
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert run() == (2, "")
