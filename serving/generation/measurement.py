"""What ``turinglike bench`` takes down of a run: when its parts began and ended, and what its workers and its disk did.

A run is measured as it is: it fills in a few numbers at places that it passes anyway, and ends by itself after a number
of seconds. So a benchmark cannot measure another path than the one by which answers are made.
"""

import asyncio
import time
from dataclasses import dataclass, field
from itertools import chain

from serving.scheduling.scheduler import ReplicaPool, Scheduler


@dataclass(slots=True)
class Measurement:
    """What a run notes of itself. Times are those of ``time.time``, as in records; nan before they come."""

    seconds: float | None = None
    """After this many seconds of answering the run ends; None: when all is answered."""
    started: float = float("nan")
    """When the set was checked, and Ray begins to start."""
    answering: float = float("nan")
    """When the first agent was loaded."""
    ended: float = float("nan")
    """When the last answer came, or the seconds were over."""
    writing_s: float = 0.0
    """Seconds in which records were written and synced."""
    responding_s: dict[str, dict[int, float]] = field(default_factory=dict)
    """Seconds in which the agent answered, by agent and number of its worker. Calls that run at once are summed."""
    threads: dict[str, int] = field(default_factory=dict)
    """The threads of each worker that prepare stimuli, by agent."""
    gpus: int = 0
    """The GPUs that workers are on."""
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """Note that an agent is loaded and answers from now on."""
        if not self._begun.is_set():
            self.answering = time.time()
            self._begun.set()

    def note_workers(self, scheduler: Scheduler, pool: ReplicaPool) -> None:
        """Note what the workers that are loaded now have done; call it before they go."""
        self.ended = time.time()
        for name, dispatcher in scheduler.dispatchers.items():
            self.responding_s[name] = dict(dispatcher.responding_s)
            self.threads[name] = dispatcher.threads
        places = chain.from_iterable(pool.admission.places.values())
        gpus = {(place.node, gpu) for place in places for gpu in place.gpus}
        self.gpus = max(self.gpus, len(gpus))

    async def over(self) -> None:
        """Wait until the seconds are over."""
        await self._begun.wait()
        if self.seconds is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(self.seconds)
