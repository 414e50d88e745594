"""The scheduler: everything that wants an answer goes through it.

Each agent has a lane: a queue ordered by age, and workers. A batch leaves when it is full, or when its oldest item
has waited :data:`LINGER` seconds and a worker is idle. A worker holds a second batch while it answers one, so that it
can prepare it meanwhile. Filters and attempts, deaths, memory and the circuit breaker are decided here, once, for
files, HTTP requests and turns of conversations alike; see :mod:`serving.scheduling.dispatch` for the rules of one lane.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from agents import stimuli
from agents.errors import AgentStoppedError, AnswerError
from agents.stimuli import Stimulus
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.request import AgentRequest


class _Ready:
    """The finished items of one stream."""

    def __init__(self) -> None:
        self.items: deque[AgentRequest] = deque()
        self.wake = asyncio.Event()

    def put(self, item: AgentRequest) -> None:
        self.items.append(item)
        self.wake.set()


class _Promise:
    """The one finished item of ``answer``."""

    def __init__(self) -> None:
        self.future: asyncio.Future[AgentRequest] = asyncio.get_running_loop().create_future()

    def put(self, item: AgentRequest) -> None:
        if not self.future.done():
            self.future.set_result(item)


class Scheduler:
    """Hands items to the lanes of their agents and gives them back answered."""

    def __init__(self, run_seed: int = 0) -> None:
        self.run_seed = run_seed
        self.dispatchers: dict[str, Dispatcher] = {}
        self._orders = 0

    def add(self, lane: Dispatcher) -> None:
        """Make an agent known; its workers may come later."""
        self.dispatchers[lane.name] = lane

    async def remove(self, name: str) -> None:
        """End an agent's workers; what it still had to answer comes back unanswered."""
        await self.dispatchers.pop(name).close()

    def next_order(self) -> int:
        """A place in the queue behind everything that has one so far."""
        self._orders += 1
        return self._orders

    async def stream(self, items: Iterable[AgentRequest]) -> AsyncGenerator[AgentRequest, None]:
        """Answer all items; yields each as it is ready, in no order. Items are taken from the iterable only as fast
        as the lanes can use them, so that a set of any length needs the same memory.

        Raises AgentStoppedError once an agent of the stream stops; what was answered before is yielded first.
        """
        ready = _Ready()
        pending: set[AgentRequest] = set()
        lanes: set[Dispatcher] = set()
        source = iter(items)
        exhausted = False
        try:
            while True:
                while not exhausted:
                    item = next(source, None)
                    if item is None:
                        exhausted = True
                        break
                    item.sink = ready
                    pending.add(item)
                    lane = self._submit(item)
                    lanes.add(lane)
                    if lane.queued >= lane.window:
                        break
                for lane in lanes:
                    lane.pump()
                if not ready.items:
                    if not pending:
                        return
                    await ready.wake.wait()
                ready.wake.clear()
                while ready.items:
                    item = ready.items.popleft()
                    pending.discard(item)
                    if item.status == "unanswered":
                        raise self._lane(item.agent).stopped or AgentStoppedError(f"agent {item.agent} was ended")
                    yield item
        finally:
            for item in pending:
                item.dropped = True

    async def answer(
        self,
        agent: str,
        stimulus: Stimulus,
        sample: int = 0,
        *,
        seed: int | None = None,
        turn: int | None = None,
        options: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        name: str = "",
        order: int | None = None,
        first_attempt: int = 0,
        files: Mapping[str, bytes] | None = None,
    ) -> AgentRequest:
        """Answer one stimulus; ``seed`` is the run seed, ``name`` what the seed is derived for (the agent, if empty).

        ``first_attempt`` is the number that its first attempt has in seeds, where others came before. ``files`` are the
        bytes of the images that the stimulus names, where they are not read from disk.
        ``deadline`` (seconds from now) or a cancellation takes the item out of the queue, or drops its answer. Raises
        AgentStoppedError, and AnswerError ``deadline`` when the time is over.
        """
        item = AgentRequest(
            agent,
            stimuli.canonical(stimulus),
            stimulus.id,
            sample,
            self.run_seed if seed is None else seed,
            name,
            turn,
            options,
            self.next_order() if order is None else order,
        )
        item.first_attempt = first_attempt
        item.files = files
        promise = _Promise()
        item.sink = promise
        if deadline is not None:
            item.deadline = asyncio.get_running_loop().time() + deadline
        self._submit(item).pump()
        try:
            if deadline is None:
                done = await promise.future
            else:
                async with asyncio.timeout_at(item.deadline):
                    done = await promise.future
        except TimeoutError:
            raise AnswerError("deadline", f"no answer within {deadline:g} s") from None
        finally:
            item.dropped, item.files = True, None  # what nobody waits for may stay in the queue, but not its images
        if done.status == "unanswered":
            raise self._lane(agent).stopped or AgentStoppedError(f"agent {agent} was ended")
        return done

    def _submit(self, item: AgentRequest) -> Dispatcher:
        lane = self._lane(item.agent)
        if item.order == 0:
            item.order = self.next_order()
        lane.submit(item)
        return lane

    def _lane(self, agent: str) -> Dispatcher:
        try:
            return self.dispatchers[agent]
        except KeyError:
            raise AgentStoppedError(f"agent {agent} is not loaded") from None

    async def close(self) -> None:
        """End all workers."""
        for name in list(self.dispatchers):
            await self.remove(name)
