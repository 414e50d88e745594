"""What a Ray of our own is started with, so that nobody else on the machine or the network gets anything from it.

Ray listens on every interface, lets everybody into its folder, hands its whole environment to the workers and puts the
current folder before the installed packages in their ``sys.path``. Here it listens on the loopback alone and asks for a
token, its folder is private, and workers get the variables that they need and the packages that are installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import ClusterError

PREFIX = "turinglike-"  # of the private folders
LOCK = ".driver.lock"  # in each of them, held by its driver
LONGEST = 18  # characters of the folder that they stand in; a socket's path has at most 107
SETTLED = 60.0  # seconds after which a folder that nobody holds is left over from a driver that was killed

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


@contextlib.contextmanager
def workers_environment() -> Iterator[None]:
    """Within the block the environment is what workers need; Ray's processes inherit it when they start."""
    kept = {name: value for name, value in os.environ.items() if not is_for_workers(name)}
    paths = os.environ.get("PYTHONPATH")
    if paths is not None:  # an empty entry is the current folder
        kept["PYTHONPATH"] = paths
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths.split(os.pathsep) if os.path.isabs(path))
    safe = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"  # also for what the workers start by `python -c`
    try:
        for name in kept.keys() - {"PYTHONPATH"}:
            del os.environ[name]
        yield
    finally:
        os.environ.update(kept)
        if safe is None:
            del os.environ["PYTHONSAFEPATH"]


def job_config() -> Any:
    """Ray's JobConfig, without the driver's script and current folder for the workers' ``sys.path``."""
    from ray.job_config import JobConfig

    class InstalledPackages(JobConfig):
        def _runtime_env_has_working_dir(self) -> bool:
            """Ray passes the driver's folders on unless the job has a folder of its own."""
            return True

    return InstalledPackages()


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
