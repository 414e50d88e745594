"""``turinglike generate --dry-run``: what a run would take.

The set and the agents are checked as always, and nothing is written to the run folder.

The check keeps its set in a folder of its own, which looks like the run folder: ``run.json`` and the index are copies,
and the folders of records are links. So the same code reads the set and the records as in a run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from agents.contract import Agent, Declaration
from agents.errors import InputError, Problem
from serving.files.signs_of_life import still
from serving.files.terminal import print_warning
from serving.files.words import count
from serving.generation.agent_check import too_large
from serving.generation.assignments import Assignment, GenerateOptions, chosen_tasks, share_out
from serving.generation.measured_speed import MeasuredSpeed, Needs, read_measured, speed_for
from serving.generation.prompt_check import check_prompts
from serving.runs.estimates import Estimate
from serving.runs.forecast import row_lengths
from serving.runs.forecast_sample import Numbers
from serving.runs.opening import prepare_run
from serving.runs.pace import Pace, mean
from serving.runs.resume import read_states
from serving.runs.run import Damage, Run, refuse_other_folder
from serving.runs.status import texts_of
from serving.sets.checking import CheckedSet


def dry_run(
    options: GenerateOptions,
    made: Mapping[str, Agent[Any]],
    described: Mapping[str, dict[str, Any]],
    report: Callable[[str], None],
) -> int:
    """Print how many answers are missing, and what they take. ``made`` are the agents, ``described`` their entries of
    ``run.json``. Returns 0. Raises InputError and IdentityError as ``generate``."""
    measured = {} if options.measured is None else read_measured(options.measured)
    refuse_other_folder(options.out)
    with (
        tempfile.TemporaryDirectory(prefix="turinglike-dry-run-") as temporary,
        _like(options.out, temporary) as folder,
    ):
        if not options.quiet:
            print_warning(f"checking {options.source}")
        with still(f"checking {options.source}", quiet=options.quiet):
            run, stimuli = prepare_run(
                folder,
                options.source,
                tasks=options.tasks,
                choose=chosen_tasks(options, described),
                seed=options.seed,
                samples=options.samples,
                described=described,
                skip_invalid=options.skip_invalid,
                accept_changed_code=options.accept_changed_code,
            )
        if options.limit is not None:
            options.limit *= len(run.meta["set"].get("tasks", [None]))
        positions = {key: position for position, key in enumerate(stimuli.kinds)}
        states = read_states(run, options.agents, positions, options.samples, repair=False)
        kinds = Counter(islice(stimuli.kinds.values(), options.limit))
        assignments = share_out(options, run, states, kinds)
        asked = {work.name: work.entry for work in assignments if work.left(options.limit)}
        rows = (row.json for row in stimuli.rows() if row.position not in stimuli.invalid)
        checked = check_prompts(asked, options.entries, options.settings, rows, run.root, run.meta["seed"])
        checked.refuse(elsewhere=options.address is not None)
        problems: list[Problem] = []
        if options.address is None:
            problems += too_large(options.agents, options.entries, made, options.device)
        if problems:
            raise InputError("the agents cannot be used as asked", problems)
        lengths = row_lengths(stimuli.path)
        for work in assignments:
            agents = [made[member].declaration() for member in work.members]
            missing = work.missing(stimuli, options)
            told = f"{work.name}: {sum(missing):,} of {count(work.total, 'answer')} missing"
            factor = 1.0
            if options.for_answers is not None:
                told = f"{work.name}: {count(options.for_answers, 'answer')} to stimuli like these"
                if not any(missing):  # all is answered: what would it take again?
                    missing = [int(work.answers(kind)) for kind in stimuli.kinds.values()]
                factor = options.for_answers / max(1, sum(missing))
            kept = _kept(run, work, stimuli, missing, lengths, options.replicas, agents) if any(missing) else None
            speed = speed_for(measured.get(work.name, ()), options.replicas)
            if not any(missing):
                report(told)
            elif kept is not None:
                needs, by = kept
                report(f"{told}: {_sentence(needs.times(factor), options)}; {by}")
            elif speed is not None:
                report(
                    f"{told}: {_sentence(Needs.of(options.for_answers or sum(missing), speed), options)}; {_by(speed)}"
                )
            else:
                report(f"{told}; how long they take is not measured yet. {_how_to_measure(work.name, options)}")
    return 0


def _sentence(needs: Needs, options: GenerateOptions) -> str:
    return needs.sentence(options.price_hour, options.price_token)


def _by(speed: MeasuredSpeed) -> str:
    return f"as measured with {count(speed.workers, 'worker')}"


def _how_to_measure(name: str, options: GenerateOptions) -> str:
    command = f"turinglike bench {options.source} --agents {name} --out DIR"
    return f"`{command}` measures it; then give --measured DIR/bench.json"


@contextmanager
def _like(out: Path, temporary: str) -> Iterator[Path]:
    """A folder inside ``temporary`` in which a run would go on as in ``out``. Errors name ``out``."""
    folder = Path(temporary) / "run"
    folder.mkdir()
    for name in ("run.json", "stimuli.index"):
        if (out / name).is_file():
            shutil.copyfile(out / name, folder / name)
    for name in ("records", "turns"):
        if (out / name).is_dir():
            (folder / name).symlink_to((out / name).resolve(), target_is_directory=True)
    try:
        yield folder
    except InputError as error:

        def renamed(text: str) -> str:
            return text.replace(str(folder), str(out))

        problems = [
            Problem(renamed(problem.where), problem.line, problem.field, renamed(problem.message))
            for problem in error.problems
        ]
        raise type(error)(renamed(str(error)), problems) from None


def _kept(
    run: Run,
    work: Assignment,
    stimuli: CheckedSet,
    missing: list[int],
    lengths: Numbers,
    replicas: int | None,
    agents: Sequence[Declaration],
) -> tuple[Needs, str] | None:
    """What the missing answers take by the records that there are, and what that is known by, in words.

    None where the records say too little. ``replicas`` will
    answer; None: as many as so far. ``agents`` are the agent, or a pair's two."""
    path = run.records_path(work.name)
    if not path.exists():
        return None
    pace = Pace({key: position for position, key in enumerate(stimuli.kinds)})
    tokens = []
    for record in run.latest(work.name, Damage()):
        pace.note(record)
        written = [text["tokens"] for text in texts_of(record) if isinstance(text.get("tokens"), int)]
        if written:
            tokens.append(float(sum(written)))
    if not pace.answers:
        return None
    forecast = pace.forecast(missing, lengths, in_turns=work.is_pair)
    seconds = forecast.left()
    if seconds is None:
        return None
    workers = replicas or 1
    if not work.is_pair and not agents[0].batches_by_itself:  # of which requests that overlap are no workers
        before = forecast.workers()
        workers = replicas or before
        seconds = seconds.times(before / workers)
    gpus = workers * sum(agent.devices for agent in agents)
    answers = sum(missing)
    by = "by the pace of the run's records so far"
    if work.is_pair and (talks := forecast.talks()).is_of_few:
        by += (
            f", which are few: many of the {count(talks.ended, 'conversation')} were under way at the same time. More "
            "conversations make this surer"
        )
    needs = Needs(
        seconds=seconds,
        gpus=gpus if pace.is_on_gpu else 0,
        record_bytes=_mean(row_lengths(path)).times(answers),
        tokens=_mean(np.array(tokens)).times(answers) if tokens else None,
    )
    return needs, by


def _mean(values: Numbers) -> Estimate:
    return mean(float(values.sum()), float((values**2).sum()), len(values))
