"""Files, HTTP requests and conversations share batches, filters, attempts and recovery."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any

from agents import stimuli
from agents.errors import AgentStoppedError, AnswerError
from agents.stimuli import Stimulus
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.request import AgentRequest


class Scheduler:
    def __init__(self, run_seed: int = 0) -> None:
        self.run_seed = run_seed
        self.dispatchers: dict[str, Dispatcher] = {}
        self._orders = 0

    async def remove(self, name: str) -> None:
        """End an agent's workers; open requests come back unanswered."""
        if name in self.dispatchers:
            await self.dispatchers.pop(name).close()

    def next_order(self) -> int:
        self._orders += 1
        return self._orders

    async def stream(self, requests: Iterable[AgentRequest]) -> AsyncGenerator[AgentRequest, None]:
        """Yield requests as they are answered, as fast as workers can use them. Raises AgentStoppedError."""
        finished: deque[AgentRequest] = deque()
        wake = asyncio.Event()

        def deliver(request: AgentRequest) -> None:
            finished.append(request)
            wake.set()

        pending: set[AgentRequest] = set()
        dispatchers: set[Dispatcher] = set()
        source = iter(requests)
        try:
            while True:
                for request in source:
                    request.deliver = deliver
                    pending.add(request)
                    dispatcher = self._submit(request)
                    dispatchers.add(dispatcher)
                    if dispatcher.queued >= dispatcher.window:
                        break
                for dispatcher in dispatchers:
                    dispatcher.dispatch()
                if not pending:
                    return
                await wake.wait()
                wake.clear()
                while finished:
                    request = finished.popleft()
                    pending.discard(request)
                    if request.status == "unanswered":
                        raise self._why_unanswered(request.agent)
                    yield request
        finally:
            for request in pending:
                request.cancelled = True

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
        failed_before: str = "",
        say: Callable[[str], None] | None = None,
    ) -> AgentRequest:
        """Answer a stimulus; ``seed`` is the run's. Raises AgentStoppedError, and AnswerError after ``deadline`` s."""
        answered: asyncio.Future[AgentRequest] = asyncio.get_running_loop().create_future()
        request = AgentRequest(
            agent,
            stimuli.canonical(stimulus),
            stimulus.id,
            sample,
            self.run_seed if seed is None else seed,
            name,
            turn,
            options,
            order or 0,
            lambda request: None if answered.done() else answered.set_result(request),
            files,
            failed_before,
            say,
            first_attempt=first_attempt,
        )
        self._submit(request).dispatch()
        try:
            async with asyncio.timeout(deadline):
                await answered
        except TimeoutError:
            raise AnswerError("deadline", f"no answer within {deadline:g} s") from None
        finally:  # what nobody waits for may stay in the queue, but not its images
            request.cancelled, request.deliver, request.files = True, None, None
        if request.status == "unanswered":
            raise self._why_unanswered(agent)
        return request

    def _submit(self, request: AgentRequest) -> Dispatcher:
        dispatcher = self._dispatcher(request.agent)
        request.order = request.order or self.next_order()
        dispatcher.submit(request)
        return dispatcher

    def _dispatcher(self, agent: str) -> Dispatcher:
        try:
            return self.dispatchers[agent]
        except KeyError:
            raise AgentStoppedError(f"agent {agent} is not loaded") from None

    def _why_unanswered(self, agent: str) -> AgentStoppedError:
        return self._dispatcher(agent).stopped or AgentStoppedError(f"agent {agent} was ended")

    async def close(self) -> None:
        for name in list(self.dispatchers):
            await self.remove(name)
