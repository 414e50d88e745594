"""The script that checks a GPU, on a pretended one: its table and JSON, and that a broken promise ends with 1."""

from __future__ import annotations

import json
import warnings

import check_gpu
import device_counts
import pytest
import torch

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(check_gpu, "ALIKE", 2)


def _run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["check_gpu.py", *arguments])
    code = check_gpu.main()
    told = capsys.readouterr()
    return code, told.out, told.err


def test_agents_are_checked_one_by_one(monkeypatch, capsys):
    code, out, _ = _run(monkeypatch, capsys, "--pretend", "--agents", "git-base-coco,gpt2-embedding")
    assert code == 0
    found = json.loads(out.splitlines()[-1])
    assert found["device"] == "pretended"
    captioner, words = found["agents"]
    assert (captioner["other_than_cpu"], captioner["other_alone"], captioner["broken"]) == (0, 0, [])
    assert (captioner["waits_step"], captioner["waits_step_ours"]) == (1, 0)
    assert (captioner["copies_in"], captioner["copies_in_ours"], captioner["copies_out"]) == (6, 2, 1)
    assert words["other_in_bf16"] is None
    assert "git-base-coco" in out.splitlines()[3]


def test_a_broken_promise_ends_with_1(monkeypatch, capsys):
    real = device_counts.count

    def waiting(*given, **named):
        counts = real(*given, **named)
        counts.per_step[device_counts.Asked("wait", "to cpu", "agents/vision/git.py:1")] = 2.0
        return counts

    monkeypatch.setattr(device_counts, "count", waiting)
    monkeypatch.setattr(check_gpu, "differing", lambda *_: 3)
    code, out, _ = _run(monkeypatch, capsys, "--pretend", "--agents", "git-base-coco")
    assert code == 1
    broken = json.loads(out.splitlines()[-1])["agents"][0]["broken"]
    assert broken == ["3 of 2 answers in fp32 are not the CPU's", "2.0 waits of ours in every step"]


def test_on_a_real_gpu_torch_tells_of_waits_and_every_copy_is_seen(monkeypatch):
    """Here by another device that is always there."""
    modes = []
    monkeypatch.setattr("torch.cuda.set_sync_debug_mode", modes.append)
    with check_gpu.counted() as counts, torch.inference_mode():
        moved = torch.ones(3).to("meta")
        torch.empty(3, device="meta").copy_(torch.ones(3)).add_(moved)
        torch.ones(3).to(torch.float64)
        warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=1)
    assert modes == ["warn", "default"]
    assert sum(counts.waits.values()) == 1
    assert {what for what, _ in counts.copies} == {"to meta"}
    assert sum(counts.copies.values()) == 2


def test_without_a_gpu_one_sentence_says_so(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = _run(monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "--pretend does without one" in err
    assert _run(monkeypatch, capsys, "--pretend", "--agents", "mmcq")[0] == 2
