"""What a judge's detectability is worth: beside the best cue, and beside the same judge in other folds.

A judge that gets no more than a cue (:mod:`judging.cues`) need not have read an answer. A trained judge whose score
falls when no stimulus is on both sides of a fold, when answers that several speakers gave are left out of training, or
when the agent judged is, owed the rest to the folds (leakage) or to having met the agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from judging.measures import ALL
from judging.verdicts import SAID

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

REPETITIONS = 2000
FOLDING = ("split", "unique", "train", "seed", "trials", "key")  # settings that change the folds alone


def ledger(
    verdicts: pd.DataFrame, scores: Sequence[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]], seed: int
) -> list[dict[str, Any]]:
    """One row for each judge of one task.

    ``scores`` are the rows of :func:`judging.measures.summarize` with their ``judge``; ``settings`` those of each judge
    that has any. ``split`` says how a trained judge's folds are made. ``always_human`` is the accuracy of saying human
    each time, beside the judge's own ``accuracy``. ``best_cue``, and ``above_cue`` with ``_low`` and ``_high``: the
    difference of the detectabilities on the trials that both judged, in points (hundredths); ``above_grouped`` the same
    beside the same judge trained in folds without a common stimulus. None where there is nothing to compare with. The
    best cue is the best on these very trials, so that the comparison errs against the judge.
    """
    whole = {row["judge"]: row for row in scores if row["agent"] == ALL}
    cues = [judge for judge in whole if "cue" in settings.get(judge, {}) and settings[judge]["cue"] != "constant"]
    best = max(cues, key=lambda judge: whole[judge]["detectability"], default=None)
    grouped = {_kin(settings[judge]): judge for judge in whole if _is_grouped(settings.get(judge, {}))}
    found = []
    for judge, row in whole.items():
        chosen = settings.get(judge, {})
        people = row["human_human"] + row["human_machine"]
        number = people + row["machine_human"] + row["machine_machine"]
        same = grouped.get(_kin(chosen)) if "split" in chosen else None
        found.append(
            {
                "judge": judge,
                "is_cue": "cue" in chosen,
                "split": told(chosen),
                "detectability": row["detectability"],
                "accuracy": (row["human_human"] + row["machine_machine"]) / number if number else None,
                "always_human": people / number if number else None,
                "best_cue": best,
                **_points("above_cue", verdicts, judge, None if "cue" in chosen else best, seed),
                "grouped": same,
                **_points("above_grouped", verdicts, judge, same, seed),
            }
        )
    return found


def told(chosen: Mapping[str, Any]) -> str | None:
    """How the folds of a trained judge are made, in words; None of any other."""
    if "split" not in chosen:
        return None
    words = {
        "stimulus": "grouped by stimulus",
        "row": "single rows",
        "agent": "grouped, agent held out",
        "other": "grouped, one other agent alone",
    }
    parts = [words[chosen["split"]]]
    if chosen["unique"]:
        parts.append("repeated answers left out")
    if chosen["train"] is not None:
        parts.append(f"trained on {chosen['train']}")
    return ", ".join(parts)


def difference(verdicts: pd.DataFrame, one: str, other: str, seed: int) -> tuple[float, float, float] | None:
    """The detectability of ``one`` judge less that of the ``other``, on the trials that both judged, with its 95 %
    interval: percentiles of a bootstrap over stimuli (Poisson weights). None where it is not defined."""
    given = verdicts[verdicts["verdict"].isin(SAID)]
    names = given["judge"].where(given["judge_kind"] != "human", "people")
    both = set(given["trial"][names == one]) & set(given["trial"][names == other])
    some = given[given["trial"].isin(both)]
    names = names[given["trial"].isin(both)]
    stimuli, codes = np.unique(some["stimulus"].to_numpy(dtype=str), return_inverse=True)
    right = (some["verdict"] == some["truth"]).to_numpy(dtype=float)
    is_machine = (some["truth"] == "machine").to_numpy()
    cells = []  # [stimuli] of right and of number, for each judge and truth
    for judge in (one, other):
        for truth in (False, True):
            is_it = (names == judge).to_numpy() & (is_machine == truth)
            cells += [np.bincount(codes[is_it], weights, len(stimuli)) for weights in (right[is_it], None)]
    counts = np.array(cells, dtype=float).T
    if not len(stimuli) or not counts[:, 1::2].sum(axis=0).all():
        return None
    weights = np.random.default_rng(seed).poisson(1, (REPETITIONS, len(stimuli)))
    estimate, drawn = _difference(counts.sum(axis=0)), _difference(weights @ counts)
    low, high = np.nanpercentile(drawn, (2.5, 97.5))
    return float(estimate), float(low), float(high)


def _difference(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = counts[..., 0::2] / counts[..., 1::2]
    found: NDArray[np.float64] = (rates[..., :2].mean(axis=-1)) - rates[..., 2:].mean(axis=-1)
    return found


def _points(name: str, verdicts: pd.DataFrame, judge: str, other: str | None, seed: int) -> dict[str, float | None]:
    found = None if other is None or other == judge else difference(verdicts, judge, other, seed)
    values = (None,) * 3 if found is None else tuple(100 * value for value in found)
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _kin(chosen: Mapping[str, Any]) -> bytes:
    kept = {name: value for name, value in chosen.items() if name not in FOLDING}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)


def _is_grouped(chosen: Mapping[str, Any]) -> bool:
    return told(chosen) == "grouped by stimulus"
