"""Trained judges on a set with versions: retrained on each, with the same folds, so that a change is one of answers."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawn_judges import DrawnJudge

from agents.errors import InputError
from judging import judge
from judging import trials as draw_trials
from judging.judges.asking import ask_judges
from judging.judges.features import Features
from judging.judges.trained import TrainedJudge, TrainedSettings, in_versions
from judging.scores.verdicts import open_verdicts, read_answers, read_verdicts
from judging.statistics.verdict_table import as_drawn
from judging.trial_sets.trial_set import read_trial_key
from serving.cli import main
from tests.judging.trial_sets.test_versions_of_trials import captions

NUMBER = 40


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People write small letters without a mark, the machine capitals; both the same words."""
    folder = tmp_path_factory.mktemp("runs")
    nouns = ["dog", "cat", "tree", "house", "car"]
    of_people = [f"a {nouns[at % 5]} by a {nouns[(at // 5) % 5]}" for at in range(NUMBER)]
    of_machine = [f"A {nouns[(at // 5) % 5]} by a {nouns[at % 5]}" for at in range(NUMBER)]
    run = captions(folder, of_people, of_machine)
    options: dict[str, Any] = {"without": "case,punctuation,length", "per_judge": 10, "lists": 2, "repeats": 0.2}
    draw_trials(run, folder / "T", seed=1, **options)
    return folder / "T"


def margins(out: Path, judge_name: str) -> dict[str, dict[str, tuple[float, int]]]:
    """By version, and within by the trial of version "", the margin and the fold; without repeats."""
    table = read_verdicts(open_verdicts([out]))
    table = table[(table["judge"] == judge_name) & table["repeat_of"].isna()]
    found: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    for row in table.to_dict("records"):
        first = row["trial"] if pd.isna(row["version_of"]) else row["version_of"]
        found[row["version"]][first] = (row["margin"], row["fold"])
    return found


@pytest.mark.parametrize("settings", [{}, {"equal": True, "train": 30}])
def test_versions_have_the_folds_of_the_answers_as_drawn(drawn: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    judge(drawn, "cue-punctuation", tmp_path / "V", settings={"cue-punctuation": settings}, here=True)
    found = margins(tmp_path / "V", "cue-punctuation")
    assert len(found) == 8
    for version, of_version in found.items():
        assert of_version.keys() == found[""].keys()
        for first, (margin, fold) in of_version.items():
            assert fold == found[""][first][1]
            if "case" not in version:  # there is no mark, and all are of one length: nothing has changed
                assert margin == found[""][first][0]


def test_folds_are_of_whole_blocks(drawn: Path, tmp_path: Path) -> None:
    """Answers of a block were matched with each other: to learn from some would be to learn about the others."""
    judge(drawn, "cue-punctuation", tmp_path / "V", here=True)
    key = read_trial_key(drawn.with_name("T.key.csv"))
    folds: dict[int, set[int]] = defaultdict(set)
    for first, (_, fold) in margins(tmp_path / "V", "cue-punctuation")[""].items():
        folds[key[first]["block"]].add(fold)
    assert len(folds) == 10  # of four of the 40 stimuli each
    assert {len(of_block) for of_block in folds.values()} == {1}
    assert len({fold for of_block in folds.values() for fold in of_block}) == 10


def test_what_learns_from_answers_of_the_same_block_is_refused(drawn: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        judge(drawn, "cue-punctuation", tmp_path / "V", settings={"cue-punctuation": {"split": "row"}}, here=True)
    assert "split=row learns from answers that were matched with those that it judges" in str(caught.value.problems)


def test_a_grid_of_all_versions_is_refused(drawn: Path) -> None:
    """It would show each answer several times, and all forms of it to one judge."""
    with pytest.raises(InputError) as caught:
        ask_judges(drawn, "llm-judge-openai-papers")
    assert "judge this set without grid" in str(caught.value.problems)


def test_versions_that_change_no_answer_are_not_learned_again(
    drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = []
    whole = TrainedJudge.judge_trials

    def counted(self: Any, trials: Any, keys: Any, inputs: Any) -> Any:
        learned.append(len(trials))
        return whole(self, trials, keys, inputs)

    monkeypatch.setattr(TrainedJudge, "judge_trials", counted)
    judge(drawn, "cue-punctuation", tmp_path / "V", here=True)
    assert len(learned) == 2  # eight versions, of which four are without capitals, and marks and lengths are all alike


def test_a_tell_that_is_taken_away_is_no_longer_learned(drawn: Path, tmp_path: Path) -> None:
    judge(drawn, "cue-punctuation,cue-length", tmp_path / "V", here=True)
    table = read_verdicts(open_verdicts([tmp_path / "V"]))
    table = table[(table["judge"] == "cue-punctuation") & table["repeat_of"].isna()]
    is_right = (table["verdict"] == table["truth"]).groupby(table["version"]).mean()
    assert is_right[""] == is_right["punctuation"] == is_right["punctuation+length"] == 1
    assert is_right["case"] == is_right["punctuation+case+length"] == 0.5


def test_records_tell_how_far_a_margin_moves_with_each_fold(drawn: Path, tmp_path: Path) -> None:
    judge(drawn, "cue-length", tmp_path / "V", here=True)
    table = read_verdicts(open_verdicts([tmp_path / "V"]))
    table = table[table["repeat_of"].isna()]
    assert {len(moves) for moves in table["moves"]} == {table["fold"].nunique()}


def test_a_fold_that_drops_out_moves_nothing_and_the_others_keep_their_places() -> None:
    """As where a version leaves a fold without answers that can be judged."""
    chance = np.random.default_rng(0)
    number = 80
    trials = [{"id": str(at), "asked": "word_association", "shown": str(at // 2)} for at in range(number)]
    truth = [("human", "machine")[at % 2] for at in range(number)]
    empty = {"catch": False, "repeat_of": None, "version": "", "block": None}
    keys = [{"truth": says, "agent": "a", **empty} for says in truth]
    rows = chance.normal(size=(number, 2))
    judged = DrawnJudge(TrainedSettings(seed=1), "drawn")
    judged.models = []
    whole = judged.judge_trials(trials, keys, {"": Features(rows, np.arange(number))})
    kept = np.array([at for at in range(number) if whole[str(at)]["fold"] != 3])
    part = judged.judge_trials(trials, keys, {"": Features(rows[kept], kept)})
    assert {raw["fold"] for raw in part.values()} == set(range(10)) - {3}
    for raw in part.values():
        assert len(raw["moves"]) == 10
        assert raw["moves"][3] == raw["moves"][raw["fold"]] == 0


def test_sets_with_other_versions_are_scored_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(1)
    of_people = [" ".join(chance.choices(["dog", "cat", "tree"], k=chance.randint(2, 6))) for _ in range(24)]
    run = captions(tmp_path, of_people, [text.capitalize() + " here." for text in of_people])
    for name, without in (("B", "case"), ("C", "length")):
        draw_trials(run, tmp_path / name, seed=1, without=without)
        judge(tmp_path / name, "cue-length", tmp_path / f"V{name}", here=True)
    verdicts = [str(tmp_path / "VB"), str(tmp_path / "VC")]
    assert main(["score", *verdicts, "--out", str(tmp_path / "S")]) == 0
    capsys.readouterr()
    assert main(["score", *verdicts, "--out", str(tmp_path / "M"), "--by", "moves"]) == 2
    assert "the verdicts have no moves" in capsys.readouterr().err


def test_repeats_have_the_verdict_on_what_they_repeat(drawn: Path, tmp_path: Path) -> None:
    judge(drawn, "cue-length", tmp_path / "V", here=True)
    table = read_verdicts(open_verdicts([tmp_path / "V"])).set_index("trial")
    again = table[table["repeat_of"].notna()]
    assert len(again) == 4
    for _, row in again.iterrows():
        first = table.loc[row["repeat_of"]]
        assert (row["margin"], row["fold"], row["version"]) == (first["margin"], first["fold"], first["version"])


def test_answers_are_read_once(drawn: Path, tmp_path: Path) -> None:
    judge(drawn, "cue-length", tmp_path / "V", here=True)
    runs = open_verdicts([tmp_path / "V"])
    answers = read_answers(runs)
    assert len(answers) == 2 * NUMBER
    assert {answer["version"] for answer in answers} == {""}
    table = read_verdicts(runs)
    assert sorted(as_drawn(table)["trial"]) == sorted({answer["trial"] for answer in answers} | _repeats(table))
    both = read_verdicts(open_verdicts([tmp_path / "V"]))
    assert set(both["version_of"].dropna()) == {answer["trial"] for answer in answers}


def _repeats(table: Any) -> set[str]:
    return set(table[table["repeat_of"].notna() & table["version_of"].isna()]["trial"])


def test_a_set_without_versions_is_judged_as_one(drawn: Path) -> None:
    trials: list[dict[str, Any]] = [{"id": f"t{number}"} for number in range(4)]
    key: dict[str, dict[str, Any]] = {trial["id"]: {"version": None, "repeat_of": None} for trial in trials}
    assert in_versions(trials, key) == [(trials, {"t0", "t1", "t2", "t3"})]
    rows = read_trial_key(drawn.with_name("T.key.csv"))
    entries = in_versions([{"id": name} for name in rows], rows)
    assert len(entries) == 8
    firsts = [trial["id"] for trial in entries[0][0]]
    for of_version, judged in entries[1:]:
        assert [rows[trial["id"]]["version_of"] for trial in of_version] == firsts
        assert np.unique([rows[name]["version"] for name in judged]).size == 1
