"""What a device can do at most, measured: bytes moved and operations of matrices per second.

What an agent does is held against these two, not against a data sheet: they are what a plain copy and a plain product
of matrices reach here, with the threads, clocks and neighbours that the agent has, too.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from serving.bench.results import Limits

CPUS = Path("/sys/devices/system/cpu")
SMALLEST, LARGEST = 64 << 20, 1 << 30  # bytes of the array that is copied
CACHES = 4  # times the last cache, so that hardly anything of a copy is found there
ON_CUDA = ("bfloat16", "float32", "float16")  # agents' types; the first is what those have whose precision is "auto"
SIDES = (512, 1024, 2048, 4096, 8192)
REPEATS = 3  # at the least


def measure(device: str, seconds: float = 1.0) -> Limits:
    """Measure ``device`` ("cpu", "cuda:0") for about ``seconds`` each.

    Matrices are of every type that agents have there, so that each agent is held against its own: on CUDA those of
    :data:`ON_CUDA`, on the CPU float32. Without torch it is numpy that copies and multiplies, in float32.
    """
    if importlib.util.find_spec("torch") is None:
        return Limits(_numpy_copy(seconds), _numpy_matrix(seconds), "float32")
    first, *others = ON_CUDA if device.startswith("cuda") else ("float32",)
    return Limits(
        _torch_copy(device, seconds),
        _torch_matrix(device, seconds, first),
        first,
        {precision: _torch_matrix(device, seconds, precision) for precision in others},
    )


def caches() -> int:
    """Bytes of this machine's last caches together; 0 where the system does not tell."""
    found: dict[str, int] = {}
    for cache in CPUS.glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level, size, shared = ((cache / name).read_text().strip() for name in ("level", "size", "shared_cpu_list"))
        except OSError:
            continue
        if matched := re.fullmatch(r"(\d+)([KMG])", size):
            found[f"{level}:{shared}"] = int(matched[1]) << {"K": 10, "M": 20, "G": 30}[matched[2]]
    last = max((key.partition(":")[0] for key in found), default="")
    return sum(size for key, size in found.items() if key.startswith(f"{last}:"))


def _array(cache: int) -> int:
    """How many float32 values the copied array has."""
    return min(max(CACHES * cache, SMALLEST), LARGEST) // 4


def _numpy_copy(seconds: float) -> float:
    import numpy as np

    source = np.ones(_array(caches()), dtype=np.float32)
    target = np.empty_like(source)
    return 2 * source.nbytes / _best(lambda: np.copyto(target, source), seconds)


def _numpy_matrix(seconds: float) -> float:
    import numpy as np

    def product(side: int) -> Callable[[], object]:
        left = np.full((side, side), 0.5, dtype=np.float32)
        return lambda: left @ left

    return _fastest_product(product, seconds)


def _torch_copy(device: str, seconds: float) -> float:
    import torch

    on_gpu = device.startswith("cuda")
    cache = torch.cuda.get_device_properties(device).L2_cache_size if on_gpu else caches()
    source = torch.ones(_array(cache), device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / _best(lambda: target.copy_(source), seconds, device)


def _torch_matrix(device: str, seconds: float, precision: str) -> float:
    import torch

    dtype: Any = getattr(torch, precision)

    def product(side: int) -> Callable[[], object]:
        left = torch.full((side, side), 0.5, device=device, dtype=dtype)
        target = torch.empty_like(left)
        return lambda: torch.mm(left, left, out=target)

    return _fastest_product(product, seconds, device)


def _fastest_product(product: Callable[[int], Callable[[], object]], seconds: float, device: str = "cpu") -> float:
    """The most operations per second over square matrices of growing size: two for each multiplication."""
    best, left = 0.0, seconds
    for side in SIDES:
        began = time.perf_counter()
        took = _best(product(side), left / 2, device)
        best = max(best, 2 * side**3 / took)
        left -= time.perf_counter() - began
        if left < 8 * took * REPEATS:  # the next one is eight times the work
            break
    return best


def _best(act: Callable[[], object], seconds: float, device: str = "cpu") -> float:
    """The least seconds that ``act`` takes, of all repeats that begin within ``seconds``, a first one left out."""
    ready = _waiter(device)
    act()
    ready()
    best, repeats, until = float("inf"), 0, time.perf_counter() + seconds
    while repeats < REPEATS or time.perf_counter() < until:
        began = time.perf_counter()
        act()
        ready()
        best = min(best, time.perf_counter() - began)
        repeats += 1
    return best


def _waiter(device: str) -> Callable[[], object]:
    if not device.startswith("cuda"):
        return lambda: None
    import torch

    return lambda: torch.cuda.synchronize(device)
