"""vLLM's processes end with the process that started them (Linux). Each calls :func:`register`, a plugin, and leaves an
empty file ``OWNER_SELF`` of two names: process ids with start times in ticks."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

OWNER = "TURINGLIKE_VLLM_OWNER"  # the environment variable that names the owner
PLUGIN = "turinglike"  # the entry point's name
PR_SET_PDEATHSIG = 1  # linux/prctl.h
INTERVAL = 0.02  # seconds between two checks


def identity(pid: int) -> str | None:
    """The name of a process; None if it has ended, also as a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else f"{pid}-{fields[19]}"


def lives(name: str) -> bool:
    """Whether that process runs."""
    pid = name.partition("-")[0]
    return pid.isdecimal() and identity(int(pid)) == name


def register() -> None:
    """Tie this process to its parent, if we started vLLM there."""
    owner, name = os.environ.get(OWNER), identity(os.getpid())
    if owner is None or name is None or owner == name:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _folder().mkdir(mode=0o700, exist_ok=True)
    (_folder() / f"{owner}_{name}").touch()
    if not lives(owner):  # it ended before the kernel knew
        os.kill(os.getpid(), signal.SIGKILL)


def owned(owner: str) -> list[str]:
    """The running processes of ``owner``."""
    return [name for other, name in _running() if other == owner]


def end_orphans(timeout: float) -> list[str]:
    """End the processes without a living owner; returns those left after ``timeout`` seconds."""
    return end([name for owner, name in _running() if not lives(owner)], timeout)


def end(names: Collection[str], timeout: float) -> list[str]:
    """Kill processes; returns those left after ``timeout`` seconds."""
    for name in names:
        if lives(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(name.partition("-")[0]), signal.SIGKILL)
    deadline = time.monotonic() + timeout
    while (left := [name for name in names if lives(name)]) and time.monotonic() < deadline:
        time.sleep(INTERVAL)
    return left


def _running() -> Iterator[tuple[str, str]]:
    """(owner, process), all alive."""
    folder = _folder()
    with contextlib.suppress(FileNotFoundError):
        if folder.stat().st_uid != os.getuid():  # another user's
            return
        for path in folder.iterdir():
            owner, _, name = path.name.partition("_")
            if lives(name):
                yield owner, name
            else:
                path.unlink(missing_ok=True)


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"turinglike-vllm-{os.getuid()}"
