"""What an AI judge's verdicts are worth: how well they predict those of people on the same answers.

All figures are means over the verdicts of people: one row is one person's verdict on one answer, beside the AI judge's
verdict on it. Rows of one stimulus, of one judge and of one participant who answered are dependent. So the variance is
that of clusters in several ways (Cameron, Gelbach and Miller 2011, section 2.3): the clusters of each way, minus those
of each two ways together, plus those of all. Each has the correction G/(G - 1). Intervals take Student's t with the
smallest number of clusters, minus 1, as its degrees of freedom. Where only one person judged, figures hold for this
person.

How often another person agrees is a U-statistic: each person also stands in the others' figures. A linear variance
counts a person's part a quarter as large as it is, and its intervals hold the truth in 70 to 85 % of cases. So the
persons' part is a jackknife here: the figure is computed anew without each of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from agents.stimuli import Asked
from judging.cards.card import AgentCalibration, Calibration, Figure
from judging.statistics.measures import NAMELESS, TRAINED
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.statistics.verdict_table import as_drawn, counted
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
LEAST = 2  # clusters: below that nothing is known of others
ROUNDING = 1e-18  # a variance below it is 0
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def calibrate(verdicts: pd.DataFrame, pool: str, trained: Collection[str] = ()) -> list[Calibration]:
    """The calibration of each AI judge on each task.

    ``verdicts`` is the table of :func:`judging.scores.verdicts.read_verdicts` over people's folder and the AI judges'
    folder on the same trials. Catch trials, repeats, other versions, further verdicts, verdicts after feedback and
    excluded people do not count. ``trained`` are the judges that learn from the trials: each answer trains the verdicts
    on the others, so that their intervals are wider by :data:`judging.statistics.measures.TRAINED`. A judge and task
    without common answers are left out."""
    rows = counted(as_drawn(verdicts))
    rows = rows[rows["excluded"].isna() & (rows["sample"] == 0)]
    rows = rows[~rows["catch"].astype(bool) & rows["repeat_of"].isna()]
    is_person = rows["judge_kind"] == "human"
    people = rows[is_person & rows["verdict"].isin(VERDICTS)]
    found = []
    for (task, judge), of_judge in rows[~is_person].groupby(["asked", "judge"], sort=True):
        said = of_judge[of_judge["verdict"].isin(VERDICTS)].groupby("trial")["verdict"].first() == "human"
        of_task = people[people["asked"] == task]
        judged = of_task[of_task["trial"].isin(said.index)]
        if judged.empty:
            continue
        says = said.loc[judged["trial"]].to_numpy()
        wider = TRAINED if judge in trained else 1.0
        number = int(of_task["trial"].nunique())
        found.append(_calibration(cast(Asked, task), str(judge), pool, judged, says, number, wider))
    return found


def _calibration(
    task: Asked,
    judge: str,
    pool: str,
    rows: pd.DataFrame,
    says_human: NDArray[np.bool_],
    judged_by_people: int,
    wider: float,
) -> Calibration:
    person_says = (rows["verdict"] == "human").to_numpy()
    is_human = (rows["truth"] == "human").to_numpy()
    whose = np.where(is_human, "people", rows["agent"].to_numpy())
    trials = _codes(rows["trial"])
    # A machine, and a person without a name, answered each trial as if another had.
    has_name = is_human & ~rows["agent"].isin(NAMELESS).to_numpy()
    participants = _codes(np.where(has_name, rows["agent"].to_numpy(), rows["trial"].to_numpy()))
    ways = [_codes(rows["stimulus"]), _codes(rows["judge"]), participants]

    def share(values: NDArray[np.generic], where: NDArray[np.bool_] | None = None) -> Figure:
        part = np.ones(len(rows), dtype=bool) if where is None else where
        of_part = [way[part] for way in ways]
        return Figure.of(clustered_mean(values[part].astype(np.float64), of_part, wider=wider))

    agents = []
    for agent in sorted(set(whose), key=lambda name: (name != "people", name)):
        of_agent = whose == agent
        difference = says_human[of_agent].astype(float) - person_says[of_agent]
        of_ways = [way[of_agent] for way in ways]
        agents.append(
            AgentCalibration(
                agent=str(agent),
                trials=len(np.unique(trials[of_agent])),
                judge_says=float(says_human[of_agent].mean()),
                people_say=float(person_says[of_agent].mean()),
                difference=Figure.of(clustered_mean(difference, of_ways, bounds=(-1, 1), wider=wider)),
            )
        )
    agrees = says_human == person_says
    constant = bool(person_says.mean() >= 0.5)
    above = agrees.astype(float) - (person_says == constant)
    return Calibration(
        task=task,
        judge=judge,
        pool=pool,
        is_trained=wider > 1,
        trials=len(np.unique(trials)),
        without_verdict=judged_by_people - len(np.unique(trials)),
        people=int(rows["judge"].nunique()),
        agreement=share(agrees),
        constant="human" if constant else "machine",
        constant_agrees=float((person_says == constant).mean()),
        above_constant=Figure.of(clustered_mean(above, ways, bounds=(-1, 1), wider=wider)),
        people_agree=Figure.of(people_agree(person_says, trials, ways)),
        after_human=share(person_says, says_human),
        after_machine=share(person_says, ~says_human),
        agents=agents,
    )


def _codes(values: object) -> Codes:
    return np.unique(np.asarray(values), return_inverse=True)[1]


def clustered_mean(
    values: Floats, ways: Sequence[Codes], *, bounds: tuple[float, float] = (0, 1), wider: float = 1.0
) -> Estimate:
    """The mean of ``values`` with its 95 % interval. ``ways`` are the clusters of each value, of stimuli first, as
    numbers. Errors are multiplied by ``wider``; the interval ends at ``bounds``. NaN without values; no interval with
    fewer than :data:`LEAST` stimuli."""
    if len(values) == 0:
        return NO_FIGURE
    value = float(np.mean(values))
    errors = (np.asarray(values, dtype=np.float64) - value) / len(values)
    numbers = [len(np.unique(way)) for way in ways]
    if numbers[0] < LEAST:
        return Estimate(value)
    used = [way for way, number in zip(ways, numbers, strict=True) if number >= LEAST]
    variance = _variance_of_ways(errors, used)
    fewest = min(number for number in numbers if number >= LEAST)
    return _interval(value, variance * wider**2, fewest, bounds)


def _variance_of_ways(errors: Floats, ways: Sequence[Codes]) -> float:
    """The variance of a sum of ``errors`` with clusters in several ways, and never below that of one of them: by chance
    the sum and the differences may be, and even below 0."""
    total = 0.0
    single = []
    for size in range(1, len(ways) + 1):
        for chosen in combinations(ways, size):
            part = _variance(errors, _together(chosen))
            total += part if size % 2 else -part
            if size == 1:
                single.append(part)
    return max(total, *single)


def _together(ways: Sequence[Codes]) -> Codes:
    together = ways[0]
    for way in ways[1:]:
        together = _codes(together * (way.max() + 1) + way)
    return together


def _variance(errors: Floats, clusters: Codes) -> float:
    sums = np.bincount(clusters, errors)
    number = len(np.unique(clusters))
    return float((sums**2).sum() * number / (number - 1)) if number >= LEAST else 0.0


def _interval(value: float, variance: float, clusters: int, bounds: tuple[float, float]) -> Estimate:
    if variance < ROUNDING:
        # Values that are all the same. An interval without a width would say that nothing else can ever come, so each
        # cluster counts as one observation (Clopper and Pearson 1934).
        lowest = ((1 - CONFIDENCE) / 2) ** (1 / clusters)  # of a share that was 1 in each cluster
        half = (bounds[1] - bounds[0]) * (1 - lowest)
    else:
        half = float(stdtrit(clusters - 1, (1 + CONFIDENCE) / 2) * math.sqrt(variance))
    return Estimate(value, max(bounds[0], value - half), min(bounds[1], value + half))


def people_agree(says: NDArray[np.bool_], trials: Codes, ways: Sequence[Codes]) -> Estimate:
    """How often two people say the same of an answer, over all pairs of verdicts on one trial, with its 95 % interval;
    NaN where no trial has two verdicts. ``ways`` are those of :func:`clustered_mean`: stimuli, judges, participants."""
    stimuli, judges, participants = ways
    value, shares = _pairs(says, trials, np.ones(len(says), dtype=bool))
    if math.isnan(value):
        return NO_FIGURE
    known = ~np.isnan(shares)
    errors = (shares[known] - value) / known.sum()
    persons = np.unique(judges[known])
    fewest = min(len(np.unique(stimuli[known])), len(persons))
    if fewest < LEAST:
        return Estimate(value)
    without = np.array([_pairs(says, trials, judges != person)[0] for person in persons])
    without = without[~np.isnan(without)]
    number = len(without)
    of_people = (number - 1) / max(number, 1) * float(((without - value) ** 2).sum())
    of_stimuli = _variance_of_ways(errors, [stimuli[known], participants[known]])
    of_verdicts = _variance(errors, np.arange(len(errors)))
    variance = max(of_stimuli + of_people - 4 * of_verdicts, of_stimuli, of_people)
    return _interval(value, variance, fewest, (0, 1))


def _pairs(says: NDArray[np.bool_], trials: Codes, used: NDArray[np.bool_]) -> tuple[float, Floats]:
    """The mean over the verdicts that are ``used`` of the share of others on the same trial that say the same; and this
    share for each verdict, NaN where there is no other, and of a verdict that is not used."""
    number = np.bincount(trials, used)[trials] - 1
    human = np.bincount(trials, used & says)[trials]
    alike = np.where(says, human - 1, number - human)
    shares = np.full(len(says), np.nan)
    known = used & (number > 0)
    shares[known] = alike[known] / number[known]
    return (float(shares[known].mean()) if known.any() else math.nan), shares
