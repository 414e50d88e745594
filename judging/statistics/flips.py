"""How many verdicts of a trained judge change between two versions: by its margins, and not by the verdicts alone.

**What breaks otherwise.** Some versions change few verdicts: those without a property that a judge hardly uses. Their
number varies much from study to study, and the estimated variance of a change with it. A study with many such verdicts
has a large change, and a large variance, too, so that the change seldom counts as one. Tests of such changes were false
alarms in 2 to 3 % of simulated studies, where 5 % are due. With no such verdict there was no variance at all.

**Margins say more.** A verdict changes where the margin moves by more than what it is away from 0. Take the middle of
an answer's two margins, and how far these lie from each other. How often do the distances of the answers with much the
same middle reach over it? That share is counted over many more pairs than there are answers. Answers have much the same
middle if theirs are near by rank, a :data:`NEAR` part of all. So distances may depend on middles, as those of a radial
classifier do that goes by counts: over all pairs the share was 0.7 of that of changed verdicts there. Margins of each
version are divided by their root mean square: the middle and the distance of two numbers of equal variance are not
correlated. In simulations the share was 0.95 to 1.04 times that of changed verdicts, on average for each change.

The variance of a change is a multiple of that share, whatever the clusters are. So it is corrected by how the two
shares are to each other. Where many verdicts change their own number is known well: the correction is whole for up to
:data:`FEW_VERDICTS` changed verdicts, fades out, and is none from :data:`MANY_VERDICTS` on.

In the same way few changed verdicts tell nothing of blocks, in which they hardly meet: there are ten blocks or more, if
there are as many stimuli. The variance by ten blocks has nine degrees of freedom where that by stimuli has many. With
blocks alone 2.5 to 3.5 % of intervals missed such changes. So for up to FEW_VERDICTS the variance is that by stimuli,
and from MANY_VERDICTS on that by blocks; between them it is a geometric mean of both, and so are the degrees of freedom
(:mod:`judging.statistics.versions`).

**Degrees of freedom.** How far margins move tells the variance of few changed verdicts nearly without chance. What is
left to chance is which of these verdicts become right. So the degrees of freedom are divided by 1 minus the part that
the correction has, and where it is whole the interval is normal. With the degrees of freedom of stimuli only 3.6 to 4.2
% of intervals missed, where nine verdicts changed at 40 stimuli.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.statistics.jackknife import Floats

NEAR = 1 / 3
FEWEST_NEAR = 8
FEW_VERDICTS = 10
MANY_VERDICTS = 30


@dataclass(frozen=True, slots=True)
class Flips:
    """Variances of a change of detectability, if verdicts on different answers were independent."""

    by_margins: float
    """By how many verdicts change as margins say; ``by_verdicts`` where they are many."""
    by_verdicts: float
    """By how many verdicts do change."""
    number: int
    """How many do."""

    def fewness(self) -> float:
        """1 where few verdicts change, 0 where many do."""
        return min(max((MANY_VERDICTS - self.number) / (MANY_VERDICTS - FEW_VERDICTS), 0.0), 1.0)

    def correction(self) -> float:
        """By what the variance of the change is multiplied; ValueError where no verdict changes."""
        if not self.number:
            raise ValueError("no verdict changes")
        return float((self.by_margins / self.by_verdicts) ** self.fewness())


def flips(first: Floats, second: Floats, is_person: NDArray[np.bool_], of_agent: NDArray[np.bool_]) -> Flips:
    """Of the margins [answers] in two versions, NaN where there is none; the change is that of an agent's answers.

    ``is_person`` [answers] are people's answers, ``of_agent`` those of the agent."""
    in_both = ~np.isnan(first) & ~np.isnan(second)
    sides = [side & in_both for side in (is_person, of_agent) if (side & in_both).any()]
    total = 0
    by_verdicts = 0.0
    for side in sides:
        changed = (first[side] > 0) != (second[side] > 0)
        # Each side has half of the detectability, and one verdict's part of it is one by the number.
        by_verdicts += 0.25 * float(changed.mean()) / len(changed)
        total += int(changed.sum())
    if total >= MANY_VERDICTS:  # nothing is corrected, and pairs of many answers need not be counted
        return Flips(by_verdicts, by_verdicts, total)
    first = _scaled(first, in_both)
    second = _scaled(second, in_both)
    by_margins = sum(0.25 * _reaching(first[side], second[side]) / int(side.sum()) for side in sides)
    return Flips(by_margins, by_verdicts, total)


def _reaching(first: Floats, second: Floats) -> float:
    """How often the distance of two margins, of answers near an answer by its middle, reaches over this middle."""
    twice_the_middle = np.abs(first + second)
    order = np.argsort(twice_the_middle, kind="stable")
    twice_the_middle = twice_the_middle[order]
    distance = np.abs(second - first)[order]
    number = len(order)
    near = min(max(round(NEAR * number), FEWEST_NEAR), number)
    begins = np.clip(np.arange(number) - near // 2, 0, number - near)
    shares = [
        np.count_nonzero(distance[begin : begin + near] > middle) / near
        for begin, middle in zip(begins.tolist(), twice_the_middle.tolist(), strict=True)
    ]
    return float(np.mean(shares))


def _scaled(margins: Floats, used: NDArray[np.bool_]) -> Floats:
    size = float(np.sqrt((margins[used] ** 2).mean())) if used.any() else 0.0
    return margins / size if size > 0 else margins
