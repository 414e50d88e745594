"""Tells by intervention: how detectability changes when a property is taken away of all answers, people's and
machines'.

A tell is taken away *alone*, while all others stay, and *last*, when all others are gone. Two tells that go together
hide each other: alone neither changes anything, as the other is left; last each does. Both are differences of two
detectabilities of the same judge, on versions of the same answers (:mod:`judging.statistics.versions`). What a judge
still finds when all are gone *remains*.

Where no answer looks otherwise without the property, nobody has it, and there is nothing to test.

p is corrected by Holm (1979) over all agents, tells and changes of a judge and a task; what remains, over its agents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judging.statistics.contrasts import holm
from judging.statistics.crossed import Crossed
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.statistics.verdict_table import by_judge
from judging.statistics.versions import DRAWN, Change, judged_versions, taken
from judging.tells.registry import PLANT

if TYPE_CHECKING:
    import pandas as pd

ALONE = "alone"
LAST = "last"
PLANTED = "planted"
CHANGE = "+.2f"  # how changes are written


@dataclass(frozen=True, slots=True, kw_only=True)
class TellChange:
    """By how much a judge's detectability of an agent falls when a property is taken away."""

    task: str
    """The task that was answered."""
    judge: str
    """Who judged; "people" are all people together."""
    agent: str
    """The agent whose answers stand beside people's."""
    tell: str
    """What was taken away, or planted."""
    taken: str
    """Which way: "alone", "last" (when all others are gone), or "planted" (machines have people's distribution)."""
    before: float
    """Detectability with the property, 0 to 1; for "last" with this property alone left."""
    after: float
    """Detectability without it."""
    change: Estimate
    """``before`` minus ``after``: above 0 where the property was a tell. Without an interval where ``is_alike``."""
    p: float | None = None
    """The probability, 0 to 1, of at least such a change, to either side, if there were none; None without a test."""
    holm: float | None = None
    """``p`` corrected by Holm (1979) for the ``family``."""
    family: int | None = None
    """How many changes were corrected together: all of a judge and a task."""
    people_answers: int = 0
    """How many answers of people were judged."""
    agent_answers: int = 0
    """How many answers of the agent."""
    is_alike: bool = False
    """Whether all these answers look the same with the property and without it, so that there is nothing to test."""
    is_trained: bool = False
    """Whether the judge was trained on each version: the figures are then of its models as they were trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TellsLeft:
    """What a judge still finds when all properties are taken away that were to be taken away."""

    task: str
    """The task that was answered."""
    judge: str
    """Who judged; "people" are all people together."""
    agent: str
    """The agent whose answers stand beside people's."""
    gone: str
    """What was taken away, joined by "+"."""
    before: float
    """Detectability of the answers as drawn, 0 to 1."""
    remains: Estimate
    """Detectability without any of these."""
    p: float | None = None
    """The probability, 0 to 1, of at least such a distance from 0.5, to either side, of a judge who guesses."""
    holm: float | None = None
    """``p`` corrected by Holm (1979) for the ``family``."""
    family: int | None = None
    """How many agents were corrected together."""
    above: Estimate = NO_FIGURE
    """``before`` minus ``remains``: what all of them told together."""


def has_versions(verdicts: pd.DataFrame) -> bool:
    """Whether some verdicts are on answers of which something was taken away, or to which it was planted."""
    return "version_of" in verdicts.columns and bool(verdicts["version_of"].notna().any())


def tell_changes(task: str, verdicts: pd.DataFrame) -> tuple[list[TellChange], list[TellsLeft]]:
    """The changes of a task's ``verdicts`` that count, and what remains, judge by judge."""
    changes: list[TellChange] = []
    left: list[TellsLeft] = []
    for judge, of_judge in by_judge(verdicts[verdicts["version"].notna()]):
        of_changes, of_rest = _of_judge(of_judge)
        changes += [replace(row, task=task, judge=judge) for row in of_changes]
        left += [replace(row, task=task, judge=judge) for row in of_rest]
    return changes, left


def _of_judge(verdicts: pd.DataFrame) -> tuple[list[TellChange], list[TellsLeft]]:
    judged = judged_versions(verdicts)
    what = taken(list(judged.versions))
    rows: list[TellChange] = []
    asked: list[Change] = []
    agents = sorted(judged.agents)
    for agent in agents:
        of_people, of_agent = judged.number(agent)
        ways = [(tell, ALONE, DRAWN, tell) for tell in what.tells]
        if len(what.tells) > 1:
            ways += [(tell, LAST, what.but(tell), what.all_gone) for tell in what.tells]
        ways += [(name, PLANTED, DRAWN, f"{PLANT}{name}") for name in what.planted]
        for tell, way, first, second in ways:
            asked.append((agent, first, second))
            rows.append(
                TellChange(
                    task="",
                    judge="",
                    agent=agent,
                    tell=tell,
                    taken=way,
                    before=judged.detectability(agent, first),
                    after=judged.detectability(agent, second),
                    change=NO_FIGURE,
                    people_answers=of_people,
                    agent_answers=of_agent,
                    is_alike=judged.are_alike(agent, first, second),
                    is_trained=judged.margin is not None,
                )
            )
    rest: list[TellsLeft] = []
    if what.tells:
        for agent in agents:
            asked += [(agent, what.all_gone, None), (agent, DRAWN, what.all_gone)]
            before = judged.detectability(agent, DRAWN)
            rest.append(TellsLeft(task="", judge="", agent=agent, gone=what.all_gone, before=before, remains=NO_FIGURE))
    result = judged.changes(asked)
    estimates = _estimates(result)
    probabilities = _known(result.p())
    number = len(rows)
    of_changes = [None if row.is_alike else p for row, p in zip(rows, probabilities[:number], strict=True)]
    of_rest = probabilities[number::2]
    family = sum(p is not None for p in of_changes)
    family_of_rest = sum(p is not None for p in of_rest)
    changed = [
        replace(
            row,
            change=Estimate(estimate.value, form=CHANGE) if row.is_alike else estimate,
            p=p,
            holm=corrected,
            family=None if p is None else family,
        )
        for row, estimate, p, corrected in zip(rows, estimates[:number], of_changes, holm(of_changes), strict=True)
    ]
    left = [
        replace(
            row,
            remains=_from_half(estimate),
            above=above,
            p=p,
            holm=corrected,
            family=None if p is None else family_of_rest,
        )
        for row, estimate, above, p, corrected in zip(
            rest, estimates[number::2], estimates[number + 1 :: 2], of_rest, holm(of_rest), strict=True
        )
    ]
    return changed, left


def _estimates(result: Crossed) -> list[Estimate]:
    low, high = result.interval()
    ends = np.clip([low, high], -1, 1)
    figures = np.array([result.value, *ends]).T.tolist()
    return [Estimate(value, low_end, high_end, CHANGE) for value, low_end, high_end in figures]


def _from_half(estimate: Estimate) -> Estimate:
    """A detectability of its distance from 0.5, within 0 to 1."""
    low = max(estimate.low + 0.5, 0.0)
    high = min(estimate.high + 0.5, 1.0)
    return Estimate(estimate.value + 0.5, low, high)


def _known(probabilities: np.ndarray) -> list[float | None]:
    return [None if np.isnan(p) else float(p) for p in probabilities]
