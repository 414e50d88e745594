"""A process around the one that does a command's work, which may end without a word: Ray ends its driver so when one of
Ray's processes dies, and an agent that answers in this process may end it.

The driver is a fork, which reports its end through a pipe. If it is gone without a report, this process prints why.
Where an agent may have been the cause, another fork goes on.
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

from agents.errors import AgentStoppedError, ClusterError

RAY_DIED = "a process of Ray's died; every record written so far is safe: run the same command again to resume"
PR_SET_PDEATHSIG = 1  # of Linux's prctl
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
SENT = (*FORWARDED, signal.SIGKILL)  # by somebody, and not by Ray
OWN_ERROR = 70  # EX_SOFTWARE of sysexits.h
ANSWERS_HERE, ANSWERS_ONLY_HERE = 255, 254  # sent before agents answer in the fork; no exit codes of ours
AGENT_DIED = "the process died in which the agents answered; "
GOES_ON = "going on with a process for each"
ENDS = "every record written so far is safe: run the same command again, without --here if it has that"
_writer: int | None = None  # of a fork: where it says what it does
_ends_at_once = False
_agents_ended_it = False  # the fork before this one


def end_at_once() -> None:
    """Let this process wait for nothing at its end: an agent or a call of Ray's may hang."""
    global _ends_at_once
    _ends_at_once = True


def answers_here(*, go_on: bool = True) -> bool:
    """Report that agents answer in this process from now on, and whether to ``go_on`` with another process if they
    end it. False where nobody would go on, and where they have ended a process before."""
    if _writer is None or (go_on and _agents_ended_it):
        return False
    end_at_once()
    os.write(_writer, bytes([ANSWERS_HERE if go_on else ANSWERS_ONLY_HERE]))
    return True


def watched(main: Callable[[], int]) -> int:
    """Call ``main`` in a forked process; returns its exit code, or that of a lost Ray where it ended without one. If it
    was lost while agents answered in it, ``main`` is called once more.

    Signals are passed on, each once: the fork is in a process group of its own. It does not outlive this process.
    """
    handlers = {number: signal.getsignal(number) for number in FORWARDED}
    global _agents_ended_it
    sent, status = _in_fork(main, handlers)
    # A kill may be the system's, for want of memory, and nobody asked it to end.
    agents_ended_it = sent in (bytes([ANSWERS_HERE]), bytes([ANSWERS_ONLY_HERE])) and -status not in FORWARDED
    if agents_ended_it and status <= 128:
        goes_on = sent[0] == ANSWERS_HERE
        print(f"turinglike: {AGENT_DIED}{GOES_ON if goes_on else ENDS}", file=sys.stderr)
        if not goes_on:
            return AgentStoppedError.exit_code
        _agents_ended_it = True
        sent, status = _in_fork(main, handlers)
    if sent and sent[-1] < ANSWERS_ONLY_HERE:
        return sent[-1]
    if -status in SENT:
        print(f"turinglike: ended by {signal.Signals(-status).name}", file=sys.stderr)
        return 128 - status
    if status > 128:  # after a second signal
        return status
    print(f"turinglike: {RAY_DIED}", file=sys.stderr)
    return ClusterError.exit_code


def _in_fork(main: Callable[[], int], handlers: Mapping[signal.Signals, Any]) -> tuple[bytes, int]:
    """The bytes that the fork wrote to its pipe, and its exit code, or below 0 the signal's number. The fork gets
    ``handlers`` of signals."""
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
        _report_end(main, writer)
    os.close(writer)

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    sent = b""
    while part := os.read(reader, 2 - len(sent)):
        sent += part
        if part[-1] < ANSWERS_ONLY_HERE:
            break
    os.close(reader)
    return sent, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _report_end(main: Callable[[], int], writer: int) -> None:
    """Call ``main`` and end this process with its exit code, which is written to the pipe before Ray is left."""
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
