"""What an AI judge's verdicts are worth: how well they predict those of people on the same answers.

All figures are means over the verdicts of people: one row is one person's verdict on one answer, beside the AI judge's
verdict on it. Verdicts on one stimulus, and verdicts of one person, are dependent. So the variance is that of two-way
clusters: by stimulus, plus by person, minus by single verdict (Cameron, Gelbach and Miller 2011, eq. 2.11), each with
the correction G/(G - 1). Intervals take Student's t with the smaller number of clusters, minus 1, as its degrees of
freedom. Where only one person judged, the figures hold for this person.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from agents.stimuli import Asked
from judging.cards.card import AgentCalibration, Calibration, Figure
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
LEAST = 2  # clusters: below that nothing is known of others
ROUNDING = 1e-18  # a variance below it is 0
Floats = NDArray[np.float64]


def calibrate(verdicts: pd.DataFrame, pool: str) -> list[Calibration]:
    """The calibration of each AI judge on each task.

    ``verdicts`` is the table of :func:`judging.scores.verdicts.read_verdicts` over people's folder and the AI judges'
    folder on the same trials. Catch trials, repeats, further verdicts and excluded people do not count. A judge and
    task without common answers are left out."""
    counted = verdicts[verdicts["verdict"].isin(VERDICTS) & verdicts["excluded"].isna() & (verdicts["sample"] == 0)]
    counted = counted[~counted["catch"].astype(bool) & counted["repeat_of"].isna()]
    is_person = counted["judge_kind"] == "human"
    people = counted[is_person]
    found = []
    for (task, judge), of_judge in counted[~is_person].groupby(["asked", "judge"], sort=True):
        said = of_judge.groupby("trial")["verdict"].first() == "human"
        rows = people[(people["asked"] == task) & people["trial"].isin(said.index)]
        if rows.empty:
            continue
        found.append(_calibration(cast(Asked, task), str(judge), pool, rows, said.loc[rows["trial"]].to_numpy()))
    return found


def _calibration(task: Asked, judge: str, pool: str, rows: pd.DataFrame, says_human: NDArray[np.bool_]) -> Calibration:
    person_says = (rows["verdict"] == "human").to_numpy()
    whose = rows["agent"].where(rows["truth"] == "machine", "people").to_numpy()
    stimuli = rows["stimulus"].to_numpy()
    judges = rows["judge"].to_numpy()
    agents = []
    for agent in sorted(set(whose), key=lambda name: (name != "people", name)):
        of_agent = whose == agent
        difference = says_human[of_agent].astype(float) - person_says[of_agent]
        agents.append(
            AgentCalibration(
                agent=str(agent),
                trials=int(rows["trial"][of_agent].nunique()),
                judge_says=float(says_human[of_agent].mean()),
                people_say=float(person_says[of_agent].mean()),
                difference=Figure.of(two_way_mean(difference, stimuli[of_agent], judges[of_agent], bounds=(-1, 1))),
            )
        )
    others, is_known = _share_of_others(rows["trial"].to_numpy(), person_says)
    return Calibration(
        task=task,
        judge=judge,
        pool=pool,
        trials=int(rows["trial"].nunique()),
        people=int(rows["judge"].nunique()),
        agreement=_figure(says_human == person_says, stimuli, judges),
        people_agree=_figure(others[is_known], stimuli[is_known], judges[is_known]),
        after_human=_figure(person_says[says_human], stimuli[says_human], judges[says_human]),
        after_machine=_figure(person_says[~says_human], stimuli[~says_human], judges[~says_human]),
        agents=agents,
    )


def _figure(values: NDArray[np.generic], stimuli: ArrayLike, people: ArrayLike) -> Figure:
    return Figure.of(two_way_mean(values.astype(np.float64), stimuli, people))


def _share_of_others(trials: NDArray[np.object_], says: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """For each verdict the share of the other people's verdicts on the same trial that are equal to it, and whether
    there are any."""
    codes = np.unique(trials, return_inverse=True)[1]
    number = np.bincount(codes)[codes] - 1
    human = np.bincount(codes, says)[codes]
    alike = np.where(says, human - 1, number + 1 - human - 1)
    is_known = number > 0
    return np.divide(alike, number, out=np.zeros(len(says)), where=is_known), is_known


def two_way_mean(
    values: Floats, first: ArrayLike, second: ArrayLike, *, bounds: tuple[float, float] = (0, 1)
) -> Estimate:
    """The mean of ``values`` with its 95 % interval; ``first`` and ``second`` are the clusters of each value, such as
    stimulus and person. The interval ends at ``bounds``. NaN without values; no interval with fewer than
    :data:`LEAST` stimuli."""
    if len(values) == 0:
        return NO_FIGURE
    value = float(np.mean(values))
    errors = (np.asarray(values, dtype=np.float64) - value) / len(values)
    of_first, number_first = _variance(errors, first)
    if number_first < LEAST:
        return Estimate(value)
    of_second, number_second = _variance(errors, second)
    freedom = number_first - 1
    variance = of_first
    if number_second >= LEAST:
        freedom = min(number_first, number_second) - 1
        of_both, _ = _variance(errors, np.arange(len(values)))
        # The difference may be below each part by chance, and even below 0: then the larger part is taken.
        variance = max(of_first + of_second - of_both, of_first, of_second)
    if variance < ROUNDING:
        return Estimate(value, *_where_all_are_alike(value, freedom + 1, bounds))
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2) * math.sqrt(variance))
    return Estimate(value, max(bounds[0], value - half), min(bounds[1], value + half))


def _where_all_are_alike(value: float, number: int, bounds: tuple[float, float]) -> tuple[float, float]:
    """The ends of the interval of values that are all the same. Their variance is 0, and an interval without a width
    would say that nothing else can ever come. So each cluster counts as one observation (Clopper and Pearson 1934)."""
    lowest = ((1 - CONFIDENCE) / 2) ** (1 / number)  # of a share that was 1 in each cluster
    width = (bounds[1] - bounds[0]) * (1 - lowest)
    return max(bounds[0], value - width), min(bounds[1], value + width)


def _variance(errors: Floats, clusters: ArrayLike) -> tuple[float, int]:
    codes = np.unique(np.asarray(clusters), return_inverse=True)[1]
    sums = np.bincount(codes, errors)
    number = len(sums)
    if number < LEAST:
        return 0.0, number
    return float((sums**2).sum() * number / (number - 1)), number
