"""When the steady state begins, for whatever is measured: agents, peers, engines that batch by themselves.

A fresh process is slow at first, and becomes faster over several batches: memory comes from the system page by page,
kernels are chosen for each new shape, and an engine that batches by itself meets batches of every size while calls end.
"""

from __future__ import annotations

from collections.abc import Sequence

WARM = 0.2  # of the measured seconds are warm-up at the least,
FEWEST = 3  # and so many rounds (batches; of calls at once as many as there are at once),
LONGEST = 10.0  # but not once they took so many times the measured seconds
MOST = 8  # rounds that are waited for until one is not noticeably shorter
STEADY = 0.9  # than the one before


def warmed_up(rounds: Sequence[float], seconds: float) -> bool:
    """Whether the warm-up is over, by the seconds that each of its rounds took; ``seconds`` are to be measured."""
    total = sum(rounds)
    if not rounds or total < WARM * seconds:
        return False
    if total >= LONGEST * seconds or len(rounds) >= MOST:
        return True
    return len(rounds) >= FEWEST and rounds[-1] > STEADY * rounds[-2]
