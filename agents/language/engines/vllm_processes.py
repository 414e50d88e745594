"""vLLM's processes: they end with the process that started them, and none of them is left when the next begins.

vLLM runs a model in a process of its own (EngineCore), for tensor parallelism in several. They do not notice that their
owner was killed, and would keep the device's memory for ever. :func:`register` is a plugin of vLLM (entry-point group
``vllm.general_plugins``), which vLLM calls in each of its processes before it takes any memory. There it asks the
kernel to be killed with the process that started it, and leaves its name in a folder of this user's. A name is an empty
file ``OWNER_SELF``. Each of the two is a process id and a start time (in the kernel's ticks), as ids are used again.
:func:`end_orphans` ends whatever has a name there and an owner that is gone.

All this is Linux's; elsewhere nothing is done.
"""

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
ROUND = 0.02  # seconds between two looks


def identity(pid: int) -> str | None:
    """The process ``pid`` as it is called here; None if it is gone. One that has ended and that nobody has asked for
    holds nothing any more, and counts as gone."""
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
    """Tie this process to the one that started it, if it is one of vLLM's that we started."""
    owner, own = os.environ.get(OWNER), identity(os.getpid())
    if owner is None or own is None or owner == own:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _folder().mkdir(mode=0o700, exist_ok=True)
    (_folder() / f"{owner}_{own}").touch()
    if not lives(owner):  # it ended before the kernel was told
        os.kill(os.getpid(), signal.SIGKILL)


def owned(owner: str) -> list[str]:
    """The processes of ``owner`` that run."""
    return [name for other, name in _named() if other == owner]


def end_orphans(timeout: float) -> list[str]:
    """End the processes whose owner is gone, and wait until they are gone; those that are not after ``timeout``
    seconds are returned."""
    return end([name for owner, name in _named() if not lives(owner)], timeout)


def end(names: Collection[str], timeout: float) -> list[str]:
    """Kill processes and wait until they are gone; those that are not after ``timeout`` seconds are returned."""
    for name in names:
        if lives(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(name.partition("-")[0]), signal.SIGKILL)
    deadline = time.monotonic() + timeout
    left = [name for name in names if lives(name)]
    while left and time.monotonic() < deadline:
        time.sleep(ROUND)
        left = [name for name in left if lives(name)]
    return left


def _named() -> Iterator[tuple[str, str]]:
    """(owner, process) of those that run; names of processes that are gone are removed."""
    folder = _folder()
    with contextlib.suppress(FileNotFoundError):
        if folder.stat().st_uid != os.getuid():  # somebody else's: nothing in it is to be believed
            return
        for path in folder.iterdir():
            owner, _, name = path.name.partition("_")
            if lives(name):
                yield owner, name
            else:
                path.unlink(missing_ok=True)


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"turinglike-vllm-{os.getuid()}"
