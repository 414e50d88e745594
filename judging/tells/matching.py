"""Matching by ranks: groups of numbers are cut to one distribution.

Cutting every caption to the shortest of all would take the tell away as well. But one caption of a single word is
enough, and then a single word is left of each: a judge has nothing else to go by, and whatever changes may come from
that. So the answers of a group are put in the order of their length, and each is cut to the smallest of the groups'
lengths at its rank. Short ones are cut to short ones and long ones to long ones, no answer is longer than before, and
afterwards all groups have the same distribution.
"""

import random
from collections.abc import Hashable, Sequence
from typing import TypeVar

G = TypeVar("G", bound=Hashable)


def quantiles(values: Sequence[float], number: int) -> list[float]:
    """``number`` of the sorted ``values``, at the ranks (r + 1/2) / number: the values themselves where there are as
    many."""
    ordered = sorted(values)
    return [ordered[(2 * rank + 1) * len(ordered) // (2 * number)] for rank in range(number)]


def by_rank(values: Sequence[float], groups: Sequence[G], chance: random.Random) -> dict[G, list[int]]:
    """The places of each group's values in the order of the values; chance decides about equal ones."""
    drawn = [chance.random() for _ in values]
    places: dict[G, list[int]] = {}
    for place in sorted(range(len(values)), key=lambda at: (values[at], drawn[at])):
        places.setdefault(groups[place], []).append(place)
    return places


def matched(values: Sequence[float], groups: Sequence[G], chance: random.Random) -> list[float]:
    """For each value the smallest of all groups' quantiles at its rank within its group.

    Groups of equal sizes have exactly the same values afterwards. Those of other sizes have the same distribution but
    for steps of one value."""
    ranked = by_rank(values, groups, chance)
    sorted_values = {group: [values[place] for place in places] for group, places in ranked.items()}
    targets = [0.0] * len(values)
    for places in ranked.values():
        of_groups = [quantiles(of_group, len(places)) for of_group in sorted_values.values()]
        for place, at_rank in zip(places, zip(*of_groups, strict=True), strict=True):
            targets[place] = min(at_rank)
    return targets


def matched_to(values: Sequence[float], groups: Sequence[G], model: G, chance: random.Random) -> list[float]:
    """For each value the quantile of the group ``model`` at its rank within its own group; for those of ``model`` the
    value itself."""
    ranked = by_rank(values, groups, chance)
    of_model = [values[place] for place in ranked.get(model, ())]
    targets = list(values)
    for group, places in ranked.items():
        if group == model or not of_model:
            continue
        for place, target in zip(places, quantiles(of_model, len(places)), strict=True):
            targets[place] = target
    return targets
