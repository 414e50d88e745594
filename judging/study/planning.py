"""How many judges, trials and stimuli a study needs for intervals of a wanted width.

Judges are drawn, and so are stimuli. Whether a verdict is right is the mean of whose answer it is about, plus
independent parts of its judge, its stimulus, and a rest. The variance of a rate of n verdicts is

    between judges x sum(n_judge^2) / n^2  +  between stimuli x sum(n_stimulus^2) / n^2  +  rest / n.

Detectability, the mean of p(H|H) and p(M|M), has a quarter of the sum of their variances and twice their covariance. An
interval's half-width is Student's t of the smaller number of clusters less one, times the root of the variance, as in
:mod:`judging.measures`. Below what the stimuli add, only more stimuli help.

A plan takes the parts of :data:`DEFAULT`; a running study takes those estimated from its verdicts by the method of
moments: from products of deviations of two verdicts of a judge, of two of a stimulus, and of a verdict with itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from agents.errors import InputError
from judging.measures import ALL, CONFIDENCE
from judging.verdicts import SAID
from serving.terminal import plain_table, print_table

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["p_machine", "detectability"]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Chosen = NDArray[np.bool_]
MOST_JUDGES = 1_000_000  # more than there are; beyond it a width counts as one that cannot be reached


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the variance of a verdict's being right."""

    judges: float
    stimuli: float
    rest: float


@dataclass(frozen=True, slots=True)
class Variance:
    """The parts for verdicts on people's and on a machine's answers, and the covariances between the two."""

    human: Parts
    machine: Parts
    judges: float = 0.0
    stimuli: float = 0.0


DEFAULT = Variance(Parts(0.0135, 0.018, 0.2185), Parts(0.0135, 0.018, 0.2185))
"""Judges: the 2025 paper's captions have detectability .57 with a standard deviation of .11 over 293 online judges of
44 trials; binomial noise of p(H|H) .67 and p(M|M) .46 explains .0053 of that variance of .0121, which leaves .0068, and
twice as much for either rate if the two do not hang together. Stimuli: no paper tells; a standard deviation of .134,
which is .4 of the verdicts' noise in a probit model, is assumed. Together .25, a rate of one half."""


@dataclass(frozen=True, slots=True)
class Design:
    """A study whose judges give ``per_human`` verdicts on people's answers each and ``per_machine`` on each agent's.

    ``uneven``: how many times the sums of squares, of judges and of stimuli, are those of verdicts dealt evenly; of
    people's answers, then of the agent's.
    """

    judges: int
    per_human: float
    per_machine: float
    stimuli: int
    agents: int = 1
    uneven: tuple[tuple[float, float], tuple[float, float]] = ((1.0, 1.0), (1.0, 1.0))

    def half_width(self, variance: Variance, measure: Measure, *, together: bool = False) -> float:
        """Of the 95 % interval of an agent, or of all ``together``, which is rather too wide: what a stimulus adds
        counts as the same for all agents."""
        number = [self.judges * self.per_human, self.judges * self.per_machine * (self.agents if together else 1)]
        human, machine = (
            parts.judges * _evenly(n, self.judges) * more[0]
            + parts.stimuli * _evenly(n, self.stimuli) * more[1]
            + parts.rest / n
            for parts, n, more in zip((variance.human, variance.machine), number, self.uneven, strict=True)
        )
        both = variance.judges / self.judges + variance.stimuli / self.stimuli
        return _half(machine if measure == "p_machine" else (human + machine + 2 * both) / 4, self.judges, self.stimuli)

    def floor(self, variance: Variance, measure: Measure) -> float:
        """The half-width that no number of judges goes below."""
        of_machine = variance.machine.stimuli
        of_both = (variance.human.stimuli + of_machine + 2 * variance.stimuli) / 4
        return _half((of_machine if measure == "p_machine" else of_both) / self.stimuli, self.stimuli, self.stimuli)


def _evenly(number: float, clusters: int) -> float:
    """sum(n_cluster^2) / n^2 of ``number`` verdicts dealt on clusters as evenly as whole verdicts can be."""
    each = number / clusters
    over = each % 1
    return (1 + over * (1 - over) / each**2) / clusters


def _half(variance: float, judges: int, stimuli: int) -> float:
    fewest = min(judges, stimuli)
    return float(stdtrit(fewest - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(max(variance, 0.0)) if fewest > 1 else math.nan


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The fewest judges that reach the wanted half-width; None where none do: then the half-widths are the floor."""

    judges: int | None
    per_judge: int
    stimuli: int
    of_each: float
    of_all: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The row that was asked about, then rows around it."""

    half_width: float
    measure: Measure
    agents: int
    rows: Sequence[PlanRow]


def plan(
    half_width: float,
    agents: int,
    per_judge: int,
    stimuli: int,
    *,
    measure: Measure = "detectability",
    variance: Variance = DEFAULT,
) -> Plan:
    """The judges of ``per_judge`` trials (half people's, half the ``agents``' equally) that bring each agent's interval
    to ``half_width`` (0 to 0.5); also with half and twice as many trials and stimuli. Raises InputError."""
    if not 0 < half_width < 0.5:
        raise InputError(f"the half-width must be between 0 and 0.5, not {half_width}")
    if agents < 1 or per_judge < 2 or stimuli < 2:
        raise InputError("a study has at least one agent, two trials per judge and two stimuli")
    wanted = (per_judge, stimuli)
    others = [(max(2, round(per_judge * m)), max(2, round(stimuli * s))) for s in (0.5, 1, 2) for m in (0.5, 1, 2)]
    rows = []
    for trials, of_set in dict.fromkeys([wanted, *others]):
        study = Design(2, trials / 2, trials / 2 / agents, of_set, agents)
        needed = _fewest(half_width, study, variance, measure)
        if needed is None:
            widths = [study.floor(variance, measure)] * 2
        else:
            study = replace(study, judges=needed)
            widths = [study.half_width(variance, measure, together=together) for together in (False, True)]
        rows.append(PlanRow(needed, trials, of_set, *widths))
    return Plan(half_width, measure, agents, rows)


def _fewest(wanted: float, study: Design, variance: Variance, measure: Measure) -> int | None:
    def reached(judges: int) -> bool:
        return replace(study, judges=judges).half_width(variance, measure) <= wanted

    low, high = 1, MOST_JUDGES  # one judge has no interval
    if not reached(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def print_plan(study: Plan) -> None:
    """Print the plan as a table, and what cannot be reached."""
    name = "p(M|M)" if study.measure == "p_machine" else study.measure
    print(f"judges for {name} ± {study.half_width:g} of each of {study.agents:,} agents, 95 %:")
    table = plain_table("judges", "trials per judge", "stimuli", "± of each agent", "± of all")
    for row in study.rows:
        judges = "not to be reached" if row.judges is None else f"{row.judges:,}"
        table.add_row(judges, f"{row.per_judge:,}", f"{row.stimuli:,}", f"{row.of_each:.3f}", f"{row.of_all:.3f}")
    print_table(table)
    short = {row.stimuli: row.of_each for row in study.rows if row.judges is None}
    for stimuli, floor in sorted(short.items()):
        print(f"with {stimuli:,} stimuli no number of judges brings it below ± {floor:.3f}: more stimuli do")


def half_widths(verdicts: pd.DataFrame, wanted: float | None = None) -> list[dict[str, Any]]:
    """How precise the verdicts of a task are now, of all agents together first, then of each.

    A row has ``agent``, ``judges``, ``p_machine`` and ``detectability``: half-widths of 95 % intervals, NaN while too
    few have judged. With ``wanted`` also ``needed``: more judges like these that bring detectability to it, None where
    that is unknown or out of reach.
    """
    sample = _Verdicts(verdicts)
    rows = []
    for at in range(-1, len(sample.agents)):
        of_agent = sample.is_machine if at < 0 else sample.is_machine & (sample.agent == at)
        variance = sample.variance(of_agent, together=True)
        design = sample.design(of_agent)
        row: dict[str, Any] = {"agent": ALL if at < 0 else sample.agents[at], "judges": design.judges}
        measures: tuple[Measure, ...] = ("p_machine", "detectability")
        for measure in measures:
            row[measure] = design.half_width(variance, measure) if design.per_machine else math.nan
        if wanted is not None:
            row["needed"] = _still_needed(wanted, row["detectability"], design, variance)
        rows.append(row)
    return rows


def _still_needed(wanted: float, now: float, design: Design, variance: Variance) -> int | None:
    if math.isnan(now):
        return None
    if now <= wanted:
        return 0
    judges = _fewest(wanted, design, variance, "detectability")
    return None if judges is None else max(judges - design.judges, 1)


class _Verdicts:
    """Verdicts as numbers [n]: judges, stimuli and agents as codes."""

    def __init__(self, verdicts: pd.DataFrame) -> None:
        import pandas as pd

        judged = verdicts[verdicts["verdict"].isin(SAID)]
        self.right = (judged["verdict"] == judged["truth"]).to_numpy(dtype=np.float64)
        self.is_machine = (judged["truth"] == "machine").to_numpy()
        self.judge, self.stimulus = (pd.factorize(judged[name])[0].astype(np.int64) for name in ("judge", "stimulus"))
        whose = pd.Categorical(judged["agent"].where(self.is_machine))
        self.agents = [str(name) for name in whose.categories]
        self.agent = whose.codes.astype(np.int64)  # -1: people
        self.cell = _codes(self.judge, self.stimulus)
        self._nobody = np.zeros_like(self.agent)
        self._human = self._above(~self.is_machine, self._nobody)
        self._human_parts = self._parts(*self._human, self._nobody)

    def design(self, of_agent: Chosen) -> Design:
        human = ~self.is_machine
        judges = len(np.unique(self.judge[human | of_agent]))
        stimuli = min(len(np.unique(self.stimulus[group])) for group in (human, of_agent))
        number = [float(group.sum()) for group in (human, of_agent)]
        if not all(number):
            return Design(judges, 0.0, 0.0, stimuli)
        uneven = [
            (
                _squares(self.judge[group]) / n**2 / _evenly(n, judges),
                _squares(self.stimulus[group]) / n**2 / _evenly(n, stimuli),
            )
            for group, n in zip((human, of_agent), number, strict=True)
        ]
        return Design(judges, number[0] / judges, number[1] / judges, stimuli, uneven=(uneven[0], uneven[1]))

    def variance(self, of_agent: Chosen, *, together: bool = False) -> Variance:
        """By moments, of people's answers and those ``of_agent``; NaN where too little is known."""
        machine = self._above(of_agent, self._nobody if together else np.maximum(self.agent, 0))
        parts = self._parts(*machine, self._nobody if together else self.agent)
        of_both = [_products(groups, self.cell, self._human, machine)[0] for groups in (self.judge, self.stimulus)]
        return Variance(self._human_parts, parts, *of_both)

    def _above(self, chosen: Chosen, group: Codes) -> tuple[Chosen, Floats]:
        """The chosen verdicts, and what each has above its group's mean; 0 of the others."""
        weight = chosen.astype(np.float64)
        mean = np.bincount(group, weight * self.right) / np.maximum(np.bincount(group, weight), 1)
        return chosen, weight * (self.right - mean[group])

    def _parts(self, chosen: Chosen, above: Floats, group: Codes) -> Parts:
        places = np.flatnonzero(chosen)
        verdicts = np.ones(len(places), dtype=np.bool_), above[places]
        judge, stimulus, cell, agent = (codes[places] for codes in (self.judge, self.stimulus, self.cell, group))
        # An agent's answer to a stimulus is what is hard or easy to tell, so only verdicts on the same agent count; a
        # judge has too few on each agent for that.
        answer, same_answer = _codes(stimulus, agent), _codes(cell, agent)
        of_judges, judge_pairs = _products(judge, cell, verdicts, verdicts)
        of_stimuli, answer_pairs = _products(answer, same_answer, verdicts, verdicts)
        if not judge_pairs or not answer_pairs:
            return Parts(math.nan, math.nan, math.nan)
        # A mean that is taken away takes its own variance along: of all verdicts' from the judges' products, of an
        # agent's from the others. Three equations give it back.
        number, squares = float(len(places)), _squares(agent)
        of_all = np.array([_squares(judge), _squares(stimulus), number]) / number**2
        of_each = np.array([_squares(_codes(judge, agent)), _squares(answer), number]) / squares
        equations = np.array([[1, 0, 0] - of_all, [0, 1, 0] - of_each, [1, 1, 1] - of_each])
        moments = np.array([of_judges, of_stimuli, float(np.mean(verdicts[1] ** 2))])
        parts = np.linalg.lstsq(equations, moments, rcond=1e-9)[0]
        return Parts(*(max(float(part), 0.0) for part in parts))


def _codes(first: Codes, second: Codes) -> Codes:
    """A number for each pair of codes."""
    import pandas as pd

    codes: Codes = pd.factorize(first * (int(second.max(initial=0)) + 1) + second)[0].astype(np.int64)
    return codes


def _products(
    groups: Codes, cells: Codes, first: tuple[Chosen, Floats], second: tuple[Chosen, Floats]
) -> tuple[float, float]:
    """The mean product of two verdicts of a group that are not of a cell, and the number of such pairs."""
    product, pairs = 0.0, 0.0
    for sign, by in ((1, groups), (-1, cells)):
        above = [np.bincount(by, deviations) for _, deviations in (first, second)]
        number = [np.bincount(by, chosen.astype(np.float64)) for chosen, _ in (first, second)]
        product += sign * float(above[0] @ above[1])
        pairs += sign * float(number[0] @ number[1])
    return (product / pairs if pairs else 0.0), pairs


def _squares(groups: Codes) -> float:
    return float((np.bincount(groups).astype(np.float64) ** 2).sum())
