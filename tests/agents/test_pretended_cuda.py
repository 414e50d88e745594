"""Agents that compute with torch, loaded by their real path onto a pretended GPU: answers as on the CPU, a single wait
for a batch, and none of the project's for a token."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import check_gpu
import pytest
import torch

from agents.models import loading
from agents.models.sampling import Sampler, Warp
from agents.models.transfer import downloaded, uploaded
from tests.helpers import device_cases
from tests.helpers.device_cases import Waits
from tests.helpers.pretended_cuda import pretended_cuda

Tiny = Callable[[str], tuple[dict[str, Any], Path]]
ENTRIES = device_cases.entries()
NAMES = list({entry.agent: name for name, entry in ENTRIES.items()}.values())  # one of each class
# What these do on a device the others do, too: the same layers and the same search, or another's embedding.
REPEATS = {
    "blip-base",
    "blip2-opt-2.7b",
    "llava-v1.6-mistral-7b",
    "clipcap-mlp",
    "openflamingo-4b",
    "torchvision-maskrcnn",
    "return-fixations",
    "gpt2-embedding",
    "openai-embedding",
    "gpt2-completion",
    "llama-3-70b-online-ai",
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REPEATS])
def test_answers_are_those_of_the_cpu(name: str, tiny: Tiny) -> None:
    entry = ENTRIES[name]
    (settings, folder) = tiny(name)
    if device_cases.takes_precision(entry):
        settings = {**settings, "precision": "fp32"}
    stimuli = device_cases.stimuli(entry, folder, 2 if entry.agent.startswith(device_cases.FULL_SIZE) else 4)
    expected = device_cases.answers(device_cases.loaded(entry, settings, "cpu"), stimuli)
    with pretended_cuda() as cuda:
        found = device_cases.answers(device_cases.loaded(entry, settings, "cuda:0"), stimuli)
        assert cuda.asked
    assert_alike(found, expected)


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


def test_tensors_go_there_and_back_in_a_single_wait() -> None:
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


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Runs the script; its exit code, and the last line of its output."""

    def run(*arguments: str) -> tuple[int, Any]:
        monkeypatch.setattr("sys.argv", ["check_gpu.py", *arguments])
        return check_gpu.main(), json.loads((capsys.readouterr().out.splitlines() or ["null"])[-1])

    monkeypatch.setattr(check_gpu, "ALIKE", 2)
    return run


def test_the_script_that_checks_a_gpu(monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, Any]]) -> None:
    """Its JSON, a broken promise, and that it needs a GPU unless it pretends."""
    code, said = run("--pretend", "--agents", "git-base-coco")
    [row] = said["agents"]
    assert (code, row["broken"], row["other_than_cpu"], row["other_alone"]) == (0, [], 0, 0)
    assert (row["waits_step"], row["waits_batch_ours"]) == (1, 1)  # transformers looks whether all are at their end
    waits: tuple[Waits, Waits] = {"agents/vision/git_and_blip.py:1": 2.0}, {}
    monkeypatch.setattr(device_cases, "count_waits", lambda *arguments, **options: waits)
    code, said = run("--pretend", "--agents", "detr-resnet-50")
    assert (code, said["agents"][0]["broken"]) == (1, ["2.0 waits of ours in every step"])
    assert run("--pretend", "--agents", "mmcq")[0] == 2
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert run() == (2, None)


@pytest.mark.slow
def test_every_agent_keeps_what_is_promised_of_a_gpu(run: Callable[..., tuple[int, Any]]) -> None:
    """A batch is waited for once, or twice where its cues are embedded, checked by the host, and compared."""
    code, said = run("--pretend", "--agents", ",".join(NAMES))
    rows = [row for row in said["agents"] if "left_out" not in row]
    assert (code, [row for row in rows if row["broken"]]) == (0, [])
    assert {row["agent"]: row["waits_batch_ours"] for row in rows if row["waits_batch_ours"] > 1} == {"minilm": 2}
