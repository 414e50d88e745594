"""Measures agents over a set by ``generate`` or ``serve`` themselves: the same check, Ray, scheduler, workers and files
of records."""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from agents import catalogue
from agents.catalogue.selection import checked_agents
from agents.contract import Agent
from agents.errors import AgentStoppedError, InputError, TuringlikeError
from serving.bench.figures import rate
from serving.bench.generate_run import GenerateRun
from serving.bench.limits import limit
from serving.bench.run_results import MeasuredRuns, Repeat, Scaled, WholeSet, median_run
from serving.bench.served_run import ServedRun
from serving.bench.set_bench import Prices, SetBench
from serving.files.words import count
from serving.generation.assignments import nothing_to_answer, run_entries
from serving.generation.measured_speed import of_repeats, total
from serving.runs.estimates import Estimate
from serving.scheduling import interrupts
from serving.sets.kinds import is_asked, kind_of

REPEATS = 3


def measure_runs(
    bench: SetBench, name: str, replicas: Sequence[int], log: Callable[[str], None]
) -> Iterator[MeasuredRuns]:
    """Measure the agent or pair ``name`` with each number of ``replicas``; yields its result after each.

    Raises AgentStoppedError where nothing is answered, and the errors of ``generate``.
    """
    members = catalogue.pair(name)
    entries = {member: bench.entries[member] for member in members}
    made = checked_agents(entries, bench.settings)
    described = run_entries([name], entries, made, bench.settings)[name]
    material = bench.materials[name]
    kinds = {kind: number for kind, number in material.kinds.items() if is_asked(described, kind)}
    rows = [line for line in material.rows if kind_of(orjson.loads(line)) in kinds]
    if not rows:
        problem = nothing_to_answer(bench.source, name, described, material.kinds)
        raise InputError("there is nothing to measure", [problem])
    result = MeasuredRuns(
        agent=name,
        task=", ".join(sorted({task for task, _ in kinds})),
        digest=described["digest"],
        settings=settings_of(described),
        source=bench.source,
        way="generate" if bench.connections is None else "serve",
    )
    times = 1
    for number in replicas:
        measured = _Measured(number)
        try:
            while len(measured.repeats) < REPEATS:
                times = _repeat(bench, name, made, rows, measured, times, log)
        except (interrupts.Interrupted, TuringlikeError):
            if measured.repeats:  # what was measured is not lost with what was not
                result.scaling.append(_scaled(bench, made, sum(kinds.values()), measured, result.scaling))
                yield result
            raise
        result.scaling.append(_scaled(bench, made, sum(kinds.values()), measured, result.scaling))
        yield result


@dataclass(slots=True)
class _Measured:
    """What was measured with a number of ``replicas`` so far."""

    replicas: int
    repeats: list[Repeat] = field(default_factory=list)
    devices: int = 0
    """GPUs in use."""


def _repeat(
    bench: SetBench,
    name: str,
    made: Mapping[str, Agent[Any]],
    rows: Sequence[bytes],
    measured: _Measured,
    times: int,
    log: Callable[[str], None],
) -> int:
    """Measure once, with the rows asked a number of ``times``, and add what came of it to ``measured``.

    Returns how often the rows are to be asked from now on; if that is more than before, nothing was added. Raises
    AgentStoppedError where nothing is answered, or too little to be measured.
    """
    repeats = measured.repeats
    with tempfile.TemporaryDirectory(prefix="turinglike-bench-") as folder:
        drawn = random.Random(len(repeats)).sample(rows, len(rows))  # each repeat asks other stimuli first
        run: GenerateRun | ServedRun
        if bench.connections is None:
            run = GenerateRun(bench, name, made, drawn, measured.replicas, times, Path(folder))
        else:
            run = ServedRun(bench, name, made[name], drawn, measured.replicas, Path(folder))
        log(f"{name}: {count(measured.replicas, 'worker')}, repeat {len(repeats) + 1} of {REPEATS}")
        window = run.measure()
        if window is not None and window.failed == window.answers:
            raise AgentStoppedError(f"no stimulus is answered: {window.failure}")
        more = run.more_needed()
        if more > times and not repeats:
            log(f"{name}: all was answered too soon; asking {more} times as much")
            return more
        if window is None:
            progress = run.progress()
            raise AgentStoppedError(f"{progress.text()}; --minutes {progress.minutes(REPEATS)} should do")
        measured.devices = run.gpus_in_use(window)
        repeats.append(run.as_repeat(window))
        log(f"{name}: {rate(repeats[-1].rate_s)} answers/s")
    return times


def _scaled(
    bench: SetBench, made: Mapping[str, Agent[Any]], answers: int, measured: _Measured, before: Sequence[Scaled]
) -> Scaled:
    """The result of a number of workers; ``before`` are those of fewer, ``answers`` the whole set has."""
    repeats = measured.repeats
    typical = median_run(repeats)
    code, why = limit(
        typical.shares,
        on_gpu=measured.devices > 0,
        calls=all(agent.declaration().batches_by_itself for agent in made.values()),
        http=bench.connections is not None,
    )
    efficiency = None
    if before:
        smallest = before[0]
        efficiency = (typical.rate_s / measured.replicas) / (smallest.median / smallest.replicas)
    forecast = None
    if bench.has_forecast:
        forecast = forecast_of(repeats, bench.for_answers or answers, measured.devices, bench.prices)
    return Scaled(measured.replicas, repeats, code, why, measured.devices, efficiency, forecast)


def settings_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in an entry of ``run.json``; of a pair those of its members by name."""
    if "members" in described:
        return {name: entry["settings"] for name, entry in described["members"].items()}
    return {**described["settings"]}


def forecast_of(repeats: Sequence[Repeat], answers: int, devices: int, prices: Prices) -> WholeSet:
    """What ``answers`` take at the rate of the ``repeats``; ``devices`` are the GPUs in use.

    Time is answers over rate, and the start of a run. Every interval is of one more run, as the repeats' rates (or
    tokens) scatter, so it holds under the same conditions, and for a set whose stimuli were drawn at random.
    """
    seconds = of_repeats([answers / repeat.rate_s for repeat in repeats])
    start = median(repeat.start_s for repeat in repeats)
    hours = seconds.plus(start).times(1 / 3600)
    units = hours if not devices else hours.times(devices)
    costs: list[Estimate] = []
    if prices.hour is not None:
        costs.append(units.times(prices.hour))
    tokens = [repeat.tokens_s / repeat.rate_s for repeat in repeats if repeat.tokens_s]
    if prices.token is not None and tokens:
        costs.append(of_repeats(tokens).times(answers * prices.token))
    return WholeSet(
        answers=answers,
        hours=hours,
        gpu_hours=units if devices else None,
        record_bytes=of_repeats([repeat.record_bytes for repeat in repeats]).times(answers),
        cost=total(costs) if costs else None,
    )
