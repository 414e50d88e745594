"""Which test is held next: drawn so that every number of exchanges, condition and kind of pair has its share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from judging.study.online.state import Condition, OnlineTest, Pair, Part
from judging.study.settings import Tests as TestSettings

PARTS: Mapping[Pair, tuple[Part, Part]] = {
    "person machine": ("person", "machine"),
    "two machines": ("machine", "machine"),
    "two people": ("person", "person"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What is drawn for a test."""

    exchanges: int
    condition: Condition
    pair: Pair

    @property
    def people(self) -> int:
        return people_of(self.pair)


def drawn_pair(settings: TestSettings, chance: random.Random) -> tuple[Pair, int]:
    """A kind of pair by its share alone, and the number of people that every kind has enough of."""
    shares: dict[Pair, float] = {pair: share for pair, share in _shares(settings)[2].items() if share}
    return chance.choices(list(shares), list(shares.values()))[0], max(map(people_of, shares))


def people_of(pair: Pair) -> int:
    """The people of a test, with the judge."""
    return 1 + PARTS[pair].count("person")


def next_cell(
    settings: TestSettings, held: Iterable[OnlineTest], chance: random.Random, pair: Pair | None = None
) -> Cell:
    """The next test after those that were ``held``: the cell, of the kind ``pair`` if stated, whose number of
    exchanges, condition and kind lack most to their shares; among equals by chance."""
    shares = _shares(settings)
    values = [(test.exchanges, test.condition, test.pair) for test in held]
    counts = [Counter(cell[at] for cell in values) for at in range(len(shares))]
    cells, total = Counter(values), len(values) + 1
    possible = [
        Cell(*each) for each in product(*shares) if all(share[value] for share, value in zip(shares, each, strict=True))
    ]

    def lack(cell: Cell) -> tuple[float, float, float]:
        each = (cell.exchanges, cell.condition, cell.pair)
        lacks = [share[value] * total - count[value] for share, value, count in zip(shares, each, counts, strict=True)]
        expected = float(total)
        for share, value in zip(shares, each, strict=True):
            expected *= share[value]
        return round(sum(lacks), 9), round(expected - cells[each], 9), chance.random()

    return max((cell for cell in possible if pair in (None, cell.pair)), key=lack)


def _shares(settings: TestSettings) -> list[dict[Any, float]]:
    """The share of each number of exchanges, condition and kind of pair."""
    number = len(settings.exchanges)
    deceit = settings.person_deceives
    alike = (1 - settings.two_machines - settings.two_people, settings.two_machines, settings.two_people)
    return [
        dict.fromkeys(settings.exchanges, 1 / number),
        dict(zip(get_args(Condition), (deceit, 1 - deceit), strict=True)),
        dict(zip(get_args(Pair), (round(share, 9) for share in alike), strict=True)),
    ]
