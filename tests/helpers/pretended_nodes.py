"""A Ray cluster of two nodes, both on this machine."""

import contextlib
import io
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from serving.bench import generate_run, set_runs
from serving.bench.record_window import RecordWindow
from serving.cli import main
from serving.scheduling import local_ray

CORES = 4  # of each node


@contextlib.contextmanager
def two_nodes() -> Iterator[str]:
    """The address of such a cluster, which ends with the context.

    Ray also writes the address into its usual folder, which is not there before somebody has started Ray on the
    machine, and which all of Ray's processes share. So this process gets a usual folder of its own."""
    local_ray.set_environment()
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix=local_ray.PREFIX, dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder
        Path(folder, "ray").mkdir()
        cluster = Cluster()
        for _ in range(2):
            cluster.add_node(num_cpus=CORES, temp_dir=f"{folder}/ray", **local_ray.RAY_OPTIONS)
        try:
            yield cluster.address
        finally:
            cluster.shutdown()


def bench(send: Callable[[object], None], arguments: list[str]) -> None:
    """Call ``turinglike bench`` with these arguments on such a cluster: each stimulus is asked once, and each number of
    workers measured once. Send the records of each run, then the exit code, what was shown, and how many workers each
    node had."""
    generate_run.MOST = 1
    set_runs.REPEATS = 1
    read_window = generate_run.read_window

    def read(path: Path, began: float, ended: float) -> RecordWindow | None:
        send([orjson.loads(line) for line in path.read_bytes().splitlines()])
        return read_window(path, began, ended)

    generate_run.read_window = read
    shown = io.StringIO()
    with two_nodes() as address:
        with contextlib.redirect_stderr(shown):
            code = main(["bench", *arguments, "--address", address])
        import ray
        from ray._private import state

        ray.init(address=address, log_to_driver=False)
        send((code, shown.getvalue(), Counter(actor["Address"]["NodeID"] for actor in state.actors().values())))
        ray.shutdown()
