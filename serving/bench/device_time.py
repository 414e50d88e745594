"""For what share of the time a GPU is at work: kernels and copies, as torch's profiler sees them begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable


def busy_share(run: Callable[[], None]) -> float:
    """The share of ``run``'s wall time in which at least one kernel or copy ran on CUDA.

    What the profiler itself takes is part of that time: the share is a little too low rather than too high.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
    on_device = (event for event in seen.events() or () if event.device_type.name == "CUDA")
    return covered((event.time_range.start, event.time_range.end) for event in on_device) / 1e6 / seconds


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How much of the line the spans (begin, end) cover together; what several cover counts once."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
