"""The transformations of scanpaths beside their length: where they begin, and how long their saccades are."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from judging.tells.matching import matched, matched_to
from judging.tells.seen import PATHS, Point, SeenAnswer
from judging.tells.transformation import PARTICIPANTS, Owner, Planted, Target, Transformation, refuse_unless
from serving.runs.answer_numbers import center, path_length

HALF_A_PIXEL = 0.5 + 1e-6
"""By how much a coordinate may be off a scaled path: fixations are in whole pixels."""


class FirstFixation(Transformation):
    """All scanpaths begin at the centre."""

    name = "first_fixation"
    tasks = PATHS
    takes = "where a scanpath begins: the first fixation becomes the centre of the picture"
    keeps = "all other fixations, their order"
    measures = "distance of the first fixation from the centre, in widths of the picture"
    plants = "a participant's first fixation, at the same place relative to the picture"
    plant_tasks = PATHS

    def measure(self, seen: SeenAnswer) -> float:
        """The distance of the first fixation from the centre, in widths of the frame; 0 without fixations."""
        first = seen.fixations()[:1]
        return center({"fixations": first, "frame": seen.frame()})[0] if first else 0.0

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """With the pixel at the centre as its first fixation."""
        return _beginning_at(seen, 0.5, 0.5)

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """All fixations but the first must be the same."""
        is_kept = before.fixations()[1:] == after.fixations()[1:] and len(before.fixations()) == len(after.fixations())
        refuse_unless(is_kept, self.name, before.answer, after.answer)

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """With the donor's first fixation."""
        if not donor.fixations():
            return Planted(seen, False)
        (x, y) = donor.fixations()[0]
        (width, height) = donor.frame()
        # The middle of the donor's pixel, so that a picture of the same size gets the same pixel.
        return Planted(_beginning_at(seen, (x + 0.5) / width, (y + 0.5) / height), True)


def _beginning_at(seen: SeenAnswer, across: float, down: float) -> SeenAnswer:
    width, height = seen.frame()
    first = (float(math.floor(across * width)), float(math.floor(down * height)))
    return seen.with_fixations([first, *seen.fixations()[1:]] if seen.fixations() else [])


class PathLength(Transformation):
    """Saccades are shortened, all of a path by one factor."""

    name = "path_length"
    tasks = PATHS
    takes = (
        "the length of scanpaths: saccades are scaled by one factor, from the first fixation, until the groups are "
        "samples of one distribution"
    )
    keeps = "the number and order of fixations, the first one, the directions of saccades (in whole pixels)"
    measures = "length of the path, in widths of the picture"
    plants = "participants' path length at about the path's rank, where the path is longer"
    plant_tasks = PATHS
    is_matched = True

    def measure(self, seen: SeenAnswer) -> float:
        """The sum of the saccades, in widths of the frame."""
        return path_length({"fixations": seen.fixations(), "frame": seen.frame()})[0]

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """Scaled to the length ``target``, as near as whole pixels come to it. Paths are never made longer: they could
        leave the picture."""
        own = self.measure(seen)
        if own <= target[0] + rounding(seen):
            return seen
        factor = target[0] / own
        [(x, y), *others] = seen.fixations()
        scaled = [(_nearest(x + factor * (other - x)), _nearest(y + factor * (down - y))) for other, down in others]
        return seen.with_fixations([(x, y), *scaled])

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """One factor from 0 to 1 must give all fixations, each to half a pixel."""
        first = before.fixations()
        second = after.fixations()
        is_kept = len(first) == len(second) and first[:1] == second[:1]
        refuse_unless(is_kept and _has_factor(first, second), self.name, before.answer, after.answer)

    def targets(self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random) -> list[Target]:
        """Matched by rank among the groups of a block."""
        lengths = [self.measure(seen) for seen in answers]
        groups = [owner.group for owner in owners]
        blocks = [owner.block for owner in owners]
        return [(target,) for target in matched(lengths, groups, blocks, chance)]

    def plant_all(
        self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random
    ) -> tuple[list[Planted], list[Target]]:
        """Machines' paths shortened to participants' lengths at their ranks; shorter ones stay, and are not reached."""
        lengths = [self.measure(seen) for seen in answers]
        groups = [owner.group for owner in owners]
        blocks = [owner.block for owner in owners]
        targets: list[Target] = [(target,) for target in matched_to(lengths, groups, blocks, PARTICIPANTS, chance)]
        planted = []
        for seen, own, target in zip(answers, lengths, targets, strict=True):
            after = self.take_away(seen, target)
            self.check(seen, after)
            planted.append(Planted(after, own >= target[0] - rounding(seen)))
        return planted, targets


def rounding(seen: SeenAnswer) -> float:
    """By how much whole pixels may change a path's length, in widths of the frame: a diagonal for each saccade."""
    return math.sqrt(2) * len(seen.fixations()) / seen.frame()[0]


def _nearest(value: float) -> float:
    return float(math.floor(value + 0.5))


def _has_factor(before: Sequence[Point], after: Sequence[Point]) -> bool:
    """Whether one factor from 0 to 1 brings the paths on one another."""
    least = 0.0
    most = 1.0
    for point, scaled in zip(before, after, strict=True):
        for own, other, first in zip(point, scaled, before[0], strict=True):
            away = own - first
            if away == 0:
                if other != own:
                    return False
                continue
            ends = sorted((other - first + side * HALF_A_PIXEL) / away for side in (-1, 1))
            least = max(least, ends[0])
            most = min(most, ends[1])
    return least <= most
