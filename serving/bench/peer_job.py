"""What every peer is given, and how a plain loop is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from agents.contract import Agent
from agents.entry import Entry
from agents.stimuli import Stimulus
from serving.bench import stimuli
from serving.bench.results import Measured
from serving.bench.steady import MEASURED, WarmUp


@dataclass(frozen=True)
class Job:
    """What a peer is given: the agent whose work it does, and for how many stimuli at a time."""

    entry: Entry
    settings: Mapping[str, Any]
    measured: Measured
    source: Path
    batch_size: int
    seconds: float

    def agent(self) -> Agent[Any]:
        """The agent, not yet opened."""
        return self.entry.make(self.settings)

    def shown(self) -> list[Stimulus]:
        """The stimuli, which are to be shown again and again."""
        return stimuli.read(self.source)


Send = Callable[[object], None]
Program = Callable[[Send, Job], None]  # sends stimuli per second, once


def loop(answer: Callable[[Sequence[Stimulus]], object], shown: Sequence[Stimulus], size: int, seconds: float) -> float:
    """Stimuli per second of a plain loop: one batch after the other, the first ones left out."""
    source = cycle(shown)

    def step() -> float:
        began = time.perf_counter()
        answer(list(islice(source, size)))
        return time.perf_counter() - began

    warm_up = WarmUp(seconds)
    while not warm_up.add(step()):
        continue
    done, began = 0, time.perf_counter()
    while done < MEASURED or time.perf_counter() - began < seconds:
        step()
        done += 1
    return done * size / (time.perf_counter() - began)
