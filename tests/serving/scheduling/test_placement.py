"""Admission by declared memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import InputError
from serving.scheduling.placement import (
    GIB,
    Admission,
    Need,
    Node,
    Place,
    Room,
    fewer_replicas,
    fits,
    gpu_share,
    place_all,
    replicas_for,
)

LAPTOP = Node("a", "laptop", 8, 16 * GIB)
EIGHT = Node("e", "eight", 96, 1024 * GIB, 8, 80 * GIB)
SERVER = Node("b", "server", 64, 256 * GIB, 2, 80 * GIB)


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
        ([Need("a", GIB, 50 * GIB, 3)], [SERVER, Node("c", "small", 8, 64 * GIB, 1, 24 * GIB)], False),
        ([Need("a", GIB, 20 * GIB, 9)], [SERVER, Node("c", "small", 8, 64 * GIB, 1, 24 * GIB)], True),  # 4 + 4 + 1
        ([], [], True),
    ],
)
def test_what_fits_together(needs: list[Need], nodes: list[Node], expected: bool) -> None:
    assert fits(needs, nodes) is expected


@given(st.lists(st.integers(1, 40), max_size=6), st.integers(1, 3), st.integers(1, 40))
def test_what_fits_never_asks_for_more_than_a_device_has(sizes: list[int], devices: int, each: int) -> None:
    node = Node("n", "n", 1, 10**6 * GIB, devices, each * GIB)
    needs = [Need(str(i), GIB, size * GIB) for i, size in enumerate(sizes)]
    if fits(needs, [node]):
        assert sum(sizes) <= devices * each
        assert all(size <= each for size in sizes)
        shares = sum(gpu_share(need, node.gpu_memory) for need in needs)
        assert shares <= devices + 1e-9
    elif len(sizes) == 1:
        assert sizes[0] > each


def test_a_share_is_a_part_of_one() -> None:
    assert gpu_share(Need("a", 0, 1), 80 * GIB) == 0.0001
    assert 3 * gpu_share(Need("a", 0, 80 * GIB // 3), 80 * GIB) <= 1
    assert gpu_share(Need("a", 0, 40 * GIB), 80 * GIB) == 0.5
    assert gpu_share(Need("a", 0, 80 * GIB), 80 * GIB) == 1.0


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([Need("a", GIB, 60 * GIB, devices=2)], True),
        ([Need("a", GIB, 60 * GIB, devices=3)], False),  # no machine has three
        ([Need("a", GIB, 90 * GIB, devices=2)], False),  # of each GPU
        ([Need("a", GIB, GIB, devices=2), Need("b", GIB, GIB)], False),  # a replica on several has the whole of each
        ([Need("a", GIB, GIB, devices=2), Need("b", GIB)], True),
    ],
)
def test_a_model_on_several_gpus_has_them_to_itself(needs: list[Need], expected: bool) -> None:
    assert fits(needs, [SERVER]) == expected
    assert fits(needs, [LAPTOP]) is False
    if needs[0].devices > 1:
        assert gpu_share(needs[0], 80 * GIB) == needs[0].devices


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
    assert replicas_for(need, batches, nodes) == expected


async def nothing(agent: str) -> None:
    """There is no worker to end."""


@pytest.mark.parametrize(("replicas", "on_each"), [(1, 1), (4, 1), (8, 1), (16, 2)])
def test_replicas_are_spread_over_the_gpus(replicas: int, on_each: int) -> None:
    places = place_all([Need("a", GIB, 6 * GIB, replicas)], Room([EIGHT]))
    assert places is not None
    on = Counter(place.gpus for place in places["a"])
    assert on == {(gpu,): on_each for gpu in range(min(replicas, 8))}


def test_replicas_are_spread_over_nodes_before_they_share_a_gpu() -> None:
    nodes = [replace(EIGHT, id=str(number)) for number in range(8)]
    places = place_all(
        [Need("a", GIB, 6 * GIB, 64), Need("b", GIB, 40 * GIB, 8), Need("c", GIB, replicas=16)], Room(nodes)
    )
    assert places is not None
    assert len(set(places["a"])) == 64
    assert Counter(place.node for place in places["b"]) == dict.fromkeys(range(8), 1)
    assert Counter(place.node for place in places["c"]) == dict.fromkeys(range(8), 2)


def test_what_is_on_several_gpus_has_others_beside_it_and_not_on_them() -> None:
    needs = [Need("small", GIB, 6 * GIB, 4), Need("large", GIB, 75 * GIB, devices=4)]
    places = place_all(needs, Room([EIGHT]))
    assert places == {"large": (Place(0, (0, 1, 2, 3)),), "small": tuple(Place(0, (gpu,)) for gpu in (4, 5, 6, 7))}


def test_replicas_that_do_not_fit_beside_another_agent_are_fewer() -> None:
    needs = {name: Need(name, GIB, 50 * GIB, 8) for name in "abc"}
    found = fewer_replicas(needs, [("a", "b")], [EIGHT])
    assert [found[name].replicas for name in "abc"] == [4, 4, 8]
    assert fewer_replicas(needs, [("a", "b")], [LAPTOP]) == needs  # is refused, with its own sizes


@pytest.mark.parametrize(
    ("needs", "limits"),
    [
        ([Need("alone", GIB, 6 * GIB, 8)], [80]),
        ([Need("two", GIB, 6 * GIB, 16)], [40]),
        ([Need("a", GIB, 30 * GIB, 8), Need("b", GIB, 10 * GIB, 8)], [60, 20]),
        # They take turns: what another is to have later is not taken now.
        ([Need("a", GIB, 50 * GIB, 8), Need("b", GIB, 30 * GIB, 8), Need("c", GIB, 40 * GIB, 8)], [50, 30]),
        ([Need("a", GIB, 50 * GIB, 8), Need("b", GIB, 60 * GIB, 8)], [80]),
        ([Need("large", GIB, 60 * GIB, devices=4)], [80]),
    ],
)
def test_what_an_agent_may_take_of_its_gpu(needs: list[Need], limits: list[int]) -> None:
    admission = Admission([EIGHT], {need.agent: need for need in needs}, nothing)
    there = [need.agent for need in needs if admission.place((need.agent,))]
    assert [admission.device_limit(name, admission.places[name][0]) / GIB for name in there] == limits


def test_what_can_never_fit_is_refused_with_the_sizes() -> None:
    admission = Admission([LAPTOP], {"a": Need("a", 10 * GIB), "b": Need("b", 9 * GIB)}, nothing)
    admission.check([("a",), ("b",)])
    with pytest.raises(InputError, match=r"a needs 1 x 10.0 GiB, b needs 1 x 9.0 GiB; there is 16.0 GiB"):
        admission.check([("a", "b")])


def test_a_unit_waits_for_room_and_shares_what_is_loaded() -> None:
    async def unload(name: str) -> None:
        ended.append(name)

    needs = {name: Need(name, size * GIB) for name, size in (("a", 8), ("b", 8), ("c", 4))}
    admission = Admission([LAPTOP], needs, unload)
    seen: list[str] = []
    ended: list[str] = []

    async def use(name: str, *unit: str) -> None:
        async with admission.admit(unit):
            seen.append(f"+{name}")
            await asyncio.sleep(0.02)
            seen.append(f"-{name}")

    async def main() -> None:
        tasks = [use("ab", "a", "b"), use("aa", "a", "a"), use("c", "c")]
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert seen.index("+aa") < seen.index("-ab")  # shares a
    assert seen.index("+c") > seen.index("-ab")  # no room beside a and b
    assert sorted(ended) == ["a", "b", "c"]
    assert not admission.places
