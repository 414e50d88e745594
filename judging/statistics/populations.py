"""How the distribution of an agent's answers compares with people's, by stimulus and over stimuli.

An agent that always gives the commonest answer may pass trial by trial, and is no population. Each measure is taken
three times, in drawn sets of as many answers: people beside other people, the agent beside people, and the agent beside
itself. If
each answer of the agent is drawn from the distribution of people's to that stimulus, the three have one mean. A
distance that is a squared Hilbert metric (Jensen-Shannon: Fuglede and Topsøe 2004; energy) or L1 (total variation) is
otherwise larger between two populations than the mean of the two within them (Székely and Rizzo 2013). Intervals are
over stimuli. The test permutes who gave which answer within each stimulus (Good 2005), as if answers were independent.
So a further person with a style of their own may differ from these people, too. Over stimuli means in groups of them
(Zaremba et al. 2013).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.stimuli import TASKS
from judging.statistics.answer_statistics import longest_excerpts
from judging.statistics.contrasts import ALPHA, holm
from judging.statistics.jackknife import ROUNDING, Floats
from judging.statistics.population_measures import Measure, measures_of
from judging.statistics.tables import NO_FIGURE, Estimate, Table
from judging.trial_sets.candidates import AnswerReader
from judging.trial_sets.same_rules import SameRules
from serving.files.words import count
from serving.runs.answer_numbers import AnswerFields

# of an interval as many stimuli, or groups of them
SPLITS = 200
PERMUTATIONS = 9999
FEWEST = 4
# permutations in a stimulus, of which those of all are drawn; splits of each, of all
LABELS = 100
SPLITS_OF_ALL = 600
Sets = list[tuple[Floats, Floats]]  # [draws, answers]: of people and people, agent and people, agent and agent


@dataclass(frozen=True, slots=True)
class Population:
    """How an agent's answers to a task are distributed beside people's, by one measure."""

    task: str
    """The task that was answered."""
    agent: str
    """Whose answers stand beside people's."""
    measure: str
    """Its name, with the unit (:attr:`judging.statistics.population_measures.Measure.name`)."""
    stimuli: int
    """How many stimuli two people at least answered, and the agent as often as the measure needs."""
    answers_of_people: int
    """How many answers people gave to them."""
    answers: int
    """How many the agent gave."""
    people: Estimate
    """People beside other people; entropy and self-BLEU are of people's answers."""
    beside_people: Estimate
    """The agent beside people; entropy and self-BLEU are of the agent's answers."""
    itself: Estimate
    """The agent beside itself; NaN where it gave too few answers for two sets."""
    difference: Estimate
    """``beside_people`` minus ``people``; of a distance, minus the mean of ``people`` and ``itself``, if known."""
    p: float
    """By permutation of who gave which answer within each stimulus; one-sided of a distance with ``itself``."""
    holm: float | None = None
    """``p`` corrected by Holm (1979) for the ``family``."""
    family: int = 0
    """How many tests were corrected together: a task's agents and measures."""


class AnswersOfBoth(NamedTuple):
    """The answers to a stimulus, people's first."""

    answers: Sequence[AnswerFields]
    """People's answers, then the agent's."""
    people: int
    """How many of them are people's."""
    agent: int
    """How many are the agent's."""

    def sets(self, sizes: tuple[int, int], permutations: int, draws: int, chance: np.random.Generator) -> Sets:
        """Rows are ``draws`` of the answers as they are, then after each permutation of who gave them."""
        first, second = sizes
        order = np.tile(np.arange(len(self.answers)), (1 + permutations, 1))
        order[1:] = chance.permuted(order[1:], axis=1)
        people_order, agent_order = np.split(np.repeat(order, draws, axis=0), [self.people], axis=1)
        people = chance.permuted(people_order, axis=1)
        agent = chance.permuted(agent_order, axis=1)
        others = people[:, first : first + second]
        places = [(people[:, :first], others), (agent[:, :first], others)]
        if second and self.agent >= first + second:
            places.append((agent[:, :first], agent[:, first : first + second]))
        drawn = np.zeros((len(places), 2, len(people), len(self.answers)))
        for pair_number, pair in enumerate(places):
            for side, of_side in enumerate(pair):
                np.put_along_axis(drawn[pair_number, side], of_side, 1.0, axis=1)
        return [(pair[0], pair[1]) for pair in drawn]


def read_populations(folders: Sequence[Path], rules: SameRules | None = None) -> Table[Population]:
    """How agents' answers in run folders compare with people's, as judges see them: words have passed ``rules``, by
    default the papers'. Raises InputError, UnavailableError."""
    answers = []
    for answer in AnswerReader(folders, [], rules).candidates(TASKS, range(1, 1000)):
        if not answer.is_catch:
            answers.append(
                {
                    "asked": answer.stimulus.task,
                    "stimulus": answer.stimulus.id,
                    "truth": answer.truth,
                    "agent": answer.agent,
                    "speaker": answer.speaker,
                    "answer": answer.answer.model_dump(exclude_none=True),
                }
            )
    return populations(answers)


def populations(answers: Iterable[AnswerFields]) -> Table[Population]:
    """By task each agent's measures, on stimuli that two people at least answered. An answer has ``asked``,
    ``stimulus``, ``truth``, ``agent``, ``speaker`` and ``answer``."""
    by_task: dict[str, list[AnswerFields]] = defaultdict(list)
    for answer in answers:
        if len(answer["answer"].get("fixations", "12")) > 1:  # the first is forced
            by_task[answer["asked"]].append(answer)
    rows: list[Population] = []
    for task in (task for task in TASKS if task in by_task):
        of_agents = _by_agent(longest_excerpts(by_task[task]))
        blocks = chain.from_iterable(of_agents.values())
        if shown := [answer for block in blocks for answer in block.answers]:
            measures = measures_of(task, shown)
            of_task = [row for agent in of_agents for row in _rows(task, agent, measures, of_agents[agent])]
            corrected = holm([row.p for row in of_task])
            rows += [replace(row, holm=p, family=len(of_task)) for row, p in zip(of_task, corrected, strict=True)]
    return Table(rows)


def _by_agent(answers: Sequence[AnswerFields]) -> Mapping[str, list[AnswersOfBoth]]:
    people: dict[str, list[AnswerFields]] = defaultdict(list)
    machines: dict[str, dict[str, list[AnswerFields]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        by_stimulus = people if answer["truth"] == "human" else machines[answer["agent"]]
        by_stimulus[answer["stimulus"]].append(answer)
    return {
        agent: [
            AnswersOfBoth([*people[on], *answered], len(people[on]), len(answered))
            for on, answered in by_stimulus.items()
            if len(people.get(on, ())) > 1
        ]
        for agent, by_stimulus in sorted(machines.items())
    }


def _rows(task: str, agent: str, measures: Sequence[Measure], stimuli: Sequence[AnswersOfBoth]) -> Iterator[Population]:
    for measure in measures:
        chance = np.random.default_rng(0)
        usable = [answered for answered in stimuli if answered.agent >= measure.least]
        if len(usable) < 1 + measure.is_pooled:
            continue
        size = max(round(len(usable) ** 0.5), 2) if measure.is_pooled else 1
        groups = [
            [usable[place] for place in group] for group in np.array_split(np.arange(len(usable)), len(usable) // size)
        ]
        numbers = sum(answered.people for answered in usable), sum(answered.agent for answered in usable)
        values, differences, p = _compared(measure, groups, chance)
        low, high = measure.limits
        people = _estimate(values[0], low, high)
        between = _estimate(values[1], low, high)
        itself = _estimate(values[2], low, high)
        difference = _estimate(differences, low - high, high - low)
        yield Population(task, agent, measure.name, len(usable), *numbers, people, between, itself, difference, p)


def _compared_sets(
    measure: Measure,
    relation: Any,
    group: Sequence[AnswersOfBoth],
    permutations: int,
    draws: int,
    chance: np.random.Generator,
) -> Floats:
    """Three rows [people–people, agent–people, agent–agent] by set; NaN where a set is too small.

    ``relation`` covers the answers of all stimuli of the group, so their sets are joined."""
    sets = [
        answered.sets(measure.sizes(answered.people, answered.agent), permutations, draws, chance) for answered in group
    ]
    figures = np.full((3, len(sets[0][0][0])), np.nan)
    for pair in range(min(map(len, sets))):
        first = np.hstack([of_stimulus[pair][0] for of_stimulus in sets])
        second = np.hstack([of_stimulus[pair][1] for of_stimulus in sets])
        figures[pair] = measure.compare(relation, first, second)
    return figures


def _compared(
    measure: Measure, groups: Sequence[Sequence[AnswersOfBoth]], chance: np.random.Generator
) -> tuple[Floats, Floats, float]:
    """The measure's values [3, groups], the difference [groups], and its p.

    The three rows are people, the agent beside people, and the agent beside itself. p is how often the difference is
    as large after permutations (Phipson and Smyth 2010). For a distance with all three rows that is upwards, otherwise
    to either side.

    Permutations are drawn on three axes. ``LABELS`` times each group's labels of who answered are permuted, and each
    of these has ``draws`` splits into two sets, whose mean is its difference. Then each of ``PERMUTATIONS`` takes one
    of these labels for each group, label 0 being the truth, and the statistic is the mean over groups. Splits of the
    truth itself are drawn apart, ``SPLITS`` of them, since the printed values want more than p does.
    """
    draws = int(np.clip(SPLITS_OF_ALL // len(groups), 5, 30))
    values = list[Floats]()
    permuted = list[Floats]()
    for group in groups:
        relation = measure.relation([answer for answered in group for answer in answered.answers])
        values.append(_compared_sets(measure, relation, group, 0, SPLITS, chance))
        permuted.append(_compared_sets(measure, relation, group, LABELS, draws, chance))
    means = _mean(np.array(values), axis=2).T
    table = np.array([_difference(measure, of_group).reshape(-1, draws) for of_group in permuted])
    by_label = _mean(table, axis=2)
    drawn = chance.integers(0, LABELS + 1, (PERMUTATIONS + 1, len(groups)))
    drawn[0] = 0  # as they are
    statistic = _mean(by_label[np.arange(len(groups)), drawn], axis=1)
    above = float((statistic >= statistic[0] - ROUNDING).mean())
    below = float((statistic <= statistic[0] + ROUNDING).mean())
    is_one_sided = measure.is_distance and bool(np.isfinite(means).all())
    return means, _difference(measure, means), above if is_one_sided else min(1.0, 2 * min(above, below))


def _difference(measure: Measure, values: Floats) -> Floats:
    people, between, itself = values
    within = np.where(np.isfinite(itself) & measure.is_distance, (people + itself) / 2, people)
    return np.asarray(between - within)


def _mean(values: Floats, axis: int) -> Floats:
    is_known = np.isfinite(values)
    return np.asarray(np.where(is_known.any(axis), np.nansum(values, axis) / np.maximum(is_known.sum(axis), 1), np.nan))


def _estimate(values: Floats, low: float, high: float) -> Estimate:
    """The mean over stimuli with its 95 % interval by Student's t, within ``low`` and ``high``; without an interval of
    few stimuli, and of stimuli that do not vary, whose interval would have no width as if others could not differ."""
    from scipy.stats import t

    finite = values[np.isfinite(values)]
    if not len(finite):
        return NO_FIGURE
    mean = float(finite.mean())
    if len(finite) < FEWEST or np.ptp(finite) < ROUNDING:
        return Estimate(mean)
    half = float(t.ppf(0.975, len(finite) - 1) * finite.std(ddof=1) / np.sqrt(len(finite)))
    return Estimate(mean, max(mean - half, low), min(mean + half, high))


def population_sentences(rows: Iterable[Population]) -> Iterator[str]:
    """What is said of each agent of a task, by two kinds of evidence that may disagree.

    ``holm`` is of these stimuli: who gave which answer is permuted within each of them, and of a distance it is
    one-sided. The interval is of others like them: it goes by how the difference varies over stimuli, to both sides. So
    the answers to four stimuli may surely differ from people's, while the interval holds 0, as each of these stimuli
    may be unlike others. That an agent does not answer as people do, with nothing added, takes both. By ``holm`` alone
    it is said of these stimuli; by the interval alone, that it is not sure among so many tests. There is no
    interval where stimuli are few or do not vary. It then neither holds 0 nor leaves it out, and the sentence says
    why."""
    for agent, of_agent in groupby(rows, key=lambda row: row.agent):
        tested = [row for row in of_agent if row.holm is not None]
        of_others = list[Population]()
        of_these = list[Population]()
        without_interval = list[Population]()
        unsure = list[Population]()
        for row in tested:
            leaves_out_0 = row.difference.low > 0 or row.difference.high < 0
            is_significant = row.holm is not None and row.holm < ALPHA
            if is_significant and math.isnan(row.difference.low):
                without_interval.append(row)
            elif is_significant:
                (of_others if leaves_out_0 else of_these).append(row)
            elif leaves_out_0:
                unsure.append(row)
        clauses = []
        if of_others:
            clauses.append(f"{agent} does not answer as these people do: {_figures(of_others)}.")
        if of_these:
            also = " also" if of_others else ""
            clauses.append(
                f"On these stimuli {agent}{also} differs from these people in {_figures(of_these)}; "
                "no interval leaves 0 out, so that on other stimuli it may not."
            )
        if without_interval:
            also = " also" if of_others or of_these else ""
            clauses.append(
                f"On these stimuli {agent}{also} differs from these people in {_figures(without_interval)}; "
                f"{_why_no_interval(without_interval)}, so that nothing is said of other stimuli."
            )
        if unsure:
            clauses.append(
                f"{agent} may differ from these people in {_figures(unsure)}; "
                f"the interval leaves 0 out, but that is not sure among {unsure[0].family} tests."
            )
        none = f"{agent}: no difference from these people was seen, which does not prove that there is none."
        yield " ".join(clauses) or none


def _why_no_interval(rows: Sequence[Population]) -> str:
    number = max(row.stimuli for row in rows)
    if number < FEWEST:
        return f"there is no interval of {count(number, 'stimulus', 'stimuli')}, as it takes {FEWEST}"
    return f"there is no interval, as it takes {FEWEST} stimuli, or groups of them, that vary"


def _figures(rows: Iterable[Population]) -> str:
    return "; ".join(
        f"{row.measure} {row.beside_people.value:.2f}, people {row.people.value:.2f}, "
        f"difference {row.difference.apart_from(0)}"
        for row in rows
    )
