"""Faults after other programs' public bug reports, second list: a test for each row, named by its number.

Rows 3, 4, 10, 12 and 15 are about models and servers, and stand elsewhere.
"""

import csv
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image as PILImage

from agents.images import Image
from agents.language.filters.messages import FilterSettings, JudgedMessages
from agents.word_boundaries import words
from judging.scores.papers.trends import trends
from judging.statistics.answer_statistics import plain_words
from judging.statistics.correctness import between_values
from judging.study.design.settings import read_settings
from serving.cli import main
from tests.helpers.run_folders import read_back
from tests.helpers.study_folders import Visitor, serving, word_trials, write_study, write_trials

VERDICTS = ("human", "machine")


def imported(folder: Path, name: str, text: str, *options: str, out: str = "run") -> list[dict[str, Any]]:
    (folder / name).write_text(text, encoding="utf-8")
    assert main(["import", str(folder / name), *options, "--out", str(folder / out)]) == 0
    return read_back(folder / out, "humans")


def scored(folder: Path, key: Path, out: str) -> dict[str, Any]:
    scores = folder / f"{out}-scores"
    assert main(["score", str(folder / out), "--key", str(key), "--out", str(scores)]) == 0
    rows = json.loads((scores / "scores.json").read_bytes())["scores"]
    [whole] = [row for row in rows if row["agent"] == "all"]
    return dict(whole)


@pytest.mark.parametrize("column", ["judge", "WorkerId", "Subject", "PROLIFIC_PID", "workerID", "Participant"])
def test_01_people_in_a_column_of_another_name(column: str, tmp_path: Path) -> None:
    """The records of ten judges are those of a column `subject`, and so the scores are, which one name shows."""
    trials = write_trials(tmp_path / "T", word_trials(10))
    key = trials.with_name("T.key.csv")
    rows = [(f"w{judge}", f"t{at:04}", VERDICTS[(3 * judge + at) % 5 > 2]) for judge in range(10) for at in range(10)]
    records = []
    for name in ("subject", column):
        lines = [f"stimulus,{name},response", *(f"{trial},{judge},{verdict}" for judge, trial, verdict in rows)]
        found = imported(tmp_path, f"{name}.csv", "\n".join(lines), "--task", "judgement", out=name)
        assert {row["agent"] for row in found} == {f"human:w{judge}" for judge in range(10)}
        assert {row["sample"] for row in found} == {0}
        records.append([(row["agent"], row["stimulus"], row["answer"]) for row in found])
    assert records[0] == records[1]
    if column == "judge":
        assert scored(tmp_path, key, "subject") == scored(tmp_path, key, column)
    text = f"stimulus,{column},response\nsun,A1,moon\nsun,A2,hot\n"
    assert [row["agent"] for row in imported(tmp_path, "w.csv", text, "--task", "word", out="w")] == [
        "human:A1",
        "human:A2",
    ]


def test_02_a_second_person_at_the_same_browser(tmp_path: Path) -> None:
    trials = write_trials(tmp_path / "T", word_trials(10))
    study = write_study(tmp_path / "study", trials, "word_association", number=2, worker="PROLIFIC_PID")
    assert read_settings(study).judges.worker == "PROLIFIC_PID"
    with serving(study) as server:
        browser = Visitor(server.port)
        _, first = browser.post("/join", worker="5f00000000000000000000aa")
        _, second = browser.post("/join", worker="5f00000000000000000000bb")
        assert second["list"] != first["list"]
        assert second["step"] == 0


COCO = {
    "images": [{"id": 11, "file_name": "one.png"}, {"id": 12, "file_name": "two.png"}],
    "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "kite"}],
}


def test_05_no_annotations_are_no_absence(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        PILImage.new("RGB", (8, 8)).save(tmp_path / name)
    segments = [
        {"image_id": image, "file_name": "mask.png", "segments_info": [{"id": 5, "category_id": category}]}
        for image, category in ((11, 2), (12, 1))
    ]
    found = {}
    for name, content in {
        "image_info": COCO,
        "empty": {**COCO, "annotations": []},
        "panoptic": {**COCO, "annotations": segments},
    }.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        out = tmp_path / f"{name}.jsonl"
        assert main(["set", str(path), "--images", str(tmp_path), "--out", str(out)]) == 0
        rows = map(json.loads, out.read_text().splitlines())
        found[name] = [(row.get("present"), row.get("absent")) for row in rows]
    assert found["image_info"] == found["empty"] == [(None, None), (None, None)]
    assert [present for present, _ in found["panoptic"]] == [["dog"], ["person"]]


def test_06_two_factors_without_variance_in_their_cells() -> None:
    rows = [
        {
            "trial": f"t{at}",
            "judge": f"{sex}{school}{judge}",
            "stimulus": f"s{at}",
            "truth": "human",
            "agent": "x",
            "sample": 0,
            "verdict": "human" if sex == "f" or at % 2 else "machine",
            "gender": sex,
            "education": school,
            "gender*education": f"{sex}, {school}",
        }
        for sex, school, judge, at in product("fm", "bm", range(2), range(4))
    ]
    tests = between_values(pd.DataFrame(rows), "gender*education")
    assert not [test for test in tests if test.p is not None or test.statistic is not None]


def test_07_rows_saved_twice(tmp_path: Path) -> None:
    once = "cue,subject,response\n" + "".join(f"{cue},p{at},w{at}\n" for cue in ("sun", "sea") for at in range(8))
    twice = once + "".join(once.splitlines(keepends=True)[1:])
    assert len(imported(tmp_path, "twice.csv", twice, "--task", "word")) == 32
    source = json.loads((tmp_path / "run" / "import.json").read_bytes())["sources"][0]
    assert source["noticed"]["equal_rows"] == 16
    assert "repeat an earlier row" in source["remarks"][0]
    assert len(imported(tmp_path, "twice.csv", twice, "--task", "word", "--drop-equal")) == 16


def test_08_a_trend_under_separation() -> None:
    rows = [
        {
            "trial": f"t{length}{again}",
            "judge": f"w{judge}",
            "stimulus": f"s{length}{again}",
            "truth": "human",
            "verdict": "human" if length > 2 else "machine",
            "agent": "x",
            "sample": 0,
            "length": float(length),
        }
        for judge, length, again in product(range(8), range(1, 5), (0, 1))
    ]
    found = trends(pd.DataFrame(rows), "length")
    assert found
    [log_odds] = [test for test in found if test.p is not None and test.p < 1e-10]
    assert log_odds.change.value == log_odds.change.high == np.inf  # nothing says how steep it is
    assert 0 < log_odds.change.low < 10
    for test in found:
        assert test.p is None or test.p < 0.1  # the strongest effect is no chance by any of them


def test_09_words_of_scripts_with_combining_signs() -> None:
    hindi = "मुझे चाय बहुत पसंद है और तुम क्या पीते हो"
    assert (len(words(hindi)), len(plain_words(hindi))) == (10, 10)
    for name, text in (
        ("word_loop", "हाहाहाहा"),
        ("word_loop", "नानी ने ना ना कहा"),
        ("too_long", " ".join([hindi] * 5)),
    ):
        judged = JudgedMessages([("Ann", text)], 0, FilterSettings(), ("Ann", "Ben"), {}, 9, ())
        assert not judged.findings(name), text


def test_11_a_json_list_in_a_cell_of_objects(tmp_path: Path) -> None:
    table = 'image,subject,response\na.jpg,p1,"[""cat"", ""dog""]"\na.jpg,p2,"cat, dog"\n'
    rows = imported(tmp_path, "objects.csv", table, "--task", "object")
    assert [row["answer"]["labels"] for row in rows] == [["cat", "dog"], ["cat", "dog"]]


def test_13_one_and_one_point_zero_are_one_person(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("cue,subject,response\nsun,1,moon\nsea,1,blue\n")
    (tmp_path / "2.csv").write_text("cue,subject,response\ntea,1.0,cup\nsun,2.0,hot\n")
    files = [str(tmp_path / "1.csv"), str(tmp_path / "2.csv")]
    assert main(["import", *files, "--task", "word", "--out", str(tmp_path / "run")]) == 0
    assert {row["agent"] for row in read_back(tmp_path / "run", "humans")} == {"human:1", "human:2"}


def test_14_a_tiff_of_16_bits_whose_zero_is_white(tmp_path: Path) -> None:
    path = tmp_path / "white.tif"
    PILImage.fromarray(np.full((8, 8), 65535, dtype=np.uint16)).save(path, tiffinfo={262: 0})
    data = bytearray(path.read_bytes())
    place = data.index(b"\x06\x01\x03\x00")  # tag 262, which Pillow writes as 1
    data[place + 8 : place + 10] = b"\0\0"
    pixels = Image("x.tif", data=bytes(data)).decode()
    assert pixels.max() == 0


def test_16_paths_of_a_screen_with_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PILImage.new("RGB", (640, 480)).save(tmp_path / "1.jpg")
    stimuli = {"id": "1.jpg", "task": "attention_prediction", "image": "1.jpg"}
    (tmp_path / "s.jsonl").write_text(json.dumps(stimuli) + "\n")
    run = str(tmp_path / "run")
    assert main(["generate", str(tmp_path / "s.jsonl"), "--agents", "center", "--here", "--out", run]) == 0
    entry = {"name": "1.jpg", "subject": 1, "task": "none", "condition": "freeview"}
    path = tmp_path / "paths.json"
    path.write_text(json.dumps([{**entry, "X": [840.0, 140.0, 1539.0], "Y": [525.0, 0.0, 1049.0]}]))
    imports = ["import", str(path), "--frame", "1680x1050", "--out", run]
    assert main(imports) == 0
    for command in (
        ["export", run, "--format", "pysaliency", "--out", str(tmp_path / "p.h5")],
        ["trials", run, "--every", "--out", str(tmp_path / "T")],
        ["report", run, "--out", str(tmp_path / "report")],
    ):
        capsys.readouterr()
        assert main(command) == 2
        assert "its frame is 1680 x 1050, and the picture 640 x 480" in capsys.readouterr().err
    assert main([*imports, "--fit", "bars"]) == 0
    assert main(["trials", run, "--every", "--out", str(tmp_path / "T")]) == 0
    with (tmp_path / "T.key.csv").open(newline="") as file:
        people = {row["trial"] for row in csv.DictReader(file) if row["truth"] == "human"}
    trials = map(json.loads, (tmp_path / "T" / "trials.jsonl").read_text().splitlines())
    [shown] = [trial["answer"]["fixations"] for trial in trials if trial["id"] in people]
    assert shown == [[320, 240], [0, 0], [639, 479]]


def test_17_invisible_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "words.csv"
    path.write_text("cue,subject,response\nsun,p1,\u200b\nsun,p2,moon\n", encoding="utf-8")
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 2
    assert "words.csv:2: response: is empty" in capsys.readouterr().err
