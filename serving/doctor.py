"""``turinglike doctor``: what this machine is, what runs on it, and what the rest needs."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from rich.text import Text

from agents import __version__, catalogue
from agents.contract import GIB, Agent
from agents.entry import Entry
from agents.errors import TuringlikeError, printable
from agents.random_weights import RANDOM
from serving.scheduling import machine
from serving.terminal import plain_table, print_table

DISTRIBUTION = "turinglike"
_REQUIRED = re.compile(r"([\w.-]+)(?:\[([\w,.-]+)\])?[^;]*;\s*extra == ['\"]([\w-]+)['\"]")


@dataclass(frozen=True, slots=True)
class Found:
    """What an agent needs: the bytes of ``memory`` on the CPU, or on a GPU, whether that ``fits`` here, and what
    ``lacks``: a "package", a "checkpoint" or something else ("other"), or nothing (None); ``missing`` says it.
    ``random_weights``: whether it can be had without its weights, to measure a machine."""

    name: str
    tasks: tuple[str, ...]
    licence: str
    memory: int
    device_memory: int
    fits: bool
    lacks: str | None
    missing: str | None
    random_weights: bool = False


def doctor(task: str | None, *, json: bool) -> int:
    """Run the command for all agents, or those that answer the task; returns 0."""
    here, gpu = machine.host(), machine.gpu()
    free = machine.available() or here.memory
    found = [one for _, one in examined(task)]
    absent = dict(_absent_extras())
    about: dict[str, Any] = {
        "turinglike": __version__,
        "python": platform.python_version(),
        "cores": here.cores,
        "memory": here.memory,
        "memory_free": free,
        "disk_free": shutil.disk_usage(Path.home()).free,
        "gpu": None if gpu is None else {"name": gpu.name, "memory": gpu.memory},
        "extras_missing": absent,
    }
    if json:
        print(orjson.dumps({**about, "agents": [asdict(one) for one in found]}, option=orjson.OPT_INDENT_2).decode())
        return 0
    graphics = f"{gpu.name} with {gpu.memory / GIB:.0f} GiB" if gpu else "no GPU"
    print(
        f"turinglike {__version__} on Python {about['python']}: {here.cores} cores, {here.memory / GIB:.0f} GiB of "
        f"memory ({free / GIB:.0f} free), {about['disk_free'] / GIB:.0f} GiB of disk free, {graphics}"
    )
    for extra, packages in absent.items():
        print(f"not installed: {', '.join(packages)}: pip install 'turinglike[{extra}]'")
    running = [one.name if one.fits else f"{one.name} (too large here)" for one in found if one.lacks is None]
    print(f"\nrun here: {', '.join(running) or 'none'}")
    able = [one.name for one in found if one.random_weights]
    print(f"\nwith checkpoint=random, to measure a machine without weights: {', '.join(able) or 'none'}")
    _print_fetched([one for one in found if one.lacks == "checkpoint"])
    for kind in ("package", "other"):
        if any(one.lacks == kind for one in found):
            print("\nneed a package" if kind == "package" else "\nneed something else")
        for one in found:
            if one.lacks == kind:
                print(printable(f"  {one.name}: {one.missing}"))
    return 0


def _print_fetched(found: list[Found]) -> None:
    """The agents that lack what can be fetched, with their sizes and licences."""
    if not found:
        return
    print("\nneed a checkpoint: `turinglike fetch NAME` where there is a network")
    table = plain_table("agent", "task", "memory", "on a GPU", "here", "licence")
    for one in found:
        on_gpu = f"{one.device_memory / GIB:.1f} GiB" if one.device_memory else "-"
        here = "fits" if one.fits else "too large"
        memory, licence = f"{one.memory / GIB:.1f} GiB", Text(printable(one.licence))
        table.add_row(one.name, ", ".join(one.tasks), memory, on_gpu, here, licence)
    print_table(table)


def examined(task: str | None = None) -> list[tuple[Entry, Found]]:
    """All agents that are not for testing only, or those of them that answer the task, and what each needs."""
    free, gpu = machine.available() or machine.host().memory, machine.gpu()
    return [
        (entry, _examined(entry, free, gpu.memory if gpu else 0))
        for entry in catalogue.entries().values()
        if not entry.hidden and task in (None, *entry.tasks)
    ]


def _examined(entry: Entry, free: int, gpu: int) -> Found:
    """What the agent lacks, and its size, which that of the same model with random weights tells before it is here.
    There are ``free`` bytes of memory, and ``gpu`` bytes on a GPU."""
    told = (entry.name, tuple(entry.tasks), entry.licence)
    try:
        sized = agent = entry.make()
        lacks, missing = _lacking(agent)
        able = entry.takes_random_weights()
        if lacks is not None and able:
            sized = entry.make({"checkpoint": RANDOM})
    except TuringlikeError as error:
        return Found(*told, 0, 0, False, "other", str(error))
    except (Exception, SystemExit) as error:  # of somebody else's package
        return Found(*told, 0, 0, False, "other", f"its code fails: {error!r}")
    fits = sized.memory <= free or 0 < sized.device_memory <= gpu
    return Found(*told, sized.memory, sized.device_memory, fits, lacks, missing, able)


def _lacking(agent: Agent[Any]) -> tuple[str | None, str | None]:
    if (missing := agent.missing_packages()) is not None:
        return "package", missing
    missing = agent.missing()
    return (None if missing is None else "checkpoint" if "turinglike fetch" in missing else "other"), missing


def _absent_extras() -> Iterator[tuple[str, list[str]]]:
    """The packages of each extra that are not installed; those of extras that it has within are told there."""
    wanted: dict[str, list[str]] = {}
    for line in metadata.requires(DISTRIBUTION) or ():
        if (match := _REQUIRED.match(line)) is not None and match[1] != DISTRIBUTION:
            wanted.setdefault(match[3], []).append(match[1])
    for extra, packages in wanted.items():
        if extra != "test" and (absent := [name for name in packages if not _is_installed(name)]):
            yield extra, absent


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
