"""What is settled of a GPU's arithmetic, without one."""

from __future__ import annotations

import pytest
import torch

from agents import loading


def test_float32_is_exact_and_a_record_tells_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "NVIDIA H100")
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        loading.use_full_float32("cpu")
        assert torch.backends.cuda.matmul.allow_tf32 is True
        loading.use_full_float32("cuda")
        assert torch.backends.cuda.matmul.allow_tf32 is False
        told = loading.gpu_provenance()
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
    assert told.pop("cuda") == torch.version.cuda
    assert set(told.pop("sdpa")) <= {"flash", "efficient", "cudnn", "math"}
    assert told == {"gpu": "NVIDIA H100", "float32": "highest", "tf32_convolutions": False}
