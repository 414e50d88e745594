"""The best batch size of each agent on this machine, as ``turinglike bench`` found it, for ``--batch-size auto``.

One file, ``$XDG_CACHE_HOME/turinglike/batch-sizes.json`` (``~/.cache`` where the variable is not set). What is
remembered holds for an agent's settings, all of them, its checkpoint, the device and Turinglike's version, and for
nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from agents import __version__
from agents.contract import Agent
from agents.entry import Entry
from agents.errors import StorageError
from serving.bench import machine
from serving.bench.results import Measured
from serving.runs.atomic_files import write_json
from serving.runs.record_lines import now
from serving.runs.run import digest

SCHEMA = "turinglike.batch-sizes/1"
ROOM = 1.1  # of the device memory that the measured batch took: allocations are not quite the same every time


@dataclass(frozen=True)
class Known:
    """One agent's best. ``key`` is over its settings and checkpoint, ``kind`` the task (and mode) it was asked;
    ``device_bytes`` what the GPU's memory held at most, where there was one."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    agent: str
    key: str
    kind: str
    device: str
    version: str
    batch_size: Annotated[int, Field(ge=1)]
    stimuli_s: float
    device_bytes: int | None
    created: str

    @property
    def place(self) -> tuple[str, str, str]:
        """What there is one of."""
        return self.key, self.kind, self.device


KNOWN: TypeAdapter[tuple[Known, ...]] = TypeAdapter(tuple[Known, ...])


def path() -> Path:
    """Where it is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "turinglike" / "batch-sizes.json"


def key(entry: Entry, agent: Agent[Any]) -> str:
    """What a size is remembered for: the agent's digest, and of its settings also those that change no answer."""
    about = digest([(entry, agent)])
    text = orjson.dumps([about["digest"], about["settings"]], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def read() -> tuple[Known, ...]:
    """Everything that this version of Turinglike has remembered; nothing, if the file cannot be read."""
    try:
        found = orjson.loads(path().read_bytes())
        known = KNOWN.validate_json(orjson.dumps(found["sizes"])) if found["schema"] == SCHEMA else ()
    except (OSError, orjson.JSONDecodeError, ValidationError, KeyError, TypeError):
        return ()
    return tuple(one for one in known if one.version == __version__)


def write(measured: Iterable[Measured], entries: Mapping[str, Entry], settings: Mapping[str, Any], device: str) -> None:
    """Remember the best of what was measured; ``device`` is the name of the GPU, if some ran there.

    Raises StorageError.
    """
    new = []
    for one in measured:
        if one.best is None or (size := one.at(one.best.batch_size)) is None:
            continue
        entry = entries[one.agent]
        new.append(
            Known(
                agent=one.agent,
                key=key(entry, entry.make(settings.get(one.agent))),
                kind=one.task if one.mode is None else f"{one.task}-{one.mode}",
                device=machine.cpu().name if one.device == "cpu" else device,
                version=__version__,
                batch_size=one.best.batch_size,
                stimuli_s=one.best.stimuli_s,
                device_bytes=size.peak_device_bytes,
                created=now(),
            )
        )
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # what another bench writes at the same time stays
            kept = {one.place: one for one in (*read(), *new)}
            write_json(file, {"schema": SCHEMA, "sizes": list(kept.values())})
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror or error}") from error


def fit(agent: Agent[Any], batch_size: int, device_bytes: int | None) -> None:
    """Let an agent be run with a batch size (or so many calls at once) that took so much of a device's memory."""
    if agent.continuous():
        agent.max_in_flight = batch_size
    else:
        agent.batch_size = batch_size
    if agent.device_memory and device_bytes:
        agent.device_memory = max(agent.device_memory, int(ROOM * device_bytes))


def use(
    agents: Mapping[str, Agent[Any]],
    entries: Mapping[str, Entry],
    *,
    device: str,
    address: str | None,
    say: Callable[[str], None],
) -> None:
    """Give each agent the best size that is remembered for it here; of several tasks the smallest. Says, in one
    sentence each, which agents keep their own."""
    known = read()
    gpu: str | None = None
    if device != "cpu" and address is None and any(one.device_memory > 0 for one in agents.values()):
        gpu = machine.gpu_name()
    for name, agent in agents.items():
        own = f"{name} runs with its own, {agent.max_in_flight if agent.continuous() else agent.batch_size}"
        if address is not None:
            say(f"--batch-size auto: {own}: what is remembered holds for this machine, and --address is another")
            continue
        here = gpu if gpu is not None and agent.device_memory > 0 else machine.cpu().name
        wanted = key(entries[name], agent)
        found = [one for one in known if one.key == wanted and one.device == here]
        if not found:
            say(f"--batch-size auto: {own}: `turinglike bench {name}` has not measured it so on this device ({here})")
            continue
        least = min(found, key=lambda one: one.batch_size)
        fit(agent, least.batch_size, least.device_bytes)
