"""``turinglike bench SET --agents A,B``: agents over a set, by the way of ``generate`` or ``serve``."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agents import catalogue
from agents.catalogue.selection import Selection, checked_agents, read_names, resolve
from agents.errors import TuringlikeError
from agents.stimuli import Task
from serving.bench import made_stimuli
from serving.bench.drawn_set import Material, read_material
from serving.bench.options import CONNECTIONS, MINUTES, REPLICAS, BenchOptions
from serving.bench.results import BenchResult, Failed
from serving.bench.set_bench import Prices, SetBench
from serving.bench.set_runs import REPEATS, measure_runs
from serving.files.terminal import print_warning
from serving.generation.assignments import check_usage, run_entries
from serving.scheduling.cluster import check_installed
from serving.scheduling.recovery import describe_error
from serving.sets.kinds import tasks_asked
from serving.sets.set_rows import chosen_by

MADE = 1024  # stimuli of the program's own


def measure_set(options: BenchOptions, result: BenchResult) -> None:
    """Measure the agents of ``options`` over a set, adding to ``result`` what is measured and what fails; at the end it
    is ``complete``. Raises InputError and UnavailableError before anything is measured."""
    verb = "asked by HTTP" if options.http else "measured"
    names = read_names("--agents", options.agents or "", verb, with_pairs=not options.http)
    selection = resolve(names, options.settings, options.config)
    made = checked_agents(selection.entries, selection.settings)
    check_usage(selection.names, selection.entries, made, 1)
    check_installed()
    prices = Prices(options.price_hour, options.price_token)
    source = options.source
    with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
        materials = {}
        for name in selection.names:
            own = source or _made_set(Path(folder), name, selection, options)
            materials[name] = _material(own, name, selection, options.task)
        bench = SetBench(
            entries=selection.entries,
            settings=selection.settings,
            source="made stimuli" if source is None else str(source),
            materials=materials,
            has_forecast=source is not None,
            for_answers=options.for_answers,
            seconds=60 * (options.minutes or MINUTES) / REPEATS,
            device=options.device,
            address=options.address,
            batch_size=options.batch_size,
            prices=prices,
            arguments=_arguments(options),
            connections=(options.connections or CONNECTIONS) if options.http else None,
        )
        for name in selection.names:
            with _noted(result, name):
                for measured in measure_runs(bench, name, sorted({*(options.replicas or REPLICAS)}), print_warning):
                    result.runs[:] = [other for other in result.runs if other.agent != name] + [measured]
    result.complete = True


def _arguments(options: BenchOptions) -> list[str]:
    """The options that give the agents of a server the settings that they have here."""
    arguments = []
    for assignment in options.settings:
        arguments += ["--set", assignment]
    if options.config is not None:
        arguments += ["--config", str(options.config)]
    return arguments


def _material(source: Path, name: str, selection: Selection, task: Task | None) -> Material:
    members = {member: selection.entries[member] for member in catalogue.pair(name)}
    made = checked_agents(members, selection.settings)
    described = run_entries([name], selection.entries, made, selection.settings)[name]
    return read_material(source, task, chosen_by({name: tasks_asked(described)}, narrowed=selection.narrowed))


def _made_set(folder: Path, name: str, selection: Selection, options: BenchOptions) -> Path:
    """A set of the program's own stimuli for the task that is asked, or the agent's first; for a pair conversations."""
    members = catalogue.pair(name)
    path = folder / f"{name}.jsonl"
    if len(members) == 2:
        return made_stimuli.write(path, "conversation", None, MADE)
    agent = checked_agents({name: selection.entries[name]}, selection.settings)[name]
    return made_stimuli.write(path, *made_stimuli.first_task(name, agent, options.task, options.mode), MADE)


@contextlib.contextmanager
def _noted(result: BenchResult, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # an agent's own fault must not end the others' measurement
        message = str(error) if isinstance(error, TuringlikeError) else describe_error(error)
        result.failed.append(Failed(name, message))
        print_warning(f"{name}: {message}")
