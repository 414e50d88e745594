"""``turinglike agents``: the agents, and everything about one of them. ``turinglike doctor``: what runs here."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import orjson
from rich.text import Text

from agents import __version__, catalogue
from agents.contract import GIB, MIB, Agent, Entry
from agents.errors import TuringlikeError, printable
from agents.random_weights import RANDOM
from agents.stimuli import SHORT, TASKS
from serving.scheduling import machine
from serving.terminal import columns, plain_table, print_table

SHORT_NAMES: dict[str, str] = {name: short for short, name in SHORT.items()}
WIDE = 120  # columns of a terminal with room for all columns of the list
DISTRIBUTION = "turinglike"
_REQUIRED = re.compile(r"([\w.-]+)(?:\[([\w,.-]+)\])?[^;]*;\s*extra == ['\"]([\w-]+)['\"]")


@dataclass(frozen=True, slots=True)
class Needs:
    """What an agent needs, memory in bytes; ``lacks`` is "package", "checkpoint", "other" or None."""

    name: str
    tasks: tuple[str, ...]
    licence: str
    memory: int
    device_memory: int
    fits: bool
    lacks: str | None
    missing: str | None
    random_weights: bool = False

    @property
    def run_here(self) -> bool:
        return self.lacks is None and self.fits


def needs_of_agents(task: str | None = None) -> list[tuple[Entry, Needs]]:
    """Each agent, or each that answers ``task``, and what it needs; agents for tests are left out."""
    free, gpu = machine.available() or machine.host().memory, machine.gpu()
    return [
        (entry, _needs(entry, free, gpu.memory if gpu else 0))
        for entry in catalogue.entries().values()
        if not entry.hidden and task in (None, *entry.tasks)
    ]


def _needs(entry: Entry, free: int, gpu: int) -> Needs:
    about = (entry.name, tuple(entry.tasks), entry.licence)
    try:
        sized = agent = entry.make()
        lacks, missing = _lacking(agent)
        takes_random = entry.takes_random_weights()
        if lacks is not None and takes_random:  # the same model with random weights has the same size
            sized = entry.make({"checkpoint": RANDOM})
    except TuringlikeError as error:
        return Needs(*about, 0, 0, False, "other", str(error))
    except (Exception, SystemExit) as error:  # of another package's code
        return Needs(*about, 0, 0, False, "other", f"its code fails: {error!r}")
    fits = sized.memory <= free or 0 < sized.device_memory <= gpu
    return Needs(*about, sized.memory, sized.device_memory, fits, lacks, missing, takes_random)


def _lacking(agent: Agent[Any]) -> tuple[str | None, str | None]:
    if (missing := agent.missing_packages()) is not None:
        return "package", missing
    missing = agent.missing()
    return (None if missing is None else "checkpoint" if "turinglike fetch" in missing else "other"), missing


def print_agents(
    name: str | None, *, task: str | None, here: bool, sort: Literal["name", "size"] | None, json: bool
) -> int:
    """Print the agent ``name`` in full, or a line for each that answers ``task`` and can run ``here``; returns 0."""
    if name is not None:
        return _print_agent(name, json=json)
    rows = [(entry, needs) for entry, needs in needs_of_agents(task) if not here or needs.run_here]
    if sort is not None:
        rows.sort(key=lambda row: (row[1].memory if sort == "size" else 0, row[0].name))
    if json:
        of_entry = ("name", "summary", "source", "in_paper", "ran", "role", "licence", "tasks")
        of_needs = ("memory", "device_memory", "fits", "missing", "random_weights")
        return _print_json(
            [
                {name: getattr(entry, name) for name in of_entry} | {name: getattr(needs, name) for name in of_needs}
                for entry, needs in rows
            ]
        )
    wide = columns() >= WIDE
    table = plain_table("agent", "task", "memory", *["in paper", "ran"] * wide, "here", "what it is")
    for column in table.columns[:-1]:
        column.no_wrap = True  # so that the last gives way
    for entry, needs in rows:
        short = ", ".join(SHORT_NAMES.get(name, name) for name in entry.tasks)
        tasks = "all" if set(entry.tasks) == set(TASKS) else short
        history = [entry.in_paper, "yes" if entry.ran else "never"] * wide
        summary = Text(printable(entry.summary), no_wrap=True, overflow="ellipsis")
        table.add_row(entry.name, tasks, _gib(needs.memory), *history, "yes" if needs.run_here else "no", summary)
    print_table(table)
    if not all(needs.run_here for _, needs in rows):
        print("\n`turinglike doctor` says what is missing; `turinglike agents NAME` tells all about one")
    if wide and not all(entry.ran for entry, _ in rows):
        print(
            "\nran never: tried with random weights or recorded replies, not with the weights or service that it names"
        )
    return 0


def _print_json(value: Any) -> int:
    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    return 0


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size else "-"


def about(entry: Entry) -> dict[str, Any]:
    """Everything that the catalogue and the agent's class hold, as plain JSON values."""
    agent = entry.make()
    checkpoint, revision = agent.checkpoint()
    missing = agent.missing()
    return {
        "name": entry.name,
        "tasks": list(entry.tasks),
        "modes": list(agent.modes) if "attention_prediction" in entry.tasks else None,
        "judges": list(agent.judges) or None,
        "summary": entry.summary,
        "source": entry.source,
        "in_paper": entry.in_paper,
        "ran": entry.ran,
        "role": entry.role,
        "checkpoint": checkpoint,
        "revision": revision,
        "licence": entry.licence,
        "memory_mib": agent.memory // MIB,
        "device_memory_mib": agent.device_memory // MIB,
        "batch_size": agent.batch_size,
        "continuous": agent.continuous(),
        "settings": _settings(entry),
        "runs_here": missing is None,
        "missing": missing,
        "random_weights": entry.takes_random_weights(),
    }


def _settings(entry: Entry) -> list[dict[str, Any]]:
    values = entry.make().settings.model_dump(mode="json")
    properties = entry.load_class().Settings.model_json_schema().get("properties", {})

    def kind(field: dict[str, Any]) -> Any:
        kinds = [part.get("type") for part in field.get("anyOf", [])]
        return field.get("enum") or field.get("type") or kinds or "any"

    return [
        {"name": name, "type": kind(field), "value": values[name], "description": field.get("description", "")}
        for name, field in properties.items()
    ]


def _print_agent(name: str, *, json: bool) -> int:
    agent = about(catalogue.get(name))
    if json:
        return _print_json(agent)
    settings, missing = agent.pop("settings"), agent.pop("missing")
    agent["runs_here"] = "yes" if missing is None else f"no: {missing}"
    table = plain_table()
    for key, value in agent.items():
        if isinstance(value, bool):
            value = "yes" if value else "no"
        text = ", ".join(value) if isinstance(value, list) else "-" if value is None else value
        table.add_row(key.replace("_", " "), Text(printable(str(text))))
    print_table(table)
    print("settings")
    for field in settings:
        kind = field["type"] if isinstance(field["type"], str) else " | ".join(map(str, field["type"]))
        value = orjson.dumps(field["value"]).decode()
        print(f"  {name}.{field['name']} = {value}  ({kind})  {field['description']}".rstrip())
    return 0


def doctor(task: str | None, *, json: bool) -> int:
    """Print this machine, and what all agents need, or those that answer ``task``; returns 0."""
    here, gpu = machine.host(), machine.gpu()
    free, disk = machine.available() or here.memory, shutil.disk_usage(Path.home()).free
    agents = [needs for _, needs in needs_of_agents(task)]
    absent = dict(_absent_extras())
    python = platform.python_version()
    if json:
        about_machine = {
            "turinglike": __version__,
            "python": python,
            "cores": here.cores,
            "memory": here.memory,
            "memory_free": free,
            "disk_free": disk,
            "gpu": None if gpu is None else {"name": gpu.name, "memory": gpu.memory},
            "extras_missing": absent,
        }
        return _print_json({**about_machine, "agents": [asdict(needs) for needs in agents]})
    graphics = f"{gpu.name} with {gpu.memory / GIB:.0f} GiB" if gpu else "no GPU"
    print(
        f"turinglike {__version__} on Python {python}: {here.cores} cores, {here.memory / GIB:.0f} GiB of memory "
        f"({free / GIB:.0f} free), {disk / GIB:.0f} GiB of disk free, {graphics}"
    )
    for extra, packages in absent.items():
        print(f"not installed: {', '.join(packages)}: pip install 'turinglike[{extra}]'")
    running = [f"{needs.name}{'' if needs.fits else ' (too large here)'}" for needs in agents if needs.lacks is None]
    print(f"\nrun here: {', '.join(running) or 'none'}")
    able = [needs.name for needs in agents if needs.random_weights]
    print(f"\nwith checkpoint=random, to measure a machine without weights: {', '.join(able) or 'none'}")
    if unfetched := [needs for needs in agents if needs.lacks == "checkpoint"]:
        print("\nneed a checkpoint: `turinglike fetch NAME` where there is a network")
        table = plain_table("agent", "task", "memory", "on a GPU", "here", "licence")
        for needs in unfetched:
            fits, licence = "fits" if needs.fits else "too large", Text(printable(needs.licence))
            memory, on_gpu = f"{needs.memory / GIB:.1f} GiB", _gib(needs.device_memory)
            table.add_row(needs.name, ", ".join(needs.tasks), memory, on_gpu, fits, licence)
        print_table(table)
    for kind, title in (("package", "need a package"), ("other", "need something else")):
        lines = [printable(f"  {needs.name}: {needs.missing}") for needs in agents if needs.lacks == kind]
        if lines:
            print("\n".join([f"\n{title}", *lines]))
    return 0


def _absent_extras() -> Iterator[tuple[str, list[str]]]:
    required: dict[str, list[str]] = {}
    for line in metadata.requires(DISTRIBUTION) or ():
        if (match := _REQUIRED.match(line)) is not None and match[1] != DISTRIBUTION:
            required.setdefault(match[3], []).append(match[1])
    for extra, packages in required.items():
        if extra != "test" and (absent := [name for name in packages if not _is_installed(name)]):
            yield extra, absent


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
