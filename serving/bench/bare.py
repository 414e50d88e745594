"""The bare agent: a worker in a fresh process, without Ray, queue and records, which is kept busy with two batches.

A fresh process, because memory and kernels of an earlier agent would be measured too.
"""

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
from serving.scheduling.recovery import describe_error
from serving.scheduling.tasks import all_of
from serving.scheduling.worker import NO_ROOM, Worker, WorkerSpec
from serving.sets.stimulus_row import StimulusRow

# The warm-up takes at least this part of the measured seconds, and this number of rounds: for each new shape of a batch
# a process needs new memory and kernels.
WARM_UP = 0.2
WARM_UP_ROUNDS = 3
ROUNDS = 2  # measured at least, however long they take
PATIENCE = 10.0  # seconds that a process may take to end after its last message


class DiedError(AgentStoppedError):
    """The process ended before its last message. ``killed`` says whether SIGKILL ended it, as where memory runs out."""

    def __init__(self, code: int) -> None:
        self.killed = code == -signal.SIGKILL
        hint = ", as the system does where memory runs out" if self.killed else ""
        super().__init__(f"its process ended with code {code}{hint}")


def in_child(function: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Call ``function(send, *arguments)`` in a fresh process, and yield each value that it sends.

    What is not taken to the end is killed. Raises AgentStoppedError with the message of an error in the process, and
    DiedError where it ends without one.
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
        writer.send(("error", str(error) if isinstance(error, TuringlikeError) else describe_error(error)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Window:
    """The time in which a rate is measured: after a warm-up, whole rounds for about ``seconds``. Times are those of
    ``time.perf_counter``."""

    seconds: float
    """How long is to be measured."""
    began: float
    """When the warm-up or, after it, the measurement began."""
    together: int = 1
    """Batches, or calls, in a round."""
    ended: float = math.nan
    """When the last whole round of the measurement ended."""
    count: int = 0
    """Batches, or calls, in the measured rounds."""
    warm: bool = False
    """Whether the warm-up is over."""
    over: bool = False
    """Whether enough was measured."""
    _ends: int = 0

    def add(self, now: float) -> None:
        """Note that a batch, or a call, has ended at ``now``."""
        self._ends += 1
        rounds, partial = divmod(self._ends, self.together)
        if partial:
            return
        if self.warm:
            self.ended = now
            self.count = self._ends
            self.over = now - self.began >= self.seconds and rounds >= ROUNDS
        elif rounds >= WARM_UP_ROUNDS and now - self.began >= WARM_UP * self.seconds:
            self.warm = True
            self.began = now
            self._ends = 0


@dataclass
class WindowTally:
    """What came back while ``window`` measured."""

    window: Window
    answered: int = 0
    """Stimuli that were answered."""
    failed: int = 0
    """Stimuli that were not."""
    tokens: int | None = None
    """Tokens that were written; None where the agent counts none."""
    fixations: int | None = None
    """Fixations of all scanpaths; None for other tasks."""
    latencies: list[float] = field(default_factory=list)
    """The seconds of each batch, or call."""
    responding: float = 0.0
    """Seconds in the model, summed over all batches."""
    failure: str = ""
    """Code and message of the first failure."""

    @property
    def seconds(self) -> float:
        """How long was measured."""
        return self.window.ended - self.window.began

    def note(self, reply: BatchReply, threads: int) -> None:
        """Add the reply to a batch whose stimuli were prepared in ``threads`` threads."""
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
        """The time in seconds within which this share (0 to 1) of the batches was answered."""
        return sorted(self.latencies)[max(0, math.ceil(share * len(self.latencies)) - 1)]


@dataclass
class Setup:
    """An agent to measure, and how."""

    entry: Entry
    """The agent's entry of the catalogue."""
    settings: Mapping[str, Any]
    """The agent's settings that differ from its entry's, by field."""
    device: str
    """"cpu" or "cuda:0"."""
    task: Task
    """The only task that is measured."""
    mode: Mode | None
    """The viewing mode; None for tasks other than attention prediction."""
    seconds: float
    """How long each batch size is measured."""
    source: Path = Path()
    """The set of stimuli that :func:`serving.bench.made_stimuli.write` wrote."""

    def agent(self) -> Agent[Any]:
        """The agent, not loaded."""
        return self.entry.make(self.settings)


class BareAgent:
    """A loaded worker in this process, which has answered once. ``load_s`` and ``first_answer_s`` are the seconds from
    the start to either. Raises the agent's errors."""

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
        """Unload the agent."""
        self._runner.close()
        self._worker.close()

    def measure(self, size: int, seconds: float) -> WindowTally:
        """Answer batches of ``size`` stimuli, two at once, for about ``seconds``; for an agent that batches by itself,
        ``size`` calls at once. Raises MemoryError where they do not fit, and FatalDeviceError."""
        return self._runner.run(self._measure(size, seconds))

    async def _measure(self, size: int, seconds: float) -> WindowTally:
        source = cycle(self.requests)
        continuous = self.agent.declaration().batches_by_itself
        tally = WindowTally(Window(seconds, time.perf_counter(), together=size if continuous else 1))
        batch_size = 1 if continuous else size
        under_way = size if continuous else 2

        async def keep_busy() -> None:
            while not tally.window.over:
                # The same stimuli come again and again, and each time a run would parse them.
                batch = [
                    request._replace(row=replace(request.row, stimulus=None)) for request in islice(source, batch_size)
                ]
                reply = await self._worker.answer(batch)
                if reply.limit is not None or any(packed.code == "out_of_memory" for packed in reply.replies):
                    raise MemoryError(NO_ROOM if size == 1 else f"{reply.limit or 'fewer'} at once fit")
                if tally.window.warm and not tally.window.over:
                    tally.note(reply, self.threads)
                tally.window.add(time.perf_counter())

        await all_of(keep_busy() for _ in range(under_way))
        return tally
