"""An agent beside participants, as if it were one more of them: what a further participant would differ by.

**Why.** The answers of one participant have a style: one always names the commonest colour, another looks close to the
centre. So they are not independent, and a test that exchanges single answers between people and agent calls every
second further participant unlike the others. Here the unit is the participant with all their answers.

**How.** Each participant, and the agent with its first answer to each stimulus, is in turn compared with all others, by
a measure of one answer beside others' (:mod:`judging.statistics.population_measures`). All n + 1 are treated alike: the
agent is among the others of a participant. The agent's value minus the participants' mean is then set beside the spread
of participants, by Student's t with n - 1 degrees of freedom: the test of a single case beside few controls (Sokal and
Rohlf 1995; Crawford and Howell 1998). Its standard error has the factor sqrt(1 + 1/n), as the agent is drawn, too. That
is exact where the n + 1 values are normal and any two of them correlate alike, as they do here under the hypothesis
that the agent is a further participant.

Where participants answered other stimuli, or fewer than the agent, their means are of fewer answers and so vary more.
The variance between answers of a participant is estimated apart then, and taken out as far as the agent has more of
them; degrees of freedom are Satterthwaite's (1946). ``scripts/simulate_populations.py`` draws participants with tastes
of their own and counts how often a further one differs.

The interval of the difference is as wide as this needs, or as the difference varies over stimuli, whichever is wider:
so it is of participants and of stimuli like these. The p is of participants like these on the given stimuli.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judging.statistics.jackknife import CONFIDENCE, ROUNDING, Floats
from judging.statistics.measures import NAMELESS
from judging.statistics.population_measures import Measure
from judging.statistics.tables import Estimate
from serving.runs.answer_numbers import AnswerFields

FEWEST_PARTICIPANTS = 4
FEWEST_STIMULI = 4  # of an interval, or as many groups of them
UPPER = (1 + CONFIDENCE) / 2


class AnswersOfBoth(NamedTuple):
    """The answers to a stimulus, people's first."""

    answers: Sequence[AnswerFields]
    """People's answers, then the agent's."""
    people: int
    """How many of them are people's."""
    agent: int
    """How many are the agent's."""

    def first_of_participants(self) -> dict[str, int]:
        """The place of each named participant's first answer, by their name."""
        places: dict[str, int] = {}
        for place, answer in enumerate(self.answers[: self.people]):
            if answer["agent"] not in NAMELESS:
                places.setdefault(str(answer["agent"]), place)
        return places


@dataclass(frozen=True, slots=True)
class BesideParticipants:
    """An agent beside participants, by a measure."""

    participants: int
    """How many participants there are."""
    of_participants: Estimate
    """The mean participant beside all others, with its interval over participants."""
    of_agent: Estimate
    """The agent beside participants, with its interval over stimuli."""
    difference: Estimate
    """The agent's value minus the participants', with an interval over participants and stimuli."""
    p: float
    """How probable a difference of this size is for a further participant, on these stimuli, to either side."""


def beside_participants(measure: Measure, groups: Sequence[Sequence[AnswersOfBoth]]) -> BesideParticipants | None:
    """The agent beside participants; ``groups`` of stimuli are compared together where the measure is pooled.

    None where fewer than four participants, or fewer than two stimuli or groups, can be compared: a participant counts
    in a group all of whose stimuli they answered. None too where participants were in fewer than two groups on average,
    as a participant's style and their single answer cannot be told apart then."""
    values = [_values(measure, group) for group in groups]
    table = _table([of_group for of_group in values if of_group])
    if table is None:
        return None
    is_there = np.isfinite(table[1:])
    answered = is_there.sum(axis=1)
    if len(answered) < FEWEST_PARTICIPANTS or answered.mean() < 2:
        return None
    mean_of_group = np.nanmean(table[1:], axis=0)
    differences = table[0] - mean_of_group
    error, freedom = of_a_further_participant(table[1:] - mean_of_group, is_there)
    number = len(answered)
    difference = float(differences.mean())
    stimuli_error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    p = _p(difference, error, freedom, number)
    spread = error / math.sqrt(1 + 1 / number) / math.sqrt(number)
    has_interval = error > ROUNDING and len(differences) >= FEWEST_STIMULI
    half = math.nan
    if has_interval:
        half = max(_t(freedom) * error, _t(len(differences) - 1) * stimuli_error)
    low, high = measure.limits
    return BesideParticipants(
        number,
        _within(float(mean_of_group.mean()), _t(number - 1) * spread if error > ROUNDING else math.nan, low, high),
        _mean_within(table[0], low, high),
        _within(difference, half, low - high, high - low),
        p,
    )


def _values(measure: Measure, group: Sequence[AnswersOfBoth]) -> dict[str, float]:
    """By name the value of each participant who answered all stimuli of a group, beside all others; "" is the agent.
    Nothing where fewer than two participants did."""
    of_stimuli = [answered.first_of_participants() for answered in group]
    names = [name for name in of_stimuli[0] if all(name in places for places in of_stimuli)]
    if len(names) < 2:
        return {}
    size = sum(len(answered.answers) for answered in group)
    chosen = np.zeros((1 + len(names), size))  # [agent and participants, answers]
    start = 0
    for answered, places in zip(group, of_stimuli, strict=True):
        chosen[0, start + answered.people] = 1
        for row, name in enumerate(names, start=1):
            chosen[row, start + places[name]] = 1
        start += len(answered.answers)
    relation: Any = measure.relation([answer for answered in group for answer in answered.answers])
    values = measure.compare(relation, chosen, chosen.sum(axis=0) - chosen)
    return dict(zip(["", *names], values.tolist(), strict=True))


def _table(values: Sequence[dict[str, float]]) -> Floats | None:
    """The values [agent and participants, groups]; NaN where a participant is not in a group. None without any."""
    names = list(dict.fromkeys(name for of_group in values for name in of_group))
    if not names:
        return None
    return np.array([[of_group.get(name, math.nan) for of_group in values] for name in names])


def of_a_further_participant(deviations: Floats, is_there: NDArray[np.bool_]) -> tuple[float, float]:
    """The standard error of a further participant's mean minus that of these, and its degrees of freedom.

    ``deviations`` [participants, groups] are from the mean of their group; NaN where there is none."""
    in_group = is_there.sum(axis=0)
    answered = is_there.sum(axis=1)
    groups = is_there.shape[1]
    # A deviation from the mean of n varies by 1 - 1/n less than the value itself.
    unbiased = np.where(is_there, deviations, 0.0) * np.sqrt(in_group / np.maximum(in_group - 1, 1))
    of_participant = unbiased.sum(axis=1) / answered
    between = float((of_participant**2).mean())
    weights = (is_there / in_group).sum(axis=1) / groups
    further = 1 + float((weights**2).sum())
    residuals = np.where(is_there, unbiased - of_participant[:, None], 0.0)
    within = float((residuals**2).sum() / (answered - 1).sum())
    of_answers = 1 / groups + float((1 / in_group).sum()) / groups**2
    surplus = further * float((1 / answered).mean()) - of_answers
    number = len(answered)
    if surplus < ROUNDING:  # everybody answered everything
        return math.sqrt(further * between), number - 1
    variance = further * between - surplus * within
    if variance <= of_answers * within:  # participants differ by their single answers alone
        return math.sqrt(of_answers * within), float((answered - 1).sum())
    freedom = (number - 1) * (variance / (further * between)) ** 2
    return math.sqrt(variance), float(np.clip(freedom, 1, number - 1))


def _p(difference: float, error: float, freedom: float, participants: int) -> float:
    """p of a further participant's difference; of participants who do not vary that of the agent's rank."""
    from scipy.stats import t

    if error > ROUNDING:
        return float(2 * t.sf(abs(difference) / error, freedom))
    return 1.0 if abs(difference) < ROUNDING else 1 / (participants + 1)


def _t(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(UPPER, freedom))


def _mean_within(values: Floats, low: float, high: float) -> Estimate:
    number = len(values)
    if number < FEWEST_STIMULI or np.ptp(values) < ROUNDING:
        return Estimate(float(values.mean()))
    half = _t(number - 1) * float(values.std(ddof=1)) / math.sqrt(number)
    return _within(float(values.mean()), half, low, high)


def _within(value: float, half: float, low: float, high: float) -> Estimate:
    """A figure with an interval of ``half`` to each side, within ``low`` and ``high``; NaN: without an interval."""
    if math.isnan(half):
        return Estimate(value)
    return Estimate(value, max(value - half, low), min(value + half, high))
