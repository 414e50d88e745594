"""What happens when a worker dies, an agent keeps failing, or memory runs out.

- A death with several requests in flight: they become suspects. While there are any, a worker takes nothing but one
  suspect at a time, so that the next death has one culprit.
- A death with one request in flight counts against it. After :data:`DEATHS` of them it fails.
- A worker that Ray ended for want of memory has no culprit: the dispatcher halves its batches and asks again.
- A lost worker is loaded again: it may fail :data:`RELOADS` times to load, and for ever where strangers ask.
- If the first :data:`FIRST` answers of an agent, or :data:`IN_A_ROW` in a row, fail with one code, the agent stops.
  What fails for its stimulus, and what failed in the same way before and is tried again, does not count. There is no
  such breaker where strangers ask: they would stop the agent for all.

Bisection of a batch that raises and halving of one that does not fit happen inside :mod:`serving.scheduling.worker`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from agents.errors import OF_STIMULUS, AgentStoppedError
from serving.scheduling.device_errors import FatalDeviceError
from serving.scheduling.request import AgentRequest
from serving.scheduling.worker import one_line

DEATHS = 3
FIRST = 20
IN_A_ROW = 50
RELOADS = 3
LONGEST_PAUSE = 60.0  # seconds between two attempts to load a lost worker

Cause = Literal["worker_died", "out_of_memory", "timeout", "device_error"]


class WorkerLost(Exception):
    """The worker is gone, or had to be ended. ``cause`` is the code that a record of its last request gets."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause

    @classmethod
    def by_device(cls, error: FatalDeviceError) -> WorkerLost:
        return cls("out_of_memory" if error.of_memory else "device_error", one_line(error))

    @classmethod
    def by_timeout(cls, seconds: float) -> WorkerLost:
        return cls("timeout", f"no answer within {seconds:g} s; give it more with --timeout")


async def load_in_time(
    agent: str, loading: Coroutine[Any, Any, dict[str, Any]], seconds: float, kill: Callable[[], None]
) -> dict[str, Any]:
    """The provenance that ``loading`` returns. Where it fails or is cancelled, the worker is killed; raises
    AgentStoppedError, also for a TimeoutError after so many ``seconds``."""
    try:
        return await loading
    except TimeoutError:
        why = f"was not loaded within {seconds:g} s; give it more with --load-timeout"
    except Exception as error:
        why = f"could not be loaded: {one_line(error)}"
    except asyncio.CancelledError:
        kill()
        raise
    kill()
    raise AgentStoppedError(f"agent {agent} {why}")


def count_death(in_flight: list[AgentRequest], lost: WorkerLost) -> bool:
    """Count a worker's death against the request that was in flight alone, if one was; whether it has failed now."""
    if len(in_flight) != 1:
        return False
    [culprit] = in_flight
    culprit.deaths += 1
    if culprit.deaths == DEATHS:
        culprit.fail(lost.cause, f"{lost}, {DEATHS} times with this stimulus alone")
    return culprit.deaths == DEATHS


@dataclass(slots=True)
class CircuitBreaker:
    """Counts failures with one code: from the first answer on, and in a row."""

    seen: int = 0
    code: str | None = None
    in_a_row: int = 0

    def note(self, code: str | None, before: str = "") -> str | None:
        """Note an answer's error code (None: no error); ``before`` is the one that it had when it was tried before.
        Returns why the agent is to be stopped, if it is."""
        if code is not None and (code in OF_STIMULUS or code == before):
            return None
        self.seen += 1
        if code is None or code != self.code:
            self.in_a_row = 0
        self.code = code
        if code is None:
            return None
        self.in_a_row += 1
        if self.in_a_row == self.seen == FIRST:
            return f"its first {FIRST} answers failed with {code}"
        return f"{IN_A_ROW} answers in a row failed with {code}" if self.in_a_row >= IN_A_ROW else None


async def reload(start: Callable[[], Awaitable[None]], *, forever: bool) -> None:
    """Call ``start`` until it has loaded a worker in place of a lost one, at growing intervals. Raises
    AgentStoppedError when the last of :data:`RELOADS` attempts fails, unless it goes on ``forever``."""
    pause = 1.0
    for attempt in itertools.count(1):
        try:
            await start()
        except AgentStoppedError:
            if attempt == RELOADS and not forever:
                raise
        else:
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
