"""A pretended CUDA device for machines without one: values are computed on the CPU, under the device rules of CUDA.

A tensor of the device wraps one of the CPU. What CUDA refuses (mixed devices, ``numpy()``) is
refused, and waits are counted by the line that caused them::

    with pretended_cuda() as cuda:
        agent.load("cuda:0")
        cuda.clear()
        agent.respond(batch, draws)
        print(cuda.waits.most_common())

A copy to the host for which nobody waits arrives at the next wait; before it, what is read there is wrong, as it may be
on a GPU. Memory, speed, a GPU's rounding and the order of streams are not pretended.
"""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, device
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CUDA = device("cuda", 0)
ROOT = f"{Path(__file__).parents[2]}/"
# Operations by their names in torch.ops.aten.
COPIES = {"_to_copy", "copy_"}
PUTS = {"index_put", "index_put_", "_index_put_impl_"}
INDEXED = {"index", "_unsafe_index", *PUTS}  # take indices from the CPU
FILLS = {"fill_", "masked_fill", "masked_fill_", "index_fill", "index_fill_", *PUTS}  # take a number from the CPU
# What comes out, or how large it is, has to be known to the host.
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_dim", "unique_consecutive"}
WAITING |= {"bincount", "torchvision::nms"}
ATTENTION = "scaled_dot_product_attention"  # one operation, as on the CPU; its parts would round otherwise


class Pretended(Tensor):
    """A tensor on the device; ``inner``, on the CPU, has its values."""

    inner: Tensor  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        layout: dict[str, Any] = {
            "strides": inner.stride(),
            "storage_offset": inner.storage_offset(),
            "dtype": inner.dtype,
        }
        return Tensor._make_wrapper_subclass(cls, inner.size(), device=CUDA, **layout)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, **_: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{func} of a pretended device's tensor, outside pretended_cuda() or in another thread")


class Pretence(TorchDispatchMode):
    """Does the device's work. ``waits``: how often the host stood still until all earlier work was done, by (why,
    where)."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked = self.done = 0  # kernels and copies so far, and how many of them the host knows to be done
        self._pinned: dict[int, Any] = {}
        self._arriving: list[tuple[int, Tensor, Tensor]] = []  # when it was asked, where to, what
        self.clear()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or all of torch.compile is imported, which takes seconds

    def clear(self) -> None:
        """Count from here on."""
        self.waits: Counter[tuple[str, str]] = Counter()

    def wait(self, why: str, until: int | None = None) -> None:
        """Let the host wait until what was asked by that time (None: all) is done, if it does not know already."""
        until = self.asked if until is None else until
        if until > self.done:
            self.waits[why, place()] += 1
            self.done = until
        arriving = self._arriving
        self._arriving = []
        for asked, target, values in arriving:
            if asked <= self.done:
                target.copy_(values)
            else:
                self._arriving.append((asked, target, values))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        leaves = tree_leaves((args, kwargs))
        ours = [leaf for leaf in leaves if isinstance(leaf, Pretended)]
        plain = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, Pretended)]
        asked = [leaf for leaf in leaves if isinstance(leaf, device) and leaf.type == "cuda"]
        if name in ("is_pinned", "pin_memory", "_pin_memory"):
            return _memory(args[0]) in self._pinned if name == "is_pinned" else self._pin(args[0])
        if not ours and not asked:
            made = func(*args, **{**kwargs, **({"pin_memory": False} if kwargs.get("pin_memory") else {})})
            return self._pin(made, made) if kwargs.get("pin_memory") else made
        if name != ATTENTION and func._can_decompose():  # in inference mode what consists of others arrives whole
            with self:
                return func.decompose(*args, **kwargs)
        to = device(kwargs.get("device") or (args[0].device if name == "copy_" else CUDA)).type
        _check(func, name, args, kwargs, plain if ours else [])
        arrives_later = self._count(func, name, args, kwargs, plain, to)
        inner, named = tree_map(lambda x: x.inner if isinstance(x, Pretended) else x, (args, kwargs))
        named |= {key: value for key, value in (("device", "cpu"), ("pin_memory", False)) if key in named}
        if name in ("_softmax", "_log_softmax") and inner[2]:  # of fp16 to fp32: a kernel that the CPU lacks
            inner = (inner[0].float(), inner[1], False)
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]) if name == ATTENTION else NOTHING:
            found = func(*inner, **named)
        if arrives_later:
            self._arriving.append((self.asked, found, found.clone()))
            found.fill_(1)
        known = {id(one.inner): one for one in ours}
        return tree_map(lambda x: known[id(x)] if id(x) in known else self._wrapped(x, to), found)

    def _wrapped(self, value: Any, to: str) -> Any:
        if not isinstance(value, Tensor) or to != "cuda":
            return value
        with torch.inference_mode(False):  # torch would have the two share a counter of changes, which there is none of
            return Pretended(value)

    def _pin(self, tensor: Tensor, pinned: Tensor | None = None) -> Tensor:
        if pinned is None:
            pinned = tensor if _memory(tensor) in self._pinned else tensor.clone()
        self._pinned[_memory(pinned)] = pinned.untyped_storage()  # held, so that no other has its place
        return pinned

    def _count(self, func: Any, name: str, args: Any, kwargs: Any, plain: list[Tensor], to: str) -> bool:
        """Count one operation; whether its result will be on the CPU later than the operation returns."""
        self.asked += 1
        why = None
        if name in COPIES and (source := args[name == "copy_"]).device.type != to:
            if not source.numel():
                return False
            # A new tensor of the CPU is pinned by torch itself where nobody waits for it.
            pinned = _memory(args[0] if to == "cpu" else source) in self._pinned or (name, to) == ("_to_copy", "cpu")
            later = pinned and bool(kwargs.get("non_blocking") or args[2:] == (True,))
            if not later:
                self.wait(f"to {to}")
            return later and to == "cpu"
        if name in INDEXED:
            by_mask = any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1])
            number = args[2] if name in PUTS and args[2].numel() == 1 and args[2].device.type == "cpu" else None
            if any(one is not number or not by_mask for one in plain):
                why = "index to cuda"
            elif by_mask and number is None:
                why = "mask"
        elif name in WAITING or (func is torch.ops.aten.repeat_interleave.Tensor and not kwargs.get("output_size")):
            why = "item" if name == "_local_scalar_dense" else name
        elif name in ("masked_fill", "masked_fill_") and isinstance(args[2], Pretended):
            why = "value of masked_fill"
        if why:
            self.wait(why)
        return False


def _check(func: Any, name: str, args: Any, kwargs: Any, plain: list[Tensor]) -> None:
    """Raises what CUDA raises; ``plain`` are the tensors on the CPU beside some on the device."""
    changed = [kwargs.get("out"), args[0] if func._schema.is_mutable and args else None]
    indices = tree_leaves(args[1]) if name in INDEXED and isinstance(args[0], Pretended) else []
    takes_numbers = name in FILLS or torch.Tag.pointwise in func.tags
    for one in plain if name != "copy_" else ():
        fits = (takes_numbers and one.dim() == 0) or any(one is index for index in indices)
        if not fits or any(one is other for other in changed):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
                f"({func}; on the CPU: {[list(one.shape) for one in plain]})"
            )


def _memory(tensor: Tensor) -> int:
    return 0 if isinstance(tensor, Pretended) else tensor.untyped_storage().data_ptr()


def place() -> str:
    """The innermost line that is not torch's or Python's; if a package's, after "<" the innermost of the project's."""
    found = ""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name, is_package = _file(frame.f_code.co_filename)
        if name and not is_package:
            return f"{found}{name}:{frame.f_lineno}"
        if name and not found:
            found = f"{name}:{frame.f_lineno} < "
        frame = frame.f_back
    return found


@cache
def _file(path: str) -> tuple[str, bool]:
    """What a file is called, "" for torch's, Python's and this one; and whether it is a package's."""
    package = path.rpartition("/site-packages/")[2] if "/site-packages/" in path else ""
    if path == __file__ or package.startswith("torch/") or (not package and "/lib/python3" in path):
        return "", False
    return package or path.removeprefix(ROOT), bool(package)


def is_ours(place: str) -> bool:
    """Whether what was counted there was asked by the project itself, not by a package that it called."""
    return " < " not in place


class Generator(torch.Generator):
    """torch.Generator; one of the device draws what the CPU's draws."""

    def __new__(cls, where: Any = "cpu") -> Any:
        return torch._C.Generator.__new__(torch._C.Generator)


class Event:
    """torch.cuda.Event."""

    cuda: Pretence

    def __init__(self, **_: Any) -> None:
        self._asked = 0

    def record(self, stream: Any = None) -> None:
        self._asked = self.cuda.asked

    def synchronize(self) -> None:
        self.cuda.wait("event", self._asked)

    def wait(self, stream: Any = None) -> None:
        pass


def _functions(cuda: Pretence) -> dict[str, Any]:
    """The attributes of torch.cuda."""
    about = SimpleNamespace(name="pretended", total_memory=80 << 30, major=9, minor=0, multi_processor_count=1)
    results: dict[str, Any] = {
        **dict.fromkeys(("is_available", "is_initialized", "is_bf16_supported", "device_count"), 1),
        **dict.fromkeys(("_lazy_init", "set_device", "empty_cache")),
        "current_device": 0,
        "get_device_name": about.name,
        "get_device_capability": (9, 0),
        "get_device_properties": about,
        "mem_get_info": (about.total_memory, about.total_memory),
    }
    constant = {key: lambda *_, result=result, **__: result for key, result in results.items()}
    return {**constant, "synchronize": lambda *_: cuda.wait("synchronize"), "Event": Event}


NOTHING = contextlib.nullcontext()


@contextlib.contextmanager
def pretended_cuda() -> Iterator[Pretence]:
    """Within the block, this thread has one CUDA device."""
    torch._C._ensureCUDADeviceGuardSet()
    cuda = Event.cuda = Pretence()
    with contextlib.ExitStack() as stack:
        for name, function in _functions(cuda).items():
            stack.enter_context(mock.patch.object(torch.cuda, name, function))
        stack.enter_context(mock.patch.object(torch, "Generator", Generator))
        # transformers would load weights in threads of its own.
        stack.enter_context(mock.patch.dict(os.environ, {"HF_DEACTIVATE_ASYNC_LOAD": "1"}))
        # Nothing may look for cuDNN, or at a GPU's properties to choose among kernels of attention.
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        # Module.to puts a tensor of the device in each parameter's place, where tied weights stay tied.
        swap = torch.__future__.set_swap_module_params_on_conversion
        stack.callback(swap, torch.__future__.get_swap_module_params_on_conversion())
        swap(True)
        # What Python's lists become is moved to the device by an operation, which is seen here.
        stack.callback(torch._C._set_only_lift_cpu_tensors, torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)
        yield stack.enter_context(cuda)
