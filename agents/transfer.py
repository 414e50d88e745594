"""Tensors to a GPU and back, in a copy for which the host does not wait."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def uploaded(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """By a single copy of pinned memory, for which the host does not wait."""
    if not tensors or device.type == "cpu":
        return list(tensors)
    size = sum(tensor.nbytes for tensor in tensors)
    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
    return _split(torch.cat(_bytes(tensors), out=pinned).to(device, non_blocking=True), tensors)


class HostCopy:
    """A device's ``tensors`` on their way to the CPU."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors, self._done = list(tensors), None
        if tensors and tensors[0].device.type != "cpu":
            is_cuda = tensors[0].is_cuda
            self._tensors = _split(torch.cat(_bytes(tensors)).to("cpu", non_blocking=is_cuda), tensors)
            if is_cuda:
                self._done = torch.cuda.Event()
                self._done.record()

    def arrived(self) -> list[Tensor]:
        """Waits for them."""
        if self._done is not None:
            self._done.synchronize()
        return self._tensors


def downloaded(tensors: Sequence[Tensor]) -> list[Tensor]:
    """A device's ``tensors`` on the CPU, in a single copy."""
    return HostCopy(tensors).arrived()


def _order(tensors: Sequence[Tensor]) -> list[int]:
    return sorted(range(len(tensors)), key=lambda index: -tensors[index].itemsize)


def _bytes(tensors: Sequence[Tensor]) -> list[Tensor]:
    ordered = [tensors[index].contiguous() for index in _order(tensors)]
    return [tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8) for tensor in ordered]  # sides of 1 may differ


def _split(content: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    order = _order(like)
    parts = dict(zip(order, content.split([like[index].nbytes for index in order]), strict=True))
    return [parts[index].view(tensor.dtype).view(tensor.shape) for index, tensor in enumerate(like)]
