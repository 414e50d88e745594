"""The catalogue: every agent by name, without importing any that is not asked for.

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
from agents.contract import Agent, Entry
from agents.errors import InputError, printable

__all__ = ["BUILT_IN", "GROUP", "NAME", "RESERVED", "Entry", "entries", "get", "names", "pair"]

GROUP = "turinglike.agents"
RESERVED = frozenset({"humans", "published"})  # what imports are kept under
log = logging.getLogger("turinglike.agents")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_OURS = {entry.name: entry for entry in BUILT_IN}


@cache
def _installed() -> dict[str, metadata.EntryPoint]:
    """The agents of installed packages by name, of which nothing is imported; the log tells of names that cannot be
    had, once."""
    found: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=GROUP):
        if not NAME.fullmatch(point.name):
            log.warning("turinglike: %s", _left_out(point, "its name must be [a-z0-9][a-z0-9._-]*"))
        elif point.name in _OURS or point.name in found or point.name in RESERVED:
            log.warning("turinglike: %s", _left_out(point, "its name is already taken"))
        else:
            found[point.name] = point
    return found


def names() -> list[str]:
    """The names of all agents: ours, then those of installed packages, which cannot replace ours. Nothing is
    imported."""
    return [*_OURS, *_installed()]


@cache
def entries() -> dict[str, Entry]:
    """Every agent known on this machine by name, for which all packages of agents are imported.

    One that cannot be imported is left out; the log names its package, once.
    """
    found = dict(_OURS)
    for name in _installed():
        try:
            found[name] = get(name)
        except InputError as error:
            log.warning("turinglike: %s", error)
    return found


@cache
def get(name: str) -> Entry:
    """The entry called ``name``, for which only its own package is imported. Raises InputError, with the nearest names
    where there is none."""
    if name in _OURS:
        return _OURS[name]
    if point := _installed().get(name):
        try:
            return _from_entry_point(point)
        except (Exception, SystemExit) as error:
            raise InputError(_left_out(point, f"it cannot be imported: {error!r}")) from None
    import difflib

    near = difflib.get_close_matches(name, names(), 3)
    hint = f"did you mean {', '.join(near)}?" if near else "`turinglike agents` lists them all"
    raise InputError(f"there is no agent {name!r}: {hint}")


def _from_entry_point(point: metadata.EntryPoint) -> Entry:
    value = point.load()
    if isinstance(value, Entry):
        return replace(value, name=point.name)
    if isinstance(value, type) and issubclass(value, Agent):
        summary = (value.__doc__ or "").strip().splitlines()
        about = f"package {_package(point)}"
        return Entry(point.name, point.value, value.tasks, summary[0] if summary else "", about, licence="unknown")
    raise TypeError("neither an Agent class nor an Entry")


def _left_out(point: metadata.EntryPoint, why: str) -> str:
    return printable(f"package {_package(point)}: agent {point.name!r} is left out: {why}")


def _package(point: metadata.EntryPoint) -> str:
    return point.value if point.dist is None else point.dist.name


def pair(name: str) -> tuple[str, ...]:
    """The agents that ``name`` stands for: ("a",), or ("a", "b") for the pair ``a~b``."""
    parts = tuple(name.split("~"))
    if len(parts) > 2 or not all(NAME.fullmatch(part) for part in parts):
        raise InputError(f"bad agent name {name!r}: [a-z0-9][a-z0-9._-]*, or a pair a~b")
    return parts
