"""The transformation of the order of labels."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from judging.tells.seen import SeenAnswer
from judging.tells.transformation import Target, Transformation, refuse_unless, share


class LabelOrder(Transformation):
    """Labels stand in alphabetical order."""

    name = "label_order"
    tasks = ("object_detection",)
    takes = "the order of labels: they stand in alphabetical order"
    keeps = "the labels, how often each stands there"
    measures = "labels that stand before one that precedes them in the alphabet, as a share of neighbours"
    why_no_plant = (
        "an order is one of certain labels, and a machine's labels are others: participants' order is none of theirs"
    )

    def measure(self, seen: SeenAnswer) -> float:
        """Neighbouring labels that are not in alphabetical order, as a share of all neighbours, 0 to 1."""
        keys = [_key(label) for label in seen.labels()]
        return share(sum(first > second for first, second in pairwise(keys)), len(keys) - 1)

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """In alphabetical order."""
        return seen.with_labels(sorted(seen.labels(), key=_key))

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """The labels must be the same."""
        is_kept = Counter(before.labels()) == Counter(after.labels())
        refuse_unless(is_kept, self.name, before.labels(), after.labels())


def _key(label: str) -> tuple[str, str]:
    return label.casefold(), label
