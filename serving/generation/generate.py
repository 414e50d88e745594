"""``turinglike generate``: check, lock, answer, tidy up, report."""

import asyncio
import contextlib
import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agents.catalogue.selection import checked_agents
from agents.contract import Agent
from agents.errors import AgentStoppedError, ClusterError, InputError
from serving.conversations.conversation import Conversation
from serving.conversations.journal import read_journal
from serving.files.atomic_files import lock
from serving.files.signs_of_life import still
from serving.files.terminal import print_warning, printed_log
from serving.files.words import duration
from serving.generation.assignments import (
    Assignment,
    ConversingPair,
    GenerateOptions,
    check_usage,
    chosen_tasks,
    run_entries,
    share_out,
)
from serving.generation.dry_run import dry_run
from serving.generation.load_times import LoadTimes, usual_file
from serving.generation.measurement import Measurement
from serving.generation.progress import Progress
from serving.generation.prompt_check import check_prompts
from serving.generation.summary import summarize
from serving.runs.opening import folder_of_run, prepare_run
from serving.runs.resume import read_states
from serving.runs.run import Run
from serving.runs.run_json import checksum
from serving.runs.store import Store
from serving.scheduling import interrupts, machine
from serving.scheduling.cluster import Cluster, check_installed
from serving.scheduling.interrupts import declare_answers_here, started
from serving.scheduling.request import Outcome
from serving.scheduling.scheduler import ReplicaPool, Scheduler
from serving.scheduling.tasks import all_of, cancel
from serving.scheduling.this_process import ThisProcess
from serving.sets.checking import CheckedSet
from serving.sets.kinds import Kind

__all__ = ["GenerateOptions", "generate"]
log = logging.getLogger("turinglike.scheduling")
CONVERSATIONS = 1024  # of one pair that advance together


def generate(
    options: GenerateOptions,
    report: Callable[[str], None],
    then: Sequence[str] = (),
    measurement: Measurement | None = None,
) -> int:
    """Run the command; returns its exit code. Proposes ``then`` at the end. ``measurement`` may end the run early, and
    gets what is measured. Raises TuringlikeError and Interrupted."""
    began = time.monotonic()
    made = checked_agents(options.entries, options.settings)
    check_usage(options.agents, options.entries, made, options.samples)
    wants_ray = options.address is not None or options.replicas is not None
    if options.here and wants_ray:
        raise InputError("here (--here) answers in this process: leave address and replicas out")
    of_dry_run = (options.measured, options.for_answers, options.price_hour, options.price_token)
    if not options.dry_run and of_dry_run != (None, None, None, None):
        raise InputError(
            "--measured, --for, --price-hour and --price-token say what a run would take: give --dry-run, too"
        )
    if wants_ray:
        check_installed()
    machine.check_device(options.device, options.address)
    described = run_entries(options.agents, options.entries, made, options.settings)
    if options.dry_run:
        return dry_run(options, made, described, report)
    choose = chosen_tasks(options, described)
    level = logging.DEBUG if options.verbose else logging.WARNING
    with (
        machine.collecting_rarely(),
        interrupts.raised(),
        printed_log(log.name, level, print_warning),
        folder_of_run(options.out, options.agents),
        lock(options.out) as check_lock,
    ):
        if not options.quiet:
            print_warning(f"checking {options.source}")
        with still(f"checking {options.source}", quiet=options.quiet):
            run, stimuli = prepare_run(
                options.out,
                options.source,
                tasks=options.tasks,
                choose=choose,
                seed=options.seed,
                samples=options.samples,
                described=described,
                skip_invalid=options.skip_invalid,
                accept_changed_code=options.accept_changed_code,
            )
        if options.limit is not None:  # that many pictures, and each of them is asked every task of the run
            options.limit *= len(run.meta["set"].get("tasks", [None]))
        generation = Generation(options, run, stimuli, made, Store(check_lock), measurement or Measurement())
        if generation.plan():
            generation.check_prompts()
            if options.here or (not wants_ray and generation.needs_no_workers()):
                generation.here = declare_answers_here() or options.here
            log.debug("answers are made in %s", "this process" if generation.here else "workers of Ray")
            try:
                interrupts.run(generation.execute)
            except ClusterError as error:
                if not wants_ray and not generation.started:
                    raise ClusterError(f"{error}, or with here (--here), which needs no Ray") from None
                raise
        else:
            report("nothing is left to answer")
        check_lock()
        generation.tidy()
        summarize(generation.assignments, generation.counts(), generation.kinds, generation.stimuli.skipped, report)
        code = generation.exit_code()
        rate = generation.progress.rate() if generation.started else ""
        report(f"records: {options.out / 'records'}, after {duration(time.monotonic() - began)}{rate}")
        if not options.quiet:
            following = ("status", str(options.out)) if code else then or ("view", str(options.out))
            report(f"next: turinglike {shlex.join(following)}")
        return code


@dataclass(slots=True)
class Generation:
    """A call of ``generate`` in a checked run folder."""

    options: GenerateOptions
    """What the user asked for."""
    run: Run
    """The run folder."""
    stimuli: CheckedSet
    """The run's set."""
    agents: Mapping[str, Agent[Any]]
    """The agents by name, those of pairs among them."""
    store: Store
    """Writes records and journals; fails once the folder's lock is gone."""
    measurement: Measurement
    """Gets what is measured, and may end the run early."""
    here: bool = False
    """Whether agents answer in this process, without Ray."""
    started: bool = field(init=False, default=False)
    """Whether Ray, or this process's worker, has started."""
    assignments: list[Assignment] = field(init=False, default_factory=list)
    """The share of each agent and pair; :meth:`plan` sets this and the next two."""
    positions: Mapping[tuple[str, str], int] = field(init=False)
    """The place of each stimulus in the set, from 0, by task and id."""
    kinds: Counter[Kind] = field(init=False)
    """How many of the stimuli that are asked are of each kind, up to ``limit``."""
    scheduler: Scheduler = field(init=False)
    """Gives out the requests; :meth:`execute` sets this and the next three."""
    cluster: Cluster | ThisProcess = field(init=False)
    """Where workers run."""
    pool: ReplicaPool = field(init=False)
    """Starts the workers, and ends them."""
    progress: Progress = field(init=False)
    """The lines on the terminal."""

    def plan(self) -> int:
        """Plan the missing answers; returns their number."""
        options = self.options
        self.positions = {key: position for position, key in enumerate(self.stimuli.kinds)}
        self.kinds = Counter(islice(self.stimuli.kinds.values(), options.limit))
        states = read_states(self.run, options.agents, self.positions, options.samples)
        self.assignments = share_out(options, self.run, states, self.kinds)
        return sum(assignment.left(options.limit) for assignment in self.assignments)

    def check_prompts(self) -> None:
        """Note the first prompts in ``run.json``. Raises InputError for agents whose templates refuse their chats."""
        options = self.options
        run = self.run
        asked = {work.name: work.entry for work in self.assignments if work.left(options.limit)}
        rows = (row.json for row in self.stimuli.rows() if row.position not in self.stimuli.invalid)
        checked = check_prompts(asked, options.entries, options.settings, rows, run.root, run.meta["seed"])
        checked.refuse(elsewhere=options.address is not None)
        for (name, member), prompt in checked.first.items():
            entry = run.meta["agents"][name]
            entry.get("members", {name: entry})[member].setdefault("first_prompt", prompt)
        run.save()

    def needs_no_workers(self) -> bool:
        """Whether no agent has more than two batches, or a GPU."""
        limit = self.options.limit
        on_cpu = self.options.device == "cpu" or not machine.may_have_gpu()

        def most(agent: Agent[Any]) -> int:
            declared = agent.declaration()
            if declared.device_memory and (not on_cpu or declared.batches_by_itself):
                return 0  # an engine that batches a model by itself has processes of its own
            if declared.batches_by_itself:
                return declared.max_in_flight
            return 2 * (self.options.batch_size or declared.batch_size)

        return all(
            agent.declaration().is_elsewhere
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
        self.cluster = ThisProcess.of(self.agents, options.device) if self.here else Cluster(options.address)
        self.scheduler = Scheduler(self.run.meta["seed"])
        self.measurement.started = time.time()
        totals = {assignment.name: assignment.total for assignment in self.assignments}
        forecasts = {assignment.name: assignment.seconds_left for assignment in self.assignments}
        digests = {name: f"{entry['digest']} {options.device}" for name, entry in self.run.meta["agents"].items()}
        loads = LoadTimes(digests, usual_file())
        self.progress = Progress(self.counts, totals, forecasts, loads, quiet=options.quiet)
        shown = asyncio.create_task(self.progress.run())
        try:
            with self.progress:
                if not self.here:
                    self.progress.tell("starting Ray")
                await started(self.cluster.start(self.progress.tell), take_signals)
                self.started = True
                machine.freeze()
                self.pool = ReplicaPool(self.cluster, self.scheduler, self.agents, options, str(self.run.root))
                self.pool.fit([assignment.members for assignment in self.assignments], self._batches)
                left = [assignment for assignment in self.assignments if assignment.left(options.limit)]
                work = asyncio.create_task(all_of(map(self._fulfil, left)))
                watch = asyncio.create_task(self.cluster.watch())
                over = asyncio.create_task(self.measurement.over())
                try:
                    await asyncio.wait({work, watch, writer, over}, return_when=asyncio.FIRST_COMPLETED)
                    for task in (writer, watch, work):
                        if task.done():
                            task.result()
                finally:
                    if not work.done():
                        self.measurement.note_workers(self.scheduler, self.pool)
                    await cancel(work, watch, over)
                    await self.pool.close()
                    await self.store.finish(writer)
                    self.measurement.writing_s = self.store.writing_s
                    shown.cancel()
        finally:
            shown.cancel()
            if not writer.done():
                await self.store.finish(writer)
            await self.cluster.stop()

    def _batches(self, name: str) -> int:
        declared = self.agents[name].declaration()
        size = self.options.batch_size or self.pool.batch_size(name)
        batches = 0
        for assignment in self.assignments:
            if name in assignment.members:
                left = assignment.left(self.options.limit)
                if assignment.is_pair or declared.batches_by_itself:
                    batches += left
                else:
                    batches += -(-left // size)
        return batches

    async def _fulfil(self, assignment: Assignment) -> None:
        async with self.pool.admission.admit(assignment.members):
            try:
                self.progress.loading(assignment.name, " and ".join(dict.fromkeys(assignment.members)))
                await asyncio.gather(*(self.pool.load(member) for member in dict.fromkeys(assignment.members)))
                self._note_provenance(assignment)
                dispatcher = self.scheduler.dispatchers[assignment.members[0]]
                assignment.foretell(self.stimuli, self.options, dispatcher)
                self.progress.answering(assignment.name)
                self.measurement.begin()
                await self._write_invalid(assignment)
                if assignment.is_pair:
                    await self._converse(assignment)
                else:
                    await self._answer(assignment)
            except AgentStoppedError as error:
                assignment.error = error
                self.progress.stopped(assignment.name, str(error))
            finally:
                self.measurement.note_workers(self.scheduler, self.pool)

    def _note_provenance(self, assignment: Assignment) -> None:
        entry = self.run.meta["agents"][assignment.name]
        members = entry.get("members", {assignment.name: entry})
        for name in dict.fromkeys(assignment.members):
            loaded = dict(self.scheduler.dispatchers[name].provenance or {})
            members[name]["versions"] = loaded.pop("versions", {})
            members[name]["provenance"] = loaded
            for limit in loaded.get("limits", ()):
                self.progress.tell(f"{name} {limit}")
        self.run.save()

    async def _answer(self, assignment: Assignment) -> None:
        requests = assignment.valid_requests(self.stimuli, self.options)
        async with contextlib.aclosing(self.scheduler.stream(requests)) as outcomes:
            async for outcome in outcomes:
                self._write(assignment, outcome)
                await self.store.room()

    async def _write_invalid(self, assignment: Assignment) -> None:
        if not self.stimuli.invalid:
            return
        requests = assignment.requests(self.stimuli, self.options)
        for number, request in enumerate(requests):
            reason = self.stimuli.invalid.get(request.row.position)
            if reason is not None:
                self._write(assignment, Outcome.failed(request, *reason))
                await self.store.room()
            if number % 1000 == 0:
                await asyncio.sleep(0)

    def _write(self, assignment: Assignment, outcome: Outcome) -> None:
        assignment.note(outcome)
        self.store.put(assignment.records, assignment.header.line(outcome), outcome.status)

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

        async def hold(conversation: Conversation) -> None:
            self._write(assignment, await conversation.run(self.scheduler))
            room.release()

        try:
            async with asyncio.TaskGroup() as group:
                for request in assignment.valid_requests(self.stimuli, self.options):
                    conversation = pair.conversation(
                        request,
                        journalled=journalled.pop((request.row.id, request.sample), {}),
                        on_turn=lambda line: self.store.put(assignment.journal, line),
                    )
                    await room.acquire()
                    group.create_task(hold(conversation))
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
        counts = self.counts()
        entries = self.run.meta["agents"]
        limit = self.options.limit
        untidy = [assignment for assignment in self.assignments if not assignment.resume.is_in_order()]
        for assignment in untidy:
            entries[assignment.name].pop("records", None)
        if untidy:
            self.run.save()  # no moment may come in which a checksum is not that of its file
        for assignment in untidy:
            assignment.resume.tidy(assignment.records)
        for assignment in self.assignments:
            entry = entries[assignment.name]
            records = assignment.records
            finished = counts[assignment.name].total() >= assignment.total
            if assignment.is_pair and finished and limit is None and self.options.samples >= entry["samples"]:
                assignment.journal.unlink(missing_ok=True)
            if "records" not in entry or entry["records"]["bytes"] != records.stat().st_size:
                entry["records"] = checksum(records)  # the others are as they were when they were read
        self.run.save()
        with contextlib.suppress(OSError):  # there are none, or a conversation is unfinished
            (self.run.path / "turns").rmdir()

    def exit_code(self) -> int:
        """0: all answered; 1: with failures; 3: an agent stopped."""
        if any(assignment.error for assignment in self.assignments):
            return 3
        counts = self.counts()
        failed = self.stimuli.skipped or any(counts[assignment.name]["failed"] for assignment in self.assignments)
        return 1 if failed else 0
