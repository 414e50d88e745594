"""Every agent by name: ours, those of the entry-point group ``turinglike.agents``, and any model."""

import difflib
import logging
import re
import tomllib
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from agents.catalogue.built_in import BUILT_IN
from agents.catalogue.named_models import is_model_name, model_entry
from agents.contract import Agent, Entry
from agents.errors import InputError, printable

GROUP = "turinglike.agents"
RESERVED = frozenset({"humans", "published", "human", "people", "all"})  # of imports, and of rows in our tables
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
log = logging.getLogger("turinglike.agents")
_OURS = {entry.name: entry for entry in BUILT_IN}


@cache
def _installed() -> dict[str, metadata.EntryPoint]:
    points: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=GROUP):
        if not NAME.fullmatch(point.name):
            log.warning("turinglike: %s", _left_out(point, "its name must be [a-z0-9][a-z0-9._-]*"))
        elif point.name in _OURS or point.name in points or point.name in RESERVED:
            log.warning("turinglike: %s", _left_out(point, "its name is already taken"))
        else:
            points[point.name] = point
    return points


def names() -> list[str]:
    """Ours, then those of installed packages; imports none."""
    return [*_OURS, *_installed()]


@cache
def entries() -> dict[str, Entry]:
    """Every agent by name; imports all, and logs those that fail."""
    by_name = dict(_OURS)
    for name in _installed():
        try:
            by_name[name] = get(name)
        except InputError as error:
            log.warning("turinglike: %s", error)
    return by_name


def get(name: str) -> Entry:
    """An agent's entry, or a model's ("hf:…"). Raises InputError, with the nearest names."""
    return model_entry(name) if is_model_name(name) else _known(name)


@cache
def _known(name: str) -> Entry:
    if name in _OURS:
        return _OURS[name]
    if point := _installed().get(name):
        try:
            return _from_entry_point(point)
        except (Exception, SystemExit) as error:
            raise InputError(_left_out(point, f"it cannot be imported: {error!r}")) from None
    if (table := _unregistered(name)) is not None:
        raise InputError(
            f"there is no agent {name!r}: it stands in {table}, but its package has not registered it. Add it to the "
            f"entry points {GROUP} in pyproject.toml, and install the package again: they are read at installation"
        )
    near = difflib.get_close_matches(name, names(), 3)
    hint = f"did you mean {', '.join(near)}?" if near else "`turinglike agents` lists them all"
    raise InputError(f"there is no agent {name!r}: {hint}")


def _unregistered(name: str) -> Path | None:
    """The TOML file with a table of the agent ``name``, beside a module that has registered other agents; else None."""
    for module in dict.fromkeys(point.module for point in _installed().values()):
        with suppress(Exception, SystemExit):  # of a package that is not well: it says nothing of this agent
            found = find_spec(module)
            table = None if found is None or found.origin is None else Path(found.origin).with_suffix(".toml")
            if table is not None and table.is_file():
                content = tomllib.loads(table.read_text("utf-8"))
                if any(isinstance(entry, dict) and entry.get("name") == name for entry in content.values()):
                    return table
    return None


def _from_entry_point(point: metadata.EntryPoint) -> Entry:
    value = point.load()
    if isinstance(value, Entry):
        return replace(value, name=point.name)
    if isinstance(value, type) and issubclass(value, Agent):
        tasks = value.declares.tasks
        if not tasks:
            raise TypeError("it declares no tasks")
        summary = (value.__doc__ or "").strip().partition("\n")[0]
        return Entry(point.name, point.value, tasks, summary, f"package {_package(point)}", licence="unknown")
    raise TypeError("neither an Agent class nor an Entry")


def _left_out(point: metadata.EntryPoint, why: str) -> str:
    return printable(f"package {_package(point)}: agent {point.name!r} is left out: {why}")


def _package(point: metadata.EntryPoint) -> str:
    return point.value if point.dist is None else point.dist.name


def members(name: str) -> tuple[str, ...]:
    """The parts of ``a~b``; the ``~`` of a home folder (``hf:~/model``) parts nothing."""
    return tuple(re.split(r"~(?!/)", name))


def pair(name: str) -> tuple[str, ...]:
    """("a",), or ("a", "b") for ``a~b``. Raises InputError."""
    parts = members(name)
    if len(parts) > 2 or not all(NAME.fullmatch(part) or is_model_name(part) for part in parts):
        hint = f"; a model is named hf:{name}" if "/" in name else ""
        raise InputError(f"bad agent name {name!r}: [a-z0-9][a-z0-9._-]*, or a pair a~b{hint}")
    return parts
