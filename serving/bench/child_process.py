"""A fresh interpreter for each thing that is measured: loading is measured from the beginning, one agent's memory is
not another's, and a process that the system ends for want of memory ends that one measurement alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from agents.errors import AgentStoppedError, TuringlikeError
from serving.scheduling.worker import describe

PATIENCE = 10.0  # seconds in which a process may end after its last message


class DiedError(AgentStoppedError):
    """The process ended before it was done. ``killed`` says that the system, or somebody, killed it."""

    def __init__(self, code: int) -> None:
        self.killed = code == -signal.SIGKILL
        ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code} and said nothing"
        super().__init__(f"its process {ended}" + ", as the system does where memory runs out" * self.killed)


def run(function: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Call ``function(send, *arguments)`` in a new process; yields what it sends, as it does.

    Raises AgentStoppedError with what the function raised, in one sentence, and DiedError. What it prints goes to
    stderr. A process that is not wanted any more (the iterator is closed) is killed, and one whose parent was killed
    ends itself.
    """
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_main, args=(function, arguments, writer))
    process.start()
    writer.close()
    try:
        while True:
            try:
                kind, value = reader.recv()
            except EOFError:
                process.join()
                raise DiedError(process.exitcode or 0) from None
            if kind == "error":
                raise AgentStoppedError(value)
            if kind == "end":
                process.join(PATIENCE)
                return
            yield value
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        reader.close()


def figure(function: Callable[..., None], *arguments: Any) -> float | None:
    """The first number that ``function`` sends from a new process, or None. Raises AgentStoppedError."""
    numbers = list(run(function, *arguments))
    return float(numbers[0]) if numbers else None


def _main(function: Callable[..., None], arguments: tuple[Any, ...], writer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends this process
    os.dup2(sys.stderr.fileno(), 1)  # stdout is the command's result alone
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function(lambda value: writer.send(("value", value)), *arguments)
        writer.send(("end", None))
    except BrokenPipeError:
        return  # nobody listens any more
    except TuringlikeError as error:
        writer.send(("error", str(error)))
    except Exception as error:
        writer.send(("error", describe(error)))


def _end_with_parent() -> None:
    """Nobody waits any more for what this process measures, which may take hours, or never end."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)
