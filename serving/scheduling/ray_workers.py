"""Workers as Ray's actors, without Ray's restarts and retries."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from agents.errors import ImageError
from serving.scheduling import machine
from serving.scheduling.batch import (
    NOBODY,
    BatchReply,
    Listeners,
    PackedRequest,
    SentReply,
    SentRequest,
    in_loop,
    received,
    reply_received,
    reply_sent,
    sent,
)
from serving.scheduling.recovery import FatalDeviceError, WorkerLost, load_in_time, one_line
from serving.scheduling.worker import Worker, WorkerSpec


class WorkerActor:
    """A worker in a process of Ray's; its methods are called from another process."""

    def __init__(self, spec: WorkerSpec) -> None:
        os.environ.update(spec.environment)
        self.worker = Worker(spec)
        machine.set_up_process(continuous=self.worker.declared.batches_by_itself)

    async def place(self) -> tuple[str, list[str]]:
        """The machine's name, and Ray's numbers of the GPUs that this process may use."""
        import ray

        return socket.gethostname(), [str(gpu) for gpu in ray.get_gpu_ids()]

    async def load(self) -> dict[str, Any]:
        """Load the agent; returns its provenance."""
        provenance = await asyncio.to_thread(self.worker.load)
        machine.freeze()
        return provenance

    async def wait(self) -> None:
        """Return never: the call ends with the process."""
        await asyncio.Event().wait()

    async def answer(self, batch: Sequence[SentRequest]) -> SentReply:
        """The replies to a batch."""
        return reply_sent(await self.worker.answer(received(batch, self.worker.spec.root)))

    async def answer_streamed(
        self, batch: Sequence[SentRequest], places: Sequence[int]
    ) -> AsyncGenerator[dict[int, str] | SentReply, None]:
        """What the texts at ``places`` grow by, as they grow, and at last all replies."""
        wake = asyncio.Event()
        texts = dict.fromkeys(places, "")
        lengths = dict.fromkeys(places, 0)

        def update(place: int, text: str) -> None:
            texts[place] = text
            wake.set()

        listeners = in_loop({place: partial(update, place) for place in places})
        answering = asyncio.create_task(self.worker.answer(received(batch, self.worker.spec.root), listeners))
        answering.add_done_callback(lambda _: wake.set())
        while not answering.done():
            await wake.wait()
            wake.clear()
            new = {place: text[lengths[place] :] for place, text in texts.items() if len(text) > lengths[place]}
            if new:
                lengths |= {place: len(texts[place]) for place in new}
                yield new
        yield reply_sent(answering.result())


@dataclass(slots=True)
class RemoteWorker:
    """A worker in another process, seen from here."""

    spec: WorkerSpec
    """What it is made of."""
    resources: Mapping[str, float]
    """What Ray reserves for it: ``num_gpus``, and ``memory`` in bytes."""
    load_locks: dict[tuple[str, ...], asyncio.Lock]
    """A lock for each GPU, shared by all workers: two that load at once could both find room for one."""
    strategy: Callable[[], Any] = lambda: "SPREAD"
    """Makes Ray's scheduling strategy when the process is created."""
    sends_images: bool = False
    """Whether the bytes of pictures are sent along, because the worker's machine need not have the set's folder."""
    host: str = ""
    """The machine's name, once it is started."""
    device: str = ""
    """The device, once it is started: "cpu", or the GPUs as "cuda:0,1"."""
    _actor: Any = field(init=False, default=None)

    async def start(self, timeout: float) -> dict[str, Any]:
        """Load the agent; returns its provenance. Raises AgentStoppedError."""
        return await load_in_time(self.spec.entry.name, self._start(timeout), timeout, self.kill)

    async def _start(self, timeout: float) -> dict[str, Any]:
        await _in_thread(self._create)
        async with asyncio.timeout(timeout):
            self.host, gpus = await self._await(self._actor.place.remote())
        self.device = self.spec.device if not gpus else f"cuda:{','.join(gpus)}"
        lock = self.load_locks.setdefault((self.host, *gpus), asyncio.Lock()) if gpus else asyncio.Lock()
        async with lock, asyncio.timeout(timeout):
            provenance: dict[str, Any] = await self._await(self._actor.load.remote())
            return provenance

    def _create(self) -> None:
        import ray

        options = ray.remote(WorkerActor).options(
            num_cpus=0,
            **self.resources,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=1000,
            scheduling_strategy=self.strategy(),
        )
        self._actor = options.remote(self.spec)

    async def call(self, batch: list[PackedRequest], timeout: float, listeners: Listeners = NOBODY) -> BatchReply:
        """As :meth:`serving.scheduling.worker.Worker.answer`. Raises WorkerLost."""
        if self.sends_images:
            batch = await asyncio.to_thread(self._with_files, batch)
        actor = self._actor

        def send() -> Any:
            if listeners:
                return actor.answer_streamed.remote(sent(batch), tuple(listeners))
            return actor.answer.remote(sent(batch))

        # Images are copied to Ray's store, which may have no room for a while.
        ref = await _in_thread(send) if any(request.row.files for request in batch) else send()
        try:
            async with asyncio.timeout(timeout):
                return reply_received(await (self._receive(ref, listeners) if listeners else self._await(ref)))
        except TimeoutError:
            raise WorkerLost.by_timeout(timeout) from None

    async def _receive(self, refs: Any, listeners: Listeners) -> SentReply:
        texts = dict.fromkeys(listeners, "")
        async for ref in refs:
            part: dict[int, str] | SentReply = await self._await(ref)
            if isinstance(part, tuple):
                return part
            for place, more in part.items():
                texts[place] += more
                listeners[place](texts[place])
        raise WorkerLost("worker_died", "the worker process stopped in the middle of its answers")

    async def died(self) -> WorkerLost:
        """Return when the process has ended."""
        try:
            if self._actor is not None:
                await self._await(self._actor.wait.remote())
        except WorkerLost as lost:
            return lost
        return WorkerLost("worker_died", "the worker process ended")

    def _with_files(self, batch: list[PackedRequest]) -> list[PackedRequest]:
        """The batch with the bytes of all pictures, for workers that share no disk with this process."""
        rows = {request.row.json: request.row for request in batch if request.row.files is None}
        for json, row in rows.items():
            files: dict[str, bytes] = {}
            for image in row.parsed().images():
                # The worker looks for a file that is not sent, and fails this stimulus with the reason.
                with contextlib.suppress(ImageError):
                    files[image.name] = image.read()
            rows[json] = replace(row, files=files, stimulus=None)
        return [request._replace(row=rows.get(request.row.json, request.row)) for request in batch]

    async def _await(self, ref: Any) -> Any:
        from ray import exceptions

        try:
            return await asyncio.wrap_future(ref.future())
        except exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, FatalDeviceError):
                raise WorkerLost.by_device(cause) from None
            raise (cause if isinstance(cause, Exception) else error) from None
        except exceptions.RayError as error:
            if isinstance(error, exceptions.OutOfMemoryError) or "low on memory" in str(error):
                raise WorkerLost("out_of_memory", "Ray ended it because the machine ran out of memory") from None
            is_dead = isinstance(error, exceptions.RayActorError)
            raise WorkerLost("worker_died", "the worker process died" if is_dead else one_line(error)) from None

    def kill(self) -> None:
        """End the process, with what it is doing."""
        actor = self._actor
        self._actor = None
        if actor is not None:
            import ray

            # Without a connection there is nothing left to end, and Ray would start itself anew to look for it.
            if ray.is_initialized():
                with contextlib.suppress(ValueError):  # the actor is of a connection that has ended
                    ray.kill(actor, no_restart=True)


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Call Ray in a thread. A cancellation waits for its end, or Ray would abort the process."""
    calling = asyncio.create_task(asyncio.to_thread(function))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await asyncio.gather(calling, return_exceptions=True)
        raise
