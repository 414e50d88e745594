"""Whether changes of detectability, when tells are taken away, hold what they promise: drawn studies with known truth.

Studies are those of :mod:`drawn_versions`: agents that differ from participants in no tell, in one, and in two that go
together, judged by people who see each stimulus in one version, by people and by a model that see all versions, and by
classifiers that are trained on each version. The table that `score` makes of them is compared with the truth.

A cell is a change of an agent by a kind of judges in a design: a tell alone, last, planted, all together, or what
remains of detectability. Where nothing changes in truth, p is below 0.05 in 5 % of studies; else the 95 % interval
misses the truth in 5 %. A cell fails if the exact 95 % interval of its share excludes 5 %. Further cells are families:
the share of studies in which Holm's p is below 0.05 where nothing changes. They fail above 5 % alone. At most one cell
in ten may fail, else the command ends with exit code 1."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from drawn_versions import (
    PLANT_LENGTH,
    WHAT,
    Design,
    Truths,
    classifier,
    classifier_by_counts,
    classifier_by_length,
    people_see_all,
    people_see_one,
)
from scipy.stats import binomtest

from judging.statistics.tell_changes import ALONE, LAST, PLANTED, tell_changes
from judging.statistics.versions import DRAWN
from serving.commands.command_line import positive

ALPHA = 0.05
MOST_FAIL = 0.1  # of cells
NOTHING = 0.004  # true changes come from drawn answers, and may be off by this
Draw = Callable[[Design, int], tuple[pd.DataFrame, Truths]]
KINDS: dict[str, tuple[Draw, Sequence[Design]]] = {
    "people, one version of a stimulus": (people_see_one, [Design(30, 36, 36, 12), Design(100, 72, 45, 24)]),
    "people, all versions": (people_see_all, [Design(10, 30, 15, 12), Design(20, 60, 20, 20)]),
    "a language model": (people_see_all, [Design(1, 60, 60, 20), Design(1, 152, 152, 38)]),
    "a classifier": (classifier, [Design(1, 40, 40, 12, 3), Design(1, 100, 100, 20, 3)]),
    "a classifier by counts": (classifier_by_counts, [Design(1, 60, 60, 20, 2, 0.5)]),
    "a classifier by length alone": (classifier_by_length, [Design(1, 60, 60, 20, 2)]),
}
Cell = tuple[str, str, str]  # agent, tell, which way
SOUGHT: Sequence[Cell] = (
    ("one", "length", ALONE),
    ("one", "length", LAST),
    ("one", "length", PLANTED),
    ("two", "length", ALONE),
    ("two", "length", LAST),
    ("two", "case", LAST),
)


def study(draw: Draw, design: Design, number: int) -> tuple[dict[Cell, tuple[float, bool]], dict[Cell, bool]]:
    """By cell the true change and whether it was missed, and by change whether it was found after Holm."""
    table, truths = draw(design, number)
    changes, left = tell_changes("words", table)
    missed: dict[Cell, tuple[float, bool]] = {}
    found: dict[Cell, bool] = {}
    for row in changes:
        first = DRAWN
        second = row.tell
        if row.taken == LAST:
            first = WHAT.but(row.tell)
            second = WHAT.all_gone
        elif row.taken != ALONE:
            second = PLANT_LENGTH
        truth = truths[row.agent, first] - truths[row.agent, second]
        cell = (row.agent, row.tell, row.taken)
        assert row.holm is not None
        missed[cell] = (truth, not row.change.low <= truth <= row.change.high)
        found[cell] = row.holm < ALPHA
    for rest in left:
        remains = truths[rest.agent, rest.gone]
        together = truths[rest.agent, DRAWN] - remains
        missed[rest.agent, "all", "remains"] = (remains, not rest.remains.low <= remains <= rest.remains.high)
        if len({row.tell for row in changes}) > 1:  # of one tell it is the same as that alone
            missed[rest.agent, "all", "together"] = (together, not rest.above.low <= together <= rest.above.high)
    return missed, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--studies", type=positive, default=2000, metavar="N", help="of each design (2,000)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first study, its seed (0)")
    parser.add_argument("--only", choices=KINDS, metavar="KIND", help=f"only these: {', '.join(KINDS)}")
    parser.add_argument("--all", action="store_true", help="print every cell, not only those that fail")
    options = parser.parse_args()
    cells = 0
    fails = 0
    lines = []
    powers: list[dict[str, object]] = []
    for kind in [options.only] if options.only else KINDS:
        draw, designs = KINDS[kind]
        for design in designs:
            of_design = _Counts(kind, design)
            begun = time.process_time()
            for number in range(options.first, options.first + options.studies):
                of_design.add(*study(draw, design, number))
            lines += of_design.lines(options.all)
            cells += of_design.cells
            fails += of_design.fails
            powers.append(of_design.power())
            print(of_design.summary(), f"{time.process_time() - begun:.0f} s", flush=True)
    print(*lines, sep="\n")
    print(pd.DataFrame(powers).to_string(index=False))
    print(f"{fails} of {cells} cells fail ({fails / cells:.1%}); {MOST_FAIL:.0%} may")
    return 1 if fails > MOST_FAIL * cells else 0


class _Counts:
    """What the studies of a kind of judges in a design came to."""

    def __init__(self, kind: str, design: Design) -> None:
        self.name = f"{kind}: {design.judges} judges, {design.per_judge} of {design.stimuli} stimuli each"
        self.studies = 0
        self.missed: dict[Cell, int] = defaultdict(int)
        self.truths: dict[Cell, list[float]] = defaultdict(list)
        self.found: dict[Cell, int] = defaultdict(int)
        self.families = 0

    def add(self, missed: dict[Cell, tuple[float, bool]], found: dict[Cell, bool]) -> None:
        self.studies += 1
        for cell, (truth, is_missed) in missed.items():
            self.missed[cell] += is_missed
            self.truths[cell].append(truth)
        for cell, is_found in found.items():
            self.found[cell] += is_found
        self.families += any(found[cell] and abs(missed[cell][0]) < NOTHING for cell in found)

    def lines(self, with_all: bool) -> list[str]:
        """A line for each cell that fails, or for every cell."""
        told = []
        for cell, number in self.missed.items():
            if with_all or self._fails(number):
                told.append(f"  {self.name}: {', '.join(cell)}: {self._kind(cell)} {self._share(number)}")
        if with_all or self._family_fails():
            told.append(f"  {self.name}: families: {self._share(self.families)}")
        return told

    @property
    def cells(self) -> int:
        return len(self.missed) + 1

    @property
    def fails(self) -> int:
        return sum(map(self._fails, self.missed.values())) + self._family_fails()

    def summary(self) -> str:
        """The design's shares of missed truths, from the least to the most, and its false alarms in families."""
        shares = {
            is_null: [number / self.studies for cell, number in self.missed.items() if self._is_null(cell) == is_null]
            for is_null in (True, False)
        }
        return (
            f"{self.name}: nothing changes: p below 0.05 in {_reach(shares[True])} of studies; changes: the interval "
            f"misses in {_reach(shares[False])}; families {self._share(self.families)}; "
            f"{self.fails} of {self.cells} cells fail;"
        )

    def power(self) -> dict[str, object]:
        """The shares of studies in which true changes were found after Holm, with the mean of the true change."""
        row: dict[str, object] = {"judges": self.name}
        for cell in SOUGHT:
            if cell not in self.truths:
                continue
            truth = np.mean(self.truths[cell])
            row[", ".join(cell)] = f"{self.found[cell] / self.studies:.0%} ({truth:.2f})"
        return row

    def _is_null(self, cell: Cell) -> bool:
        null = 0.5 if cell[2] == "remains" else 0.0
        return max(abs(truth - null) for truth in self.truths[cell]) < NOTHING

    def _kind(self, cell: Cell) -> str:
        if self._is_null(cell):
            return "p below 0.05 in"
        return f"{np.mean(self.truths[cell]):+.3f} in truth, missed in"

    def _ends(self, number: int) -> tuple[float, float]:
        ends = binomtest(number, self.studies).proportion_ci(method="exact")
        return float(ends.low), float(ends.high)

    def _fails(self, number: int) -> bool:
        low, high = self._ends(number)
        return not low <= ALPHA <= high

    def _family_fails(self) -> bool:
        return self._ends(self.families)[0] > ALPHA

    def _share(self, number: int) -> str:
        low, high = self._ends(number)
        return f"{number / self.studies:.1%} ({low:.1%} to {high:.1%})"


def _reach(shares: Sequence[float]) -> str:
    return f"{min(shares):.1%} to {max(shares):.1%}" if shares else "no cells"


if __name__ == "__main__":
    sys.exit(main())
