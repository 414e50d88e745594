"""Agents placed by Ray on GPUs that this machine does not have: Ray believes what it is told."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from agents import answers
from agents.contract import GIB, Entry
from serving.bench import generate_run, set_runs
from serving.bench.drawn_set import Material
from serving.bench.run_results import MeasuredRuns
from serving.bench.set_bench import Prices, SetBench
from serving.scheduling import cluster as clusters
from serving.scheduling import local_ray
from serving.scheduling.batch import PackedRequest
from serving.scheduling.cluster import Cluster
from serving.scheduling.scheduler import ReplicaPool, Scheduler, WorkerOptions
from serving.sets.stimulus_row import StimulusRow

GPUS = 8
MEMORY = 80 * GIB  # of each
ROW = b'{"cue": "c", "id": "w", "task": "word_association"}'


def place_all(send: Callable[[Any], None], cases: dict[str, tuple[dict[str, dict[str, Any]], int | None]]) -> None:
    """For each case, agents with their settings and the number of replicas, send (case, GPUs of each agent's replicas).

    In the case "killed" the last replica of each agent is killed, and its place sent again when it is replaced.
    """
    asyncio.run(_place_all(send, cases))


def bench(send: Callable[[MeasuredRuns], None], replicas: int) -> None:
    """Measure an agent of 40 GiB with that number of workers over 64 words, and send what was measured."""
    local_ray.RAY_OPTIONS |= {"num_gpus": GPUS, "num_cpus": 4}
    clusters._gpu_memory = lambda ray, node_id: MEMORY
    generate_run.MOST = 1  # the words are asked once
    set_runs.REPEATS = 1
    entry = Entry("placed", "placed_agent:Placed", ("word_association",), "", "", settings={"gib": 40.0})
    rows = []
    for number in range(64):
        rows.append(orjson.dumps({"id": f"w{number}", "task": "word_association", "cue": f"cue{number}"}))
    measurement = SetBench(
        entries={"placed": entry},
        settings={},
        source="words",
        materials={"placed": Material(rows, Counter({("word_association", None): 64}))},
        has_forecast=True,
        seconds=600.0,
        batch_size=1,
        prices=Prices(hour=2.0),
    )
    for measured in set_runs.measure_runs(measurement, "placed", [replicas], print):
        send(measured)


async def _place_all(send: Callable[[Any], None], cases: dict[str, Any]) -> None:
    local_ray.RAY_OPTIONS |= {"num_gpus": GPUS, "num_cpus": 4}
    clusters._gpu_memory = lambda ray, node_id: MEMORY
    cluster = Cluster()
    await cluster.start()
    try:
        for case, (agents, replicas) in cases.items():
            send((case, await _place(cluster, agents, replicas, kill=case == "killed")))
    finally:
        await cluster.stop()


async def _place(
    cluster: Cluster, agents: dict[str, dict[str, Any]], replicas: int | None, *, kill: bool
) -> dict[str, list[str]]:
    entries = {
        name: Entry(name, "placed_agent:Placed", ("word_association",), "", "", settings=settings)
        for name, settings in agents.items()
    }
    made = {name: entry.make() for name, entry in entries.items()}
    scheduler = Scheduler()
    pool = ReplicaPool(cluster, scheduler, made, WorkerOptions(entries=entries, replicas=replicas), "/")
    try:
        pool.fit([tuple(agents)], lambda name: 1000)
        async with pool.admission.admit(tuple(agents)):
            await asyncio.gather(*map(pool.load, agents))
            found = {name: _devices(scheduler, name) for name in agents}
            for name in agents if kill else ():
                await _kill_one(scheduler, name, len(found[name]))
                found[f"{name} again"] = _devices(scheduler, name)
            return found
    finally:
        await pool.close()


def _devices(scheduler: Scheduler, name: str) -> list[str]:
    """By the number of the replica."""
    replicas = sorted(scheduler.dispatchers[name]._replicas, key=lambda replica: replica.number)
    return [replica.worker.device for replica in replicas]


async def _kill_one(scheduler: Scheduler, name: str, count: int) -> None:
    dispatcher = scheduler.dispatchers[name]
    last = max(dispatcher._replicas, key=lambda replica: replica.number)
    [reply] = (await last.worker.call([PackedRequest(StimulusRow.of_line(ROW, 0, None), 1)], 60)).replies
    assert reply.code is None, reply.content
    assert isinstance(reply.content, bytes)
    assert reply.raw is not None
    word = answers.WordAnswer.model_validate_json(reply.content).word
    assert f"cuda:{word}" == last.worker.device
    os.kill(orjson.loads(reply.raw)["pid"], signal.SIGKILL)
    async with asyncio.timeout(60):
        while last in dispatcher._replicas or dispatcher.loaded_workers < count:
            await asyncio.sleep(0.02)
