"""How busy this machine was while a run went on: its cores, this process, its GPUs, its memory."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

PERIOD = 0.25  # seconds from one sample to the next


@dataclass(frozen=True, slots=True)
class Sample:
    """What the machine has done up to a moment."""

    time: float
    """The moment, by ``time.time``."""
    watched_s: float
    """CPU seconds of the watched process since it began, all its threads together."""
    run_s: Mapping[int, float]
    """CPU seconds of each process of the run, Ray's workers among them, by process number."""
    busy_s: float
    """CPU seconds of all cores in which they did anything, since the machine began."""
    run_bytes: int
    """The memory that the run's processes share with nobody, summed."""
    gpu_busy: tuple[float, ...] = ()
    """The share of the time, from 0 to 1, in which each GPU computed lately."""
    gpu_bytes: tuple[int, ...] = ()
    """The memory in use on each GPU."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How busy the machine was in a stretch of time. Shares are from 0 to 1."""

    process: float
    """CPU time of the watched process over the time that passed: 1 is one core. More than 1 is possible."""
    cores: float
    """The share of all cores that was busy, with other programs' work."""
    run_cores: float
    """The share of all cores that the run's processes kept busy."""
    memory_bytes: int
    """The largest memory of the run's processes, without what they share."""
    gpus: tuple[float, ...]
    """The mean share of each GPU; empty where NVML finds none."""
    gpu_bytes: tuple[int, ...]
    """The largest memory in use on each GPU."""


class Sampler:
    """Takes samples in a thread of its own, from the block's begin to its end."""

    def __init__(self, process: psutil.Process | None = None, root: psutil.Process | None = None) -> None:
        """``process`` (None: this one) is watched. The run's processes are ``root`` (None: ``process``) and all that it
        started."""
        self.samples: list[Sample] = []
        self._process = process or psutil.Process()
        self._root = root or self._process
        self._gpus = _gpus()
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take samples while the block runs."""
        self._take()
        thread = threading.Thread(target=self._run, name="usage", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._take()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            self._take()

    def _take(self) -> None:
        own = self._process.cpu_times()
        tree = {}
        run_bytes = 0
        for child in [self._root, *self._root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):  # it has just ended
                times = child.cpu_times()
                memory = child.memory_info()
                tree[child.pid] = times.user + times.system
                run_bytes += memory.rss - getattr(memory, "shared", 0)
        machine = psutil.cpu_times()
        idle = machine.idle + getattr(machine, "iowait", 0.0)
        # Guests' time is in `user` already.
        total = sum(machine) - getattr(machine, "guest", 0.0) - getattr(machine, "guest_nice", 0.0)
        busy = [gpu.utilization() for gpu in self._gpus]
        used = [gpu.memory() for gpu in self._gpus]
        sample = Sample(
            time=time.time(),
            watched_s=own.user + own.system,
            run_s=tree,
            busy_s=total - idle,
            run_bytes=run_bytes,
            gpu_busy=tuple(busy),
            gpu_bytes=tuple(used),
        )
        self.samples.append(sample)

    def between(self, began: float, ended: float) -> Usage:
        """The usage from ``began`` to ``ended``, by the samples that lie next to both."""
        return usage(self.samples, began, ended, psutil.cpu_count() or 1)


def usage(samples: list[Sample], began: float, ended: float, cores: int) -> Usage:
    """The usage of a machine with ``cores`` between two moments; ``samples`` (at least two) are in their order."""
    first = max((sample for sample in samples if sample.time <= began), key=_time, default=samples[0])
    last = min((sample for sample in samples if sample.time >= ended), key=_time, default=samples[-1])
    passed = last.time - first.time
    inside = [sample for sample in samples if first.time < sample.time <= last.time]
    # A worker that has ended is in no later sample: its last one counts.
    spent: dict[int, float] = {}
    for sample in inside:
        spent.update(sample.run_s)
    tree = sum(seconds - first.run_s.get(number, 0.0) for number, seconds in spent.items())
    gpus = range(len(samples[0].gpu_busy))
    return Usage(
        process=(last.watched_s - first.watched_s) / passed,
        cores=min(1.0, (last.busy_s - first.busy_s) / passed / cores),
        run_cores=min(1.0, tree / passed / cores),
        memory_bytes=max(sample.run_bytes for sample in inside),
        gpus=tuple(sum(sample.gpu_busy[gpu] for sample in inside) / len(inside) for gpu in gpus),
        gpu_bytes=tuple(max(sample.gpu_bytes[gpu] for sample in inside) for gpu in gpus),
    )


def _time(sample: Sample) -> float:
    return sample.time


@dataclass(frozen=True, slots=True)
class _Gpu:
    nvml: Any
    handle: Any

    def utilization(self) -> float:
        return float(self.nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu) / 100

    def memory(self) -> int:
        return int(self.nvml.nvmlDeviceGetMemoryInfo(self.handle).used)


def _gpus() -> list[_Gpu]:
    """The GPUs that NVML finds; none where its library or a driver is missing."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        return [
            _Gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(number)) for number in range(pynvml.nvmlDeviceGetCount())
        ]
    except pynvml.NVMLError:
        return []
