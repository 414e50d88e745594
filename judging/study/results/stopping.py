"""Whether an agent passes, while a study goes on: valid at any time, however often it is looked at.

Each judge who finished is a unit: the mean of how often they were right about people's and about the agent's answers. A
bettor plays against each hypothesis on its mean; if it is true, the capital exceeds 1/alpha with a probability of alpha
at most (Ville 1939; Waudby-Smith and Ramdas 2024, section 4). Judges come in the order of joining, as the fast may be
unlike the others. Those who join early must be like those who join late. Stimuli are fixed. The agents share alpha.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

ALPHA = 0.05
"""The probability of a wrong decision, all agents together."""
BOLDEST = 0.75
"""The largest part of the capital that a bet may lose."""


def decide(detectabilities: Sequence[float], bounds: float, agents: int = 1) -> tuple[str, int]:
    """The decision on an agent, and after how many judges it was reached.

    ``detectabilities`` are those of judges in the order in which they joined. "passes": the mean is surely within
    0.5 ± ``bounds`` (two tests at 0.05, divided by ``agents``). "fails": it is surely not (two tests at half of that).
    "open": neither yet. A decision stands, whatever comes later.
    """
    # 1: bet is on above
    ends = 0.5 + bounds * np.array([1, -1, 1, -1])
    side = np.array([-1, 1, 1, -1])
    levels = np.array([ALPHA, ALPHA, ALPHA / 2, ALPHA / 2]) / agents
    most = BOLDEST / np.where(side > 0, ends, 1 - ends)
    total = 0.5
    squares = 0.25
    capital = np.zeros(4)
    is_rejected = np.zeros(4, dtype=bool)
    for number, value in enumerate(detectabilities, 1):
        middle = total / number  # of those before
        expected = side * (middle - ends)
        bet = np.clip(expected / (squares / number + expected**2), 0, most)
        capital += np.log1p(bet * side * (value - ends))
        is_rejected |= capital >= -np.log(levels)
        if is_rejected[:2].all() or is_rejected[2:].any():
            return "passes" if is_rejected[:2].all() else "fails", number
        total += value
        squares += (value - total / (number + 1)) ** 2
    return "open", len(detectabilities)


def detectability_by_judge(rows: Iterable[Mapping[str, Any]], agent: str) -> list[float]:
    """The detectability of an agent by each judge with verdicts on people's answers and on the agent's.

    ``rows`` are those of :mod:`judging.study.results.verdict_rows`; judges come in their order.
    """
    right: dict[str, tuple[list[bool], list[bool]]] = {}
    for row in rows:
        if row["truth"] == "human" or row["agent"] == agent:
            of_people, of_agent = right.setdefault(row["judge"], ([], []))
            verdicts = of_agent if row["truth"] == "machine" else of_people
            verdicts.append(row["correct"])
    return [sum(sum(part) / len(part) for part in parts) / 2 for parts in right.values() if all(parts)]
