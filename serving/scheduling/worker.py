"""Requests, and the worker that answers batches of them. A batch is halved where memory runs out and bisected where it
raises: all get a reply."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

import orjson
from pydantic import BaseModel

from agents import answers, stimuli
from agents.capabilities import BatchesByItself, SeveralGPUs, provenance_of
from agents.contract import Agent, Draw, Entry, Reply, derive_seed
from agents.errors import AnswerError
from agents.models import loading
from serving.files.json_values import clean
from serving.scheduling import machine
from serving.scheduling.recovery import FatalDeviceError, describe, is_fatal, is_out_of_memory, release_memory

Status = Literal["ok", "rejected", "failed", "unanswered"]
Listener = Callable[[str], None]  # called with the text of an answer so far
Listeners = Mapping[int, Listener]  # by the places of requests in a batch
NOBODY: Listeners = {}

# Plain tuples, as they travel between processes by the thousand.
# A stimulus's canonical JSON, the bytes of its images if they travel, and the attempt's seed, sample, number, options
PackedRequest = tuple[bytes, Mapping[str, bytes] | None, int, int, int, Mapping[str, Any] | None]
# Error code or None, error message or answer as JSON, raw as JSON, stimulus_sha256, seconds of preparing
PackedReply = tuple[str | None, bytes | str, bytes | None, str | None, float]

IMAGE_TASKS = frozenset(stimuli.ALL_TASKS) - {"word_association", "conversation"}
MOST_DECODED = 1024**3  # bytes of the decoded pictures of what is answered at once
NO_ROOM = "this stimulus alone does not fit into memory"


def in_loop(listeners: Listeners) -> Listeners:
    """The same callbacks for other threads, called in the running loop."""
    loop = asyncio.get_running_loop()

    def call(listener: Listener, text: str) -> None:
        loop.call_soon_threadsafe(listener, text)

    return {place: partial(call, listener) for place, listener in listeners.items()}


@dataclass(slots=True, eq=False)
class AgentRequest:
    """``row`` is canonical JSON. ``name`` (agent or pair) is for seed and record. Smaller ``order`` goes first.
    ``position`` is the stimulus's in its set."""

    agent: str
    row: bytes
    stimulus: str
    sample: int = 0
    run_seed: int = 0
    name: str = ""
    turn: int | None = None
    options: Mapping[str, Any] | None = None
    order: int = 0
    deliver: Callable[[AgentRequest], None] | None = None
    files: Mapping[str, bytes] | None = None  # the images that the row names, where they come with a request
    failed_before: str = ""  # the code of the failure that is tried again
    say: Callable[[str], None] | None = None  # called with the answer's text so far, while it is made
    position: int = 0

    # kept by the scheduler
    attempt: int = 0
    first_attempt: int = 0  # the number that attempt 0 of this request has in seeds and records
    seed: int = 0
    attempts: list[dict[str, Any]] = field(default_factory=list)
    deaths: int = 0
    queued_at: float = 0.0
    cancelled: bool = False

    # the outcome; answer and raw are JSON
    status: Status = "unanswered"
    answer: bytes | None = None
    raw: bytes | None = None
    error: tuple[str, str] | None = None
    sha256: str | None = None
    waiting: float = 0.0
    preparing: float = 0.0
    responding: float = 0.0
    worker: Mapping[str, Any] | None = None
    created: str = ""

    def draw_seed(self) -> int:
        name = self.name or self.agent
        attempt = self.first_attempt + self.attempt
        self.seed = derive_seed(self.run_seed, name, self.stimulus, self.sample, self.turn, attempt)
        return self.seed

    def packed(self) -> PackedRequest:
        return self.row, self.files, self.draw_seed(), self.sample, self.attempt, self.options

    def fail(self, code: str, message: str) -> None:
        self.status = "failed"
        self.answer = None
        self.error = (code, message)

    def finish(self) -> None:
        if self.deliver is not None and not self.cancelled:
            self.deliver(self)

    def pass_on(self, text: str) -> None:
        if self.say is not None and not self.cancelled:
            self.say(text)

    def question(self) -> bytes:
        """A hash, the same for the samples and attempts that ask the same."""
        asked = orjson.dumps([self.name, self.turn, self.options], default=str)
        return hashlib.sha256(self.row + asked).digest()

    def server_replies(self) -> list[tuple[int, dict[str, Any]]]:
        """Seed and raw reply of each attempt; none where no server wrote it."""
        kept = [(attempt["seed"], orjson.dumps(attempt["raw"])) for attempt in self.attempts]
        is_kept = bool(self.attempts) and self.attempts[-1]["attempt"] == self.first_attempt + self.attempt
        if self.raw is not None and not is_kept:
            kept.append((self.seed, self.raw))
        raws = [(seed, orjson.loads(raw)) for seed, raw in kept if b'"model":' in raw]
        return [(seed, raw) for seed, raw in raws if isinstance(raw, dict) and "model" in raw]

    def attempt_record(self, verdicts: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "attempt": self.first_attempt + self.attempt,
            "turn": self.turn,
            "seed": self.seed,
            "answer": None if self.answer is None else orjson.Fragment(self.answer),
            "raw": None if self.raw is None else orjson.Fragment(self.raw),
            "verdicts": verdicts,
        }


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """``environment`` holds keys for this agent alone."""

    entry: Entry
    settings: Mapping[str, Any]
    root: str
    device: str = "cpu"
    threads: int = 1
    memory_fraction: float | None = None
    devices: int = 1
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class BatchReply:
    """``size`` is the largest number answered at once, ``limit`` the largest that fits once memory ran out."""

    replies: list[PackedReply]
    responding: float
    size: int
    limit: int | None = None


@dataclass(slots=True)
class _Prepared:
    value: Any = None
    error: AnswerError | None = None  # why there is no value
    sha256: str | None = None
    task: stimuli.Task | None = None
    seconds: float = 0.0


class Worker:
    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.agent: Agent[Any] = spec.entry.make(spec.settings)
        if spec.devices > 1:
            assert isinstance(self.agent, SeveralGPUs)
            self.agent.use_devices(spec.devices)
        self.declared = self.agent.declaration()
        self._one_by_one = self.agent if isinstance(self.agent, BatchesByItself) else None
        self.limit = 1 << 30
        self._preparers = ThreadPoolExecutor(spec.threads, "prepare", initializer=machine.yield_to_device)
        self._device = ThreadPoolExecutor(1, "device")

    def load(self) -> dict[str, Any]:
        """Open and load the agent; returns its provenance."""
        missing = self.agent.missing()
        if missing is not None:
            raise AnswerError("unavailable", missing)
        self.agent.open()
        if IMAGE_TASKS.intersection(self.declared.tasks):
            importlib.import_module("PIL.Image")  # decodes what the agent will see, and so belongs to the versions
        device = self.spec.device
        # An engine that batches by itself has its own process, which gets its share there.
        on_gpu = device.startswith("cuda") and not self.declared.batches_by_itself
        if on_gpu:
            import torch

            loading.use_full_float32("cuda")
            if self.spec.memory_fraction is not None:
                torch.cuda.set_per_process_memory_fraction(self.spec.memory_fraction, device)
        self._device.submit(self._load, device).result()
        about = provenance_of(self.agent)
        if on_gpu:
            about = {**about, "device": loading.gpu_provenance()}
        return {**about, "versions": machine.versions()}

    def _load(self, device: str) -> None:
        # In the thread that will use it: torch's thread count and current device belong to a thread.
        self.agent.load(device)
        if device == "cpu" and (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(self.spec.threads if self.declared.parallel else 1)

    def close(self) -> None:
        """Let go of the agent after its batch in hand."""
        self._preparers.shutdown(wait=False)
        with contextlib.suppress(RuntimeError):  # it is closed already
            self._device.submit(self.agent.close)
        self._device.shutdown(wait=False)

    async def answer(self, batch: Sequence[PackedRequest], listeners: Listeners = NOBODY) -> BatchReply:
        """Reply to each request, in order; ``listeners`` run in other threads. Raises FatalDeviceError."""
        if self.declared.batches_by_itself:
            return await self._answer_one(batch[0], listeners.get(0))
        parts = deque([list(range(len(batch)))])
        if any(b'"image":' in row for row, *_ in batch):
            parts = await asyncio.get_running_loop().run_in_executor(self._preparers, self._parts, batch)
        total = BatchReply([("", "", None, None, 0.0)] * len(batch), 0.0, 0)
        while parts:
            places = parts.popleft()
            reply = await self._answer_part(
                [batch[place] for place in places], [listeners.get(place) for place in places]
            )
            for place, packed in zip(places, reply.replies, strict=True):
                total.replies[place] = packed
                if packed[0] == "out_of_memory" and len(places) > 1:
                    parts.append([place])
            total.responding += reply.responding
            total.size = max(total.size, reply.size)
            total.limit = reply.limit or total.limit
        return total

    async def _answer_part(self, batch: Sequence[PackedRequest], listeners: Sequence[Listener | None]) -> BatchReply:
        # Images of requests have no names of their own: two rows that read the same need not show the same.
        keys = [(row, id(files) if files else None) for row, files, *_ in batch]
        distinct = dict(zip(keys, batch, strict=True))
        prepared = dict(zip(distinct, await self._prepare_all(list(distinct.values())), strict=True))
        items = [
            (prepared[key], _draw(request, listener))
            for key, request, listener in zip(keys, batch, listeners, strict=True)
        ]
        return await asyncio.get_running_loop().run_in_executor(self._device, self._respond_all, items)

    def _parts(self, batch: Sequence[PackedRequest]) -> deque[list[int]]:
        """The places of a batch in parts of at most :data:`MOST_DECODED` bytes of decoded pictures."""
        parts: deque[list[int]] = deque([[]])
        left = MOST_DECODED
        for place, (row, files, *_) in enumerate(batch):
            size = self._decoded_size(row, files)
            if size > left and parts[-1]:
                parts.append([])
                left = MOST_DECODED
            parts[-1].append(place)
            left -= size
        return parts

    def _decoded_size(self, row: bytes, files: Mapping[str, bytes] | None) -> int:
        size = 0
        with contextlib.suppress(ValueError, AnswerError):  # what cannot be decoded takes nothing
            for image in stimuli.parse_row(row, root=self.spec.root, files=files).images():
                header = image.header()
                size += 3 * header.width * header.height
        return size

    async def _answer_one(self, request: PackedRequest, listener: Listener | None) -> BatchReply:
        [prepared] = await self._prepare_all([request])
        began = time.perf_counter()
        reply: Reply | Exception
        if prepared.error is not None:
            reply = prepared.error
        else:
            assert self._one_by_one is not None
            try:
                reply = await self._one_by_one.respond_one(prepared.value, _draw(request, listener))
            except Exception as error:
                reply = _without_traceback(error)
        return BatchReply([_pack(reply, prepared)], time.perf_counter() - began, 1)

    async def _prepare_all(self, requests: Sequence[PackedRequest]) -> list[_Prepared]:
        loop = asyncio.get_running_loop()
        size = -(-len(requests) // self.spec.threads)
        parts = [requests[start : start + size] for start in range(0, len(requests), size)]
        done = [loop.run_in_executor(self._preparers, self._prepare_part, part) for part in parts]
        return list(chain.from_iterable(await asyncio.gather(*done)))

    def _prepare_part(self, requests: Sequence[PackedRequest]) -> list[_Prepared]:
        return [self._prepare(row, files) for row, files, *_ in requests]

    def _prepare(self, row: bytes, files: Mapping[str, bytes] | None) -> _Prepared:
        began = time.perf_counter()
        prepared = _Prepared()
        stimulus: stimuli.Stimulus | None = None
        try:
            stimulus = stimuli.parse_row(row, root=self.spec.root, files=files)
            prepared.task = stimulus.task
            prepared.value = self.agent.prepare(stimulus)
        except AnswerError as error:
            prepared.error = error
        except Exception as error:
            code, why = ("out_of_memory", NO_ROOM) if is_out_of_memory(error) else ("prepare_failed", describe(error))
            prepared.error = AnswerError(code, why)
        try:
            if stimulus is None or not stimulus.images():  # the row is its own canonical form
                prepared.sha256 = hashlib.sha256(row).hexdigest()
            else:
                prepared.sha256 = stimuli.sha256(stimulus)
        except AnswerError as error:
            prepared.error = prepared.error or error
        prepared.seconds = time.perf_counter() - began
        return prepared

    def _respond_all(self, items: Sequence[tuple[_Prepared, Draw]]) -> BatchReply:
        good = [(prepared.value, draw) for prepared, draw in items if prepared.error is None]
        limit = self.limit
        began = time.perf_counter()
        replies = iter(self._respond(good) if good else ())
        seconds = time.perf_counter() - began
        packed = [_pack(prepared.error or next(replies), prepared) for prepared, _ in items]
        size = min(len(good) or len(items), limit)  # where nothing could be prepared, of what came in
        return BatchReply(packed, seconds, size, self.limit if self.limit < limit else None)

    def _respond(self, batch: list[tuple[Any, Draw]]) -> list[Reply | Exception]:
        """Call the agent, with halves where it raises; remember a size that does not fit in memory."""
        if len(batch) > self.limit:
            size = self.limit
            parts = [batch[start : start + size] for start in range(0, len(batch), size)]
            return [reply for part in parts for reply in self._respond(part)]
        replies = self._call_agent(batch)
        if not isinstance(replies, Exception):
            return list(replies)
        if isinstance(replies, MemoryError):
            release_memory()
        if len(batch) == 1:
            return [replies]
        half = len(batch) // 2
        halves = self._respond(batch[:half]) + self._respond(batch[half:])
        if isinstance(replies, MemoryError) and not any(isinstance(reply, MemoryError) for reply in halves):
            self.limit = min(self.limit, len(batch) - half)
        return halves

    def _call_agent(self, batch: list[tuple[Any, Draw]]) -> Sequence[Reply | Exception] | Exception:
        try:
            replies = self.agent.respond([value for value, _ in batch], [draw for _, draw in batch])
        except Exception as error:
            return _without_traceback(error)
        if len(replies) != len(batch):
            return AnswerError("bad_agent", f"{len(replies)} replies to a batch of {len(batch)}")
        return replies


def _draw(request: PackedRequest, listener: Listener | None) -> Draw:
    _, _, seed, sample, attempt, options = request
    return Draw(seed, sample, attempt, options or {}, listener)


def _without_traceback(error: Exception) -> Exception:
    """An error without the traceback that holds tensors. Raises FatalDeviceError."""
    if is_fatal(error):
        raise FatalDeviceError(describe(error)) from None
    if is_out_of_memory(error):
        return MemoryError(NO_ROOM)
    return error if isinstance(error, AnswerError) else AnswerError("respond_failed", describe(error))


def _pack(reply: Reply | Exception, prepared: _Prepared) -> PackedReply:
    code = None
    raw = None
    content: bytes | str
    try:
        if isinstance(reply, Exception):
            raise reply
        content = _answer_json(reply.answer, prepared.task)
        raw = orjson.dumps(clean(reply.raw))
    except AnswerError as error:
        code = error.code
        content = str(clean(str(error)))
        raw = None if error.raw is None else orjson.dumps(clean(error.raw))
    except MemoryError as error:
        code = "out_of_memory"
        content = str(error)
    except Exception as error:
        code = "respond_failed"
        content = describe(error)
    return code, content, raw, prepared.sha256, prepared.seconds


def _answer_json(answer: BaseModel, task: stimuli.Task | None) -> bytes:
    assert task is not None
    expected = answers.TurnAnswer if task == "conversation" else answers.BY_TASK[task]
    if type(answer) is not expected:
        raise AnswerError("bad_agent", f"the answer is a {type(answer).__name__}, not a {expected.__name__}")
    return expected.__pydantic_serializer__.to_json(answer)
