"""The bare agent, without scheduler, Ray or records: one process, in which threads prepare the next stimuli beside the
batch that is answered. Of an agent whose engine batches by itself, as many calls are kept under way."""

from __future__ import annotations

import asyncio
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from agents.answers import CaptionAnswer, ScanpathAnswer
from agents.contract import Agent, Draw, Entry, Reply, derive_seed
from agents.errors import AnswerError, UnavailableError
from agents.stimuli import Mode, Stimulus, Task
from serving.bench import stimuli as made_stimuli
from serving.scheduling import machine, worker_process

WARM_UP = 0.2  # of the measured seconds are warm-up at the least,
WARM_UP_ROUNDS = 3  # and so many rounds: a fresh process finds memory and kernels for each new shape;
LONGEST_WARM_UP = 10.0  # but not once they took so many times the measured seconds
ROUNDS = 2  # that are measured at the least, however long they take


@dataclass
class Window:
    """The time in which a rate is measured: after a warm-up, whole rounds, for ``seconds``.

    ``together`` ends of batches (or calls) make a round: what begins together ends together, and a window that cuts a
    round would have all of it or nothing. ``count`` of them lie between the times ``began`` and ``ended``.
    """

    seconds: float
    began: float
    together: int = 1
    ended: float = math.nan
    count: int = 0
    warm: bool = False
    over: bool = False
    _ends: int = 0

    def add(self, at: float) -> None:
        self._ends += 1
        took, rounds = at - self.began, self._ends // self.together
        if self._ends % self.together:
            return
        if self.warm:
            self.ended, self.count = at, self._ends
            self.over = took >= self.seconds and rounds >= ROUNDS
        elif took >= WARM_UP * self.seconds and (
            rounds >= WARM_UP_ROUNDS or took >= LONGEST_WARM_UP * self.seconds
        ):  # fmt: skip
            self.warm, self.began, self._ends = True, at, 0

    def rate(self) -> float | None:
        """Ends per second in the whole rounds so far; None if they are too few."""
        if self.count < ROUNDS * self.together or self.ended <= self.began:
            return None
        return self.count / (self.ended - self.began)


@dataclass
class Tally:
    """What came back while ``window`` was measured. ``latencies`` are those of batches (or calls): to prepare one and
    to answer it, without the time in which it waits for those ahead."""

    window: Window
    answered: int = 0
    failed: int = 0
    tokens: int | None = None
    fixations: int | None = None
    latencies: list[float] = field(default_factory=list)
    responding: float = 0.0
    failure: str = ""  # the first one's code and message

    @property
    def seconds(self) -> float:
        return self.window.ended - self.window.began

    def note(self, reply: Reply | Exception) -> None:
        if isinstance(reply, Exception):
            self.failed += 1
            self.failure = self.failure or f"{getattr(reply, 'code', type(reply).__name__)}: {reply}"
            return
        self.answered += 1
        if isinstance(reply.answer, CaptionAnswer):
            tokens = reply.answer.tokens
        else:
            tokens = reply.raw.get("tokens") if isinstance(reply.raw, dict) else None
        if isinstance(tokens, int):
            self.tokens = (self.tokens or 0) + tokens
        if isinstance(reply.answer, ScanpathAnswer):
            self.fixations = (self.fixations or 0) + len(reply.answer.fixations)

    def percentile(self, share: float) -> float:
        """The latency that so large a share of them does not exceed."""
        return sorted(self.latencies)[max(0, math.ceil(share * len(self.latencies)) - 1)]


@dataclass(frozen=True)
class Setup:
    """One agent as it is measured: asked the stimuli in ``source`` on ``device`` ("cpu" or "cuda:0")."""

    entry: Entry
    settings: Mapping[str, Any]
    device: str
    task: Task
    mode: Mode | None
    source: Path
    seconds: float

    def agent(self) -> Agent[Any]:
        return self.entry.make(self.settings)

    def stimuli(self) -> list[Stimulus]:
        return made_stimuli.read(self.source)


def draw_for(agent: Agent[Any], stimulus: Stimulus) -> Draw:
    """The draw that a run with the seed 0 has for a stimulus."""
    seed = derive_seed(0, agent.name, stimulus.id, 0, None, 0)
    return Draw(seed, options=made_stimuli.options(stimulus))


@dataclass
class BareAgent:
    """A loaded agent and the loop around it; ``threads`` prepare."""

    agent: Agent[Any]
    stimuli: Sequence[Stimulus]
    threads: int

    def __post_init__(self) -> None:
        self._runner = asyncio.Runner()  # the one event loop that an engine which batches by itself knows
        self._preparers = ThreadPoolExecutor(self.threads, "prepare", initializer=worker_process.yield_to_device)

    def close(self) -> None:
        """End the threads and the agent."""
        self._runner.close()
        self._preparers.shutdown()
        self.agent.close()

    def measure(self, size: int, seconds: float) -> Tally:
        """Answer batches of ``size``, or keep so many calls under way, for about ``seconds`` in the steady state.
        Raises what ``respond`` raises, and of a call what does not fail its stimulus alone."""
        return self._runner.run(self._measure(size, seconds))

    def ask(self, batch: Sequence[Stimulus]) -> list[Reply | Exception]:
        """The replies to one batch, or to as many calls at once."""
        return self._runner.run(self._ask(batch))[0]

    async def _measure(self, size: int, seconds: float) -> Tally:
        source, continuous = cycle(self.stimuli), self.agent.continuous()
        tally = Tally(Window(seconds, time.perf_counter(), together=size if continuous else 1))
        each = 1 if continuous else size
        # Beside the batch that is answered the next is prepared, or as many stimuli as there are threads.
        under_way = size if continuous else 1 + max(1, self.threads // size)

        async def keep_busy() -> None:
            while not tally.window.over:
                replies, preparing, responding = await self._ask(list(islice(source, each)))
                if tally.window.warm and not tally.window.over:
                    tally.latencies.append(preparing + responding)
                    tally.responding += responding
                    for reply in replies:
                        tally.note(reply)
                tally.window.add(time.perf_counter())

        tasks = [asyncio.create_task(keep_busy()) for _ in range(under_way)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return tally
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, batch: Sequence[Stimulus]) -> tuple[list[Reply | Exception], float, float]:
        """The replies, and the seconds of preparing and of responding."""
        began = time.perf_counter()
        parts = [batch[start :: self.threads] for start in range(min(self.threads, len(batch)))]
        loop = asyncio.get_running_loop()
        done = await asyncio.gather(*(loop.run_in_executor(self._preparers, self._prepare, part) for part in parts))
        preparing = max(ended for _, ended in done) - began
        results: list[Any] = [None] * len(batch)
        for start, (part, _) in enumerate(done):
            results[start :: self.threads] = part
        good = [number for number, value in enumerate(results) if not isinstance(value, AnswerError)]
        values = [results[number] for number in good]
        draws = [draw_for(self.agent, batch[number]) for number in good]
        began = time.perf_counter()
        if self.agent.continuous():
            replies: Sequence[Reply | Exception] = await asyncio.gather(*map(self._call, values, draws))
        else:
            replies = self.agent.respond(values, draws) if good else []
        responding = time.perf_counter() - began
        for number, reply in zip(good, replies, strict=True):
            results[number] = reply
        return results, preparing, responding

    def _prepare(self, part: Sequence[Stimulus]) -> tuple[list[Any], float]:
        """What was prepared (or why it could not be), and when that ended."""
        prepared: list[Any] = []
        for stimulus in part:
            try:
                prepared.append(self.agent.prepare(stimulus))
            except AnswerError as error:
                prepared.append(error)
        return prepared, time.perf_counter()

    async def _call(self, value: Any, draw: Draw) -> Reply | Exception:
        try:
            return await self.agent.respond_one(value, draw)
        except AnswerError as error:
            return error


@contextmanager
def loaded(setup: Setup) -> Iterator[tuple[BareAgent, float, float]]:
    """The agent, loaded in this process and asked once, and the seconds until it was loaded, and until its first
    answer. Raises UnavailableError, and whatever the agent raises."""
    began = time.perf_counter()
    agent = setup.agent()
    worker_process.begin(continuous=agent.continuous())
    if (missing := agent.missing()) is not None:
        raise UnavailableError(missing)
    free = machine.available()
    if free is not None and setup.device == "cpu" and not agent.continuous():
        # To ask for more is an error here; otherwise the system may end other programs first.
        resource.setrlimit(resource.RLIMIT_DATA, (free, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    agent.open()
    agent.load(setup.device)
    load_s = time.perf_counter() - began
    threads = machine.cores()
    if setup.device == "cpu" and (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads if agent.parallel else 1)
    worker_process.freeze()
    bare = BareAgent(agent, setup.stimuli(), threads)
    bare.ask(bare.stimuli[:1])
    yield bare, load_s, time.perf_counter() - began
    bare.close()


def measure_once(send: Callable[[object], None], setup: Setup, size: int) -> None:
    """Sends the stimuli per second at one size; for a process of its own. Raises as :func:`loaded` does."""
    with loaded(setup) as (bare, _, _):
        tally = bare.measure(size, setup.seconds)
        send(tally.answered / tally.seconds)
