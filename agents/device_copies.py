"""Copies between the host and a device, at which the host does not stand still.

A host that waits for a GPU leaves it without work afterwards. Copies to it are made from pinned memory, and those back
are asked for together and waited for once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def to_device(values: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor of the CPU, or numbers in lists, on ``device``."""
    made = torch.as_tensor(values, dtype=dtype)
    return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made.to(device)


class ToHost:
    """Tensors on their way to the host, which may do other things before it needs them."""

    def __init__(self, *tensors: Tensor) -> None:
        self._copies = [tensor.to("cpu", non_blocking=tensor.is_cuda) for tensor in tensors]
        self._done = torch.cuda.Event() if any(tensor.is_cuda for tensor in tensors) else None
        if self._done is not None:
            self._done.record()

    def arrived(self) -> list[Tensor]:
        """The tensors, on the CPU; waits for them."""
        if self._done is not None:
            self._done.synchronize()
        return self._copies


def to_host(*tensors: Tensor) -> list[Tensor]:
    """The tensors on the CPU, after one wait for all."""
    return ToHost(*tensors).arrived()
