"""Variances of changes where judges, stimuli and people are drawn: against own sums, statsmodels, and closed forms."""

from itertools import chain, combinations, product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import t as student

from judging.statistics.crossed import Crossed, crossed, unseen
from judging.statistics.jackknife import Clusters, Codes, Floats

BOTH = np.array([0.5, -0.5])  # the weights of a first and a second version


def drawn_design(judges: int, stimuli: int, people: int, seed: int) -> tuple[pd.DataFrame, np.random.Generator]:
    """Each judge judges people's (``side`` 0) and a machine's answer to each stimulus in two versions."""
    chance = np.random.default_rng(seed)
    rows = pd.DataFrame(
        list(product(range(judges), range(stimuli), (0, 1), (0, 1))), columns=["judge", "stimulus", "side", "version"]
    )
    rows["person"] = np.where(rows["side"] == 0, rows["stimulus"] % people, -1)
    ability = chance.normal(0, 1, judges)[rows["judge"]] * (1 - 0.8 * rows["version"])
    ease = chance.normal(0, 1, (stimuli, 2))[rows["stimulus"], rows["side"]] * (0.5 + rows["version"])
    rows["right"] = (ability + ease + chance.normal(size=len(rows)) > 0).astype(float)
    return rows, chance


def weights_of(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """The weights of verdicts in the change, and their errors: four rates, each of as many verdicts."""
    number = len(rows) / 4
    weights = BOTH[rows["version"]] / number
    rates = rows.groupby(["side", "version"])["right"].transform("mean")
    return weights, weights * (rows["right"] - rates).to_numpy()


def clusters_of(rows: pd.DataFrame) -> Clusters:
    judge, stimulus, person = (rows[name].to_numpy(dtype=np.int64) for name in ("judge", "stimulus", "person"))
    return Clusters(judge, stimulus, person, np.ones(len(rows)))


def units_of(rows: pd.DataFrame) -> Codes:
    return rows.groupby(["judge", "stimulus", "side"]).ngroup().to_numpy(dtype=np.int64)


def of_rows(rows: pd.DataFrame) -> Crossed:
    weights, errors = weights_of(rows)
    added = unseen(weights[None], errors[None], rows["person"].to_numpy() >= 0, units_of(rows))
    return crossed(np.array([(weights * rows["right"]).sum()]), weights[None], errors[None], clusters_of(rows), added)


def divisor_of(rows: pd.DataFrame) -> float:
    """By how much squares of errors are too small: 1 minus 1 by the clusters of each dimension, as all have the same
    weight."""
    return (
        1
        - 1 / rows["judge"].nunique()
        - 1 / rows["stimulus"].nunique()
        + 1 / rows.groupby(["judge", "stimulus"]).ngroups
    )


def test_the_variance_is_that_of_statsmodels_on_differences() -> None:
    """OLS of the differences between versions on the side, with errors clustered by judges and by stimuli."""
    rows, _ = drawn_design(12, 20, 1, 3)
    result = of_rows(rows)
    wide = rows.pivot(index=["judge", "stimulus", "side"], columns="version", values="right").reset_index()
    design = np.column_stack([wide["side"] == 0, wide["side"] == 1]).astype(float)
    fit = sm.OLS(wide[0] - wide[1], design).fit(
        cov_type="cluster", cov_kwds={"groups": wide[["judge", "stimulus"]].to_numpy(), "use_correction": False}
    )
    test = fit.t_test(np.array([0.5, 0.5]))
    assert result.value[0] == pytest.approx(test.effect.item())
    assert result.variance[0] * divisor_of(rows) == pytest.approx(test.sd.item() ** 2)


def test_three_dimensions_are_added_and_subtracted() -> None:
    rows, _ = drawn_design(6, 12, 4, 1)
    weights, errors = weights_of(rows)
    result = of_rows(rows)
    of_people = rows["person"] >= 0
    total = 0.0
    of_freedom = 0.0
    largest = 0.0
    of_trials = (rows.assign(error=errors).groupby(["judge", "stimulus"])["error"].sum() ** 2).sum() * 72 / 71
    dimensions = ["judge", "stimulus", "person"]
    for names in chain.from_iterable(combinations(dimensions, size) for size in (1, 2, 3)):
        used = of_people if "person" in names else of_people | True
        keys = [rows.loc[used, name] for name in names]
        sums = pd.Series(errors)[used].groupby(keys).sum()
        sizes = pd.Series(np.abs(weights))[used].groupby(keys).sum()
        number = sizes.sum() ** 2 / (sizes**2).sum()
        part = (sums**2).sum() * number / (number - 1)
        sign = 1 if len(names) % 2 else -1
        total += sign * (part if "person" in names else (sums**2).sum())
        expected = part
        if names in (("judge",), ("stimulus",)) and part < of_trials:
            expected = ((number - 1) * part + 2 * of_trials) / (number + 1)
        of_freedom += sign * expected**2 / (number - 1)
        if len(names) == 1:
            largest = max(largest, part)
    total /= divisor_of(rows)
    assert result.variance[0] == pytest.approx(total)
    assert result.freedom[0] == pytest.approx(max(total, largest) ** 2 / of_freedom)
    low, high = result.interval()
    reach = student.ppf(0.975, result.freedom[0]) * np.sqrt(total)
    assert (low[0], high[0]) == pytest.approx((result.value[0] - reach, result.value[0] + reach))
    at_end = Crossed(np.array([reach]), result.variance, result.freedom)
    assert at_end.p()[0] == pytest.approx(0.05)


def test_the_variance_of_judges_and_stimuli_is_that_of_drawn_effects() -> None:
    """Four judges of five stimuli, whose effects are drawn: the mean of the estimates is the variance of the mean,
    the sum of each effect's variance by its number. A factor for each dimension alone gave 84 % of it."""
    judges = 4
    stimuli = 5
    of_judges = 1.0
    of_stimuli = 0.6
    chance = np.random.default_rng(0)
    judge, stimulus = (place.ravel() for place in np.indices((judges, stimuli)))
    nobody = np.full(len(judge), -1)
    clusters = Clusters(judge, stimulus, nobody, np.ones(len(judge)))
    estimates = []
    for _ in range(4000):
        values = of_judges * chance.normal(size=judges)[judge] + of_stimuli * chance.normal(size=stimuli)[stimulus]
        values += 0.3 * chance.normal(size=len(judge))
        weights = np.full(len(judge), 1 / len(judge))
        errors = weights * (values - values.mean())
        estimates.append(crossed(np.zeros(1), weights[None], errors[None], clusters, np.zeros(1)).variance[0])
    truth = of_judges**2 / judges + of_stimuli**2 / stimuli + 0.3**2 / len(judge)
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - truth) < 4 * error
    assert 4 * error < 0.05 * truth


def test_the_variance_of_independent_verdicts_is_binomial() -> None:
    """Judges and stimuli without effects: the mean of the estimates is that of four binomial rates."""
    rate = 0.7
    estimates = []
    for seed in range(300):
        rows, chance = drawn_design(8, 15, 1, seed)
        rows["right"] = (chance.random(len(rows)) < rate).astype(float)
        estimates.append(of_rows(rows).variance[0])
    number = 8 * 15
    truth = 4 * 0.25 * rate * (1 - rate) / number
    spread = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - truth) < 4 * spread + 0.01 * truth  # a little more, by the least share


def test_where_nothing_changes_each_side_counts_as_if_half_an_answer_did() -> None:
    rows, _ = drawn_design(1, 30, 1, 5)
    rows["right"] = rows.groupby(["stimulus", "side"])["right"].transform("first")
    result = of_rows(rows)
    assert result.value[0] == 0
    assert result.variance[0] == pytest.approx(2 * (0.25 / 30) ** 2)
    assert result.freedom[0] == pytest.approx(29)
    assert result.p()[0] == 1


def test_a_judges_part_that_is_small_by_chance_does_not_make_the_variance_well_known() -> None:
    """Two judges who happen to be alike: their single degree of freedom tells nothing, and the variance is poor."""
    rows, _ = drawn_design(2, 40, 1, 4)
    first = rows[rows["judge"] == 0].reset_index(drop=True)
    second = first.assign(judge=1, right=1 - first["right"])  # errors that add up to nothing over a stimulus
    alike = pd.concat([first, second], ignore_index=True)
    balanced = alike.assign(right=alike["right"].where(alike["stimulus"] % 2 == 0, 1 - alike["right"]))
    assert of_rows(balanced).freedom[0] < 4


def test_an_agent_at_a_single_stimulus_has_no_interval() -> None:
    rows, _ = drawn_design(6, 12, 1, 2)
    for most, is_known in ((0, False), (1, True)):
        few = rows[(rows["side"] == 0) | (rows["stimulus"] <= most)]
        number = few.groupby(["side", "version"])["right"].transform("size").to_numpy()
        weights = BOTH[few["version"]] * 2 / number / 2
        rates = few.groupby(["side", "version"])["right"].transform("mean").to_numpy()
        errors = weights * (few["right"].to_numpy() - rates)
        result = crossed(np.zeros(1), weights[None], errors[None], clusters_of(few), np.full(1, 1e-3))
        assert np.isnan(result.variance[0]) == (not is_known)


def test_a_sum_without_verdicts_is_not_known() -> None:
    rows, _ = drawn_design(3, 5, 1, 0)
    none = np.zeros((1, len(rows)))
    result = crossed(np.array([0.5]), none, none, clusters_of(rows), np.zeros(1))
    assert np.isnan([result.value, result.variance, result.freedom, *result.interval(), result.p()]).all()


def test_a_known_variance_adds_no_uncertainty() -> None:
    rows, _ = drawn_design(6, 12, 4, 1)
    plain = of_rows(rows)
    added = plain.with_added(3 * plain.variance)
    assert added.variance == pytest.approx(4 * plain.variance)
    assert added.freedom == pytest.approx(16 * plain.freedom)
