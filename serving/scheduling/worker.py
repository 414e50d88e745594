"""The worker, which answers batches of requests in one process.

A batch goes through two stages. Threads prepare the stimuli (read, decode); one thread of its own calls the agent, as
libraries of models want. All requests get a reply: a batch is halved where memory runs out, and bisected where the
agent raises, until the culprit stands alone.
"""

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
from itertools import chain
from operator import attrgetter
from typing import Any

import orjson
from pydantic import BaseModel

from agents import answers, stimuli
from agents.capabilities import BatchesByItself, SeveralGPUs, provenance_of
from agents.contract import Agent, Draw, Entry, Reply
from agents.errors import AnswerError
from agents.models import loading
from serving.files.json_values import clean
from serving.scheduling import machine
from serving.scheduling.batch import NO_REPLY, NOBODY, BatchReply, Listeners, PackedReply, PackedRequest
from serving.scheduling.recovery import FatalDeviceError, describe_error, is_fatal, is_out_of_memory, release_memory
from serving.scheduling.request import Listener
from serving.sets.stimulus_row import StimulusRow

IMAGE_TASKS = frozenset(stimuli.ALL_TASKS) - {"word_association", "conversation"}
MOST_DECODED = 1024**3  # bytes of the decoded pictures of what is answered at once
TEXT_OF: Mapping[type[BaseModel], Callable[[Any], str]] = {
    answers.CaptionAnswer: attrgetter("text"),
    answers.TurnAnswer: attrgetter("text"),
    answers.WordAnswer: attrgetter("word"),
}
"""How the text of an answer is read, for answers that are a text."""
NO_ROOM = "this stimulus alone does not fit into memory"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a worker is made of, sent to its process."""

    entry: Entry
    """The agent's place in the catalogue."""
    settings: Mapping[str, Any]
    """The agent's settings."""
    root: str
    """The folder in which the paths of pictures begin, for a worker of another process."""
    device: str = "cpu"
    """Where the agent runs: "cpu" or "cuda:0"."""
    threads: int = 1
    """Threads that prepare stimuli; torch takes as many on the CPU."""
    memory_fraction: float | None = None
    """The share of the GPU's memory that torch may take, from 0 to 1; None: all."""
    devices: int = 1
    """GPUs that the agent is spread over."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables with keys (of servers, say) for this agent alone. They are in no repr, so in no log."""


@dataclass(slots=True)
class _Prepared:
    value: Any = None
    error: AnswerError | None = None  # why there is no value
    sha256: str | None = None
    task: stimuli.Task | None = None
    seconds: float = 0.0


class Worker:
    """An agent with its threads. Use as :meth:`load`, :meth:`answer` as often as wanted, :meth:`close`."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.agent: Agent[Any] = spec.entry.make(spec.settings)
        if spec.devices > 1:
            assert isinstance(self.agent, SeveralGPUs)
            self.agent.use_devices(spec.devices)
        self.declared = self.agent.declaration()
        self._one_by_one = self.agent if isinstance(self.agent, BatchesByItself) else None
        self.limit = 1 << 30  # the largest batch that fits in memory, as far as is known
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
        provenance = provenance_of(self.agent)
        if on_gpu:
            provenance = {**provenance, "device": loading.gpu_provenance()}
        return {**provenance, "versions": machine.versions()}

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
        if any(request.row.task in IMAGE_TASKS for request in batch):
            parts = await asyncio.get_running_loop().run_in_executor(self._preparers, self._parts, batch)
        total = BatchReply([NO_REPLY] * len(batch), 0.0, 0)
        while parts:
            places = parts.popleft()
            reply = await self._answer_part(
                [batch[place] for place in places], [listeners.get(place) for place in places]
            )
            for place, packed in zip(places, reply.replies, strict=True):
                total.replies[place] = packed
                if packed.code == "out_of_memory" and len(places) > 1:
                    parts.append([place])
            total.responding += reply.responding
            total.size = max(total.size, reply.size)
            total.limit = reply.limit or total.limit
        return total

    async def _answer_part(self, batch: Sequence[PackedRequest], listeners: Sequence[Listener | None]) -> BatchReply:
        # Pictures of requests have no names of their own: two rows that read the same need not show the same.
        keys = [(request.row.json, id(request.row.files) if request.row.files else None) for request in batch]
        rows = {key: request.row for key, request in zip(keys, batch, strict=True)}
        prepared = dict(zip(rows, await self._prepare_all(list(rows.values())), strict=True))
        items = [
            (prepared[key], _draw(request, listener))
            for key, request, listener in zip(keys, batch, listeners, strict=True)
        ]
        return await asyncio.get_running_loop().run_in_executor(self._device, self._respond_all, items)

    def _parts(self, batch: Sequence[PackedRequest]) -> deque[list[int]]:
        """The places of a batch in parts of at most :data:`MOST_DECODED` bytes of decoded pictures."""
        parts: deque[list[int]] = deque([[]])
        left = MOST_DECODED
        for place, request in enumerate(batch):
            size = _decoded_size(request.row)
            if size > left and parts[-1]:
                parts.append([])
                left = MOST_DECODED
            parts[-1].append(place)
            left -= size
        return parts

    async def _answer_one(self, request: PackedRequest, listener: Listener | None) -> BatchReply:
        [prepared] = await self._prepare_all([request.row])
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

    async def _prepare_all(self, rows: Sequence[StimulusRow]) -> list[_Prepared]:
        loop = asyncio.get_running_loop()
        size = -(-len(rows) // self.spec.threads)
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        done = [loop.run_in_executor(self._preparers, self._prepare_part, part) for part in parts]
        return list(chain.from_iterable(await asyncio.gather(*done)))

    def _prepare_part(self, rows: Sequence[StimulusRow]) -> list[_Prepared]:
        return [self._prepare(row) for row in rows]

    def _prepare(self, row: StimulusRow) -> _Prepared:
        began = time.perf_counter()
        prepared = _Prepared()
        stimulus: stimuli.Stimulus | None = None
        try:
            stimulus = row.parsed()
            prepared.task = stimulus.task
            prepared.value = self.agent.prepare(stimulus)
        except AnswerError as error:
            prepared.error = error
        except Exception as error:
            if is_out_of_memory(error):
                prepared.error = AnswerError("out_of_memory", NO_ROOM)
            else:
                prepared.error = AnswerError("prepare_failed", describe_error(error))
        try:
            if stimulus is None or not stimulus.images():  # the row is its own canonical form
                prepared.sha256 = hashlib.sha256(row.json).hexdigest()
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
    return Draw(request.seed, request.sample, request.attempt, request.options or {}, listener)


def _decoded_size(row: StimulusRow) -> int:
    """The bytes of a row's pictures once they are decoded. What cannot be decoded takes nothing."""
    size = 0
    with contextlib.suppress(ValueError, AnswerError):
        for image in row.parsed().images():
            header = image.header()
            size += 3 * header.width * header.height
    return size


def _without_traceback(error: Exception) -> Exception:
    """An error without the traceback that holds tensors. Raises FatalDeviceError."""
    if is_fatal(error):
        raise FatalDeviceError(describe_error(error)) from None
    if is_out_of_memory(error):
        return MemoryError(NO_ROOM)
    return error if isinstance(error, AnswerError) else AnswerError("respond_failed", describe_error(error))


def _pack(reply: Reply | Exception, prepared: _Prepared) -> PackedReply:
    code = None
    raw = None
    is_blank = False
    content: bytes | str
    try:
        if isinstance(reply, Exception):
            raise reply
        content = _answer_json(reply.answer, prepared.task)
        is_blank = _is_blank(reply.answer)
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
        content = describe_error(error)
    return PackedReply(code, content, raw, prepared.sha256, prepared.seconds, is_blank)


def _answer_json(answer: BaseModel, task: stimuli.Task | None) -> bytes:
    assert task is not None
    expected = answers.TurnAnswer if task == "conversation" else answers.BY_TASK[task]
    if type(answer) is not expected:
        raise AnswerError("bad_agent", f"the answer is a {type(answer).__name__}, not a {expected.__name__}")
    return expected.__pydantic_serializer__.to_json(answer)


def _is_blank(answer: BaseModel) -> bool:
    """Whether an answer is a text or a word that shows nothing."""
    text_of = TEXT_OF.get(type(answer))
    return text_of is not None and answers.is_blank(text_of(answer))
