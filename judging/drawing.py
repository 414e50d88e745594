"""Which answers become trials, and in which order a judge sees them: half people's, the rest equally over the agents.

2022 paper, section 3, and 2025 paper, L698-702: "half of the trials" are people's, the others are drawn "with equal
probability" from the agents. Here the shares are exact instead, with what does not divide drawn by the seed: equal
probability gives a judge of 25 trials 12.5 ± 2.5 of people.

All randomness is of :class:`random.Random` objects that are given. The functions know nothing of files.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from judging.candidates import Candidate

FIRST = 3  # trials of a judge among which there is no catch trial
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Pool:
    """The answers of one task that become trials. ``unbalanced`` says what could not be made equal, in sentences."""

    people: list[Candidate]
    machines: dict[str, list[Candidate]]
    catch: list[Candidate] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def trials(self) -> list[Candidate]:
        """All of them but the catch trials."""
        return [*self.people, *(one for name in self.machines for one in self.machines[name])]


def in_common(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those about stimuli that a person and every agent has answered; catch trials about any of these stimuli."""
    agents = {one.agent for one in candidates if one.truth == "machine" and not one.is_catch}
    answered: dict[str, set[str]] = defaultdict(set)
    for one in candidates:
        if not one.is_catch:
            answered[one.shown.id].add("" if one.truth == "human" else one.agent)
    whole = {stimulus for stimulus, by in answered.items() if by == {"", *agents}}
    return [one for one in candidates if one.shown.id in whole]


def duplicates(candidates: Sequence[Candidate]) -> dict[bytes, list[Candidate]]:
    """Answers to one stimulus that several speakers gave alike, by what was said; one speaker's samples count once."""
    alike: dict[bytes, list[Candidate]] = defaultdict(list)
    for one in candidates:
        if not one.is_catch:
            alike[one.said()].append(one)
    return {said: ones for said, ones in alike.items() if len({(one.truth, one.agent) for one in ones}) > 1}


def unique(candidates: Sequence[Candidate], chance: random.Random) -> list[Candidate]:
    """One answer, drawn, of those that were said alike about one stimulus."""
    alike: dict[bytes, list[Candidate]] = defaultdict(list)
    for one in candidates:
        alike[one.said()].append(one)
    kept = {id(chance.choice(ones)) for ones in alike.values()}
    return [one for one in candidates if id(one) in kept]


def shares(total: int, names: Sequence[K], chance: random.Random) -> dict[K, int]:
    """``total`` in equal parts; who has one more is drawn."""
    whole, rest = divmod(total, len(names))
    more = set(chance.sample(range(len(names)), rest))
    return {name: whole + (at in more) for at, name in enumerate(names)}


def spread(candidates: Sequence[Candidate], number: int, chance: random.Random) -> list[Candidate]:
    """``number`` of them, drawn so that stimuli, and within them lengths of excerpts, come as equally often as can
    be."""
    by_stimulus: dict[str, list[Candidate]] = defaultdict(list)
    for one in candidates:
        by_stimulus[one.shown.id].append(one)
    for ones in by_stimulus.values():
        chance.shuffle(ones)
    stimuli = list(by_stimulus)
    drawn: list[Candidate] = []
    lengths: Counter[int | None] = Counter()
    while len(drawn) < number and stimuli:
        chance.shuffle(stimuli)
        for stimulus in stimuli[: number - len(drawn)]:
            ones = by_stimulus[stimulus]
            rarest = min(range(len(ones)), key=lambda at: lengths[ones[at].length])
            one = ones.pop(rarest)
            lengths[one.length] += 1
            drawn.append(one)
        stimuli = [stimulus for stimulus in stimuli if by_stimulus[stimulus]]
    return drawn


def draw_pool(
    candidates: Sequence[Candidate], chance: random.Random, *, per_agent: int | None = None, whole: bool = False
) -> Pool:
    """The trials of one task: as many of people as of all agents together, and of each agent as many as of any other.

    ``per_agent`` asks for so many of each agent; otherwise there are as many as can be balanced. With ``whole`` every
    answer becomes a trial, balanced or not. Where there are too few of somebody, ``unbalanced`` says so.
    """
    people = [one for one in candidates if one.truth == "human" and not one.is_catch]
    machines: dict[str, list[Candidate]] = defaultdict(list)
    for one in candidates:
        if one.truth == "machine" and not one.is_catch:
            machines[one.agent].append(one)
    catch = [one for one in candidates if one.is_catch]
    if whole or not people or not machines:
        pool = Pool(people, dict(machines), catch)
        if not people or not machines:
            pool.unbalanced.append(f"there are no answers of {'machines' if people else 'people'}")
        return pool
    each = min(map(len, machines.values()))
    wanted = min(each * len(machines), len(people)) if per_agent is None else per_agent * len(machines)
    pool = Pool([], {}, catch)
    quota = shares(wanted, sorted(machines), chance)
    for name, number in quota.items():
        pool.machines[name] = spread(machines[name], number, chance)
        if len(pool.machines[name]) < number:
            pool.unbalanced.append(f"{name} has {len(pool.machines[name]):,} answers, and not {number:,}")
    number = sum(map(len, pool.machines.values()))
    pool.people = spread(people, number, chance)
    if len(pool.people) < number:
        pool.unbalanced.append(f"people have {len(pool.people):,} answers, and machines {number:,}")
    return pool


def draw_list(
    pool: Pool, number: int, used: Counter[int], chance: random.Random, *, catch: float, repeats: float
) -> list[tuple[Candidate, bool]]:
    """One judge's trials as :func:`arrange` orders them: of ``number`` half are people's and the others equally the
    agents', those first that fewer judges have seen (``used``, which is brought up to date); no stimulus comes twice
    while there are others. To these comes the share ``catch`` of catch trials, and the share ``repeats`` comes again.
    """
    people = number // 2 + (chance.random() < 0.5 if number % 2 else 0)
    takes = [(pool.people, people)]
    if pool.machines:
        quota = shares(number - people, sorted(pool.machines), chance)
        takes += [(pool.machines[name], part) for name, part in quota.items()]
    chance.shuffle(takes)
    chosen: list[Candidate] = []
    seen: set[str] = set()
    for some, part in takes:
        chosen += least_used(some, part, used, seen, chance)
    caught = least_used(pool.catch, round(catch * number), used, seen, chance)
    return arrange(chosen, caught, round(repeats * number), chance)


def arrange(
    trials: Sequence[Candidate], catch: Sequence[Candidate], repeats: int, chance: random.Random
) -> list[tuple[Candidate, bool]]:
    """The trials in a drawn order, each with whether it comes for the second time: so many ``repeats`` come again
    later, and no catch trial is among the first three where there are as many others."""
    order = [(one, False) for one in chance.sample(list(trials), len(trials))]
    for one, _ in chance.sample(order, min(repeats, len(order))):
        first = next(at for at, (other, _) in enumerate(order) if other is one)
        order.insert(chance.randint(first + 1, len(order)), (one, True))
    for one in catch:
        order.insert(chance.randint(min(FIRST, len(order)), len(order)), (one, False))
    return order


def least_used(
    some: Sequence[Candidate], number: int, used: Counter[int], seen: set[str], chance: random.Random
) -> list[Candidate]:
    """``number`` of them, those first that were used less, about other stimuli than those ``seen``, and of pairs with
    other conversations of people, while there are any; ``used`` and ``seen`` are brought up to date."""
    ranked = sorted(some, key=lambda one: (used[id(one)], chance.random()))
    taken: list[Candidate] = []
    for one in ranked:
        if len(taken) < number and seen.isdisjoint(one.known_by()):
            taken.append(one)
            seen |= one.known_by()
    left = {id(one) for one in taken}
    taken += [one for one in ranked if id(one) not in left][: number - len(taken)]
    seen.update(*(one.known_by() for one in taken))
    used.update(id(one) for one in taken)
    return taken
