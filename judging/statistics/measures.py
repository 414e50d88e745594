"""How well judges tell machines from people: rates, detectability, d', criterion, and their intervals.

p(H|H) and p(M|M) are the shares of people's and machines' answers judged rightly, detectability their mean. d' and the
criterion c (positive: bias to "human") need a correction of rates of 0 and 1 (:data:`Correction`; Macmillan and
Creelman 2005).
Intervals are those of :mod:`judging.statistics.jackknife`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from judging.statistics.jackknife import (
    Cells,
    Clusters,
    Codes,
    Drawn,
    Floats,
    Jackknife,
    jackknife,
    mean,
    of_judges,
    rates,
)
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.trial_sets.trial_set import VERDICTS
from serving.runs.records import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("refused", "unparsed", "failed", "unjudged")
MEASURES = ("p_human", "p_machine", "detectability", "dprime", "criterion")
ALL = "all"  # agents together
NAMELESS = ("human", f"human:{UNKNOWN}")  # people, each of whom may be another
# Two trials train each other's judge, so the variance of a sum of margins, or of means of verdicts, is twice that of
# independent ones, as of a U-statistic; of verdicts, their signs, 1 + 2/pi times (Van Vleck and Middleton 1966).
TRAINED = math.sqrt(1 + 2 / math.pi)
TRAINED_MEAN = math.sqrt(2)
DETECTABILITY = np.array([0.5, 0.5])  # of the rates of people's and of machines' answers
BETWEEN = np.concatenate([DETECTABILITY, -DETECTABILITY])  # two of these
# The d' of a rate of 0 or 1 is infinite. "log-linear" adds half a verdict to each kind, whatever the rate (Hautus
# 1995): it is less biased, but moves every d' towards 0. "1/2N" puts 1/(2N) for 0 and 1 - 1/(2N) for 1, N being the
# number of verdicts, and leaves other rates as they are (Macmillan and Kaplan 1985), as metadpy does.
Correction = Literal["log-linear", "1/2N"]
LOG_LINEAR: Correction = "log-linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judge's verdicts on an agent's answers to a task, in all or at one value of a column."""

    task: str = ""
    """The task that was answered; files call it ``asked``, as keys of trials do."""
    judge: str = ""
    """Who judged; "people" are all people together."""
    column: str | None = None
    """The column that verdicts are told apart by; None where all count."""
    value: Any = None
    """The value of the column that these verdicts have."""
    agent: str = ALL
    """Whose answers stand beside people's; "all" are all agents together."""
    refused: int = 0
    """How many judgements have no verdict because the judge refused."""
    unparsed: int = 0
    """How many have none because the reply could not be read."""
    failed: int = 0
    """How many have none because of an error."""
    unjudged: int = 0
    """How many trials an unfinished run has still before it."""

    @property
    def name(self) -> str:
        """The agent as tables call it."""
        return "all agents" if self.agent == ALL else self.agent

    @property
    def missing(self) -> str:
        """How many judgements have no verdict, by the reason, in words; "" for none."""
        return ", ".join(f"{getattr(self, name):,} {name}" for name in MISSING if getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Judged):
    """How well a judge tells an agent's answers from people's; rates are shares, 0 to 1.

    The first four fields count verdicts: their names say whose the answer is, then for whose it was taken. A trained
    judge's partitions are a single judgement."""

    human_human: int = 0
    """Verdicts "human" on people's answers."""
    human_machine: int = 0
    """Verdicts "machine" on people's answers."""
    machine_human: int = 0
    """Verdicts "human" on the agent's answers."""
    machine_machine: int = 0
    """Verdicts "machine" on the agent's answers."""
    missing_of_people: int = 0
    """How many of ``trials_of_people`` have no verdict, for whatever reason."""
    missing_of_machines: int = 0
    """How many of ``trials_of_machines`` have no verdict, for whatever reason."""
    trials_of_people: int = 0
    """Judgements of people's answers, with and without a verdict."""
    trials_of_machines: int = 0
    """Judgements of the agent's answers, with and without a verdict."""
    p_human: Estimate = NO_FIGURE
    """p(H|H): the share of right verdicts on people's answers."""
    p_machine: Estimate = NO_FIGURE
    """p(M|M): the share of right verdicts on the agent's answers."""
    detectability: Estimate = NO_FIGURE
    """The mean of ``p_human`` and ``p_machine``; 0.5 is chance."""
    detectability_judges: Estimate = NO_FIGURE
    """The same where each judge counts once, whatever the number of verdicts."""
    dprime: Estimate = NO_FIGURE
    """d' of all verdicts together, corrected."""
    criterion: Estimate = NO_FIGURE
    """The criterion of all verdicts together, corrected; positive with a bias to "human"."""
    dprime_judges: float = math.nan
    """The mean of the d' of each judge with verdicts on both people's and the agent's answers."""

    @property
    def of_people(self) -> int:
        """The number of verdicts on people's answers."""
        return self.human_human + self.human_machine

    @property
    def of_machines(self) -> int:
        """The number of verdicts on the agent's answers."""
        return self.machine_human + self.machine_machine

    @property
    def shares_of_people(self) -> tuple[float, float]:
        """The shares of people's answers judged human, and judged machine."""
        return self.p_human.value, 1 - self.p_human.value

    @property
    def shares_of_machines(self) -> tuple[float, float]:
        """The shares of the agent's answers judged human, and judged machine."""
        return 1 - self.p_machine.value, self.p_machine.value

    @property
    def is_one_word(self) -> bool:
        """Whether the judge said the same of every answer, so that it tells nothing apart."""
        return 0 in (self.human_human + self.machine_human, self.human_machine + self.machine_machine)


def count_missing(verdict: NDArray[Any]) -> dict[str, Any]:
    """By each reason for which there may be no verdict, how many of these are so."""
    return {why: int((verdict == why).sum()) for why in MISSING}


def summarize(
    verdicts: pd.DataFrame, agents: Sequence[str], drawn: Drawn | None = None, correction: Correction = LOG_LINEAR
) -> list[Score]:
    """The measures of all agents, then of each, over all judges of a task's ``verdicts``. ``correction`` is that of d'
    and the criterion."""
    import pandas as pd

    whose = verdicts["agent"].where(verdicts["truth"] == "machine", "")
    row = pd.Categorical(whose, categories=["", *agents]).codes.astype(np.int64)
    verdict = verdicts["verdict"].to_numpy()
    is_known = np.isin(verdict, VERDICTS) & (row >= 0)
    judged = verdicts[is_known]
    right = is_right(judged)
    drawn_from = clusters(judged)
    is_row = row[is_known] == np.arange(len(agents) + 1)[:, None]
    cells = np.insert(is_row, 1, ~is_row[0], axis=0)  # people's, all agents', each agent's
    result = rates(right, cells, drawn_from, drawn)
    of_mean_judge = rates_of_judges(right, cells, drawn_from, drawn)
    correct = cells @ right
    probits = z_scores(correct * _per(result.trials, result.number), result.trials, correction)
    both = np.stack([np.zeros(len(agents) + 1, dtype=np.int64), np.arange(1, len(cells))], axis=1)
    sums: dict[str, tuple[Jackknife, Codes, Floats, Floats | None]] = {
        "p_human": (result, both[:, :1], np.ones(1), None),
        "p_machine": (result, both[:, 1:], np.ones(1), None),
        "detectability": (result, both, DETECTABILITY, None),
        "detectability_judges": (of_mean_judge, both, DETECTABILITY, None),
        "dprime": (result, both, np.ones(2), probits),
        "criterion": (result, both, np.array([0.5, -0.5]), probits),
    }
    estimates: dict[str, Any] = {}
    for name, (summed, cells_summed, times, values) in sums.items():
        value = (summed.value if values is None else values)[cells_summed] @ times
        ends = summed.interval(cells_summed, times, probits=values)
        estimates[name] = [Estimate(*figures) for figures in np.array([value, *ends]).T.tolist()]
    dprime_judges = _dprime_of_judges(right, cells, drawn_from, correction)
    is_first = _is_first_part(verdicts)
    is_missing = ~np.isin(verdict, VERDICTS)
    scores = []
    for row_of_agent, agent in enumerate([ALL, *agents]):
        is_of_people = is_first & (row == 0)
        is_of_machines = is_first & ((row > 0) if agent == ALL else (row == row_of_agent))
        is_of_either = (row == 0) | ((row > 0) if agent == ALL else (row == row_of_agent))
        scores.append(
            Score(
                agent=agent,
                human_human=int(correct[0]),
                human_machine=int(result.number[0] - correct[0]),
                machine_human=int(result.number[row_of_agent + 1] - correct[row_of_agent + 1]),
                machine_machine=int(correct[row_of_agent + 1]),
                missing_of_people=int((is_of_people & is_missing).sum()),
                missing_of_machines=int((is_of_machines & is_missing).sum()),
                trials_of_people=int(is_of_people.sum()),
                trials_of_machines=int(is_of_machines.sum()),
                **count_missing(verdict[is_of_either]),
                **{name: values[row_of_agent] for name, values in estimates.items()},
                dprime_judges=float(dprime_judges[row_of_agent]),
            )
        )
    return scores


def _is_first_part(verdicts: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether a verdict [verdicts] is the only one of a judgement, or that of the first partition."""
    if "part" not in verdicts.columns:
        return np.ones(len(verdicts), dtype=bool)
    return np.asarray(verdicts["part"].isna() | (verdicts["part"] == 0), dtype=np.bool_)


def clusters(verdicts: pd.DataFrame) -> Clusters:
    """Their judges, stimuli and people, and by what errors are multiplied (:data:`TRAINED`). A person without a name
    has answered a single trial; a pair's ``person`` without a name is part of its stimulus."""
    import pandas as pd

    if "person" in verdicts.columns:
        names = verdicts["person"].astype("string").str.partition("~").reindex(columns=range(3))
        people = names[0]
        partners = names[2].where(names[2] != "")
    else:
        people = verdicts["agent"].where(verdicts["truth"] == "human")
        is_nameless = people.isin(NAMELESS)
        if is_nameless.any():
            people = people.where(~is_nameless, verdicts["trial"].map("trial {}".format))
        partners = people.mask(people.notna())
    judges = pd.factorize(verdicts["judge"])[0].astype(np.int64)
    stimuli = pd.factorize(verdicts["stimulus"])[0].astype(np.int64)
    people_codes, partner_codes = np.split(pd.factorize(pd.concat([people, partners]))[0].astype(np.int64), 2)
    is_trained = "margin" in verdicts.columns and verdicts["margin"].notna()
    is_mean = "part" in verdicts.columns and verdicts["part"].notna()
    wider = np.where(is_trained & is_mean, TRAINED_MEAN, np.where(is_trained, TRAINED, np.ones(len(verdicts))))
    partners = partner_codes if (partner_codes >= 0).any() else None
    trials = None
    if np.any(is_mean):
        trials = verdicts.groupby(["judge", "trial"]).ngroup().to_numpy(dtype=np.int64)
    return Clusters(judges, stimuli, people_codes, wider, partners, trials)


def is_right(verdicts: pd.DataFrame) -> Floats:
    """1 for each right verdict, 0 for each other [verdicts]."""
    right: Floats = (verdicts["verdict"] == verdicts["truth"]).to_numpy(dtype=np.float64)
    return right


def z_scores(correct: Floats, number: Floats, correction: Correction) -> Floats:
    """z of the rates of ``correct`` verdicts among ``number``, corrected so that they are finite; NaN of none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if correction == LOG_LINEAR:
            rate = (correct + 0.5) / (number + 1)
        else:
            least = 1 / (2 * number)
            rate = np.clip(correct / number, least, 1 - least)
    return np.where(number > 0, ndtri(rate), np.nan)


def _per(trials: Floats, number: Floats) -> Floats:
    """Trials by verdict: below 1 of a trained judge, whose partitions are no further trials. The correction of d' goes
    by how many there are. With 20 partitions, always right on ten answers, d' would be that of 200 answers."""
    return np.divide(trials, number, out=np.ones_like(number), where=number > 0)


def _dprime_of_judges(right: Floats, cells: Cells, drawn_from: Clusters, correction: Correction) -> Floats:
    judges = drawn_from.judges
    size = int(judges.max(initial=-1)) + 1
    correct = np.array([np.bincount(judges[cell], right[cell], size) for cell in cells])
    number = np.array([np.bincount(judges[cell], minlength=size) for cell in cells]).astype(np.float64)
    trials = number
    if drawn_from.trials is not None:
        is_judge = judges == np.arange(size)[:, None]
        trials = np.array([drawn_from.trials_in(cell & is_judge) for cell in cells])
    probits = z_scores(correct * _per(trials, number), trials, correction)
    dprimes = probits[0] + probits[1:]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(dprimes, axis=1) / (~np.isnan(dprimes)).sum(axis=1))


def rates_of_judges(right: Floats, cells: Cells, clusters: Clusters, drawn: Drawn | None = None) -> Jackknife:
    """As :func:`rates`, of the mean judge: a rate of verdicts is off where abler judges give more of them (Williamson,
    Datta and Satten 2003, informative cluster sizes)."""
    weights = of_judges(cells, clusters.judges)
    return jackknife(np.stack([weights, weights * right]), mean, clusters, drawn)


def share(right: Floats, pairs: Clusters, drawn: Drawn | None = None) -> tuple[Estimate, bool]:
    """The share of ``right`` verdicts on ``pairs``, and whether they are independent: a single verdict a pair, and
    either all or no two of a judge. NaN for none; no interval for a single judge and pair."""
    result = rates(right, np.ones((1, len(right)), dtype=bool), pairs, drawn)
    low, high = result.interval(np.zeros(1, dtype=np.int64), np.ones(1))
    return Estimate(float(result.value[0]), float(low), float(high)), bool(result.is_exact[0])


def detectabilities(
    verdicts: pd.DataFrame, parts: Sequence[NDArray[np.bool_]], drawn: Drawn | None = None
) -> Jackknife:
    """The mean judge's rates of people's and of machines' answers in each of ``parts`` of verdicts."""
    is_machine = (verdicts["truth"] == "machine").to_numpy()
    cells = np.array([part & truth for part in parts for truth in (~is_machine, is_machine)])
    return rates_of_judges(is_right(verdicts), cells, clusters(verdicts), drawn)


def on_common_trials(first: pd.DataFrame, second: pd.DataFrame) -> tuple[Jackknife, int]:
    """:func:`detectabilities` in verdicts of two judges, or of people and a judge, on trials that both judged, and the
    number of these. Judges are drawn only where they are people."""
    import pandas as pd

    common = set(first["trial"]) & set(second["trial"])
    sides = [part[part["trial"].isin(common)] for part in (first, second)]
    both = pd.concat(sides)
    is_first = np.arange(sum(map(len, sides))) < len(sides[0])
    drawn = np.hstack([clusters(part).drawn().repeat(2, axis=1) for part in sides])
    return detectabilities(both, [is_first, ~is_first], drawn), len(common)
