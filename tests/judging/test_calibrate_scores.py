"""The script that checks intervals: its truth in closed form, and that they hold it."""

from __future__ import annotations

import argparse
import math

import calibrate_scores
import numpy as np
import pytest
from scipy.special import ndtr

OPTIONS = argparse.Namespace(studies=12, judges=40, stimuli=60, per_judge=20)


def test_what_is_drawn_has_the_true_rates() -> None:
    machines = np.array([-0.2, 0.6])
    options = argparse.Namespace(judges=3000, stimuli=3000, per_judge=20)
    verdicts = calibrate_scores.drawn(options, 0, 0.3, machines)
    spread = math.sqrt(1 + calibrate_scores.OF_JUDGES**2 + calibrate_scores.OF_STIMULI**2)
    right = (verdicts["verdict"] == verdicts["truth"]).groupby(verdicts["agent"]).mean()
    assert right["human:1"] == pytest.approx(ndtr(0.3 / spread), abs=0.02)
    assert right[["a0", "a1"]].tolist() == pytest.approx(ndtr(machines / spread).tolist(), abs=0.025)


def test_intervals_hold_the_truth() -> None:
    held = {row.of: row.share for row in calibrate_scores.coverage(OPTIONS)}
    assert held["p_machine"] > 0.85
    assert [row.share > 0.8 for row in calibrate_scores.pass_rates(OPTIONS)] == [True] * 4
