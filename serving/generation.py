"""A run of ``turinglike generate``: plan, load agents as they fit, answer, write."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agents import catalogue
from agents.contract import Agent
from agents.errors import AgentStoppedError, InputError
from serving.assignments import Assignment, ConversingPair, GenerateOptions, all_of, nothing_to_answer, tasks_asked
from serving.conversations.conversation import Conversation
from serving.conversations.journal import read_journal
from serving.progress import Progress
from serving.runs.atomic_files import repair_tail
from serving.runs.records import RecordHeader
from serving.runs.run import Kind, Run, Store
from serving.runs.run_json import checksum
from serving.runs.run_opening import Maker, ResumeState
from serving.scheduling import machine
from serving.scheduling.cluster import Cluster
from serving.scheduling.interrupts import started
from serving.scheduling.local_ray import RayHead
from serving.scheduling.scheduler import ReplicaPool, Scheduler
from serving.scheduling.this_process import ThisProcess
from serving.scheduling.worker import AgentRequest

CONVERSATIONS = 1024  # of one pair that advance together


@dataclass(slots=True)
class Generation:
    """A call of ``generate`` in a checked run folder; ``here``: without Ray."""

    options: GenerateOptions
    run: Run
    agents: Mapping[str, Agent[Any]]
    store: Store
    here: bool = False
    ahead: list[RayHead] = field(default_factory=list)
    started: bool = field(init=False, default=False)
    assignments: list[Assignment] = field(init=False, default_factory=list)
    positions: Mapping[tuple[str, str], int] = field(init=False)  # of the stimuli, by task and id
    stimuli: Sequence[tuple[tuple[str, str], Kind]] = field(init=False)
    kinds: Counter[Kind] = field(init=False)
    scheduler: Scheduler = field(init=False)
    cluster: Cluster | ThisProcess = field(init=False)
    pool: ReplicaPool = field(init=False)
    progress: Progress = field(init=False)

    def plan(self) -> int:
        """Plan the missing answers; returns their number."""
        run, options = self.run, self.options
        self.stimuli = [*run.kinds.items()]
        self.positions = {key: position for position, key in enumerate(run.kinds)}
        self.kinds = counts = Counter(kind for _, kind in self.stimuli[: options.limit])
        problems = []
        for name in options.agents:
            members = catalogue.pair(name)
            about = run.meta["agents"][name]
            about = {**about, "task": tasks_asked(about)}
            header = RecordHeader(
                run.meta["run"], about["kind"], about["digest"], about["checkpoint"], about["revision"]
            )
            records = run.records_path(name)
            tasks = about["task"] if len(members) == 1 else ("conversation",)
            maker = Maker(name, tasks, header.digest, about.get("records"))
            resume = ResumeState.read(records, self.positions, options.samples, maker, about["samples"])
            repair_tail(records)
            assignment = Assignment(name, members, about, header, resume, records, run.journal_path(name))
            assignment.total = (
                sum(number for kind, number in counts.items() if assignment.answers(kind)) * options.samples
            )
            if not assignment.total:
                problems.append(nothing_to_answer(str(options.source), name, about, counts))
            if options.retry_failed:
                assignment.retried = resume.counts(options.limit)["failed"]
            self.assignments.append(assignment)
        if problems:
            raise InputError("agents have nothing to answer here: leave them out, or ask another task", problems)
        return sum(assignment.left(self.options.limit) for assignment in self.assignments)

    def needs_no_workers(self) -> bool:
        """Whether no agent has more than two batches, or a GPU."""
        limit, on_cpu = self.options.limit, self.options.device == "cpu" or not machine.may_have_gpu()

        def most(agent: Agent[Any]) -> int:
            if agent.device_memory and (not on_cpu or agent.continuous()):
                return 0  # an engine that batches a model by itself has processes of its own
            return agent.max_in_flight if agent.continuous() else 2 * (self.options.batch_size or agent.batch_size)

        return all(
            agent.is_elsewhere()
            or sum(work.left(limit) for work in self.assignments if name in work.members) <= most(agent)
            for name, agent in self.agents.items()
        )

    async def execute(self, take_signals: Callable[[], None]) -> None:
        """Answer everything; ``take_signals`` takes signals from Ray. Raises StorageError and ClusterError."""
        for assignment in self.assignments:
            self.store.open(assignment.records)
            if assignment.is_pair:
                self.store.open(assignment.journal)
        writer = asyncio.create_task(self.store.run())
        options = self.options
        self.cluster = (
            ThisProcess.of(self.agents, options.device) if self.here else Cluster(options.address, self.ahead)
        )
        self.scheduler = Scheduler(self.run.meta["seed"])
        totals = {assignment.name: assignment.total for assignment in self.assignments}
        self.progress = Progress(self.counts, totals, quiet=options.quiet)
        shown = asyncio.create_task(self.progress.run())
        try:
            with self.progress:
                if not self.here:
                    self.progress.tell("starting Ray")
                await started(self.cluster.start(self.progress.tell), take_signals)
                self.started = True
                machine.freeze()
                self.pool = ReplicaPool(
                    self.cluster, self.scheduler, self.agents, options.entries, options.settings, str(self.run.root),
                    options.device, options.replicas, options.batch_size, options.timeout, options.load_timeout,
                )  # fmt: skip
                self.pool.fit([assignment.members for assignment in self.assignments], self._batches)
                work = asyncio.create_task(self._work())
                watch = asyncio.create_task(self.cluster.watch())
                try:
                    await asyncio.wait({work, watch, writer}, return_when=asyncio.FIRST_COMPLETED)
                    for task in (writer, watch, work):
                        if task.done():
                            task.result()
                finally:
                    work.cancel()
                    watch.cancel()
                    await asyncio.gather(work, watch, return_exceptions=True)
                    await self.pool.close()
                    await self.store.finish(writer)
                    shown.cancel()
        finally:
            shown.cancel()
            if not writer.done():
                await self.store.finish(writer)
            await self.cluster.stop()

    def _batches(self, name: str) -> int:
        agent = self.agents[name]
        size = self.options.batch_size or agent.batch_size
        return sum(
            left if assignment.is_pair or agent.continuous() else -(-left // size)
            for assignment in self.assignments
            if name in assignment.members
            for left in [assignment.left(self.options.limit)]
        )

    async def _work(self) -> None:
        await all_of(self._fulfil(work) for work in self.assignments if work.left(self.options.limit))

    async def _fulfil(self, assignment: Assignment) -> None:
        async with self.pool.admission.admit(assignment.members):
            try:
                self.progress.loading(assignment.name, " and ".join(dict.fromkeys(assignment.members)))
                await asyncio.gather(*(self.pool.load(member) for member in dict.fromkeys(assignment.members)))
                self._note_provenance(assignment)
                self.progress.answering(assignment.name)
                await self._write_invalid(assignment)
                if assignment.is_pair:
                    await self._converse(assignment)
                else:
                    await self._answer(assignment)
            except AgentStoppedError as error:
                assignment.error = error
                self.progress.stopped(assignment.name, str(error))

    def _note_provenance(self, assignment: Assignment) -> None:
        about = self.run.meta["agents"][assignment.name]
        members = about.get("members", {assignment.name: about})
        for name in dict.fromkeys(assignment.members):
            loaded = dict(self.scheduler.dispatchers[name].provenance or {})
            members[name]["versions"] = loaded.pop("versions", {})
            members[name]["provenance"] = loaded
        self.run.save()

    def _todo(self, assignment: Assignment) -> Iterator[AgentRequest]:
        limit, status = self.options.limit, assignment.resume.status
        seed, agent = self.run.meta["seed"], assignment.members[0]
        asked = {kind for kind in self.kinds if assignment.answers(kind)}
        for wanted in (None, "failed") if self.options.retry_failed else (None,):
            first = 1 if wanted is None else len(self.stimuli) + 1
            before = {} if wanted is None else {**assignment.resume.codes}
            rows = islice(self.run.rows(), limit)
            for position, (row, ((_, stimulus), kind)) in enumerate(zip(rows, self.stimuli, strict=False)):
                for sample in range(self.options.samples) if kind in asked else ():
                    key = (position, sample)
                    if status.get(key) == wanted:
                        request = AgentRequest(agent, row, stimulus, sample, seed, assignment.name, position=position)
                        request.order, request.failed_before = first + position, before.get(key, "")
                        yield request

    def _valid(self, assignment: Assignment) -> Iterator[AgentRequest]:
        return (request for request in self._todo(assignment) if request.position not in self.run.invalid)

    async def _answer(self, assignment: Assignment) -> None:
        async with contextlib.aclosing(self.scheduler.stream(self._valid(assignment))) as stream:
            async for request in stream:
                self._write(assignment, request.position, request)
                await self.store.room()

    async def _write_invalid(self, assignment: Assignment) -> None:
        for number, request in enumerate(self._todo(assignment) if self.run.invalid else ()):
            reason = self.run.invalid.get(request.position)
            if reason is not None:
                request.fail(*reason)
                request.draw_seed()
                self._write(assignment, request.position, request)
                await self.store.room()
            if number % 1000 == 0:
                await asyncio.sleep(0)

    def _write(self, assignment: Assignment, position: int, request: AgentRequest) -> None:
        (task, _), _ = self.stimuli[position]
        assignment.resume.note(position, request.sample)
        self.store.put(assignment.records, assignment.header.line(request, task), request.status)

    async def _converse(self, assignment: Assignment) -> None:
        pair = ConversingPair(assignment.name, self.agents, self.options.settings.get(assignment.name))
        status = assignment.resume.status

        def unfinished(stimulus: str, sample: int) -> bool:
            position = self.positions.get(("conversation", stimulus))
            if position is None or sample >= self.options.samples:
                return False
            return status.get((position, sample)) not in ("ok", "rejected")

        journalled = read_journal(assignment.journal, unfinished)
        room = asyncio.Semaphore(CONVERSATIONS)

        async def hold(position: int, conversation: Conversation) -> None:
            self._write(assignment, position, await conversation.run(self.scheduler))
            room.release()

        try:
            async with asyncio.TaskGroup() as group:
                for request in self._valid(assignment):
                    conversation = pair.conversation(
                        request.row,
                        request.sample,
                        request.run_seed,
                        request.order,
                        journalled=journalled.pop((request.stimulus, request.sample), {}),
                        on_turn=lambda line: self.store.put(assignment.journal, line),
                        failed_before=request.failed_before,
                    )
                    await room.acquire()
                    group.create_task(hold(request.position, conversation))
                    await self.store.room()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def counts(self) -> dict[str, Counter[str]]:
        """Counts on disk, by assignment and status."""
        by_name = {}
        for assignment in self.assignments:
            counts = assignment.resume.counts(self.options.limit)
            # What is tried again is not counted as failed while it is open.
            counts["failed"] -= assignment.retried
            by_name[assignment.name] = counts + self.store.done.get(assignment.records, Counter())
        return by_name

    def tidy(self) -> None:
        """Leave a line per key in the set's order, checksums, and only unfinished journals."""
        counts, entries = self.counts(), self.run.meta["agents"]
        untidy = [assignment for assignment in self.assignments if not assignment.resume.is_in_order()]
        for assignment in untidy:
            entries[assignment.name].pop("records", None)
        if untidy:
            self.run.save()  # no moment may come in which a checksum is not that of its file
        for assignment in untidy:
            assignment.resume.tidy(assignment.records)
        for assignment in self.assignments:
            finished = counts[assignment.name].total() >= assignment.total
            complete = (
                self.options.limit is None
                and self.options.samples >= self.run.meta["agents"][assignment.name]["samples"]
            )
            if assignment.is_pair and finished and complete:
                assignment.journal.unlink(missing_ok=True)
        grown = []  # the others are as they were when they were read
        for assignment in self.assignments:
            known = entries[assignment.name].get("records")
            if known is None or known["bytes"] != assignment.records.stat().st_size:
                grown.append(assignment)
        for assignment in grown:
            entries[assignment.name]["records"] = checksum(assignment.records)
        if grown:
            self.run.save()
        with contextlib.suppress(OSError):  # there are none, or a conversation is unfinished
            (self.run.path / "turns").rmdir()

    def exit_code(self) -> int:
        """0: all answered; 1: with failures; 3: an agent stopped."""
        if any(assignment.error for assignment in self.assignments):
            return 3
        counts = self.counts()
        failed = self.run.skipped or any(counts[assignment.name]["failed"] for assignment in self.assignments)
        return 1 if failed else 0
