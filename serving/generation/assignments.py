"""The options of ``generate``, and what each agent and pair has to answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from serving.runs.records import RecordHeader
from serving.runs.resume import ResumeState
from serving.runs.run import Run
from serving.runs.run_json import run_entry
from serving.scheduling.request import Request
from serving.scheduling.scheduler import WorkerOptions
from serving.sets.checking import CheckedSet
from serving.sets.kinds import Kind, is_asked, named, tasks_asked


@dataclass(slots=True)
class GenerateOptions(WorkerOptions):
    """The options of ``generate``, with those of workers."""

    source: Path
    """The path of the stimulus set: a file, or a folder of pictures."""
    agents: list[str]
    """The agents and pairs ``a~b``, by name."""
    out: Path
    """The run folder."""
    task: str | None = None
    """The task of rows without one."""
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
        """The missing answers as requests, those of invalid rows among them, in the set's order. With
        ``options.retry_failed`` requests for answers that failed before come after all others."""
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
        for row in islice(stimuli.rows(), options.limit):
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
                        order=first + row.position,
                        failed_before=self.resume.codes.get(key, ""),
                    )


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


def nothing_to_answer(where: str, name: str, entry: Mapping[str, Any], kinds: Iterable[Kind]) -> Problem:
    """The problem of an agent without stimuli among the ``kinds``; ``entry`` is its entry of ``run.json``."""
    kinds = [*kinds]
    hint = "; a conversation needs a pair: a~b" if {*kinds} == {("conversation", None)} else ""
    wants = ", ".join(sorted(tasks_asked(entry))) or "conversation"
    if "modes" in entry:
        wants += f" ({', '.join(entry['modes'])})"
    return Problem(where, None, name, f"answers {wants}, but the set has {named(kinds) or 'nothing'}{hint}")


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
