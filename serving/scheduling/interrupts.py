"""Ctrl-C and SIGTERM: one clear end in every phase of a command.

Outside the event loop a signal raises :class:`Interrupted`. Inside it the first signal cancels the main task, which
ends in order; a second one, half a second or more later, ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ONE_SIGNAL = 0.5  # seconds in which signals count as one: ``timeout`` and terminals send one twice


class Interrupted(BaseException):
    """The user ended the command; ``number`` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Within the block a signal raises Interrupted."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def started(start: Coroutine[Any, Any, None], take_signals: Callable[[], None]) -> None:
    """Await the start of what takes the signals at some moment, as Ray does. A cancellation waits for its end."""
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
    """Run a coroutine to its end; raises Interrupted after it has ended in order because of a signal.

    ``main`` is called with a function that takes the signals back from a library that has taken them.
    """
    received: list[tuple[int, float]] = []  # signals and their times

    async def work() -> T:
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            if not received:
                received.append((number, time.monotonic()))
                print("stopping; a second signal ends at once", file=sys.stderr, flush=True)
                task.cancel()
            elif time.monotonic() - received[0][1] > ONE_SIGNAL:
                os._exit(128 + number)

        def take_signals() -> None:
            for number in SIGNALS:
                loop.add_signal_handler(number, stop, number)

        task = asyncio.create_task(main(take_signals))
        take_signals()
        try:
            return await task
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    # asyncio leaves the handlers of the signals that it had in hand at their defaults.
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work())
    except asyncio.CancelledError:
        if not received:
            raise
        raise Interrupted(received[0][0]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
