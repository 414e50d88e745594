"""The ledger: what a judge's detectability is worth, beside the best single cue's and its own in stricter folds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from judging.statistics.measures import ALL, BETWEEN, Score, on_common_trials
from judging.statistics.tables import NO_FIGURE, Estimate
from judging.trial_sets.trial_set import VERDICTS

if TYPE_CHECKING:
    import pandas as pd

FOLDING = ("split", "partitions", "unique", "train", "seed", "trials", "key")  # settings that change the folds alone
GROUPED = "grouped by stimulus"
SPLITS = {
    "stimulus": GROUPED,
    "row": "single rows",
    "agent": "grouped, agent held out",
    "speaker": "grouped, person held out",
    "other": "grouped, one other agent alone",
}
SettingsByJudge = Mapping[str, Mapping[str, Any]]  # of judges


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What a judge's detectability in a task is worth: beside the best single cue, and beside stricter folds."""

    task: str
    """The task that was answered."""
    judge: str
    """Who judged; "people" are all people together."""
    is_cue: bool
    """Whether the judge goes by a single cue."""
    split: str | None
    """How a trained judge's folds are made, in words; None of any other."""
    detectability: float
    """The judge's, of all agents together, 0 to 1."""
    accuracy: float | None
    """The share of right verdicts; None without verdicts."""
    always_human: float | None
    """The share that saying "human" each time would have right."""
    best_cue: str | None
    """The judge by a single cue with the highest detectability; None without one."""
    above_cue: Estimate
    """The judge's detectability minus the best cue's, in points (hundredths)."""
    grouped: str | None
    """The same classifier in folds without a common stimulus; None without one."""
    above_grouped: Estimate
    """The judge's detectability minus that classifier's, in points (hundredths)."""


def ledger(
    verdicts: pd.DataFrame, scores: Iterable[Score], settings: SettingsByJudge, cues: Collection[str] = ()
) -> list[LedgerRow]:
    """What the score of each judge of a task is worth.

    It stands beside the best judge by a single cue, and beside the same classifier in folds without a common
    stimulus. ``cues`` are the judges by a single cue; the constant one is not the best."""
    overall = {score.judge: score for score in scores if score.agent == ALL}
    beatable = [judge for judge in overall if judge in cues and settings.get(judge, {}).get("cue") != "constant"]
    best = max(beatable, key=lambda judge: np.nan_to_num(overall[judge].detectability.value), default=None)
    grouped = {_kin(settings[judge]): judge for judge in overall if folds_in_words(settings.get(judge, {})) == GROUPED}
    rows = []
    for judge, score in overall.items():
        chosen_settings = settings.get(judge, {})
        people = score.human_human + score.human_machine
        number = people + score.machine_human + score.machine_machine
        same = grouped.get(_kin(chosen_settings)) if "split" in chosen_settings else None
        rows.append(
            LedgerRow(
                score.task,
                judge,
                judge in cues,
                folds_in_words(chosen_settings),
                score.detectability.value,
                (score.human_human + score.machine_machine) / number if number else None,
                people / number if number else None,
                best,
                detectability_difference(verdicts, judge, None if judge in cues else best),
                same,
                detectability_difference(verdicts, judge, same),
            )
        )
    return rows


def folds_in_words(settings: Mapping[str, Any]) -> str | None:
    """How the folds of a trained judge are made; None of any other."""
    if "split" not in settings:
        return None
    clauses = [SPLITS[settings["split"]]]
    if settings["unique"]:
        clauses.append("repeated answers left out")
    if settings["train"] is not None:
        clauses.append(f"trained on {settings['train']}")
    return ", ".join(clauses)


def detectability_difference(verdicts: pd.DataFrame, judge: str, other: str | None) -> Estimate:
    """The detectability of a judge minus the ``other``'s, in points, on the trials of both; NaN without any."""
    if other is None or other == judge:
        return NO_FIGURE
    judged = verdicts[verdicts["verdict"].isin(VERDICTS)]
    names = judged["judge"].where(judged["judge_kind"] != "human", "people")
    result, _ = on_common_trials(judged[names == judge], judged[names == other])
    low, high = result.interval(np.arange(4), 100 * BETWEEN)
    return Estimate(float(result.sum(np.arange(4), 100 * BETWEEN)), float(low), float(high), "+.1f")


def _kin(settings: Mapping[str, Any]) -> bytes:
    beside_folds = {name: value for name, value in settings.items() if name not in FOLDING}
    return orjson.dumps(beside_folds, option=orjson.OPT_SORT_KEYS)
