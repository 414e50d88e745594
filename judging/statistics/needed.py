"""How many more judges, stimuli and participants would decide about an agent that is undecided.

**What is asked.** How large does the study have to be, so that in POWER of such studies one of the two tests decides:
the agent passes (:func:`judging.statistics.contrasts.beyond_bounds`), or judges tell it from people? The true
detectability is taken to be the one that was found. Holm's correction stays as strict as it is today.

**From which variance.** From that of the study itself, as the intervals have it (:class:`Jackknife`). Its seven parts
are variances between judges, stimuli, people and their intersections. The variance between judges holds what judges
alone add, and also what every intersection with judges adds. So what a kind adds alone follows by inclusion and
exclusion. :func:`enlarged` divides each of these parts by how much the study grows, and adds them up again. The result
is a :class:`Jackknife`, from which the same intervals follow as on the page.

**Two ways to grow.** If all kinds grow alike, and each judge gives as many verdicts as before, every part is divided by
the same number. Then no part has to be estimated, so this is the figure that the page tells first. If one kind grows
alone, the parts of the others stay, and may be too large whatever the number.

**What cannot be known.** Two judges show very little of how judges vary. Below LEAST of a kind nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from judging.statistics.contrasts import ALPHA, beyond_bounds, rates_of_agents
from judging.statistics.jackknife import DIMENSIONS, ROUNDING, Floats, Jackknife
from judging.statistics.measures import DETECTABILITY
from serving.files.words import listed

if TYPE_CHECKING:
    import pandas as pd

POWER = 0.8
MOST_TIMES = 1000.0  # a study that many times as large is out of reach
STEPS = 10  # of halving, by which a number of times is found to 1 in 100
KINDS = ("judges", "stimuli", "participants")  # in the order of the dimensions of a Jackknife
LEAST = {"judges": 6, "stimuli": 10, "participants": 6}  # fewer say little of others like them
BOTH = np.arange(2)  # the cells of people's answers and of an agent's


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would decide about an agent that a judge's verdicts leave undecided, in 4 of 5 such studies.

    None stands for a kind that is not drawn, such as a single judge, and for a number that cannot be known."""

    task: str = ""
    """The task that was answered; "" until scoring fills it in."""
    judge: str = ""
    """Whose verdicts they are; "people" are all judges who are people."""
    agent: str
    """The agent that is undecided."""
    times: float | None = None
    """How many times as large the whole study has to be."""
    more_judges: int | None = None
    """How many more judges that is; each gives as many verdicts as those of today."""
    more_stimuli: int | None = None
    """How many more stimuli that is."""
    more_people: int | None = None
    """How many more participants that is; None where each of them answered a single stimulus."""
    judges_alone: int | None = None
    """How many more judges would decide on the same answers; None also where no number does."""
    stimuli_alone: int | None = None
    """How many more stimuli would decide with the same judges, who then give more verdicts; None as above."""
    people_alone: int | None = None
    """How many more participants would decide with the same judges and stimuli; None as above."""
    why: str = ""
    """Why ``times`` cannot be known; "" where it is."""


def needed(
    verdicts: pd.DataFrame, agents: Sequence[str], undecided: Collection[str], bounds: float, *, is_trained: bool
) -> list[Needed]:
    """What would decide about each agent that is ``undecided`` by a judge's ``verdicts`` on ``agents``.

    A trained judge (``is_trained``) may be below 0.5 by its folds alone, so that only passing decides there."""
    names, result = rates_of_agents(verdicts, agents)
    cells = np.array([(0, at) for at in range(1, len(names))], dtype=np.int64).reshape(-1, 2)
    told_by = dict(zip(names[1:], _strictness(result.p(cells, DETECTABILITY, 0.5)), strict=True))
    within_by = dict(zip(names[1:], _strictness(beyond_bounds(result, cells, bounds)), strict=True))
    rows = []
    for at, agent in enumerate(names):
        if agent in undecided:
            test = _Decision(told_by[agent], within_by[agent], bounds, is_trained)
            rows.append(replace(_of_agent(_of_two_cells(result, at), test), agent=agent))
    return rows


@dataclass(frozen=True, slots=True)
class _Decision:
    """The two tests that decide, each at 0.05 divided by what Holm's correction multiplies its p with."""

    told: float
    """What p of "as often taken for a person as people" is multiplied with."""
    within: float
    """What p of a detectability beyond the bounds is multiplied with."""
    bounds: float
    """The half-width around 0.5 within which an agent passes."""
    is_trained: bool
    """Whether a detectability below 0.5 is no finding."""

    def probability(self, study: Jackknife) -> float:
        """How probable it is that one of the tests decides in a ``study`` with these rates and this variance."""
        value = float(study.sum(BOTH, DETECTABILITY))
        error = float(study.deviation(BOTH, DETECTABILITY)[0])
        low, high = map(float, study.interval(BOTH, DETECTABILITY, 1 - ALPHA / self.told))
        if value > 0.5:
            told = float(ndtr((low - 0.5) / error))
        else:
            told = 0.0 if self.is_trained else float(ndtr((0.5 - high) / error))
        low, high = map(float, study.interval(BOTH, DETECTABILITY, 1 - 2 * ALPHA / self.within))
        above = float(ndtr((low - 0.5 + self.bounds) / error))
        below = float(ndtr((0.5 + self.bounds - high) / error))
        return max(told, above + below - 1)


def _of_agent(study: Jackknife, decision: _Decision) -> Needed:
    is_nested = _has_nested_people(study)
    number = np.where(study.clusters > 0, study.clusters, np.inf).min(axis=1)  # as the tests count them
    drawn = [at for at in range(3) if 1 < number[at] < math.inf and not (at == 2 and is_nested)]
    few = [f"{LEAST[KINDS[at]]} {KINDS[at]}" for at in drawn if number[at] < LEAST[KINDS[at]]]
    nobody = Needed(agent="")
    if few:
        return replace(nobody, why=f"at least {listed(few)} must be there")
    error, freedom = map(float, study.deviation(BOTH, DETECTABILITY))
    if not error > ROUNDING or math.isnan(freedom):
        return replace(nobody, why="the verdicts do not vary, so that nothing shows how many are needed")
    together = _fewest(study, drawn, decision, 1.0)
    if together is None:
        return replace(nobody, why="more trials of the same kind would not decide")
    more = dict.fromkeys(range(3), None) | {at: about((together - 1) * float(number[at])) for at in drawn}
    alone: dict[int, int | None] = dict.fromkeys(range(3), None)
    for at in drawn:
        # One kind alone cannot decide sooner than all of them: where it seems to, its part is estimated too large.
        times = _fewest(study, [at], decision, together)
        if times is not None:
            alone[at] = about((times - 1) * float(number[at]))
    return Needed(
        agent="",
        times=round(together, 2),
        more_judges=more[0],
        more_stimuli=more[1],
        more_people=more[2],
        judges_alone=alone[0],
        stimuli_alone=alone[1],
        people_alone=alone[2],
    )


def _fewest(study: Jackknife, grown: Sequence[int], decision: _Decision, least: float) -> float | None:
    """The least number of times, at least ``least``, to which the kinds ``grown`` have to grow; None beyond
    MOST_TIMES."""
    if decision.probability(enlarged(study, grown, MOST_TIMES)) < POWER:
        return None
    low = least
    high = MOST_TIMES
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        if decision.probability(enlarged(study, grown, middle)) < POWER:
            low = middle
        else:
            high = middle
    return high


def enlarged(study: Jackknife, grown: Collection[int], times: float) -> Jackknife:
    """The figures of a study with the same rates, in which the kinds ``grown`` (0 judges, 1 stimuli, 2 people) are
    ``times`` as many, and the verdicts too.

    People who answered one stimulus each grow with the stimuli."""
    kinds = set(grown)
    if 1 in kinds and _has_nested_people(study):
        kinds.add(2)
    parts: dict[tuple[int, ...], Floats] = {}
    variances = dict(zip(DIMENSIONS, study.products, strict=True))
    for kind in sorted(DIMENSIONS, key=len, reverse=True):
        wider = [part for other, part in parts.items() if set(kind) < set(other)]
        parts[kind] = variances[kind] - sum(wider, np.zeros_like(variances[kind]))
    for kind in parts:
        if kinds & set(kind):
            parts[kind] = parts[kind] / times
    products = [sum(part for other, part in parts.items() if set(kind) <= set(other)) for kind in DIMENSIONS]
    is_grown = np.isin(np.arange(3), list(kinds))
    is_drawn = study.clusters.max(axis=1) > 1
    of_kind = np.where(is_grown, times, 1.0)[:, None]
    of_cell = np.where((study.clusters[is_grown] > 0).any(axis=0), times, 1.0)
    return replace(
        study,
        number=study.number * of_cell,
        trials=study.trials * of_cell,
        clusters=study.clusters * np.where(study.clusters > 1, of_kind, 1.0),
        freedom=(study.freedom + 1) * of_kind - 1,
        shared=study.shared / of_kind[:, None],
        products=np.array(products),
        is_exact=study.is_exact & bool(is_grown[is_drawn].all()),
    )


def _has_nested_people(study: Jackknife) -> bool:
    """Whether each person answered a single stimulus, as people without a name do: then there is no more variance
    between people than between people on a stimulus."""
    people, on_stimulus = study.products[[3, 5]]
    return bool(np.allclose(people, on_stimulus, atol=ROUNDING**2))


def _of_two_cells(result: Jackknife, at: int) -> Jackknife:
    """The rates of people's answers and of those in the cell ``at`` alone."""
    cells = np.array([0, at])
    return Jackknife(
        result.value[cells],
        result.number[cells],
        result.trials[cells],
        result.clusters[:, cells],
        result.freedom[:, cells],
        result.shared[:, cells[:, None], cells],
        result.products[:, cells[:, None], cells],
        result.is_exact[cells],
    )


def _strictness(p: Floats) -> list[float]:
    """What Holm's correction multiplies each p [n] with: the number of p that are not smaller. NaN is no p."""
    return [float(max(1, (p >= one).sum())) for one in p]


def about(number: float) -> int:
    """A number rounded up to two significant digits, and to 1 at least."""
    whole = max(1, math.ceil(number - ROUNDING))
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return math.ceil(whole / unit) * unit
