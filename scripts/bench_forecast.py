"""How well ``generate`` foretells its own length: sets are run to their end, and forecasts on the way are compared.

The agent waits as a device would: a batch takes a part for itself, and each stimulus a part that depends on its length
and on chance; of ``padded`` sets as much as the longest of its batch. The first batch of each worker takes three times
as long, and a tenth of the attempts is refused. Each line is a run: the forecast after 5 % of the answers, and the
truth. The last lines count how many forecasts were within 15 %, and how many intervals, which should hold 9 of 10, held
the truth. Prints JSON with ``--json``.

Example: python -m scripts.bench_forecast --runs 10
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
from pydantic import Field

from agents.answers import WordAnswer
from agents.contract import Agent, Draw, Entry, Filter, Reply, Settings, Verdict
from agents.stimuli import Stimulus
from serving.generation import assignments
from serving.generation.generate import GenerateOptions, generate
from serving.runs.forecast import Forecast, row_lengths
from serving.runs.pace import Pace
from serving.runs.run import Run

ROOT = Path(__file__).resolve().parent.parent
AT = 0.05  # the part of the answers after which the forecast is looked at
CLOSE = 0.15  # of the truth
REFUSED = 0.1  # of the attempts
COLD = 3.0  # times that a worker's first batch takes


class WaitingSettings(Settings):
    """How long an agent waits."""

    batch_s: float = Field(0.01, ge=0)
    """Seconds of each batch for itself."""
    byte_s: float = Field(0.0002, ge=0)
    """Seconds of each byte of a cue."""
    padded: bool = False
    """Whether a batch takes as long as its longest stimulus times their number."""


class WaitingAgent(Agent[WaitingSettings]):
    """Answers words after a while, some of them so that a filter refuses them."""

    tasks = ("word_association",)
    Settings = WaitingSettings
    batch_size = 8

    def __init__(self, settings: WaitingSettings, name: str) -> None:
        super().__init__(settings, name)
        self.attempts = 10
        self.filters: Sequence[Filter] = (self._refuse,)
        self.is_cold = True

    def _refuse(self, stimulus: Stimulus, reply: Reply) -> Verdict | None:
        return Verdict("tenth", True, "chance") if reply.raw == "refused" else None

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        parts = [
            self.settings.byte_s * len(stimulus.cue) * random.Random(draw.seed).lognormvariate(0, 0.3)
            for stimulus, draw in zip(batch, draws, strict=True)
        ]
        seconds = self.settings.batch_s + (max(parts) * len(parts) if self.settings.padded else sum(parts))
        time.sleep(seconds * (COLD if self.is_cold else 1.0))
        self.is_cold = False
        return [
            Reply(WordAnswer(word="word"), "refused" if draw.seed % 1000 < 1000 * REFUSED else "kept") for draw in draws
        ]


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of run."""

    order: str
    """How the set stands: "shuffled", "ascending" or "descending" in length."""
    stimuli: int
    """Their number."""
    batch_size: int
    """Stimuli in a batch."""
    workers: int
    """Workers of Ray; 0: in this process, one for each core."""
    padded: bool = False
    """Whether batches take as long as their longest stimulus."""


CASES = [
    *(Case(order, 2000, 4, 0) for order in ("shuffled", "ascending", "descending")),
    *(Case(order, 2400, 8, 0, padded=True) for order in ("shuffled", "ascending", "descending")),
    *(Case(order, 6000, 8, 2) for order in ("shuffled", "ascending", "descending")),
    *(Case(order, 12000, 8, 4, padded=True) for order in ("shuffled", "ascending", "descending")),
]


def write_set(path: Path, case: Case, seed: int) -> None:
    """Write a set of words whose lengths are lognormal, with a standard deviation of 0.6 on the log scale."""
    draw = random.Random(seed)
    lengths = [min(100, max(4, round(draw.lognormvariate(3.2, 0.6)))) for _ in range(case.stimuli)]
    if case.order != "shuffled":
        lengths.sort(reverse=case.order == "descending")
    with path.open("wb") as file:
        for number, length in enumerate(lengths):
            row = {"id": f"w{number:06}", "task": "word_association", "cue": "c" * length}
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def _generate(case: Case, seed: int, source: Path, out: Path) -> None:
    generate(
        GenerateOptions(
            entries={"waiting": Entry("waiting", "scripts.bench_forecast:WaitingAgent", ("word_association",), "", "")},
            settings={"waiting": {"padded": case.padded}},
            source=source,
            agents=["waiting"],
            out=out,
            seed=seed,
            here=not case.workers,
            replicas=case.workers or None,
            batch_size=case.batch_size,
            quiet=True,
        ),
        lambda text: None,
    )


def run(case: Case, seed: int, folder: Path) -> dict[str, Any]:
    """Run a set to its end; returns the forecast after :data:`AT` of the answers, and the truth."""
    source = folder / "set.jsonl"
    out = folder / "run"
    write_set(source, case, seed)
    workers: list[int] = []

    def forecast_noted(*args: Any, **named: Any) -> Forecast:
        workers.append(named["workers"])
        return Forecast(*args, **named)

    with mock.patch.object(assignments, "Forecast", forecast_noted):
        _generate(case, seed, source, out)
    kept = Run(out)
    positions = {key: position for position, key in enumerate(kept.kinds)}
    records = sorted(kept.records("waiting"), key=lambda record: record["created"])
    until = next(
        record["created"] for number, record in enumerate(records, 1) if number >= AT * case.stimuli
    )  # a whole batch has the same time
    pace = Pace(positions)
    missing = [0] * case.stimuli
    for record in records:
        if record["created"] <= until:
            pace.note(record)
        else:
            missing[positions[record["task"], record["stimulus"]]] += 1
    forecast = pace.forecast(missing, row_lengths(out / "stimuli.jsonl"), in_turns=False, workers=workers[0])
    left = forecast.left()
    last = Pace(positions)
    last.note(records[-1])
    truth = last.last - pace.last
    found = {**asdict(case), "seed": seed, "truth": round(truth, 2), "forecast": None, "low": None, "high": None}
    if left is not None:
        found |= {"forecast": left.value, "low": left.low, "high": left.high}
    return found


def main() -> int:
    """Run all cases, and print what came out."""
    parser = argparse.ArgumentParser(description="How well a run foretells its own length.", allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=5, help="runs of each case (default 5)")
    parser.add_argument("--cases", default="", help="numbers of cases, from 0, separated by commas (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chosen = [CASES[int(number)] for number in options.cases.split(",")] if options.cases else CASES
    # Workers import the agent from here.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    found = []
    for case in chosen:
        for seed in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                result = run(case, seed, Path(folder))
            found.append(result)
            print(orjson.dumps(result).decode(), file=sys.stderr, flush=True)
    told = [result for result in found if result["forecast"] is not None]
    close = [result for result in told if abs(result["forecast"] / result["truth"] - 1) <= CLOSE]
    sure = [result for result in told if result["low"] is not None]
    held = [result for result in sure if result["low"] <= result["truth"] <= result["high"]]
    if options.json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    for order in dict.fromkeys(case.order for case in chosen):
        of_order = [result for result in found if result["order"] == order]
        print(f"{order}: {sum(result in close for result in of_order)} of {len(of_order)} within 15 %")
    print(f"all: {len(close)} of {len(found)} within 15 %; {len(held)} of {len(sure)} intervals held the truth")
    return 0


if __name__ == "__main__":
    sys.exit(main())
