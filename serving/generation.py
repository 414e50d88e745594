"""One run of ``turinglike generate``: plan what is left, load agents as they fit, answer, write."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import orjson

from agents import catalogue
from agents.contract import Agent
from agents.errors import AgentStoppedError, InputError, Problem
from agents.tasks import ConversationType
from serving.conversations import policies
from serving.conversations.conversation import Conversation
from serving.conversations.journal import read_journal
from serving.progress import Progress
from serving.runs.atomic_files import repair_tail
from serving.runs.eligibility import Kind, named, task_of
from serving.runs.positions import Positions, id_key
from serving.runs.record_lines import RecordHeader
from serving.runs.resume_state import FAILED, NONE, ResumeState, compact
from serving.runs.run import Run
from serving.runs.store import Store
from serving.scheduling import worker_process
from serving.scheduling.cluster import Cluster
from serving.scheduling.ray_workers import probe_for
from serving.scheduling.replicas import ReplicaPool
from serving.scheduling.request import AgentRequest
from serving.scheduling.scheduler import Scheduler
from serving.work_plan import GenerateOptions, Unit

CONVERSATIONS = 1024  # of one pair that advance together


@dataclass(slots=True)
class Generation:
    """One call of ``generate``, from the checked run folder to its exit code."""

    options: GenerateOptions
    run: Run
    agents: Mapping[str, Agent[Any]]
    units: list[Unit] = field(init=False, default_factory=list)
    positions: Positions = field(init=False)
    kinds: Counter[Kind] = field(init=False)
    store: Store = field(init=False, default_factory=Store)
    scheduler: Scheduler = field(init=False)
    cluster: Cluster = field(init=False)
    fleet: ReplicaPool = field(init=False)
    progress: Progress = field(init=False)

    def plan(self) -> int:
        """Find what is still to be answered; returns how much that is."""
        run, options = self.run, self.options
        self.positions = Positions(run.index.key)
        self.kinds = counts = run.index.count_kinds(options.limit)
        problems = []
        for name in options.agents:
            members = catalogue.pair(name)
            about = run.meta["agents"][name]
            if len(members) == 1:  # a conversation has two
                about = {**about, "task": [task for task in about["task"] if task != "conversation"]}
            header = RecordHeader(
                run.meta["run"], about["kind"], about["digest"], about["checkpoint"], about["revision"]
            )
            path = run.records(name)
            repair_tail(path)
            done = ResumeState.read(path, self.positions, options.samples, header.digest)
            unit = Unit(name, members, about, header, done)
            unit.total = sum(number for kind, number in counts.items() if unit.answers(kind)) * options.samples
            if not unit.total:
                there = named(counts) or "nothing"
                hint = "; a conversation needs a pair: a~b" if set(counts) == {("conversation", None)} else ""
                wants = ", ".join(sorted(about["task"])) or "conversation"
                if "modes" in about:
                    wants += f" ({', '.join(about['modes'])})"
                problems.append(
                    Problem(str(options.source), None, name, f"answers {wants}, but the set has {there}{hint}")
                )
            if options.retry_failed:
                unit.again = int((done.state[: options.limit] == FAILED).sum())
            self.units.append(unit)
        if problems:
            raise InputError("these agents have nothing to answer", problems)
        return sum(self._left(unit) for unit in self.units)

    def _left(self, unit: Unit) -> int:
        """How many answers are still to be made."""
        state = unit.done.state[: self.options.limit]
        return unit.total - int((state != NONE).sum()) + unit.again

    async def execute(self, listen: Callable[[], None]) -> None:
        """Start everything, answer everything, end everything; raises StorageError and ClusterError.

        ``listen`` takes the signals back that Ray has taken when it started.
        """
        for unit in self.units:
            self.store.open(self.run.records(unit.name))
            if unit.is_pair:
                self.store.open(self.run.journal(unit.name))
        writer = asyncio.create_task(self.store.run())
        self.cluster = Cluster(self.options.address)
        self.scheduler = Scheduler(self.run.meta["seed"])
        self.progress = Progress(self.counts, {unit.name: unit.total for unit in self.units})
        shown = asyncio.create_task(self.progress.run())
        try:
            with self.progress:
                self.progress.say("starting Ray")
                start = asyncio.create_task(self.cluster.start())
                while not start.done():  # Ray takes the signals at some moment of its start
                    await asyncio.wait({start}, timeout=0.05)
                    listen()
                start.result()
                worker_process.freeze()
                self.fleet = self._make_fleet()
                self.fleet.admit([unit.members for unit in self.units], self._batches)
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
                    await self.fleet.close()
                    await self.store.finish(writer)
                    shown.cancel()
        finally:
            shown.cancel()
            if not writer.done():
                await self.store.finish(writer)
            await self.cluster.stop()

    def _make_fleet(self) -> ReplicaPool:
        options = self.options
        return ReplicaPool(
            self.cluster,
            self.scheduler,
            self.agents,
            options.entries,
            options.settings,
            self.run.root,
            options.device,
            options.replicas,
            options.batch_size,
            options.timeout,
            options.load_timeout,
            probe_for(self.run.root, self._first_image()) if options.address else None,
        )

    def _batches(self, name: str) -> int:
        """How many batches an agent has to answer, about; a conversation counts as one."""
        agent = self.agents[name]
        size = self.options.batch_size or agent.batch_size
        return sum(
            left if unit.is_pair or agent.continuous() else -(-left // size)
            for unit in self.units
            if name in unit.members
            for left in [self._left(unit)]
        )

    async def _work(self) -> None:
        tasks = [asyncio.create_task(self._answer_unit(unit)) for unit in self.units if self._left(unit)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer_unit(self, unit: Unit) -> None:
        async with self.fleet.admission.admit(unit.members):
            try:
                self.progress.say(f"loading {' and '.join(dict.fromkeys(unit.members))}")
                await asyncio.gather(*(self.fleet.load(member) for member in dict.fromkeys(unit.members)))
                self._note_provenance(unit)
                self.progress.say("")
                if unit.is_pair:
                    await self._converse(unit)
                else:
                    await self._answer(unit)
            except AgentStoppedError as error:
                unit.error = error
                self.progress.say(str(error))
        for member in dict.fromkeys(unit.members):
            if not self.fleet.admission.in_use(member):
                await self.fleet.unload(member)

    def _first_image(self) -> str | None:
        return next((row["image"] for row in map(orjson.loads, self.run.rows()) if "image" in row), None)

    def _note_provenance(self, unit: Unit) -> None:
        about = self.run.meta["agents"][unit.name]
        members = about.get("members", {unit.name: about})
        for name in dict.fromkeys(unit.members):
            loaded = dict(self.scheduler.dispatchers[name].provenance or {})
            members[name]["versions"] = loaded.pop("versions", {})
            members[name]["provenance"] = loaded
        self.run.save()

    def _todo(self, unit: Unit) -> Iterator[tuple[int, str, bytes, int]]:
        """(place, id, row, sample) of everything that the unit has still to answer."""
        state, retry = unit.done.state, self.options.retry_failed
        eligible = self.run.index.of_kinds(unit.answers)
        for place, row in enumerate(islice(self.run.rows(), self.options.limit)):
            if not eligible[place]:
                continue
            values = state[place].tolist()
            if NONE not in values and not (retry and FAILED in values):
                continue
            open_samples = [at for at, value in enumerate(values) if value == NONE or (retry and value == FAILED)]
            stimulus = orjson.loads(row)["id"]
            for sample in open_samples:
                yield place, stimulus, row, sample

    async def _answer(self, unit: Unit) -> None:
        seed = self.run.meta["seed"]
        path, tasks = self.run.records(unit.name), unit.about["task"]
        only = tasks[0] if len(tasks) == 1 else None

        await self._write_invalid(unit)

        def items() -> Iterator[AgentRequest]:
            for place, stimulus, row, sample in self._todo(unit):
                if place not in self.run.invalid:
                    yield AgentRequest(unit.name, row, stimulus, sample, seed, unit.name, order=place + 1)

        stream = self.scheduler.stream(items())
        async with contextlib.aclosing(stream):
            async for item in stream:
                self._write(unit, path, item, only or task_of(item.row))
                await self.store.room()

    async def _write_invalid(self, unit: Unit) -> None:
        """Failed records for the rows with which the check found fault; no agent sees them."""
        if not self.run.invalid:
            return
        seed, path = self.run.meta["seed"], self.run.records(unit.name)
        for number, (place, stimulus, row, sample) in enumerate(self._todo(unit)):
            reason = self.run.invalid.get(place)
            if reason is not None:
                item = AgentRequest(unit.name, row, stimulus, sample, seed, unit.name)
                item.status, item.error = "failed", reason
                item.draw_seed()
                self._write(unit, path, item, task_of(row))
                await self.store.room()
            if number % 1000 == 0:
                await asyncio.sleep(0)

    def _write(self, unit: Unit, path: Path, item: AgentRequest, task: str) -> None:
        self.store.put(path, unit.header.line(item, task), item.status)

    async def _converse(self, unit: Unit) -> None:
        seed, path, journal = self.run.meta["seed"], self.run.records(unit.name), self.run.journal(unit.name)
        first, second = unit.members
        told = (self.agents[first].instructions, self.agents[second].instructions)
        chosen = policies.pair_settings(unit.name, self.options.settings.get(unit.name))
        members = [self.agents[member] for member in unit.members]
        policy = {kind: chosen.policy_for(kind, members) for kind in get_args(ConversationType)}
        state = unit.done.state

        def unfinished(stimulus: str, sample: int) -> bool:
            [position] = self.positions.find([id_key(stimulus)])
            return position >= 0 and sample < state.shape[1] and state[position, sample] in (NONE, FAILED)

        said = read_journal(journal, unfinished)
        await self._write_invalid(unit)

        async def hold(conversation: Conversation) -> None:
            item = await conversation.run(self.scheduler)
            self._write(unit, path, item, "conversation")

        running: set[asyncio.Task[None]] = set()
        try:
            for place, stimulus, row, sample in self._todo(unit):
                if place in self.run.invalid:
                    continue
                talk = Conversation(
                    unit.name, (first, second), row, sample, seed, place + 1,
                    policy[orjson.loads(row).get("type", "MM")], chosen.thresholds, chosen.attempts, told,
                    said.pop((stimulus, sample), {}), lambda line: self.store.put(journal, line),
                )  # fmt: skip
                running.add(asyncio.create_task(hold(talk)))
                if len(running) >= CONVERSATIONS:
                    running = await _some(running)
                await self.store.room()
            while running:
                running = await _some(running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def counts(self) -> dict[str, Counter[str]]:
        """Per unit, what is on disk: from before and since."""
        found = {}
        for unit in self.units:
            counts = unit.done.counts(self.options.limit)
            # What is tried again is not counted as failed while it is open.
            counts["failed"] -= unit.again
            found[unit.name] = counts + self.store.done.get(self.run.records(unit.name), Counter())
        return found

    def tidy(self) -> None:
        """After the last write: one line per key, and no journal of finished conversations."""
        counts = self.counts()
        for unit in self.units:
            finished = counts[unit.name].total() >= unit.total
            if finished and (unit.done.duplicates or unit.again):
                compact(self.run.records(unit.name), self.positions, unit.done.state.shape[1])
            whole = self.options.limit is None and self.options.samples >= self.run.meta["agents"][unit.name]["samples"]
            if unit.is_pair and finished and whole:
                self.run.journal(unit.name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # there are none, or a conversation is unfinished
            (self.run.folder / "turns").rmdir()

    def exit_code(self) -> int:
        """0: all answered; 1: with failures; 3: an agent stopped."""
        if any(unit.error for unit in self.units):
            return 3
        counts = self.counts()
        failed = self.run.skipped or any(counts[unit.name]["failed"] for unit in self.units)
        return 1 if failed else 0


async def _some(running: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Wait until one ends; raises what it raised."""
    done, rest = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return rest
