"""How a command ends by Ctrl-C and SIGTERM. Outside the event loop a signal raises :class:`Interrupted`. Inside it the
first cancels the main task; another, at least 0.5 s later, ends the process at once."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, TypeVar

from agents.errors import AgentStoppedError, ClusterError

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TWICE = 0.5  # seconds in which a second signal does not count: ``timeout`` and terminals send each twice
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


class Interrupted(BaseException):
    """The user ended the command by signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number
        """The signal's number."""


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Within the block the first signal raises :class:`Interrupted`. Python gives signals to the main thread alone: in
    another one, where a notebook's work is done, nothing changes."""
    if not _is_main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


async def started(start: Coroutine[Any, Any, None], take_signals: Callable[[], None]) -> None:
    """Await the start of what takes the signals. A cancellation waits for its end."""
    task = asyncio.create_task(start)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=0.05)
            take_signals()
        task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})


def run(
    main: Callable[[Callable[[], None]], Coroutine[Any, Any, T]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Run a coroutine; raises Interrupted after a signal. ``main`` gets a function that takes the signals back."""
    received: list[tuple[int, float]] = []  # signals and their times

    async def work() -> T:
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            if not received:
                received.append((number, time.monotonic()))
                print("stopping; a second signal ends at once", file=sys.stderr, flush=True)
                task.cancel()
            elif time.monotonic() - received[0][1] > TWICE:
                os._exit(128 + number)

        def take_signals() -> None:
            if _is_main_thread():
                for number in SIGNALS:
                    loop.add_signal_handler(number, stop, number)

        task = asyncio.create_task(main(take_signals))
        take_signals()
        try:
            return await task
        finally:
            if _is_main_thread():
                for number in SIGNALS:
                    loop.remove_signal_handler(number)

    try:
        # asyncio leaves the handlers of the signals that it had in hand at their defaults.
        with raised(), asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work())
    except asyncio.CancelledError:
        if not received:
            raise
        raise Interrupted(received[0][0]) from None


def end_at_once() -> None:
    """Let this process end without waiting for threads: one of them hangs in a library, or may."""
    global _ends_at_once
    _ends_at_once = True


def declare_answers_here() -> bool:
    """Tell the watching process that agents answer in this process; False outside :func:`watched`."""
    if _writer is None:
        return False
    end_at_once()
    os.write(_writer, bytes([ANSWERS_HERE]))
    return True


def watched(main: Callable[[], int]) -> int:
    """Call ``main`` in a fork, which gets the signals; returns its exit code, or says on stderr why there is none.

    Why so. Ray's core ends a process whose connection to it is lost, from a thread of C++: no ``except`` and no
    ``finally`` sees that. A library that an agent calls may end its process in the same way. A command that vanished
    without a word, and with the exit code of a crash, would tell nobody that all records are safe. So the command runs
    in a child, and this process only waits and explains.

    Four parts hold together, and each has its reason:

    - The pipe. The child writes its exit code into it *before* it leaves Ray, because leaving may kill it. Without a
      byte in the pipe the child did not end by itself, whatever its status says.
    - The process group. A terminal sends Ctrl-C to a whole group. The child leaves the group, so that it gets each
      signal once, from here. Otherwise every Ctrl-C would count twice, and the second ends at once.
    - The mask. Signals are blocked from before the fork until both sides have their handlers. One that came in
      between would end only one of the two.
    - The death signal (:func:`end_with`). Whoever kills this process by SIGKILL means the command. Without it the
      child would go on writing records, while a second command takes the folder.

    The fork must come before anything starts a thread or Ray: a child has the forking thread alone, and locks that
    other threads held stay locked in it for ever.
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
        end_with(parent)
        _report_end(main, writer)
    os.close(writer)

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in handlers:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    agents_answer = False
    code = None
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


def end_with(parent: int) -> None:
    """Have the system kill this process when ``parent`` dies; end now if it is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
