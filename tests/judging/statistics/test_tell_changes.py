"""Changes of detectability by version: against own counts in pandas, and studies with known truth."""

import drawn_versions
import numpy as np
import pandas as pd
import pytest
import simulate_tells
from drawn_versions import AGENTS, TELLS, VERSIONS, WHAT, Design
from statsmodels.stats.multitest import multipletests

from judging.statistics.contrasts import holm
from judging.statistics.flips import FEW_VERDICTS
from judging.statistics.tell_changes import ALONE, LAST, PLANTED, tell_changes
from judging.statistics.tell_properties import correlated_properties
from judging.statistics.versions import DRAWN, judged_versions, taken

ONE = Design(24, 36, 36, 6)
ALL = Design(4, 12, 8, 6)
OF_CLASSIFIER = Design(1, 20, 20, 6, 2)


def detectability(table: pd.DataFrame, agent: str, version: str) -> float:
    """The mean judge's, counted in pandas."""
    of_version = table[table["version"] == version]
    right = (of_version["verdict"] == of_version["truth"]).astype(float)
    rates = []
    for side in (of_version["truth"] == "human", of_version["agent"] == agent):
        rates.append(right[side].groupby(of_version["judge"][side]).mean().mean())
    return float(np.mean(rates))


@pytest.mark.parametrize(
    ("draw", "design"),
    [
        (drawn_versions.people_see_one, ONE),
        (drawn_versions.people_see_all, ALL),
        (drawn_versions.classifier, OF_CLASSIFIER),
    ],
)
def test_the_changes_are_those_counted_in_pandas(draw: simulate_tells.Draw, design: Design) -> None:
    table, _ = draw(design, 5)
    shuffled = table.sample(frac=1, random_state=1)
    changes, left = tell_changes("words", shuffled)
    assert len(changes) == len(AGENTS) * (2 * len(TELLS) + 1)
    for row in changes:
        first = DRAWN
        second = row.tell
        if row.taken == LAST:
            first = WHAT.but(row.tell)
            second = WHAT.all_gone
        elif row.taken == PLANTED:
            second = f"plant:{row.tell}"
        before = detectability(table, row.agent, first)
        after = detectability(table, row.agent, second)
        assert [row.before, row.after, row.change.value] == pytest.approx([before, after, before - after], abs=1e-9)
        assert row.change.low <= row.change.value <= row.change.high
        assert row.p is not None
        if row.change.low > -1 and row.change.high < 1:
            assert (row.p < 0.05) == (not row.change.low <= 0 <= row.change.high)
        assert row.family == len(changes)
        assert row.is_trained == (draw is drawn_versions.classifier)
    adjusted = multipletests([row.p for row in changes], method="holm")[1]
    assert [row.holm for row in changes] == pytest.approx(adjusted)
    for rest in left:
        assert rest.remains.value == pytest.approx(detectability(table, rest.agent, WHAT.all_gone))
        assert rest.above.value == pytest.approx(detectability(table, rest.agent, DRAWN) - rest.remains.value)
        assert rest.gone == "length+case+hedging"
    assert [rest.holm for rest in left] == pytest.approx(holm([rest.p for rest in left]))


def test_each_judge_that_is_no_person_has_a_family_of_its_own() -> None:
    table, _ = drawn_versions.people_see_all(ALL, 2)
    machine = table.assign(judge="model", judge_kind="machine").drop_duplicates(["judge", "trial"])
    changes, _ = tell_changes("words", pd.concat([table, machine]))
    alone, _ = tell_changes("words", table)
    assert {row.judge for row in changes} == {"people", "model"}
    assert [row for row in changes if row.judge == "people"] == alone


def test_the_same_answers_are_paired() -> None:
    """A judge whose verdicts do not move between two versions has next to no error; other answers have all of it."""
    table, _ = drawn_versions.people_see_all(Design(1, 60, 60, 6), 4)
    drawn = table[table["version"] == DRAWN]
    again = drawn.assign(version="length", version_of=drawn["trial"], trial=drawn["trial"] + 10**6)
    paired, _ = tell_changes("words", pd.concat([drawn, again]))
    elsewhere = {"stimulus": again["stimulus"] + 10**6, "block": again["block"] + 10**6}
    apart, _ = tell_changes("words", pd.concat([drawn, again.assign(**elsewhere, version_of=again["trial"] + 10**6)]))
    assert {row.tell for row in paired} == {"length"}
    for row, other in zip(paired, apart, strict=True):
        assert row.change.value == other.change.value == 0
        assert row.change.high < 0.04 < 0.045 < other.change.high


def test_nameless_people_are_those_of_the_answer_in_every_version() -> None:
    table, _ = drawn_versions.people_see_all(ALL, 2)
    table["agent"] = table["agent"].where(table["truth"] == "machine", "human")
    judged = judged_versions(table)
    of_people = judged.agent < 0
    by_answer = pd.Series(judged.clusters.people[of_people]).groupby(judged.answer[of_people]).nunique()
    assert (by_answer == 1).all()
    assert len(set(judged.clusters.people[of_people].tolist())) == len(by_answer)


def test_a_version_that_was_not_judged_has_no_change() -> None:
    table, _ = drawn_versions.people_see_all(ALL, 2)
    changes, _ = tell_changes("words", table[(table["agent"] != "one") | (table["version"] != "length")])
    unknown = [row for row in changes if np.isnan(row.change.value)]
    assert [(row.agent, row.tell, row.taken, row.p, row.holm, row.family) for row in unknown] == [
        ("one", "length", ALONE, None, None, None)
    ]
    assert {row.family for row in changes if row.p is not None} == {len(changes) - 1}


def test_what_no_answer_has_is_not_tested() -> None:
    """Nobody has hedges; a classifier learns from all agents' answers, so that all of them must look alike."""
    table, _ = drawn_versions.people_see_all(Design(1, 20, 20, 6), 2)
    shown = [version.replace("+hedging", "").replace("hedging", "") for version in table["version"]]
    table["seen"] = table["version_of"].fillna(table["trial"]).astype(int).astype(str).str.cat(shown, sep=" ")
    changes, _ = tell_changes("words", table)
    alike = [row for row in changes if row.is_alike]
    assert {(row.tell, row.taken) for row in alike} == {("hedging", ALONE), ("hedging", LAST)}
    assert {(row.p, row.holm, row.family) for row in alike} == {(None, None, None)}
    assert all(np.isnan(row.change.low) for row in alike)
    assert {row.family for row in changes if not row.is_alike} == {len(changes) - 2 * len(AGENTS)}
    table["seen"] = table["seen"].where(table["agent"] != "two", table["trial"].astype(str))
    of_others, _ = tell_changes("words", table)
    assert {row.agent for row in of_others if row.is_alike} == {"none", "one"}
    trained, _ = tell_changes("words", table.assign(margin=np.where(table["verdict"] == "machine", 1.0, -1.0)))
    assert not any(row.is_alike for row in trained)


def test_names_of_versions_are_read() -> None:
    what = taken(["", "plant:case", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"])
    assert (what.tells, what.planted, what.all_gone, what.but("b")) == (["a", "b", "c"], ["case"], "a+b+c", "a+c")
    assert taken(["", "case"]).but("case") == ""
    assert taken([""]).tells == []


@pytest.mark.parametrize(
    ("draw", "design"),
    [
        (drawn_versions.people_see_one, Design(40, 72, 36, 12)),
        (drawn_versions.people_see_all, Design(12, 40, 10, 12)),
        (drawn_versions.people_see_all, Design(1, 60, 60, 12)),
        (drawn_versions.classifier, Design(1, 30, 30, 12, 2)),
    ],
)
def test_the_true_values_of_the_simulation_are_those_of_many_studies(draw: simulate_tells.Draw, design: Design) -> None:
    away = []
    for number in range(40):
        table, truths = draw(design, number)
        away.append([detectability(table, *place) - truth for place, truth in truths.items()])
    error = np.std(away, axis=0, ddof=1) / np.sqrt(len(away))
    assert np.abs(np.mean(away, axis=0) / error).max() < 4.5
    assert len(away[0]) == len(AGENTS) * len(VERSIONS)


def test_the_true_values_of_a_classifier_by_counts_are_those_of_many_studies() -> None:
    away = []
    for number in range(10):
        table, truths = drawn_versions.classifier_by_counts(Design(1, 20, 20, 12, 1, 0.5), number)
        away.append([detectability(table, *place) - truth for place, truth in truths.items()])
    error = np.std(away, axis=0, ddof=1) / np.sqrt(len(away))
    assert (np.abs(np.mean(away, axis=0)) < 5.5 * error + 0.004).all()


def test_the_true_values_of_a_classifier_by_length_alone_are_those_of_many_studies() -> None:
    """Where lengths are matched, it finds nothing in truth, and on average in studies."""
    away = []
    for number in range(25):
        table, truths = drawn_versions.classifier_by_length(Design(1, 30, 30, 12, 2), number)
        places = [(agent, version) for version in (DRAWN, "length") for agent in AGENTS]
        assert [truths["none", version] for version in (DRAWN, "length")] == pytest.approx([0.5, 0.5], abs=0.004)
        assert [truths[agent, "length"] for agent in AGENTS] == pytest.approx([0.5, 0.5, 0.5], abs=0.05)
        away.append([detectability(table, *place) - truths[place] for place in places])
    error = np.std(away, axis=0, ddof=1) / np.sqrt(len(away))
    assert np.abs(np.mean(away, axis=0) / error).max() < 4.5


def test_the_shares_of_a_linear_model_are_those_of_drawn_answers() -> None:
    """The closed form, against answers with the same lengths whose other features are drawn again and again."""
    chance = np.random.default_rng(1)
    answers = drawn_versions._drawn(OF_CLASSIFIER, chance)
    model = drawn_versions.LeastSquares()
    model.slopes = np.array([0.5, -0.8, 0.3, 0.4, -0.2])
    model.start = 0.1
    again = np.repeat(np.arange(len(answers.speaker)), 5000)
    speaker = answers.speaker[again]
    own = answers.properties[again, 0] - drawn_versions.SHIFTS[speaker, 0]
    for at, version in enumerate(VERSIONS):
        rows = chance.normal(size=(len(again), 5))
        rows[:, 1] = drawn_versions.SHIFTS[speaker, 1] + 0.6 * own + 0.8 * rows[:, 1]
        rows[:, 3] += 2 * drawn_versions.OTHERWISE[speaker]
        rows[:, 0] = answers.lengths(at)[again]
        for place, tell in enumerate(TELLS[1:], start=1):
            if tell in version and version != drawn_versions.PLANT_LENGTH:
                rows[:, place] = 0
        says_machine = model.decision_function(rows) > 0
        shares = drawn_versions._share_of_linear(model, answers, at)
        for of in range(4):
            assert shares[of] == pytest.approx(says_machine[speaker == of].mean(), abs=0.006)


def test_further_answers_have_the_distribution_of_their_speaker() -> None:
    further = drawn_versions._further(2, 3, 0.0)
    assert np.bincount(further.block).tolist() == [3 * 5] * drawn_versions.FURTHER
    for of, shift in enumerate(drawn_versions.SHIFTS):
        own = further.properties[further.speaker == of]
        assert own[:, 0].mean() == pytest.approx(shift[0], abs=1e-9)
        assert own[:, 1:].mean(axis=0) == pytest.approx(shift[1:], abs=0.05)
        assert np.corrcoef(own.T)[0, 1:] == pytest.approx([0.6, 0], abs=0.05)
    lengths = further.means(further.matched)
    assert np.ptp(lengths) < 0.05  # those of "one" and "two" are cut to what the others have
    assert (further.matched <= further.properties[:, 0]).all()
    assert further.planted[further.speaker == 0].tolist() == further.properties[further.speaker == 0, 0].tolist()


def test_errors_of_matched_versions_are_added_up_by_block() -> None:
    """As if the block were the stimulus; those of other versions are not."""
    table, _ = drawn_versions.people_see_all(Design(4, 40, 20, 6), 3)
    in_blocks = judged_versions(table.assign(stimulus=table["block"], block=None))
    by_stimulus = judged_versions(table.assign(block=None))
    both = judged_versions(table)
    for change in (("one", DRAWN, "length"), ("one", DRAWN, "case"), ("one", DRAWN, "plant:length"), ("one", "", None)):
        is_matched = "length" in (change[1] or "") + (change[2] or "")
        expected = in_blocks if is_matched else by_stimulus
        assert both.changes([change]).variance == pytest.approx(expected.changes([change]).variance)
    assert in_blocks.changes([("one", DRAWN, "length")]).variance != pytest.approx(
        by_stimulus.changes([("one", DRAWN, "length")]).variance
    )


def test_sets_of_the_same_stimuli_have_other_blocks_and_the_larger_variance_counts() -> None:
    table, _ = drawn_versions.people_see_all(Design(4, 40, 20, 6), 3)
    change = ("one", DRAWN, "length")
    again = table.assign(
        trial=table["trial"] + 10**6,
        version_of=table["version_of"] + 10**6,
        block=(table["stimulus"] // 4).map("second set {}".format),
    )
    both = pd.concat([table.assign(block=table["block"].astype(str)), again])
    judged = judged_versions(both)
    by_stimulus = judged_versions(both.assign(block=None)).changes([change])
    by_block = judged_versions(both.assign(stimulus=both["block"], block=None)).changes([change])
    assert judged.changes([change]).variance == max(by_stimulus.variance, by_block.variance)
    # A set without blocks beside one with: its stimuli are as good as blocks.
    alone = pd.concat([table.assign(block=table["block"].astype(str)), again.assign(block=None)])
    assert judged_versions(alone).in_blocks is not None


def test_a_matched_change_of_a_trained_judge_has_the_degrees_of_freedom_of_blocks() -> None:
    table, _ = drawn_versions.classifier(Design(1, 40, 40, 12, 3), 4)
    changes = [("one", DRAWN, "length"), ("one", "length", None), ("one", "case", None)]
    result = judged_versions(table).changes(changes)
    assert all(sum(move == 0 for move in moves) == 1 for moves in table["moves"])  # that of the model that judged
    tripled = [[3 * move for move in moves] for moves in table["moves"]]
    coupled = judged_versions(table.assign(moves=tripled)).changes(changes)
    assert (coupled.variance > result.variance).all()
    assert coupled.freedom[:2] == pytest.approx(result.freedom[:2])  # of ten blocks
    assert coupled.freedom[2] > result.freedom[2]


def test_answers_need_not_be_judged_in_all_versions() -> None:
    """As in two sets, each with another property taken away: a change is that of its two versions alone."""
    table, _ = drawn_versions.classifier(OF_CLASSIFIER, 4)
    is_first = table["stimulus"] % 2 == 0
    is_drawn = table["version"] == DRAWN
    is_case = (table["version"] == "case") & is_first
    is_hedging = (table["version"] == "hedging") & ~is_first
    both_sets = judged_versions(table[is_drawn | is_case | is_hedging])
    for version, is_in in (("case", is_case), ("hedging", is_hedging)):
        change = ("one", DRAWN, version)
        alone = judged_versions(table[is_drawn | is_in]).changes([change])
        among = both_sets.changes([change])
        assert among.value == pytest.approx(alone.value)
        assert among.variance == pytest.approx(alone.variance)
    # No answer is judged in both versions, and so the errors are those of two independent detectabilities.
    table = table[is_hedging | is_case].assign(moves=None)
    apart = judged_versions(table)
    found = apart.changes([("one", "case", "hedging")])
    of_each = apart.changes([("one", "case", None), ("one", "hedging", None)])
    assert found.variance[0] == pytest.approx(of_each.variance.sum(), rel=0.2)


def test_of_an_agent_at_one_stimulus_no_judge_has_an_interval() -> None:
    change = ("one", DRAWN, "hedging")
    trained, _ = drawn_versions.classifier(OF_CLASSIFIER, 4)
    asked, _ = drawn_versions.people_see_all(Design(1, 40, 40, 6), 4)
    for table in (trained, asked):
        few = table[(table["agent"] != "one") | (table["stimulus"] == 3)]
        result = judged_versions(few).changes([change, ("two", DRAWN, "hedging")])
        assert np.isnan(result.variance[0])
        assert np.isfinite(result.variance[1])


def test_parts_of_a_verdict_count_by_their_mean_in_any_order() -> None:
    """Two partitions of a judge, as the judges of captions have three."""
    table, _ = drawn_versions.classifier(OF_CLASSIFIER, 4)
    chance = np.random.default_rng(0)
    parts = []
    for part in (0, 1):
        margin = table["margin"] + 0.3 * chance.normal(size=len(table))
        parts.append(table.assign(part=part, margin=margin, verdict=np.where(margin > 0, "machine", "human")))
    both = pd.concat(parts, ignore_index=True)
    change = ("one", DRAWN, "hedging")
    found = judged_versions(both).changes([change])
    again = judged_versions(both.sample(frac=1, random_state=1)).changes([change])
    assert again.value == pytest.approx(found.value)
    assert again.variance == pytest.approx(found.variance)


@pytest.mark.parametrize("odd", [None, [], ["x"] * 10, [0.1] * 9])
def test_moves_that_are_not_told_leave_whole_margins(odd: object) -> None:
    table, _ = drawn_versions.classifier(OF_CLASSIFIER, 4)
    change = ("one", "length+case+hedging", None)
    without = judged_versions(table.drop(columns="moves")).changes([change])
    moves = table["moves"].tolist()
    moves[3] = odd
    assert judged_versions(table.assign(moves=moves)).changes([change]).variance == without.variance
    assert judged_versions(table).changes([change]).variance != without.variance


def test_few_changed_verdicts_of_a_trained_judge_have_the_variance_by_stimuli() -> None:
    """Ten verdicts hardly meet in ten blocks. With many the variance is that by blocks."""
    numbers = []
    for study in range(12):
        table, _ = drawn_versions.classifier(OF_CLASSIFIER, study)
        table = table.assign(moves=[[0.0] * 10] * len(table))  # so that nothing is added by training
        in_blocks = judged_versions(table)
        without = judged_versions(table.assign(block=None))
        for first, second in (("length+case", "length+case+hedging"), (DRAWN, "length")):
            shown = table[
                table["version"].isin([first, second]) & ((table["truth"] == "human") | (table["agent"] == "one"))
            ]
            answers = shown["version_of"].fillna(shown["trial"])
            number = (shown.groupby(answers)["verdict"].nunique() == 2).sum()
            found, other = (judged.changes([("one", first, second)]) for judged in (in_blocks, without))
            numbers.append(number)
            if number <= FEW_VERDICTS:
                assert found.variance == pytest.approx(other.variance)
                assert found.freedom == pytest.approx(other.freedom)
            else:
                assert found.variance != pytest.approx(other.variance)
                assert found.freedom < other.freedom
    assert min(numbers) <= FEW_VERDICTS < max(numbers)


def test_where_a_trained_judge_changes_no_verdict_its_margins_tell_the_variance() -> None:
    table, _ = drawn_versions.classifier(OF_CLASSIFIER, 4)
    drawn = table[table["version"] == DRAWN]
    again = drawn.assign(version="hedging", version_of=drawn["trial"], trial=drawn["trial"] + 1)
    moved = again.assign(margin=again["margin"] * np.where(np.arange(len(again)) % 2, 0.9, 1.1))
    change = ("one", DRAWN, "hedging")
    judged = judged_versions(pd.concat([drawn, moved]))
    assert judged.changes([change]).value == [0]
    number = {"none": (drawn["truth"] == "human").sum(), "one": (drawn["agent"] == "one").sum()}
    half_an_answer = sum((0.25 / of_side) ** 2 for of_side in number.values())
    not_moved = judged_versions(pd.concat([drawn, again])).changes([change])
    assert judged.changes([change]).variance > not_moved.variance
    assert not_moved.variance == pytest.approx(half_an_answer)


def test_correlation_and_intervention_may_disagree() -> None:
    """Judges go by case, which goes with length: length correlates with their verdicts, and nobody goes by it."""
    chance = np.random.default_rng(0)
    rows = []
    answers = []
    for at in range(400):
        is_machine = at % 2 == 1
        case = chance.normal() + is_machine
        length = case + 0.1 * chance.normal()
        speaker = {"truth": "machine" if is_machine else "human", "agent": "a" if is_machine else f"human:{at}"}
        for number, version in enumerate(("", "length", "case", "length+case")):
            seen = case if "case" not in version else 0.0
            says_machine = seen + 0.3 * chance.normal() > 0.5
            row = {
                "judge": "j",
                "judge_kind": "machine",
                "stimulus": at // 2,
                "trial": f"{at}.{number}",
                "version": version,
                "version_of": f"{at}.0" if version else None,
                "verdict": "machine" if says_machine else "human",
                **speaker,
            }
            rows.append(row)
            answers.append({**row, "length": length, "case": case})
    table = pd.DataFrame(rows)
    changes, _ = tell_changes("words", table)
    measures = {name: (lambda answer, name=name: answer[name]) for name in ("length", "case")}
    by_tell = {found.tell: found for found in correlated_properties("words", table, answers, measures, changes)}
    as_drawn = [answer for answer in answers if answer["version"] == ""]
    for tell, found in by_tell.items():
        values = pd.Series([answer[tell] for answer in as_drawn])
        says = pd.Series([answer["verdict"] == "machine" for answer in as_drawn], dtype=float)
        of_machine = np.array([answer["truth"] == "machine" for answer in as_drawn])
        above = values[of_machine].to_numpy()[:, None] > values[~of_machine].to_numpy()
        assert found.correlation == pytest.approx(values.corr(says))
        assert found.auc == pytest.approx(above.mean())
    assert "no fall of detectability is shown" in by_tell["length"].disagrees
    assert by_tell["case"].disagrees == ""
    assert by_tell["case"].removed == pytest.approx(1, abs=0.3)
