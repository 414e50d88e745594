"""The published benchmark's ground truth: what was imported comes out as it went in, our answers beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from run_folders import ANSWERS, agent_entry, record, stimulus, write_run

from serving.cli import main
from serving.runs.run import Run


def said(response: Any, human: str | None = None, machine: str = "") -> dict[str, Any]:
    whose = "machine" if human is None else "human"
    return {
        "response": response,
        "groundtruth": whose,
        "human_groundtruth": human or "",
        "machine_groundtruth": machine,
    }


BENCHMARK: dict[str, dict[str, list[dict[str, Any]]]] = {
    "caption.json": {"1.jpg": [said("A cat.", "05"), said("a cat [SEP]", None, "git")]},
    "word.json": {"sun": [said("moon", ""), said("star", ""), said("moon", None, "gpt2")], "sea": [said("salt", "7")]},
    "color.json": {"1.jpg": [said("none", "")]},
    "object.json": {"1.jpg": [said("bench, furniture", "1"), said("Cat,dog , cup", None, "azure")]},
    "fv.json": {"2.jpg": [said([[1, 2.5], [1300, -4]], "a"), said([[0, 0]], None, "gbvs")]},
}


def test_imported_answers_come_out_as_they_went_in(tmp_path: Path) -> None:
    files = [tmp_path / name for name in BENCHMARK]
    for path in files:
        path.write_text(json.dumps(BENCHMARK[path.name]))
    run, out = tmp_path / "run", tmp_path / "out"
    assert main(["import", *map(str, files), "--out", str(run)]) == 0
    assert main(["export", str(run), "--format", "ground-truth", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {*BENCHMARK, "_export.json"}
    for name, content in BENCHMARK.items():
        found = json.loads((out / name).read_text())
        assert found.keys() == content.keys()
        for one, answers in content.items():  # people first, then machines
            assert found[one] == sorted(answers, key=lambda answer: answer["groundtruth"])
    again = tmp_path / "again"
    assert main(["import", *(str(out / name) for name in BENCHMARK), "--out", str(again)]) == 0
    for name in ("humans", "published"):
        kept = ("task", "stimulus", "agent", "sample", "answer", "raw")
        one, other = ([[row[key] for key in kept] for row in Run(at).records(name)] for at in (run, again))
        assert one == other


def test_our_answers_stand_beside_those_of_people(tmp_path: Path) -> None:
    path = {"task": "attention_prediction", "agent": "gbvs", "answer": ANSWERS["attention_prediction"]}
    failed = record("s2", status="failed", answer=None, error={"code": "x", "message": ""})
    records = {
        "mmcq": [record("s1"), record("s1", sample=1), failed],
        "gbvs": [record("search", **path), record("free", **path)],
    }
    rows = [stimulus("s1", benchmark_id="7.jpg"), stimulus("s2")]
    rows += [
        {"id": mode, "task": "attention_prediction", "mode": mode, "image": "a.png"} for mode in ("search", "free")
    ]
    entries = {"mmcq": agent_entry("color_estimation"), "gbvs": agent_entry("attention_prediction")}
    run, out = write_run(tmp_path / "run", rows, records, entries), tmp_path / "out"
    assert main(["export", str(run), "--format", "ground-truth", "--out", str(out)]) == 0
    assert json.loads((out / "color.json").read_text()) == {"7.jpg": [said("red", None, "mmcq")] * 2}
    assert json.loads((out / "fv.json").read_text()) == {
        "free": [said([[640, 512], [0, 0], [1278, 1021]], None, "gbvs")]
    }
    about = json.loads((out / "_export.json").read_text())
    assert about["left_out"] == {"failed": 1, "of tasks that the benchmark does not have": 1}
