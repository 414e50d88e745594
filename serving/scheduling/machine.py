"""What this machine is, what it can do at most, and how much memory a process of it has taken."""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents.errors import UnavailableError


@dataclass(frozen=True)
class Host:
    """The machine: its name, its processor's, how many cores this process may use, and its memory."""

    name: str
    cpu: str
    cores: int
    memory: int


@dataclass(frozen=True)
class Device:
    """What the models ran on; ``memory`` is the device's own, or the host's."""

    name: str
    kind: Literal["cpu", "cuda"]
    memory: int


# What a machine with a GPU has: without any of them torch need not be asked, which takes seconds.
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
ASK_GPU = (
    "import torch; c = torch.cuda; "
    "print(c.get_device_properties(0).total_memory, c.get_device_name(0)) if c.is_available() else None"
)
TYPES = {"cpu": ("float32",), "cuda": ("bfloat16", "float16", "float32")}  # of agents
SIDES = {"cpu": 2048, "cuda": 8192}  # of the matrices by which a device's limit is measured


def host() -> Host:
    """This machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cpu = _found("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor() or platform.machine()
    return Host(socket.gethostname(), cpu, cores(), memory)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu() -> Device:
    """The processor as a device: it is another one with another number of cores."""
    here = host()
    return Device(f"{here.cpu} x {here.cores}", "cpu", here.memory)


def device(choice: str) -> Device:
    """The device that agents with a use for a GPU get: for "auto" the first GPU, if torch sees one. Imports torch.

    Raises UnavailableError for "cuda" where there is none.
    """
    if choice != "cpu" and importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            memory = int(torch.cuda.get_device_properties(0).total_memory)
            return Device(torch.cuda.get_device_name(0), "cuda", memory)
    if choice == "cuda":
        raise UnavailableError("--device cuda: torch sees no GPU here; leave --device out to measure on the CPU")
    return cpu()


def may_have_gpu() -> bool:
    """Whether there is a driver of a GPU."""
    return any(Path(path).exists() for path in DRIVERS) or shutil.which("nvidia-smi") is not None


def gpu() -> Device | None:
    """The first GPU, as :func:`device` has it, asked in another process: this one takes no memory of the GPU."""
    if not may_have_gpu():
        return None
    done = subprocess.run([sys.executable, "-c", ASK_GPU], capture_output=True, text=True, check=False)
    memory, _, name = done.stdout.strip().partition(" ")
    return Device(name, "cuda", int(memory)) if memory else None


def limits(kind: str, seconds: float) -> dict[str, float]:
    """The most operations per second of products of square matrices (two for each multiplication), by type, each
    measured for ``seconds``. Without torch none is known."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    found: dict[str, float] = {}
    side = SIDES[kind]
    for precision in TYPES[kind]:
        matrix = torch.full((side, side), 0.5, device=kind, dtype=getattr(torch, precision))
        torch.mm(matrix, matrix)  # the first one chooses its kernel
        fastest, until = math.inf, time.perf_counter() + seconds
        while fastest == math.inf or time.perf_counter() < until:
            began = time.perf_counter()
            torch.mm(matrix, matrix)[0, 0].item()  # which waits for a GPU
            fastest = min(fastest, time.perf_counter() - began)
        found[precision] = 2 * side**3 / fastest
    return found


def available() -> int | None:
    """Bytes of memory that a process can still get here without swapping; None where the system does not tell."""
    found = _found("/proc/meminfo", r"MemAvailable:\s*(\d+) kB")
    return None if found is None else int(found) * 1024


def peak() -> int:
    """The most memory, in bytes, that this process has ever had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _found(path: str, pattern: str) -> str | None:
    """The first line of a system's file that matches, if there is one: the group of it."""
    try:
        found = re.search(f"^{pattern}$", Path(path).read_text(), re.MULTILINE)
    except OSError:
        return None
    return found[1].strip() if found else None
