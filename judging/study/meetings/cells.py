"""What is drawn of the next live test: the kind of pair by its share, exchanges and condition by what lacks most."""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import get_args

from judging.study.design.tables import Tests as TestSettings
from judging.study.design.tables import TestsOfAll
from judging.study.log.meeting import PARTS_OF_PAIR, OnlineTest, Pair
from judging.study.log.meeting_events import Condition


def people_of(pair: Pair) -> int:
    """The number of participants that a test with such a pair needs, the judge included."""
    return 1 + PARTS_OF_PAIR[pair].count("person")


def shares_of_pairs(settings: TestsOfAll) -> dict[Pair, float]:
    """The wanted share of each kind of pair that there is at all."""
    alike = (1 - settings.two_machines - settings.two_people, settings.two_machines, settings.two_people)
    return {pair: round(share, 9) for pair, share in zip(PARTS_OF_PAIR, alike, strict=True) if round(share, 9)}


def wanted_shares(settings: TestSettings) -> tuple[dict[int, float], dict[Condition, float], dict[Pair, float]]:
    """The wanted share of each number of exchanges, of each condition, and of each kind of pair."""
    deceit = settings.person_deceives
    conditions = zip(get_args(Condition), (deceit, 1 - deceit), strict=True)
    return (
        dict.fromkeys(settings.exchanges, 1 / len(settings.exchanges)),
        {condition: share for condition, share in conditions if share},
        shares_of_pairs(settings),
    )


def next_cell(
    settings: TestSettings, held: Iterable[OnlineTest], chance: random.Random, pair: Pair
) -> tuple[int, Condition]:
    """The number of exchanges and the condition of the next test, which has a ``pair``.

    Of all cells the one is taken that lacks most to its share after the tests ``held``: first by the shares of its
    exchanges and its condition, then by that of the cell itself, then by chance.
    """
    exchanges, conditions, pairs = wanted_shares(settings)
    cells = Counter((test.exchanges, test.condition, test.pair) for test in held)
    total = cells.total() + 1

    def lack(cell: tuple[int, Condition]) -> tuple[float, float, float]:
        number, condition = cell
        lacks = (exchanges[number] + conditions[condition]) * total
        for (exchanges_held, condition_held, _), times in cells.items():
            lacks -= times if exchanges_held == number else 0
            lacks -= times if condition_held == condition else 0
        expected = exchanges[number] * conditions[condition] * pairs[pair] * total
        return round(lacks, 9), round(expected - cells[number, condition, pair], 9), chance.random()

    return max(product(exchanges, conditions), key=lack)
