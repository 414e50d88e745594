"""How the threads of a process that hosts an agent (a worker, or a bare agent of the bench) share the interpreter's
lock, the cores and the memory."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading

SWITCH = 0.0005  # seconds; Python's own is ten times as long
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
KEPT, MAPPED = 256 << 20, 32 << 20  # bytes of free memory that are kept, and of a block that is mapped by itself


def begin(*, continuous: bool) -> None:
    """Settings of the whole process; call it before torch is imported. What the environment says already, stays.

    ``continuous``: the agent's engine batches by itself and looks after its threads.
    """
    # Each operation of torch gives the interpreter's lock away and wants it back, from threads that prepare.
    sys.setswitchinterval(SWITCH)
    if not continuous:
        # Threads that wait for each other by spinning use up their turns on cores that they have to share with
        # whatever else runs, and then wait for each other longer than the operation takes, each time.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_memory()


def _keep_memory() -> None:
    """Keep the memory of pictures that were freed for the next ones: given back to the system and asked for again, each
    of their pages is a fault, and the threads wait for each other in all of them. Only glibc can be told so."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED)
        mallopt(M_TRIM_THRESHOLD, KEPT)


def freeze() -> None:
    """All that was imported and loaded stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def yield_to_device() -> None:
    """Give the thread that prepares a lower priority, where threads have one of their own: torch's threads wait for
    each other many times in a batch, and one that has to share its core keeps all of them waiting."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + 10))
