"""How many judges a study needs for intervals of a wanted width.

Judges are drawn, and so are stimuli. Whether a verdict is right is the mean of whose answer it is about, plus
independent parts of its judge, its stimulus, and a rest. The variance of a rate of n verdicts is

    between judges x sum(n_judge^2) / n^2  +  between stimuli x sum(n_stimulus^2) / n^2  +  rest / n.

Detectability, the mean of p(H|H) and p(M|M), has a quarter of the sum of their variances. An interval's half-width is
Student's t of the smaller number of clusters less 1, times the root of the variance, as in :mod:`judging.measures`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtrit

from agents.errors import InputError
from judging.measures import CONFIDENCE

Measure = Literal["p_machine", "detectability"]
MOST_JUDGES = 1_000_000  # a width that so many do not reach is out of reach


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the variance of a verdict's being right, the same for people's and machines' answers."""

    judges: float = 0.0135
    stimuli: float = 0.018
    rest: float = 0.2185


DEFAULT = Parts()
"""Judges: the 2025 paper's captions have detectability .57 with a standard deviation of .11 over 293 online judges of
44 trials; binomial noise of p(H|H) .67 and p(M|M) .46 explains .0053 of that variance of .0121, which leaves .0068, and
twice as much for either rate if the two do not hang together. Stimuli: no paper tells; a standard deviation of .134,
which is .4 of the verdicts' noise in a probit model, is assumed. Together .25, a rate of a half."""


@dataclass(frozen=True, slots=True)
class Design:
    """A study whose judges give ``per_human`` verdicts on people's answers each and ``per_machine`` on each agent's."""

    judges: int
    per_human: float
    per_machine: float
    stimuli: int

    def half_width(self, parts: Parts, measure: Measure) -> float:
        """Of the 95 % interval of an agent."""
        human, machine = (
            parts.judges * _squares(each * self.judges, self.judges)
            + parts.stimuli * _squares(each * self.judges, self.stimuli)
            + parts.rest / (each * self.judges)
            for each in (self.per_human, self.per_machine)
        )
        return _half(machine if measure == "p_machine" else (human + machine) / 4, min(self.judges, self.stimuli))

    def floor(self, parts: Parts, measure: Measure) -> float:
        """The half-width that no number of judges goes below."""
        variance = parts.stimuli / self.stimuli
        return _half(variance if measure == "p_machine" else variance / 2, self.stimuli)


def _squares(number: float, clusters: int) -> float:
    """sum(n_cluster^2) / n^2 of ``number`` verdicts dealt on clusters as evenly as whole verdicts can be."""
    each = number / clusters
    over = each % 1
    return (1 + over * (1 - over) / each**2) / clusters


def _half(variance: float, clusters: int) -> float:
    return float(stdtrit(clusters - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance) if clusters > 1 else math.nan


def plan(
    half_width: float,
    agents: int,
    per_judge: int,
    stimuli: int,
    *,
    measure: Measure = "detectability",
    parts: Parts = DEFAULT,
) -> tuple[int | None, float]:
    """The fewest judges of ``per_judge`` trials (half people's, half the ``agents``' equally) that bring each agent's
    interval to ``half_width`` (0 to 0.5), and the half-width that they reach; (None, the floor) where none do. Raises
    InputError."""
    if not 0 < half_width < 0.5:
        raise InputError(f"the half-width must be between 0 and 0.5, not {half_width}")
    if agents < 1 or per_judge < 2 or stimuli < 2:
        raise InputError("a study has at least an agent, two trials per judge and two stimuli")

    def reached(judges: int) -> float:
        return Design(judges, per_judge / 2, per_judge / 2 / agents, stimuli).half_width(parts, measure)

    low, high = 1, MOST_JUDGES  # a single judge has no interval
    if reached(high) > half_width:
        return None, Design(2, 1, 1, stimuli).floor(parts, measure)
    while high - low > 1:
        middle = (low + high) // 2
        if reached(middle) <= half_width:
            high = middle
        else:
            low = middle
    return high, reached(high)
