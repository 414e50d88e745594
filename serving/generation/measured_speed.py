"""What a run would take, from a speed that was measured: time, GPUs, disk and money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import orjson

from agents.errors import InputError
from serving.files.words import duration
from serving.runs.estimates import Estimate, within

HOUR = 3600.0
GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """What was measured of an agent with a number of workers."""

    workers: int
    """The workers that answered."""
    gpus: int
    """The GPUs of all workers together; 0 on the CPU."""
    rate: Estimate
    """Answers in a second, of all workers together."""
    record_bytes: Estimate
    """The length of a record."""
    tokens: Estimate | None
    """Tokens that the agent writes for an answer; None where it counts none."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a number of answers takes."""

    seconds: Estimate
    """The time until all are there."""
    gpus: int
    """The GPUs in use; 0 on the CPU."""
    record_bytes: Estimate
    """The size of all records."""
    tokens: Estimate | None
    """Tokens of all answers; None where the agent counts none."""

    @classmethod
    def of(cls, answers: int, speed: MeasuredSpeed) -> Needs:
        """What ``answers`` take at a measured speed."""
        rate = speed.rate
        seconds = Estimate(
            answers / rate.value,
            None if rate.high is None else answers / rate.high,
            None if rate.low is None else answers / rate.low,
        )
        tokens = None if speed.tokens is None else speed.tokens.times(answers)
        return cls(seconds, speed.gpus, speed.record_bytes.times(answers), tokens)

    def times(self, factor: float) -> Needs:
        """What a multiple of the answers takes."""
        tokens = None if self.tokens is None else self.tokens.times(factor)
        return Needs(self.seconds.times(factor), self.gpus, self.record_bytes.times(factor), tokens)

    def cost(self, price_hour: float | None, price_token: float | None) -> Estimate | None:
        """What it costs at the price of an hour (of a GPU; without one, of the machine) and of a token. None without a
        price, and where tokens have a price and were not counted."""
        parts = []
        if price_hour is not None:
            parts.append(self.seconds.times(price_hour * max(1, self.gpus) / HOUR))
        if price_token is not None:
            if self.tokens is None:
                return None
            parts.append(self.tokens.times(price_token))
        return total(parts) if parts else None

    def sentence(self, price_hour: float | None, price_token: float | None) -> str:
        """For people: time, GPU-hours, gigabytes and cost, each with its interval."""
        parts = [self.seconds.text(duration)]
        if self.gpus:
            parts.append(f"{self.seconds.times(self.gpus / HOUR).text(_three_digits)} GPU-hours")
        parts.append(f"{self.record_bytes.times(1 / GIGABYTE).text(_three_digits)} GB of records")
        cost = self.cost(price_hour, price_token)
        if cost is not None:
            parts.append(f"a cost of {cost.text(_three_digits)}")
        elif price_token is not None:
            parts.append("a cost that cannot be told, since no tokens were counted")
        return ", ".join(parts)


def total(parts: Sequence[Estimate]) -> Estimate:
    """The sum of estimates. Its interval supposes that all are too low, or too high, together."""
    low: float | None = 0.0
    high: float | None = 0.0
    for part in parts:
        low = None if low is None or part.low is None else low + part.low
        high = None if high is None or part.high is None else high + part.high
    return Estimate(sum(part.value for part in parts), low, high)


def of_repeats(values: Sequence[float]) -> Estimate:
    """What a new measurement will give, from earlier ones: the geometric mean, with a prediction interval."""
    middle = exp(fmean(map(log, values)))
    if len(values) < 2:
        return Estimate(middle)
    return within(middle, variance(map(log, values)) * (1 + 1 / len(values)), len(values) - 1)


def read_measured(path: Path) -> dict[str, list[MeasuredSpeed]]:
    """The speeds in a ``bench.json`` of ``turinglike bench STIMULI``, by agent. Raises InputError for another file."""
    try:
        content = orjson.loads(path.read_bytes())
        return {runs["agent"]: [_speed(scaled) for scaled in runs["scaling"]] for runs in content["runs"]}
    except OSError as error:
        raise InputError(f"--measured {path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise InputError(f"--measured {path}: not a bench.json of `turinglike bench STIMULI`") from error


def _speed(scaled: Mapping[str, Any]) -> MeasuredSpeed:
    repeats = scaled["repeats"]
    tokens = [repeat["tokens_s"] / repeat["rate_s"] for repeat in repeats if repeat["tokens_s"]]
    return MeasuredSpeed(
        workers=scaled["replicas"],
        gpus=scaled["devices"],
        rate=of_repeats([repeat["rate_s"] for repeat in repeats]),
        record_bytes=of_repeats([repeat["record_bytes"] for repeat in repeats]),
        tokens=of_repeats(tokens) if tokens else None,
    )


def speed_for(speeds: Sequence[MeasuredSpeed], workers: int | None) -> MeasuredSpeed | None:
    """The speed with the number of ``workers`` that is nearest to the wanted one; None: with the most."""
    if not speeds:
        return None
    if workers is None:
        return max(speeds, key=lambda speed: speed.workers)
    return min(speeds, key=lambda speed: abs(speed.workers - workers))


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
