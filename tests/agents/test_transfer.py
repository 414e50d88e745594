"""Tensors in one copy to a GPU and in one back, on a pretended one."""

from __future__ import annotations

import pytest
import torch
from pretended_cuda import pretended_cuda

from agents.transfer import downloaded, uploaded

MIXED = [
    torch.arange(7, dtype=torch.uint8),
    torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),
    torch.tensor(True),
    torch.arange(24).view(2, 3, 4).permute(2, 0, 1),
    torch.zeros(0, 4, dtype=torch.float64),
    torch.tensor([[1.5, -2.0]], dtype=torch.float64),
    torch.arange(5).half(),
    torch.arange(12).view(3, 4)[:1, 1::9],
]


@pytest.mark.parametrize("given", [MIXED, MIXED[::-1], MIXED[:1], []], ids=["mixed", "reversed", "one", "none"])
def test_what_is_moved_there_and_back_is_the_same(given: list[torch.Tensor]) -> None:
    with pretended_cuda() as cuda:
        there = uploaded(given, torch.device("cuda:0"))
        assert not cuda.waits
        back = downloaded(there)
        assert sum(cuda.waits.values()) == (len(given) > 0)
        moved = {what: sum(n for key, n in cuda.copies.items() if key[0] == what) for what, _ in cuda.copies}
    assert all(one.device.type == "cuda" for one in there)
    assert moved == ({"to cuda, asynchronous": 1, "to cpu, asynchronous": 1} if given else {})
    for one, other in zip(back, given, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_on_the_cpu_nothing_is_copied() -> None:
    for found in (uploaded(MIXED, torch.device("cpu")), downloaded(MIXED)):
        assert all(one is other for one, other in zip(found, MIXED, strict=True))
