"""The bare agent, without scheduler, Ray or records, in a fresh process: threads prepare the next stimuli beside the
batch that is answered. Of an agent whose engine batches by itself, as many calls are kept under way."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agents.answers import CaptionAnswer, ScanpathAnswer
from agents.contract import Agent, Draw, Entry, Reply, derive_seed
from agents.errors import AgentStoppedError, AnswerError, TuringlikeError, UnavailableError
from agents.stimuli import Mode, Stimulus, Task
from serving.bench import made_stimuli
from serving.scheduling import machine
from serving.scheduling.recovery import describe

WARM_UP = 0.2  # of the measured seconds are warm-up at the least,
WARM_UP_ROUNDS = 3  # and so many rounds: a fresh process gets memory and kernels for each new shape;
LONGEST_WARM_UP = 10.0  # but not once they took so many times the measured seconds
ROUNDS = 2  # that are measured at the least, however long they take
PATIENCE = 10.0  # seconds in which a process may end after its last message


class DiedError(AgentStoppedError):
    """The process ended before it was done. ``killed``: by the system, or somebody."""

    def __init__(self, code: int) -> None:
        self.killed = code == -signal.SIGKILL
        ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code} and no result"
        super().__init__(f"its process {ended}" + ", as the system does where memory runs out" * self.killed)


def in_child(function: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Call ``function(send, *arguments)`` in a fresh interpreter; yields what it sends, as it does.

    Raises AgentStoppedError with what the function raised, in one sentence, and DiedError. What it prints goes to
    stderr. The process is killed when the iterator is closed, and ends itself when its parent was killed.
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


def _main(function: Callable[..., None], arguments: tuple[Any, ...], writer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends this process
    os.dup2(sys.stderr.fileno(), 1)  # stdout is the command's result alone
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function(lambda value: writer.send(("value", value)), *arguments)
        writer.send(("end", None))
    except BrokenPipeError:
        return  # nobody listens any more
    except Exception as error:
        writer.send(("error", str(error) if isinstance(error, TuringlikeError) else describe(error)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Window:
    """The time in which a rate is measured: after a warm-up, all of the rounds in about ``seconds``.

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
        """Ends per second in the rounds so far; None if they are too few."""
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
    failure: str = ""  # code and message of the first

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
    """One agent as it is measured: with the stimuli in ``source``, on ``device`` ("cpu" or "cuda:0")."""

    entry: Entry
    settings: Mapping[str, Any]
    device: str
    task: Task
    mode: Mode | None
    source: Path
    seconds: float

    def agent(self) -> Agent[Any]:
        return self.entry.make(self.settings)


@dataclass
class BareAgent:
    """A loaded agent and the loop around it; ``threads`` prepare."""

    agent: Agent[Any]
    stimuli: Sequence[Stimulus]
    threads: int

    def __post_init__(self) -> None:
        self._runner = asyncio.Runner()  # the one event loop that an engine which batches by itself knows
        self._preparers = ThreadPoolExecutor(self.threads, "prepare", initializer=machine.yield_to_device)

    def close(self) -> None:
        """End the threads and the agent."""
        self._runner.close()
        self._preparers.shutdown()
        self.agent.close()

    def measure(self, size: int, seconds: float) -> Tally:
        """Answer batches of ``size``, or keep so many calls under way, for about ``seconds`` in the steady state.
        Raises what ``respond`` raises, and of a call what does not fail its stimulus alone."""
        return self._runner.run(self._measure(size, seconds))

    def answer(self, batch: Sequence[Stimulus]) -> list[Reply | Exception]:
        """The replies to one batch, or to as many calls at once."""
        return self._runner.run(self._answer(batch))[0]

    async def _measure(self, size: int, seconds: float) -> Tally:
        source, continuous = cycle(self.stimuli), self.agent.continuous()
        tally = Tally(Window(seconds, time.perf_counter(), together=size if continuous else 1))
        each = 1 if continuous else size
        # Beside the batch that is answered the next is prepared, or as many stimuli as there are threads.
        under_way = size if continuous else 1 + max(1, self.threads // size)

        async def keep_busy() -> None:
            while not tally.window.over:
                replies, preparing, responding = await self._answer(list(islice(source, each)))
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

    async def _answer(self, batch: Sequence[Stimulus]) -> tuple[list[Reply | Exception], float, float]:
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
        draws = [self._draw(batch[number]) for number in good]
        began = time.perf_counter()
        if self.agent.continuous():
            replies: Sequence[Reply | Exception] = await asyncio.gather(*map(self._call, values, draws))
        else:
            replies = self.agent.respond(values, draws) if good else []
        responding = time.perf_counter() - began
        for number, reply in zip(good, replies, strict=True):
            results[number] = reply
        return results, preparing, responding

    def _draw(self, stimulus: Stimulus) -> Draw:
        seed = derive_seed(0, self.agent.name, stimulus.id, 0, None, 0)  # of a run with the seed 0
        return Draw(seed, options=made_stimuli.options(stimulus))

    def _prepare(self, part: Sequence[Stimulus]) -> tuple[list[Any], float]:
        """The prepared values, or errors, and when the last was ready."""
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
    """The agent, loaded in this process, and the seconds until it was loaded, and until its first answer. Raises
    UnavailableError, and whatever the agent raises."""
    began = time.perf_counter()
    agent = setup.agent()
    machine.set_up_process(continuous=agent.continuous())
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
    machine.freeze()
    bare = BareAgent(agent, made_stimuli.read(setup.source), threads)
    bare.answer(bare.stimuli[:1])
    yield bare, load_s, time.perf_counter() - began
    bare.close()
