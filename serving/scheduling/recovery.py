"""What errors mean, and what follows when a worker dies or an agent keeps failing.

- The worker bisects a batch that raises, and halves a batch that does not fit in memory.
- A fatal error (:func:`is_fatal`) gives the worker up.
- After a death with several requests in flight each is sent alone. After :data:`DEATHS` deaths alone it fails.
- After a death for want of memory the dispatcher halves its batches.
- A lost worker is loaded again, with :data:`RELOADS` attempts, and for ever where strangers ask.
- An agent stops if its first :data:`FIRST` answers, or :data:`IN_A_ROW` in a row, fail with the same code. Failures of
  a stimulus, repeated ones, and those of strangers' requests do not count.

Why a death is blamed on nobody in company: a process dies with all its requests, and any of them may be the culprit.
Sent alone, a request that kills a worker shows itself, and the others are answered. One death alone proves little, as
machines end processes for reasons of their own; but each further attempt may cost another worker, so there are few.

Errors are told apart by type and text, and libraries change their texts. An error that is missed here is a failure of
the stimuli that were asked, which a later run may try again; it never makes a wrong answer.
"""

from __future__ import annotations

import gc
import re
import sys
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agents.errors import OF_STIMULUS, AgentStoppedError, EngineDeadError
from serving.files.json_values import clean

DEATHS = 3  # of workers that had the request alone, after which it fails
FIRST = 20  # failures with one code from the start on, after which the agent stops
IN_A_ROW = 50  # failures with one code anywhere, after which the agent stops
RELOADS = 3  # attempts to load a lost worker again, in a run
LONGEST_PAUSE = 60.0  # seconds between two attempts to load a lost worker
Cause = Literal["worker_died", "out_of_memory", "timeout", "device_error"]

# The text of RuntimeErrors of torch's allocators, where these have no type of their own, and of the libraries under it.
NO_MEMORY = re.compile(
    r"DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|CUDA out of memory\. Tried to allocate"
    r"|(CUBLAS|CUDNN|CUFFT|CUSOLVER|CUSPARSE|CUSPARSELT)_(STATUS_)?\w*ALLOC(ATION)?_FAILED"
    # cuDNN for a convolution for which there is no room to work in
    r"|unable to find an engine to execute this computation|Unable to find a valid cuDNN algorithm"
)
FATAL = re.compile(
    r"CUDA (driver )?error"
    r"|(cuBLAS|cuDNN|cuFFT|cuSOLVER|cuSPARSE|cusolver|cusparse|CUFFT) error|CUFFT_\w+|CUBLAS_STATUS_\w+"
    r"|Triton Error \[CUDA\]"
    r"|NCCL (Error|error)|ncclUnhandledCudaError"
    r"|CUDA call failed|CUDA-capable device|No CUDA GPUs are available|cudaGetDeviceCount\(\)|CUDA driver init"
    r"|CUDACachingAllocator\.cpp|NVML_\w+|GPU is lost|\bECC\b|\bXid\b"
)
HARMLESS = re.compile(r"CUDNN_STATUS_(NOT_SUPPORTED|BAD_PARAM)")  # of a call that cuDNN refused


def is_out_of_memory(error: BaseException) -> bool:
    """Whether host or device memory ran out, so that a smaller batch may do."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:  # torch's, which need not be loaded
        return True
    return isinstance(error, RuntimeError) and NO_MEMORY.search(str(error)) is not None


def is_fatal(error: BaseException) -> bool:
    """Whether every later call fails too: errors of CUDA, and the death of vLLM's process."""
    if isinstance(error, EngineDeadError):
        return True
    if is_out_of_memory(error) or not isinstance(error, RuntimeError):
        return False
    text = str(error)
    return type(error).__name__ == "AcceleratorError" or (
        FATAL.search(text) is not None and HARMLESS.search(text) is None
    )


def release_memory() -> None:
    """Give back what Python and torch hold without use, before a smaller batch is tried."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class FatalDeviceError(Exception):
    """This process can compute nothing more."""

    @property
    def of_memory(self) -> bool:
        """Whether other processes fill the device."""
        return "out of memory" in str(self)


class WorkerLost(Exception):
    """The worker has ended; ``cause`` is the last request's error code."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause

    @classmethod
    def by_device(cls, error: FatalDeviceError) -> WorkerLost:
        """For a process whose device can compute nothing more."""
        return cls("out_of_memory" if error.of_memory else "device_error", one_line(error))

    @classmethod
    def by_timeout(cls, seconds: float) -> WorkerLost:
        """For a batch that took longer than ``seconds``."""
        return cls("timeout", f"no answer within {seconds:g} s; give it more with timeout (--timeout)")


async def load_in_time(
    agent: str, loading: Coroutine[Any, Any, dict[str, Any]], seconds: float, kill: Callable[[], None]
) -> dict[str, Any]:
    """The provenance that ``loading`` returns; else ``kill`` is called. Raises AgentStoppedError."""
    try:
        return await loading
    except TimeoutError:
        why = f"was not loaded within {seconds:g} s; give it more with load_timeout (--load-timeout)"
    except Exception as error:
        why = f"could not be loaded: {one_line(error)}"
    except BaseException:
        kill()
        raise
    kill()
    raise AgentStoppedError(f"agent {agent} {why}")


@dataclass(slots=True)
class CircuitBreaker:
    """Counts failures with the same code: from the first answer on, and in a row."""

    seen: int = 0
    """The answers that count."""
    code: str | None = None
    """The last one's error code; None for an answer."""
    in_a_row: int = 0
    """The failures with that code since the last answer or other code."""

    def note(self, code: str | None, before: str = "") -> str | None:
        """Note the error code of an answer and of the try before. Returns why the agent must stop, or None."""
        if code is not None and (code in OF_STIMULUS or code == before):
            return None
        self.seen += 1
        if code is None or code != self.code:
            self.in_a_row = 0
        self.code = code
        if code is None:
            return None
        self.in_a_row += 1
        if self.in_a_row == self.seen == FIRST:
            return f"its first {FIRST} answers failed with {code}"
        return f"{IN_A_ROW} answers in a row failed with {code}" if self.in_a_row >= IN_A_ROW else None


def describe_error(error: BaseException) -> str:
    """Type, message and place of an error in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())[:500]
    return str(clean(f"{type(error).__name__}: {text}{place}"))


def one_line(error: BaseException) -> str:
    """An error's message in a line of at most 500 characters; its type's name if it has none."""
    return " ".join(str(error).split())[:500] or type(error).__name__
