"""Agents and settings from ``--set agent.field=value`` and from a TOML file with tables of agents, pairs and
variants."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from agents import catalogue
from agents.catalogue import NAME, RESERVED
from agents.catalogue.named_models import is_model_name, plain_name
from agents.contract import Agent, Entry
from agents.errors import InputError, Problem
from agents.stimuli import SHORT, TASKS

PROJECT_AGENTS = "agents"
"""The table of a project's file (``turinglike.toml``) that has the tables of agents."""
NOT_USABLE = "the agents cannot be used as asked"


def read_names(where: str, text: str, verb: str, *, with_pairs: bool = False) -> list[str]:
    """Agents parted by commas, once each; pairs only if ``with_pairs``. Raises InputError, naming the option ``where``
    and the ``verb``."""
    names = [name for name in text.split(",") if name]
    pairs = [
        Problem(where, None, name, f"a pair is not {verb}; name its agents")
        for name in names
        if not with_pairs and len(catalogue.members(name)) > 1
    ]
    if not names or len(set(names)) != len(names):
        raise InputError(f"{where}: name each agent to be {verb} once", pairs)
    if pairs:
        raise InputError(NOT_USABLE, pairs)
    return names


@dataclass(frozen=True, slots=True)
class Selection:
    """The agents and pairs that a command is about."""

    names: list[str]
    """Their names in records, in the order in which they were typed."""
    plain: dict[str, str]
    """These names by what was typed."""
    entries: dict[str, Entry]
    """The entry of every agent, members of pairs too, by its name."""
    settings: dict[str, dict[str, Any]]
    """Settings of agents and pairs by their names, where there are any."""
    narrowed: set[str]
    """The names of agents whose tasks were chosen, as ``hf:./my-vlm=caption``."""


def resolve(names: Sequence[str], assignments: Sequence[str], config: Path | None, where: str = "agents") -> Selection:
    """Agents with variants and settings; ``hf:./my-vlm=caption`` answers this task alone. Raises InputError with
    everything that is wrong."""
    variants, settings, problems = _read_config(config)
    entries: dict[str, Entry] = {}
    plain: dict[str, str] = {}
    asked: list[str] = []
    narrowed: set[str] = set()
    for typed in names:
        name, tasks = _with_tasks(typed)
        try:
            for member in catalogue.pair(name):
                entry = variants.get(member) or catalogue.get(member)
                if tasks:
                    entry = _narrowed(entry, name, tasks)
                is_taken = member != entry.name and entry.name in {*variants, *catalogue.names()}
                if member not in plain and (is_taken or entry.name in entries):
                    raise InputError(
                        f"{member} would be called {entry.name}, as another agent is; give it a name in a file of "
                        f'settings (--config): [NAME] agent = "{member}"'
                    )
                entries[entry.name] = entry
                plain[member] = entry.name
            plain[name] = plain[typed] = _plain(name)
            asked.append(plain[name])
            if tasks:
                narrowed.add(plain[name])
        except InputError as error:
            problems.append(Problem(where, None, None, str(error)))
    if any(asked.count(name) > 1 for name in narrowed):
        problems.append(Problem(where, None, None, "an agent is given twice; several tasks are agent=color+caption"))
    by_target = plain | {name: name for name in plain.values()}
    for assignment in assignments:
        problem = _assign(assignment, by_target, settings)
        if problem:
            problems.append(Problem("--set", None, None, f"{assignment!r}: {problem}"))
    if problems:
        raise InputError(NOT_USABLE, problems)
    used = {name: settings[name] for name in [*entries, *asked] if name in settings}
    return Selection(asked, plain, entries, used, narrowed)


def _with_tasks(typed: str) -> tuple[str, tuple[str, ...]]:
    """An agent's name, and the tasks behind its "="; none where it has none. What is behind a "=" and no task belongs
    to the name: folders of checkpoints are called step=100."""
    name, equals, text = typed.rpartition("=")
    tasks = tuple(SHORT.get(part, part) for part in text.split("+"))
    if not equals or not all(task in TASKS for task in tasks):
        return typed, ()
    return name, tasks


def _narrowed(entry: Entry, name: str, tasks: Sequence[str]) -> Entry:
    if len(catalogue.members(name)) > 1:
        raise InputError(f"{name}: a pair has conversations alone; leave its task out")
    if others := [task for task in tasks if task not in entry.tasks]:
        raise InputError(f"{name} does not answer {', '.join(others)}; it answers {', '.join(entry.tasks)}")
    return replace(entry, tasks=tuple(task for task in entry.tasks if task in tasks))


def _plain(name: str) -> str:
    return "~".join(plain_name(part) if is_model_name(part) else part for part in catalogue.pair(name))


def checked_agents(entries: Mapping[str, Entry], settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Agent[Any]]:
    """The agents of ``entries`` by name, made with their ``settings`` and not opened. Raises InputError with all that
    is wrong."""
    agents: dict[str, Agent[Any]] = {}
    problems: list[Problem] = []
    for name, entry in entries.items():
        try:
            agents[name] = entry.make(settings.get(name))
        except InputError as error:
            problems += error.problems or [Problem("agents", None, name, str(error))]
    if problems:
        raise InputError(NOT_USABLE, problems)
    return agents


def _read_config(path: Path | None) -> tuple[dict[str, Entry], dict[str, dict[str, Any]], list[Problem]]:
    """Variants, settings and problems. Raises InputError for a file that cannot be read."""
    variants: dict[str, Entry] = {}
    settings: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    if path is None:
        return variants, settings, problems
    for name, table in _read_tables(path).items():
        try:
            if not isinstance(table, dict):
                raise InputError("must be a table of an agent's settings")
            is_pair = len(catalogue.members(name)) > 1
            base = None if is_pair else table.pop("agent", None)
            if is_pair:
                catalogue.pair(name)
            elif base is None:
                catalogue.get(name)
            elif not NAME.fullmatch(name) or name in catalogue.names() or name in RESERVED:
                rule = "a variant needs a name of its own: [a-z0-9][a-z0-9._-]*"
                if name in RESERVED:
                    rule += f" (not {', '.join(sorted(RESERVED))})"
                raise InputError(rule)
            else:
                variants[name] = replace(catalogue.get(str(base)), name=name)
            settings[_plain(name)] = table
        except InputError as error:
            problems.append(Problem(str(path), None, name, str(error)))
    return variants, settings, problems


def _read_tables(path: Path) -> dict[str, Any]:
    """The tables of agents in a file. Of a project's file they stand in its table ``agents``."""
    try:
        tables = tomllib.loads(path.read_text("utf-8-sig"))
        of_project = tables.get(PROJECT_AGENTS)
        if isinstance(of_project, dict) and all(isinstance(table, dict) for table in of_project.values()):
            return of_project
        return tables
    except OSError as error:
        raise InputError(f"config {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8
        raise InputError(f"config {path}: {error}") from None


def _assign(assignment: str, names: Mapping[str, str], settings: dict[str, dict[str, Any]]) -> str | None:
    target, equals, text = assignment.partition("=")
    # Names may contain dots: the longest agent that fits is meant.
    typed = max((name for name in names if target.startswith(name + ".")), key=len, default=None)
    if not equals:
        return "must be agent.field=value"
    if typed is None:
        return "starts with the name of no agent that is asked"
    *parts, field = target[len(typed) + 1 :].split(".")
    if not all([*parts, field]):
        return "names no field"
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    group = settings.setdefault(names[typed], {})
    for part in parts:
        group = group.setdefault(part, {})
        if not isinstance(group, dict):
            return f"{part} is not a group of settings"
    group[field] = value
    return None
