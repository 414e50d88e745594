"""Which agents fit where: admission by declared memory.

A group of agents that are needed together (one agent; the two of a pair; everything given to ``serve``) is admitted
together, and waits for others to end; one that cannot fit even on the empty cluster is refused before anything loads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from agents.errors import InputError

GIB = 1024**3
Device = Literal["auto", "cpu", "cuda"]


@dataclass(slots=True)
class Node:
    """One machine of the cluster. ``gpu_memory`` is that of its smallest GPU, in bytes; ``memory`` the host's."""

    id: str
    host: str
    cpus: int
    memory: int
    gpu_count: int = 0
    gpu_memory: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """What the ``replicas`` of one agent need, each: bytes on the host, and on each of ``devices`` GPUs of one machine
    (0: runs on the CPU). Of several GPUs a replica has the whole."""

    agent: str
    memory: int
    device_memory: int = 0
    replicas: int = 1
    devices: int = 1


def gpu_share(need: Need, gpu_memory: int) -> float:
    """The share of a GPU (Ray's ``num_gpus``) that one replica takes: its declared memory over the GPU's.

    Rounded down to Ray's 1/10,000, so that what fits together by its memory fits by its shares. A replica on several
    GPUs takes all of each.
    """
    if need.devices > 1:
        return float(need.devices)
    return min(1.0, max(1, need.device_memory * 10_000 // max(gpu_memory, 1)) / 10_000)


def fits(needs: Sequence[Need], nodes: Sequence[Node]) -> bool:
    """Whether all replicas fit at once: first-fit decreasing over the nodes' GPUs and memory.

    A replica takes the same share of any GPU, so all count as the smallest.
    """
    memory = [node.memory for node in nodes]
    smallest = min((node.gpu_memory for node in nodes if node.gpu_count), default=0)
    gpus = [[smallest] * node.gpu_count for node in nodes]
    replicas = [need for need in needs for _ in range(need.replicas)]
    replicas.sort(key=lambda need: (-need.devices, -need.device_memory, -need.memory))
    return all(_place(need, memory, gpus, smallest) for need in replicas)


def _place(need: Need, memory: list[int], gpus: list[list[int]], size: int) -> bool:
    for index, free in enumerate(memory):
        if free < need.memory:
            continue
        if need.devices > 1:
            found = [device for device, room in enumerate(gpus[index]) if room == size >= need.device_memory]
        else:
            found = [device for device, room in enumerate(gpus[index]) if room >= need.device_memory]
        wanted = need.devices if need.device_memory else 0
        if len(found) >= wanted:
            for device in found[:wanted]:
                gpus[index][device] -= size if need.devices > 1 else need.device_memory
            memory[index] -= need.memory
            return True
    return False


def refusal(needs: Sequence[Need], nodes: Sequence[Node]) -> str:
    """Why ``needs`` cannot fit, with the sizes, in one sentence."""
    wanted = ", ".join(
        f"{one.agent} needs {one.replicas} x {_sizes(one.memory, one.devices, one.device_memory)}" for one in needs
    )
    there = ", ".join(_sizes(node.memory, node.gpu_count, node.gpu_memory) for node in nodes)
    return f"too large to be loaded together: {wanted}; there is {there or 'nothing'}"


def _sizes(memory: int, gpus: int, gpu_memory: int) -> str:
    on_gpus = f" and {gpus} x {gpu_memory / GIB:.1f} GiB of GPU memory" if gpus and gpu_memory else ""
    return f"{memory / GIB:.1f} GiB{on_gpus}"


def replicas_for(need: Need, batches: int, nodes: Sequence[Node]) -> int:
    """How many workers ``--replicas auto`` gives an agent: one per GPU if it uses one, else one per core, as these fill
    the cores better than threads that wait for each other at every operation. Never more than the agent has batches to
    answer, nor than fit when they are alone; at least one."""
    most = sum(node.gpu_count // need.devices if need.device_memory else node.cpus for node in nodes)
    count = max(1, min(most, batches))
    while count > 1 and not fits([replace(need, replicas=count)], nodes):
        count -= 1
    return count


@dataclass(slots=True)
class Admission:
    """Admits groups of agents as they fit. An agent that two groups share is counted, and loaded, once."""

    nodes: Sequence[Node]
    needs: Mapping[str, Need]
    _users: Counter[str] = field(init=False, default_factory=Counter)
    _changed: asyncio.Condition = field(init=False, default_factory=asyncio.Condition)

    def check(self, groups: Iterable[Sequence[str]]) -> None:
        """Raises InputError for groups that can never fit."""
        for group in groups:
            needs = [self.needs[agent] for agent in dict.fromkeys(group)]
            if not fits(needs, self.nodes):
                raise InputError(refusal(needs, self.nodes))

    @asynccontextmanager
    async def admit(self, group: Sequence[str]) -> AsyncIterator[None]:
        """Wait until the group fits beside what is admitted already; hold its place for the block."""
        agents = tuple(dict.fromkeys(group))
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room(agents))
            self._users.update(agents)
        try:
            yield
        finally:
            async with self._changed:
                self._users.subtract(agents)
                self._users += Counter()
                self._changed.notify_all()

    def in_use(self, agent: str) -> bool:
        """Whether an admitted group still needs the agent."""
        return self._users[agent] > 0

    def _has_room(self, agents: Sequence[str]) -> bool:
        return fits([self.needs[agent] for agent in {*self._users, *agents}], self.nodes)
