"""How the distribution of an agent's answers compares with people's, by stimulus and over stimuli.

An agent that always gives the commonest answer may pass trial by trial, and is no population.

**Measures of one answer beside others'** (such as how probable it is that two answers are alike) are taken of each
participant beside all others, and of the agent in the same way, as if it were one more participant
(:mod:`judging.statistics.as_participant`). They have a test, and an interval over participants and stimuli.
Participants are told apart by their names: where answers have none, or where too few participants answered, these
measures are as the others.

**Measures of several answers** of one agent to a stimulus (such as entropy), and of a set of answers by itself (such
as self-BLEU), are taken three times, in drawn sets of as many answers: people beside other people, the agent beside
people, and the agent beside itself. If each answer of the agent is drawn from the distribution of people's to that
stimulus, the three have one mean. A distance that is a squared Hilbert metric (Jensen-Shannon: Fuglede and Topsøe 2004;
energy) or L1 (total variation) is otherwise larger between two populations than the mean of the two within them
(Székely and Rizzo 2013). Nobody gives several answers to a stimulus but machines, so that no participant can stand in
the agent's place. These measures have no test. Their intervals are
over stimuli, of these people. Over stimuli, means are in groups of them (Zaremba et al. 2013).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from agents.stimuli import TASKS
from judging.statistics.answer_statistics import longest_excerpts
from judging.statistics.as_participant import (
    FEWEST_PARTICIPANTS,
    FEWEST_STIMULI,
    AnswersOfBoth,
    beside_participants,
)
from judging.statistics.contrasts import ALPHA, holm
from judging.statistics.jackknife import ROUNDING, Floats
from judging.statistics.population_measures import Measure, measures_of
from judging.statistics.tables import NO_FIGURE, Estimate, Table
from judging.trial_sets.candidates import AnswerReader
from judging.trial_sets.same_rules import SameRules
from serving.files.words import count
from serving.runs.answer_numbers import AnswerFields

SPLITS = 200
BOTH = "participants and stimuli"
STIMULI = "stimuli"
SCOPE = (
    "These comparisons are of answers alone, without judges: an agent may pass and still differ here. A sentence on a "
    "difference holds for participants like these, each of whom counts once with all their answers, and for stimuli "
    "like these unless it says otherwise."
)
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
    participants: int
    """How many participants count as drawn at random; 0 where the figures are of these people alone."""
    people: Estimate
    """People beside other people; entropy and self-BLEU are of people's answers."""
    beside_people: Estimate
    """The agent beside people; entropy and self-BLEU are of the agent's answers."""
    itself: Estimate
    """The agent beside itself, of measures of several answers; NaN where it gave too few for two sets."""
    difference: Estimate
    """``beside_people`` minus ``people``; with ``itself``, of a distance, minus the mean of ``people`` and
    ``itself``."""
    interval: str
    """Over what the difference's interval goes: :data:`BOTH` or :data:`STIMULI`."""
    p: float | None
    """How probable such a difference is for a further participant, on these stimuli, to either side; None without a
    test."""
    holm: float | None = None
    """``p`` corrected by Holm (1979) for the ``family``."""
    family: int = 0
    """How many tests were corrected together: a task's agents and measures that have a test."""


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
            family = sum(row.p is not None for row in of_task)
            rows += [replace(row, holm=p, family=family) for row, p in zip(of_task, corrected, strict=True)]
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
        about = (task, agent, measure.name, len(usable), *numbers)
        found = beside_participants(measure, groups) if measure.compares_one else None
        if found is not None:
            of_both = (found.participants, found.of_participants, found.of_agent, NO_FIGURE, found.difference)
            yield Population(*about, *of_both, BOTH, found.p)
            continue
        values = _compared(measure, groups, chance)
        low, high = measure.limits
        people = _estimate(values[0], low, high)
        between = _estimate(values[1], low, high)
        itself = _estimate(values[2], low, high)
        difference = _estimate(_difference(measure, values), low - high, high - low)
        yield Population(*about, 0, people, between, itself, difference, STIMULI, None)


def _sets(answered: AnswersOfBoth, sizes: tuple[int, int], chance: np.random.Generator) -> Sets:
    """``SPLITS`` draws of two sets of answers to a stimulus: of people, of the agent and people, of the agent."""
    first, second = sizes
    places = np.tile(np.arange(len(answered.answers)), (SPLITS, 1))
    of_people, of_agent = np.split(places, [answered.people], axis=1)
    people = chance.permuted(of_people, axis=1)
    agent = chance.permuted(of_agent, axis=1)
    others = people[:, first : first + second]
    pairs = [(people[:, :first], others), (agent[:, :first], others)]
    if second and answered.agent >= first + second:
        pairs.append((agent[:, :first], agent[:, first : first + second]))
    drawn = np.zeros((len(pairs), 2, SPLITS, len(answered.answers)))
    for pair_number, pair in enumerate(pairs):
        for side, of_side in enumerate(pair):
            np.put_along_axis(drawn[pair_number, side], of_side, 1.0, axis=1)
    return [(pair[0], pair[1]) for pair in drawn]


def _compared(measure: Measure, groups: Sequence[Sequence[AnswersOfBoth]], chance: np.random.Generator) -> Floats:
    """The measure's values [3, groups] of people beside people, the agent beside people, and the agent beside itself,
    each the mean of ``SPLITS`` draws; NaN where a set is too small."""
    means = []
    for group in groups:
        # The relation covers the answers of all stimuli of the group, so their sets are joined.
        relation = measure.relation([answer for answered in group for answer in answered.answers])
        sets = [_sets(answered, measure.sizes(answered.people, answered.agent), chance) for answered in group]
        figures = np.full((3, SPLITS), np.nan)
        for pair in range(min(map(len, sets))):
            first = np.hstack([of_stimulus[pair][0] for of_stimulus in sets])
            second = np.hstack([of_stimulus[pair][1] for of_stimulus in sets])
            figures[pair] = measure.compare(relation, first, second)
        means.append(_mean(figures))
    return np.array(means).T


def _difference(measure: Measure, values: Floats) -> Floats:
    people, between, itself = values
    within = np.where(np.isfinite(itself) & measure.is_distance, (people + itself) / 2, people)
    return np.asarray(between - within)


def _mean(values: Floats) -> Floats:
    """The means of the known values of each row; NaN of none."""
    is_known = np.isfinite(values)
    return np.asarray(np.where(is_known.any(1), np.nansum(values, 1) / np.maximum(is_known.sum(1), 1), np.nan))


def _estimate(values: Floats, low: float, high: float) -> Estimate:
    """The mean over stimuli with its 95 % interval by Student's t, within ``low`` and ``high``; without an interval of
    few stimuli, and of stimuli that do not vary, whose interval would have no width as if others could not differ."""
    from scipy.stats import t

    finite = values[np.isfinite(values)]
    if not len(finite):
        return NO_FIGURE
    mean = float(finite.mean())
    if len(finite) < FEWEST_STIMULI or np.ptp(finite) < ROUNDING:
        return Estimate(mean)
    half = float(t.ppf(0.975, len(finite) - 1) * finite.std(ddof=1) / np.sqrt(len(finite)))
    return Estimate(mean, max(mean - half, low), min(mean + half, high))


def population_sentences(rows: Iterable[Population]) -> Iterator[str]:
    """What is said of each agent of a task, by two kinds of evidence that may disagree.

    ``holm`` is of participants like these on these stimuli, corrected for all tests of the task. The interval is of
    participants and stimuli like these, of one measure by itself. It is never narrower than ``p`` is: where it leaves 0
    out, ``p`` is below 0.05. That an agent does not answer as people do takes both. By ``holm`` alone it is said of
    these stimuli: each of them may be unlike others. By the interval alone it is said that it is not sure among so many
    tests. There is no interval where stimuli are few, or participants do not vary. Of measures without a test it is
    said where the interval leaves 0 out, of these people alone: nobody knows by how much a further participant would
    differ in them."""
    for agent, of_agent in groupby(rows, key=lambda row: row.agent):
        kept = list(of_agent)
        tested = [row for row in kept if row.holm is not None]
        clauses = list(_clauses(agent, tested))
        if not tested:
            clauses = [
                f"{agent} was not tested: a test takes {FEWEST_PARTICIPANTS} named participants, who answered two "
                "stimuli each, or two groups of stimuli."
            ]
        elif not clauses:
            clauses = [f"{agent}: no difference from these people was seen, which does not prove that there is none."]
        of_these_people = [row for row in kept if row.holm is None and _leaves_out_0(row)]
        if of_these_people:
            clauses.append(
                f"With these people alone, the interval leaves 0 out in {_figures(of_these_people)}; a further "
                "participant may differ as much from them."
            )
        yield " ".join(clauses)


def _clauses(agent: str, tested: Sequence[Population]) -> Iterator[str]:
    """What tests say of an agent; nothing where they show no difference."""
    significant = [row for row in tested if row.holm is not None and row.holm < ALPHA]
    without_interval = [row for row in significant if math.isnan(row.difference.low)]
    of_others = [row for row in significant if _leaves_out_0(row)]
    of_these = [row for row in significant if not math.isnan(row.difference.low) and not _leaves_out_0(row)]
    unsure = [row for row in tested if row not in significant and _leaves_out_0(row)]
    if of_others:
        yield f"{agent} does not answer as people like these do: {_figures(of_others)}."
    if of_these:
        also = " also" if of_others else ""
        yield (
            f"On these stimuli {agent}{also} differs from people like these in {_figures(of_these)}; "
            "the interval holds 0, so that on other stimuli it may not."
        )
    if without_interval:
        also = " also" if of_others or of_these else ""
        yield (
            f"On these stimuli {agent}{also} differs from people like these in {_figures(without_interval)}; "
            f"{_why_no_interval(without_interval)}, so that nothing is said of other stimuli."
        )
    if unsure:
        yield (
            f"{agent} may differ from people like these in {_figures(unsure)}; "
            f"the interval leaves 0 out, but that is not sure among {unsure[0].family} tests."
        )


def _leaves_out_0(row: Population) -> bool:
    return row.difference.low > 0 or row.difference.high < 0


def _why_no_interval(rows: Sequence[Population]) -> str:
    number = max(row.stimuli for row in rows)
    if number < FEWEST_STIMULI:
        return f"there is no interval of {count(number, 'stimulus', 'stimuli')}, as it takes {FEWEST_STIMULI}"
    return f"there is no interval, as it takes {FEWEST_STIMULI} stimuli, or groups of them, and participants who vary"


def _figures(rows: Iterable[Population]) -> str:
    return "; ".join(
        f"{row.measure} {row.beside_people.value:.2f}, people {row.people.value:.2f}, "
        f"difference {row.difference.apart_from(0)}"
        for row in rows
    )
