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
    """What is drawn for a test before anybody is."""

    exchanges: int
    condition: Condition
    pair: Pair

    @property
    def people(self) -> int:
        """How many people it takes, the judge among them."""
        return 1 + PARTS[self.pair].count("person")


def next_cell(
    settings: TestSettings, held: Iterable[OnlineTest], chance: random.Random, people: int = 3
) -> Cell | None:
    """The test that is held next, after those that are ``held`` or go on: of the cells that so many ``people`` suffice
    for, one whose number of exchanges, condition and kind lack most to their shares; among equals one by chance. None
    where no cell suffices."""
    shares = _shares(settings)
    values = [(test.exchanges, test.condition, test.pair) for test in held]
    counts = [Counter(one[at] for one in values) for at in range(len(shares))]
    cells, total = Counter(values), len(values) + 1
    found = [
        Cell(*one) for one in product(*shares) if all(share[value] for share, value in zip(shares, one, strict=True))
    ]
    found = [cell for cell in found if cell.people <= people]
    if not found:
        return None

    def lack(cell: Cell) -> tuple[float, float, float]:
        one = (cell.exchanges, cell.condition, cell.pair)
        of_each = [share[value] * total - count[value] for share, value, count in zip(shares, one, counts, strict=True)]
        whole = float(total)
        for share, value in zip(shares, one, strict=True):
            whole *= share[value]
        return round(sum(of_each), 9), round(whole - cells[one], 9), chance.random()

    return max(found, key=lack)


def _shares(settings: TestSettings) -> list[dict[Any, float]]:
    """By what is drawn, the share of each value."""
    number = len(settings.exchanges)
    deceit = settings.person_deceives
    alike = (1 - settings.two_machines - settings.two_people, settings.two_machines, settings.two_people)
    return [
        dict.fromkeys(settings.exchanges, 1 / number),
        dict(zip(get_args(Condition), (deceit, 1 - deceit), strict=True)),
        dict(zip(get_args(Pair), (round(share, 9) for share in alike), strict=True)),
    ]
