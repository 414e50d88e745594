"""Matching by ranks: groups of numbers are cut to one distribution, within blocks of stimuli.

Cutting every caption to the shortest of all would take the tell away as well. But one caption of a single word is
enough, and then a single word is left of each: a judge has nothing else to go by, and whatever changes may come from
that. So the answers of a group are put in the order of their length, and each is cut to the smallest of the groups'
lengths at its rank. Short ones are cut to short ones and long ones to long ones, and no answer is longer than before.

A group of n answers has n ranges of ranks, of equal width. An answer's rank is drawn from its own range. So groups with
other numbers of answers have the same distribution: at the middles of the ranges three answers would have other ranks
than twelve. As the rank lies in the answer's own range, the group's length there is the answer's own, and the smallest
of the groups' is no longer. :mod:`judging.tells.blocks` says why there are blocks.
"""

import random
from collections.abc import Hashable, Sequence
from typing import TypeVar

G = TypeVar("G", bound=Hashable)


def by_rank(values: Sequence[float], groups: Sequence[G], chance: random.Random) -> dict[G, list[int]]:
    """The places of each group's values in the order of the values; chance decides about equal ones."""
    drawn = [chance.random() for _ in values]
    places: dict[G, list[int]] = {}
    for place in sorted(range(len(values)), key=lambda at: (values[at], drawn[at])):
        places.setdefault(groups[place], []).append(place)
    return places


def matched(values: Sequence[float], groups: Sequence[G], blocks: Sequence[int], chance: random.Random) -> list[float]:
    """For each value the smallest of the quantiles of all groups in its block, at a rank drawn from its own range
    within its group: never more than the value itself."""
    targets = list(values)
    for places in _by_block(blocks):
        ranked = by_rank([values[at] for at in places], [groups[at] for at in places], chance)
        ordered = [[values[places[at]] for at in of_group] for of_group in ranked.values()]
        for group in dict.fromkeys(groups[at] for at in places):
            for at, rank in zip(ranked[group], _drawn_ranks(len(ranked[group]), chance), strict=True):
                smallest = min(_at(of_group, rank) for of_group in ordered)
                targets[places[at]] = min(smallest, values[places[at]])
    return targets


def matched_to(
    values: Sequence[float], groups: Sequence[G], blocks: Sequence[int], model: G, chance: random.Random
) -> list[float]:
    """For each value the quantile of the group ``model`` in its block, at a rank drawn from its own range within its
    own group. Values of ``model``, and those of blocks without any, stay."""
    targets = list(values)
    for places in _by_block(blocks):
        ranked = by_rank([values[at] for at in places], [groups[at] for at in places], chance)
        of_model = [values[places[at]] for at in ranked.get(model, ())]
        for group in dict.fromkeys(groups[at] for at in places):
            if group == model or not of_model:
                continue
            for at, rank in zip(ranked[group], _drawn_ranks(len(ranked[group]), chance), strict=True):
                targets[places[at]] = _at(of_model, rank)
    return targets


def _by_block(blocks: Sequence[int]) -> list[list[int]]:
    """The places of each block, in the order of the blocks' numbers."""
    places: dict[int, list[int]] = {}
    for place, block in enumerate(blocks):
        places.setdefault(block, []).append(place)
    return [places[block] for block in sorted(places)]


def _drawn_ranks(number: int, chance: random.Random) -> list[float]:
    """A rank from each of ``number`` ranges of equal width, 0 to below 1, in their order."""
    return [(place + chance.random()) / number for place in range(number)]


def _at(ordered: Sequence[float], rank: float) -> float:
    """The quantile of values in their order at a rank, 0 to below 1."""
    return ordered[min(int(rank * len(ordered)), len(ordered) - 1)]
