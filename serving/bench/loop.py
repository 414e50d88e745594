"""The bare agent at work: no scheduler, no Ray, no records; what a good plain program around it would be.

Threads prepare the next batch (or as many as it takes to give every core one) beside the one that is answered, in one
process. Of an agent whose engine batches by itself, so many calls are kept under way.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from agents import seeds
from agents.answers import CaptionAnswer, ScanpathAnswer
from agents.contract import Agent, Draw, Reply
from agents.errors import AgentStoppedError, AnswerError
from agents.stimuli import Stimulus
from serving.bench import stimuli
from serving.bench.steady import MEASURED, WarmUp
from serving.scheduling.worker import describe

# when its preparation began and ended, what was prepared (or why it could not be), and the draws
Ready = tuple[float, float, list[Any], list[Draw]]
# so many answers, once so many seconds are over
Enough = tuple[int, float]
NEVER: Enough = (0, math.inf)


@dataclass
class Window:
    """What happened in the time that was measured, in ``seconds``; ``latencies`` are those of batches (preparing and
    answering them, without the time in which they only wait for those ahead), or of calls."""

    seconds: float = 0.0
    answered: int = 0
    failed: int = 0
    tokens: int | None = None
    fixations: int | None = None
    latencies: list[float] = field(default_factory=list)
    responding: float = 0.0
    waiting: float = 0.0
    failure: str = ""  # the first one's code and message

    def note(self, reply: Reply | Exception) -> None:
        """Count a reply."""
        if isinstance(reply, Exception):
            self.failed += 1
            code = reply.code if isinstance(reply, AnswerError) else type(reply).__name__
            self.failure = self.failure or f"{code}: {reply}"
            return
        self.answered += 1
        tokens = tokens_of(reply)
        if tokens is not None:
            self.tokens = (self.tokens or 0) + tokens
        if isinstance(reply.answer, ScanpathAnswer):
            self.fixations = (self.fixations or 0) + len(reply.answer.fixations)

    def percentile(self, share: float) -> float:
        """The latency that so large a share of them does not exceed."""
        return sorted(self.latencies)[max(0, math.ceil(share * len(self.latencies)) - 1)]


def tokens_of(reply: Reply) -> int | None:
    """How many tokens were generated for a reply, where the agent tells."""
    if isinstance(reply.answer, CaptionAnswer):
        return reply.answer.tokens
    count = reply.raw.get("tokens") if isinstance(reply.raw, dict) else None
    return count if isinstance(count, int) else None


def draw_for(agent: Agent[Any], stimulus: Stimulus) -> Draw:
    """The draw that a run with the seed 0 has for a stimulus."""
    seed = seeds.derive(0, agent.name, stimulus.id, 0, None, 0)
    return Draw(seed, options=stimuli.options(stimulus))


@dataclass
class Batches:
    """The loop around an agent that answers batches. ``threads`` prepare, in ``pool``."""

    agent: Agent[Any]
    shown: Sequence[Stimulus]
    pool: ThreadPoolExecutor
    threads: int
    _pending: deque[list[Future[Ready]]] = field(default_factory=deque)

    def measure(self, size: int, seconds: float) -> Window:
        """Answer batches of ``size`` for about ``seconds`` in the steady state. What ``respond`` raises is raised."""
        source = cycle(self.shown)
        ahead = max(1, -(-self.threads // size))
        try:
            for _ in range(ahead):
                self._begin(source, size)
            warm_up, warm = WarmUp(seconds), False
            while not warm:
                began = time.perf_counter()
                self._step(source, size, Window())
                warm = warm_up.add(time.perf_counter() - began)
            found, began = Window(), time.perf_counter()
            while len(found.latencies) < MEASURED or found.seconds < seconds:
                self._step(source, size, found)
                found.seconds = time.perf_counter() - began
            return found
        finally:
            self._drop()

    def steady(self, size: int, batches: int) -> Callable[[], None]:
        """What answers so many batches of ``size`` the same way, for whoever watches the device meanwhile: the first is
        prepared before, and none is that nobody answers."""
        source = cycle(self.shown)
        self._begin(source, size)
        wait(self._pending[0])

        def run() -> None:
            for left in reversed(range(batches)):
                if left:
                    self._begin(source, size)
                _, _, prepared, draws = self._next(Window())
                self._respond(prepared, draws)

        return run

    def answers(self, size: int, count: int, enough: Enough = NEVER) -> list[Reply | Exception]:
        """The replies to the first ``count`` stimuli in batches of ``size``, the last one filled up; fewer where there
        are ``enough`` before."""
        source, began = cycle(self.shown), time.perf_counter()
        found: list[Reply | Exception] = []
        while len(found) < count and not _is_enough(found, began, enough):
            self._begin(source, size)
            _, _, prepared, draws = self._next(Window())
            found += self._respond(prepared, draws)
        return found[:count]

    def ready(self, size: int) -> tuple[list[Any], list[Draw]]:
        """One prepared batch with its draws, without the stimuli that could not be prepared."""
        self._begin(cycle(self.shown), size)
        _, _, prepared, draws = self._next(Window())
        good = [place for place, one in enumerate(prepared) if not isinstance(one, Exception)]
        return [prepared[place] for place in good], [draws[place] for place in good]

    def _step(self, source: Iterator[Stimulus], size: int, window: Window) -> None:
        """Begin to prepare one batch, and answer the oldest."""
        self._begin(source, size)
        began, ended, prepared, draws = self._next(window)
        start = time.perf_counter()
        replies = self._respond(prepared, draws)
        end = time.perf_counter()
        window.responding += end - start
        window.latencies.append(ended - began + end - start)
        for reply in replies:
            window.note(reply)

    def _begin(self, source: Iterator[Stimulus], size: int) -> None:
        batch = [next(source) for _ in range(size)]
        each = -(-size // self.threads)
        parts = [batch[start : start + each] for start in range(0, size, each)]
        self._pending.append([self.pool.submit(self._prepare, part) for part in parts])

    def _next(self, window: Window) -> Ready:
        start = time.perf_counter()
        parts = [future.result() for future in self._pending.popleft()]
        window.waiting += time.perf_counter() - start
        return (
            min(began for began, _, _, _ in parts),
            max(ended for _, ended, _, _ in parts),
            [one for _, _, prepared, _ in parts for one in prepared],
            [draw for _, _, _, draws in parts for draw in draws],
        )

    def _drop(self) -> None:
        """Nobody wants what is being prepared; what has begun is waited for, so that it disturbs nothing later."""
        futures = [future for parts in self._pending for future in parts]
        wait([future for future in futures if not future.cancel()])
        self._pending.clear()

    def _prepare(self, part: Sequence[Stimulus]) -> Ready:
        began = time.perf_counter()
        prepared: list[Any] = []
        for stimulus in part:
            try:
                prepared.append(self.agent.prepare(stimulus))
            except AnswerError as error:
                prepared.append(error)
        return began, time.perf_counter(), prepared, [draw_for(self.agent, stimulus) for stimulus in part]

    def _respond(self, prepared: Sequence[Any], draws: Sequence[Draw]) -> list[Reply | Exception]:
        good = [place for place, one in enumerate(prepared) if not isinstance(one, Exception)]
        replies: list[Reply | Exception] = list(prepared)
        if good:
            answered = self.agent.respond([prepared[place] for place in good], [draws[place] for place in good])
            if len(answered) != len(good):
                raise AgentStoppedError(f"{len(answered)} replies to a batch of {len(good)}")
            for place, reply in zip(good, answered, strict=True):
                replies[place] = reply
        return replies


@dataclass
class Calls:
    """The loop around an agent whose engine batches by itself; ``runner`` is the one event loop that it knows."""

    agent: Agent[Any]
    shown: Sequence[Stimulus]
    pool: ThreadPoolExecutor
    runner: asyncio.Runner

    def measure(self, size: int, seconds: float) -> Window:
        """Keep ``size`` calls under way for about ``seconds`` in the steady state. What a call raises is raised,
        unless it fails that stimulus alone."""
        return self.runner.run(self._measure(size, seconds))

    def answers(self, size: int, count: int, enough: Enough = NEVER) -> list[Reply | Exception]:
        """The replies to the first ``count`` stimuli, ``size`` calls under way; fewer where there are ``enough``
        before."""
        return self.runner.run(self._answers(size, count, enough))

    async def _measure(self, size: int, seconds: float) -> Window:
        source = cycle(self.shown)
        rounds = _Rounds(size, seconds)

        async def keep_busy() -> None:
            while True:
                began, reply = await self._answer(next(source), rounds.activity)
                rounds.end_call(time.perf_counter() - began, reply)

        calls = [asyncio.ensure_future(keep_busy()) for _ in range(size)]
        try:
            await asyncio.wait([*calls, rounds.over], return_when=asyncio.FIRST_COMPLETED)
            for call in calls:
                if call.done():
                    call.result()
            return rounds.found
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _answers(self, size: int, count: int, enough: Enough) -> list[Reply | Exception]:
        source, activity, began = cycle(self.shown), _Activity(), time.perf_counter()
        found: dict[int, Reply | Exception] = {}
        places = iter(range(count))

        async def keep_busy() -> None:
            while not _is_enough(found, began, enough) and (place := next(places, None)) is not None:
                found[place] = (await self._answer(next(source), activity))[1]

        await asyncio.gather(*(keep_busy() for _ in range(size)))
        return [found[place] for place in range(len(found))]

    async def _answer(self, stimulus: Stimulus, activity: _Activity) -> tuple[float, Reply | Exception]:
        began = time.perf_counter()
        try:
            prepared = await asyncio.get_running_loop().run_in_executor(self.pool, self.agent.prepare, stimulus)
            activity.enter()
            try:
                return began, await self.agent.respond_one(prepared, draw_for(self.agent, stimulus))
            finally:
                activity.leave()
        except AnswerError as error:
            return began, error


class _Rounds:
    """Ends the warm-up, and then the window, with a whole round of ``size`` calls: calls that begin together and are of
    one length end together, too, so that a window that cuts a round would have all of it or nothing. To be made in the
    loop that runs the calls."""

    def __init__(self, size: int, seconds: float) -> None:
        self.found = Window()
        self.activity = _Activity()
        self.over = asyncio.get_running_loop().create_future()
        self._size, self._seconds = size, seconds
        self._began, self._ended = time.perf_counter(), 0
        self._warm_up, self._is_warm = WarmUp(seconds), False

    def end_call(self, latency: float, reply: Reply | Exception) -> None:
        """Count a call that has ended."""
        if self.over.done():
            return
        self._ended += 1
        if self._is_warm:
            self.found.latencies.append(latency)
            self.found.note(reply)
        if self._ended % self._size:
            return
        elapsed = time.perf_counter() - self._began
        if self._is_warm:
            if elapsed >= self._seconds and self._ended >= MEASURED * self._size:
                self.found.seconds, self.found.responding = elapsed, self.activity.total()
                self.found.waiting = max(0.0, elapsed - self.found.responding)
                self.over.set_result(None)
            return
        self._began += elapsed
        if self._warm_up.add(elapsed):
            self._is_warm, self._ended = True, 0
            self.activity.restart()


class _Activity:
    """For how long at least one call was under way."""

    def __init__(self) -> None:
        self._count, self._since, self._total = 0, 0.0, 0.0

    def enter(self) -> None:
        if not self._count:
            self._since = time.perf_counter()
        self._count += 1

    def leave(self) -> None:
        self._count -= 1
        if not self._count:
            self._total += time.perf_counter() - self._since

    def restart(self) -> None:
        self._total, self._since = 0.0, time.perf_counter()

    def total(self) -> float:
        return self._total + (time.perf_counter() - self._since if self._count else 0.0)


def _is_enough(found: Sized, began: float, enough: Enough) -> bool:
    fewest, seconds = enough
    return len(found) >= fewest and time.perf_counter() - began >= seconds


def said(reply: Reply | Exception) -> str:
    """An answer as text, for comparing two: everything that is in it, or why there is none."""
    if isinstance(reply, Reply):
        return reply.answer.model_dump_json()
    return reply.code if isinstance(reply, AnswerError) else describe(reply)
