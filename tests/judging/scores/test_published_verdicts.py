"""The published test's verdicts against counts by hand."""

import csv
import json
import random
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import published_verdicts
import pytest

from judging.scores.computing import catch_rates, compute_scores
from judging.scores.methods import methods
from judging.scores.score_tables import CatchRate
from judging.scores.verdicts import open_verdicts, read_answers, read_verdicts
from judging.statistics.tables import Estimate
from serving.cli import main
from serving.runs.records import problems
from serving.runs.run import Run

WORKERS = ("A1SECRETID", "A2SECRETID")


def entry(worker: str | None, spoken: str, machine: str = "", **trial: Any) -> dict[str, Any]:
    truth = {"groundtruth": "machine" if machine else "human", "machine_groundtruth": machine}
    result: dict[str, Any] = {"trialData": {"response_speaker": spoken, **truth, **trial}}
    return result if worker is None else {"workerID": worker, "workerData": {"age": "36-40"}, **result}


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: list[dict[str, Any]], *more: str) -> int:
    path = tmp_path / "verdicts.json"
    path.write_text(json.dumps({f"Trial_{at}": item for at, item in enumerate(entries, start=1)}))
    monkeypatch.setattr(sys, "argv", ["published_verdicts", str(path), "--out", str(tmp_path / "V"), *more])
    return published_verdicts.main()


def test_people_who_judged_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = "https://example.org/static/"
    entries = [
        entry(worker, spoken, machine, page_name=f"{at}{page}", rt=2866)
        for worker, spoken, machine, page in [
            (WORKERS[0], "human", "", "3_a_0.html"),
            (WORKERS[0], "machine", "", "14_a_2.html/"),
            (WORKERS[0], "machine", "GPT3(pr, Curie)", "78_e_0.html"),
            (WORKERS[0], "human", "GPT2", "3_c_0.html"),
            (WORKERS[1], "human", "", "3_a_0.html"),
            (WORKERS[1], "human", "", "3_a_1.html"),
            (WORKERS[1], "human", "GPT3(pr, Curie)", "78_e_0.html"),
            (WORKERS[1], "machine", "catch", "9_g_0.html"),
        ]
    ]
    assert made(tmp_path, monkeypatch, entries, "--task", "word") == 0
    rows = list(Run(tmp_path / "V").records("humans"))
    assert not any(problems(row) for row in rows)
    assert [row["agent"][-4:] for row in rows] == ["-001"] * 4 + ["-002"] * 4
    alone = tmp_path / "alone"
    alone.mkdir()
    assert made(alone, monkeypatch, entries[:4], "--task", "word") == 0
    judges = read_verdicts(open_verdicts([tmp_path / "V", alone / "V"]))["judge"]
    assert judges.nunique() == 3  # other files, other numbers
    assert rows[0]["raw"] == {"response": "human", "rt": 2866}
    kept = b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "verdicts.json"
    )
    assert not any(secret in kept for secret in (b"SECRETID", b"36-40"))
    with (tmp_path / "V.key.csv").open(newline="") as file:
        key = list(csv.DictReader(file))
    assert [row["stimulus"] for row in key] == ["3", "14", "78", "3", "3", "9"]
    table = read_verdicts(open_verdicts([tmp_path / "V"]))
    result = compute_scores(table, [])
    counts = ("human_human", "human_machine", "machine_human", "machine_machine")
    assert {row.agent: tuple(getattr(row, name) for name in counts) for row in result.scores} == {
        "all": (3, 1, 2, 1),
        "published:gpt2": (3, 1, 1, 0),
        "published:gpt3promptcurie": (3, 1, 1, 1),
    }
    [caught] = catch_rates(table)
    right = Estimate(1.0)  # of a single verdict there is no interval
    assert str(caught.estimate) == str(right)
    assert replace(caught, estimate=right) == CatchRate(
        "word_association", "catch", "machine", "people", judges=1, trials=1, right=1, estimate=right
    )
    assert read_answers(open_verdicts([tmp_path / "V"])) == []
    assert "Trials were drawn" not in methods(table, {}, [{}], 0.05)


def test_a_block_that_stands_five_times_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in machine_judge_r3.8_color_bertonly.json, which repeats 178 verdicts."""
    chance = random.Random(0)
    block = [entry(None, chance.choice(("human", "machine")), chance.choice(("", "Google"))) for _ in range(30)]
    assert made(tmp_path, monkeypatch, block * 5, "--task", "color", "--judge", "svm") == 0
    assert "the same 30 verdicts stand there 5 times; they count once" in capsys.readouterr().err
    assert sum(1 for _ in Run(tmp_path / "V").records("published")) == 30
    [other] = [dict(item) for item in block[:1]]
    other["trialData"] = {**other["trialData"], "machine_groundtruth": "Azure", "groundtruth": "machine"}
    shutil.rmtree(tmp_path / "V")
    for path in tmp_path.glob("V.*"):
        path.unlink()
    assert made(tmp_path, monkeypatch, [*block * 4, *block[1:], other], "--task", "color", "--judge", "svm") == 0
    assert sum(1 for _ in Run(tmp_path / "V").records("published")) == 150


def test_conversations_have_a_verdict_on_each_speaker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trial(number: int, length: int, classes: Any, **more: Any) -> dict[str, Any]:
        page = f"static/dataset/conv{number}_len{length}.html"
        about = {"hit": number, "hit_len": length, "topic": "1", "Aclass": classes, "rt": 9, "conversationID": page}
        return {"trialdata": {**about, "Agender": "M", "Bgender": "F", **more}}

    def judge(gender: str, *trials: dict[str, Any]) -> dict[str, Any]:
        return {"questiondata": {"gender": gender, "age": "21-25", "native": "yes"}, "data": list(trials)}

    compiled = {
        "inlab": {
            "datastring": [
                judge("female", trial(0, 0, 0), trial(1, 3, "HH"), trial(2, 24, "HAI"), trial(3, 6, "AIAI")),
                judge("male", trial(1, 3, "AIH"), trial(2, 24, "AIH")),
            ]
        },
        "prolific": {
            "datastring": [
                judge(
                    "male",
                    trial(3, 6, "HH", hasFeedback=True),
                    trial(4, 24, "AIAI", isCatch=True),
                    trial(9, 3, "HH", isCatch=True),
                ),
            ]
        },
    }
    (tmp_path / "compiled.json").write_text(json.dumps(compiled))
    labels = tmp_path / "speakers.csv"
    labels.write_text("Topic,Alabel,Blabel\n1,Human,Human\n1,Human,Blender\n2,Blender,Blender\n3,Human,Blender\n")
    command = ["published_verdicts", str(tmp_path / "compiled.json"), "--task", "conversation", "--questions"]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / "V")])
    assert published_verdicts.main() == 2
    assert "conversations need the table of their speakers" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*command, "--speakers", str(labels), "--out", str(tmp_path / "V")])
    assert published_verdicts.main() == 0
    assert (
        main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S"), "--by", "type,partner,gender,platform"]) == 0
    )
    result = json.loads((tmp_path / "S" / "scores.json").read_bytes())
    counts = ("human_human", "human_machine", "machine_human", "machine_machine")
    [row] = [row for row in result["scores"] if row["agent"] == "all"]
    assert [row[name] for name in counts] == [4, 2, 1, 3]  # neither with the truth after them nor catch trials
    by = {
        (row["column"], row["value"]): [row[name] for name in counts] for row in result["by"] if row["agent"] == "all"
    }
    assert by["type", "H-H"] == [3, 1, 0, 0]
    assert by["type", "M-M"] == [0, 0, 0, 2]
    assert by["partner", "a person"] == [3, 1, 1, 1]
    assert by["gender", "male"] == [1, 2, 1, 0]
    assert by["phase", "feedback"] == [0, 0, 2, 0]
    male = {row["of"]: (row["verdicts"], row["male"]) for row in result["sexes"]}
    assert male == {  # A is taken for male, B for female
        "all": (10, 0.5),
        "human": (6, round(4 / 6, 9)),
        "machine": (4, 0.25),
        "judged human": (5, 0.4),
        "judged machine": (5, 0.6),
    }
    labels.write_text("Alabel,Blabel\nHuman,\n")
    monkeypatch.setattr(sys, "argv", [*command, "--speakers", str(labels), "--out", str(tmp_path / "V2")])
    assert published_verdicts.main() == 2
    assert "speakers.csv:2: names no speaker" in capsys.readouterr().err
