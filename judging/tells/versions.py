"""The versions of answers: each is made of all answers to a task at once, as lengths are matched among them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agents.stimuli import Asked
from judging.tells.registry import AND, PLANT, TRANSFORMATIONS, in_order, version_sets
from judging.tells.seen import SeenAnswer
from judging.tells.transformation import PARTICIPANTS, Owner, Target

QUARTILES = (0, 0.25, 0.5, 0.75, 1)
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """What a transformation alone did to the answers to a task, by group (:data:`PARTICIPANTS`, or an agent)."""

    version: str
    """The version's name: the transformation's, with "plant:" before it where it was planted."""
    task: Asked
    """The task that was answered."""
    answers: Mapping[str, int]
    """How many answers there are."""
    changed: Mapping[str, int]
    """How many of these it changed."""
    unreached: Mapping[str, int]
    """How many of these could not be given participants' form: what is short cannot be made longer."""
    targets: Sequence[float]
    """The least, the quartiles and the largest of the common targets; none where there are no targets."""

    def noted(self) -> dict[str, Any]:
        """As ``TRIALS.trials.json`` has it; participants and agents apart, as an agent may have any name."""
        fields: dict[str, Any] = {"version": self.version, "task": self.task}
        for name, numbers in (("answers", self.answers), ("changed", self.changed), ("unreached", self.unreached)):
            agents = {group: number for group, number in numbers.items() if group != PARTICIPANTS}
            fields[name] = {"participants": numbers.get(PARTICIPANTS, 0), "agents": agents}
        return fields | {"targets": list(self.targets)}


@dataclass(slots=True)
class Versions:
    """The answers to a task in all their versions."""

    answers: dict[str, list[SeenAnswer]] = field(default_factory=dict)
    """By the version's name, "" first, the answers in their order."""
    changes: list[Change] = field(default_factory=list)
    """What each transformation alone did."""


def make_versions(
    task: Asked,
    answers: Sequence[SeenAnswer],
    owners: Sequence[Owner],
    without: Sequence[str],
    plant: Sequence[str],
    seed: object,
) -> Versions:
    """All versions of the answers to a task. ``owners`` say whose each is, and its block.

    Names of transformations that are of other tasks are passed over. Raises AlteredError where a transformation changed
    what it may not."""
    made = Versions()
    for names in version_sets(in_order(without, task)):
        version = AND.join(names)
        made.answers[version], targets = _without(task, answers, owners, names, seed)
        if len(names) == 1:
            made.changes.append(_change(version, task, answers, made.answers[version], owners, targets))
    for name in in_order(plant, task, is_planted=True):
        version = f"{PLANT}{name}"
        planted, targets = TRANSFORMATIONS[name].plant_all(answers, owners, _chance(seed, task, version))
        made.answers[version] = [one.seen for one in planted]
        unreached = [not one.is_reached for one in planted]
        made.changes.append(_change(version, task, answers, made.answers[version], owners, targets, unreached))
    return made


def needs_blocks(task: Asked, without: Sequence[str], plant: Sequence[str]) -> bool:
    """Whether answers to a task are matched with others, or get their forms."""
    is_matched = any(TRANSFORMATIONS[name].is_matched for name in in_order(without, task))
    return is_matched or bool(in_order(plant, task, is_planted=True))


def leaves_nothing(seen: SeenAnswer, without: Sequence[str]) -> bool:
    """Whether nothing is left of an answer, or of one of its texts, in one of its versions.

    What is matched leaves a part of each answer, and so only the other transformations are asked, all together: what
    one of them leaves nothing of, all leave nothing of."""
    names = [name for name in in_order(without, seen.task) if not TRANSFORMATIONS[name].is_matched]
    return bool(names) and _settled(seen, names).is_empty()


def _chance(seed: object, task: Asked, name: str) -> random.Random:
    """What decides about equal ranks, and deals donors: the same in all versions, so that these differ in nothing but
    their transformations."""
    return random.Random(f"tells {seed} {task} {name}")


def _without(
    task: Asked, answers: Sequence[SeenAnswer], owners: Sequence[Owner], names: Sequence[str], seed: object
) -> tuple[list[SeenAnswer], Sequence[Target]]:
    plain = [name for name in names if not TRANSFORMATIONS[name].is_matched]
    after = [_settled(seen, plain) for seen in answers] if plain else list(answers)
    targets: Sequence[Target] = [()] * len(after)
    for name in names:
        if TRANSFORMATIONS[name].is_matched:
            after, targets = TRANSFORMATIONS[name].take_away_all(after, owners, _chance(seed, task, name))
    return after, targets


def _settled(seen: SeenAnswer, names: Sequence[str]) -> SeenAnswer:
    """The answer without these properties, which are taken away again until nothing changes.

    "I guessed it is a dog" has no hedge, and its lemmas "I guess it is a dog" have one. So one round is not enough.
    There is an end: a hedge that went does not come back, and lemmas, small letters and the rest stay what they are."""
    while True:
        before = seen
        for name in names:
            after = TRANSFORMATIONS[name].take_away(seen, ())
            TRANSFORMATIONS[name].check(seen, after)
            seen = after
        if seen == before:
            return seen


def _change(
    version: str,
    task: Asked,
    before: Sequence[SeenAnswer],
    after: Sequence[SeenAnswer],
    owners: Sequence[Owner],
    targets: Sequence[Target],
    unreached: Sequence[bool] = (),
) -> Change:
    groups = [owner.group for owner in owners]
    is_changed = [first != second for first, second in zip(before, after, strict=True)]
    numbers = [number for target in targets for number in target]
    return Change(
        version=version,
        task=task,
        answers=dict(Counter(groups)),
        changed=_by_group(groups, is_changed),
        unreached=_by_group(groups, unreached or [False] * len(groups)),
        targets=np.quantile(numbers, QUARTILES).round(DIGITS).tolist() if numbers else [],
    )


def _by_group(groups: Sequence[str], counted: Sequence[bool]) -> dict[str, int]:
    numbers = Counter[str]()
    for group, is_counted in zip(groups, counted, strict=True):
        numbers[group] += is_counted
    return dict(numbers)
