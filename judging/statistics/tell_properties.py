"""What taking a tell away changed in the answers, and what correlation says of it beside the intervention.

A transformation may change more than its own property: captions cut to a common length lose the full stop at their end,
too. So each property, and the numbers that judges by a single cue go by, are counted in every version.

A property that differs between people and an agent, and that goes with the verdict "machine", seems to be a tell. If
nothing changes when it is taken away, alone and last, the judge goes by something else that goes with it. If much
changes without such a correlation, the judge uses it in another way than more or less of it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from judging.statistics.contrasts import ALPHA
from judging.statistics.jackknife import Floats
from judging.statistics.tell_changes import ALONE, PLANTED, TellChange
from judging.statistics.verdict_table import PEOPLE, JudgedAnswers, by_judge
from judging.statistics.versions import DRAWN, taken
from judging.tells.registry import PLANT
from judging.trial_sets import cues
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

Measure = Callable[[Mapping[str, Any]], float]
"""A property of a trial's answer as a number."""
MeasuresByTask = Mapping[str, Mapping[str, Measure]]
"""By task and name of the property."""
NO_MEASURES: MeasuresByTask = {}
OF_LENGTH = ("letters", "words", "texts", "fixations")  # in the order of cues.length
OF_PUNCTUATION = ("capitals", "marks", "digits", "letters beyond ASCII")  # in that of cues.punctuation
LEAST_AREA = 0.1  # from 0.5: a smaller distance of an AUC is not called a difference
LEAST_ABOVE = 0.05  # of detectability above 0.5: of less, what share of it went says nothing
LEAST_CORRELATION = 0.1  # a smaller one, to either side, is not called one


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedProperty:
    """What a property of the answers of people, or of an agent, was before and after something was taken away."""

    task: str
    """The task that was answered."""
    version: str
    """What was taken away, or planted ("plant:length")."""
    of: str
    """Whose answers: "people", or the agent's name."""
    answers: int
    """How many answers."""
    changed: float
    """The share of them that the version changed at all, 0 to 1."""
    measure: str
    """The property that is counted, such as "words"."""
    before: float
    """Its mean in the answers as drawn, in its own unit."""
    after: float
    """Its mean in the version."""
    differs_before: float | None = None
    """By how many standard deviations (of both, pooled) the agent's mean is above people's before; None of people,
    and where no answer has another value."""
    differs_after: float | None = None
    """The same after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedProperty:
    """What correlation says of a property, and what taking it away changed."""

    task: str
    """The task that was answered."""
    judge: str
    """Who judged; "people" are all people together."""
    agent: str
    """The agent whose answers stand beside people's."""
    tell: str
    """The name of what was taken away, whose measure this is about."""
    auc: float
    """The probability, 0 to 1, that an answer of the agent has more of it than one of people; 0.5 is no difference."""
    correlation: float | None
    """Of the property with the verdict "machine", -1 to 1 (Pearson); None where either is always the same."""
    removed: float | None
    """The share of what detectability has above 0.5 that went when it was taken away alone; None where that is less
    than 0.05."""
    removed_last: float | None
    """The same when it was the last that was taken away; None where it was the only one."""
    disagrees: str = ""
    """In words, where correlation says otherwise than the intervention; "" where it does not."""


@dataclass(slots=True)
class TellProperties:
    """The rows of all tasks so far."""

    changed: list[ChangedProperty] = field(default_factory=list)
    """What versions changed."""
    correlated: list[CorrelatedProperty] = field(default_factory=list)
    """What correlation says."""


def changed_properties(task: str, answers: JudgedAnswers, measures: Mapping[str, Measure]) -> list[ChangedProperty]:
    """By version of one change alone, whose answers they are, and property. ``answers`` are a task's trials in all
    versions, with their rows of the key; ``measures`` are by the names of tells."""
    drawn = {answer["trial"]: answer for answer in answers if answer.get("version") == DRAWN}
    pairs: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = defaultdict(list)
    for answer in answers:
        if answer.get("version") and answer["version_of"] in drawn:
            pairs[answer["version"]].append((drawn[answer["version_of"]], answer))
    what = taken(list(pairs))
    rows = []
    for version in (*what.tells, *(f"{PLANT}{name}" for name in what.planted)):
        rows += _of_version(task, version, pairs[version], measures)
    return rows


def _of_version(
    task: str,
    version: str,
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    measures: Mapping[str, Measure],
) -> list[ChangedProperty]:
    whose = np.array([_whose(before) for before, _ in pairs], dtype=object)
    is_changed = np.array([what_is_seen(before) != what_is_seen(after) for before, after in pairs], dtype=bool)
    before = _numbers([answer for answer, _ in pairs], measures)
    after = _numbers([answer for _, answer in pairs], measures)
    rows = []
    for of in [PEOPLE, *sorted(set(whose.tolist()) - {PEOPLE})]:
        is_of = whose == of
        if not is_of.any():
            continue
        for measure, values in before.items():
            others = after[measure]
            if np.ptp(values) == 0 and np.ptp(others) == 0:
                continue
            of_agent = of != PEOPLE
            rows.append(
                ChangedProperty(
                    task=task,
                    version=version,
                    of=of,
                    answers=int(is_of.sum()),
                    changed=float(is_changed[is_of].mean()),
                    measure=measure,
                    before=float(values[is_of].mean()),
                    after=float(others[is_of].mean()),
                    differs_before=_standardised(values[is_of], values[whose == PEOPLE]) if of_agent else None,
                    differs_after=_standardised(others[is_of], others[whose == PEOPLE]) if of_agent else None,
                )
            )
    return rows


def _whose(answer: Mapping[str, Any]) -> str:
    return PEOPLE if answer["truth"] == "human" else str(answer["agent"])


def what_is_seen(answer: Mapping[str, Any]) -> str:
    """The answer of a trial as a text: another one where judges see another answer."""
    return orjson.dumps(answer["answer"], option=orjson.OPT_SORT_KEYS).decode()


def _numbers(answers: Iterable[Mapping[str, Any]], measures: Mapping[str, Measure]) -> dict[str, Floats]:
    """By name the properties [answers], then the numbers that single cues go by."""
    rows = []
    for answer in answers:
        numbers = {name: measure(answer) for name, measure in measures.items()}
        numbers |= dict(zip(OF_LENGTH, cues.length(answer), strict=True))
        numbers |= dict(zip(OF_PUNCTUATION, cues.punctuation(answer), strict=True))
        rows.append(numbers)
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]} if rows else {}


def _standardised(of_agent: Floats, of_people: Floats) -> float | None:
    """Cohen's d of an agent's values above people's; None where none varies, or there is no one to compare with."""
    number = len(of_agent) + len(of_people) - 2
    if number < 1 or not len(of_people) or not len(of_agent):
        return None
    square = ((of_agent - of_agent.mean()) ** 2).sum() + ((of_people - of_people.mean()) ** 2).sum()
    if square == 0:
        return 0.0 if of_agent.mean() == of_people.mean() else None
    return float((of_agent.mean() - of_people.mean()) / math.sqrt(square / number))


def correlated_properties(
    task: str,
    verdicts: pd.DataFrame,
    answers: JudgedAnswers,
    measures: Mapping[str, Measure],
    changes: Sequence[TellChange],
) -> list[CorrelatedProperty]:
    """By judge, agent and tell, of the answers as drawn. ``verdicts`` are a task's that count, ``changes`` those of
    :func:`judging.statistics.tell_changes.tell_changes`."""
    drawn = [answer for answer in answers if answer.get("version") == DRAWN]
    by_row = {(row.judge, row.agent, row.tell, row.taken): row for row in changes}
    tells = [tell for tell in dict.fromkeys(row.tell for row in changes if row.taken != PLANTED) if tell in measures]
    values = {tell: {answer["trial"]: measures[tell](answer) for answer in drawn} for tell in tells}
    rows = []
    judged = verdicts[verdicts["verdict"].isin(VERDICTS) & (verdicts["version"] == DRAWN)]
    for judge, of_judge in by_judge(judged):
        is_machine = (of_judge["truth"] == "machine").to_numpy()
        says_machine = (of_judge["verdict"] == "machine").to_numpy(dtype=np.float64)
        agents = of_judge["agent"].to_numpy()
        for agent in sorted(set(agents[is_machine].tolist())):
            for tell in tells:
                alone = by_row.get((judge, agent, tell, ALONE))
                if alone is None:
                    continue
                last = by_row.get((judge, agent, tell, "last"))
                of_both = ~is_machine | (agents == agent)
                number = of_judge["trial"].map(values[tell]).to_numpy(dtype=np.float64)
                is_known = of_both & ~np.isnan(number)
                rows.append(_correlated(number[is_known], is_machine[is_known], says_machine[is_known], alone, last))
    return rows


def _correlated(
    values: Floats, is_machine: NDArray[np.bool_], says_machine: Floats, alone: TellChange, last: TellChange | None
) -> CorrelatedProperty:
    area = _area(values, is_machine)
    correlation = None
    if len(values) and np.ptp(values) > 0 and np.ptp(says_machine) > 0:
        correlation = float(np.corrcoef(values, says_machine)[0, 1])
    return CorrelatedProperty(
        task=alone.task,
        judge=alone.judge,
        agent=alone.agent,
        tell=alone.tell,
        auc=area,
        correlation=correlation,
        removed=_removed(alone),
        removed_last=None if last is None else _removed(last),
        disagrees=_disagrees(area, correlation, [row for row in (alone, last) if row is not None]),
    )


def _area(values: Floats, is_machine: NDArray[np.bool_]) -> float:
    """The area under the ROC curve, from ranks (Mann and Whitney 1947); equal values count half."""
    from scipy.stats import rankdata

    machines = int(is_machine.sum())
    people = len(values) - machines
    if not machines or not people:
        return math.nan
    ranks = rankdata(values)[is_machine].sum()
    return float((ranks - machines * (machines + 1) / 2) / (machines * people))


def _removed(row: TellChange) -> float | None:
    above = row.before - 0.5
    return row.change.value / above if above >= LEAST_ABOVE else None


def _disagrees(area: float, correlation: float | None, changes: Sequence[TellChange]) -> str:
    """Where correlation says otherwise than the intervention: both must be clear in what they say."""
    tested = [row for row in changes if row.holm is not None]
    if not tested or math.isnan(area):
        return ""
    first = tested[0]
    falls = [row for row in tested if (row.holm or 0.0) < ALPHA and row.change.value > 0]
    goes_with = correlation or 0.0
    seems = abs(area - 0.5) >= LEAST_AREA and abs(goes_with) >= LEAST_CORRELATION and (area - 0.5) * goes_with > 0
    figures = f"AUC {area:.2f}, correlation with “machine” {goes_with:+.2f}"
    if seems and not falls:
        return (
            f"{first.tell} seems to give {first.agent} away to {first.judge} ({figures}), but no fall of detectability "
            "is shown when it is taken away"
        )
    if falls and not seems:
        return (
            f"{first.tell} does not seem to give {first.agent} away to {first.judge} ({figures}), but detectability "
            f"falls by {falls[0].change.value:.2f} when it is taken away ({falls[0].taken})"
        )
    return ""
