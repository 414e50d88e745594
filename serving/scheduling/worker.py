"""The worker: a process that hosts one agent and answers batches.

It prepares stimuli in threads beside the device, so that a batch is prepared while the one before it is answered; it
answers in one thread; it halves a batch that does not fit in memory and bisects one that raises, so that what comes
back is one result per item, whatever happened. It knows nothing of seeds, filters or records: the scheduler does.

Nothing here imports Ray: :mod:`serving.scheduling.ray_workers` wraps :class:`Worker` in an actor.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib
import importlib.metadata
import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from agents import answers, stimuli
from agents.catalogue import Entry
from agents.contract import Agent, Draw, Reply
from agents.errors import AnswerError
from serving.scheduling import worker_process

# One stimulus to answer: its canonical JSON, the bytes of its images if they travel, and the attempt's draw.
PackedRequest = tuple[bytes, Mapping[str, bytes] | None, int, int, int, Mapping[str, Any] | None]
# (error code or None, error message or answer as JSON, raw as JSON, stimulus_sha256, seconds of preparing)
PackedReply = tuple[str | None, bytes | str, bytes | None, str | None, float]


# import name -> distribution, of everything that can change an answer
PACKAGES = {
    "torch": "torch",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "vllm": "vllm",
    "numpy": "numpy",
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
}


# what torch's allocator for the CPU says, on Linux and elsewhere
NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory")
PICTURES = frozenset(stimuli.TASKS) - {"word_association", "conversation"}


class FatalDeviceError(Exception):
    """The device is in a state in which nothing more can be computed by this process."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Which agent a worker hosts, and where. ``root`` is the folder that image paths are relative to."""

    entry: Entry
    settings: Mapping[str, Any]
    root: str
    device: str = "cpu"
    threads: int = 1
    memory_fraction: float | None = None


@dataclass(slots=True)
class BatchReply:
    """What one call brings back. ``limit`` is the largest batch that fits, once memory ran out."""

    results: list[PackedReply]
    responding: float
    size: int
    limit: int | None = None


@dataclass(slots=True)
class _Prepared:
    value: Any = None
    error: AnswerError | None = None
    sha256: str | None = None
    task: stimuli.Task | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Worker:
    """One agent in one process. ``load`` before ``answer`` or ``answer_one``."""

    spec: WorkerSpec
    agent: Agent[Any] = field(init=False)
    limit: int = field(init=False, default=1 << 30)
    _preparers: ThreadPoolExecutor = field(init=False)
    _device: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.agent = self.spec.entry.make(self.spec.settings)
        self._preparers = ThreadPoolExecutor(self.spec.threads, "prepare", initializer=worker_process.yield_to_device)
        self._device = ThreadPoolExecutor(1, "device")

    def load(self) -> dict[str, Any]:
        """Open and load the agent; returns what the record's provenance should know."""
        missing = self.agent.missing()
        if missing is not None:
            raise AnswerError("unavailable", missing)
        self.agent.open()
        if PICTURES.intersection(self.agent.tasks):
            importlib.import_module("PIL.Image")  # decodes what the agent will see, and so belongs to the versions
        device = self.spec.device
        # An engine that batches by itself has its own process, and is told its share there.
        if device.startswith("cuda") and self.spec.memory_fraction is not None and not self.agent.continuous():
            import torch

            torch.cuda.set_per_process_memory_fraction(self.spec.memory_fraction, device)
        self._device.submit(self._load, device).result()
        worker_process.freeze()
        return {**self.agent.provenance(), "versions": versions()}

    def _load(self, device: str) -> None:
        # In the thread that will use it: torch's thread count and current device belong to a thread.
        self.agent.load(device)
        if device == "cpu" and (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(self.spec.threads if self.agent.parallel else 1)

    async def answer(self, works: Sequence[PackedRequest]) -> BatchReply:
        """Answer a batch: one result per work, in order."""
        loop = asyncio.get_running_loop()
        # Images of requests have no names of their own: two rows that read the same need not show the same.
        distinct: dict[tuple[bytes, int | None], int] = {}
        places = [distinct.setdefault((row, id(files) if files else None), len(distinct)) for row, files, *_ in works]
        firsts: list[PackedRequest | None] = [None] * len(distinct)
        for place, work in zip(places, works, strict=True):
            firsts[place] = firsts[place] or work
        size = -(-len(firsts) // self.spec.threads)
        parts = [firsts[start : start + size] for start in range(0, len(firsts), size)]
        done = await asyncio.gather(*(loop.run_in_executor(self._preparers, self._prepare_all, part) for part in parts))
        prepared = [one for part in done for one in part]
        items = [prepared[place] for place in places]
        draws = [Draw(seed, sample, attempt, options or {}) for _, _, seed, sample, attempt, options in works]
        return await loop.run_in_executor(self._device, self._respond_all, items, draws)

    async def answer_one(self, work: PackedRequest) -> BatchReply:
        """Answer one work with an engine that batches by itself."""
        loop = asyncio.get_running_loop()
        [item] = await loop.run_in_executor(self._preparers, self._prepare_all, [work])
        _, _, seed, sample, attempt, options = work
        draw = Draw(seed, sample, attempt, options or {})
        began = time.perf_counter()
        reply: Reply | Exception
        if item.error is not None:
            reply = item.error
        else:
            try:
                reply = await self.agent.respond_one(item.value, draw)
            except Exception as error:
                if is_fatal(error):
                    raise FatalDeviceError(describe(error)) from None
                reply = AnswerError("out_of_memory", describe(error)) if is_out_of_memory(error) else error
        seconds = time.perf_counter() - began
        return BatchReply([_result(reply, item)], seconds, 1)

    def _prepare_all(self, works: Sequence[PackedRequest | None]) -> list[_Prepared]:
        return [self._prepare(work[0], work[1]) for work in works if work is not None]

    def _prepare(self, row: bytes, files: Mapping[str, bytes] | None) -> _Prepared:
        began = time.perf_counter()
        item = _Prepared()
        stimulus: stimuli.Stimulus | None = None
        try:
            stimulus = stimuli.parse_row(row, root=self.spec.root, files=files)
            item.task = stimulus.task
            item.value = self.agent.prepare(stimulus)
        except AnswerError as error:
            item.error = error
        except Exception as error:
            item.error = AnswerError("prepare_failed", describe(error))
        try:
            if stimulus is None or not stimulus.images():  # the row is its own canonical form
                item.sha256 = hashlib.sha256(row).hexdigest()
            else:
                item.sha256 = stimuli.sha256(stimulus)
        except AnswerError as error:
            item.error = item.error or error
        item.seconds = time.perf_counter() - began
        return item

    def _respond_all(self, items: Sequence[_Prepared], draws: Sequence[Draw]) -> BatchReply:
        good = [index for index, item in enumerate(items) if item.error is None]
        replies: list[Reply | Exception] = [item.error or AssertionError() for item in items]
        limit = self.limit
        began = time.perf_counter()
        size = self.limit
        for start in range(0, len(good), size):
            chosen = good[start : start + size]
            for index, reply in zip(chosen, self._respond(items, draws, chosen), strict=True):
                replies[index] = reply
        seconds = time.perf_counter() - began
        results = [_result(reply, item) for reply, item in zip(replies, items, strict=True)]
        return BatchReply(results, seconds, min(len(good), size), self.limit if self.limit < limit else None)

    def _respond(
        self, items: Sequence[_Prepared], draws: Sequence[Draw], chosen: list[int]
    ) -> Sequence[Reply | Exception]:
        """Ask the agent; where it raises, ask again with each half, down to the items that raise alone.

        Sizes for which memory did not suffice are not tried again, and the largest below them is remembered; but those
        that a stimulus too large by itself explains are forgotten, so that it does not make every later batch small.
        """
        replies: list[Reply | Exception] = []
        pieces, fits = [chosen], 0
        short: list[list[int]] = []  # pieces that did not fit
        while pieces:
            piece = pieces.pop()
            if len(piece) > 1 and len(piece) >= min(map(len, short), default=len(piece) + 1):
                size = max(1, min(fits or len(piece), len(piece) // 2))
                pieces += [piece[start : start + size] for start in range(0, len(piece), size)][::-1]
                continue
            answered, error = self._ask(items, draws, piece)
            if error is None:
                replies += answered
                fits = max(fits, len(piece))
                continue
            if len(piece) == 1:
                replies.append(error)
            else:
                half = len(piece) // 2
                pieces += [piece[half:], piece[:half]]
            if is_out_of_memory(error):
                short = [*short, piece] if len(piece) > 1 else [one for one in short if piece[0] not in one]
                release_memory()
        if short:
            self.limit = max(1, fits)
        return replies

    def _ask(
        self, items: Sequence[_Prepared], draws: Sequence[Draw], piece: list[int]
    ) -> tuple[Sequence[Reply | Exception], Exception | None]:
        """The replies, or what the agent raised, without the traceback that would hold on to the batch's tensors."""
        try:
            replies = self.agent.respond([items[i].value for i in piece], [draws[i] for i in piece])
            if len(replies) != len(piece):
                raise AnswerError("bad_agent", f"{len(replies)} replies to a batch of {len(piece)}")
            return replies, None
        except Exception as error:
            if is_fatal(error):
                raise FatalDeviceError(describe(error)) from None
            if is_out_of_memory(error):
                return [], MemoryError("this stimulus alone does not fit into memory")
            if isinstance(error, AnswerError):
                return [], error
            return [], AnswerError("respond_failed", describe(error))


def _result(reply: Reply | Exception, item: _Prepared) -> PackedReply:
    try:
        if isinstance(reply, Exception):
            raise reply
        answer = _answer_json(reply.answer, item.task)
        return None, answer, orjson.dumps(clean(reply.raw)), item.sha256, item.seconds
    except AnswerError as error:
        return error.code, str(clean(str(error))), None, item.sha256, item.seconds
    except MemoryError as error:
        return "out_of_memory", str(error), None, item.sha256, item.seconds
    except Exception as error:
        return "respond_failed", describe(error), None, item.sha256, item.seconds


def _answer_json(answer: BaseModel, task: stimuli.Task | None) -> bytes:
    assert task is not None
    expected = answers.TurnAnswer if task == "conversation" else answers.BY_TASK[task]
    if type(answer) is not expected:
        raise AnswerError("bad_agent", f"the answer is a {type(answer).__name__}, not a {expected.__name__}")
    return expected.__pydantic_serializer__.to_json(answer)


def clean(value: Any) -> Any:
    """``value`` as JSON can hold it: lone surrogates replaced, infinities and NaN as null, the rest as text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {str(clean(str(key))): clean(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean(part) for part in value]
    return clean(str(value))


def describe(error: BaseException) -> str:
    """An error of an agent's own code in one line: type, message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())[:500]
    return str(clean(f"{type(error).__name__}: {text}{place}"))


def is_out_of_memory(error: BaseException) -> bool:
    """Memory ran out on the host or on a device (torch's error is known by name, torch need not be loaded; that of its
    allocator for the CPU, which has no type of its own, by its text)."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in NO_MEMORY)


def is_fatal(error: BaseException) -> bool:
    """After these errors every later call of the process fails too: CUDA's, and the death of vLLM's own process."""
    if type(error).__name__ == "EngineDeadError":
        return True
    if is_out_of_memory(error) or not isinstance(error, RuntimeError):
        return False
    return type(error).__name__ == "AcceleratorError" or "CUDA error" in str(error) or "cuDNN error" in str(error)


def release_memory() -> None:
    """Give cached device memory back after an out-of-memory error."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def versions() -> dict[str, str]:
    """Versions of what can change an answer and is loaded in this process, by distribution."""
    found = {"python": platform.python_version()}
    for module, package in PACKAGES.items():
        if module in sys.modules:
            found[package] = importlib.metadata.version(package)
    return found


def host() -> str:
    """This machine's name."""
    return socket.gethostname()


def same_file(path: str, size: int, mtime_ns: int) -> bool:
    """Whether this machine sees the same file as the driver does."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return found.st_size == size and found.st_mtime_ns == mtime_ns
