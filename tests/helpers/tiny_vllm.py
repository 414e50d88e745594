"""vLLM's real engine on this machine's CPU: what its processes must be told, and why it cannot run, if it cannot."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

# The published wheel takes its CPU platform when it is told so; the operators come from tests/plugin/vllm_cpu_kernels.
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # leave the cores to the system
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # on the CPU: the model in the engine's own process, as it is on one GPU
    "OMP_NUM_THREADS": "1",  # tiny models
}
# Settings that load soon.
SMALL = {"cache_gib": 0.125, "enforce_eager": True, "sequences": 64}

reason = "" if sys.platform == "linux" and find_spec("vllm") else "vllm is not installed, or this is no Linux"
needed = pytest.mark.skipif(bool(reason), reason=reason)


@contextmanager
def told() -> Iterator[None]:
    """With vLLM's environment, and without the warnings of what it imports."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        warnings.simplefilter("ignore")
        yield
