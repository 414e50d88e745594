"""Admission by declared memory, and what agents get on nodes with GPUs. Nothing is loaded."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from agents import catalogue
from agents.contract import GIB
from agents.errors import InputError
from serving.scheduling.placement import (
    Admission,
    Need,
    Node,
    Room,
    fits,
    fitting_replicas,
    most_replicas,
    place_all,
)
from serving.scheduling.scheduler import ReplicaPool, Scheduler, WorkerOptions
from serving.scheduling.this_process import ThisProcess

LAPTOP = Node("a", "laptop", 8, 16 * GIB)
EIGHT = Node("e", "eight", 96, 1024 * GIB, 8, 80 * GIB)
SERVER = Node("b", "server", 64, 256 * GIB, 2, 80 * GIB)
SMALL = Node("c", "small", 8, 64 * GIB, 1, 24 * GIB)


@pytest.mark.parametrize(
    ("needs", "nodes", "expected"),
    [
        ([Need("a", 4 * GIB, replicas=4)], [LAPTOP], True),
        ([Need("a", 4 * GIB, replicas=5)], [LAPTOP], False),
        ([Need("a", GIB, 50 * GIB), Need("b", GIB, 50 * GIB)], [SERVER], True),
        ([Need("a", GIB, 50 * GIB, 3)], [SERVER], False),
        ([Need("a", GIB, 50 * GIB), Need("b", GIB, 30 * GIB, 3)], [SERVER], True),  # 50 + 30, 30 + 30
        ([Need("a", GIB, 81 * GIB)], [SERVER], False),  # no single device is large enough
        ([Need("a", GIB, 10 * GIB)], [LAPTOP], False),
        ([Need("a", 15 * GIB), Need("b", 15 * GIB)], [LAPTOP, LAPTOP], True),
        ([Need("a", GIB, 50 * GIB, 3)], [SERVER, SMALL], False),
        ([Need("a", GIB, 20 * GIB, 9)], [SERVER, SMALL], True),  # 4 + 4 + 1
        ([Need("a", GIB, 60 * GIB, devices=2)], [SERVER], True),
        ([Need("a", GIB, 60 * GIB, devices=3)], [SERVER], False),  # no machine has three
        ([Need("a", GIB, 90 * GIB, devices=2)], [SERVER], False),  # of each GPU
        ([Need("a", GIB, GIB, devices=2), Need("b", GIB, GIB)], [SERVER], False),  # the whole of each
        ([Need("a", GIB, GIB, devices=2), Need("b", GIB)], [SERVER], True),
    ],
)
def test_what_fits_together(needs: list[Need], nodes: list[Node], expected: bool) -> None:
    assert fits(needs, nodes) is expected


@pytest.mark.parametrize(
    ("need", "batches", "nodes", "expected"),
    [
        (Need("a", GIB, GIB), 100, [SERVER, SERVER], 4),  # a worker for each GPU
        (Need("a", GIB, GIB, devices=2), 100, [SERVER, SERVER, LAPTOP], 2),
        (Need("a", GIB), 100, [SERVER, LAPTOP], 72),  # a worker for each core
        (Need("a", GIB), 3, [LAPTOP], 3),  # no more than there are batches
        (Need("a", GIB), 0, [LAPTOP], 1),
        (Need("a", 3 * GIB), 100, [LAPTOP], 5),  # no more than 16 GiB hold
        (Need("a", 100 * GIB), 100, [LAPTOP], 1),  # refused later, with the sizes
    ],
)
def test_replicas(need: Need, batches: int, nodes: list[Node], expected: int) -> None:
    wanted = replace(need, replicas=most_replicas(need, batches, nodes))
    assert fitting_replicas({"a": wanted}, [("a",)], nodes)["a"].replicas == expected


def test_replicas_are_spread_over_nodes_before_they_share_a_gpu() -> None:
    nodes = [replace(EIGHT, id=str(number)) for number in range(8)]
    needs = [Need("a", GIB, 6 * GIB, 64), Need("b", GIB, 40 * GIB, 8), Need("c", GIB, replicas=16)]
    places = place_all(needs, Room(nodes))
    assert places is not None
    assert len(set(places["a"])) == 64
    assert Counter(place.node for place in places["b"]) == dict.fromkeys(range(8), 1)
    assert Counter(place.node for place in places["c"]) == dict.fromkeys(range(8), 2)


async def nothing(agent: str) -> None:
    """There is no worker to end."""


@pytest.mark.parametrize(
    ("needs", "limits"),
    [
        ([Need("alone", GIB, 6 * GIB, 8)], [80]),
        ([Need("two", GIB, 6 * GIB, 16)], [40]),
        ([Need("a", GIB, 30 * GIB, 8), Need("b", GIB, 10 * GIB, 8)], [60, 20]),
        # They take turns: what another is to have later is not taken now.
        ([Need("a", GIB, 50 * GIB, 8), Need("b", GIB, 30 * GIB, 8), Need("c", GIB, 40 * GIB, 8)], [50, 30]),
        ([Need("large", GIB, 60 * GIB, devices=4)], [80]),
    ],
)
def test_what_an_agent_may_take_of_its_gpu(needs: list[Need], limits: list[int]) -> None:
    admission = Admission([EIGHT], {need.agent: need for need in needs}, nothing)
    placed = [need.agent for need in needs if admission.place((need.agent,))]
    assert [admission.device_limit(name, admission.places[name][0]) / GIB for name in placed] == limits


def test_a_group_waits_for_room_and_shares_what_is_loaded() -> None:
    async def unload(name: str) -> None:
        ended.append(name)

    needs = {name: Need(name, size * GIB) for name, size in (("a", 8), ("b", 8), ("c", 4))}
    admission = Admission([LAPTOP], needs, unload)
    steps: list[str] = []
    ended: list[str] = []

    async def use(name: str, *group: str) -> None:
        async with admission.admit(group):
            steps.append(f"+{name}")
            await asyncio.sleep(0.02)
            steps.append(f"-{name}")

    async def main() -> None:
        await asyncio.gather(use("ab", "a", "b"), use("aa", "a", "a"), use("c", "c"))

    asyncio.run(main())
    assert steps.index("+aa") < steps.index("-ab")  # shares a
    assert steps.index("+c") > steps.index("-ab")  # no room beside a and b
    assert sorted(ended) == ["a", "b", "c"]
    assert not admission.places


def gpus(count: int, gib: int) -> Node:
    return Node("n", "n", 64, 512 * GIB, count, gib * GIB)


def admitted(node: Node, *names: str, **settings: Any) -> tuple[dict[str, Need], ReplicaPool]:
    """What each agent needs if all are needed together, and the pool that placed them."""
    agents = {name: catalogue.get(name).make({"checkpoint": "random", **settings}) for name in names}
    pool = ReplicaPool(ThisProcess([node]), Scheduler(), agents, WorkerOptions(entries={}), "/")
    pool.fit([names], lambda name: 1000)
    return dict(pool.admission.needs), pool


@pytest.mark.parametrize(
    ("node", "names", "replicas", "batch"),
    [
        ((8, 80), ("git-large-coco",), 8, 16),
        ((1, 80), ("llama-3.1-8b",), 1, 16),  # 15 GiB of weights
        ((1, 24), ("llama-3.1-8b",), 1, 8),  # no room for its own batches
        ((8, 80), ("llama-3.1-8b", "qwen2.5-7b"), 8, 16),
        ((1, 44), ("llama-3.1-8b", "qwen2.5-7b"), 1, 8),  # leave each other room
    ],
)
def test_batches_and_replicas_on_gpus(node: tuple[int, int], names: tuple[str, ...], replicas: int, batch: int) -> None:
    needs, pool = admitted(gpus(*node), *names)
    assert {need.replicas for need in needs.values()} == {replicas}
    assert {pool.batch_size(name) for name in names} == {batch}
    assert sum(need.device_memory for need in needs.values()) <= node[1] * GIB


@pytest.mark.parametrize(("node", "devices", "replicas"), [((8, 80), 4, 2), ((8, 24), 8, 1), ((4, 80), 4, 1)])
def test_a_model_too_large_for_a_gpu_has_several(node: tuple[int, int], devices: int, replicas: int) -> None:
    name = "llama-3.3-70b"  # 131 GiB of weights
    needs, _ = admitted(gpus(*node), name)
    assert (needs[name].devices, needs[name].replicas) == (devices, replicas)
    assert needs[name].memory < 4 * GIB
    weights = 2 * 70_553_706_496
    assert weights < devices * needs[name].device_memory < 1.5 * weights


def test_vllm_shares_its_layers_out_among_as_many() -> None:
    name = "llama-3.3-70b"
    needs, pool = admitted(gpus(8, 80), name, engine="vllm")
    agent: Any = pool.agents[name]
    assert needs[name].devices == agent.declaration().devices == 4
    assert agent.make_engine()._settings.tensor_parallel == 4
    agent.drop_folder()


@pytest.mark.parametrize(
    ("node", "names", "message"),
    [
        (gpus(2, 24), ("llama-3.3-70b",), r"llama-3.3-70b needs 1 x 3\.0 GiB and 2 x .* there is .* 2 x 24\.0 GiB"),
        (gpus(1, 12), ("llava-v1.6-mistral-7b",), r"mistral-7b needs 1 x 3\.0 GiB and 1 x .* there is .* 1 x 12\.0 G"),
    ],
)
def test_what_can_never_fit_is_refused_with_the_sizes(node: Node, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        admitted(node, *names)
