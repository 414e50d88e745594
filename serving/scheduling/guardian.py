"""A process around the one that uses Ray, as Ray ends its driver without a word when one of its own processes dies.

The driver is a fork. It says how it ends through a pipe; if it is gone without having said so, this process says why.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from agents.errors import ClusterError

RAY_DIED = "a process of Ray's died; every record written so far is safe: run the same command again to resume"
PR_SET_PDEATHSIG = 1  # of Linux's prctl
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
SENT = (*FORWARDED, signal.SIGKILL)  # by somebody, and not by Ray
OWN_ERROR = 70  # EX_SOFTWARE of sysexits.h


def watched(main: Callable[[], int]) -> int:
    """Call ``main`` in a forked process; returns its exit code, or that of a lost Ray where it ended without one.

    Signals are passed on, each once: the fork is in a process group of its own. It does not outlive this process.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until they can be passed on
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        _end_with(parent)
        _say_how_it_ends(main, writer)
    os.close(writer)

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    said = os.read(reader, 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if said:
        return said[0]
    if -status in SENT:
        print(f"turinglike: ended by {signal.Signals(-status).name}", file=sys.stderr)
        return 128 - status
    if status > 128:  # after a second signal
        return status
    print(f"turinglike: {RAY_DIED}", file=sys.stderr)
    return ClusterError.exit_code


def _say_how_it_ends(main: Callable[[], int], writer: int) -> None:
    """Call ``main`` and end this process with its exit code, which is said before Ray is left."""
    try:
        code = main()
    except SystemExit as error:  # of argparse
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = OWN_ERROR
    os.write(writer, bytes([code]))
    sys.exit(code)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
