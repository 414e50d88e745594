"""Blocks of stimuli, within which lengths are matched and planted.

**Why blocks.** Were lengths matched among all answers of a set, every answer would depend on every other. Two things
break then. A classifier learns from answers whose lengths were made from those that it judges. What its training
answers have too much of, the others have too little of: in simulations it was right in 36 to 45 % of trials where there
was nothing to find. And what goes with length, such as capitals, keeps the chance of the set, while the length loses
it. Then verdicts vary more, or less, than verdicts on answers that are independent. Intervals that take answers for
independent missed the true change in 6 to 10 % of studies, where 5 % are due.

Answers of different blocks have nothing in common. A classifier's folds are made of whole blocks, and errors of changes
are added up within blocks, so that both are right again.

**How large.** In a larger block answers keep more, as the shortest of a few answers is shorter than that of many at
the same rank. With more blocks the variance between them is known better. A block has :data:`SIZE` stimuli that the
group with the fewest answers has answered, or fewer where there would not be :data:`FEW` blocks. An agent that has
answered fewer than :data:`FEW` stimuli does not count: for its sake the others would be in two or three blocks. Where
it has no answer, others are matched without it.
"""

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

from judging.tells.transformation import PARTICIPANTS

S = TypeVar("S", bound=Hashable)
SIZE = 4
FEW = 10


def blocks_of(stimuli: Sequence[S], groups: Sequence[str], chance: random.Random) -> list[int]:
    """The block, from 1, of each answer, by its stimulus and by the group whose it is.

    All answers to a stimulus are in one block. Groups are spread over blocks as evenly as their stimuli allow."""
    owners: dict[S, set[str]] = {}
    for stimulus, group in zip(stimuli, groups, strict=True):
        owners.setdefault(stimulus, set()).add(group)
    totals = Counter(group for of_stimulus in owners.values() for group in of_stimulus)
    if not totals:
        return []
    enough = [total for group, total in totals.items() if total >= FEW or group == PARTICIPANTS]
    number = _number(min(enough or totals.values()), len(owners))
    held: list[Counter[str]] = [Counter() for _ in range(number)]
    sizes = [0] * number
    order = list(owners)
    chance.shuffle(order)
    order.sort(key=lambda stimulus: min(totals[group] for group in owners[stimulus]))  # what is scarce is dealt first
    block_of: dict[S, int] = {}
    for stimulus in order:
        of_stimulus = owners[stimulus]
        filled = [sum(held[block][group] / totals[group] for group in of_stimulus) for block in range(number)]
        drawn = [chance.random() for _ in range(number)]
        block = min(range(number), key=lambda at: (filled[at], sizes[at], drawn[at]))
        held[block].update(of_stimulus)
        sizes[block] += 1
        block_of[stimulus] = block + 1
    return [block_of[stimulus] for stimulus in stimuli]


def _number(fewest: int, stimuli: int) -> int:
    """How many blocks: 2 at least, as a block is judged by what is learned from others, if there are two stimuli."""
    size = min(SIZE, max(fewest // FEW, 1))
    return min(max(fewest // size, 2), stimuli)
