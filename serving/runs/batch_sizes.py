"""The best batch size of each agent on this machine, as ``turinglike bench`` found it, for ``--batch-size auto``.

One file, ``$XDG_CACHE_HOME/turinglike/batch-sizes.json`` (``~/.cache`` where the variable is not set). A size holds for
an agent's settings, all of them, its checkpoint, the device and Turinglike's version, and for nothing else. It is kept
only if every size was measured for long enough to be compared.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from agents import __version__
from agents.contract import Agent
from agents.entry import Entry
from agents.errors import StorageError
from serving.runs.atomic_files import write_json
from serving.runs.run import digest
from serving.scheduling import machine

SCHEMA = "turinglike.batch-sizes/1"
LARGEST = 256  # of the sizes that are not measured: beyond it no device is busier
FILLED = 0.85  # of a GPU's memory, by arithmetic
ROOM = 1.1  # of the device memory that the measured batch took: allocations are not quite the same every time


@dataclass(frozen=True)
class BestSize:
    """One agent's best. ``key`` is over its settings and checkpoint, ``kind`` the task (and mode) it was asked;
    ``device_bytes`` what the GPU's memory held at most, where there was one."""

    agent: str
    key: str
    kind: str
    device: str
    version: str
    batch_size: Annotated[int, Field(ge=1)]
    stimuli_s: float
    device_bytes: int | None
    created: str


BEST_SIZES: TypeAdapter[tuple[BestSize, ...]] = TypeAdapter(tuple[BestSize, ...])


def path() -> Path:
    """Where they are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "turinglike" / "batch-sizes.json"


def key(entry: Entry, agent: Agent[Any]) -> str:
    """What a size holds for: the agent's digest, and of its settings also those that change no answer."""
    about = digest([(entry, agent)])
    text = orjson.dumps([about["digest"], about["settings"]], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def read() -> tuple[BestSize, ...]:
    """Everything that was kept for this version of Turinglike; nothing, if the file cannot be read."""
    try:
        found = orjson.loads(path().read_bytes())
        known = BEST_SIZES.validate_python(found["sizes"]) if found["schema"] == SCHEMA else ()
    except (OSError, orjson.JSONDecodeError, ValidationError, KeyError, TypeError):
        return ()
    return tuple(one for one in known if one.version == __version__)


def write(new: Sequence[BestSize]) -> None:
    """Keep best sizes beside those of other agents. Raises StorageError."""
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # what another bench writes at the same time stays
            kept = {(one.key, one.kind, one.device): one for one in (*read(), *new)}
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
    """Give each agent the best size that is known for it here; of several tasks the smallest. Says, in one sentence
    each, which agents keep their own."""
    known = read()
    on_gpu = [agent for agent in agents.values() if device != "cpu" and agent.device_memory > 0]
    gpu = machine.gpu() if on_gpu and address is None else None
    for name, agent in agents.items():
        own = f"{name} runs with its own, {agent.max_in_flight if agent.continuous() else agent.batch_size}"
        if address is not None:
            say(f"--batch-size auto: {own}: what is known holds for this machine, and --address is another")
            continue
        here = machine.cpu().name if gpu is None or agent not in on_gpu else gpu.name
        wanted = key(entries[name], agent)
        found = [one for one in known if one.key == wanted and one.device == here]
        unknown = f"`turinglike bench {name}` has not measured it so on this device ({here})"
        if found:
            least = min(found, key=lambda one: one.batch_size)
            fit(agent, least.batch_size, least.device_bytes)
        elif gpu is not None and agent in on_gpu and (size := _by_arithmetic(agent, gpu.memory // len(on_gpu))):
            agent.batch_size = size
            say(f"--batch-size auto: {name} runs with {size}, for which its part of the GPU has room: {unknown}")
        else:
            say(f"--batch-size auto: {own}: {unknown}")


def _by_arithmetic(agent: Agent[Any], memory: int) -> int | None:
    """The largest power of two for which ``memory`` bytes of a GPU have room; None where the agent cannot tell."""
    if agent.continuous() or agent.device_bytes(LARGEST) == agent.device_bytes(1):
        return None
    size = LARGEST
    while size > 1 and agent.device_bytes(size) > FILLED * memory:
        size //= 2
    return size
