"""Tensors on their way to a GPU and back: many of them in one copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ALIGNMENT = 64  # bytes: any type's values may begin there, and kernels read fastest


def uploaded(tensors: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """The CPU's ``tensors`` on ``device``: on a GPU by one copy of pinned memory, for which the host does not wait."""
    import torch

    if device.type == "cpu":
        return list(tensors)
    starts, size = [], 0
    for one in tensors:
        starts.append(size)
        size += -(-one.nbytes // ALIGNMENT) * ALIGNMENT
    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    for one, part in zip(tensors, _parts(pinned, tensors, starts), strict=True):
        part.copy_(one)
    return _parts(pinned.to(device, non_blocking=True), tensors, starts)


def downloaded(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The ``tensors`` of one device on the CPU: of a GPU by one copy, for which the host waits."""
    import torch

    if not tensors or tensors[0].device.type == "cpu":
        return list(tensors)
    order = sorted(range(len(tensors)), key=lambda index: -tensors[index].itemsize)  # so each begins where it may
    starts, size = [0] * len(tensors), 0
    for index in order:
        starts[index] = size
        size += tensors[index].nbytes
    whole = torch.cat([tensors[index].contiguous().flatten().view(torch.uint8) for index in order])
    return _parts(whole.cpu(), tensors, starts)


def _parts(whole: torch.Tensor, like: Sequence[torch.Tensor], starts: Sequence[int]) -> list[torch.Tensor]:
    """Bytes as the tensors that they are."""
    placed = zip(like, starts, strict=True)
    return [whole[start : start + one.nbytes].view(one.dtype).view(one.shape) for one, start in placed]
