"""What this machine is, and how much memory a process of it has taken."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
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


def host() -> Host:
    """This machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cpu = _first_match("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor() or platform.machine()
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


def available() -> int | None:
    """Bytes of memory that a process can still get here without swapping; None where the system does not tell."""
    kibibytes = _first_match("/proc/meminfo", r"MemAvailable:\s*(\d+) kB")
    return None if kibibytes is None else int(kibibytes) * 1024


def peak() -> int:
    """The most memory, in bytes, that this process has ever had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _first_match(path: str, pattern: str) -> str | None:
    """The first line of a system's file that matches, if there is one: the group of it."""
    try:
        match = re.search(f"^{pattern}$", Path(path).read_text(), re.MULTILINE)
    except OSError:
        return None
    return match[1].strip() if match else None
