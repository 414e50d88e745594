"""How often an agent's host waits for the device: in every step, and in a batch beside its steps.

A step is a pass of the decoder or a fixation. Both numbers come from two batches of different lengths, in tiny models
of two layers.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import device_cases
from pretended_cuda import pretended_cuda

from agents.contract import Entry

LENGTHS = {"image_captioning": "max_tokens", "conversation": "max_tokens", "attention_prediction": "max_search"}
SHORT, LONG = 8, 12
SEEDS = range(11, 31)  # the first by whose draws the longer batch has more steps is taken
Waits = dict[str, float]  # by place


def count_waits(
    entry: Entry, settings: dict[str, Any], folder: Path, size: int, *, alike: bool = True, device: Any = pretended_cuda
) -> tuple[Waits, Waits]:
    """The waits of a step, and those of a batch of ``size`` stimuli beside its steps, once the agent is warm.

    ``device`` is a context whose value counts ``waits`` by (why, place).
    """
    from agents.sampling import Finite

    length = next((LENGTHS[task] for task in entry.tasks if task in LENGTHS), None)
    stimuli = device_cases.stimuli(entry, folder, size, alike=alike)
    passes, check = 0, Finite.__call__

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal passes
        passes += 1
        return check(self, *arguments)

    with device() as cuda, mock.patch.object(Finite, "__call__", counted):
        agent: Any = device_cases.loaded(entry, settings, "cuda:0")

        def batch(most: int, seed: int) -> tuple[Counter[str], int]:
            nonlocal passes
            if length:
                agent.settings = agent.settings.model_copy(update={length: most})
            prepared = [agent.prepare(stimulus) for stimulus in stimuli]
            passes = 0
            cuda.clear()
            replies = agent.respond(prepared, device_cases.draws(stimuli, seed))
            waits: Counter[str] = Counter()
            for (_, place), number in cuda.waits.items():
                waits[place] += number
            fixations = max((len(getattr(reply.answer, "fixations", ())) for reply in replies), default=0)
            return waits, passes or max(fixations - 1, 0)  # the first is not chosen

        batch(SHORT, SEEDS[0])
        for seed in SEEDS:
            (few, short), (many, long) = batch(SHORT, seed), batch(LONG, seed)
            if long > short or length is None:
                break
        else:
            raise AssertionError(f"{entry.name}: no text is longer than {SHORT} tokens")
    steps = max(long - short, 1)
    per_step = {place: (many[place] - few[place]) / steps for place in many}
    return per_step, {place: many[place] - each * long for place, each in per_step.items()}
