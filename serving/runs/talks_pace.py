"""The pace of conversations, of which many are under way at a time.

The first of them all begin at once, and so they end at nearly the same time. Whoever counts from the first end to the
last finds them several times too fast. So their time begins with the first conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_WAVES = 5.0
"""Times as long as a conversation takes, over which the pace is looked at."""


@dataclass(frozen=True, slots=True)
class TalksPace:
    """How many conversations end in a second."""

    ended: int
    """Those that ended in the time that is looked at."""
    rate: float
    """Ends in a second."""
    slowest: float
    """The rate, if those that are under way have only begun."""
    fastest: float
    """The rate, if those that are under way are as good as at their end."""
    variance: float
    """That of the logarithm of the rate, as far as conversations take differently long."""
    is_of_few: bool
    """Whether so few have ended that most of them may have been under way at the same time."""


def pace_of_talks(talks: Sequence[tuple[float, float]], recent: float) -> TalksPace:
    """The pace of the conversations with these beginnings and ends, in seconds; there is at least one.

    It is looked at the last ``recent`` seconds, or at :data:`LEAST_WAVES` times as long as a conversation takes, or at
    all since the first one began, whichever of the last is shorter.
    """
    begins, ends = np.array(talks).T
    seconds = ends - begins
    first = float(begins.min())
    last = float(ends.max())
    since = max(first, last - max(recent, LEAST_WAVES * float(seconds.mean())))
    is_recent = ends > since
    ended = int(is_recent.sum())
    window = max(1e-9, last - since)
    of_window = np.minimum(seconds, ends - since)[is_recent]
    at_a_time = min(float(ended), float(of_window.sum()) / window)
    if since == first:  # nothing but these was done in the time, and some of what is under way
        slowest = float(ended)
        fastest = ended + at_a_time
    else:  # some of the work on them was done before, which makes up for what is under way, more or less
        slowest = ended - at_a_time / 2
        fastest = ended + at_a_time / 2
    unlike = float(seconds[is_recent].std(ddof=1) / seconds[is_recent].mean()) if ended > 1 else 1.0
    return TalksPace(
        ended=ended,
        rate=ended / window,
        slowest=slowest / window,
        fastest=fastest / window,
        variance=unlike**2 / ended,
        is_of_few=ended < LEAST_WAVES * at_a_time,
    )
