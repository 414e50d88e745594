"""The options of ``generate``, and what each agent and pair has to answer."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from agents import catalogue
from agents.contract import Agent, Entry
from agents.errors import AgentStoppedError, InputError, Problem, UnavailableError
from agents.stimuli import ConversationType
from serving.conversations.conversation import Conversation
from serving.conversations.scenario import read_pair_settings
from serving.conversations.transcript import instructions_of
from serving.runs.estimates import Estimate
from serving.runs.forecast import Forecast, row_lengths, unix_time
from serving.runs.forecast_sample import spread
from serving.runs.records import RecordHeader
from serving.runs.resume import ResumeState
from serving.runs.run import Run
from serving.runs.run_json import run_entry
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.request import Outcome, Request
from serving.scheduling.scheduler import WorkerOptions
from serving.sets.checking import CheckedSet
from serving.sets.kinds import Kind, is_asked, named, tasks_asked
from serving.sets.set_rows import Choose, chosen_by
from serving.sets.stimulus_row import StimulusRow


@dataclass(slots=True)
class GenerateOptions(WorkerOptions):
    """The options of ``generate``, with those of workers."""

    source: Path
    """The path of the stimulus set: a file, or a folder of pictures."""
    agents: list[str]
    """The agents and pairs ``a~b``, by name."""
    out: Path
    """The run folder."""
    tasks: Sequence[str] = ()
    """The tasks that are asked of rows without one; empty: those that the agents answer."""
    narrowed: Set[str] = frozenset()
    """The agents whose tasks were chosen."""
    samples: int = 1
    """Answers to each stimulus."""
    seed: int | None = None
    """The run's seed; None: 0, or the seed that the run has."""
    retry_failed: bool = False
    """Whether failed answers are tried again."""
    skip_invalid: bool = False
    """Whether the run goes on with a set that has invalid rows."""
    accept_changed_code: bool = False
    """Whether an agent's own class may have changed since the run began."""
    here: bool = False
    """Whether agents answer in this process, however much there is to do."""
    limit: int | None = None
    """The number of stimuli to ask, from the first on; None: all."""
    quiet: bool = False
    """Whether only errors are shown."""
    verbose: bool = False
    """Whether it is shown where agents run."""
    dry_run: bool = False
    """Whether it is only told what the run would take."""
    measured: Path | None = None
    """A file of ``turinglike bench``, for ``dry_run``."""
    for_answers: int | None = None
    """For ``dry_run``: what this many answers of each agent take, to stimuli like the set's; None: those missing."""
    price_hour: float | None = None
    """The price of an hour of a GPU, or of the machine without one, for ``dry_run``."""
    price_token: float | None = None
    """The price of a token, for ``dry_run``."""


@dataclass(slots=True)
class Assignment:
    """What one agent or pair has to answer, and how far it is."""

    name: str
    """The agent or pair."""
    members: tuple[str, ...]
    """The agents that must be loaded: one, or a pair's two."""
    entry: Mapping[str, Any]
    """Its entry of ``run.json``, with only the tasks that it answers without a partner."""
    header: RecordHeader
    """What its records have in common."""
    resume: ResumeState
    """The answers on disk."""
    run_seed: int
    """The run's seed, from which those of the answers come."""
    records: Path
    """The file of records."""
    journal: Path
    """A pair's file of turns."""
    total: int = 0
    """All its answers, done or not."""
    error: AgentStoppedError | None = None
    """Why it stopped."""
    retried: int = 0
    """Answers that failed before and are tried again now."""
    sampled: Sequence[int] = ()
    """The positions of stimuli that are asked first, so that the run's length can be foretold; :meth:`foretell` sets
    this and the next."""
    forecast: Forecast | None = None
    """How long the rest will take."""

    @property
    def is_pair(self) -> bool:
        """Whether two agents converse."""
        return len(self.members) == 2

    def answers(self, kind: Kind) -> bool:
        """Whether it is asked stimuli of that kind."""
        return is_asked(self.entry, kind)

    def left(self, limit: int | None) -> int:
        """The number of missing answers to the first ``limit`` stimuli."""
        return self.total - self.resume.counts(limit).total() + self.retried

    def requests(self, stimuli: CheckedSet, options: GenerateOptions) -> Iterator[Request]:
        """The missing answers as requests, those of invalid rows among them: first those of the sample, then the others
        in the set's order. With ``options.retry_failed`` requests for answers that failed before come last."""
        yield from self._requests(stimuli, options, None, 1)
        if options.retry_failed:
            yield from self._requests(stimuli, options, "failed", len(stimuli.kinds) + 1)

    def valid_requests(self, stimuli: CheckedSet, options: GenerateOptions) -> Iterator[Request]:
        """The :meth:`requests` whose rows are valid, so that an agent can answer them."""
        requests = self.requests(stimuli, options)
        if not stimuli.invalid:
            return requests
        return (request for request in requests if request.row.position not in stimuli.invalid)

    def _requests(
        self, stimuli: CheckedSet, options: GenerateOptions, status: str | None, first: int
    ) -> Iterator[Request]:
        """Requests for the answers that have ``status`` now, None for missing ones; ``order`` counts from ``first``."""
        kinds = {kind for kind in {*stimuli.kinds.values()} if self.answers(kind)}
        for order, row in enumerate(self._rows(stimuli, options.limit), first):
            if row.kind not in kinds:
                continue
            for sample in range(options.samples):
                key = (row.position, sample)
                if self.resume.status.get(key) == status:
                    yield Request(
                        agent=self.members[0],
                        row=row,
                        name=self.name,
                        sample=sample,
                        run_seed=self.run_seed,
                        order=order,
                        failed_before=self.resume.codes.get(key, ""),
                    )

    def _rows(self, stimuli: CheckedSet, limit: int | None) -> Iterator[StimulusRow]:
        """The first ``limit`` rows of the set in the order in which they are asked: the sample, then the others."""
        sampled = frozenset(self.sampled)
        if sampled:  # all of them are below the limit
            rows = {row.position: row for row in stimuli.rows(sampled)}
            yield from (rows[position] for position in self.sampled)
        yield from (row for row in islice(stimuli.rows(), limit) if row.position not in sampled)

    def foretell(self, stimuli: CheckedSet, options: GenerateOptions, dispatcher: Dispatcher) -> None:
        """Choose the sample, and begin the forecast; the agent, or a pair's first one, is loaded."""
        workers = dispatcher.loaded_workers
        if dispatcher.continuous:
            workers *= dispatcher.max_in_flight
        batch_size = 1 if self.is_pair else dispatcher.batch_size
        missing = self.missing(stimuli, options)
        positions = [position for position, number in enumerate(missing) if number]
        lengths = row_lengths(stimuli.path)
        places = spread(len(positions), max(1, batch_size // options.samples), workers, lengths[positions])
        self.sampled = [positions[place] for place in places]
        self.forecast = Forecast(missing, lengths, batch_size=batch_size, workers=workers, in_turns=self.is_pair)

    def note(self, outcome: Outcome) -> None:
        """Note an answer that is written."""
        position = outcome.request.row.position
        self.resume.note(position, outcome.request.sample)
        if self.forecast is not None and outcome.worker is not None:
            waiting, preparing, responding = outcome.timing
            created = unix_time(outcome.created)
            if self.is_pair:
                self.forecast.note_talk(position, created, waiting + preparing + responding)
            else:
                self.forecast.note(position, created, preparing, responding, outcome.worker.batch_size)

    def seconds_left(self) -> Estimate | None:
        """The seconds until all is answered; None where that cannot be told yet."""
        return None if self.forecast is None else self.forecast.left(time.time())

    def missing(self, stimuli: CheckedSet, options: GenerateOptions) -> list[int]:
        """The number of answers to each stimulus that will be asked for; invalid rows need no time, and count 0."""
        missing = [0] * len(stimuli.kinds)
        asked = {kind: options.samples * self.answers(kind) for kind in {*stimuli.kinds.values()}}
        for position, kind in enumerate(islice(stimuli.kinds.values(), options.limit)):
            missing[position] = asked[kind]
        for (position, _), status in self.resume.status.items():
            if missing[position] and not (options.retry_failed and status == "failed"):
                missing[position] -= 1
        for position in stimuli.invalid:
            missing[position] = 0
        return missing


def share_out(
    options: GenerateOptions, run: Run, states: Mapping[str, ResumeState], kinds: Mapping[Kind, int]
) -> list[Assignment]:
    """The agents' and pairs' shares of a run: ``states`` of their files of records by name, the numbers of the
    stimuli's ``kinds``. Raises InputError for agents with nothing to answer."""
    assignments = []
    problems = []
    for name in options.agents:
        members = catalogue.pair(name)
        described = run.meta["agents"][name]
        entry = {**described, "task": tasks_asked(described)}
        assignment = Assignment(
            name=name,
            members=members,
            entry=entry,
            header=RecordHeader.of(run.meta["run"], entry),
            resume=states[name],
            run_seed=run.meta["seed"],
            records=run.records_path(name),
            journal=run.journal_path(name),
        )
        assignment.total = sum(number for kind, number in kinds.items() if assignment.answers(kind)) * options.samples
        if not assignment.total:
            problems.append(nothing_to_answer(str(options.source), name, entry, kinds))
        if options.retry_failed:
            assignment.retried = assignment.resume.counts(options.limit)["failed"]
        assignments.append(assignment)
    if problems:
        raise InputError("agents have nothing to answer here: leave them out, or ask another task", problems)
    return assignments


def check_usage(
    names: Sequence[str], entries: Mapping[str, Entry], made: Mapping[str, Agent[Any]], samples: int
) -> None:
    """Raises InputError for unfit members or too many samples, UnavailableError for missing needs."""
    problems = [
        Problem("agents", None, name, f"{member} does not converse: it answers {', '.join(entries[member].tasks)}")
        for name in names
        if len(members := catalogue.pair(name)) == 2
        for member in dict.fromkeys(members)
        if "conversation" not in entries[member].tasks
    ]
    problems += [
        Problem("samples", None, name, f"has at most {most} answers to one stimulus, as it is set")
        for name, agent in made.items()
        if (most := agent.declaration().max_samples) is not None and most < samples
    ]
    if problems:
        raise InputError("the agents cannot be used as asked", problems)
    for name, agent in made.items():
        if (missing := agent.missing()) is not None:
            raise UnavailableError(f"agent {name}: {missing}")


def run_entries(
    names: Sequence[str],
    entries: Mapping[str, Entry],
    made: Mapping[str, Agent[Any]],
    settings: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """The agents' and pairs' entries in ``run.json``."""
    described = {}
    for name in names:
        members = [(entries[member], made[member]) for member in catalogue.pair(name)]
        pair = None
        if len(members) == 2:
            pair = read_pair_settings(name, settings.get(name)).model_dump(mode="json")
        described[name] = run_entry(members, pair)
    return described


def chosen_tasks(options: GenerateOptions, described: Mapping[str, dict[str, Any]]) -> Choose:
    """Which tasks rows have that name none; ``described`` are the agents' entries in ``run.json``."""
    tasks_by_agent = {name: tasks_asked(entry) for name, entry in described.items()}
    return chosen_by(tasks_by_agent, options.tasks, options.narrowed)


def nothing_to_answer(where: str, name: str, entry: Mapping[str, Any], kinds: Iterable[Kind]) -> Problem:
    """The problem of an agent without stimuli among the ``kinds``; ``entry`` is its entry of ``run.json``."""
    kinds = [*kinds]
    if {*kinds} == {("conversation", None)} and "conversation" in entry["task"]:
        return Problem(where, None, name, f"a conversation needs two agents: {name}~{name}, or another partner")
    wants = ", ".join(sorted(tasks_asked(entry))) or "conversation"
    if "modes" in entry:
        wants += f" ({', '.join(entry['modes'])})"
    return Problem(where, None, name, f"answers {wants}, but the set has {named(kinds) or 'nothing'}")


class ConversingPair:
    """Two made agents that converse, with the settings of the pair."""

    def __init__(self, name: str, made: Mapping[str, Agent[Any]], settings: Mapping[str, Any] | None) -> None:
        self.name = name
        self.members = catalogue.pair(name)
        self.agents = [made[member] for member in self.members]
        self.settings = read_pair_settings(name, settings)
        first, second = self.agents
        self.policies = {kind: self.settings.policy_for(kind, (first, second)) for kind in get_args(ConversationType)}

    def conversation(self, request: Request, **options: Any) -> Conversation:
        """The conversation that answers ``request``; ``options`` are fields of Conversation."""
        first, second = self.agents
        _, detail = request.row.kind
        return Conversation(
            request=request,
            pair=(self.members[0], self.members[1]),
            policy=self.policies[detail or "MM"],
            settings=self.settings,
            instructions=(instructions_of(first), instructions_of(second)),
            writers=(first.declaration().writes_dialogues, second.declaration().writes_dialogues),
            **options,
        )
