"""How well judges tell machines from people: rates, detectability, d', criterion, and their intervals.

p(H|H) and p(M|M) are the shares of people's and machines' answers judged rightly, detectability their mean. d' and the
criterion c (positive: bias to "human") have the log-linear correction (Macmillan and Creelman 2005; Hautus 1995).
Intervals are by bootstraps over judges, stimuli and verdicts; the variance is the first two less the third (Cameron,
Gelbach, Miller 2011), at least the larger of the first two; Student's t of the fewer clusters less 1. A single judge's
rates have exact binomial intervals (Clopper, Pearson 1934). A judge's detectability stands beside the best cue's, and
beside its own in stricter folds (:func:`ledger`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from judging.tables import NO_FIGURE, Estimate
from judging.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

REPETITIONS = 2000
CONFIDENCE = 0.95
MISSING = ("refused", "unparsed", "failed", "unjudged")
MEASURES = ("p_human", "p_machine", "detectability", "dprime", "criterion")
ALL = "all"  # agents together
RATES = ("p_human", "p_machine", "detectability")  # whose intervals end at 0 and 1
ROUNDING = 1e-9  # of measures, whose scale is 1: a smaller deviation is rounding, and none
CHUNK = 4_000_000  # weights that are held at once
FOLDING = ("split", "unique", "train", "seed", "trials", "key")  # settings that change the folds alone
GROUPED = "grouped by stimulus"
SPLITS = {
    "stimulus": GROUPED,
    "row": "single rows",
    "agent": "grouped, agent held out",
    "other": "grouped, one other agent alone",
}
SettingsByJudge = Mapping[str, Mapping[str, Any]]  # of judges

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judge's verdicts on an agent's answers ("all": every agent's); ``column`` and ``value`` are of ``--by``."""

    task: str = ""
    judge: str = ""
    column: str | None = None
    value: Any = None
    agent: str = ALL
    refused: int = 0
    unparsed: int = 0
    failed: int = 0
    unjudged: int = 0

    @property
    def name(self) -> str:
        return "all agents" if self.agent == ALL else self.agent

    @property
    def missing(self) -> str:
        return ", ".join(f"{getattr(self, name):,} {name}" for name in MISSING if getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Judged):
    """``human_machine`` are people's answers taken for a machine's."""

    human_human: int = 0
    human_machine: int = 0
    machine_human: int = 0
    machine_machine: int = 0
    p_human: Estimate = NO_FIGURE
    p_machine: Estimate = NO_FIGURE
    detectability: Estimate = NO_FIGURE
    dprime: Estimate = NO_FIGURE
    criterion: Estimate = NO_FIGURE

    @property
    def of_people(self) -> int:
        return self.human_human + self.human_machine

    @property
    def of_machines(self) -> int:
        return self.machine_human + self.machine_machine

    @property
    def shares_of_people(self) -> tuple[float, float]:
        return self.p_human.value, 1 - self.p_human.value

    @property
    def shares_of_machines(self) -> tuple[float, float]:
        return 1 - self.p_machine.value, self.p_machine.value

    @property
    def is_one_word(self) -> bool:
        return 0 in (self.human_human + self.machine_human, self.human_machine + self.machine_machine)


def count_missing(verdict: NDArray[Any]) -> dict[str, Any]:
    return {why: int((verdict == why).sum()) for why in MISSING}


def point_estimates(right: Floats, number: Floats) -> Floats:
    """[..., rows - 1, len(MEASURES)] of counts [..., rows], ``right`` of ``number``, people's in row 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = right / number
    z = ndtri((right + 0.5) / (number + 1))
    human, z_human = (np.broadcast_to(values[..., :1], values[..., 1:].shape) for values in (rate, z))
    machine, z_machine = rate[..., 1:], z[..., 1:]
    known = np.where(np.isnan(human + machine), np.nan, 0.0)
    dprime, criterion = known + z_machine + z_human, known + (z_human - z_machine) / 2
    return np.stack([human, machine, (human + machine) / 2, dprime, criterion], axis=-1)


def summarize(verdicts: pd.DataFrame, agents: Sequence[str], seed: int, repetitions: int = REPETITIONS) -> list[Score]:
    """The measures of all agents, then of each, over all judges of a task's ``verdicts``."""
    import pandas as pd

    whose = verdicts["agent"].where(verdicts["truth"] == "machine", "")
    row = pd.Categorical(whose, categories=["", *agents]).codes.astype(np.int64)
    verdict = verdicts["verdict"].to_numpy()
    is_known = np.isin(verdict, VERDICTS) & (row >= 0)
    right = (verdicts["verdict"] == verdicts["truth"]).to_numpy(dtype=np.float64)[is_known]
    judges, stimuli = (pd.factorize(verdicts[name][is_known])[0].astype(np.int64) for name in ("judge", "stimulus"))
    sample = _Sample(right, row[is_known], len(agents) + 1)
    counts = sample.counts()
    estimate = point_estimates(*counts)
    low, high = _intervals(sample, judges, stimuli, estimate, np.random.default_rng(seed), repetitions)
    if judges.max(initial=0) == 0:
        for end, exact_end in zip((low, high), exact(*counts), strict=True):
            end[:, 0], end[:, 1] = exact_end[0], exact_end[1:]
    of_rates = [MEASURES.index(name) for name in RATES]
    for end in (low, high):
        end[..., of_rates] = np.clip(end[..., of_rates], 0, 1)
    scores = []
    for at, agent in enumerate([ALL, *agents]):
        of_agent = (row == 0) | ((row > 0) if agent == ALL else (row == at))
        (human, machine), (people, machines) = ((of_counts[0], of_counts[at + 1]) for of_counts in counts)
        ends = zip(MEASURES, estimate[at].tolist(), low[at].tolist(), high[at].tolist(), strict=True)
        estimates: dict[str, Any] = {name: Estimate(*values) for name, *values in ends}
        scores.append(
            Score(
                agent=agent,
                human_human=int(human),
                human_machine=int(people - human),
                machine_human=int(machines - machine),
                machine_machine=int(machine),
                **count_missing(verdict[of_agent]),
                **estimates,
            )
        )
    return scores


def share(
    right: Floats, judges: Codes, pairs: Codes, seed: int, repetitions: int = REPETITIONS
) -> tuple[Estimate, bool]:
    """The share of ``right`` verdicts, by ``judges`` on ``pairs``; whether its interval is exact: a single verdict a
    pair, and either all or no two of a judge. Otherwise the interval is that of so many independent verdicts as vary as
    much (Korn and Graubard 1998). NaN for none, or several of a judge on a single pair."""
    number, hits = float(len(right)), float(right.sum())
    clusters = [len(np.unique(codes)) for codes in (judges, pairs)]
    if number == 0:
        return NO_FIGURE, True
    rate, worth = hits / number, number
    is_exact = clusters[1] == number and clusters[0] in (1, number)
    if not is_exact:
        if max(clusters) == 1:
            return Estimate(rate), False
        sample = _Sample(right, np.zeros(len(right), dtype=np.int64), 1)
        estimate = point_estimates(*sample.counts())
        _, high = _intervals(sample, judges, pairs, estimate, np.random.default_rng(seed), repetitions)
        half = float(high[0, 0] - estimate[0, 0])
        worth = float(min(codes for codes in clusters if codes > 1))
        if half > 0:
            worth = min(number, rate * (1 - rate) * (float(ndtri((1 + CONFIDENCE) / 2)) / half) ** 2)
    low, high = exact(np.array([rate * worth]), np.array([worth]))
    return Estimate(rate, float(low[0]), float(high[0])), is_exact


@dataclass(frozen=True, slots=True)
class _Sample:
    right: Floats
    row: Codes
    rows: int

    def counts(self, groups: Codes | None = None) -> tuple[Floats, Floats]:
        size = 1 if groups is None else int(groups.max(initial=-1)) + 1
        cell = self.row if groups is None else groups * self.rows + self.row
        totals = []
        for weights in (self.right, None):
            each = np.bincount(cell, weights, size * self.rows).astype(np.float64).reshape(size, self.rows)
            with_all = np.concatenate([each[:, :1], each[:, 1:].sum(1, keepdims=True), each[:, 1:]], axis=1)
            totals.append(with_all[0] if groups is None else with_all)
        return totals[0], totals[1]


def _intervals(
    sample: _Sample, judges: Codes, stimuli: Codes, estimate: Floats, chance: np.random.Generator, repetitions: int
) -> tuple[Floats, Floats]:
    both = np.unique(judges * (stimuli.max(initial=0) + 1) + stimuli, return_inverse=True)[1].astype(np.int64)
    clusters = [int(codes.max(initial=-1)) + 1 for codes in (judges, stimuli, both)]
    of_judges, of_stimuli, of_verdicts = (
        _variance(sample, groups, chance, repetitions) if number > 1 else np.zeros_like(estimate)
        for groups, number in zip((judges, stimuli, both), clusters, strict=True)
    )
    total = np.fmax(of_judges + of_stimuli - of_verdicts, np.fmax(of_judges, of_stimuli))
    fewest = min((number for number in clusters[:2] if number > 1), default=2)
    half = stdtrit(max(fewest - 1, 1), (1 + CONFIDENCE) / 2) * np.sqrt(total)
    return estimate - half, estimate + half


def _variance(sample: _Sample, groups: Codes, chance: np.random.Generator, repetitions: int) -> Floats:
    right, number = sample.counts(groups)
    step = max(1, CHUNK // len(right))
    draws = []
    for begin in range(0, repetitions, step):
        weights = chance.poisson(1.0, (min(step, repetitions - begin), len(right))).astype(np.float64)
        draws.append(point_estimates(weights @ right, weights @ number))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rows without any verdict
        spread: Floats = np.nanvar(np.concatenate(draws), axis=0, ddof=1)
    return np.where(spread < ROUNDING**2, 0.0, spread)


def exact(right: Floats, number: Floats) -> tuple[Floats, Floats]:
    """Low and high (Clopper, Pearson 1934) of ``right`` of ``number``; NaN of none."""
    tail = (1 - CONFIDENCE) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, betaincinv(right, number - right + 1, tail), 0.0)
        high = np.where(right < number, betaincinv(right + 1, number - right, 1 - tail), 1.0)
    low[number == 0], high[number == 0] = np.nan, np.nan
    return low, high


@dataclass(frozen=True, slots=True)
class Worth:
    """``always_human`` is the accuracy of saying human each time; ``above_cue`` and ``above_grouped`` are differences
    of detectability in points (hundredths), to the best cue and to the judge ``grouped``."""

    task: str
    judge: str
    is_cue: bool
    split: str | None
    detectability: float
    accuracy: float | None
    always_human: float | None
    best_cue: str | None
    above_cue: Estimate
    grouped: str | None
    above_grouped: Estimate


def ledger(verdicts: pd.DataFrame, scores: Iterable[Score], settings: SettingsByJudge, seed: int) -> list[Worth]:
    overall = {score.judge: score for score in scores if score.agent == ALL}
    cues = [judge for judge in overall if settings.get(judge, {}).get("cue", "constant") != "constant"]
    best = max(cues, key=lambda judge: np.nan_to_num(overall[judge].detectability.value), default=None)
    grouped = {_kin(settings[judge]): judge for judge in overall if folds_in_words(settings.get(judge, {})) == GROUPED}
    rows = []
    for judge, score in overall.items():
        chosen = settings.get(judge, {})
        people = score.human_human + score.human_machine
        number = people + score.machine_human + score.machine_machine
        same = grouped.get(_kin(chosen)) if "split" in chosen else None
        rows.append(
            Worth(
                score.task,
                judge,
                "cue" in chosen,
                folds_in_words(chosen),
                score.detectability.value,
                (score.human_human + score.machine_machine) / number if number else None,
                people / number if number else None,
                best,
                difference(verdicts, judge, None if "cue" in chosen else best, seed),
                same,
                difference(verdicts, judge, same, seed),
            )
        )
    return rows


def folds_in_words(chosen: Mapping[str, Any]) -> str | None:
    """How the folds of a trained judge are made; None of any other."""
    if "split" not in chosen:
        return None
    parts = [SPLITS[chosen["split"]]]
    if chosen["unique"]:
        parts.append("repeated answers left out")
    if chosen["train"] is not None:
        parts.append(f"trained on {chosen['train']}")
    return ", ".join(parts)


def difference(verdicts: pd.DataFrame, judge: str, other: str | None, seed: int) -> Estimate:
    """The detectability of a judge less the ``other``'s, in points, on the trials of both, NaN without any; the
    interval is by a bootstrap over stimuli (Poisson weights)."""
    if other is None or other == judge:
        return NO_FIGURE
    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    names = judged["judge"].where(judged["judge_kind"] != "human", "people")
    both = set(judged["trial"][names == judge]) & set(judged["trial"][names == other])
    is_common = judged["trial"].isin(both)
    judged, names = judged[is_common], names[is_common]
    stimuli, codes = np.unique(judged["stimulus"].to_numpy(dtype=str), return_inverse=True)
    right = (judged["verdict"] == judged["truth"]).to_numpy(dtype=float)
    is_machine = (judged["truth"] == "machine").to_numpy()
    cells = []  # [stimuli] of right and of number, for each judge and truth
    for name in (judge, other):
        for truth in (False, True):
            is_it = (names == name).to_numpy() & (is_machine == truth)
            cells += [np.bincount(codes[is_it], weights, len(stimuli)) for weights in (right[is_it], None)]
    counts = np.array(cells, dtype=float).T
    if not len(stimuli) or not counts[:, 1::2].sum(axis=0).all():
        return NO_FIGURE
    weights = np.random.default_rng(seed).poisson(1, (REPETITIONS, len(stimuli)))
    estimate, drawn = _difference(counts.sum(axis=0)), _difference(weights @ counts)
    low, high = np.nanpercentile(drawn, (2.5, 97.5))
    return Estimate(float(estimate), float(low), float(high), "+.1f")


def _difference(counts: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = counts[..., 0::2] / counts[..., 1::2]
    means: Floats = 100 * (rates[..., :2].mean(axis=-1) - rates[..., 2:].mean(axis=-1))
    return means


def _kin(chosen: Mapping[str, Any]) -> bytes:
    kept = {name: value for name, value in chosen.items() if name not in FOLDING}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
