"""The drawn answers in their versions (:mod:`judging.tells`): which there are, and which a judge's list has."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.errors import InputError
from agents.stimuli import Asked
from judging.tells.blocks import blocks_of
from judging.tells.registry import in_order
from judging.tells.seen import SeenAnswer
from judging.tells.transformation import PARTICIPANTS, Owner
from judging.tells.versions import Change, leaves_nothing, make_versions, needs_blocks
from judging.trial_sets.candidates import Candidate
from judging.trial_sets.drawing import Order
from serving.files.words import count, listed


@dataclass(slots=True)
class VersionChoices:
    """Which transformations are asked for, and what became of them task by task."""

    without: Sequence[str] = ()
    """Names of transformations whose property is taken away."""
    plant: Sequence[str] = ()
    """Names of those whose property is planted."""
    seed: int = 0
    """The seed of the trials."""
    changes: list[Change] = field(default_factory=list)
    """What each transformation alone did."""
    left_out: dict[Asked, Counter[str]] = field(default_factory=dict)
    """By task and group, how many answers a version would leave nothing of."""
    names: dict[Asked, list[str]] = field(default_factory=dict)
    """By task, the names of the versions."""
    blocks: dict[Asked, int] = field(default_factory=dict)
    """By task, the number of blocks; none of a task in which nothing is matched."""
    missing: dict[Asked, dict[str, int]] = field(default_factory=dict)
    """By task and group, in how many blocks the group has no answer; none of a group that is in all."""

    def __bool__(self) -> bool:
        return bool(self.without or self.plant)

    def usable(self, answers: Sequence[Candidate]) -> list[Candidate]:
        """The answers without those of which a version would leave nothing. These leave the set before anything is
        drawn, so that all versions have the same answers, and the draw stays balanced. Catch trials stay."""
        usable = []
        for answer in answers:
            if not answer.is_catch and leaves_nothing(_seen(answer), self.without):
                self.left_out.setdefault(answer.stimulus.task, Counter())[_group(answer)] += 1
            else:
                usable.append(answer)
        return usable

    def of_pool(self, task: Asked, drawn: Sequence[Candidate]) -> DrawnVersions:
        """The drawn answers to a task, without catch trials, in all versions. Raises InputError where there are no
        participants' answers to plant."""
        groups = [_group(answer) for answer in drawn]
        if in_order(self.plant, task, is_planted=True) and PARTICIPANTS not in groups:
            raise InputError(f"plant: {task}: there are no answers of people whose form machines' answers could get")
        blocks: list[int] | None = None
        if needs_blocks(task, self.without, self.plant):
            stimuli = [answer.stimulus.id for answer in drawn]
            blocks = blocks_of(stimuli, groups, random.Random(f"blocks {self.seed} {task}"))
            number = len(set(blocks))
            there = Counter(group for group, _ in set(zip(groups, blocks, strict=True)))
            self.blocks[task] = number
            self.missing[task] = {group: number - there[group] for group in sorted(there) if there[group] < number}
        owners = [
            Owner(group, block, (answer.record, answer.stimulus.id, answer.speaker))
            for answer, group, block in zip(drawn, groups, blocks or [0] * len(groups), strict=True)
        ]
        made = make_versions(task, [_seen(answer) for answer in drawn], owners, self.without, self.plant, self.seed)
        self.changes += made.changes
        self.names[task] = list(made.answers)
        first = [replace(answer, version="") for answer in drawn]
        if blocks is not None:
            first = [replace(answer, block=block) for answer, block in zip(first, blocks, strict=True)]
        by_version = {"": first}
        for version, seen in made.answers.items():
            if version:
                by_version[version] = [
                    replace(answer, answer=one.answer, version=version, version_of=answer)
                    for answer, one in zip(first, seen, strict=True)
                ]
        places = {id(answer): place for place, answer in enumerate(drawn)}
        return DrawnVersions(by_version, places)

    def noted(self) -> dict[str, Any]:
        """As ``TRIALS.trials.json`` has it."""
        left_out = [
            {
                "task": task,
                "participants": numbers[PARTICIPANTS],
                "agents": {group: number for group, number in numbers.items() if group != PARTICIPANTS},
            }
            for task, numbers in self.left_out.items()
        ]
        changes = [change.noted() for change in self.changes]
        return {"names": dict(self.names), "transformations": changes, "left_out": left_out}

    def sentences(self) -> Iterator[str]:
        """What a command says of them."""
        for task, names in self.names.items():
            quoted = [name or "as drawn" for name in names]
            yield f"{task}: each answer in {count(len(names), 'version')}: {', '.join(quoted)}"
            for change in self.changes:
                if change.task == task:
                    yield f"  {_told(change)}"
            for group, lacking in self.missing.get(task, {}).items():
                blocks = f"{lacking:,} of {count(self.blocks[task], 'block')}"
                yield f"  {_named(group)}: no answer in {blocks} of stimuli; there the others are matched without"
        for task, numbers in self.left_out.items():
            whose = listed([f"{number:,} from {_named(group)}" for group, number in sorted(numbers.items())])
            number = count(numbers.total(), "answer")
            yield f"{task}: {number} left out in all versions, because a version would leave nothing of a text: {whose}"


@dataclass(frozen=True, slots=True)
class DrawnVersions:
    """The drawn answers to a task in their versions."""

    by_version: Mapping[str, Sequence[Candidate]]
    """By the version's name, "" first, the answers in the order in which they were drawn."""
    places: Mapping[int, int]
    """The place of a drawn answer in that order, by its ``id()``."""

    def all(self) -> list[Candidate]:
        """The answers in all versions, version by version."""
        return [answer for answers in self.by_version.values() for answer in answers]

    def deal(self, order: Sequence[tuple[Candidate, bool]], used: Counter[int], chance: random.Random) -> Order:
        """A judge's list with each answer in one version.

        Among the answers of an agent, and among people's, the versions come equally often, or differ by one: so a
        judge's own mood and skill are the same in all. Of the versions that are due an answer gets the one that fewest
        judges had of it (``used``, which is updated). Catch trials stay as they are. An answer that comes again, and
        another answer to a stimulus that came before, has the version of the first."""
        dealt: dict[int, Candidate] = {}
        known: dict[str, str] = {}
        given: dict[str, Counter[str]] = defaultdict(Counter)
        for answer, is_again in order:
            place = self.places.get(id(answer))
            if place is None or is_again:
                continue
            of_group = given[_group(answer)]
            due = [version for stimulus in sorted(answer.known_by()) if (version := known.get(stimulus)) is not None]
            if not due:
                fewest = min(of_group[version] for version in self.by_version)
                due = [version for version in self.by_version if of_group[version] == fewest]
            drawn = {version: chance.random() for version in due}
            version = min(due, key=lambda name: (used[id(self.by_version[name][place])], drawn[name]))
            chosen = self.by_version[version][place]
            used[id(chosen)] += 1
            of_group[version] += 1
            known.update(dict.fromkeys(answer.known_by(), version))
            dealt[id(answer)] = chosen
        return [(dealt.get(id(answer), answer), is_again) for answer, is_again in order]


def with_first_version(answers: Collection[Candidate]) -> list[Candidate]:
    """Catch trials of a set with versions: as they are, in version ""."""
    return [replace(answer, version="") for answer in answers]


def _seen(answer: Candidate) -> SeenAnswer:
    return SeenAnswer(answer.stimulus.task, answer.answer, answer.speaker)


def _group(answer: Candidate) -> str:
    return PARTICIPANTS if answer.truth == "human" else answer.agent


def _named(group: str) -> str:
    return "people" if group == PARTICIPANTS else group


def _told(change: Change) -> str:
    parts = []
    for group, number in sorted(change.answers.items()):
        part = f"{change.changed.get(group, 0):,} of {count(number, 'answer')} from {_named(group)}"
        if unreached := change.unreached.get(group):
            part += f" ({unreached:,} could not be brought there)"
        parts.append(part)
    return f"{change.version} changed {listed(parts)}"
