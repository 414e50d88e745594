"""``turinglike agents``: what agents there are, and all about one."""

from __future__ import annotations

import json as json_module
from typing import Any, Literal

from rich.text import Text

from agents import catalogue
from agents.catalogue import Entry
from agents.contract import GIB, MIB
from agents.errors import printable
from agents.tasks import SHORT, TASKS
from serving.doctor import examined
from serving.terminal import columns, plain_table, print_table

SHORTER: dict[str, str] = {name: short for short, name in SHORT.items()}
WIDE = 120  # columns in which there is room for everything


def about(entry: Entry) -> dict[str, Any]:
    """Everything the catalogue and the agent's class say, as plain JSON values."""
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
    cls = entry.load_class()
    chosen = entry.make().settings.model_dump(mode="json")
    schema = cls.Settings.model_json_schema()
    found = []
    for name, field in schema.get("properties", {}).items():
        kind = field.get("enum") or field.get("type") or [one.get("type") for one in field.get("anyOf", [])] or "any"
        found.append({"name": name, "type": kind, "value": chosen[name], "description": field.get("description", "")})
    return found


def print_agents(
    task: str | None = None, *, here: bool = False, sort: Literal["name", "size"] | None = None, json: bool
) -> int:
    """All agents that are not for testing only, or those that answer the ``task``, one line each; only those that can
    run ``here``; in the catalogue's order, or sorted by name or by the memory that they take."""
    rows = [(entry, found) for entry, found in examined(task) if not here or (found.lacks is None and found.fits)]
    if sort is not None:
        rows.sort(key=lambda row: (row[1].memory if sort == "size" else 0, row[0].name))
    if json:
        keys = ("name", "summary", "source", "in_paper", "ran", "role", "licence")
        listed = [
            {
                **{key: getattr(entry, key) for key in keys},
                "tasks": list(entry.tasks),
                "memory": found.memory,
                "device_memory": found.device_memory,
                "fits": found.fits,
                "missing": found.missing,
                "random_weights": found.random_weights,
            }
            for entry, found in rows
        ]
        print(json_module.dumps(listed, indent=2, ensure_ascii=False))
        return 0
    wide = columns() >= WIDE
    table = plain_table("agent", "task", "memory", *["in paper", "ran"] * wide, "here", "what it is")
    for column in table.columns[:-1]:
        column.no_wrap = True  # so that the last gives way
    for entry, found in rows:
        tasks = "all" if set(entry.tasks) == set(TASKS) else ", ".join(SHORTER.get(one, one) for one in entry.tasks)
        able = "yes" if found.lacks is None and found.fits else "no"
        about = [entry.in_paper, "yes" if entry.ran else "never"] * wide
        memory = f"{found.memory / GIB:.1f} GiB" if found.memory else "-"
        summary = Text(printable(entry.summary), no_wrap=True, overflow="ellipsis")
        table.add_row(entry.name, tasks, memory, *about, able, summary)
    print_table(table)
    if any(found.lacks is not None or not found.fits for _, found in rows):
        print("\n`turinglike doctor` says what is missing; `turinglike agents NAME` tells all about one")
    if wide and not all(entry.ran for entry, _ in rows):
        print(
            "\nran never: tried with random weights or recorded replies, not with the weights or service that it names"
        )
    return 0


def print_agent(name: str, *, json: bool) -> int:
    """One agent in full."""
    found = about(catalogue.get(name))
    if json:
        print(json_module.dumps(found, indent=2, ensure_ascii=False))
        return 0
    settings = found.pop("settings")
    missing = found.pop("missing")
    found["runs_here"] = "yes" if missing is None else f"no: {missing}"
    table = plain_table()
    for key, value in found.items():
        if isinstance(value, bool):
            value = "yes" if value else "no"
        shown = ", ".join(value) if isinstance(value, list) else "-" if value is None else value
        table.add_row(key.replace("_", " "), Text(printable(str(shown))))
    print_table(table)
    print("settings")
    for one in settings:
        kind = one["type"] if isinstance(one["type"], str) else " | ".join(map(str, one["type"]))
        print(f"  {name}.{one['name']} = {json_module.dumps(one['value'])}  ({kind})  {one['description']}".rstrip())
    return 0
