"""How often an agent's host waits for the device, what it copies and launches: per step, and per batch beside them.

A step is a pass of the decoder or a fixation. Both numbers come from two batches of different lengths, in tiny models
of two layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import device_cases
from pretended_cuda import is_ours, pretended_cuda

from agents.contract import Entry
from agents.stimuli import Stimulus

LENGTHS = {"image_captioning": "max_tokens", "conversation": "max_tokens", "attention_prediction": "max_search"}
SHORT, LONG = 8, 12
SEEDS = range(11, 31)  # the first by whose draws the longer batch has more steps is taken


class Asked(NamedTuple):
    """One piece of the device's work: "wait", "copy" or "launch", its kind, and where in the code."""

    kind: str
    what: str
    where: str


@dataclass(frozen=True)
class Counts:
    """Work in every step, and in a batch of ``steps`` beside its steps."""

    per_step: dict[Asked, float]
    per_batch: dict[Asked, float]
    steps: int


def total(counts: dict[Asked, float], kind: str, what: str = "", *, ours: bool = False) -> float:
    """The sum over a kind of work whose ``what`` begins so; with ``ours`` only the project's."""
    chosen = ((work, number) for work, number in counts.items() if work.kind == kind and work.what.startswith(what))
    return sum(number for work, number in chosen if is_ours(work.where) or not ours)


def count(
    entry: Entry, settings: dict[str, Any], folder: Path, size: int, *, alike: bool = True, device: Any = pretended_cuda
) -> Counts:
    """The work of a batch of ``size`` stimuli, once the agent is warm; ``device`` is a context that counts."""
    length = next((LENGTHS[task] for task in entry.tasks if task in LENGTHS), None)
    stimuli = device_cases.stimuli(entry, folder, size, alike=alike)
    with device() as cuda:
        agent = device_cases.loaded(entry, settings, "cuda:0")

        def batch(most: int, seed: int) -> tuple[Counter[Asked], int]:
            if length:
                agent.settings = agent.settings.model_copy(update={length: most})
            return _batch(agent, stimuli, seed, cuda)

        batch(SHORT, SEEDS[0])
        for seed in SEEDS:
            (few, short), (many, long) = batch(SHORT, seed), batch(LONG, seed)
            if long > short or length is None:
                break
        else:
            raise AssertionError(f"{entry.name}: no text is longer than {SHORT} tokens")
    steps = max(long - short, 1)
    per_step = {work: (many[work] - few[work]) / steps for work in many}
    return Counts(per_step, {work: many[work] - each * long for work, each in per_step.items()}, long)


def _batch(agent: Any, stimuli: Sequence[Stimulus], seed: int, cuda: Any) -> tuple[Counter[Asked], int]:
    """A batch's work and its number of steps."""
    from agents.sampling import Finite

    passes, check = 0, Finite.__call__

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal passes
        passes += 1
        return check(self, *arguments)

    prepared = [agent.prepare(stimulus) for stimulus in stimuli]
    cuda.clear()
    with mock.patch.object(Finite, "__call__", counted):
        replies: list[Any] = list(agent.respond(prepared, device_cases.draws(stimuli, seed)))
    work = Counter({Asked("wait", *key): number for key, number in cuda.waits.items()})
    work.update({Asked("copy", *key): number for key, number in cuda.copies.items()})
    work.update({Asked("launch", "", where): number for where, number in cuda.launches.items()})
    fixations = max((len(getattr(reply.answer, "fixations", ())) for reply in replies), default=0)
    return work, passes or max(fixations - 1, 0)  # the first is not chosen
