"""What agents are given on nodes with GPUs: batches, replicas, several GPUs. Nothing is loaded."""

from __future__ import annotations

from typing import Any

import pytest

from agents import catalogue
from agents.errors import InputError
from serving.scheduling.placement import GIB, Need, Node
from serving.scheduling.replicas import ReplicaPool
from serving.scheduling.scheduler import Scheduler
from serving.scheduling.this_process import ThisProcess


def admitted(node: Node, *names: str, **options: Any) -> tuple[dict[str, Need], dict[str, int]]:
    """What each agent needs, and the size of its batches, if all are needed together."""
    agents = {name: catalogue.get(name).make({"checkpoint": "random"}) for name in names}
    cluster = ThisProcess([node])
    pool = ReplicaPool(cluster, Scheduler(), agents, {}, {}, "/", **options)
    pool.admit([names], lambda name: 1000)
    return dict(pool.admission.needs), {name: agent.batch_size for name, agent in agents.items()}


def gpus(count: int, gib: int) -> Node:
    return Node("n", "n", 64, 512 * GIB, count, gib * GIB)


def test_a_captioner_has_a_replica_on_each_gpu_and_its_own_batches() -> None:
    needs, sizes = admitted(gpus(8, 80), "git-large-coco")
    assert needs["git-large-coco"].replicas == 8
    assert sizes == {"git-large-coco": 16}


def test_batches_are_smaller_where_a_gpu_has_no_room_for_its_own() -> None:
    name = "llama-3.1-8b"  # 15 GiB of weights
    assert admitted(gpus(1, 80), name)[1] == {name: 16}
    needs, sizes = admitted(gpus(1, 24), name)
    assert needs[name].device_memory <= 24 * GIB
    assert sizes == {name: 8}


def test_agents_that_are_needed_together_leave_each_other_room() -> None:
    names = ("llama-3.1-8b", "qwen2.5-7b")
    needs, _ = admitted(gpus(8, 80), *names)
    assert [needs[name].replicas for name in names] == [8, 8]
    needs, sizes = admitted(gpus(1, 44), *names)
    assert sum(need.device_memory for need in needs.values()) <= 44 * GIB
    assert sizes == dict.fromkeys(names, 8)


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
    made = catalogue.get(name).make({"checkpoint": "random", "engine": "vllm"})
    cluster = ThisProcess([gpus(8, 80)])
    pool = ReplicaPool(cluster, Scheduler(), {name: made}, {}, {}, "/")
    pool.admit([[name]], lambda name: 1000)
    assert pool.admission.needs[name].devices == made.devices == 4
    engine: Any = made.make_engine()  # type: ignore[attr-defined]
    assert engine._chosen.tensor_parallel == 4
    made.drop_folder()  # type: ignore[attr-defined]


def test_what_several_gpus_cannot_hold_is_refused_with_the_sizes() -> None:
    with pytest.raises(InputError, match=r"llama-3.3-70b needs 1 x 3\.0 GiB and 2 x .* there is .* 2 x 24\.0 GiB"):
        admitted(gpus(2, 24), "llama-3.3-70b")


def test_what_no_gpu_can_hold_is_refused_with_the_sizes() -> None:
    with pytest.raises(InputError, match=r"mistral-7b needs 1 x 3\.0 GiB and 1 x .* there is .* 1 x 12\.0 GiB"):
        admitted(gpus(1, 12), "llava-v1.6-mistral-7b")
