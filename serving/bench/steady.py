"""When the steady state begins, for whatever is measured: agents, peers, engines that batch by themselves.

A fresh process is slow at first, and becomes faster over several batches: memory comes from the system page by page,
kernels are chosen for each new shape, and an engine that batches by itself meets batches of every size while calls end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WARM = 0.2  # of the measured seconds are warm-up at the least,
FEWEST = 3  # and so many rounds (batches; of calls at once as many as there are at once),
LONGEST = 10.0  # but not once they took so many times the measured seconds
MOST = 8  # rounds that are waited for until one is not noticeably shorter
STEADY = 0.9  # than the one before
MEASURED = 2  # rounds at the least after that, however long they take


@dataclass
class WarmUp:
    """The rounds of a warm-up, after which so many ``seconds`` are to be measured."""

    seconds: float
    rounds: int = 0
    last: float = math.inf
    _total: float = 0.0

    def add(self, took: float) -> bool:
        """Note a round and the seconds that it ``took``; whether the warm-up is over."""
        self.rounds += 1
        self._total += took
        before, self.last = self.last, took
        if self._total < WARM * self.seconds:
            return False
        if self._total >= LONGEST * self.seconds or self.rounds >= MOST:
            return True
        return self.rounds >= FEWEST and took > STEADY * before
