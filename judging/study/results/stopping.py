"""Whether an agent passes, while a study goes on: valid at any time, however often it is looked at.

Each judge who finished is a unit: the mean of how often they were right about people's and about the agent's answers. A
bettor plays against each hypothesis on its mean; if it is true, the capital exceeds 1/alpha with a probability of alpha
at most (Ville 1939; Waudby-Smith and Ramdas 2024, section 4). Judges come in the order of joining, as the fast may be
unlike the others; who joins early must be as who joins late. Stimuli are fixed. The agents share alpha.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

ALPHA = 0.05
BOLDEST = 0.75  # the part of a bet that may be lost


def decide(detectabilities: Sequence[float], bounds: float, agents: int = 1) -> tuple[str, int]:
    """Of judges in the order in which they joined: "passes" if the mean is surely within 0.5 ± ``bounds`` (two tests
    at 0.05, divided by ``agents``), "fails" if it is surely not (two at half of that), else "open"; and after how many
    judges."""
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


def detectabilities(rows: Iterable[Mapping[str, Any]], agent: str) -> list[float]:
    """Of each judge with verdicts on people's answers and the agent's, in the order of the rows."""
    right: dict[str, tuple[list[bool], list[bool]]] = {}
    for row in rows:
        if row["truth"] == "human" or row["agent"] == agent:
            right.setdefault(row["judge"], ([], []))[row["truth"] == "machine"].append(row["correct"])
    return [sum(sum(part) / len(part) for part in parts) / 2 for parts in right.values() if all(parts)]
