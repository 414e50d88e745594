"""Trials that a trained judge leaves out: whose they are and why, from `judge` to the sentence of `score`."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage

from judging.judges.classifier import ClassifierJudge, ClassifierSettings
from judging.judges.trained import NO_TRAINING, TrainedJudge
from serving.cli import main
from serving.runs.run import Run
from serving.runs.status import print_status
from tests.helpers import in_process
from tests.helpers.run_folders import ANSWERS, agent_entry, failed, record, stimulus, write_run

GAZE = "attention_prediction"
PICTURES = 40
PERSON = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None}


def _run(folder: Path) -> Path:
    """A person's and a machine's path on each picture; every fourth of the person's has seven fixations."""
    chance = np.random.default_rng(0)
    stimuli = []
    records: dict[str, list[dict[str, Any]]] = {"gbvs": [], "humans": []}
    for at in range(PICTURES):
        PILImage.new("RGB", (64, 48), (at, 90, 90)).save(folder / f"{at}.png")
        stimuli.append(stimulus(str(at), GAZE, image=f"{at}.png"))
        for name, number in (("gbvs", 12), ("humans", 7 if at % 4 == 0 else 12)):
            points = np.column_stack([chance.integers(0, 64, number), chance.integers(0, 48, number)])
            answer: dict[str, Any] = {**ANSWERS[GAZE], "fixations": points.tolist(), "frame": [64, 48]}
            if name == "gbvs":
                records[name].append(record(str(at), GAZE, name, answer=answer, seed=at))
            else:
                records[name].append(record(str(at), GAZE, "human:ann", answer=answer, **PERSON))
    return write_run(folder / "run", stimuli, records, {"gbvs": agent_entry(GAZE)})


def test_judge_and_score_say_whose_trials_were_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process.without_ray(monkeypatch)
    assert main(["trials", str(_run(tmp_path)), "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    capsys.readouterr()
    assert main(["judge", str(tmp_path / "T"), "--judges", "svm,cue-length", "--out", str(tmp_path / "V")]) == 1
    told = capsys.readouterr().out
    of_judge = next(line for line in told.splitlines() if line.startswith("svm did not judge"))
    assert "svm did not judge 10 of 80 trials (10 of 40 of people, 0 of 40 of machines). " in told
    assert "These trials count in no rate." in of_judge
    assert "no_features 10, as " in of_judge
    why = (
        "a scanpath of 7 fixations: svm judges those of 10 at least; with the setting svm.path=padded15 (--set) it "
        "judges shorter"
    )
    assert why in of_judge
    assert "cue-length did not judge" not in told
    left_out = {item["error"]["code"] for item in Run(tmp_path / "V").latest("svm") if item["status"] == "failed"}
    assert left_out == {"no_features"}
    assert print_status(tmp_path / "V") == 0
    told = capsys.readouterr().out
    assert "10 failures would occur again with the same stimuli and settings: no_features" in told
    assert "--retry-failed" not in told
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S")]) == 0
    told = capsys.readouterr().out
    sentence = "svm gives no verdict in 10 of 40 trials of people and 0 of 40 of gbvs, which count in no rate"
    assert sentence in told
    assert sentence in (tmp_path / "S" / "index.html").read_text()
    assert "cue-length gives no verdict" not in told
    with (tmp_path / "S" / "scores.csv").open(newline="") as file:
        rows = {(row["judge"], row["agent"]): row for row in csv.DictReader(file)}
    missing = ("missing_of_people", "trials_of_people", "missing_of_machines", "trials_of_machines")
    assert [int(rows["svm", "gbvs"][name]) for name in missing] == [10, 40, 0, 40]
    assert [int(rows["cue-length", "all"][name]) for name in missing] == [0, 40, 0, 40]


def test_every_path_is_judged_where_the_setting_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process.without_ray(monkeypatch)
    assert main(["trials", str(_run(tmp_path)), "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    judges = ["--judges", "svm", "--set", "svm.path=padded15"]
    assert main(["judge", str(tmp_path / "T"), *judges, "--out", str(tmp_path / "V")]) == 0
    assert "did not judge" not in capsys.readouterr().out


def test_a_judge_without_answers_to_train_on_says_so(tmp_path: Path) -> None:
    """Two stimuli, people's alone and machines' alone: each fold leaves a single kind."""
    trials: list[dict[str, Any]] = []
    keys = []
    for at in range(12):
        truth = "human" if at % 2 else "machine"
        answer = {"fixations": [[at, at]] * 12, "frame": [64, 48]}
        trials.append({"id": f"t{at}", "asked": GAZE, "shown": truth, "answer": answer})
        keys.append([f"t{at}", truth, truth, "human:1" if at % 2 else "gbvs"])
    (tmp_path / "trials.jsonl").write_text("\n".join(map(json.dumps, trials)) + "\n")
    judge = _loaded(tmp_path, keys)
    replies = judge.respond([trial["id"] for trial in trials], [])
    assert {(getattr(reply, "code", ""), str(reply)) for reply in replies} == {("no_training", NO_TRAINING)}


def _loaded(folder: Path, keys: list[list[str]]) -> TrainedJudge[ClassifierSettings]:
    names = ["trial", "truth", "stimulus", "agent"]
    rows = {values[0]: dict(zip(names, values, strict=True)) for values in keys}
    for row in rows.values():
        row |= {"catch": "", "repeat_of": "", "said": row["trial"], "asked": GAZE}
    chosen = ClassifierSettings(trials=folder / "trials.jsonl", key=folder / "T.key.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judging.judges.trained.read_trial_key", lambda path: rows)
        judge = ClassifierJudge(chosen, "svm")
        judge.load("cpu")
    return judge


def test_status_of_verdicts_advises_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [record(name, "judgement", "llm") for name in "ab"]
    wrong = [
        failed("c", task="judgement", agent="llm", code="server_refused"),
        failed("d", task="judgement", agent="llm"),
    ]
    trials = [stimulus(name, "judgement") for name in "abcd"]
    write_run(tmp_path / "V", trials, {"llm": answers + wrong}, {"llm": agent_entry("judgement")})
    assert print_status(tmp_path / "V") == 0
    assert "to try the failures again: turinglike judge … --retry-failed" in capsys.readouterr().out
