"""The connection to Ray: a private Ray, or an existing cluster."""

import asyncio
import importlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents.contract import is_installed
from agents.errors import ClusterError, UnavailableError
from serving.scheduling import local_ray
from serving.scheduling.interrupts import RAY_DIED, end_at_once
from serving.scheduling.placement import Node, Place
from serving.scheduling.ray_workers import RemoteWorker
from serving.scheduling.recovery import one_line
from serving.scheduling.worker import WorkerSpec

LOOK = 0.25  # seconds between two looks at Ray's processes
FIRST_LINE = 10  # seconds of a start without a word; then each pause is as long as all before
LONGEST_START = 240.0  # seconds of a try; Ray itself gives up sooner, where it knows
LEFT_ALONE = 1.0  # seconds that a connection has to end before Ray is ended under it
ORDERLY_END = 15.0  # seconds
AGAIN = "run the same command again, when the machine has less to do"


def check_installed() -> None:
    """Raises UnavailableError without Ray."""
    if not is_installed("ray"):
        raise UnavailableError("the package ray is not installed: pip install 'turinglike[run]'")


@dataclass(slots=True)
class Cluster:
    """A connection to Ray. One that exists already is used, and not ended."""

    address: str | None = None
    """The address of a cluster to join; None: a Ray of this command's own, which ends with it."""
    nodes: list[Node] = field(init=False, default_factory=list)
    """The cluster's machines, once it is started."""
    _owned: bool = field(init=False, default=False)
    _head: local_ray.RayHead | None = field(init=False, default=None)
    _load_locks: dict[tuple[str, ...], asyncio.Lock] = field(init=False, default_factory=dict)
    _groups: dict[Place, Any] = field(init=False, default_factory=dict)
    _groups_lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    async def start(self, log_progress: Callable[[str], None] = lambda text: None) -> None:
        """Start or join Ray. Raises ClusterError and UnavailableError."""
        check_installed()
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # no call of Ray's may start another behind our back
        where = self.address
        loaded = sys.modules.get("ray")
        if where is None and (loaded is None or not loaded.is_initialized()):
            local_ray.set_environment()
            importing = _in_daemon(partial(importlib.import_module, "ray"))  # beside, as it takes its second
            try:
                where = await self._start_head(log_progress)
            finally:
                if not importing.done():
                    end_at_once()
        connecting = _in_daemon(partial(self._connect, where))
        try:
            while not connecting.done():
                await asyncio.wait({connecting}, timeout=LOOK)
                if self._head is not None and (process := self._head.lost()) is not None:
                    raise ClusterError(f"Ray cannot be started: {process} ended; {AGAIN}")
        finally:
            if not connecting.done():
                await asyncio.wait({connecting}, timeout=LEFT_ALONE)
                end_at_once()
        try:
            connecting.result()
        except Exception as error:
            fault = f"the Ray cluster at {self.address} cannot be reached" if self.address else "Ray cannot be started"
            raise ClusterError(f"{fault}: {one_line(error)}") from error

    async def _start_head(self, log_progress: Callable[[str], None]) -> str:
        try:
            return await self._try_start(log_progress)
        except ClusterError as error:
            log_progress(f"Ray did not start: {error}; trying once more")
        try:
            return await self._try_start(log_progress)
        except ClusterError as error:
            raise ClusterError(f"Ray cannot be started: {error}; {AGAIN}") from None

    async def _try_start(self, log_progress: Callable[[str], None]) -> str:
        try:
            self._head = head = local_ray.RayHead.begin()
        except OSError as error:
            raise ClusterError(str(error)) from None
        address = asyncio.create_task(asyncio.to_thread(head.address))
        try:
            began = time.monotonic()
            next_line = FIRST_LINE
            while not (await asyncio.wait({address}, timeout=LOOK))[0]:
                if (process := head.lost()) is not None:
                    if (await asyncio.wait({address}, timeout=LOOK))[0]:
                        break  # it sent the reason before it ended
                    raise ClusterError(f"{process} ended")
                if (waited := time.monotonic() - began) > LONGEST_START:
                    raise ClusterError(f"it took more than {LONGEST_START:.0f} s")
                if waited > next_line:
                    log_progress(f"still starting Ray ({next_line} s)")
                    next_line *= 2
            return address.result()
        except BaseException:
            self._head = None
            await asyncio.to_thread(head.end, 0)
            await asyncio.gather(address, return_exceptions=True)
            raise

    def _connect(self, where: str | None) -> None:
        if self.address is not None:  # where nobody listens, Ray itself would try for minutes, then abort
            host, _, port = self.address.removeprefix("ray://").rpartition(":")
            if host and port.isdigit():
                socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        import ray

        if not ray.is_initialized():
            # Ray warns of every start outside the main thread, where the command has signal handlers of its own.
            logging.getLogger("ray").setLevel(logging.ERROR)
            # Ray prints every worker's death to stdout, which is ours; records have what a death means.
            ray._private.worker.print_to_stdstream = lambda *arguments, **keywords: None
            ray.init(
                address=where,
                job_config=local_ray.job_config(),
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )
            self._owned = True
        self.nodes = [_node(info) for info in ray.nodes() if info.get("Alive")]
        for node in self.nodes:
            if node.gpu_count:
                node.gpu_memory = _gpu_memory(ray, node.id)

    def worker(self, spec: WorkerSpec, place: Place, resources: Mapping[str, float]) -> RemoteWorker:
        """An agent's worker in a process of its own at ``place``, not started yet; ``resources`` are Ray's."""
        strategy = partial(self._strategy, place)
        return RemoteWorker(spec, resources, self._load_locks, strategy, sends_images=self.address is not None)

    def _strategy(self, place: Place) -> Any:
        """A place's GPUs as a placement group; Ray alone would pack parts onto a node's first GPU."""
        from ray.util import placement_group
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

        node = self.nodes[place.node].id
        if not place.gpus:
            return NodeAffinitySchedulingStrategy(node, soft=True)
        with self._groups_lock:
            if place not in self._groups:
                bundles = [{"GPU": float(len(place.gpus))}]
                self._groups[place] = placement_group(bundles, "STRICT_PACK", _soft_target_node_id=node)
            return PlacementGroupSchedulingStrategy(self._groups[place], 0)

    async def keep_places(self, places: Collection[Place]) -> None:
        """Give back the GPUs of all other places; what runs there ends."""
        with self._groups_lock:
            left = [self._groups.pop(place) for place in [*self._groups] if place not in places]
        if left:
            await asyncio.to_thread(_remove_groups, left)

    async def watch(self) -> None:
        """Return never. Raises ClusterError when the local Ray dies."""
        while True:
            await asyncio.sleep(LOOK)
            if self._head is not None and self._head.lost() is not None:
                raise ClusterError(RAY_DIED)

    async def stop(self) -> None:
        """Leave the cluster, and end a Ray of this command's own."""
        if self._owned:
            import ray

            await _in_daemon(ray.shutdown)
        if self._head is not None:
            head = self._head
            self._head = None
            await asyncio.to_thread(head.end, ORDERLY_END if self._owned else 0)


def _remove_groups(groups: list[Any]) -> None:
    import ray
    from ray.util import remove_placement_group

    if ray.is_initialized():
        for group in groups:
            remove_placement_group(group)


def _in_daemon(function: Callable[[], object]) -> asyncio.Future[None]:
    """Call Ray, which may hang, in a thread that nobody waits for."""
    called: Future[None] = Future()
    called.set_running_or_notify_cancel()

    def call() -> None:
        try:
            function()
        except BaseException as error:
            called.set_exception(error)
        else:
            called.set_result(None)

    threading.Thread(target=call, name="ray", daemon=True).start()
    ended = asyncio.wrap_future(called)
    ended.add_done_callback(lambda _: ended.cancelled() or ended.exception())  # it may be left alone
    return ended


def _node(info: dict[str, Any]) -> Node:
    resources = info.get("Resources", {})
    return Node(
        id=str(info["NodeID"]),
        host=str(info.get("NodeManagerHostname", "")),
        cpus=int(resources.get("CPU", 0)),
        memory=int(resources.get("memory", 0)),
        gpu_count=int(resources.get("GPU", 0)),
    )


def _gpu_memory(ray: Any, node_id: str) -> int:
    def smallest() -> int:
        import torch

        sizes = [torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())]
        return min(sizes, default=0)

    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    remote = ray.remote(num_cpus=0, num_gpus=0.001, max_retries=0, scheduling_strategy=strategy)(smallest)
    return int(ray.get(remote.remote(), timeout=300))
