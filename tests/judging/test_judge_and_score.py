"""Classifiers as judges and the scores of their verdicts: against scikit-learn itself, and through the commands."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import in_process
import numpy as np
import pandas as pd
import pytest
from run_folders import write_run
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from agents.errors import InputError
from judging.classifier import ClassifierJudge, ClassifierSettings
from judging.features import Features, features
from judging.score import catch_rates, measure
from judging.trained import judge_trials
from judging.trial_set import key_path
from judging.verdicts import read_key, read_verdicts
from serving.cli import main


def path_trials(number: int, tell: float, seed: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Scanpath trials with their keys: people and two agents on each of some pictures; machines look ``tell`` pixels to
    the right."""
    chance = np.random.default_rng(seed)
    trials, keys = [], []
    for at in range(number):
        truth = "human" if at % 2 else "machine"
        agent = "human:1" if at % 2 else "ab"[at // 2 % 2]
        points = chance.normal((320 + tell * (truth == "machine"), 240), 60, (12, 2)).round()
        answer = {"fixations": points.tolist(), "frame": [640, 480]}
        trials.append({"id": f"t{at}", "asked": "attention_prediction", "shown": f"s{at // 4}", "answer": answer})
        keys.append({"truth": truth, "agent": agent, "catch": False, "repeat_of": None, "said": str(at), "asked": "x"})
    return trials, keys


def judged(trials: Any, keys: Any, **settings: Any) -> dict[str, dict[str, Any]]:
    judge = ClassifierJudge(ClassifierSettings(**settings), "svm")
    given = features(trials, None, None, judge.settings.path)
    return judge_trials(trials, keys, given, judge.settings, judge.new_model)


def share_right(found: Mapping[str, Any], trials: Any, keys: Any) -> float:
    said = [found[one["id"]]["margin"] > 0 for one in trials]
    truth = [key["truth"] == "machine" for key in keys[: len(said)]]
    return float(np.mean(np.array(said) == np.array(truth)))


def test_the_papers_code_is_scikit_learns_own() -> None:
    """KFold(10, shuffle, 42) and SVC() by themselves give the same margins."""
    trials, keys = path_trials(80, 40)
    found = judged(trials, keys, kernel="rbf", scaled=False, balanced=False, split="row", seed=42, path="padded15")
    rows = np.ones((80, 30))
    rows[:, :24] = [2 * np.ravel(t["answer"]["fixations"]) / np.tile([640, 480], 12) - 1 for t in trials]
    truth = np.array([key["truth"] == "machine" for key in keys])
    for number, (train, test) in enumerate(KFold(10, shuffle=True, random_state=42).split(rows)):
        margins = SVC().fit(rows[train], truth[train]).decision_function(rows[test])
        for at, margin in zip(test, margins, strict=True):
            assert found[f"t{at}"]["margin"] == pytest.approx(margin)
            assert found[f"t{at}"]["fold"] == number


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"split": "agent"}, {"split": "other"}, {"train": 40}])
def test_a_difference_is_found_and_none_is_not(settings: dict[str, Any]) -> None:
    trials, keys = path_trials(240, 60)
    assert share_right(judged(trials, keys, **settings), trials, keys) > 0.75
    trials, keys = path_trials(240, 0)
    assert 0.35 < share_right(judged(trials, keys, **settings), trials, keys) < 0.65


def test_answers_said_alike_on_one_stimulus_leak_through_folds_of_rows_alone() -> None:
    """Two machines that always say the same, which says nothing of what another machine would say."""
    chance = np.random.default_rng(0)
    trials, keys, rows = [], [], []
    for at in range(100):
        shared = chance.normal(size=40)
        for agent in ("human:1", "human:2", "a", "b"):
            truth = "human" if agent.startswith("human") else "machine"
            rows.append(shared if truth == "machine" else chance.normal(size=40))
            trials.append({"id": f"t{len(trials)}", "shown": f"s{at}"})
            said = f"m{at}" if truth == "machine" else f"h{len(trials)}"
            keys.append({"truth": truth, "agent": agent, "catch": False, "repeat_of": None, "said": said, "asked": "x"})
    given = Features(np.array(rows), np.arange(len(rows)))
    rates = {}
    for split in ("row", "stimulus"):
        judge = ClassifierJudge(ClassifierSettings(kernel="rbf", split=split), "svm")
        found = judge_trials(trials, keys, given, judge.settings, judge.new_model)
        machines = [(one, key) for one, key in zip(trials, keys, strict=True) if key["truth"] == "machine"]
        rates[split] = np.mean([found[one["id"]]["margin"] > 0 for one, _ in machines])
    assert rates["row"] > 0.75
    assert rates["stimulus"] < 0.65


@pytest.mark.parametrize(("split", "told"), [("agent", "a"), ("other", "b")])
def test_an_agents_answers_are_judged_by_who_has_not_met_it(split: str, told: str) -> None:
    """Agent a looks to the right, b to the left: who has met b alone takes a for a person, and the other way round."""
    trials, keys = path_trials(240, 0)
    for trial, key in zip(trials, keys, strict=True):
        step = {"a": 150, "b": -150}.get(key["agent"], 0)
        trial["answer"]["fixations"] = [[x + step, y] for x, y in trial["answer"]["fixations"]]
    found = judged(trials, keys, split=split)
    of_a = [found[trial["id"]] for trial, key in zip(trials, keys, strict=True) if key["agent"] == "a"]
    assert np.mean([one["margin"] > 0 for one in of_a]) < 0.1
    assert {one["agent"] for one in of_a} == {told}
    alone = judged(trials, keys, kernel="rbf")
    assert np.mean([alone[trial["id"]]["margin"] > 0 for trial, key in zip(trials, keys, strict=True)
                    if key["agent"] == "a"]) > 0.9  # fmt: skip


def test_catch_trials_are_judged_and_not_trained_on() -> None:
    trials, keys = path_trials(80, 60)
    plain = judged(trials, keys)
    odd = [dict(one, id=f"c{at}", shown=one["shown"]) for at, one in enumerate(trials)]
    catch = [dict(key, catch=True, truth="machine") for key in keys]
    both = judged(trials + odd, keys + catch, split="stimulus")
    assert set(both) == {*plain, *(f"c{at}" for at in range(80))}
    assert share_right(both, trials, keys) > 0.75  # although as many catch trials say the opposite


def test_a_short_path_is_not_judged_by_ten_fixations() -> None:
    trials, keys = path_trials(80, 60)
    trials[3]["answer"]["fixations"] = trials[3]["answer"]["fixations"][:9]
    assert "t3" not in judged(trials, keys)
    assert "t3" in judged(trials, keys, path="padded15")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People's words and two machines', judged by two classifiers through the commands."""
    folder = tmp_path_factory.mktemp("words")
    chance = random.Random(0)
    words = [f"word{at}" for at in range(30)]
    truth = {
        f"cue{at}": [
            {"cueWord": f"cue{at}", "response": chance.choice(words[:20] if who == "human" else words[10:]),
             "groundtruth": who, "human_groundtruth": name if who == "human" else "",
             "machine_groundtruth": name if who == "machine" else ""}
            for who, name in [("human", "01"), ("human", "02"), ("machine", "alpha"), ("machine", "beta")]
        ]
        for at in range(40)
    }  # fmt: skip
    (folder / "word.json").write_text(json.dumps(truth))
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "published")]) == 0
    assert main(["trials", str(folder / "published"), "--out", str(folder / "T")]) == 0
    judges = ["--judges", "svm,svm-paper-code", "--set", "svm-paper-code.pictures=none"]
    with pytest.MonkeyPatch.context() as patch:
        in_process.without_ray(patch)
        assert main(["judge", str(folder / "T"), *judges, "--out", str(folder / "V")]) == 0
    return folder


def test_one_verdict_for_each_judge_and_trial(verdicts: Path) -> None:
    table = read_verdicts([verdicts / "V"])
    assert len(table) == 2 * 160
    assert not table.duplicated(["judge", "trial"]).any()
    assert set(table["verdict"]) == {"human", "machine"}
    key = read_key(key_path(verdicts / "T"))
    for row in table.to_dict("records"):
        assert (row["truth"], row["agent"]) == (key[row["trial"]]["truth"], key[row["trial"]]["agent"])


def test_scores_are_those_of_the_verdicts(verdicts: Path, tmp_path: Path) -> None:
    out = tmp_path / "S"
    assert main(["score", str(verdicts / "V"), "--out", str(out)]) == 0
    with (out / "scores.csv").open(newline="") as file:
        rows = {(row["judge"], row["agent"]): row for row in csv.DictReader(file)}
    table = read_verdicts([verdicts / "V"])
    for (judge, agent), row in rows.items():
        some = table[(table["judge"] == judge)]
        people = some[some["truth"] == "human"]
        machines = some[(some["truth"] == "machine") & (True if agent == "all" else some["agent"] == agent)]
        human, machine = (people["verdict"] == "human").mean(), (machines["verdict"] == "machine").mean()
        assert float(row["detectability"]) == pytest.approx((human + machine) / 2)
        assert int(row["machine_machine"]) == (machines["verdict"] == "machine").sum()
    found = json.loads((out / "scores.json").read_bytes())
    assert "320 verdicts of 2 judges" in found["methods"]
    assert {(row["of"], row["number"]) for row in found["statistics"]} == {
        ("people", 80), ("published:alpha", 40), ("published:beta", 40),
    }  # fmt: skip
    assert (out / "statistics.csv").read_text().count("letters") == 3
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 3
    names = {"overview", "word_association-svm", "word_association-svm-paper-code"}
    assert {path.stem for path in (out / "figures").iterdir()} == names
    drawn = (out / "figures" / "word_association-svm.svg").read_text()
    row = rows["svm", "published:beta"]
    assert all(f"{share:.2f}<" in drawn for share in (float(row["p_machine"]), 1 - float(row["p_machine"])))
    assert "published:alpha" in page
    assert "The answers themselves" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_another_sets_key_is_refused(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trials", str(verdicts / "published"), "--out", str(tmp_path / "T"), "--seed", "9"]) == 0
    code = main(["score", str(verdicts / "V"), "--key", str(key_path(tmp_path / "T")), "--out", str(tmp_path / "S")])
    assert code == 2
    assert "is the key of other trials" in capsys.readouterr().err
    assert not (tmp_path / "S").exists()


def test_peoples_verdicts_come_in_as_a_table(
    verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    run, table = tmp_path / "all" / "V", tmp_path / "people.csv"
    key = read_key(key_path(tmp_path / "all" / "T"))
    said = [(trial, f"p{at % 7}", "Human" if at % 3 else "machine") for at, trial in enumerate(key)]
    lines = ["stimulus,subject,response", *(",".join(one) for one in said)]
    table.write_text("\n".join([*lines, "t0001,p0,maybe"]) + "\n")
    command = ["import", str(table), "--task", "judgement", "--out", str(run)]
    assert main(command) == 2
    assert (
        "people.csv:162: response: must be human or machine, or what --responses give a meaning, not 'maybe'"
        in capsys.readouterr().err
    )
    table.write_text("\n".join(lines) + "\n")
    assert main(command) == 0
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "scores.csv").open(newline="") as file:
        [row] = [row for row in csv.DictReader(file) if (row["judge"], row["agent"]) == ("people", "all")]
    machines = [answer for trial, _, answer in said if key[trial]["truth"] == "machine"]
    assert int(row["machine_machine"]) == machines.count("machine")
    assert int(row["machine_human"]) == machines.count("Human")
    shutil.copytree(verdicts / "V", tmp_path / "few")
    for record in (tmp_path / "few" / "records").iterdir():
        record.unlink()
    about = json.loads((tmp_path / "few" / "run.json").read_bytes())
    (tmp_path / "few" / "run.json").write_text(json.dumps({**about, "agents": {}}))
    table.write_text("\n".join(lines[:41]) + "\n")
    assert main([*command[:-1], str(tmp_path / "few")]) == 0
    both = [str(verdicts / "V"), str(tmp_path / "few"), "--key", str(key_path(tmp_path / "all" / "T"))]
    assert main(["score", *both, "--out", str(tmp_path / "S2")]) == 0
    assert "40 of 160 trials have verdicts of all of people, svm, svm-paper-code" in capsys.readouterr().out
    assert main([*command[:-1], str(tmp_path / "alone")]) == 0
    assert main(["score", str(tmp_path / "alone"), *both[2:], "--out", str(tmp_path / "S3")]) == 2
    assert "has imported answers alone: import them into the folder that `judge` wrote" in capsys.readouterr().err


def test_a_run_of_answers_has_no_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "R", [{"id": "a", "task": "word_association", "cue": "sun"}], {}, {})
    assert main(["score", str(folder), "--out", str(tmp_path / "S")]) == 2
    assert "R holds no verdicts: `turinglike judge` writes them" in capsys.readouterr().err


def test_an_edited_trial_is_not_judged(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(verdicts / "T", tmp_path / "T")
    shutil.copy(key_path(verdicts / "T"), key_path(folder))
    lines = (folder / "trials.jsonl").read_text().splitlines()
    trial = json.loads(lines[6])
    trial["answer"]["word"] += "s"
    lines[6] = json.dumps(trial)
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["judge", str(folder), "--judges", "cue-length", "--out", str(tmp_path / "V")]) == 2
    told = capsys.readouterr().err
    assert "T.key.csv is the key of other trials" in told
    assert f"trials.jsonl:7: {trial['id']}: is no trial of" in told
    assert not (tmp_path / "V").exists()


def test_a_key_that_was_changed_is_refused(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    key = key_path(tmp_path / "all" / "T")
    lines = key.read_bytes().split(b"\r\n")
    flipped = lines[1].replace(b",human,", b",machine,") if b",human," in lines[1] else lines[1].replace(
        b",machine,", b",human,"
    )  # fmt: skip
    key.write_bytes(b"\r\n".join([lines[0], flipped, *lines[2:]]))
    assert main(["score", str(tmp_path / "all" / "V"), "--key", str(key), "--out", str(tmp_path / "S")]) == 2
    assert "is not as `turinglike trials` wrote it" in capsys.readouterr().err
    (tmp_path / "all" / "T.trials.json").write_text("{")
    assert main(["score", str(tmp_path / "all" / "V"), "--key", str(key), "--out", str(tmp_path / "S")]) == 2
    assert "T.trials.json: cannot be read" in capsys.readouterr().err

    (tmp_path / "all" / "T.trials.json").unlink()  # without it nobody knows the key
    run = tmp_path / "all" / "V" / "run.json"
    about = json.loads(run.read_bytes())
    about["set"] |= {"root": str(tmp_path / "gone" / "T")}
    run.write_text(json.dumps(about))
    assert main(["score", str(tmp_path / "all" / "V"), "--key", str(key), "--out", str(tmp_path / "S")]) == 2
    assert "T.key.csv cannot be trusted" in capsys.readouterr().err


def test_records_that_were_changed_after_the_run_are_not_scored(
    verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    run = tmp_path / "all" / "V"
    path = run / "records" / "svm.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"verdict":"machine"', b'"verdict":"human"'))
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 2
    told = capsys.readouterr().err
    assert "records are not those that the run wrote" in told
    assert "svm.jsonl: its checksum is not that in run.json" in told
    assert "svm-paper-code.jsonl" not in told
    assert not (tmp_path / "S").exists()


def test_records_that_hold_no_verdict_are_named_by_line_and_field(
    verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(verdicts, tmp_path / "all")
    run = tmp_path / "all" / "V"
    key = read_key(key_path(tmp_path / "all" / "T"))
    (tmp_path / "people.csv").write_text(
        "\n".join(["stimulus,subject,response", *(f"{trial},p1,human" for trial in list(key)[:5])])
    )
    assert main(["import", str(tmp_path / "people.csv"), "--task", "judgement", "--out", str(run)]) == 0
    path = run / "records" / "humans.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    records[1]["answer"]["verdict"] = "<script>"
    records[2]["answer"]["confidence"] = -5
    records[4]["answer"] |= {"confidence": 1.5, "reason": 3}
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 2
    told = capsys.readouterr().err
    assert "humans.jsonl:2: answer.verdict: Input should be 'human', 'machine', 'refused' or 'unparsed'" in told
    assert "humans.jsonl:3: answer.confidence: Input should be greater than or equal to 0" in told
    assert "humans.jsonl:5: answer.confidence: Input should be less than or equal to 1" in told
    assert "humans.jsonl:5: answer.reason: " in told
    assert told.count("humans.jsonl:") == 4
    assert not (tmp_path / "S").exists()


@pytest.mark.parametrize(("asked", "lacks"), [("word_association", False), ("color_estimation", True)])
def test_weights_for_pictures_are_needed_for_colours_alone(tmp_path: Path, asked: str, lacks: bool) -> None:
    trials = tmp_path / "trials.jsonl"
    trials.write_text(json.dumps({"id": "t1", "asked": asked}) + "\n")
    chosen = ClassifierSettings(pictures="deep", picture_weights=str(tmp_path / "none.pth"), trials=trials)
    told = ClassifierJudge(chosen, "svm-paper-code").missing()
    assert (told is not None and "ResNet18's weights" in told) == lacks


def test_judges_are_trained_where_there_is_something_to_learn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"response": word, "groundtruth": "human", "human_groundtruth": name}
        for word, name in zip("abcd", "1234", strict=True)
    ]
    rows += [{"response": "e", "groundtruth": "machine", "machine_groundtruth": f"m{at}"} for at in range(4)]
    for name, content in (("one", {"sun": rows}), ("people", {"sun": rows[:4], "moon": rows[:4]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        imported = ["import", str(tmp_path / f"{name}.json"), "--task", "word_association"]
        assert main([*imported, "--out", str(tmp_path / name)]) == 0
        assert main(["trials", str(tmp_path / name), "--every", "--out", str(tmp_path / f"{name}-t")]) == 0
        assert main(["judge", str(tmp_path / f"{name}-t"), "--judges", "svm", "--out", str(tmp_path / "V")]) == 2
        why = {"one": "to one stimulus, and none is left to train on", "people": "are a human's"}[name]
        assert f"svm: cannot be trained: all answers in word_association {'are ' if name == 'one' else ''}{why}" in (
            capsys.readouterr().err
        )
    assert not (tmp_path / "V").exists()


def test_trials_of_two_sets_are_told_apart(verdicts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)
    assert main(["trials", str(verdicts / "published"), "--out", str(tmp_path / "T"), "--seed", "9"]) == 0
    assert main(["judge", str(tmp_path / "T"), "--judges", "cue-length", "--out", str(tmp_path / "V")]) == 0
    table = read_verdicts([verdicts / "V", tmp_path / "V"])
    assert table["trial"].nunique() == 2 * 160
    assert measure(table, [], 0)["agreement"]["word_association"]["trials_of_all"] == 0
    with pytest.raises(InputError, match="two verdicts of svm, svm-paper-code on the same trials"):
        read_verdicts([verdicts / "V", verdicts / "V"])


def test_what_is_not_judged_yet_is_told(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(verdicts / "V", tmp_path / "V")
    about = json.loads((tmp_path / "V" / "run.json").read_bytes())
    for judge in about["agents"].values():
        del judge["records"]  # the run has not ended
    (tmp_path / "V" / "run.json").write_text(json.dumps(about))
    lines = tmp_path / "V" / "records" / "svm.jsonl"
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(keepends=True)[:100]))
    assert (
        main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S"), "--key", str(key_path(verdicts / "T"))]) == 0
    )
    found = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    whole = {row["judge"]: row["unjudged"] for row in found["scores"] if row["agent"] == "all"}
    assert whole == {"svm": 60, "svm-paper-code": 0}
    assert "60 unjudged" in (tmp_path / "S" / "index.html").read_text()
    lines.write_bytes(b"")
    (tmp_path / "V" / "records" / "svm-paper-code.jsonl").write_bytes(b"")
    capsys.readouterr()
    assert (
        main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S2"), "--key", str(key_path(verdicts / "T"))]) == 2
    )
    assert "no verdict can be scored: 320 unjudged" in capsys.readouterr().err
    (tmp_path / "V" / "stimuli.jsonl").unlink()
    assert (
        main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S2"), "--key", str(key_path(verdicts / "T"))]) == 2
    )


def test_a_key_says_human_or_machine(verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = key_path(verdicts / "T").read_text()
    (tmp_path / "key.csv").write_text(text.replace(",machine,", ",alien,", 1))
    assert main(["score", str(verdicts / "V"), "--out", str(tmp_path / "S"), "--key", str(tmp_path / "key.csv")]) == 2
    assert "'alien' is neither human nor machine" in capsys.readouterr().err


def test_people_of_a_run_that_is_read_whole_are_not_read_again(verdicts: Path, tmp_path: Path) -> None:
    people = f"{verdicts / 'published'}:humans"
    assert main(["trials", str(verdicts / "published"), "--people", people, "--out", str(tmp_path / "T")]) == 0
    with key_path(tmp_path / "T").open(newline="") as file:
        keys = list(csv.DictReader(file))
    assert len({(row["record"], row["sample"], row["stimulus"]) for row in keys}) == len(keys) == 160


def test_who_is_given_nothing_that_varies_says_human() -> None:
    trials, keys = path_trials(40, 0)
    judge = ClassifierJudge(ClassifierSettings(), "svm")
    nothing = Features(np.ones((40, 3)), np.arange(40))
    found = judge_trials(trials, keys, nothing, judge.settings, judge.new_model)
    assert {one["margin"] for one in found.values()} == {0.0}


def test_what_is_no_judge_and_no_trial_set_is_said(
    verdicts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", str(verdicts / "T"), "--judges", "mmcq", "--out", str(tmp_path / "V")]) == 2
    assert "mmcq: is no judge: it answers color_estimation" in capsys.readouterr().err
    assert main(["judge", str(tmp_path), "--judges", "svm", "--out", str(tmp_path / "V")]) == 2
    assert "is no trial set" in capsys.readouterr().err
    assert main(["score", str(verdicts / "published"), "--out", str(tmp_path / "S")]) == 2


def test_repeats_and_catch_trials_are_told_apart(verdicts: Path) -> None:
    table = read_verdicts([verdicts / "V"])
    table["catch"] = table["trial"].isin(["t0001", "t0002"])
    table.loc[table["trial"] == "t0004", "repeat_of"] = "t0003"
    found = measure(table, [], 0)
    assert {row["judge"] for row in catch_rates(table)} == {"svm", "svm-paper-code"}
    assert sum(row["trials"] for row in catch_rates(table)) == 4
    assert [row["verdicts"] for row in found["repeats"]] == [1, 1]
    refused = table.assign(verdict=table["verdict"].where(table["trial"] != "t0004", "refused"))
    assert measure(refused, [], 0)["repeats"] == []
    further = table.assign(sample=1, verdict=["human"] * len(table))
    again = measure(pd.concat([table, further], ignore_index=True), [], 0)
    assert again["scores"] == found["scores"]  # no verdict counts twice
    assert again["tests"] == found["tests"]
    alike = (table["verdict"][table["judge"] == "svm"] == "human").mean()
    assert again["samples"][0] == {
        "asked": "word_association", "judge": "svm", "verdicts": 160, "alike": pytest.approx(alike)
    }  # fmt: skip
    whole = next(row for row in found["scores"] if row["agent"] == "all")
    assert sum(whole[name] for name in ("human_human", "human_machine", "machine_human", "machine_machine")) == 157


def test_many_people_are_scored_together_and_not_two_by_two(verdicts: Path) -> None:
    table = read_verdicts([verdicts / "V"])
    people = table[table["judge"] == "svm"].assign(judge_kind="human")
    people["judge"] = [f"human:{at % 50}" for at in range(len(people))]
    found = measure(pd.concat([table, people]), [], 0)
    assert {row["judge"] for row in found["scores"]} == {"people", "svm", "svm-paper-code"}
    [told] = found["agreement"].values()
    assert told["judges"] == ["svm", "svm-paper-code"]
    assert len(told["pairs"]) == len(found["tests"]["word_association"]["between_judges"]) == 1
    alone = measure(people, [], 0)
    assert alone["agreement"]["word_association"]["pairs"] == []
    assert alone["tests"]["word_association"]["between_judges"] == []


def test_what_is_told_beside_cues_and_folds(verdicts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process.without_ray(monkeypatch)
    judges = ["--judges", "svm,svm-rows,svm-unique,cues"]
    assert main(["judge", str(verdicts / "T"), *judges, "--out", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S")]) == 0
    found = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    rows = {row["judge"]: row for row in found["ledger"]}
    cues = {name for name in rows if name.startswith("cue-")}
    assert cues == {"cue-constant", "cue-length", "cue-punctuation", "cue-frequency", "cue-metadata"}  # of words
    whole = {row["judge"]: row["detectability"] for row in found["scores"] if row["agent"] == "all"}
    best = rows["svm"]["best_cue"]
    assert whole[best] == max(whole[name] for name in cues)
    assert rows["svm"]["above_cue"] == pytest.approx(100 * (whole["svm"] - whole[best]))
    assert rows["svm-rows"]["above_grouped"] == pytest.approx(100 * (whole["svm-rows"] - whole["svm"]))
    assert rows["svm-rows"]["split"] == "single rows"
    assert rows["svm-unique"]["grouped"] == "svm"
    assert rows["cue-constant"]["accuracy"] == rows["cue-constant"]["always_human"] == 0.5
    page = (tmp_path / "S" / "index.html").read_text()
    assert "What the scores are worth" in page
    assert "Judges by agents" in page
