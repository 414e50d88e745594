"""``understudy generate``: check, lock, answer, tidy up, say what was done."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agents import catalogue
from agents.catalogue import Entry
from agents.contract import Agent
from agents.errors import InputError, Problem, StorageError, UnavailableError
from serving.files import lock
from serving.generation import Generation, Options
from serving.run import digest, open_run

__all__ = ["Options", "generate"]


def make_agents(entries: Mapping[str, Entry], settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Agent[Any]]:
    """Every agent with its settings checked. Raises InputError with all that is wrong, and UnavailableError."""
    made: dict[str, Agent[Any]] = {}
    problems: list[Problem] = []
    for name, entry in entries.items():
        try:
            made[name] = entry.make(settings.get(name))
        except InputError as error:
            problems += error.problems or [Problem("--agents", None, name, str(error))]
    if problems:
        raise InputError("the agents cannot be used as asked", problems)
    for name, agent in made.items():
        missing = agent.missing()
        if missing is not None:
            raise UnavailableError(f"agent {name}: {missing}")
    return made


async def generate(options: Options, say: Callable[[str], None]) -> int:
    """Run the command; returns its exit code."""
    made = make_agents(options.entries, options.settings)
    described = {}
    for name in options.agents:
        described[name] = digest([(options.entries[member], made[member]) for member in catalogue.pair(name)])
    print(f"checking {options.source}", file=sys.stderr, flush=True)
    with _folder(options), lock(options.out):
        run, _ = open_run(
            options.out,
            options.source,
            task=options.task,
            seed=options.seed,
            samples=options.samples,
            described=described,
            skip_invalid=options.skip_invalid,
        )
        generation = Generation(options, run, made)
        if generation.plan():
            await generation.execute()
        else:
            say("nothing is left to answer")
        generation.tidy()
        summarize(generation, say)
        return generation.exit_code()


@contextlib.contextmanager
def _folder(options: Options) -> Iterator[None]:
    """The run folder and its parts; made if need be, and gone again if it was made for input that is wrong."""
    out = options.out
    parts = ["records"] + ["turns"] * any("~" in name for name in options.agents)
    fresh = not out.exists()
    try:
        for part in parts:
            (out / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write to {out}: {error.strerror}") from error
    try:
        yield
    except InputError:
        if fresh and not (out / "run.json").exists():
            shutil.rmtree(out)
        raise


def summarize(generation: Generation, say: Callable[[str], None]) -> None:
    """What was done, in a few lines."""
    counts = generation._counts()
    for unit in generation.units:
        found = counts[unit.name]
        parts = [f"{found['ok']} ok"] + [f"{found[key]} {key}" for key in ("rejected", "failed") if found[key]]
        left = unit.total - found.total()
        if left:
            parts.append(f"{left} unanswered")
        say(f"{unit.name}: {', '.join(parts)}")
        if unit.error is not None:
            say(f"{unit.name} stopped: {unit.error}")
    if generation.run.skipped:
        say(f"{generation.run.skipped} rows have no readable id or task and no record")
    say(f"records: {generation.options.out / 'records'}")
