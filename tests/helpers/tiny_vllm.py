"""vLLM's real server on this machine's CPU: what its processes must be told, and why it cannot run, if it cannot."""

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from agents.language.engines import guardian

# The published wheel takes its CPU platform when it is told so; the operators come from tests/plugin/vllm_cpu_kernels.
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # leave the cores to the system
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # on the CPU: the model in the engine's own process, as it is on one GPU
    "OMP_NUM_THREADS": "1",  # tiny models
}
# Settings that load soon.
SMALL = {"cache_gib": 0.125, "enforce_eager": True, "sequences": 64}

reason = "" if sys.platform == "linux" and find_spec("vllm") else "vllm is not installed, or this is no Linux"
needed = pytest.mark.skipif(bool(reason), reason=reason)


def processes(folder: Path) -> list[psutil.Process]:
    """The guardians of the servers whose sockets are in ``folder``, and what runs below them."""
    living = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = process.cmdline()
            if guardian.__file__ in command and Path(command[3]).is_relative_to(folder):
                living += [process, *process.children(recursive=True)]
    return living
