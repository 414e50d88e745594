"""How well judges tell machines from people: rates, detectability, d', criterion, and their intervals.

- p(H|H), p(M|M): the share of people's, of machines' answers that are said to be what they are (2025 paper, L1333).
- detectability: (p(H|H) + p(M|M)) / 2; 0.5 is a perfect imitator. It is not cut off at 0.5: below it machines are
  taken for people more often than people are (2025 paper, Table S4 has .44).
- d' = z(p(M|M)) + z(p(H|H)) and criterion c = (z(p(H|H)) - z(p(M|M))) / 2, positive: bias to "human" (Green and Swets
  1966; Macmillan and Creelman 2005). Rates get the log-linear correction (Hautus 1995): (count + 0.5) / (number + 1).

An agent's row is set beside the human row of the same judges and the same task, as in the papers.

**Intervals.** Verdicts of one judge, and on one stimulus, are alike, so neither verdicts nor judges alone are the unit.
Three bootstraps resample judges, stimuli, and single verdicts (where a judge judged a stimulus several times: those
together); the variance is that over judges plus that over stimuli less that over verdicts (Cameron, Gelbach, Miller
2011), and never less than the larger of the first two. The interval is normal with Student's t of the smaller number of
clusters less one. The product of both resamplings, which suggests itself, counts the variance of single verdicts three
times (Owen 2007). With one judge the rates have exact binomial intervals (Clopper, Pearson 1934) and the other measures
the bootstrap over stimuli.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from judging.verdicts import SAID

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

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def measures(right: Floats, number: Floats) -> Floats:
    """The measures of counts: ``right`` [..., rows] of ``number`` [..., rows] were told rightly, row 0 being people's
    and the others machines'. Returns [..., rows - 1, len(MEASURES)], NaN where there are no verdicts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = right / number
    z = ndtri((right + 0.5) / (number + 1))
    human, of_human = (np.broadcast_to(values[..., :1], values[..., 1:].shape) for values in (rate, z))
    machine, of_machine = rate[..., 1:], z[..., 1:]
    known = np.where(np.isnan(human + machine), np.nan, 0.0)
    return np.stack(
        [
            human,
            machine,
            (human + machine) / 2,
            known + of_machine + of_human,
            known + (of_human - of_machine) / 2,
        ],
        axis=-1,
    )


def summarize(
    verdicts: pd.DataFrame, agents: Sequence[str], seed: int, repetitions: int = REPETITIONS
) -> list[dict[str, Any]]:
    """The measures of all agents together and of each, over all judges in the table.

    ``verdicts`` are those of one task, as :func:`judging.verdicts.read_verdicts` gives them, without catch trials and
    repeats. One row for each agent, ``agent`` "all" first: the 2 x 2 counts (``human_machine``: of people's answers
    said to be a machine's), how many verdicts are missing and why, and each of :data:`MEASURES` with ``_low`` and
    ``_high``.
    """
    import pandas as pd

    whose = verdicts["agent"].where(verdicts["truth"] == "machine", "")
    row = pd.Categorical(whose, categories=["", *agents]).codes.astype(np.int64)
    verdict = verdicts["verdict"].to_numpy()
    is_given = np.isin(verdict, SAID) & (row >= 0)
    right = (verdicts["verdict"] == verdicts["truth"]).to_numpy(dtype=np.float64)[is_given]
    judges, stimuli = (pd.factorize(verdicts[name][is_given])[0].astype(np.int64) for name in ("judge", "stimulus"))
    sample = _Sample(right, row[is_given], len(agents) + 1)
    counts = sample.counts()
    estimate = measures(*counts)
    low, high = _intervals(sample, judges, stimuli, estimate, np.random.default_rng(seed), repetitions)
    if judges.max(initial=0) == 0:
        _make_exact(*counts, low, high)
    of_rates = [number for number, name in enumerate(MEASURES) if name in RATES]
    for end in (low, high):
        end[..., of_rates] = np.clip(end[..., of_rates], 0, 1)
    rows = []
    for at, agent in enumerate([ALL, *agents]):
        of_agent = (row == 0) | ((row > 0) if agent == ALL else (row == at))
        (human, machine), (people, machines) = ((columns[0], columns[at + 1]) for columns in counts)
        columns: dict[str, Any] = {
            "agent": agent,
            "human_human": int(human),
            "human_machine": int(people - human),
            "machine_human": int(machines - machine),
            "machine_machine": int(machine),
            **{why: int((verdict[of_agent] == why).sum()) for why in MISSING},
        }
        for number, name in enumerate(MEASURES):
            values = (estimate[at, number], low[at, number], high[at, number])
            columns |= dict(zip((name, f"{name}_low", f"{name}_high"), map(float, values), strict=True))
        rows.append(columns)
    return rows


def share(
    right: Floats, judges: Codes, pairs: Codes, seed: int, repetitions: int = REPETITIONS
) -> tuple[float, float, float, bool]:
    """The share of verdicts [verdicts] that are ``right``, each of one of the ``judges`` on one of the ``pairs``, with
    its interval, and whether that is exact.

    It is exact where no two verdicts are on one pair, and either all or no two are of one judge. Otherwise judges and
    pairs are random, as in the module's text, and the interval is that of Korn and Graubard (1998): the exact one of so
    many independent verdicts as would vary as much. Verdicts that do not vary at all count for as many as there are
    judges, or pairs if those are fewer. NaN where there are several verdicts of one judge on one pair alone, or none.
    """
    number, hits = float(len(right)), float(right.sum())
    clusters = [len(np.unique(codes)) for codes in (judges, pairs)]
    if number == 0:
        return np.nan, np.nan, np.nan, True
    rate, worth = hits / number, number
    is_exact = clusters[1] == number and clusters[0] in (1, number)
    if not is_exact:
        if max(clusters) == 1:
            return rate, np.nan, np.nan, False
        sample = _Sample(right, np.zeros(len(right), dtype=np.int64), 1)
        estimate = measures(*sample.counts())
        _, high = _intervals(sample, judges, pairs, estimate, np.random.default_rng(seed), repetitions)
        half = float(high[0, 0] - estimate[0, 0])
        worth = float(min(codes for codes in clusters if codes > 1))
        if half > 0:
            worth = min(number, rate * (1 - rate) * (float(ndtri((1 + CONFIDENCE) / 2)) / half) ** 2)
    ends = exact(np.array([rate * worth]), np.array([worth]))
    return rate, float(ends[0][0]), float(ends[1][0]), is_exact


@dataclass(frozen=True, slots=True)
class _Sample:
    """Verdicts that were given: whether each is ``right``, and the ``row`` of ``rows`` that it belongs to."""

    right: Floats
    row: Codes
    rows: int

    def counts(self, groups: Codes | None = None) -> tuple[Floats, Floats]:
        """(right, number), each [rows + 1], or [groups, rows + 1]: people's row, machines' together, each agent's."""
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
    """Low and high of each estimate; see the module's text."""
    both = np.unique(judges * (stimuli.max(initial=0) + 1) + stimuli, return_inverse=True)[1].astype(np.int64)
    clusters = [int(codes.max(initial=-1)) + 1 for codes in (judges, stimuli, both)]
    variance = [
        _variance(sample, groups, chance, repetitions) if number > 1 else np.zeros_like(estimate)
        for groups, number in zip((judges, stimuli, both), clusters, strict=True)
    ]
    of_judges, of_stimuli, of_verdicts = variance
    total = np.fmax(of_judges + of_stimuli - of_verdicts, np.fmax(of_judges, of_stimuli))
    several = [number for number in clusters[:2] if number > 1]
    half = stdtrit(max(min(several, default=2) - 1, 1), (1 + CONFIDENCE) / 2) * np.sqrt(total)
    return estimate - half, estimate + half


def _variance(sample: _Sample, groups: Codes, chance: np.random.Generator, repetitions: int) -> Floats:
    """The bootstrap variance of the measures where whole ``groups`` are drawn, each a Poisson number of times."""
    right, number = sample.counts(groups)
    step = max(1, CHUNK // len(right))
    draws = []
    for begin in range(0, repetitions, step):
        weights = chance.poisson(1.0, (min(step, repetitions - begin), len(right))).astype(np.float64)
        draws.append(measures(weights @ right, weights @ number))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rows without any verdict
        spread: Floats = np.nanvar(np.concatenate(draws), axis=0, ddof=1)
    return np.where(spread < ROUNDING**2, 0.0, spread)


def exact(right: Floats, number: Floats) -> tuple[Floats, Floats]:
    """Low and high of exact binomial intervals (Clopper, Pearson 1934) of ``right`` of ``number``; NaN of none."""
    tail = (1 - CONFIDENCE) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, betaincinv(right, number - right + 1, tail), 0.0)
        high = np.where(right < number, betaincinv(right + 1, number - right, 1 - tail), 1.0)
    low[number == 0], high[number == 0] = np.nan, np.nan
    return low, high


def _make_exact(right: Floats, number: Floats, low: Floats, high: Floats) -> None:
    """Put exact intervals of the two rates in place."""
    lowest, highest = exact(right, number)
    low[:, 0], high[:, 0] = lowest[0], highest[0]
    low[:, 1], high[:, 1] = lowest[1:], highest[1:]
