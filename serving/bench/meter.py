"""The bare agent over batch sizes: 1, 2, 4, … until memory runs out, or more brings nothing.

This is the side of the process that has the agent: it is opened, loaded, asked once, then asked in batches of each size
in the steady state (:mod:`serving.bench.loop`). Nothing here imports Ray.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.contract import GIB, Agent
from agents.entry import Entry
from agents.errors import AgentStoppedError, UnavailableError
from agents.tasks import Mode, Task
from serving.bench import device_time, machine, stimuli, work
from serving.bench.best import LONG, NEARLY, best
from serving.bench.loop import Batches, Calls, Window, said
from serving.bench.results import Differing, Limits, Size, Stopped
from serving.scheduling import worker_process
from serving.scheduling.worker import describe, is_out_of_memory, release_memory

LARGEST = 1024  # where a sweep without --batch-sizes ends
IDLE = 2  # doublings in a row that may bring nothing
COUNTED = 10.0  # times the measured seconds: a batch that takes longer is not run once more to count its operations
COMPARED = 64  # answers that are compared with those one at a time, or a batch; fewer where that takes too long
FEWEST = 8
PROFILED = 3  # batches at most in which the GPU's work is watched
LEAST = 1024  # bytes of memory that a stimulus of a batch takes at the least, with its draw and its reply


@dataclass(frozen=True)
class Job:
    """One agent to be measured. ``device`` is "cpu" or "cuda:0"; ``source`` the set that it is asked; ``limits`` those
    of its device, if they are known; ``sizes`` None for doubling."""

    entry: Entry
    settings: Mapping[str, Any]
    device: str
    task: Task
    mode: Mode | None
    source: Path
    seconds: float
    sizes: tuple[int, ...] | None
    limits: Limits


@dataclass(frozen=True)
class Loaded:
    """Sent once the agent has been loaded and asked once."""

    random_weights: bool
    load_s: float
    first_answer_s: float


@dataclass(frozen=True)
class Trying:
    """Sent before a size is measured: should the process die, it is the one that was too large."""

    size: int


def measure(send: Callable[[object], None], job: Job) -> None:
    """Measure an agent in this process, which must be a fresh one; sends what it finds, as it finds it.

    Raises TuringlikeError, and whatever the agent raises while it is loaded or first asked.
    """
    with _loaded(job) as (agent, loop, told):
        send(told)
        meter = Meter(job, agent, loop)
        sizes = meter.sweep(send)
        if sizes and (found := meter.compare(sizes)) is not None:
            send(found)


def measure_again(send: Callable[[object], None], job: Job) -> None:
    """Sends the stimuli per second of the one size in ``job.sizes``. Raises as :func:`measure` does."""
    assert job.sizes is not None
    with _loaded(job) as (_, loop, _):
        window = loop.measure(job.sizes[0], job.seconds)
        send(window.answered / window.seconds)


@contextmanager
def _loaded(job: Job) -> Iterator[tuple[Agent[Any], Batches | Calls, Loaded]]:
    """The agent, loaded and asked once, and the loop around it."""
    began = time.perf_counter()
    agent = job.entry.make(job.settings)
    worker_process.begin(continuous=agent.continuous())
    if (missing := agent.missing()) is not None:
        raise UnavailableError(missing)
    agent.open()
    agent.load(job.device)
    load_s = time.perf_counter() - began
    threads = machine.cores()
    if job.device == "cpu" and (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads if agent.parallel else 1)
    worker_process.freeze()
    shown = stimuli.read(job.source)
    with (
        asyncio.Runner() as runner,
        ThreadPoolExecutor(threads, "prepare", initializer=worker_process.yield_to_device) as pool,
    ):
        loop = Calls(agent, shown, pool, runner) if agent.continuous() else Batches(agent, shown, pool, threads)
        loop.answers(1, 1)
        first_answer_s = time.perf_counter() - began
        yield agent, loop, Loaded(bool(agent.provenance().get("random_weights")), load_s, first_answer_s)
        agent.close()


@dataclass
class Meter:
    """Measures one loaded agent, in the process that has it."""

    job: Job
    agent: Agent[Any]
    loop: Batches | Calls

    @property
    def _unit(self) -> str:
        return "calls at once" if isinstance(self.loop, Calls) else "batch size"

    @property
    def _long(self) -> float:
        """See :func:`best`; calls at once are not handed over together."""
        return 0.0 if isinstance(self.loop, Calls) else LONG

    def sweep(self, send: Callable[[object], None]) -> list[Size]:
        """Measure one size after the other; sends each, and why it ended. Raises AgentStoppedError if not a single
        stimulus is answered."""
        found: list[Size] = []
        highest, idle = 0.0, 0
        for size in self._candidates():
            send(Trying(size))
            stopped = self._too_large(size, found)
            measured = None if stopped else self._measure(size)
            if isinstance(measured, Size):
                found.append(measured)
                send(measured)
                idle = 0 if NEARLY * measured.stimuli_s > highest else idle + 1
                highest = max(highest, measured.stimuli_s)
                if self.job.sizes is None and idle >= IDLE and measured.p50_s >= self._long:
                    stopped = Stopped(size, "no_gain", f"{self._unit} {size}: nothing gained by {idle} doublings")
            else:
                stopped = stopped or measured
            if stopped is not None:
                if not found and stopped.why == "error":
                    raise AgentStoppedError(stopped.message)
                send(stopped)
                return found
        if self.job.sizes is None:
            send(Stopped(found[-1].batch_size, "largest", f"{self._unit} {found[-1].batch_size}: the largest tried"))
        return found

    def _candidates(self) -> Iterator[int]:
        """The sizes to try: those asked for, or doubling up to the most calls that the engine takes at once."""
        if self.job.sizes is not None:
            yield from self.job.sizes
            return
        most = max(1, self.agent.max_in_flight) if isinstance(self.loop, Calls) else LARGEST
        size = 1
        while size < most:
            yield size
            size *= 2
        yield most

    def _too_large(self, size: int, found: Sequence[Size]) -> Stopped | None:
        """Whether the host has too little memory for a size, by how the peak has grown, once that is known: a system
        without memory may end other programs first."""
        if (free := machine.available()) is None:
            return None
        resident = machine.resident()
        needs: float = resident + LEAST * size
        if len(found) > 1:
            before, last = found[-2:]
            each = (last.peak_host_bytes - before.peak_host_bytes) / (last.batch_size - before.batch_size)
            needs = max(needs, last.peak_host_bytes + each * (size - last.batch_size))
        if needs - resident <= free:
            return None
        return Stopped(
            size,
            "too_little_memory",
            f"{self._unit} {size} was not tried: it would need about {needs / GIB:.1f} GiB of memory, of which "
            f"{free / GIB:.1f} GiB are free",
        )

    def _measure(self, size: int) -> Size | Stopped:
        """One size in the steady state, or why it cannot be measured."""
        release_memory()
        machine.forget_peak()
        cuda = _cuda(self.job.device)
        if cuda is not None:
            cuda.reset_peak_memory_stats()
        try:
            window = self.loop.measure(size, self.job.seconds)
        except Exception as error:
            failure = describe(error)
            why = is_out_of_memory(error)
        else:
            if not window.answered:
                return Stopped(size, "error", f"{self._unit} {size}: no stimulus is answered: {window.failure}")
            return self._size(size, window, cuda)
        release_memory()  # here, where no traceback holds what the batch had
        if why:
            return Stopped(size, "out_of_memory", f"{self._unit} {size}: out of memory ({failure})")
        return Stopped(size, "error", f"{self._unit} {size}: {failure}")

    def _size(self, size: int, window: Window, cuda: Any) -> Size:
        host, device = machine.peak(), None if cuda is None else int(cuda.max_memory_reserved())
        seconds, total = window.seconds, window.answered + window.failed
        p50, batches_s = window.percentile(0.5), total / size / window.seconds
        counted = self._work(size, p50)
        limits = self.job.limits
        return Size(
            batch_size=size,
            stimuli_s=window.answered / seconds,
            tokens_s=None if window.tokens is None else window.tokens / seconds,
            fixations_s=None if window.fixations is None else window.fixations / seconds,
            p50_s=p50,
            p95_s=window.percentile(0.95),
            peak_host_bytes=host,
            peak_device_bytes=device,
            busy=min(1.0, window.responding / seconds),
            waiting=min(1.0, window.waiting / seconds),
            device_busy=self._device_busy(size, p50) if cuda is not None else None,
            flops=counted.flops,
            bytes=counted.bytes,
            flop_share=_share(counted.flops, batches_s, limits.matrix(counted.precision)),
            byte_share=_share(counted.bytes, batches_s, limits.copy_bytes_s),
            seconds=seconds,
            stimuli=window.answered,
            failed=window.failed,
            precision=counted.precision,
        )

    def _work(self, size: int, batch_s: float) -> work.Work:
        """What one batch has to do, where it can be counted in reasonable time."""
        counted = work.Work()
        if not isinstance(self.loop, Batches) or batch_s > COUNTED * self.job.seconds:
            return counted
        try:
            counted = work.of(self.agent, *self.loop.ready(size))
        except Exception as error:
            if not is_out_of_memory(error):  # counting takes a little memory, too
                raise
        release_memory()
        return counted

    def _device_busy(self, size: int, batch_s: float) -> float | None:
        loop = self.loop
        if not isinstance(loop, Batches) or batch_s > COUNTED * self.job.seconds:
            return None
        batches = max(1, min(PROFILED, int(self.job.seconds / batch_s)))
        return device_time.busy_share(loop.steady(size, batches))

    def compare(self, sizes: Sequence[Size]) -> Differing | None:
        """How many answers in batches of the best size are not those one at a time; None where that is 1."""
        size = best(sizes, self._long).batch_size
        if size == 1:
            return None
        one_by_one = self.loop.answers(1, max(COMPARED, size), (FEWEST, 2 * self.job.seconds))
        count = len(one_by_one)
        together = self.loop.answers(size, count)
        differ = sum(said(one) != said(other) for one, other in zip(one_by_one, together, strict=True))
        return Differing(differ / count, differ, count, size)


def _share(each: int | None, batches_s: float, limit: float | None) -> float | None:
    """What so much in each batch comes to per second, of what the device can do."""
    return None if each is None or not limit else each * batches_s / limit


def _cuda(device: str) -> Any:
    """torch.cuda, if that is where the agent runs and this process has loaded it."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and device.startswith("cuda") else None
