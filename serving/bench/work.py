"""How much work one call of ``respond`` is: floating-point operations, and bytes that have to be read.

Both are counted at torch's operators, while the call runs. Operations are those of products of matrices, convolutions
and attention, two for each multiplication; what is added, normalised or compared on the way is not counted. Bytes are
a lower bound: the model's weights, once for each operator that uses them (of an embedding the rows that are looked up).
What flows between the operators is left out, because what of it stays in a cache is not to be seen from here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.contract import Agent, Draw


@dataclass(frozen=True, slots=True)
class Work:
    """Of one batch; None where nothing was counted: an agent that computes without torch, or in another process."""

    flops: int | None = None
    bytes: int | None = None
    precision: str | None = None  # torch's name of the type in which most of the operations were done


def of(agent: Agent[Any], batch: Sequence[Any], draws: Sequence[Draw]) -> Work:
    """Answer a prepared batch and count. Takes longer than an ordinary call; raises what ``respond`` raises."""
    if "torch" not in sys.modules or agent.continuous():
        return Work()
    counter = _counter()
    with counter:
        agent.respond(batch, draws)
    most = max(counter.by_type, key=counter.by_type.__getitem__, default=None)
    return Work(
        sum(counter.by_type.values()) or None,
        counter.read or None,
        None if most is None else str(most).removeprefix("torch."),
    )


def _counter() -> Any:
    """A mode that adds up operations in ``by_type``, and the bytes of parameters that operators take in, in ``read``.

    The formulas are those of torch's own counter. That one cannot be used as it is: it hooks into every module for the
    sake of training, and fails where a module is given a parameter while nothing is trained (BLIP-2's queries).
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten
    formulas = {**flop_registry, aten._scaled_dot_product_flash_attention_for_cpu: _attention}

    class Counter(TorchDispatchMode):
        read = 0

        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.by_type: dict[Any, int] = {}
            self._storages: set[int] = set()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            formula = formulas.get(func.overloadpacket)
            if formula is None and func is not torch.ops.prim.device.default:
                with self:  # without gradients a product comes as a whole, and is taken apart here
                    out = func.decompose(*args, **kwargs)
                if out is not NotImplemented:
                    return out
            out = func(*args, **kwargs)
            if formula is not None:
                kind = _tensors([*args, *kwargs.values()])[0].dtype
                self.by_type[kind] = self.by_type.get(kind, 0) + int(formula(*args, **kwargs, out_val=out))
            self._note_weights(func, [*args, *kwargs.values()], out)
            return out

        def _note_weights(self, func: Any, given: Sequence[Any], out: Any) -> None:
            # A view of a weight (its transpose) reads nothing, but what it gives is the weight still.
            is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)
            for value in _tensors(given):
                storage = value.untyped_storage()._cdata
                if isinstance(value, torch.nn.Parameter):
                    self._storages.add(storage)
                if not is_view and storage in self._storages:
                    whole = out.nbytes if func is aten.embedding.default else value.untyped_storage().nbytes()
                    self.read += min(value.nbytes, whole)  # a weight that is expanded is no larger for it

    return Counter()


def _attention(query: Any, key: Any, value: Any, *others: Any, out_val: Any = None, **options: Any) -> int:
    """Operations of attention as the CPU computes it, for which torch has no formula."""
    texts, heads, asking, width = query.shape
    return int(2 * texts * heads * asking * key.shape[-2] * (width + value.shape[-1]))


def _tensors(values: Sequence[Any]) -> list[Any]:
    """The tensors among an operator's arguments, and in its lists of tensors."""
    import torch

    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [one for one in value if isinstance(one, torch.Tensor)]
    return found
