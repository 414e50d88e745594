"""The script that checks intervals and tests: its truth in closed form, and that narrow intervals are noticed."""

from dataclasses import replace
from typing import Any

import calibrate_scores
import pytest
from drawn_verdicts import Design, drawn

from judging.statistics.measures import MEASURES, Score
from judging.statistics.tables import Estimate


@pytest.mark.parametrize("judges", [1, 300])
def test_what_is_drawn_has_the_true_rates(judges: int) -> None:
    design = Design(judges, 3000, 3000 if judges == 1 else 60, (0.9, 0.3, 0.6))
    table, truth = drawn(design, 7)
    right = (table["verdict"] == table["truth"]).groupby(table["agent"]).mean()
    assert right[["human:1", "a0", "a1"]].tolist() == pytest.approx(truth, abs=0.06 if judges > 1 else 0.04)
    assert (truth == [0.9, 0.3, 0.6]) == (judges > 1)  # otherwise those of the judge who is drawn


def test_narrow_intervals_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    designs = [Design(3, 10, 10, (0.94, 0.94)), Design(20, 30, 30, (0.6, 0.6))]
    monkeypatch.setattr(calibrate_scores, "INTERVALS", designs)
    monkeypatch.setattr(calibrate_scores, "NOBODY_DIFFERS", calibrate_scores.NOBODY_DIFFERS[:1])
    monkeypatch.setattr(calibrate_scores, "UNDECIDED", calibrate_scores.UNDECIDED[1:2])
    shares = calibrate_scores.calibration(12)
    assert min(row.share for row in shares if row.wanted == calibrate_scores.HOLDS) >= 0.66
    others = (calibrate_scores.HOLDS, calibrate_scores.DECIDES)
    assert max(row.share for row in shares if row.wanted not in others) <= 0.34
    assert [row.share > 0.4 for row in shares if row.wanted == calibrate_scores.DECIDES] == [True]
    overall = calibrate_scores.summarize

    def narrow(*args: Any) -> list[Score]:
        narrowed = []
        for row in overall(*args):
            ends = {name: getattr(row, name) for name in MEASURES}
            for name, end in ends.items():
                ends[name] = Estimate(end.value, (7 * end.value + end.low) / 8, (7 * end.value + end.high) / 8)
            narrowed.append(replace(row, **ends))
        return narrowed

    monkeypatch.setattr(calibrate_scores, "summarize", narrow)
    held = [calibrate_scores.holds(designs[1], study) for study in range(20)]
    assert sum(study["detectability"] for study in held) < 12
