"""The same agents behind the whole machinery: scheduler, Ray workers, records on disk.

It is done as ``generate`` does it, over a set without an end: items are made from its rows, answered by the workers of
a fleet, and written into a store as records. What is measured is the steady state, from the delivery of one batch to
that of a later one; starting Ray, loading, each worker's first batches and the end of the set are left out. Of agents
that converse single turns are asked, with the histories that the bare agent is given.

All of it runs in a process of its own (:mod:`serving.bench.apart`), the only one that imports Ray.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import stimuli as canon
from agents.contract import Agent
from agents.entry import Entry
from agents.errors import AgentStoppedError, TuringlikeError
from agents.stimuli import ConversationStimulus, Stimulus
from agents.tasks import Mode, Task
from serving.bench import apart, remembered, stimuli, sweep
from serving.bench.results import EndToEnd, Failed, Measured, Packed, Part
from serving.bench.steady import FEWEST, LONGEST, MEASURED, WARM
from serving.bench.table import rate, workers
from serving.runs.record_lines import RecordHeader
from serving.scheduling import worker_process as process
from serving.scheduling.placement import Device, Need, Node, fits
from serving.scheduling.request import AgentRequest
from serving.scheduling.worker import describe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from serving.runs.store import Store
    from serving.scheduling.cluster import Cluster
    from serving.scheduling.replicas import ReplicaPool
    from serving.scheduling.scheduler import Scheduler

REPLICAS = (1, 2, 4)
STIMULI = 1024  # of each kind; then the set begins anew
LOOK = 0.02  # seconds between two looks at whether it is enough
SETTLING, QUIET = 0.5, 0.1  # Ray has started once its processes use less than this share of a core for so many seconds
PATIENCE = 30.0  # seconds for that at most,
HURRY = 10.0  # and so many times the measured seconds


@dataclass(frozen=True)
class Job:
    """What is measured: agents as they were measured bare, in ``folder``, which may be filled."""

    measured: tuple[Measured, ...]
    entries: Mapping[str, Entry]
    settings: Mapping[str, Mapping[str, Any]]
    folder: Path
    seconds: float
    device: Device


@dataclass
class Found:
    """What was found: by agent one figure for each number of workers; what could not be measured is in ``failed``."""

    runs: dict[str, tuple[EndToEnd, ...]] = field(default_factory=dict)
    packed: Packed | None = None
    failed: list[Failed] = field(default_factory=list)


def measure(
    found: Found,
    measured: Sequence[Measured],
    entries: Mapping[str, Entry],
    settings: Mapping[str, Mapping[str, Any]],
    folder: Path,
    *,
    seconds: float,
    device: Device,
    say: Callable[[str], None],
) -> None:
    """Measure each agent at its best batch size with 1, 2 and 4 workers, as far as there are cores or GPUs for them,
    and, of several agents, all together with one worker each. ``found`` is filled as it goes on, so that what ends
    this early leaves what there was.

    The ratio is to the bare agent at the same batch size, measured once more right before and right after: on a machine
    that is not as fast all the time, the mean of the two is nearest to what it was meanwhile. Raises AgentStoppedError
    if Ray cannot be started.
    """
    job = Job(tuple(one for one in measured if one.best), entries, settings, folder, seconds, device)
    with closing(apart.run(run, job)) as messages:
        for message in messages:
            match message:
                case Packed():
                    found.packed = message
                    for name, figure in message.stimuli_s.items():
                        say(f"{name}: together with the others: {rate(figure)} stimuli/s")
                case Failed():
                    found.failed.append(message)
                    say(f"{message.agent}: {message.message}")
                case (str(name), EndToEnd() as one):
                    found.runs[name] = (*found.runs.get(name, ()), one)
                    whole = f"{workers(one.replicas)}: {rate(one.stimuli_s)} stimuli/s"
                    say(f"{name}: end to end, {whole}, {one.ratio:.2f} of the bare agent")


def run(send: Callable[[object], None], job: Job) -> None:
    """Measure in this process, which must be a fresh one: sends (name, EndToEnd), Packed and Failed, as it goes on."""
    asyncio.run(_Run(send, job).execute())


@dataclass
class Delivered:
    """When an agent's batches came back, and how many answers each had, those that a filter rejects among them."""

    times: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    _worker: object = None

    def add(self, item: AgentRequest) -> None:
        """Note an item. All of a batch come one after the other and have the same object as ``worker``."""
        if not self.times or item.worker is not self._worker:
            self._worker = item.worker
            self.times.append(time.perf_counter())
            self.sizes.append(0)
        self.sizes[-1] += item.status != "failed"

    def warm(self, together: int, seconds: float) -> float | None:
        """When the steady state begins, in which so many seconds are to be measured, as :mod:`serving.bench.steady` has
        it: after some rounds of batches that are answered ``together``, and some time; None: not yet."""
        if not self.times:
            return None
        soonest, latest = (bisect_left(self.times, self.times[0] + share * seconds) for share in (WARM, LONGEST))
        place = max(together, soonest, min(FEWEST * together, latest))
        return self.times[place] if place < len(self.times) else None

    def rate(self, begin: float, together: int, seconds: float) -> float | None:
        """Answers per second since ``begin``, in all whole rounds of so many batches that are answered ``together``;
        None while these are too few, or fewer than so many ``seconds``. The very last batch is not taken: more of it
        may be on the way.

        What began together ends together: a time that cuts a round would have all of it or nothing.
        """
        first = bisect_left(self.times, begin)
        rounds = (len(self.times) - 2 - first) // together
        end = first + rounds * together
        if rounds < MEASURED or self.times[end] - self.times[first] < seconds:
            return None
        return sum(self.sizes[first + 1 : end + 1]) / (self.times[end] - self.times[first])


@dataclass
class _Run:
    """The process that measures."""

    send: Callable[[object], None]
    job: Job
    _alone: dict[str, float] = field(default_factory=dict)
    _shown: dict[tuple[Task, Mode | None], list[Stimulus]] = field(default_factory=dict)
    _sources: dict[tuple[Task, Mode | None], Path] = field(default_factory=dict)

    async def execute(self) -> None:
        from serving.scheduling.cluster import Cluster

        cluster = Cluster()
        await cluster.start()
        process.freeze()
        try:
            for one in self.job.measured:
                await self._noted(one.agent, "end_to_end", self._by_itself(cluster, one))
            if len(self.job.measured) > 1:
                together = ", ".join(one.agent for one in self.job.measured)
                await self._noted(together, "packed", self._packed(cluster))
        finally:
            await cluster.stop()

    async def _noted(self, name: str, part: Part, work: Any) -> None:
        """What fails is one sentence, and the rest goes on."""
        try:
            await work
        except TuringlikeError as error:
            self.send(Failed(name, part, str(error)))
        except Exception as error:
            self.send(Failed(name, part, describe(error)))

    async def _by_itself(self, cluster: Cluster, one: Measured) -> None:
        assert one.best is not None
        need = self._fleet(cluster, [one], 1)[0].admission.needs[one.agent]
        size = one.best.batch_size
        await self._settled()
        after = await asyncio.to_thread(self._bare, one, size)
        for replicas in possible(need, cluster.nodes, continuous=one.continuous):
            before, figure = after, (await self._drive(cluster, [one], replicas))[one.agent]
            if replicas == 1:
                self._alone[one.agent] = figure
            await self._settled()  # workers are ended without waiting for it
            try:
                after = await asyncio.to_thread(self._bare, one, size)
            except TuringlikeError as error:
                self._tell(one, replicas, figure, before)
                what = f"the bare agent, measured again after {workers(replicas)}"
                raise AgentStoppedError(f"{what}: {error}") from error
            self._tell(one, replicas, figure, before, after)

    def _tell(self, one: Measured, replicas: int, figure: float, *bare: float) -> None:
        assert one.best is not None
        mean = sum(bare) / len(bare)
        self.send((one.agent, EndToEnd(replicas, one.best.batch_size, figure, mean, figure / mean, bare)))

    def _bare(self, one: Measured, size: int) -> float:
        """The bare agent's stimuli per second now. Raises AgentStoppedError."""
        job, source = self.job, self._source(one.task, one.mode)
        return sweep.again(one, job.entries[one.agent], job.settings.get(one.agent, {}), source, size, job.seconds)

    async def _packed(self, cluster: Cluster) -> None:
        """All agents at once, one worker each."""
        those = [one for one in self.job.measured if one.agent in self._alone]
        if len(those) < 2:
            raise AgentStoppedError("fewer than two agents could be measured alone")
        rates = await self._drive(cluster, those, 1)
        self.send(Packed(tuple(rates), rates, {name: self._alone[name] for name in rates}))

    def _agent(self, one: Measured) -> Agent[Any]:
        """The agent with the batch size that was found best, as ``--batch-size auto`` has it. Filters look at its
        answers, but nothing is asked twice: what is asked again comes back much later, or after the measured time, and
        the bare agent, which nobody filters, does not do that work either. A filter that keeps the last attempt keeps
        this one."""
        agent = self.job.entries[one.agent].make(self.job.settings.get(one.agent))
        assert one.best is not None
        size = one.at(one.best.batch_size)
        remembered.fit(agent, one.best.batch_size, None if size is None else size.peak_device_bytes)
        agent.attempts = 1
        return agent

    def _fleet(self, cluster: Cluster, those: Sequence[Measured], replicas: int) -> tuple[ReplicaPool, Scheduler]:
        """A fleet that has admitted the agents together; nothing is loaded. Raises InputError if they cannot fit."""
        from serving.scheduling.replicas import ReplicaPool
        from serving.scheduling.scheduler import Scheduler

        job, scheduler, names = self.job, Scheduler(), [one.agent for one in those]
        fleet = ReplicaPool(
            cluster,
            scheduler,
            {one.agent: self._agent(one) for one in those},
            job.entries,
            job.settings,
            str(job.folder),
            job.device,
            replicas,
        )
        fleet.admit([names], lambda name: replicas)
        return fleet, scheduler

    @asynccontextmanager
    async def _loaded(self, cluster: Cluster, those: Sequence[Measured], replicas: int) -> AsyncIterator[Scheduler]:
        fleet, scheduler = self._fleet(cluster, those, replicas)
        try:
            await asyncio.gather(*(fleet.load(one.agent) for one in those))
            await self._settled()
            yield scheduler
        finally:
            await fleet.close()

    async def _settled(self) -> None:
        await settled(min(PATIENCE, HURRY * self.job.seconds))

    async def _drive(self, cluster: Cluster, those: Sequence[Measured], replicas: int) -> dict[str, float]:
        """Answers per second of each agent while all are at work, with so many workers each."""
        from serving.runs.store import Store

        store, delivered = Store(), {one.agent: Delivered() for one in those}
        async with self._loaded(cluster, those, replicas) as scheduler:
            for name in delivered:
                store.open(self.job.folder / f"{name}.records")
            writer = asyncio.create_task(store.run())
            work = [asyncio.create_task(self._answer(scheduler, store, one, delivered[one.agent])) for one in those]
            try:
                return await self._until_enough([writer, *work], those, delivered, replicas)
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)
                await store.finish(writer)
                for name in delivered:
                    (self.job.folder / f"{name}.records").unlink()

    async def _until_enough(
        self,
        tasks: Sequence[asyncio.Task[None]],
        those: Sequence[Measured],
        delivered: Mapping[str, Delivered],
        replicas: int,
    ) -> dict[str, float]:
        """Wait for the steady state, and for so much of it; raises what a task raises."""
        seconds = self.job.seconds
        together = {one.agent: replicas * _at_once(one) for one in those}
        while True:
            done, _ = await asyncio.wait(tasks, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            begins = [one.warm(together[name], seconds) for name, one in delivered.items()]
            begun = [begin for begin in begins if begin is not None]
            if len(begun) < len(begins):
                continue
            rates = {name: one.rate(max(begun), together[name], seconds) for name, one in delivered.items()}
            found = {name: figure for name, figure in rates.items() if figure is not None}
            if len(found) == len(rates):
                return found

    async def _answer(self, scheduler: Scheduler, store: Store, one: Measured, delivered: Delivered) -> None:
        """Answer the set again and again, as ``generate`` answers one."""
        path, header = (
            self.job.folder / f"{one.agent}.records",
            RecordHeader("0" * 12, "machine", one.digest, None, None),
        )
        async with aclosing(scheduler.stream(items(one.agent, self._stimuli(one)))) as stream:
            async for item in stream:
                delivered.add(item)
                store.put(path, header.line(item, one.task), item.status)
                await store.room()

    def _stimuli(self, one: Measured) -> list[Stimulus]:
        kind = one.task, one.mode
        if kind not in self._shown:
            self._shown[kind] = stimuli.read(self._source(*kind))
        return self._shown[kind]

    def _source(self, task: Task, mode: Mode | None) -> Path:
        """The set of a kind, written once."""
        if (task, mode) not in self._sources:
            self._sources[task, mode] = stimuli.write(self.job.folder, task, mode, STIMULI)
        return self._sources[task, mode]


async def settled(patience: float) -> None:
    """Wait until Ray has started: its own processes, and those that it keeps in hand for the next worker, go on for
    some seconds with importing what they need, on cores that the agents then lack. Workers that are ended are waited
    for, too: their seconds are gone at once with them. For ``patience`` seconds at most."""
    before, until = _used(os.getpid()), time.perf_counter() + patience
    while time.perf_counter() < until:
        await asyncio.sleep(SETTLING)
        now = _used(os.getpid())
        if 0 <= now - before < QUIET * SETTLING:
            return
        before = now


def _used(root: int) -> float:
    """Seconds of processor time that the processes begun by ``root``, and those begun by them, have used so far; 0
    where the system does not tell."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(path.parent.name)] = int(fields[1])
        seconds[int(path.parent.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    found, fresh = {root}, {root}
    while fresh := {process for process, parent in parents.items() if parent in fresh} - found:
        found |= fresh
    return sum(seconds.get(process, 0.0) for process in found - {root})


def items(agent: str, shown: Iterable[Stimulus]) -> Iterator[AgentRequest]:
    """Items for the stimuli in turn, without an end; of conversations for one turn each."""
    asked = []
    for stimulus in shown:
        turn = len(stimulus.history) if isinstance(stimulus, ConversationStimulus) else None
        asked.append((canon.canonical(stimulus), stimulus.id, turn, stimuli.options(stimulus) or None))
    for order, (row, name, turn, options) in enumerate(itertools.cycle(asked), start=1):
        yield AgentRequest(agent, row, name, 0, 0, agent, turn, options, order)


def _at_once(one: Measured) -> int:
    """How many batches a worker has under way that end together; a call is a batch of one."""
    assert one.best is not None
    return one.best.batch_size if one.continuous else 1


def possible(need: Need, nodes: Sequence[Node], *, continuous: bool) -> list[int]:
    """The numbers of workers that there are cores or GPUs, and memory, for; one in any case. What has its own limit of
    calls at once has it for all its workers together, so that more of them mean nothing, unless each has a GPU."""
    if continuous and not need.device_memory:
        return [1]
    most = sum(node.gpu_count // need.devices if need.device_memory else node.cpus for node in nodes)
    return [
        count for count in REPLICAS if count == 1 or (count <= most and fits([replace(need, replicas=count)], nodes))
    ]
