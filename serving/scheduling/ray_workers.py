"""Workers seen from the driver: a Ray actor around :class:`serving.scheduling.worker.Worker`.

Ray's own restarts and retries are off: retrying is the scheduler's alone, because only it knows which request was in
flight. Every way in which a worker can end becomes one exception, :class:`serving.scheduling.recovery.WorkerLost`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents import stimuli
from agents.errors import ImageError
from agents.images import Image
from serving.scheduling import worker_process
from serving.scheduling.device_errors import FatalDeviceError
from serving.scheduling.recovery import WorkerLost, load_in_time
from serving.scheduling.request import NOBODY, Listeners, in_loop
from serving.scheduling.worker import BatchReply, PackedRequest, Worker, WorkerSpec, one_line

Probe = tuple[str, int, int]  # a file's path, size and time of change, to recognise it on another machine


class WorkerActor:
    """The actor's class. Its methods are asynchronous: several calls are under way at once."""

    def __init__(self, spec: WorkerSpec) -> None:
        os.environ.update(spec.environment)
        self.worker = Worker(spec)
        worker_process.begin(continuous=self.worker.agent.continuous())

    async def describe(self, probe: Probe | None) -> dict[str, Any]:
        """Where this is: host, Ray's GPU ids, and whether the driver's file ``probe`` is the same one here."""
        import ray

        gpus = [str(gpu) for gpu in ray.get_gpu_ids()]
        shares_disk = probe is None or _file_signature(probe[0]) == probe
        return {"host": socket.gethostname(), "gpus": gpus, "shares_disk": shares_disk}

    async def load(self) -> dict[str, Any]:
        about = await asyncio.to_thread(self.worker.load)
        worker_process.freeze()
        return about

    async def wait(self) -> None:
        """Return never: the call ends with the process."""
        await asyncio.Event().wait()

    async def answer(self, batch: Sequence[PackedRequest]) -> BatchReply:
        return await self.worker.answer(batch)

    async def answer_one(self, request: PackedRequest) -> BatchReply:
        return await self.worker.answer_one(request)

    async def answer_streamed(
        self, batch: Sequence[PackedRequest], places: Sequence[int]
    ) -> AsyncGenerator[dict[int, str] | BatchReply, None]:
        async for part in _streamed(self.worker, batch, places):
            yield part


async def _streamed(
    worker: Worker, batch: Sequence[PackedRequest], places: Sequence[int]
) -> AsyncGenerator[dict[int, str] | BatchReply, None]:
    """The new text of the answers at ``places``, again and again while ``worker`` makes them, and at last its replies.
    Raises FatalDeviceError."""
    wake = asyncio.Event()
    texts, lengths = dict.fromkeys(places, ""), dict.fromkeys(places, 0)

    def update(place: int, text: str) -> None:
        texts[place] = text
        wake.set()

    listeners = in_loop({place: partial(update, place) for place in places})
    continuous = worker.agent.continuous()
    answering = asyncio.create_task(
        worker.answer_one(batch[0], listeners[0]) if continuous else worker.answer(batch, listeners)
    )
    answering.add_done_callback(lambda _: wake.set())
    while not answering.done():
        await wake.wait()
        wake.clear()
        new = {place: text[lengths[place] :] for place, text in texts.items() if len(text) > lengths[place]}
        if new:
            lengths |= {place: len(texts[place]) for place in new}
            yield new
    yield answering.result()


@dataclass(slots=True)
class RemoteWorker:
    """One actor. ``start`` it, ``call`` it, ``kill`` it; ``load_locks`` serialises the loads on one device.

    ``resources`` are what it takes of Ray's (``num_gpus``, ``memory``), and ``strategy`` says where Ray is to put it.
    """

    spec: WorkerSpec
    resources: Mapping[str, float]
    continuous: bool
    load_locks: dict[tuple[str, ...], asyncio.Lock]
    strategy: Callable[[], Any] = lambda: "SPREAD"
    probe: Probe | None = None
    host: str = ""
    device: str = ""
    shares_disk: bool = True
    _actor: Any = field(init=False, default=None)

    async def start(self, timeout: float) -> dict[str, Any]:
        """Create the actor and load the agent; returns its provenance. Raises AgentStoppedError."""
        return await load_in_time(self.spec.entry.name, self._start(timeout), timeout, self.kill)

    async def _start(self, timeout: float) -> dict[str, Any]:
        await _in_thread(self._create)
        async with asyncio.timeout(timeout):
            about = await self._await(self._actor.describe.remote(self.probe))
        self.host, self.shares_disk, gpus = about["host"], about["shares_disk"], about["gpus"]
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
        """Answer one batch (one request, for a continuous engine). Raises WorkerLost."""
        if not self.shares_disk:
            batch = await asyncio.to_thread(self._with_files, batch)
        actor = self._actor

        def send() -> Any:
            if listeners:
                return actor.answer_streamed.remote(tuple(batch), tuple(listeners))
            # As a tuple the batch is serialised as a whole; of a list Ray would pickle each item by itself.
            return actor.answer_one.remote(batch[0]) if self.continuous else actor.answer.remote(tuple(batch))

        # Images are copied to Ray's store, which may have no room for a while.
        ref = await _in_thread(send) if any(files for _, files, *_ in batch) else send()
        try:
            async with asyncio.timeout(timeout):
                reply: BatchReply = await (self._receive(ref, listeners) if listeners else self._await(ref))
                return reply
        except TimeoutError:
            raise WorkerLost.by_timeout(timeout) from None

    async def _receive(self, refs: Any, listeners: Listeners) -> BatchReply:
        """Pass the texts on, up to the replies. Raises WorkerLost."""
        texts = dict.fromkeys(listeners, "")
        async for ref in refs:
            part = await self._await(ref)
            if isinstance(part, BatchReply):
                return part
            for place, more in part.items():
                texts[place] += more
                listeners[place](texts[place])
        raise WorkerLost("worker_died", "the worker process stopped in the middle of its answers")

    async def died(self) -> WorkerLost:
        """Return when the process has ended, also while it has nothing to answer."""
        try:
            if self._actor is not None:
                await self._await(self._actor.wait.remote())
        except WorkerLost as lost:
            return lost
        return WorkerLost("worker_died", "the worker process ended")

    def _with_files(self, batch: list[PackedRequest]) -> list[PackedRequest]:
        """The same requests with the bytes of their images, for a machine that does not see the driver's files."""
        files = {row: _image_bytes(row, self.spec.root) for row in {row for row, *_ in batch}}
        return [(row, files[row], *rest) for row, _, *rest in batch]  # type: ignore[misc]

    async def _await(self, ref: Any) -> Any:
        from ray import exceptions

        try:
            return await asyncio.wrap_future(ref.future())
        except exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, FatalDeviceError):
                raise WorkerLost.by_device(cause) from None
            raise (cause if isinstance(cause, Exception) else error) from None
        except exceptions.OutOfMemoryError as error:
            raise WorkerLost("out_of_memory", one_line(error)) from None
        except exceptions.RayActorError as error:
            if "low on memory" in str(error):
                raise WorkerLost(
                    "out_of_memory", "Ray ended the worker because the machine ran out of memory"
                ) from None
            raise WorkerLost("worker_died", "the worker process died") from None
        except exceptions.RayError as error:
            raise WorkerLost("worker_died", one_line(error)) from None

    def kill(self) -> None:
        """End the process at once; harmless if it is gone."""
        actor, self._actor = self._actor, None
        if actor is not None:
            import ray

            # Without a connection there is nothing left to end, and Ray would start itself anew to look for it.
            if ray.is_initialized():
                with contextlib.suppress(ValueError):  # the actor is of a connection that has ended
                    ray.kill(actor, no_restart=True)


async def _in_thread(function: Callable[[], Any]) -> Any:
    """What a call of Ray returns. A cancellation waits for its end: Ray aborts a process that leaves it meanwhile."""
    calling = asyncio.create_task(asyncio.to_thread(function))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await asyncio.gather(calling, return_exceptions=True)
        raise


def _image_bytes(row: bytes, root: str) -> Mapping[str, bytes]:
    files: dict[str, bytes] = {}
    for image in stimuli.parse_row(row, root=root).images():
        # The worker looks for a file that is not sent, and fails this one stimulus with the reason.
        with contextlib.suppress(ImageError):
            files[image.name] = image.read()
    return files


def probe_for(root: str, image: str | None) -> Probe | None:
    """A file of the set to recognise by size and time on another machine, or None if the set has no images."""
    return None if image is None else _file_signature(str(Image(image, root=root).path))


def _file_signature(path: str) -> Probe | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_size, status.st_mtime_ns
