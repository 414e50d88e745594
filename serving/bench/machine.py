"""What this machine is, and how much memory a process of it has taken."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from agents.contract import Agent
from agents.errors import UnavailableError
from serving.bench.results import Device, Host

KIB = 1024
# What a machine with a GPU has: without any of them torch need not be asked, which takes seconds.
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
ASK = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"


def host() -> Host:
    """This machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Host(socket.gethostname(), _cpu(), cores(), memory)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def cpu() -> Device:
    """The processor as a device: it is another one with another number of cores."""
    here = host()
    return Device(f"{here.cpu} x {here.cores}", "cpu", here.memory)


def device(choice: str) -> Device:
    """The device that agents with a use for a GPU get: for "auto" the first GPU, if torch sees one. Imports torch.

    Raises UnavailableError for "cuda" where there is none.
    """
    if choice == "cpu":
        return cpu()
    try:
        import torch
    except ImportError:
        has_gpu = False
    else:
        has_gpu = torch.cuda.is_available()
    if has_gpu:
        about = torch.cuda.get_device_properties(0)
        return Device(torch.cuda.get_device_name(0), "cuda", int(about.total_memory))
    if choice == "cuda":
        raise UnavailableError("--device cuda: torch sees no GPU here; leave --device out to measure on the CPU")
    return cpu()


def gpu_name() -> str | None:
    """The first GPU's name as :func:`device` has it, asked in another process: this one takes no memory of the GPU."""
    if not any(Path(path).exists() for path in DRIVERS) and shutil.which("nvidia-smi") is None:
        return None
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def runs_on(agent: Agent[Any], kind: str) -> str:
    """Where an agent runs on a machine whose device is of that kind: "cuda:0", or "cpu" if it has no use for a GPU."""
    return "cuda:0" if kind == "cuda" and agent.device_memory > 0 else "cpu"


def available() -> int | None:
    """Bytes of memory that a process can still get here without swapping; None where the system does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * KIB if found else None


def forget_peak() -> None:
    """Let :func:`peak` begin anew, where the system can: Linux does, unless it forbids it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # then the peak is that since the process began


def peak() -> int:
    """The most memory, in bytes, that this process has had since :func:`forget_peak`."""
    return _status("VmHWM")


def resident() -> int:
    """The memory, in bytes, that this process has now."""
    return _status("VmRSS")


def _status(key: str) -> int:
    """A line of what Linux says of this process; elsewhere the most memory that it has ever had."""
    try:
        found = re.search(rf"^{key}:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return int(found[1]) * KIB
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * KIB
