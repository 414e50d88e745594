"""Ray Data beside the scheduler: ``map_batches`` over the same agent in one actor, answers written as JSON lines.

It prepares and answers a batch after the other, without attempts or records that survive a crash; what it is given
and gives back is a set's rows and an answer for each.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from agents.contract import Reply
from agents.entry import Entry
from agents.errors import AgentStoppedError
from agents.stimuli import parse_row
from serving.bench import machine
from serving.bench.loop import draw_for
from serving.bench.peer_job import Job, Send
from serving.bench.steady import FEWEST, WARM
from serving.scheduling.cluster import Cluster

MOST = 20_000  # rows, unless that are too few batches
BLOCKS = 200


class Answerer:
    """The agent in an actor of Ray Data's."""

    def __init__(self, entry: Entry, settings: Mapping[str, Any], device: str, root: str) -> None:
        self.agent = entry.make(settings)
        self.agent.open()
        self.agent.load(device)
        self.root = root
        self.on_cpu = device == "cpu"

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.on_cpu and (torch := sys.modules.get("torch")) is not None:
            # as many as our worker has; Ray lets an actor have one
            torch.set_num_threads(machine.cores() if self.agent.parallel else 1)
        shown = [parse_row(row, root=self.root) for row in batch["row"]]
        prepared = [self.agent.prepare(stimulus) for stimulus in shown]
        replies = self.agent.respond(prepared, [draw_for(self.agent, stimulus) for stimulus in shown])
        said = [one.answer.model_dump_json() if isinstance(one, Reply) else "null" for one in replies]
        return {"id": [stimulus.id for stimulus in shown], "answer": said, "at": [time.time()] * len(said)}


def run(send: Send, job: Job) -> None:
    """Sends stimuli per second, from the end of the first batches to that of the last; in a process of its own."""
    cluster = Cluster()
    asyncio.run(cluster.start())
    try:
        send(_measure(job, job.measured.device.startswith("cuda")))
    finally:
        asyncio.run(cluster.stop())


def _measure(job: Job, on_gpu: bool) -> float:
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    ours = job.measured.at(job.batch_size)
    assert ours is not None
    size = job.batch_size
    blocks, count = plan(size, job.seconds, ours.stimuli_s)
    lines = job.source.read_text().splitlines()
    items = [{"row": lines[at % len(lines)]} for at in range(count)]
    rows = ray.data.from_items(items, override_num_blocks=blocks)
    arguments = (job.entry, dict(job.settings), job.measured.device, str(job.source.parent))
    warnings.filterwarnings("ignore", "`ray_remote_args` is deprecated")  # nothing that a user could change
    answered = rows.map_batches(
        Answerer,
        fn_constructor_args=arguments,
        batch_size=size,
        compute=ray.data.ActorPoolStrategy(size=1),
        num_gpus=1 if on_gpu else 0,
        max_restarts=0,  # otherwise Ray warns that they would fail
    )
    with tempfile.TemporaryDirectory(prefix="turinglike-ray-data-") as folder:
        answered.write_json(folder)
        times = sorted(
            orjson.loads(line)["at"] for path in Path(folder).glob("*.json") for line in path.read_bytes().splitlines()
        )
    return steady_rate(times, size, job.seconds)


def plan(size: int, seconds: float, rate: float) -> tuple[int, int]:
    """How many blocks, and rows in all of them, an agent of that ``rate`` is given to be at work for ``seconds`` after
    its warm-up: each of whole batches, because Ray Data makes a small batch of what a block has left."""
    batches = max(2 * FEWEST, FEWEST + math.ceil((WARM + 1) * seconds * rate / size))
    batches = min(batches, max(2 * FEWEST, MOST // size))
    blocks = min(BLOCKS, batches)
    return blocks, blocks * math.ceil(batches / blocks) * size


def steady_rate(times: Sequence[float], size: int, seconds: float) -> float:
    """Rows per second from when the warm-up ended to the last, by the time at which each row's batch ended, ascending.
    Raises AgentStoppedError if nothing came later than that."""
    warm = times[0] + WARM * seconds
    begin = next((at for at in times[min(FEWEST * size, len(times)) - 1 :] if at >= warm), times[-1])
    later = sum(at > begin for at in times)
    if not later:
        raise AgentStoppedError("Ray Data answered everything during its warm-up")
    return float(later / (times[-1] - begin))
