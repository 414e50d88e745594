"""A judge's detectability beside the best cue's, and beside its detectability in stricter folds (leakage)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from judging.measures import ALL, Score
from judging.tables import NO_FIGURE, Estimate
from judging.verdicts import SAID

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

REPETITIONS = 2000
FOLDING = ("split", "unique", "train", "seed", "trials", "key")  # settings that change the folds alone
GROUPED = "grouped by stimulus"
SPLITS = {
    "stimulus": GROUPED,
    "row": "single rows",
    "agent": "grouped, agent held out",
    "other": "grouped, one other agent alone",
}
Settings = Mapping[str, Mapping[str, Any]]  # of judges


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


def ledger(verdicts: pd.DataFrame, scores: Iterable[Score], settings: Settings, seed: int) -> list[Worth]:
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
    judged = verdicts[verdicts["verdict"].isin(SAID)]
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


def _difference(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = counts[..., 0::2] / counts[..., 1::2]
    means: NDArray[np.float64] = 100 * (rates[..., :2].mean(axis=-1) - rates[..., 2:].mean(axis=-1))
    return means


def _kin(chosen: Mapping[str, Any]) -> bytes:
    kept = {name: value for name, value in chosen.items() if name not in FOLDING}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
