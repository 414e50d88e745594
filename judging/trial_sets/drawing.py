"""Which answers become trials, and in which order: half people's, the rest equally the agents'. The papers draw "with
equal probability" (2022, section 3; 2025, L698-702); here the shares are exact."""

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from judging.trial_sets.candidates import PEOPLE, Candidate

FIRST = 3  # trials of a judge among which there is no catch trial
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Order = list[tuple[Candidate, bool]]  # each with whether it comes for the second time


@dataclass(slots=True)
class Pool:
    """The answers of a task that lists of trials are drawn from."""

    people: list[Candidate]
    """Answers of people, no catch trials among them."""
    machines: dict[str, list[Candidate]]
    """Answers of machines by their agents' names, no catch trials among them."""
    catch: list[Candidate] = field(default_factory=list)
    """Catch trials, which are no part of what is measured."""
    unbalanced: list[str] = field(default_factory=list)
    """What could not be made equal, each in a clause for the summary."""

    def trials(self) -> list[Candidate]:
        """People's answers, then machines'; no catch trials."""
        return [*self.people, *(answer for answers in self.machines.values() for answer in answers)]


def in_common(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those about stimuli that a person and every agent answered."""
    speakers = _speakers(candidates)
    everybody = {PEOPLE}.union(*speakers.values())
    return [answer for answer in candidates if speakers.get(answer.stimulus.id) == everybody]


def common_without(candidates: Sequence[Candidate]) -> dict[str, int]:
    """How many stimuli would be common without an agent, by agent, where more would be; those with most come first."""
    speakers = _speakers(candidates)
    everybody = {PEOPLE}.union(*speakers.values())
    common = sum(there == everybody for there in speakers.values())
    without: dict[str, int] = {}
    if len(everybody) <= 2:  # without a single agent there would be nobody
        return without
    for agent in sorted(everybody - {PEOPLE}):
        without[agent] = sum(there | {agent} == everybody for there in speakers.values())
    return {name: number for name, number in sorted(without.items(), key=lambda item: -item[1]) if number > common}


def _speakers(candidates: Sequence[Candidate]) -> Mapping[str, set[str]]:
    """By stimulus, who answered it: the agents, and :data:`PEOPLE` for people. Catch trials do not count."""
    speakers: dict[str, set[str]] = defaultdict(set)
    for answer in candidates:
        if not answer.is_catch:
            speakers[answer.stimulus.id].add(PEOPLE if answer.truth == "human" else answer.agent)
    return speakers


def one_sided(candidates: Sequence[Candidate]) -> tuple[int, int]:
    """How many stimuli have answers of people alone, and how many of machines alone.

    On such a stimulus a judge who has seen a few trials needs no answer to know whose it is.
    """
    sides: dict[str, set[str]] = defaultdict(set)
    for answer in candidates:
        if not answer.is_catch:
            sides[answer.stimulus.id].add(answer.truth)
    of_people = sum(truths == {"human"} for truths in sides.values())
    of_machines = sum(truths == {"machine"} for truths in sides.values())
    return of_people, of_machines


def by_content(candidates: Sequence[Candidate]) -> Mapping[bytes, list[Candidate]]:
    """Groups of answers that a judge takes for the same."""
    alike: dict[bytes, list[Candidate]] = defaultdict(list)
    for answer in candidates:
        alike[answer.content()].append(answer)
    return alike


def duplicates(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Groups of equal answers of several speakers."""
    groups = by_content([answer for answer in candidates if not answer.is_catch]).values()
    return [answers for answers in groups if len({(answer.truth, answer.agent) for answer in answers}) > 1]


def unique(candidates: Sequence[Candidate], chance: random.Random) -> list[Candidate]:
    """A drawn answer of equal ones."""
    drawn = {id(chance.choice(answers)) for answers in by_content(candidates).values()}
    return [answer for answer in candidates if id(answer) in drawn]


def shares(total: int, names: Sequence[K], chance: random.Random) -> dict[K, int]:
    """``total`` in equal parts; chance deals the rest."""
    share, rest = divmod(total, len(names))
    more = set(chance.sample(range(len(names)), rest))
    return {name: share + (place in more) for place, name in enumerate(names)}


def spread(candidates: Sequence[Candidate], number: int, chance: random.Random) -> list[Candidate]:
    """``number`` drawn with stimuli, and within them lengths of excerpts, equally often."""
    by_stimulus: dict[str, list[Candidate]] = defaultdict(list)
    for answer in candidates:
        by_stimulus[answer.stimulus.id].append(answer)
    for answers in by_stimulus.values():
        chance.shuffle(answers)
    stimuli = list(by_stimulus)
    drawn = list[Candidate]()
    lengths: Counter[int | None] = Counter()
    while len(drawn) < number and stimuli:
        chance.shuffle(stimuli)
        for stimulus in stimuli[: number - len(drawn)]:
            answers = by_stimulus[stimulus]
            rarest = min(range(len(answers)), key=lambda place: lengths[answers[place].length])
            drawn.append(answers.pop(rarest))
            lengths[drawn[-1].length] += 1
        stimuli = [stimulus for stimulus in stimuli if by_stimulus[stimulus]]
    return drawn


def draw_pool(
    candidates: Sequence[Candidate], chance: random.Random, *, per_agent: int | None = None, every: bool = False
) -> Pool:
    """Half people's answers, and of each agent ``per_agent`` or as many as can be balanced; with ``every``, all."""
    people = [answer for answer in candidates if answer.truth == "human" and not answer.is_catch]
    machines: dict[str, list[Candidate]] = defaultdict(list)
    for answer in candidates:
        if answer.truth == "machine" and not answer.is_catch:
            machines[answer.agent].append(answer)
    catch = [answer for answer in candidates if answer.is_catch]
    if not people or not machines:
        return Pool(people, dict(machines), catch, [f"there are no answers of {'machines' if people else 'people'}"])
    if every:
        return Pool(people, dict(machines), catch)
    fewest = min(map(len, machines.values()))
    wanted = min(fewest * len(machines), len(people)) if per_agent is None else per_agent * len(machines)
    pool = Pool([], {}, catch)
    for name, number in shares(wanted, sorted(machines), chance).items():
        pool.machines[name] = spread(machines[name], number, chance)
        if len(pool.machines[name]) < number:
            pool.unbalanced.append(f"{name} has {len(pool.machines[name]):,} answers, and not {number:,}")
    number = sum(map(len, pool.machines.values()))
    pool.people = spread(people, number, chance)
    if len(pool.people) < number:
        pool.unbalanced.append(f"people have {len(pool.people):,} answers, and machines {number:,}")
    return pool


def half(number: int, chance: random.Random) -> int:
    """Half of ``number``. An odd number is rounded down or up by one draw from ``chance``; an even one draws
    nothing."""
    if number % 2 and chance.random() < 0.5:
        return number // 2 + 1
    return number // 2


def draw_list(
    pool: Pool, number: int, used: Counter[int], chance: random.Random, *, catch: float, repeats: float
) -> Order:
    """A judge's ``number`` trials in order, those first that were used least; ``catch`` and ``repeats`` are shares of
    ``number`` that are added."""
    people = half(number, chance)
    takes = [(pool.people, people)]
    if pool.machines:
        quota = shares(number - people, sorted(pool.machines), chance)
        takes += [(pool.machines[name], part) for name, part in quota.items()]
    chance.shuffle(takes)
    drawn: list[Candidate] = []
    seen: set[str] = set()
    for answers, part in takes:
        drawn += least_used(answers, part, used, seen, chance)
    caught = least_used(pool.catch, round(catch * number), used, seen, chance)
    return arrange(drawn, caught, round(repeats * number), chance)


def arrange(trials: Sequence[T], catch: Sequence[T], repeats: int, chance: random.Random) -> list[tuple[T, bool]]:
    """A drawn order: ``repeats`` come later, no catch trial is in the first three."""
    order = [(trial, False) for trial in chance.sample(list(trials), len(trials))]
    for trial, _ in chance.sample(order, min(repeats, len(order))):
        first = next(place for place, (other, _) in enumerate(order) if other is trial)
        order.insert(chance.randint(first + 1, len(order)), (trial, True))
    for trial in catch:
        order.insert(chance.randint(min(FIRST, len(order)), len(order)), (trial, False))
    return order


def least_used(
    candidates: Sequence[Candidate], number: int, used: Counter[int], seen: set[str], chance: random.Random
) -> list[Candidate]:
    """``number`` of the answers: those that were used least, and none about what was ``seen`` while others are left.

    Both are updated: ``used`` counts how often an answer was taken, by its ``id()``; ``seen`` has what this judge has
    met already."""
    ranked = sorted(candidates, key=lambda trial: (used[id(trial)], chance.random()))
    taken: list[Candidate] = []
    for trial in ranked:
        if len(taken) < number and seen.isdisjoint(trial.known_by()):
            taken.append(trial)
            seen |= trial.known_by()
    ids = {id(trial) for trial in taken}
    taken += [trial for trial in ranked if id(trial) not in ids][: number - len(taken)]
    seen.update(*(trial.known_by() for trial in taken))
    used.update(id(trial) for trial in taken)
    return taken
