"""The rate of a run by its records' own ``created``, after a warm-up."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from serving.runs.talks_pace import pace_of_talks

WARM_UP = 0.2  # this share of the time of answering is left out at its beginning


@dataclass(frozen=True, slots=True)
class RecordWindow:
    """The records of a stretch of time. Means are over its answers."""

    rate_s: float
    """Answers in a second."""
    seconds: float
    """The length of the stretch."""
    answers: int
    """The records in it, whatever became of them."""
    rejected: int
    """Those that filters rejected."""
    failed: int
    """Those that failed."""
    failure: str
    """Code and message of the first failure; empty without one."""
    waiting_s: float
    """Mean seconds in the queue."""
    preparing_s: float
    """Mean seconds of preparing."""
    responding_s: float
    """Mean seconds of the agent's call."""
    calling_s: float
    """Mean seconds of the agent's call over the stimuli in its batch: what an answer takes of a worker's time."""
    device: str
    """The device of the first answer."""
    record_bytes: float
    """Mean length of a line."""
    tokens_s: float | None
    """Tokens in a second; None where no record counts any."""
    fixations_s: float | None
    """Fixations in a second; None where there are none."""


def read_window(path: Path, began: float, ended: float) -> RecordWindow | None:
    """The records of a file that were created after the warm-up of a run that answered from ``began`` to ``ended``
    (``time.time``). None where fewer than two moments are left.

    The rate is the slope of a line through the points (moment, number of answers so far), by least squares. Answers
    come in batches, several workers' at nearly the same moment. A count over the time between two moments would have
    up to a batch of each worker too many, which makes more workers look faster than they are.
    """
    warm = began + WARM_UP * (ended - began)
    with path.open("rb") as file:
        lines = [line for line in map(_read, file) if line is not None and warm <= line.created]
    moments = np.sort([line.created for line in lines])
    if len(lines) < 2 or moments[0] == moments[-1]:
        return None
    rate = slope(moments)
    statuses = Counter(line.status for line in lines)
    tokens = [line.tokens for line in lines if line.tokens is not None]
    fixations = [line.fixations for line in lines if line.fixations is not None]
    return RecordWindow(
        rate_s=rate,
        seconds=float(moments[-1] - moments[0]),
        answers=len(lines),
        rejected=statuses["rejected"],
        failed=statuses["failed"],
        failure=next((line.failure for line in lines if line.failure), ""),
        waiting_s=fmean(line.waiting_s for line in lines),
        preparing_s=fmean(line.preparing_s for line in lines),
        responding_s=fmean(line.responding_s for line in lines),
        calling_s=fmean(line.responding_s / line.batch_size for line in lines),
        device=lines[0].device,
        record_bytes=fmean(line.length for line in lines),
        tokens_s=rate * sum(tokens) / len(lines) if tokens else None,
        fixations_s=rate * sum(fixations) / len(lines) if fixations else None,
    )


def with_pace_of_talks(window: RecordWindow, path: Path) -> RecordWindow:
    """The window with the rate of conversations, which counts from the beginning of the first one in the file.

    Those that begin together end together: their ends alone would look several times too fast.
    """
    with path.open("rb") as file:
        lines = [line for line in map(_read, file) if line is not None]
    talks = [(line.created - line.waiting_s - line.preparing_s - line.responding_s, line.created) for line in lines]
    rate = pace_of_talks(talks, inf).rate
    tokens = None if window.tokens_s is None else window.tokens_s * rate / window.rate_s
    return replace(window, rate_s=rate, tokens_s=tokens)


def slope(moments: NDArray[np.float64]) -> float:
    """Answers per second by least squares; ``moments`` [answers] are seconds in rising order, not all the same."""
    middle = moments - moments.mean()
    numbers = np.arange(len(moments))
    return float(middle @ (numbers - numbers.mean()) / (middle @ middle))


class _Line(NamedTuple):
    """What is needed of a record; there may be hundreds of thousands, and their answers stay on disk."""

    created: float
    length: int
    status: str
    failure: str
    waiting_s: float
    preparing_s: float
    responding_s: float
    batch_size: int
    device: str
    tokens: int | None
    fixations: int | None


def _read(line: bytes) -> _Line | None:
    """A record; None for a stimulus that no worker was given, since its failure took no time."""
    record = orjson.loads(line)
    if record["worker"] is None:
        return None
    timing = record["timing"]
    error = record["error"]
    answer = record["answer"] or {}
    return _Line(
        created=datetime.fromisoformat(record["created"]).timestamp(),
        length=len(line),
        status=record["status"],
        failure="" if error is None else f"{error['code']}: {error['message']}",
        waiting_s=timing["waiting"],
        preparing_s=timing["preparing"],
        responding_s=timing["responding"],
        batch_size=record["worker"]["batch_size"],
        device=record["worker"]["device"],
        tokens=_tokens(record),
        fixations=len(answer["fixations"]) if "fixations" in answer else None,
    )


def _tokens(record: Mapping[str, Any]) -> int | None:
    """The tokens that were written for a record; None where the agent counts none."""
    for part in (record["answer"], record["raw"]):
        if isinstance(part, dict) and isinstance(part.get("tokens"), int):
            tokens: int = part["tokens"]
            return tokens
    return None
