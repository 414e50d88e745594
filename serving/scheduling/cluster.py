"""The connection to Ray: one of our own, of which nothing is left behind, or an existing cluster as its owner has set
it up."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents.contract import is_installed
from agents.errors import ClusterError, UnavailableError
from serving.scheduling import local_ray
from serving.scheduling.dispatch import ReplicaWorker
from serving.scheduling.guardian import RAY_DIED
from serving.scheduling.placement import Node
from serving.scheduling.ray_workers import Probe, RemoteWorker
from serving.scheduling.worker import WorkerSpec

OBJECT_STORE = 256 * 1024 * 1024


def check_installed() -> None:
    """Raises UnavailableError where Ray is not installed."""
    if not is_installed("ray"):
        raise UnavailableError("the package ray is not installed: pip install 'turinglike[run]'")


@dataclass(slots=True)
class Cluster:
    """A connection to Ray. ``nodes`` say what there is to place agents on.

    A process that is connected already (a notebook) keeps its connection: it is used, and not ended by ``stop``.
    """

    address: str | None = None
    object_store: int = OBJECT_STORE
    nodes: list[Node] = field(init=False, default_factory=list)
    _owned: bool = field(init=False, default=False)
    _folder: local_ray.PrivateFolder | None = field(init=False, default=None)
    _processes: list[Any] = field(init=False, default_factory=list)
    _load_locks: dict[tuple[str, ...], asyncio.Lock] = field(init=False, default_factory=dict)
    # Ray's processes are tied to the life of the thread that started them, so that thread has to stay.
    _thread: ThreadPoolExecutor = field(init=False, default_factory=lambda: ThreadPoolExecutor(1, "ray"))

    async def start(self) -> None:
        """Start or join Ray; takes seconds, in a thread, so that a signal is heard meanwhile. Raises ClusterError, and
        UnavailableError where Ray is not installed."""
        check_installed()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._start)
        except ClusterError:
            raise
        except Exception as error:
            where = f"the Ray cluster at {self.address} cannot be reached" if self.address else "Ray cannot be started"
            reason = str(error).strip().splitlines()
            raise ClusterError(f"{where}: {reason[0] if reason else type(error).__name__}") from error

    def _start(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # no call of Ray's may start another one behind our back
        if self.address is None:
            loaded = sys.modules.get("ray")
            if loaded is None or not loaded.is_initialized():
                local_ray.set_environment()
        else:
            _answers(self.address)
        import ray

        if not ray.is_initialized():
            self._init(ray)
            self._owned = True
        self.nodes = [
            _node(info)
            for info in ray.nodes()  # type: ignore[no-untyped-call]
            if info.get("Alive")
        ]
        for node in self.nodes:
            if node.gpu_count:
                node.gpu_memory = _gpu_memory(ray, node.id)

    def _init(self, ray: Any) -> None:
        # Said of every start outside the main thread, where the command has signal handlers of its own.
        logging.getLogger("ray").setLevel(logging.ERROR)
        # Ray prints every worker's death to stdout, which is ours: what a death means is told by the records.
        ray._private.worker.print_to_stdstream = lambda *arguments, **keywords: None
        init = partial(
            ray.init,
            address=self.address or "local",
            job_config=local_ray.job_config(),
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
        )
        if self.address is not None:
            init()
            return
        self._folder = local_ray.PrivateFolder.make()
        with local_ray.workers_environment():
            folder = str(self._folder.ray)
            init(include_dashboard=False, object_store_memory=self.object_store, _temp_dir=folder)
        self._processes = _node_processes(ray)

    def worker(
        self,
        spec: WorkerSpec,
        resources: Mapping[str, float],
        continuous: bool,
        strategy: Callable[[], Any],
        probe: Probe | None,
    ) -> ReplicaWorker:
        """A worker that is still to be started, as :class:`serving.scheduling.ray_workers.RemoteWorker` has it."""
        return RemoteWorker(spec, resources, continuous, self._load_locks, strategy, probe)

    async def watch(self) -> None:
        """Return never; raise ClusterError when the local Ray has died under us."""
        while True:
            await asyncio.sleep(0.25)
            if any(process.poll() is not None for process in self._processes):
                raise ClusterError(RAY_DIED)

    async def stop(self) -> None:
        """Leave the cluster; a local Ray ends with it."""
        # In the thread that started it, and so after a start that is still under way.
        await asyncio.get_running_loop().run_in_executor(self._thread, self._stop)
        self._thread.shutdown(wait=False)

    def _stop(self) -> None:
        if self._owned:
            import ray

            ray.shutdown()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


def _answers(address: str) -> None:
    """Raise OSError if nobody listens at ``address`` (host:port): Ray itself would try for minutes, then abort."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _node(info: dict[str, Any]) -> Node:
    resources = info.get("Resources", {})
    return Node(
        id=str(info["NodeID"]),
        host=str(info.get("NodeManagerHostname", "")),
        cpus=int(resources.get("CPU", 0)),
        memory=int(resources.get("memory", 0)),
        gpu_count=int(resources.get("GPU", 0)),
    )


def _node_processes(ray: Any) -> list[Any]:
    """The local raylet and GCS as process objects; empty where this version of Ray keeps them elsewhere: then a death
    is noticed later, by the calls that fail."""
    node = getattr(ray._private.worker, "_global_node", None)
    kept = getattr(node, "all_processes", {})
    return [info.process for name in ("raylet", "gcs_server") for info in kept.get(name) or []]


def _gpu_memory(ray: Any, node_id: str) -> int:
    """Bytes of the node's smallest GPU, asked where it is."""

    def smallest() -> int:
        import torch

        sizes = [torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())]
        return min(sizes, default=0)

    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    remote = ray.remote(num_cpus=0, num_gpus=0.001, max_retries=0, scheduling_strategy=strategy)(smallest)
    return int(ray.get(remote.remote(), timeout=300))
