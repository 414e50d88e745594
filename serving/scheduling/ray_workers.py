"""Workers seen from the driver: a Ray actor around :class:`serving.scheduling.worker.Worker`.

Ray's own restarts and retries are off: retrying is the scheduler's alone, because only it knows which item was in
flight. Every way in which a worker can end is one exception here, :class:`WorkerLost`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.errors import AgentStoppedError, ImageError
from agents.images import Image
from serving.scheduling import worker_process
from serving.scheduling.worker import BatchReply, FatalDeviceError, PackedRequest, Worker, WorkerSpec, host, same_file

Cause = Literal["worker_died", "out_of_memory", "timeout", "device_error"]


class WorkerLost(Exception):
    """The worker is gone, or had to be ended. ``cause`` is the code that a record of its last item gets."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause


class WorkerActor:
    """The actor's class. Its methods are asynchronous: several calls are under way at once."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.worker = Worker(spec)
        worker_process.begin(continuous=self.worker.agent.continuous())

    async def describe(self, probe: tuple[str, int, int] | None) -> dict[str, Any]:
        """Where this is: host, Ray's GPU ids, and whether the driver's file ``probe`` is the same one here."""
        import ray

        gpus = [str(gpu) for gpu in ray.get_gpu_ids()]
        return {"host": host(), "gpus": gpus, "shares": probe is None or same_file(*probe)}

    async def load(self) -> dict[str, Any]:
        return await asyncio.to_thread(self.worker.load)

    async def answer(self, works: Sequence[PackedRequest]) -> BatchReply:
        return await self.worker.answer(works)

    async def answer_one(self, work: PackedRequest) -> BatchReply:
        return await self.worker.answer_one(work)


@dataclass(slots=True)
class RemoteWorker:
    """One actor. ``start`` it, ``call`` it, ``kill`` it; ``load_locks`` serialises the loads on one device."""

    spec: WorkerSpec
    memory: int
    gpu_share: float
    continuous: bool
    load_locks: dict[tuple[str, ...], asyncio.Lock]
    probe: tuple[str, int, int] | None = None
    host: str = ""
    device: str = ""
    shares_disk: bool = True
    _actor: Any = field(init=False, default=None)

    async def start(self, timeout: float) -> dict[str, Any]:
        """Create the actor and load the agent; returns its provenance. Raises AgentStoppedError if it cannot be
        loaded, WorkerLost if the process died on the way."""
        name = self.spec.entry.name
        try:
            self._actor = await asyncio.to_thread(self._create)
            async with asyncio.timeout(timeout):
                about = await self._await(self._actor.describe.remote(self.probe))
            self.host, self.shares_disk = about["host"], about["shares"]
            gpus = about["gpus"]
            self.device = self.spec.device if not gpus else f"cuda:{','.join(gpus)}"
            lock = self.load_locks.setdefault((self.host, *gpus), asyncio.Lock()) if gpus else asyncio.Lock()
            async with lock, asyncio.timeout(timeout):
                loaded: dict[str, Any] = await self._await(self._actor.load.remote())
                return loaded
        except TimeoutError:
            self.kill()
            raise AgentStoppedError(
                f"agent {name} was not loaded within {timeout:g} s; give it more with --load-timeout"
            ) from None
        except WorkerLost as error:
            self.kill()
            raise AgentStoppedError(f"agent {name} could not be loaded: {error}") from None
        except asyncio.CancelledError:
            self.kill()
            raise
        except Exception as error:
            self.kill()
            raise AgentStoppedError(f"agent {name} could not be loaded: {_one_line(error)}") from None

    def _create(self) -> Any:
        import ray

        return (
            ray.remote(WorkerActor)
            .options(
                num_cpus=0,
                num_gpus=self.gpu_share,
                memory=self.memory,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=1000,
                scheduling_strategy="SPREAD",
            )
            .remote(self.spec)
        )

    async def call(self, works: list[PackedRequest], timeout: float) -> BatchReply:
        """Answer one batch (one work, for a continuous engine). Raises WorkerLost."""
        if not self.shares_disk:
            works = await asyncio.to_thread(self._with_files, works)
        actor = self._actor
        # As a tuple the batch is serialised as a whole; of a list Ray would pickle each item by itself.
        ref = actor.answer_one.remote(works[0]) if self.continuous else actor.answer.remote(tuple(works))
        try:
            async with asyncio.timeout(timeout):
                batch: BatchReply = await self._await(ref)
                return batch
        except TimeoutError:
            raise WorkerLost("timeout", f"no answer within {timeout:g} s; give it more with --timeout") from None

    def _with_files(self, works: list[PackedRequest]) -> list[PackedRequest]:
        """The same works with the bytes of their images, for a machine that does not see the driver's files."""
        sent: list[PackedRequest] = []
        read: dict[bytes, Mapping[str, bytes]] = {}
        for row, _, *rest in works:
            if row not in read:
                read[row] = _image_bytes(row, self.spec.root)
            sent.append((row, read[row], *rest))  # type: ignore[arg-type]
        return sent

    async def _await(self, ref: Any) -> Any:
        from ray import exceptions

        try:
            return await asyncio.wrap_future(ref.future())
        except exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, FatalDeviceError):
                raise WorkerLost("device_error", _one_line(cause)) from None
            raise (cause if isinstance(cause, Exception) else error) from None
        except exceptions.OutOfMemoryError as error:
            raise WorkerLost("out_of_memory", _one_line(error)) from None
        except exceptions.RayActorError as error:
            if "low on memory" in str(error):
                raise WorkerLost(
                    "out_of_memory", "Ray ended the worker because the machine ran out of memory"
                ) from None
            raise WorkerLost("worker_died", "the worker process died") from None
        except exceptions.RayError as error:
            raise WorkerLost("worker_died", _one_line(error)) from None

    def kill(self) -> None:
        """End the process at once; harmless if it is gone."""
        actor, self._actor = self._actor, None
        if actor is not None:
            import ray

            # Without a connection there is nothing left to end, and Ray would start itself anew to look for it.
            if ray.is_initialized():
                with contextlib.suppress(ValueError):  # the actor is of a connection that has ended
                    ray.kill(actor, no_restart=True)


def _image_bytes(row: bytes, root: str) -> dict[str, bytes]:
    from agents.stimuli import parse_row

    found: dict[str, bytes] = {}
    for image in parse_row(row, root=root).images():
        try:
            found[image.name] = image.read()
        except ImageError:
            continue  # the worker looks for the file itself and fails this one stimulus with the reason
    return found


def probe_for(root: str, image: str | None) -> tuple[str, int, int] | None:
    """A file of the set to recognise by size and time on another machine, or None if the set has no images."""
    if image is None:
        return None
    path = Image(image, root=root).path
    assert path is not None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return str(path), found.st_size, found.st_mtime_ns


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:500] or type(error).__name__
