"""A process around the one that does a command's work, which may end without a word: Ray ends its driver so when one of
Ray's processes dies, and an agent that answers in the process may end it.

The work is done in a fork, which writes its exit code to a pipe. If it ends without, this process prints why.
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

from agents.errors import AgentStoppedError, ClusterError

RAY_DIED = "a process of Ray's died; every record written so far is safe: run the same command again to resume"
AGENT_DIED = (
    "the process died in which the agents answered; every record written so far is safe: run the same command again, "
    "for `generate` with --replicas 1 in place of --here, which gives agents processes of their own"
)
PR_SET_PDEATHSIG = 1  # of Linux's prctl
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
OWN_ERROR = 70  # EX_SOFTWARE of sysexits.h
ANSWERS_HERE = 255  # written before agents answer in the fork; no exit code of ours
_writer: int | None = None  # of a fork: the end of the pipe that it writes to
_ends_at_once = False


def end_at_once() -> None:
    """Let this process wait for nothing at its end: an agent or a call of Ray's may hang."""
    global _ends_at_once
    _ends_at_once = True


def answers_here() -> bool:
    """Report that agents answer in this process from now on; False where it is no fork of :func:`watched`."""
    if _writer is None:
        return False
    end_at_once()
    os.write(_writer, bytes([ANSWERS_HERE]))
    return True


def watched(main: Callable[[], int]) -> int:
    """Call ``main`` in a forked process; returns its exit code, or says on stderr why there is none.

    Signals are passed on, each once: the fork is in a process group of its own. It does not outlive this process.
    """
    handlers = {number: signal.getsignal(number) for number in FORWARDED}
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
        _report_end(main, writer)
    os.close(writer)

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in handlers:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    agents_answer, code = False, None
    while code is None and (byte := os.read(reader, 1)):
        if byte[0] == ANSWERS_HERE:
            agents_answer = True
        else:
            code = byte[0]
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return _explained(status, agents_answer=agents_answer) if code is None else code


def _explained(status: int, *, agents_answer: bool) -> int:
    if status > 128:  # after a second signal
        return status
    # A kill may be the system's, for want of memory, and nobody's who wants the command to end.
    if agents_answer and -status not in FORWARDED:
        print(f"turinglike: {AGENT_DIED}", file=sys.stderr)
        return AgentStoppedError.exit_code
    if -status in (*FORWARDED, signal.SIGKILL):  # by somebody, and not by Ray
        print(f"turinglike: ended by {signal.Signals(-status).name}", file=sys.stderr)
        return 128 - status
    print(f"turinglike: {RAY_DIED}", file=sys.stderr)
    return ClusterError.exit_code


def _report_end(main: Callable[[], int], writer: int) -> None:
    global _writer
    _writer = writer
    try:
        code = main()
    except SystemExit as error:  # of argparse
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = OWN_ERROR
    os.write(writer, bytes([code]))  # before Ray is left
    if _ends_at_once:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
