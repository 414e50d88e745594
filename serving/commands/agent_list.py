"""``turinglike agents`` and ``turinglike doctor``: which agents there are, what they need, and which can run here."""

import platform
import shutil
from pathlib import Path
from typing import Any, Literal

import orjson
from rich.text import Text

from agents import __version__, catalogue
from agents.capabilities import OnDisk, Templated, checkpoint_of, limits_of
from agents.contract import GIB, Entry
from agents.errors import TuringlikeError, UnavailableError, printable
from agents.models.hub import readable
from agents.models.random_weights import RANDOM
from agents.stimuli import SHORT, TASKS
from serving.files.terminal import columns, plain_table, print_json, print_table
from serving.scheduling import machine

SHORT_NAMES: dict[str, str] = {name: short for short, name in SHORT.items()}
WIDE = 120  # columns of a terminal with room for all columns of the list
ENTRY_FIELDS = ("name", "summary", "source", "in_paper", "ran", "role", "licence", "tasks")


def catalogue_rows(task: str | None) -> list[dict[str, Any]]:
    """A row for each agent of the catalogue that answers ``task`` (None: any task), by field.

    ``memory`` and ``device_memory`` are bytes; ``missing`` says what the agent lacks here, ``runs_here`` whether it can
    run. Agents of other packages are imported.
    """
    rows = []
    memory = _free_memory()
    for entry in catalogue.entries().values():
        if task in (None, *entry.tasks):
            row = {name: getattr(entry, name) for name in ENTRY_FIELDS} | _needs(entry, memory)
            row["runs_here"] = row["fits"] and row["missing"] is None
            rows.append(row)
    return rows


def _free_memory() -> tuple[int, int]:
    """The bytes that are free in memory, and those of the GPU (0 without one)."""
    gpu = machine.gpu()
    return machine.available() or machine.host().memory, gpu.memory if gpu else 0


def _needs(entry: Entry, free_memory: tuple[int, int]) -> dict[str, Any]:
    try:
        agent = entry.make()
        declared = agent.declaration()
        sized = declared
        missing = agent.missing()
        takes_random = entry.takes_random_weights()
        if missing is not None and takes_random:  # the same model with random weights has the same size
            sized = entry.make({"checkpoint": RANDOM}).declaration()
    except (Exception, SystemExit) as error:  # of another package's code
        missing = str(error) if isinstance(error, TuringlikeError) else f"its code fails: {error!r}"
        return {"memory": 0, "device_memory": 0, "fits": True, "missing": missing, "random_weights": False}
    lacks = {"missing": missing, "random_weights": takes_random}
    if entry.typed and not declared.parameters and not declared.is_elsewhere:  # nothing of it is here
        return {"memory": 0, "device_memory": 0, "fits": None, **lacks}
    host_memory, gpu_memory = free_memory
    fits = sized.memory <= host_memory or 0 < sized.device_memory <= gpu_memory
    return {"memory": sized.memory, "device_memory": sized.device_memory, "fits": fits, **lacks}


def print_agents(
    name: str | None, *, task: str | None, here: bool, sort: Literal["name", "size"] | None, json: bool
) -> int:
    """Print the agent ``name``; without one a table of the agents of ``task`` (None: all), with ``here`` only of those
    that can run on this machine. Returns 0. Raises InputError for a name that is not in the catalogue."""
    if name is not None:
        return _print_agent(name, json=json)
    rows = [row for row in catalogue_rows(task) if not here or row["runs_here"]]
    if sort is not None:
        rows.sort(key=lambda row: (row["memory"] if sort == "size" else 0, row["name"]))
    if json:
        return print_json(rows)
    wide = columns() >= WIDE
    headers = ["agent", "task", "memory", "here", "what it is"]
    if wide:
        headers[3:3] = ["in paper", "ran"]
    table = plain_table(*headers)
    for column in table.columns[:-1]:
        column.no_wrap = True  # so that the last gives way
    for row in rows:
        short = ", ".join(SHORT_NAMES.get(name, name) for name in row["tasks"])
        tasks = "all" if set(row["tasks"]) == set(TASKS) else short
        summary = Text(printable(row["summary"]), no_wrap=True, overflow="ellipsis")
        cells = [row["name"], tasks, _gib(row["memory"]), "yes" if row["runs_here"] else "no", summary]
        if wide:
            cells[3:3] = [row["in_paper"], "yes" if row["ran"] else "never"]
        table.add_row(*cells)
    print_table(table)
    if not all(row["runs_here"] for row in rows):
        print("\n`turinglike doctor` prints why agents cannot run here; `turinglike agents NAME` describes one agent")
    if wide and not all(row["ran"] for row in rows):
        print(
            "\nran never: this agent was tried with random weights or recorded replies, but not with its real weights "
            "or service"
        )
    return 0


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size else "-"


def described(entry: Entry) -> dict[str, Any]:
    """All that ``turinglike agents NAME --json`` tells about an agent, as JSON values. Opens the agent where it can
    run, and loads no weights."""
    agent = entry.make()
    declared = agent.declaration()
    needs = _needs(entry, _free_memory())
    is_here = needs["missing"] is None
    checkpoint = getattr(agent.settings, "checkpoint", None)
    revision = None
    if is_here or declared.is_elsewhere:  # a folder that is no checkpoint may be large
        checkpoint, revision = checkpoint_of(agent)
    if is_here:
        try:
            agent.open()
        except (
            UnavailableError
        ) as error:  # a package of a processor, or a setting; the list, which opens none, says yes
            is_here = False
            needs["missing"] = f"it cannot be opened: {error}"
    limits = None
    if is_here or declared.is_elsewhere:
        limits = limits_of(agent) or None
    return {
        "name": entry.name,
        "runs_here": is_here,
        **{name: getattr(entry, name) for name in ENTRY_FIELDS},
        "tasks": list(entry.tasks),
        "size": agent.size() if is_here and isinstance(agent, OnDisk) else None,
        **needs,
        "modes": list(declared.modes) if "attention_prediction" in entry.tasks else None,
        "judges": list(declared.judges) or None,
        "checkpoint": checkpoint,
        "revision": revision,
        "parameters": declared.parameters or None,
        "batch_size": declared.batch_size,
        "continuous": declared.batches_by_itself,
        "settings": _settings(entry),
        "template_adds": agent.template_adds() if is_here and isinstance(agent, Templated) else None,
        "limits": limits,
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
    agent = described(catalogue.get(name))
    if json:
        return print_json(agent)
    settings = agent.pop("settings")
    missing = agent.pop("missing")
    agent["runs_here"] = "yes" if missing is None else f"no: {missing}"
    agent["size"] = agent["size"] and readable(agent["size"])
    agent["limits"] = agent["limits"] and "; ".join(agent["limits"])
    agent |= {key: _gib(agent[key]) for key in ("memory", "device_memory")}
    table = plain_table()
    for key, value in agent.items():
        if isinstance(value, bool):
            text = "yes" if value else "no"
        elif isinstance(value, list):
            text = ", ".join(value)
        else:
            text = "-" if value is None else str(value)
        table.add_row(key.replace("_", " "), text)
    print_table(table)
    print("settings")
    for field in settings:
        kind = field["type"] if isinstance(field["type"], str) else " | ".join(map(str, field["type"]))
        value = orjson.dumps(field["value"]).decode()
        print(f"  {name}.{field['name']} = {value}  ({kind})  {field['description']}".rstrip())
    return 0


def doctor(task: str | None, *, json: bool) -> int:
    """Print what this machine has, which agents of ``task`` (None: of any) can run on it, and why the others cannot;
    with ``json`` as an object, in which ``agents`` are the rows of :func:`catalogue_rows`. Sizes are bytes there.
    Returns 0."""
    here = machine.host()
    gpu = machine.gpu()
    free = machine.available() or here.memory
    disk = shutil.disk_usage(Path.home()).free
    agents = catalogue_rows(task)
    python = platform.python_version()
    if json:
        about_machine = {
            "turinglike": __version__,
            "python": python,
            "cores": here.cores,
            "memory": here.memory,
            "memory_free": free,
            "disk_free": disk,
            "gpu": {"name": gpu.name, "memory": gpu.memory} if gpu else None,
        }
        return print_json({**about_machine, "agents": agents})
    graphics = f"{gpu.name} with {gpu.memory / GIB:.0f} GiB" if gpu else "no GPU"
    print(
        f"turinglike {__version__} on Python {python}: {here.cores} cores, {here.memory / GIB:.0f} GiB of memory "
        f"({free / GIB:.0f} free), {disk / GIB:.0f} GiB of disk free, {graphics}"
    )
    print(f"\nagents that can run here: {', '.join(row['name'] for row in agents if row['runs_here']) or 'none'}")
    able = [row["name"] for row in agents if row["random_weights"]]
    print(f"\nagents that take random weights (checkpoint=random), to measure a machine: {', '.join(able) or 'none'}\n")
    table = plain_table("agent", "memory", "on a GPU", "licence", "why it does not run here")
    for row in agents:
        if not row["runs_here"]:
            reason = row["missing"] or ""
            if not row["fits"]:
                reason = f"too large; {reason}"
            table.add_row(row["name"], _gib(row["memory"]), _gib(row["device_memory"]), row["licence"], reason)
    print_table(table)
    if not all(row["fits"] for row in agents):
        print(
            "\nwhat is too large may fit with a smaller model, if the agent has the setting checkpoint: "
            "--set AGENT.checkpoint=NAME. `turinglike agents AGENT` shows settings"
        )
    return 0
