"""How many bytes of tensors live at once, counted at every operation."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """Within it ``peak`` is the most bytes that tensors took which were made there."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._note((args, kwargs), made_here=False)
        made = func(*args, **(kwargs or {}))
        self._note(made, made_here=True)
        return made

    def _note(self, values: Any, *, made_here: bool) -> None:
        for leaf in tree_leaves(values):
            if isinstance(leaf, torch.Tensor) and (storage := leaf.untyped_storage())._cdata not in self._known:
                size = storage.nbytes() if made_here else 0
                self._known.add(storage._cdata)
                self.live += size
                self.peak = max(self.peak, self.live)
                weakref.finalize(storage, self._forget, storage._cdata, size)  # another may have its place then

    def _forget(self, key: int, size: int) -> None:
        self.live -= size
        self._known.discard(key)
