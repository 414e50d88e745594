"""How many judges a study needs for intervals of a wanted width, as in :mod:`judging.measures`. A rate of n verdicts
has the variance (judges') sum(n_judge^2) / n^2 + (stimuli's) sum(n_stimulus^2) / n^2 + (rest) / n; detectability has a
quarter of the sum of both rates' variances."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Literal

from scipy.special import stdtrit

from agents.errors import InputError
from judging.two_way import CONFIDENCE

Measure = Literal["p_machine", "detectability"]
MOST_JUDGES = 1_000_000  # a width that so many do not reach is out of reach


JUDGES, STIMULI, REST = 0.0135, 0.018, 0.2185
"""The parts of the variance of a verdict's being right, together .25, that of a rate of a half.

Judges: the 2025 paper's captions have detectability .57 with a standard deviation of .11 over 293 online judges of 44
trials; binomial noise of p(H|H) .67 and p(M|M) .46 explains .0053 of that variance of .0121, which leaves .0068, and
twice as much for either rate if the two do not hang together. Stimuli: no paper tells; a standard deviation of .134,
which is .4 of the verdicts' noise in a probit model, is assumed.
"""


def half_width(judges: int, per_human: float, per_machine: float, stimuli: int, measure: Measure) -> float:
    """Of an agent's 95 % interval, with so many verdicts of each judge on people's and on each agent's answers."""
    human, machine = (
        JUDGES * _squares(each * judges, judges) + STIMULI * _squares(each * judges, stimuli) + REST / (each * judges)
        for each in (per_human, per_machine)
    )
    variance = machine if measure == "p_machine" else (human + machine) / 4
    return float(stdtrit(min(judges, stimuli) - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)


def _squares(number: float, clusters: int) -> float:
    each = number / clusters
    over = each % 1
    return (1 + over * (1 - over) / each**2) / clusters


def plan(wanted: float, agents: int, per_judge: int, stimuli: int, *, measure: Measure) -> tuple[int | None, float]:
    """The fewest judges that bring each agent's half-width to ``wanted``, and what is reached. Raises InputError."""
    if not 0 < wanted < 0.5 or per_judge < 2 or stimuli < 2:
        raise InputError("a plan has a half-width between 0 and 0.5, and at least two trials per judge and two stimuli")

    def reached(judges: int) -> float:
        return half_width(judges, per_judge / 2, per_judge / 2 / agents, stimuli, measure)

    judges = 2 + bisect_left(range(2, MOST_JUDGES), True, key=lambda number: reached(number) <= wanted)
    return (judges if reached(judges) <= wanted else None), reached(judges)
