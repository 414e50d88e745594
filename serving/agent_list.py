"""``turinglike agents``: what agents there are, and all about one."""

from __future__ import annotations

import json as json_module
from typing import Any

from rich.text import Text

from agents import catalogue
from agents.catalogue import Entry
from agents.contract import MIB
from agents.errors import TuringlikeError, printable
from agents.stimuli import TASKS
from serving.terminal import plain_table, print_table


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


def print_agents(task: str | None = None, *, json: bool) -> int:
    """All agents that are not for testing only, or those that answer the ``task``, one line each."""
    rows = []
    for entry in catalogue.entries().values():
        if entry.hidden or task not in (None, *entry.tasks):
            continue
        able = False
        try:
            missing = entry.make().missing()
            able = entry.takes_random_weights()
        except TuringlikeError as error:
            missing = str(error)
        except (Exception, SystemExit) as error:  # of somebody else's package
            missing = f"its code fails: {error!r}"
        rows.append((entry, missing, able))
    if json:
        keys = ("name", "summary", "source", "in_paper", "ran", "role", "licence")
        listed = [
            {
                **{key: getattr(entry, key) for key in keys},
                "tasks": list(entry.tasks),
                "missing": missing,
                "random_weights": able,
            }
            for entry, missing, able in rows
        ]
        print(json_module.dumps(listed, indent=2, ensure_ascii=False))
        return 0
    table = plain_table("agent", "task", "in paper", "ran", "here", "what it is")
    for entry, missing, _ in rows:
        tasks = "all" if set(entry.tasks) == set(TASKS) else ", ".join(entry.tasks)
        here = "yes" if missing is None else "no"
        table.add_row(
            entry.name, tasks, entry.in_paper, "yes" if entry.ran else "never", here, Text(printable(entry.summary))
        )
    print_table(table)
    if any(missing for _, missing, _ in rows):
        print("\n`turinglike agents NAME` says what is missing")
    if not all(entry.ran for entry, _, _ in rows):
        print(
            "\nran never: tried with random weights or recorded replies, not with the weights or service that it names"
        )
    takers = ", ".join(entry.name for entry, _, able in rows if able)
    print(f"\nwith checkpoint=random, to measure a machine without weights: {takers}")
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
