"""Agreement of judges, against published examples and closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judging.agreement import agreement, krippendorff_alpha

NONE = float("nan")


def test_alpha_of_krippendorffs_own_example() -> None:
    """Krippendorff 2011, example C: four observers, twelve units, missing data, nominal: alpha = 0.743."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
    assert krippendorff_alpha(np.array(observers).T) == pytest.approx(0.743, abs=5e-4)


def test_alpha_of_judges_who_always_agree_and_of_a_coin() -> None:
    same = np.repeat(np.random.default_rng(0).integers(0, 2, (50, 1)), 3, axis=1).astype(float)
    assert krippendorff_alpha(same) == 1
    assert krippendorff_alpha(np.ones((5, 3))) is None
    coins = np.random.default_rng(0).integers(0, 2, (2000, 3)).astype(float)
    assert abs(krippendorff_alpha(coins) or 1) < 0.05


def test_pairs_and_fleiss_kappa() -> None:
    said = {"x": "HHHHMMMMHM", "y": "HHHMMMMHHM", "z": "HHHMMMHHMM"}
    rows = [
        {"judge": judge, "trial": at, "sample": 0, "verdict": {"H": "human", "M": "machine"}[letter]}
        for judge, letters in said.items()
        for at, letter in enumerate(letters)
    ]
    rows.append({"judge": "x", "trial": 0, "sample": 1, "verdict": "machine"})  # its first verdict counts
    rows.append({"judge": "y", "trial": 10, "sample": 0, "verdict": "refused"})
    found = agreement(pd.DataFrame(rows))
    x_and_y = found["pairs"][0]
    assert (x_and_y["first"], x_and_y["second"], x_and_y["trials"]) == ("x", "y", 10)
    assert x_and_y["alike"] == 0.8
    assert x_and_y["kappa"] == pytest.approx((0.8 - 0.5) / 0.5)
    # Fleiss 1971 by hand: eight trials alike (one of them 2 of 3) …
    share = np.array([sum(letters[at] == "M" for letters in said.values()) / 3 for at in range(10)])
    of_trials = float(np.mean([(3 * p * (3 * p - 1) + 3 * (1 - p) * (3 * (1 - p) - 1)) / 6 for p in share]))
    by_chance = float(share.mean() ** 2 + (1 - share.mean()) ** 2)
    assert found["fleiss"] == pytest.approx((of_trials - by_chance) / (1 - by_chance))
    assert found["trials_of_all"] == 10
