"""A private Ray: on the loopback, with a token, a private folder and a reduced environment. Run as a file, this starts
Ray and ends it when standard input ends. It writes JSON lines: ``pid`` and ``name`` of each of Ray's processes, then
Ray's ``address`` or an ``error``."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import SECRET, ClusterError
from serving.scheduling.recovery import one_line

PREFIX = "turinglike-"  # of the private folders
LONGEST = 18  # characters of the folder that they stand in; a socket's path has at most 107

# On a busy machine Ray's processes take longer to start than the 30 s that Ray gives them.
PATIENCE = 200  # seconds
PATIENT = {"RAY_gcs_server_port_wait_time_s": f"{PATIENCE}", "RAY_agent_register_timeout_ms": f"{PATIENCE}000"}
ESSENTIAL = ("raylet", "gcs_server")
RAY_OPTIONS: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 256 * 1024 * 1024}  # of ray.init
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the switch by which Ray listens on the loopback alone
    "RAY_enable_metrics_collection": "0",  # metrics are served to everybody
    "AUTOSCALER_METRIC_PORT": "-1",  # no port that can be had, so that these are not served either
    "DASHBOARD_METRIC_PORT": "65536",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "15",  # Ray waits for a minute for its own dead process
}
NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|COLUMNS|LINES|SSL_CERT_\w+|REQUESTS_CA_BUNDLE"
    r"|(?:HTTPS?|ALL|NO)_PROXY|(?:https?|all|no)_proxy|CONDA_PREFIX|VIRTUAL_ENV"
    r"|(?:PYTHON|LD_|DYLD_|RAY_|CUDA|NVIDIA_|NCCL_|GLOO_|ROCR_|HIP_|TORCH|PYTORCH_|TRITON_|OMP_|GOMP_|KMP_"
    r"|MKL_|OPENBLAS_|NUMEXPR_|MALLOC_|GLIBC_|XDG_|HF_|HUGGINGFACE_|TRANSFORMERS_|TOKENIZERS_|VLLM_|SLURM_|TURINGLIKE_)"
    r"\w*"
)


def is_for_workers(name: str) -> bool:
    """Whether the workers of every agent get this environment variable."""
    if name in ENVIRONMENT or name.startswith("RAY_AUTH_"):
        return True
    return NEEDED.fullmatch(name) is not None and not SECRET.search(name)


def set_environment() -> None:
    """Set what Ray reads at import. Raises ClusterError if Ray was imported without."""
    ready = os.environ.get("RAY_AUTH_TOKEN") and all(os.environ.get(name) == ENVIRONMENT[name] for name in ENVIRONMENT)
    if not ready and "ray" in sys.modules:
        raise ClusterError("Ray was imported before its token was set; let Turinglike import it first")
    os.environ.update(ENVIRONMENT)
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.pop("RAY_ADDRESS", None)  # a cluster that the shell happens to point at is not joined by itself


def workers_environment() -> dict[str, str]:
    """The variables of this process that workers get: their names and values. Relative folders of ``PYTHONPATH`` are
    left out, as a worker has another current folder."""
    needed = {name: value for name, value in os.environ.items() if is_for_workers(name)}
    if "PYTHONPATH" in needed:  # an empty entry is the current folder
        paths = needed["PYTHONPATH"].split(os.pathsep)
        needed["PYTHONPATH"] = os.pathsep.join(path for path in paths if os.path.isabs(path))
    return {**needed, "PYTHONSAFEPATH": "1"}  # also for what the workers start by `python -c`


@dataclass(slots=True)
class RayHead:
    """Ray's processes on this machine; ``end`` them, started or not."""

    folder: Path
    """Ray's files and sockets, in a folder that only this user may enter; it goes with Ray."""
    process: subprocess.Popen[str]
    """The process that started Ray and ends it when its standard input closes."""
    _essential: dict[str, int] = field(init=False, default_factory=dict)  # names and ids of processes

    @classmethod
    def begin(cls) -> RayHead:
        """Start the process that starts Ray, in a new folder; :meth:`address` waits for Ray. Raises OSError."""
        # Ray opens its files and sockets to everybody: they are in a folder that only this user may enter.
        base = tempfile.gettempdir()
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base if len(base) <= LONGEST else "/tmp"))
        options = json.dumps({**RAY_OPTIONS, "_temp_dir": str(folder / "ray")})
        try:
            process = subprocess.Popen(
                [sys.executable, __file__, options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**PATIENT, **workers_environment()},
                process_group=0,
            )
        except OSError:
            folder.rmdir()
            raise
        return cls(folder, process)

    def address(self) -> str:
        """Wait until Ray has started; returns its address. Raises ClusterError."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            if "address" in answer:
                return str(answer["address"])
            if "error" in answer:
                raise ClusterError(str(answer["error"]).rstrip("."))
            if answer["name"] in ESSENTIAL:
                self._essential[answer["name"]] = answer["pid"]
        raise ClusterError("the process that starts it ended")

    def lost(self) -> str | None:
        """The first necessary process of Ray that has ended, or None."""
        if self.process.poll() is not None:
            return "the process that started it"
        return next((f"its {name}" for name, pid in [*self._essential.items()] if _has_ended(pid)), None)

    def end(self, seconds: float) -> None:
        """End Ray in order, and after ``seconds`` at once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        if seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        _remove(self.folder)


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return sys.platform == "linux"


def _remove(folder: Path) -> None:
    for _ in range(10):  # a process of Ray's that is slow to end may still write there
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


def job_config() -> Any:
    """Ray's JobConfig, without the driver's script and current folder in the workers' ``sys.path``."""
    from ray.job_config import JobConfig

    class InstalledPackages(JobConfig):
        def _runtime_env_has_working_dir(self) -> bool:
            return True  # Ray passes the driver's folders on unless the job has a folder of its own

    return InstalledPackages()


def main(options: dict[str, Any]) -> None:
    """Start Ray; at the end of standard input end it and remove its folder.

    Two functions of ``ray._private.services`` are replaced. The ids of Ray's processes are sent as they start, so that
    :meth:`RayHead.lost` notices a dead one. A raylet that is slow to register is waited for. With a new version of Ray
    see that these are still so. tests/serving/scheduling/test_ray_start.py has a raylet that ends: it is noticed only
    with the first two:

    - Ray starts each process by ``services.start_ray_process(command, process_type, …)``, looked up in the module at
      each call, which returns an object with ``process.pid``;
    - the names in :data:`ESSENTIAL` are still those of ``process_type``;
    - ``services.get_node(…)`` raises RuntimeError while the raylet is not there;
    - ``JobConfig._runtime_env_has_working_dir`` keeps the driver's folders from workers (:func:`job_config`).
    """
    folder = Path(options["_temp_dir"]).parent
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Ray's output is dropped

    def send(**values: Any) -> None:
        answer.write(json.dumps(values) + "\n")
        answer.flush()

    import ray
    from ray._private import services as _services

    services: Any = _services
    logging.getLogger("ray").setLevel(logging.ERROR)
    start_process = services.start_ray_process
    get_node = services.get_node
    until = time.monotonic() + PATIENCE

    def start_and_send(command: Any, process_type: str, *more: Any, **others: Any) -> Any:
        started = start_process(command, process_type, *more, **others)
        send(name=process_type, pid=started.process.pid)
        return started

    def wait_for_node(*where: Any) -> Any:
        while True:
            try:
                return get_node(*where)
            except RuntimeError:  # the raylet is not there yet
                if time.monotonic() > until:
                    raise
            time.sleep(0.1)

    services.start_ray_process = start_and_send
    services.get_node = wait_for_node
    started = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        if not started.is_set():
            _remove(folder)
            os._exit(1)

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        ray.init(address="local", job_config=job_config(), log_to_driver=False, configure_logging=False, **options)
    except Exception as error:
        send(error=one_line(error))
        os._exit(1)
    started.set()
    send(address=ray.get_runtime_context().gcs_address)
    waiting.join()
    ray.shutdown()
    _remove(folder)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
