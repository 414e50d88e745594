"""The bare agent: a worker in a fresh process, two batches in hand, without Ray or records."""

import asyncio
import math
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import orjson

from agents.contract import Agent, Entry, derive_seed
from agents.errors import AgentStoppedError, TuringlikeError
from agents.stimuli import ConversationStimulus, Mode, Task
from serving.conversations.scenario import next_turn
from serving.scheduling import machine
from serving.scheduling.batch import BatchReply, PackedRequest
from serving.scheduling.recovery import describe
from serving.scheduling.tasks import all_of
from serving.scheduling.worker import NO_ROOM, Worker, WorkerSpec
from serving.sets.stimulus_row import StimulusRow

WARM_UP = 0.2  # of the measured seconds are warm-up at the least,
WARM_UP_ROUNDS = 3  # and so many rounds: a fresh process gets memory and kernels for each new shape
ROUNDS = 2  # that are measured at the least, however long they take
PATIENCE = 10.0  # seconds in which a process may end after its last message


class DiedError(AgentStoppedError):
    """The process ended early; ``killed`` by a signal."""

    def __init__(self, code: int) -> None:
        self.killed = code == -signal.SIGKILL
        hint = ", as the system does where memory runs out" if self.killed else ""
        super().__init__(f"its process ended with code {code}{hint}")


def in_child(function: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Yield what ``function(send, *arguments)`` sends from a fresh process. Raises AgentStoppedError and DiedError."""
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
    """A rate's time: after a warm-up, about ``seconds`` of rounds of ``together`` batches (or calls)."""

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
        rounds, partial = divmod(self._ends, self.together)
        if partial:
            return
        if self.warm:
            self.ended = at
            self.count = self._ends
            self.over = at - self.began >= self.seconds and rounds >= ROUNDS
        elif rounds >= WARM_UP_ROUNDS and at - self.began >= WARM_UP * self.seconds:
            self.warm = True
            self.began = at
            self._ends = 0


@dataclass
class Tally:
    """What came back during ``window``; ``latencies`` in seconds per batch (or call)."""

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

    def note(self, reply: BatchReply, threads: int) -> None:
        preparing = sum(packed.preparing for packed in reply.replies) / min(threads, len(reply.replies))
        self.latencies.append(preparing + reply.responding)
        self.responding += reply.responding
        for packed in reply.replies:
            if packed.code is not None:
                self.failed += 1
                self.failure = self.failure or f"{packed.code}: {packed.content!s}"
                continue
            self.answered += 1
            answer = orjson.loads(packed.content)
            more = orjson.loads(packed.raw or b"null")
            tokens = answer.get("tokens", more.get("tokens") if isinstance(more, dict) else None)
            if isinstance(tokens, int):
                self.tokens = (self.tokens or 0) + tokens
            if "fixations" in answer:
                self.fixations = (self.fixations or 0) + len(answer["fixations"])

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[max(0, math.ceil(share * len(self.latencies)) - 1)]


@dataclass
class Setup:
    """An agent to measure on ``device`` ("cpu", "cuda:0") with the stimuli in ``source``."""

    entry: Entry
    settings: Mapping[str, Any]
    device: str
    task: Task
    mode: Mode | None
    seconds: float
    source: Path = Path()

    def agent(self) -> Agent[Any]:
        return self.entry.make(self.settings)


class BareAgent:
    """A worker in this process; ``load_s`` and ``first_answer_s`` in seconds. Raises the agent's errors."""

    def __init__(self, setup: Setup) -> None:
        began = time.perf_counter()
        self.threads = machine.cores()
        folder = str(setup.source.parent)
        self._worker = Worker(WorkerSpec(setup.entry, setup.settings, folder, setup.device, self.threads))
        self.agent = self._worker.agent
        machine.set_up_process(continuous=self.agent.declaration().batches_by_itself)
        free = machine.available()
        if free is not None and setup.device == "cpu" and not self.agent.declaration().batches_by_itself:
            # To want more is an error here; otherwise the system may end other programs first.
            resource.setrlimit(resource.RLIMIT_DATA, (free, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        self._worker.load()
        self.load_s = time.perf_counter() - began
        machine.freeze()
        self.requests: list[PackedRequest] = []
        for number, line in enumerate(setup.source.read_bytes().splitlines()):
            row = StimulusRow.of_line(line, number, folder)
            stimulus = row.parsed()
            seed = derive_seed(0, self.agent.name, row.id, 0, None, 0)
            options = next_turn(stimulus)[1] if isinstance(stimulus, ConversationStimulus) else {}
            self.requests.append(PackedRequest(row, seed, options=options))
        self._runner = asyncio.Runner()  # an engine that batches by itself knows a single event loop
        self._runner.run(self._worker.answer(self.requests[:1]))
        self.first_answer_s = time.perf_counter() - began

    def close(self) -> None:
        self._runner.close()
        self._worker.close()

    def measure(self, size: int, seconds: float) -> Tally:
        """Answer batches of ``size`` (or calls) for about ``seconds``. Raises MemoryError and FatalDeviceError."""
        return self._runner.run(self._measure(size, seconds))

    async def _measure(self, size: int, seconds: float) -> Tally:
        source = cycle(self.requests)
        continuous = self.agent.declaration().batches_by_itself
        tally = Tally(Window(seconds, time.perf_counter(), together=size if continuous else 1))
        each, under_way = (1, size) if continuous else (size, 2)

        async def keep_busy() -> None:
            while not tally.window.over:
                # The same stimuli come again and again, and each time a run would parse them.
                batch = [request._replace(row=replace(request.row, stimulus=None)) for request in islice(source, each)]
                reply = await self._worker.answer(batch)
                if reply.limit is not None or any(packed.code == "out_of_memory" for packed in reply.replies):
                    raise MemoryError(NO_ROOM if size == 1 else f"{reply.limit or 'fewer'} at once fit")
                if tally.window.warm and not tally.window.over:
                    tally.note(reply, self.threads)
                tally.window.add(time.perf_counter())

        await all_of(keep_busy() for _ in range(under_way))
        return tally
