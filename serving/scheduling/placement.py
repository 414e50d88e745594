"""Which agents fit where, by declared memory."""

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from agents.contract import GIB
from agents.errors import InputError

CONTEXT = GIB // 2  # of a GPU's memory, which CUDA takes for each process beside what the process asks for
DeviceChoice = Literal["auto", "cpu", "cuda"]


@dataclass(slots=True)
class Node:
    """A machine of the cluster. Memory is in bytes."""

    id: str
    """Ray's id."""
    host: str
    """The machine's name."""
    cpus: int
    """Its cores."""
    memory: int
    """The host's memory for workers."""
    gpu_count: int = 0
    """Its GPUs."""
    gpu_memory: int = 0
    """The memory of its smallest GPU."""


@dataclass(frozen=True, slots=True)
class Need:
    """What an agent's replicas take. Memory is in bytes."""

    agent: str
    """The agent's name."""
    memory: int
    """A replica's memory on its host."""
    device_memory: int = 0
    """A replica's memory on each of its GPUs; 0: it runs on the CPU."""
    replicas: int = 1
    """How many there are."""
    devices: int = 1
    """GPUs of a replica."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica is."""

    node: int
    """The index of its node."""
    gpus: tuple[int, ...] = ()
    """The indices of its GPUs there; none: it runs on the CPU."""


class Room:
    """Free bytes of each host and GPU, and the agents there."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._memory = [node.memory for node in nodes]
        self._gpus = [[node.gpu_memory] * node.gpu_count for node in nodes]
        self._replicas: Counter[tuple[str, int, int | None]] = Counter()  # agent, node, GPU (None: on the node)

    def find(self, need: Need, *, spread: bool) -> Place | None:
        """Where another replica fits; to ``spread``, where the agent has the fewest replicas and most is free."""
        places = self._fitting(need)
        return min(places, key=lambda place: self._cost(need, place), default=None) if spread else next(places, None)

    def _fitting(self, need: Need) -> Iterator[Place]:
        for index, node in enumerate(self.nodes):
            if self._memory[index] < need.memory:
                continue
            if not need.device_memory:
                yield Place(index)
            elif need.devices == 1:
                fitting = (gpu for gpu, free in enumerate(self._gpus[index]) if free >= need.device_memory)
                yield from (Place(index, (gpu,)) for gpu in fitting)
            else:
                unused = [gpu for gpu, free in enumerate(self._gpus[index]) if free == node.gpu_memory]
                if len(unused) >= need.devices and node.gpu_memory >= need.device_memory:
                    yield Place(index, tuple(unused[: need.devices]))

    def _cost(self, need: Need, place: Place) -> tuple[float, ...]:
        node = place.node
        on_node = self._replicas[need.agent, node, None] / max(self.nodes[node].cpus, 1)
        if len(place.gpus) != 1:
            return on_node, -self._memory[node]
        [gpu] = place.gpus
        return self._replicas[need.agent, node, gpu], -self._gpus[node][gpu], on_node

    def take(self, need: Need, place: Place, sign: int = 1) -> None:
        """Count a replica's memory and GPUs as used there; with ``sign`` -1 as free again."""
        self._memory[place.node] -= sign * need.memory
        self._replicas[need.agent, place.node, None] += sign
        for gpu in place.gpus:
            gpu_memory = self.nodes[place.node].gpu_memory
            self._gpus[place.node][gpu] -= sign * (gpu_memory if need.devices > 1 else need.device_memory)
            self._replicas[need.agent, place.node, gpu] += sign


PlacesByAgent = dict[str, tuple[Place, ...]]


def place_all(needs: Sequence[Need], room: Room) -> PlacesByAgent | None:
    """Places for all replicas, the largest first; None unless all fit."""
    largest_first = sorted(needs, key=lambda need: (-need.devices, -need.device_memory, -need.memory))
    for spread in (True, False):
        left = copy.deepcopy(room)
        places: dict[str, list[Place]] = {need.agent: [] for need in needs}
        for need in chain.from_iterable([need] * need.replicas for need in largest_first):
            place = left.find(need, spread=spread)
            if place is None:
                break
            left.take(need, place)
            places[need.agent].append(place)
        else:
            return {agent: tuple(found) for agent, found in places.items()}
    return None


def fits(needs: Sequence[Need], nodes: Sequence[Node]) -> bool:
    """Whether all replicas have room at once."""
    return place_all(needs, Room(nodes)) is not None


def gpu_share(need: Need, gpu_memory: int) -> float:
    """The share of a GPU (Ray's ``num_gpus``), rounded down to 1/10,000."""
    if need.devices > 1:
        return float(need.devices)
    return min(1.0, max(1, need.device_memory * 10_000 // max(gpu_memory, 1)) / 10_000)


def sizes(memory: int, gpus: int, gpu_memory: int) -> str:
    """Bytes for a person: "2.0 GiB and 1 x 4.0 GiB of GPU memory"."""
    on_gpus = f" and {gpus} x {gpu_memory / GIB:.1f} GiB of GPU memory" if gpus and gpu_memory else ""
    return f"{memory / GIB:.1f} GiB{on_gpus}"


def most_replicas(need: Need, batches: int, nodes: Sequence[Node]) -> int:
    """A replica per GPU, or per core without, but no more than batches."""
    most = sum(node.gpu_count // need.devices if need.device_memory else node.cpus for node in nodes)
    return max(1, min(most, batches))


def fitting_replicas(
    needs: Mapping[str, Need], groups: Iterable[Sequence[str]], nodes: Sequence[Node]
) -> dict[str, Need]:
    """Needs with as few replicas as let each of the ``groups`` fit, if any do."""
    reduced = dict(needs)
    for group in groups:
        while not fits([reduced[agent] for agent in group], nodes):
            most = max(group, key=lambda agent: reduced[agent].replicas)
            if reduced[most].replicas == 1:
                break
            reduced[most] = replace(reduced[most], replicas=reduced[most].replicas - 1)
    return reduced


@dataclass(slots=True)
class Admission:
    """Admits groups of agents as they fit, and holds their places."""

    nodes: Sequence[Node]
    """The machines."""
    needs: Mapping[str, Need]
    """What each agent takes, by name."""
    unload: Callable[[str], Awaitable[None]]
    """Ends an agent that no group needs any more."""
    places: PlacesByAgent = field(init=False, default_factory=dict)
    """Where each placed agent's replicas are."""
    _all_fit: bool = field(init=False)
    _room: Room = field(init=False)
    _users: Counter[str] = field(init=False, default_factory=Counter)
    _changed: asyncio.Condition = field(init=False, default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self._room = Room(self.nodes)
        self._all_fit = self.place(tuple(self.needs))

    def check(self, groups: Iterable[Sequence[str]]) -> None:
        """Raises InputError for groups that can never fit."""
        for group in groups:
            needs = [self.needs[agent] for agent in dict.fromkeys(group)]
            if not fits(needs, self.nodes):
                wanted = ", ".join(
                    f"{need.agent} needs {need.replicas} x {sizes(need.memory, need.devices, need.device_memory)}"
                    for need in needs
                )
                available = ", ".join(sizes(node.memory, node.gpu_count, node.gpu_memory) for node in self.nodes)
                raise InputError(f"too large to be loaded together: {wanted}; there is {available or 'nothing'}")

    @asynccontextmanager
    async def admit(self, group: Sequence[str]) -> AsyncIterator[None]:
        """Wait until the group fits; hold its places for the block."""
        agents = tuple(dict.fromkeys(group))
        async with self._changed:
            await self._changed.wait_for(lambda: self.place(agents))
            self._users.update(agents)
        try:
            yield
        finally:
            async with self._changed:
                self._users.subtract(agents)
                for agent in agents:
                    if not self._users[agent]:
                        await self.unload(agent)
                        self._leave(agent)
                self._changed.notify_all()

    def place(self, agents: Sequence[str]) -> bool:
        """Place the agents' replicas that have no place; returns whether there is room."""
        new = [self.needs[agent] for agent in agents if agent not in self.places]
        places = place_all(new, self._room)
        if places is None:
            return False
        self.places.update(places)
        for need in new:
            for place in places[need.agent]:
                self._room.take(need, place)
        return True

    def _leave(self, agent: str) -> None:
        if not self._all_fit:
            for place in self.places.pop(agent):
                self._room.take(self.needs[agent], place, -1)

    def workers_on(self, node: int) -> int:
        """The replicas that are placed on the node of that index."""
        return sum(place.node == node for places in self.places.values() for place in places)

    def device_limit(self, agent: str, place: Place) -> int:
        """GPU bytes that a replica may take: its need, or its share where all agents fit at once."""
        need = self.needs[agent]
        gpu_memory = self.nodes[place.node].gpu_memory
        if need.devices > 1:
            return gpu_memory
        if not self._all_fit:
            return need.device_memory
        declared = sum(self.needs[name].device_memory * places.count(place) for name, places in self.places.items())
        return gpu_memory * need.device_memory // declared
