"""Other programs that do the same, beside an agent: as many stimuli per second as they answer, and how ours compares.

Each runs in a process of its own with the same weights, the same stimuli and the same choices of decoding, on the same
device, and only where it is installed:

- ``transformers``: the plain loop of its documentation for captioners, DETR and models that write, one stimulus or a
  batch at a time (:mod:`serving.bench.peers_transformers`);
- ``torchvision``: its detection model as its documentation calls it;
- ``vllm``: the offline engine, ``LLM.generate``, for agents whose engine is vLLM (:mod:`serving.bench.peers_vllm`);
- ``ray-data``: ``map_batches`` over the same agent (:mod:`serving.bench.peers_ray`). It is a peer of the scheduler, and
  so held against that with one worker, rather than against the bare agent.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.contract import Agent
from agents.entry import Entry
from agents.errors import TuringlikeError
from serving.bench import apart, peers_ray, peers_transformers, peers_vllm, stimuli, sweep
from serving.bench.peer_job import Job, Program
from serving.bench.results import Failed, Measured, Peer
from serving.bench.table import rate

STIMULI = 256


def measure(
    one: Measured,
    entry: Entry,
    settings: Mapping[str, Any],
    folder: Path,
    *,
    seconds: float,
    say: Callable[[str], None],
) -> Iterator[Peer | Failed]:
    """Measure every peer that there is for an agent and that is installed: at the agent's best batch size, and plain
    loops one stimulus at a time, too, if the agent was measured so. ``folder`` is for stimuli.

    A peer that fails is said, and the others go on. What has no figure of ours to be held against is left out.
    """
    assert one.best is not None
    chosen = programs(entry.make(settings))
    if not chosen:
        return
    source = stimuli.write(folder, one.task, one.mode, STIMULI)
    best = one.best.batch_size
    for name, program in chosen.items():
        plain = name in ("transformers", "torchvision")
        for size in dict.fromkeys((1, best) if plain else (best,)):
            job = Job(entry, settings, one, source, size, seconds)
            what = f"measured again beside {name}"
            try:
                if (ours := _ours(name, job)) is None:
                    continue
                what = name
                theirs = apart.figure(program, job)
            except TuringlikeError as error:
                say(f"{one.agent}: {what}: {error}")
                yield Failed(one.agent, "peers", f"{what}: {error}")
                continue
            say(
                f"{one.agent}: {name}, batch {size}: {rate(theirs)} stimuli/s; we {rate(ours)}, "
                f"{ours / theirs:.3g} times that"
            )
            yield Peer(name, size, theirs, ours, ours / theirs)


def _ours(name: str, job: Job) -> float | None:
    """Our stimuli per second that a peer is held against, if there is such a figure. Raises AgentStoppedError."""
    one = job.measured
    if name == "ray-data":
        return next((whole.stimuli_s for whole in one.end_to_end if whole.replicas == 1), None)
    if one.at(job.batch_size) is None:
        return None
    return sweep.again(one, job.entry, job.settings, job.source, job.batch_size, job.seconds)


def programs(agent: Agent[Any]) -> dict[str, Program]:
    """The peers of an agent that are installed here, by name."""
    found: dict[str, Program] = {}
    kind = peers_transformers.kind(agent)
    if kind is not None:
        found[kind] = peers_transformers.run
    if agent.continuous():
        if peers_vllm.is_one(agent):
            found["vllm"] = peers_vllm.run
    elif all(importlib.util.find_spec(name) is not None for name in ("ray", "pandas", "pyarrow")):
        found["ray-data"] = peers_ray.run
    return found
