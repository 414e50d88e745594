"""What a Ray of our own is started with, so that nobody else on the machine or the network gets anything from it.

Ray listens on every interface, lets everybody into its folder, hands its whole environment to the workers and puts the
current folder before the installed packages in their ``sys.path``. Here it listens on the loopback alone and asks for a
token, its folder is private, and workers get the variables that they need and the packages that are installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import ClusterError
from serving.scheduling import ray_head

PREFIX = "turinglike-"  # of the private folders
LOCK = ".driver.lock"  # in each of them, held by its driver
LONGEST = 18  # characters of the folder that they stand in; a socket's path has at most 107
SETTLED = 60.0  # seconds after which a folder that nobody holds is left over from a driver that was killed

# Of Ray's processes alone: on a busy machine they take longer to start than the 30 s that Ray gives them.
PATIENCE = {"RAY_gcs_server_port_wait_time_s": "200", "RAY_agent_register_timeout_ms": "200000"}
ESSENTIAL = ("raylet", "gcs_server")
OPTIONS: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 256 * 1024 * 1024}  # of ray.init
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
SECRET = re.compile(r"KEY|TOKEN(?!IZERS)|SECRET|PASSWORD|CREDENTIAL")


def is_for_workers(name: str) -> bool:
    """Whether the workers of every agent get this environment variable. Raises nothing."""
    return (
        name in ENVIRONMENT
        or name.startswith("RAY_AUTH_")
        or (NEEDED.fullmatch(name) is not None and not SECRET.search(name))
    )


def set_environment() -> None:
    """Set what Ray reads when it is imported. Raises ClusterError where it has been imported without."""
    ready = os.environ.get("RAY_AUTH_TOKEN") and all(os.environ.get(name) == ENVIRONMENT[name] for name in ENVIRONMENT)
    if not ready and "ray" in sys.modules:
        raise ClusterError("Ray was imported before its token was set; let Turinglike import it first")
    os.environ.update(ENVIRONMENT)
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.pop("RAY_ADDRESS", None)  # a cluster that the shell happens to point at is joined only when asked for


def workers_environment() -> dict[str, str]:
    """What workers need of the environment; Ray's processes get it when they start."""
    needed = {name: value for name, value in os.environ.items() if is_for_workers(name)}
    if "PYTHONPATH" in needed:  # an empty entry is the current folder
        paths = needed["PYTHONPATH"].split(os.pathsep)
        needed["PYTHONPATH"] = os.pathsep.join(path for path in paths if os.path.isabs(path))
    return {**needed, "PYTHONSAFEPATH": "1"}  # also for what the workers start by `python -c`


@dataclass(slots=True)
class PrivateFolder:
    """A folder that only this user may enter, around that of Ray's files and sockets, which Ray opens to everybody;
    ``remove`` it when Ray has ended.

    Its driver holds the lock in it. Folders with such a lock that nobody holds are left over, and are removed by the
    next driver; no other folder is, whatever its name.
    """

    path: Path
    lock: int

    @property
    def ray(self) -> Path:
        return self.path / "ray"

    @classmethod
    def make(cls) -> PrivateFolder:
        """Raises OSError."""
        base = Path(tempfile.gettempdir())
        if len(str(base)) > LONGEST:
            base = Path("/tmp")
        for lock in base.glob(f"{PREFIX}*/{LOCK}"):
            _remove_left_over(lock)
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        held = os.open(path / LOCK, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        return cls(path, held)

    def remove(self) -> None:
        """What a process of Ray's that is slow to end still writes there is removed by the next start."""
        shutil.rmtree(self.ray, ignore_errors=True)
        if not self.ray.exists():
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def _remove_left_over(lock: Path) -> None:
    with contextlib.suppress(OSError):  # another start may be at it too
        folder = lock.parent.lstat()
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.getuid():
            return
        held = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if time.time() - os.fstat(held).st_mtime > SETTLED:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        finally:
            os.close(held)


@dataclass(slots=True)
class RayHead:
    """Ray's processes on this machine, started by a process of their own (:mod:`serving.scheduling.ray_head`); ``end``
    them, whether or not they have started."""

    folder: PrivateFolder
    process: subprocess.Popen[str]
    _watched: dict[str, int | None] = field(init=False, default_factory=dict)  # by name, see _descriptor

    @classmethod
    def begin(cls) -> RayHead:
        """Raises OSError."""
        folder = PrivateFolder.make()
        options = json.dumps({**OPTIONS, "_temp_dir": str(folder.ray)})
        try:
            process = subprocess.Popen(
                [sys.executable, ray_head.__file__, options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**PATIENCE, **workers_environment()},
                process_group=0,
            )
        except OSError:
            folder.remove()
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
            if answer["name"] in ESSENTIAL and hasattr(os, "pidfd_open"):  # of Linux
                self._watched[answer["name"]] = _descriptor(answer["pid"])
        raise ClusterError("the process that starts it ended")

    def lost(self) -> str | None:
        """Which of the processes has ended without which there is no Ray, if one has."""
        if self.process.poll() is not None:
            return "the process that started it"
        return next((f"its {name}" for name, one in [*self._watched.items()] if _has_ended(one)), None)

    def end(self, seconds: float) -> None:
        """End Ray in order, or at once what is left of it after so many seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        if seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        while self._watched:
            if (descriptor := self._watched.popitem()[1]) is not None:
                os.close(descriptor)
        self.process.stdout.close()
        self.folder.remove()


def _descriptor(pid: int) -> int | None:
    """A descriptor of the process, which need be no child of this one; None where it has ended and been waited for."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _has_ended(descriptor: int | None) -> bool:
    if descriptor is None:
        return True
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    return bool(ended.poll(0))
