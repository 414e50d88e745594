"""The script that checks intervals: its truth in closed form, and that intervals that are too narrow are noticed."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

import calibrate_scores
import numpy as np
import pytest
from scipy.special import ndtr

from judging.measures import RATES, Score
from judging.tables import Estimate

OPTIONS = argparse.Namespace(studies=12, judges=40, stimuli=60, per_judge=20)


def test_what_is_drawn_has_the_true_rates() -> None:
    machines = np.array([-0.2, 0.6])
    options = argparse.Namespace(judges=3000, stimuli=3000, per_judge=20)
    verdicts = calibrate_scores.drawn(options, 0, 0.3, machines)
    spread = math.sqrt(1 + calibrate_scores.OF_JUDGES**2 + calibrate_scores.OF_STIMULI**2)
    right = (verdicts["verdict"] == verdicts["truth"]).groupby(verdicts["agent"]).mean()
    assert right["human:1"] == pytest.approx(ndtr(0.3 / spread), abs=0.02)
    assert right[["a0", "a1"]].tolist() == pytest.approx(ndtr(machines / spread).tolist(), abs=0.025)


def test_narrow_intervals_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {row.of: row.share for row in calibrate_scores.coverage(OPTIONS)}
    assert held["p_machine"] > 0.85
    assert [row.share > 0.8 for row in calibrate_scores.pass_rates(OPTIONS)] == [True] * 4
    overall = calibrate_scores.summarize

    def narrow(*args: Any) -> list[Score]:
        narrowed = []
        for row in overall(*args):
            ends = {name: getattr(row, name) for name in RATES}
            for name, (value, low, high) in {name: (e.value, e.low, e.high) for name, e in ends.items()}.items():
                ends[name] = Estimate(value, value + (low - value) / 4, value + (high - value) / 4)
            narrowed.append(replace(row, **ends))
        return narrowed

    monkeypatch.setattr(calibrate_scores, "summarize", narrow)
    assert all(row.share < 0.7 for row in calibrate_scores.coverage(OPTIONS))
    alarms = {row.of: row.share for row in calibrate_scores.null_judges(OPTIONS)}
    assert alarms["coin: above"] + alarms["coin: below"] > 0.3
