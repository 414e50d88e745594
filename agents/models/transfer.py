"""Tensors to a GPU and back, in copies for which the host does not wait."""

from collections.abc import Sequence

import torch
from torch import Tensor


def uploaded(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """The tensors on ``device``, copied through pinned memory, so that the host need not wait."""
    if device.type != "cuda":
        return [tensor.to(device) for tensor in tensors]
    return [tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors]


class HostCopy:
    """A device's ``tensors`` on their way to the CPU."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = [tensor.to("cpu", non_blocking=tensor.is_cuda) for tensor in tensors]
        self._done = None
        if tensors and tensors[0].is_cuda:
            self._done = torch.cuda.Event()
            self._done.record()

    def arrived(self) -> list[Tensor]:
        """The tensors on the CPU, once they are there; this waits."""
        if self._done is not None:
            self._done.synchronize()
        return self._tensors


def downloaded(tensors: Sequence[Tensor]) -> list[Tensor]:
    """A device's ``tensors`` on the CPU, in a single wait."""
    return HostCopy(tensors).arrived()
