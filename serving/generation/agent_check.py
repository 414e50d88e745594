"""``turinglike check SET --agents``: whether agents can be asked about a set, without their weights."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from agents import catalogue
from agents.capabilities import SeveralGPUs
from agents.catalogue.selection import Selection, checked_agents
from agents.contract import Agent, Entry
from agents.errors import InputError, Problem, printable
from serving.files.terminal import print_json
from serving.generation.assignments import check_usage, nothing_to_answer, run_entries
from serving.generation.prompt_check import check_prompts, form
from serving.scheduling.placement import DeviceChoice
from serving.scheduling.scheduler import ReplicaPool, Scheduler, WorkerOptions
from serving.scheduling.this_process import ThisProcess
from serving.sets.checking import check_rows, print_report
from serving.sets.kinds import Kind, is_asked, kind_of, tasks_asked
from serving.sets.set_rows import Row, chosen_by
from serving.sets.stimulus_set import read_rows


def check_agents(source: Path, selection: Selection, *, tasks: Sequence[str], deep: bool, json: bool) -> int:
    """Print the problems of the set and of the agents. Returns the exit code: 0, or 2 with problems. Raises InputError
    and UnavailableError as ``generate``."""
    made = checked_agents(selection.entries, selection.settings)
    check_usage(selection.names, selection.entries, made, 1)
    described = run_entries(selection.names, selection.entries, made, selection.settings)
    asked = {name: {**entry, "task": tasks_asked(entry)} for name, entry in described.items()}
    choose = chosen_by({name: entry["task"] for name, entry in asked.items()}, tasks, selection.narrowed)
    forms: dict[Any, bytes] = {}
    kinds: Counter[Kind] = Counter()

    def keep(row: Row, content: bytes | None, signature: int) -> None:
        if row.canonical is not None and not row.problems:
            fields = orjson.loads(row.canonical)
            forms.setdefault(form(fields), row.canonical)
            kinds[kind_of(fields)] += 1

    task = tasks[0] if len(tasks) == 1 else None  # of the whole table
    result = check_rows(read_rows(source, task, choose=choose), deep=deep, on_row=keep)
    root = source.resolve() if source.is_dir() else source.resolve().parent
    checked = check_prompts(asked, selection.entries, selection.settings, forms.values(), root)
    idle = [
        nothing_to_answer(str(source), name, entry, kinds)
        for name, entry in asked.items()
        if not any(is_asked(entry, kind) for kind in kinds)
    ]
    problems = [*checked.problems.values(), *checked.closed.values(), *idle]
    problems += too_large(selection.names, selection.entries, made)
    if json:
        agents = {"problems": [asdict(problem) for problem in problems], "limits": checked.cannot}
        counts = dict(sorted(result.tasks.items()))
        print_json({**asdict(result), "tasks": counts, "agents": agents})
        return 2 if result.total_problems or problems else 0
    code = print_report(result)
    for problem in problems:
        print(problem)
    for name, limits in checked.cannot.items():
        for limit in limits:
            print(printable(f"{name} {limit}"))
    if not problems:
        print(f"{', '.join(selection.names)}: no problems.")
    return 2 if problems else code


def too_large(
    names: Sequence[str], entries: Mapping[str, Entry], made: Mapping[str, Agent[Any]], device: DeviceChoice = "auto"
) -> Iterator[Problem]:
    """Agents and pairs that this machine has no memory for, even one answer at a time.

    What can be spread over several GPUs is left out where a GPU is: how many there are, Ray finds out at the start."""
    here = ThisProcess.of(made, device)
    asyncio.run(here.start())
    for name in names:
        agents = {member: made[member] for member in catalogue.pair(name)}
        if here.nodes[0].gpu_count and any(isinstance(agent, SeveralGPUs) for agent in agents.values()):
            continue
        options = WorkerOptions(entries=entries, device=device)
        try:
            ReplicaPool(here, Scheduler(0), agents, options, "").fit([[*agents]], lambda member: 1)
        except InputError as error:
            yield Problem("agents", None, name, str(error))
