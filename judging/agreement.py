"""How far judges agree on the same trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from judging.verdicts import SAID

if TYPE_CHECKING:
    import pandas as pd


def said_by(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What each judge (column) said of each trial (row): 0 human, 1 machine, NaN where there is no verdict. Of several
    verdicts of a judge on a trial the first sample counts. ``verdicts`` as :mod:`judging.verdicts` gives them."""
    judged = verdicts[verdicts["verdict"].isin(SAID)].sort_values("sample").drop_duplicates(["trial", "judge"])
    is_machine = judged.assign(said=(judged["verdict"] == "machine").astype(float))
    return is_machine.pivot(index="trial", columns="judge", values="said")


def agreement(verdicts: pd.DataFrame) -> dict[str, Any]:
    """Agreement of the judges of one task.

    ``pairs``: for each two judges how many trials both judged, the share that they say alike, and Cohen's kappa (1960);
    ``fleiss`` kappa (1971) over the trials that all judged; Krippendorff's ``alpha`` (2011, nominal) over all trials
    that at least two judged, whatever is missing. Each is None where it is not defined.
    """
    table = said_by(verdicts)
    names, values = [str(name) for name in table.columns], table.to_numpy()
    pairs = [
        {"first": names[first], "second": names[second], **_pair(values[:, first], values[:, second])}
        for first in range(len(names))
        for second in range(first + 1, len(names))
    ]
    complete = values[~np.isnan(values).any(axis=1)]
    return {
        "judges": names,
        "pairs": pairs,
        "trials_of_all": len(complete),
        "fleiss": _fleiss(complete),
        "alpha": krippendorff_alpha(values),
    }


def _pair(first: NDArray[np.float64], second: NDArray[np.float64]) -> dict[str, Any]:
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return {"trials": 0, "alike": None, "kappa": None}
    first, second = first[both], second[both]
    alike = float((first == second).mean())
    chance = float(first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean()))
    kappa = None if chance == 1 else (alike - chance) / (1 - chance)
    return {"trials": int(both.sum()), "alike": alike, "kappa": kappa}


def _fleiss(values: NDArray[np.float64]) -> float | None:
    if values.shape[0] == 0 or values.shape[1] < 2 or values.min() == values.max():
        return None
    from statsmodels.stats.inter_rater import fleiss_kappa

    machine = values.sum(axis=1)
    return float(fleiss_kappa(np.column_stack([machine, values.shape[1] - machine])))


def krippendorff_alpha(values: NDArray[np.float64]) -> float | None:
    """Krippendorff's alpha for nominal data (Krippendorff 2011, "Computing Krippendorff's alpha-reliability").

    ``values`` [units, judges]; NaN where a judge has no value. None where no unit has two values, or all are alike.
    """
    units = values[(~np.isnan(values)).sum(axis=1) >= 2]
    kinds = np.unique(units[~np.isnan(units)])
    if len(kinds) < 2:
        return None
    counts = np.stack([(units == kind).sum(axis=1) for kind in kinds], axis=1).astype(np.float64)
    number = counts.sum(axis=1)
    observed = float(((number**2 - (counts**2).sum(axis=1)) / (number - 1)).sum())  # pairs that differ, weighted
    totals, pairable = counts.sum(axis=0), float(number.sum())
    expected = float((pairable**2 - (totals**2).sum()) / (pairable - 1))
    return 1 - observed / expected
