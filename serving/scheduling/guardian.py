"""A process around the one that does a command's work, which may end without a word: Ray ends its driver so when one of
Ray's processes dies, and an agent that answers in this process may end it.

The driver is a fork. It says how it ends through a pipe; if it is gone without having said so, this process says why,
or, where an agent may have been the cause, lets another fork go on.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from agents.errors import ClusterError

RAY_DIED = "a process of Ray's died; every record written so far is safe: run the same command again to resume"
PR_SET_PDEATHSIG = 1  # of Linux's prctl
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
SENT = (*FORWARDED, signal.SIGKILL)  # by somebody, and not by Ray
OWN_ERROR = 70  # EX_SOFTWARE of sysexits.h
ANSWERS_HERE = 255  # said before agents answer in the fork; no exit code of ours
AGENT_DIED = "the process died in which the agents answered; going on with a process for each"
_writer: int | None = None  # of a fork: where it says what it does
_agents_here = False
_agents_ended_it = False  # the fork before this one


def answers_here() -> bool:
    """Say that agents answer in this process from now on. False where nobody would go on if they ended it, and where
    they have ended one."""
    global _agents_here
    if _writer is not None and not _agents_ended_it:
        os.write(_writer, bytes([ANSWERS_HERE]))
        _agents_here = True
    return _agents_here


def watched(main: Callable[[], int]) -> int:
    """Call ``main`` in a forked process; returns its exit code, or that of a lost Ray where it ended without one. If it
    was lost while agents answered in it, ``main`` is called once more.

    Signals are passed on, each once: the fork is in a process group of its own. It does not outlive this process.
    """
    handlers = {number: signal.getsignal(number) for number in FORWARDED}
    global _agents_ended_it
    said, status = _in_fork(main, handlers)
    # A kill may be the system's, for want of memory, and nobody asked it to end.
    if said == bytes([ANSWERS_HERE]) and -status not in FORWARDED and status <= 128:
        print(f"turinglike: {AGENT_DIED}", file=sys.stderr)
        _agents_ended_it = True
        said, status = _in_fork(main, handlers)
    if said and said[-1] != ANSWERS_HERE:
        return said[-1]
    if -status in SENT:
        print(f"turinglike: ended by {signal.Signals(-status).name}", file=sys.stderr)
        return 128 - status
    if status > 128:  # after a second signal
        return status
    print(f"turinglike: {RAY_DIED}", file=sys.stderr)
    return ClusterError.exit_code


def _in_fork(main: Callable[[], int], handlers: Mapping[signal.Signals, Any]) -> tuple[bytes, int]:
    """What the fork, which has these handlers of signals, said until its end; and how it ended: its exit code, or below
    0 the signal's number."""
    reader, writer = os.pipe()
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until they can be passed on
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
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
    said = b""
    while part := os.read(reader, 2 - len(said)):
        said += part
        if part[-1] != ANSWERS_HERE:
            break
    os.close(reader)
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _say_how_it_ends(main: Callable[[], int], writer: int) -> None:
    """Call ``main`` and end this process with its exit code, which is said before Ray is left."""
    global _writer
    _writer = writer
    try:
        code = main()
    except SystemExit as error:  # of argparse
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = OWN_ERROR
    os.write(writer, bytes([code]))
    if _agents_here:  # one that hangs would be waited for
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
