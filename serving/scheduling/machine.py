"""This machine, and the settings of an agent's process."""

import ctypes
import gc
import importlib.metadata
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents.errors import UnavailableError

# What a machine with a GPU has: without any of them torch need not be imported, which takes seconds.
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
PRINT_GPU = (
    "import torch; c = torch.cuda; "
    "print(c.get_device_properties(0).total_memory, c.get_device_name(0)) if c.is_available() else None"
)
# import name -> distribution, of everything that can change an answer
PACKAGES = {
    "torch": "torch",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "numpy": "numpy",
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
}
SWITCH = 0.0005  # seconds between two threads' turns; Python's own is ten times as long
# of glibc's mallopt
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
# bytes of free memory that are kept, and of a block that is mapped by itself
KEPT = 256 << 20
MAPPED = 32 << 20
NEW_OBJECTS = 10_000
"""When this number of objects has been made and is still there, the collector looks for cycles."""


@dataclass(frozen=True)
class Host:
    """A machine; ``cores`` are those that this process may use, and ``memory`` is in bytes."""

    name: str
    """The machine's name in its network."""
    cpu: str
    """The processor's model, for people."""
    cores: int
    memory: int


@dataclass(frozen=True)
class Device:
    """A processor that agents may run on."""

    name: str
    """For people."""
    kind: Literal["cpu", "cuda"]
    """"cuda" for a GPU."""
    memory: int
    """Its bytes; of a CPU the host's."""


def host() -> Host:
    """This machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cpu = _first_match("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor() or platform.machine()
    return Host(socket.gethostname(), cpu, cores(), memory)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu() -> Device:
    """This machine's processor as a device."""
    here = host()
    return Device(f"{here.cpu} x {here.cores}", "cpu", here.memory)


def device(choice: str) -> Device:
    """The first GPU for "auto", if any. Raises UnavailableError for "cuda" without a GPU."""
    graphics = None if choice == "cpu" else gpu()
    if graphics is None and choice == "cuda":
        raise UnavailableError("device cuda: there is no GPU here; leave device out to run on the CPU")
    return graphics or cpu()


def check_device(choice: str, address: str | None) -> None:
    """Raises UnavailableError for "cuda" without a GPU, unless a cluster elsewhere may have one: to start Ray first
    takes half a minute."""
    if choice == "cuda" and address is None:
        device(choice)


def may_have_gpu() -> bool:
    """Whether a driver of a GPU is here; quick, and without importing torch."""
    return any(Path(path).exists() for path in DRIVERS) or shutil.which("nvidia-smi") is not None


def gpu() -> Device | None:
    """The first GPU, looked up by another process."""
    if not may_have_gpu():
        return None
    done = subprocess.run([sys.executable, "-c", PRINT_GPU], capture_output=True, text=True, check=False)
    memory, _, name = done.stdout.strip().partition(" ")
    return Device(name, "cuda", int(memory)) if memory else None


def available() -> int | None:
    """Bytes of memory to be had without swapping; None if unknown."""
    kibibytes = _first_match("/proc/meminfo", r"MemAvailable:\s*(\d+) kB")
    return None if kibibytes is None else int(kibibytes) * 1024


def peak() -> int:
    """This process's peak memory in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _first_match(path: str, pattern: str) -> str | None:
    try:
        match = re.search(f"^{pattern}$", Path(path).read_text(), re.MULTILINE)
    except OSError:
        return None
    return match[1].strip() if match else None


def set_up_process(*, continuous: bool) -> None:
    """Set up a process before torch is imported; a ``continuous`` engine sets its threads."""
    # Each operation of torch gives the interpreter's lock away and wants it back, from threads that prepare.
    sys.setswitchinterval(SWITCH)
    if not continuous:
        # Threads that spin while they wait for each other use up their turns on cores that others need.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        # Keep the memory of pictures that were freed for the next: each of its pages would be a fault again.
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # of glibc alone
            mallopt(M_MMAP_THRESHOLD, MAPPED)
            mallopt(M_TRIM_THRESHOLD, KEPT)


def collect_rarely() -> None:
    """Let the collector look for cycles after :data:`NEW_OBJECTS` new objects, and not after 700 as by default.

    A batch of 512 answers makes thousands of objects, all of which go by themselves. By default the collector looks
    through them several times a batch and finds nothing, which takes 7 % of a run without models. Cycles that do
    arise (a caught error with its frames, say) stay a little longer. Where memory runs out, ``release_memory`` of
    ``recovery.py`` collects at once.
    """
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """As :func:`collect_rarely`, until the block ends: a run may be a call in a program that has its own threshold."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def freeze() -> None:
    """Take all objects that are there now out of garbage collection: after loading they stay, and there are millions.
    From now on it is as :func:`collect_rarely` says."""
    collect_rarely()
    gc.collect()
    gc.freeze()


def yield_to_device() -> None:
    """Let this thread, which prepares stimuli, go after the thread that calls the agent."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + 10))


def versions() -> dict[str, str]:
    """Versions of loaded distributions that can change an answer."""
    loaded = {"python": platform.python_version()}
    for module, package in PACKAGES.items():
        if module in sys.modules:
            loaded[package] = importlib.metadata.version(package)
    return loaded
