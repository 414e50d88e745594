"""Errors of devices, workers that die or cannot be loaded again, agents that keep failing, and whose turn it is."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from agents import catalogue
from agents.errors import OF_STIMULUS, AgentStoppedError
from serving.scheduling.batch import NOBODY, BatchReply, Listeners, PackedRequest
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.recovery import CircuitBreaker, FatalDeviceError, WorkerLost, is_fatal, is_out_of_memory
from serving.scheduling.request import Outcome, Request
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.worker import Worker, WorkerSpec
from tests.helpers.in_process import InProcess, Mortal, error_codes, scheduled, stimulus_row, stream

ACCELERATOR_ERROR: type[Exception] = getattr(torch, "AcceleratorError", RuntimeError)  # torch before 2.8 has none
HINT = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
HALVED = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB"),
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.18 GiB total capacity)"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("FIND was unable to find an engine to execute this computation"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    MemoryError(),
]
FATAL = [
    ACCELERATOR_ERROR("CUDA error: device-side assert triggered" + HINT),
    RuntimeError("CUDA error: an illegal memory access was encountered" + HINT),
    RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
    RuntimeError("No CUDA GPUs are available"),
    RuntimeError("Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before"),
    RuntimeError('NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":995'),
    RuntimeError("NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"),
]
FULL = [  # fatal, and the next process asks for less
    ACCELERATOR_ERROR("CUDA error: out of memory" + HINT),
    RuntimeError("CUDA driver error: out of memory"),
]
OF_THE_STIMULUS = [
    RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED."),
    RuntimeError("The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 0"),
    RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"),
    RuntimeError("can't allocate memory for a mistake of another kind"),
    ValueError("the cue reads: CUDA error: an illegal memory access was encountered"),
]


@pytest.mark.parametrize(
    ("error", "halves", "fatal", "full"),
    [
        *((error, True, False, False) for error in HALVED),
        *((error, False, True, False) for error in FATAL),
        *((error, False, True, True) for error in FULL),
        *((error, False, False, False) for error in OF_THE_STIMULUS),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_error_halves_the_batch_or_ends_the_process(
    error: BaseException, halves: bool, fatal: bool, full: bool
) -> None:
    assert (is_out_of_memory(error), is_fatal(error)) == (halves, fatal)
    assert FatalDeviceError(str(error)).of_memory is full or not fatal


WORKER = Worker(WorkerSpec(catalogue.get("null"), {}, "/"))
CONTINUOUS = Worker(WorkerSpec(catalogue.get("null-one"), {}, "/"))


def stream_over(
    make: Callable[[int], InProcess], count: int, agent: str = "null", **options: Any
) -> tuple[dict[str, Outcome], int]:
    """The outcomes by stimulus, from workers that ``make`` makes by their number; and how many it made."""
    numbers = itertools.count(1)
    outcomes = stream(count, agent=agent, make=lambda: make(next(numbers)), **options)
    return outcomes, next(numbers) - 1


@pytest.mark.parametrize("agent", ["null", "null-one"])
def test_a_stimulus_that_kills_its_worker_fails_alone(agent: str) -> None:
    worker = WORKER if agent == "null" else CONTINUOUS
    outcomes, made = stream_over(lambda number: Mortal(worker, poison="w017"), 60, agent, batch_size=16)
    assert error_codes(outcomes) == {"w017": "worker_died"}
    assert {outcome.error.message for outcome in outcomes.values() if outcome.error is not None} == {
        "the worker process died, 3 times with this stimulus alone"
    }
    assert made <= 5  # in company once, then alone three times, and the last that takes their place


def test_after_a_death_suspects_are_tried_one_at_a_time() -> None:
    workers: list[Mortal] = []

    def make(number: int) -> Mortal:
        workers.append(Mortal(WORKER, poison="w003" if number == 1 else "$^"))
        return workers[-1]

    outcomes, _ = stream_over(make, 16, batch_size=8)
    assert {outcome.status for outcome in outcomes.values()} == {"ok"}
    assert workers[0].calls == [8, 8]
    assert workers[1].calls == [1] * 16


def test_a_worker_that_ends_for_want_of_memory_halves_the_batch_and_blames_nobody() -> None:
    def make(number: int) -> Mortal:
        return Mortal(WORKER, poison="w003" if number == 1 else "$^", cause="out_of_memory")

    outcomes, _ = stream_over(make, 32, batch_size=8)
    assert {request.status for request in outcomes.values()} == {"ok"}
    assert max(outcome.worker.batch_size for outcome in outcomes.values() if outcome.worker is not None) == 4


def test_a_device_error_replaces_the_worker_and_blames_the_culprit() -> None:
    outcomes = stream(6, {"device_error_on": "cue3"}, agent="echo", batch_size=3)
    assert error_codes(outcomes) == {"w003": "device_error"}


def test_the_breaker_needs_a_code_in_a_row() -> None:
    breaker = CircuitBreaker()
    assert not any(breaker.note(code) for code in ["a", "b"] * 200)
    assert not any(breaker.note(code) for code in [*["a"] * 49, None] * 3)
    assert not any(breaker.note(code) for code in sorted(OF_STIMULUS | {"bad_image"}) for _ in range(60))
    assert not any(breaker.note("a", before="a") for _ in range(60))
    reasons = [breaker.note("a", before="b") for _ in range(50)]
    assert reasons == [None] * 49 + ["50 answers in a row failed with a"]
    fresh = CircuitBreaker()
    assert [fresh.note("a") for _ in range(20)] == [None] * 19 + ["its first 20 answers failed with a"]


@pytest.mark.parametrize(
    ("breaker", "fails", "pauses"),
    [
        (True, 2, [1.0, 2.0]),
        (True, 3, [1.0, 2.0]),  # and the agent stops
        (False, 1200, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 1194]),
    ],
)
def test_a_lost_worker_is_loaded_again(
    breaker: bool, fails: int, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For ever where strangers ask, at most three times in a run; the answer that it had under way is not lost."""
    started = 0
    paused = []
    sleep = asyncio.sleep

    class Fragile(InProcess):
        async def start(self, timeout: float) -> dict[str, Any]:
            nonlocal started
            started += 1
            if 1 < started <= 1 + fails:
                raise AgentStoppedError("there is no room")
            return await super().start(timeout)

        async def call(self, batch: list[PackedRequest], timeout: float, listeners: Listeners = NOBODY) -> BatchReply:
            if started == 1:
                raise WorkerLost("worker_died", "the worker process died")
            return await super().call(batch, timeout, listeners)

    async def pause(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0)

    async def work(scheduler: Scheduler, dispatcher: Dispatcher) -> Outcome:
        monkeypatch.setattr(asyncio, "sleep", pause)
        return await scheduler.answer(Request(agent="null-one", row=stimulus_row(1)))

    def answered() -> Outcome:
        return scheduled(work, agent="null-one", make=lambda: Fragile(CONTINUOUS), breaker=breaker)

    if breaker and fails == 3:
        with pytest.raises(AgentStoppedError, match="there is no room"):
            answered()
    else:
        assert answered().status == "ok"
    assert paused == pauses
    assert started == 1 + fails + (not breaker or fails < 3)
