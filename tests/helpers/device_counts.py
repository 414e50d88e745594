"""How often an agent's host waits for the device, what it copies and launches: per step, and per batch beside them.

A step is a pass of the decoder or a fixation. Both numbers come from two batches of different lengths, on stimuli that
are alike and in tiny models of two layers, on a pretended device::

    python tests/helpers/device_counts.py --lines llama-3.1-8b git-base-coco:decoding=sample
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
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
SEEDS = range(11, 31)  # of which the first is taken by whose draws the longer batch has more steps


class Asked(NamedTuple):
    """One thing that the device was asked: "wait", "copy" or "launch", what of it, and where."""

    kind: str
    what: str
    where: str


@dataclass(frozen=True)
class Counts:
    """How often something was asked in every step, and in a batch beside its steps. In a batch were ``steps``."""

    per_step: dict[Asked, float]
    per_batch: dict[Asked, float]
    steps: int


def asked_of(cuda: Any) -> Counter[Asked]:
    """All that was counted."""
    found = Counter({Asked("wait", *key): number for key, number in cuda.waits.items()})
    found.update({Asked("copy", *key): number for key, number in cuda.copies.items()})
    found.update({Asked("launch", "", where): number for where, number in cuda.launches.items()})
    return found


def total(counts: dict[Asked, float], kind: str, what: str = "", *, ours: bool = False) -> float:
    """The sum over one kind, of it those that begin with ``what``, or over what of them the project asked itself."""
    chosen = ((asked, n) for asked, n in counts.items() if asked.kind == kind and asked.what.startswith(what))
    return sum(n for asked, n in chosen if is_ours(asked.where) or not ours)


def count(
    entry: Entry, settings: dict[str, Any], folder: Path, size: int, *, alike: bool = True, device: Any = pretended_cuda
) -> Counts:
    """What one batch of ``size`` stimuli asks, once the agent is warm; ``device`` is a context that counts."""
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
    per_step = {asked: (many[asked] - few[asked]) / steps for asked in many}
    return Counts(per_step, {asked: many[asked] - each * long for asked, each in per_step.items()}, long)


def _batch(agent: Any, stimuli: Sequence[Stimulus], seed: int, cuda: Any) -> tuple[Counter[Asked], int]:
    """What a batch asks, and how many steps it has."""
    from agents.sampling import Finite

    passes, check = [0], Finite.__call__

    def counted(self: Any, *given: Any) -> Any:
        passes[0] += 1
        return check(self, *given)

    prepared = [agent.prepare(one) for one in stimuli]
    cuda.clear()
    with mock.patch.object(Finite, "__call__", counted):
        replies: list[Any] = list(agent.respond(prepared, device_cases.draws(stimuli, seed)))
    fixations = max((len(getattr(one.answer, "fixations", ())) for one in replies), default=0)
    return asked_of(cuda), passes[0] or max(fixations - 1, 0)  # the first is not chosen


COLUMNS = ("batch", "steps", "waits", "ours", "launches", "waits", "ours", "in", "ours", "out", "ours", "launches")


def row(counts: Counts, size: int) -> list[str]:
    """The numbers below COLUMNS: of a batch, of a step (three), of the batch beside its steps (seven, of which four are
    copies to the device and back)."""
    step, batch = counts.per_step, counts.per_batch
    numbers = [
        *(total(step, "wait"), total(step, "wait", ours=True), total(step, "launch")),
        *(total(batch, "wait", ours=ours) for ours in (False, True)),
        *(total(batch, "copy", way, ours=ours) for way in ("to cuda", "to cpu") for ours in (False, True)),
        total(batch, "launch"),
    ]
    return [f"{size}", f"{counts.steps}", *(f"{number:.4g}" for number in numbers)]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agents", nargs="*", help="NAME or NAME:SETTING=VALUE,…; none: all")
    parser.add_argument("--lines", action="store_true", help="every wait, and the line that asked")
    chosen = parser.parse_args(arguments)
    known = device_cases.entries()
    print(f"{'agent':<26}" + "".join(f"{name:>9}" for name in COLUMNS) + "   (first per step, then per batch)")
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(root)}))
        for number, one in enumerate(chosen.agents or known):
            name, _, given = one.partition(":")
            if why := device_cases.lacks(known[name]):
                print(f"{one:<26}   {why}")
                continue
            folder = root / f"{number}"
            folder.mkdir()
            settings = device_cases.settings(known[name], folder / "checkpoint", stack)
            settings |= dict(pair.split("=") for pair in given.split(",") if pair)
            for size in (8, 1):
                counts = count(known[name], settings, folder, size)
                print(f"{one:<26}" + "".join(f"{cell:>9}" for cell in row(counts, size)), flush=True)
                for title, found in (("step", counts.per_step), ("batch", counts.per_batch)) if chosen.lines else ():
                    for asked, times in sorted(found.items(), key=lambda item: -item[1]):
                        if asked.kind != "launch" and abs(times) > 0.01:
                            print(f"    {times:8.2f} per {title}  {asked.kind} {asked.what}: {asked.where}")


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    main(sys.argv[1:])
