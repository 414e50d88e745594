"""The catalogue: every agent by name, without importing any of them.

Ours stand in :mod:`agents.built_in`, a line each. Somebody else's package adds agents through the entry-point group
``turinglike.agents``: the entry's name is the agent's, its value an :class:`agents.contract.Agent` subclass or an
:class:`Entry` ::

    [project.entry-points."turinglike.agents"]
    echo = "echo_agent:Echo"
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from functools import cache
from importlib import metadata

from agents.built_in import BUILT_IN
from agents.contract import Agent
from agents.entry import Entry
from agents.errors import InputError, printable

__all__ = ["BUILT_IN", "GROUP", "NAME", "RESERVED", "Entry", "entries", "get", "pair"]

GROUP = "turinglike.agents"
RESERVED = frozenset({"humans", "published", "options"})  # what imports are kept under, a table of --config
log = logging.getLogger("turinglike.agents")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@cache
def entries() -> dict[str, Entry]:
    """Every agent known on this machine by name: ours, then those of installed packages (which cannot replace ours).

    One that cannot be read is left out; the log names its package, once.
    """
    found = {entry.name: entry for entry in BUILT_IN}
    for point in metadata.entry_points(group=GROUP):
        try:
            if not NAME.fullmatch(point.name):
                raise InputError("its name must be [a-z0-9][a-z0-9._-]*")
            if point.name in found or point.name in RESERVED:
                raise InputError("its name is already taken")
            found[point.name] = _from_entry_point(point)
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, InputError) else f"it cannot be imported: {error!r}"
            package = point.dist.name if point.dist is not None else point.value
            log.warning("%s", printable(f"turinglike: package {package}: agent {point.name!r} is left out: {why}"))
    return found


def _from_entry_point(point: metadata.EntryPoint) -> Entry:
    value = point.load()
    if isinstance(value, Entry):
        return replace(value, name=point.name)
    if isinstance(value, type) and issubclass(value, Agent):
        summary = (value.__doc__ or "").strip().splitlines()
        package = point.dist.name if point.dist is not None else point.value
        return Entry(
            point.name, point.value, value.tasks, summary[0] if summary else "", f"package {package}", licence="unknown"
        )
    raise TypeError("neither an Agent class nor an Entry")


def get(name: str) -> Entry:
    """The entry called ``name``; InputError with the nearest names otherwise."""
    known = entries()
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {', '.join(near)}?" if near else "`turinglike agents` lists them all"
        raise InputError(f"there is no agent {name!r}: {hint}")
    return known[name]


def pair(name: str) -> tuple[str, ...]:
    """The agents that ``name`` stands for: ("a",), or ("a", "b") for the pair ``a~b``."""
    parts = tuple(name.split("~"))
    if len(parts) > 2 or not all(NAME.fullmatch(part) for part in parts):
        raise InputError(f"bad agent name {name!r}: [a-z0-9][a-z0-9._-]*, or a pair a~b")
    return parts
