"""The contamination rate of each task, and the probability of judged answers to be foreign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judging.contamination.asked import KnownRate, Traced
from judging.contamination.latent_classes import Floats
from judging.contamination.marks import AnswerKey, MarkedAnswer, count_patterns, read_marks
from judging.contamination.rate import Rate, estimate_rate
from judging.statistics.jackknife import Codes
from judging.statistics.tables import Estimate

TRACES = "traces"
KNOWN = "known rate"
NOWHERE = -1  # of an answer without traces


@dataclass(frozen=True, slots=True)
class RateOfTask:
    """What is known of the participants' answers to a task."""

    rate: Rate
    """The contamination rate."""
    persons: int
    """How many participants have answers with traces."""
    answers: int
    """How many answers with traces these are."""
    foreign_answers: int
    """How many of them are more probably foreign than not."""
    pattern_of: dict[AnswerKey, int]
    """The pattern of marks of each answer; NOWHERE without traces."""


def rates_of_tasks(asked: Traced) -> dict[str, RateOfTask]:
    """By task the contamination rate. Raises InputError as :func:`judging.contamination.marks.read_marks` does."""
    field = read_marks([asked.field])
    laboratory = read_marks(asked.laboratory)
    tasks = {}
    for task in dict.fromkeys(answer.key.task for answer in field):
        of_field = [answer for answer in field if answer.key.task == task]
        in_laboratory = [answer for answer in laboratory if answer.key.task == task]
        tasks[task] = _of_task(of_field, in_laboratory)
    return tasks


def _of_task(field: Sequence[MarkedAnswer], laboratory: Sequence[MarkedAnswer]) -> RateOfTask:
    counts, patterns = count_patterns(field, laboratory)
    rate = estimate_rate(counts)
    pattern_of = {answer.key: pattern for answer, pattern in zip(field, patterns, strict=True)}
    foreign = 0
    if not rate.why:
        foreign = int(counts.field.sum(axis=0) @ (rate.posterior[0] > 0.5))
    return RateOfTask(rate, len(counts.field), int(counts.field.sum()), foreign, pattern_of)


def source_and_rate(asked: KnownRate | Traced, of_task: RateOfTask | None) -> tuple[dict[str, Any], str]:
    """Where the rate of a task comes from and how large it is, as tables have it, and why there is none, "" if there
    is."""
    if isinstance(asked, KnownRate):
        return {"source": KNOWN, "rate": Estimate((asked.low + asked.high) / 2, asked.low, asked.high)}, ""
    if of_task is None:
        return {"source": TRACES}, "no answer to this task has traces"
    figures = {
        "source": TRACES,
        "rate": of_task.rate.estimate,
        "persons": of_task.persons,
        "answers": of_task.answers,
        "foreign_answers": of_task.foreign_answers,
    }
    return figures, of_task.rate.why


def probabilities(rate: Rate, patterns: Codes) -> Floats:
    """The probabilities [7, verdicts] that answers with these ``patterns`` [verdicts] are foreign, at each of
    ``rate.rates``; that of an answer without traces is the rate."""
    of_patterns = np.concatenate([rate.posterior, rate.rates[:, None]], axis=1)  # NOWHERE is the last
    return np.asarray(of_patterns[:, patterns])
