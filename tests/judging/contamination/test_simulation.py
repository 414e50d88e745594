"""The script that simulates contaminated studies: its truth, and that intervals which are too narrow are noticed."""

from dataclasses import replace

import numpy as np
import pytest
import simulate_contamination as script

from judging.contamination.latent_classes import Counts
from judging.contamination.marks import MARKS
from judging.contamination.rate import Rate
from judging.statistics.tables import Estimate


@pytest.mark.parametrize("name", script.SEPARABILITY)
def test_what_is_drawn_has_the_true_shares(name: str) -> None:
    studies = [script.draw(np.random.default_rng([3, at]), name, True, 0.3) for at in range(40)]
    own, foreign = (np.array(shares) for shares in script.SEPARABILITY[name])
    with_check = 1 - (1 - own[script.CHECK]) * (1 - foreign[script.CHECK])  # a person's questions, or a copied page
    found = {"laboratory": [], "field": []}  # type: ignore[var-annotated]
    for study in studies:
        for place in found:
            number = getattr(study.counts, place).sum(axis=0)
            known = number @ ~np.isnan(study.counts.patterns)
            found[place].append(number @ np.nan_to_num(study.counts.patterns) / known)
    assert np.mean(found["laboratory"], axis=0) == pytest.approx(own, abs=0.02)
    inserted, away, _, check = np.mean(found["field"], axis=0)
    assert inserted == pytest.approx(0.7 * own[0] + 0.3 * foreign[0], abs=0.02)
    assert away == pytest.approx(0.7 * own[1] + 0.3 * foreign[1], abs=0.02)
    assert check == pytest.approx(0.7 * own[3] + 0.3 * with_check, abs=0.02)
    right = np.mean([study.right.reshape(2, -1).mean(axis=1) for study in studies], axis=0)
    assert right == pytest.approx([0.7 * script.OWN + 0.3 * script.FOREIGN, script.MACHINE], abs=0.01)
    assert studies[0].counts.patterns.shape[1] == len(MARKS)


def test_shares_of_few_studies_hold_and_narrow_intervals_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, means = script.simulate("strong", False, 0.3, 25)
    by_name = {share[0]: share for share in shares}
    assert by_name.keys() == {"rate", "p(H|H)", "detectability"}
    assert min(share[1] for share in shares) >= 0.8
    rate, _, correction, error, true, without = means
    assert rate == pytest.approx(0.3, abs=0.03)
    assert correction == pytest.approx(true, abs=4 * error)
    assert without == 0
    whole = script.estimate_rate

    def narrow(*counts: Counts) -> Rate:
        found = whole(*counts)
        end = found.estimate
        ends = Estimate(end.value, (7 * end.value + end.low) / 8, (7 * end.value + end.high) / 8)
        return replace(found, estimate=ends)

    monkeypatch.setattr(script, "estimate_rate", narrow)
    [share] = [share for share in script.simulate("strong", False, 0.3, 25)[0] if share[0] == "rate"]
    assert share[-1] == "fails"


def test_at_rate_zero_alarms_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, means = script.simulate("middle", True, 0.0, 20)
    [alarm] = [share for share in shares if share[0] == "alarm"]
    assert alarm[1] <= 0.1
    assert abs(means[2]) <= 4 * means[3]
    whole = script.estimate_rate

    def alarmed(*counts: Counts) -> Rate:
        found = whole(*counts)
        return replace(found, estimate=replace(found.estimate, low=0.001))

    monkeypatch.setattr(script, "estimate_rate", alarmed)
    shares, _ = script.simulate("middle", True, 0.0, 20)
    assert {share[0]: share[-1] for share in shares}["alarm"] == "fails"


@pytest.mark.parametrize(("low", "verdict"), [(0.0, "holds more"), (0.001, "fails")])
def test_intervals_that_always_hold_are_too_wide_but_near_zero(
    monkeypatch: pytest.MonkeyPatch, low: float, verdict: str
) -> None:
    """At a rate of 0.1: nominal on one side alone where intervals begin at 0."""
    whole = script.estimate_rate

    def wide(*counts: Counts) -> Rate:
        found = whole(*counts)
        return replace(found, estimate=replace(found.estimate, low=low, high=0.9))

    monkeypatch.setattr(script, "estimate_rate", wide)
    shares, _ = script.simulate("strong", True, 0.1, 80)
    assert {share[0]: share[-1] for share in shares}["rate"] == verdict


def test_pairs_that_are_drawn_have_the_true_pass_rates() -> None:
    wrong: dict[bool, list[bool]] = {False: [], True: []}
    for study in range(4):
        verdicts, of_task = script.draw_pairs(np.random.default_rng([7, study]), "strong", 0.3)
        assert (of_task.persons, of_task.answers) == (script.PERSONS, 2 * script.PERSONS)
        assert len(of_task.pattern_of) == of_task.answers
        posterior = {key: float(of_task.rate.posterior[0, at]) for key, at in of_task.pattern_of.items()}
        of_talk: dict[str, float] = {}
        for key, probability in posterior.items():
            of_talk[key.stimulus] = max(of_talk.get(key.stimulus, 0.0), probability)
        for row in verdicts.itertuples():
            if not 0.05 < of_talk[str(row.trial)] < 0.95:
                wrong[of_talk[str(row.trial)] > 0.5].append(row.verdict != row.truth)
    assert np.mean(wrong[False]) == pytest.approx(script.PASSES, abs=0.04)
    assert np.mean(wrong[True]) == pytest.approx(0.5, abs=0.04)
