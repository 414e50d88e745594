"""What a transformation of answers is: it takes one property away from all answers, or gives machines' answers
participants' form of it.

A judge who goes by a property can no longer do so where the property is the same in all answers. If detectability then
falls, the property was a tell for this judge. A correlation between a property and verdicts does not show that: it may
come from another property that goes with it.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agents.stimuli import Asked
from judging.tells.seen import SeenAnswer

PARTICIPANTS = ""
"""The name of participants' group; other groups have the names of agents."""
Target = tuple[float, ...]
"""What an answer is brought to, in the property's units, a number for each part that is matched; () for a property
that goes altogether."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an answer is, and with which answers it may be matched."""

    group: str
    """An agent's name, or :data:`PARTICIPANTS`."""
    block: int
    """The number of its block (:mod:`judging.tells.blocks`)."""
    source: Hashable = None
    """What several answers are excerpts of, and whose; None where an answer stands alone."""


class AlteredError(Exception):
    """A transformation changed what it may not change. This is an error of the program, and not of the answers."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A machine's answer after planting."""

    seen: SeenAnswer
    """The answer, which is the one before where it could not be changed."""
    is_reached: bool
    """Whether it has what participants' answers have: a short answer cannot be made longer."""


class Transformation(ABC):
    """Takes one property of answers away, or plants it. All its functions are pure: what they give depends on their
    arguments alone."""

    name: ClassVar[str]
    """By which ``--without`` and ``--plant`` know it."""
    tasks: ClassVar[tuple[Asked, ...]]
    """The tasks whose answers have the property."""
    takes: ClassVar[str]
    """What it takes away, in a sentence without its full stop."""
    keeps: ClassVar[str]
    """What it may not change."""
    measures: ClassVar[str]
    """What :meth:`measure` is, with its unit."""
    plants: ClassVar[str] = ""
    """What planting gives a machine's answer; "" where it cannot be planted."""
    plant_tasks: ClassVar[tuple[Asked, ...]] = ()
    """The tasks for which it can be planted."""
    why_no_plant: ClassVar[str] = ""
    """Why it cannot be planted; "" where it can."""
    package: ClassVar[str | None] = None
    """The package that it needs beside those of judging."""
    is_matched: ClassVar[bool] = False
    """Whether answers are brought to a common distribution, and not to one value."""

    needs_delays: ClassVar[bool] = False
    """Whether answers have the property only where trials show delays (``--show-delays``)."""

    @abstractmethod
    def measure(self, seen: SeenAnswer) -> float:
        """The property as a number, in the unit that ``measures`` names."""

    @abstractmethod
    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """The answer without the property; where it is matched, brought to ``target``, if it is above it."""

    @abstractmethod
    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """Raises AlteredError where ``after`` differs from ``before`` in what may not change, whether the property was
        taken away or planted."""

    def targets(self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random) -> list[Target]:
        """The target of each answer, which hangs on no answer of another block."""
        return [()] * len(answers)

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """A machine's answer with the property of a participant's answer, the ``donor``."""
        raise NotImplementedError(f"{self.name} cannot be planted")

    def donors_for(self, seen: SeenAnswer, donors: Sequence[SeenAnswer]) -> Sequence[SeenAnswer]:
        """Those of participants' answers of which one is drawn to plant its property in a machine's answer."""
        return donors

    def take_away_all(
        self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random
    ) -> tuple[list[SeenAnswer], list[Target]]:
        """All answers without the property, each checked, and their targets."""
        targets = self.targets(answers, owners, chance)
        after = [self.take_away(seen, target) for seen, target in zip(answers, targets, strict=True)]
        for before, changed in zip(answers, after, strict=True):
            self.check(before, changed)
        return after, targets

    def plant_all(
        self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random
    ) -> tuple[list[Planted], list[Target]]:
        """All answers, those of machines with participants' form of the property, each checked; and their targets.

        A donor is drawn for each answer from participants' answers in the same block: a classifier that judges a block
        has not met the donors in another form. Participants' answers stay, and so do those of a block without any.

        All excerpts of a conversation have one donor. A judge's list may show two of them. If each had its own, the
        same messages would have two forms, and only a machine's would."""
        donors: dict[int, list[SeenAnswer]] = {}
        for seen, owner in zip(answers, owners, strict=True):
            if owner.group == PARTICIPANTS:
                donors.setdefault(owner.block, []).append(seen)
        longest: dict[Hashable, SeenAnswer] = {}
        for seen, owner in zip(answers, owners, strict=True):
            of_source = longest.setdefault(owner.source, seen)
            if len(seen.texts()) > len(of_source.texts()):
                longest[owner.source] = seen
        donor_of: dict[Hashable, SeenAnswer] = {}
        planted = []
        for seen, owner in zip(answers, owners, strict=True):
            if owner.group == PARTICIPANTS:
                planted.append(Planted(seen, True))
                continue
            if owner.block not in donors:
                planted.append(Planted(seen, False))
                continue
            donor = donor_of.get(owner.source)
            if donor is None:
                whole = seen if owner.source is None else longest[owner.source]
                donor = chance.choice(self.donors_for(whole, donors[owner.block]))
            if owner.source is not None:
                donor_of[owner.source] = donor
            changed = self.plant(seen, donor)
            if changed.seen.is_empty():
                changed = Planted(seen, False)
            self.check(seen, changed.seen)
            planted.append(changed)
        return planted, [()] * len(answers)


def refuse_unless(is_kept: bool, name: str, before: object, after: object) -> None:
    """Raises AlteredError, with both answers, unless ``is_kept``."""
    if not is_kept:
        raise AlteredError(f"{name} changed what it may not change: {before!r} became {after!r}")


def share(number: int, total: int) -> float:
    """``number`` of ``total``; 0 of nothing."""
    return number / total if total else 0.0
