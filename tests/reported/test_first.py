"""Faults after other programs' public bug reports, first list: a test for each row whose command exists, by its number.

Rows 6 to 10, 17, 19, 20, 22 and 23 are of a command that is gone, row 12 of an analysis that is gone. Row 16, the
spellings of a picture in base64, is in ``tests/serving/http/test_bodies.py``.
"""

import csv
import json
import struct
import subprocess
import sys
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as PILImage
from PIL import PngImagePlugin

from agents.errors import ImageError
from agents.images import Image
from judging.statistics.correctness import between_values
from serving.cli import main
from serving.sets.stimulus_set import read_rows
from tests.helpers.run_folders import read_back
from tests.helpers.study_folders import Visitor, serving, word_trials, write_study, write_trials


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def test_01_rows_of_another_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "captions.csv"
    path.write_text("stimulus,subject,response\n1.jpg,05,a dog, running on grass\n1.jpg,06,a cat\n")
    assert "captions.csv:2: 4 cells, but the header has 3" in refused(
        capsys, "import", path, "--task", "caption", "--out", tmp_path / "run"
    )
    path.write_text("trial_type,trial_index,rt,response,subject,trial\nbutton,1,400,0,w1,t0001,human,oops\n")
    told = refused(capsys, "import", path, "--task", "judgement", "--out", tmp_path / "run")
    assert "captions.csv:2: 8 cells" in told
    assert not (tmp_path / "run").exists()


def test_02_two_columns_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "words.csv"
    path.write_text("stimulus,subject,response,response\nsun,05,moon,star\n")
    told = refused(capsys, "import", path, "--task", "word", "--out", tmp_path / "run")
    assert "response: two columns of this name, 3 and 4" in told


def test_03_pictures_of_one_stem(tmp_path: Path) -> None:
    for name in ("cat.jpg", "cat.png", "img.1.png"):
        PILImage.new("RGB", (4, 4)).save(tmp_path / name)
    truth = {name: [{"response": "a cup", "groundtruth": "human"}] for name in ("cat.jpg", "cat.png", "img.1")}
    (tmp_path / "caption.json").write_text(json.dumps(truth))
    out = tmp_path / "set.jsonl"
    assert main(["set", str(tmp_path / "caption.json"), "--images", str(tmp_path), "--out", str(out)]) == 0
    rows = map(json.loads, out.read_text().splitlines())
    assert {row["benchmark_id"]: Path(row["image"]).name for row in rows} == {
        "cat.jpg": "cat.jpg",
        "cat.png": "cat.png",
        "img.1": "img.1.png",
    }


@pytest.mark.parametrize(("field", "number"), [("images", 4), ("categories", 5)])
def test_04_and_05_ids_that_stand_twice(
    field: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content: dict[str, Any] = {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
        "categories": [{"id": 1, "name": "cup"}, {"id": 2, "name": "rocket"}],
        "annotations": [{"image_id": 1, "category_id": 1}],
    }
    content[field][1]["id"] = 1
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(content))
    told = refused(capsys, "set", path, "--images", tmp_path, "--out", tmp_path / "set.jsonl")
    assert "the id 1 stands 2 times" in told


def test_11_nothing_varies_within_the_values() -> None:
    rows = [
        {
            "trial": f"t{at}",
            "judge": "w1",
            "stimulus": f"s{at}",
            "truth": "human",
            "agent": "x",
            "sample": 0,
            "verdict": "machine" if "aabbcc"[at] == "b" else "human",
            "topic": "aabbcc"[at],
        }
        for at in range(6)
    ]
    assert not [test for test in between_values(pd.DataFrame(rows), "topic") if test.p is not None]


def test_13_text_that_looks_like_numbers_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    cells = {"participant": "61e5", "version": "1.10", "code": "007", "number": "12345678901234567890123"}
    header = ",".join(f"meta.{name}" for name in cells)
    path.write_text(f"id,task,cue,{header}\n1,word_association,sun,{','.join(cells.values())}\n")
    [row] = read_rows(path)
    assert row.stimulus is not None
    assert row.stimulus.meta == cells


def test_15_one_worker_in_three_browsers(tmp_path: Path) -> None:
    trials = write_trials(tmp_path / "T", word_trials(10))
    study = write_study(tmp_path / "study", trials, "word_association", number=2, worker="PROLIFIC_PID")
    with serving(study) as server:
        lists = set()
        for _ in range(3):
            _, view = Visitor(server.port).post("/join", worker="614a0000000000000000abcd")
            lists.add(view["list"])
    assert len(lists) == 1


def test_18_a_cell_of_150000_characters(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    names = ["rt", "response", "stimulus", "trial_type", "trial_index", "time_elapsed", "subject", "trial"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(names)
        picture = "data:image/png;base64," + "A" * 150_000
        writer.writerow(["900", "0", picture, "html-button-response", "3", "1200", "w1", "t0001"])
        writer.writerow(["901", "1", "x", "html-button-response", "4", "2200", "w1", "t0002"])
    options = ["--task", "judgement", "--responses", "0=human,1=machine"]
    assert main(["import", str(path), *options, "--out", str(tmp_path / "V")]) == 0
    rows = read_back(tmp_path / "V", "humans")
    assert [(row["stimulus"], row["answer"]["verdict"]) for row in rows] == [("t0001", "human"), ("t0002", "machine")]


def test_21_a_large_text_in_a_png_is_no_fault(tmp_path: Path) -> None:
    about = PngImagePlugin.PngInfo()
    about.add_text("comment", "x" * 2_000_000, zip=True)
    PILImage.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "a.png", pnginfo=about)
    assert Image("a.png", root=tmp_path).decode()[0, 0].tolist() == [255, 0, 0]


def test_24_spaces_and_semicolons_in_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "words.csv"
    path.write_text("stimulus, subject, response\nsun, 05, moon\n")
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 0
    [row] = read_back(tmp_path / "run", "humans")
    assert (row["agent"], row["stimulus"], row["answer"]["word"]) == ("human:05", "sun", "moon")
    path.write_text("stimulus;subject;response\nsun;05;moon\n")
    capsys.readouterr()
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 0
    assert "';' stand between the cells" in capsys.readouterr().out
    [row] = read_back(tmp_path / "run", "humans")
    assert (row["agent"], row["stimulus"], row["answer"]["word"]) == ("human:05", "sun", "moon")


def test_25_what_pandas_leaves_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    frame = pd.DataFrame(
        {"id": ["a", "b"], "task": "word_association", "cue": ["sun", "sea"], "frequency": [1.5, None]}
    )
    frame.index = pd.Index([10, 20])
    frame.to_parquet(path)
    rows = list(read_rows(path))
    assert [row.problems for row in rows] == [(), ()]
    pq.write_table(
        pa.table({"id": ["a"], "task": ["word_association"], "cue": ["x"], "meta.n": [Decimal("1.5")]}), path
    )
    [row] = read_rows(path)
    assert [problem.field for problem in row.problems] == ["meta.n"]


def test_26_an_alpha_that_is_0_everywhere_in_a_bmp(tmp_path: Path) -> None:
    header = struct.pack("<IiiHHIIiiII", 40, 2, 2, 1, 32, 0, 16, 0, 0, 0, 0)
    pixels = bytes([0, 0, 255, 0]) * 4  # blue, green, red, alpha
    data = b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + header + pixels
    assert Image("a.bmp", data=data).decode()[0, 0].tolist() == [255, 0, 0]


def test_27_a_damaged_png_is_called_so(tmp_path: Path) -> None:
    def chunk(kind: bytes, body: bytes, *, good: bool = True) -> bytes:
        checksum = zlib.crc32(kind + body) ^ (0 if good else 1)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"tEXt", b"comment\0x", good=False)
    data += chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    with pytest.raises(ImageError, match="damaged PNG"):
        Image("a.png", data=data).decode()


def test_28_numbers_of_judges_in_json(tmp_path: Path) -> None:
    shared = {"trial_type": "html-button-response", "stimulus": "x", "rt": 900}
    rows = [
        {**shared, "trial_index": 3, "response": 0, "subject": 1, "trial": "t-0001"},
        {**shared, "trial_index": 4, "response": 1, "subject": 1.0, "trial": "t-0002"},
        {**shared, "trial_index": 5, "response": None, "subject": True, "trial": "t-0002"},
    ]
    path = tmp_path / "data.json"
    path.write_text(json.dumps(rows))
    options = ["--task", "judgement", "--responses", "0=human,1=machine"]
    assert main(["import", str(path), *options, "--out", str(tmp_path / "V")]) == 0
    assert {row["agent"] for row in read_back(tmp_path / "V", "humans")} == {"human:1"}


def test_14_closed_streams(tmp_path: Path) -> None:
    """Stdout or stderr closed, as some daemons start programs: the records are there all the same."""
    PILImage.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "a.png")
    generate = f"{sys.executable} -m serving.cli generate {tmp_path} --task color --agents mmcq --here"
    for name, closed in (("stdout", ">&-"), ("stderr", "2>&-")):
        out = tmp_path / name
        command = f"{generate} --out {out} {closed}"
        assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == 0
        assert len((out / "records" / "mmcq.jsonl").read_text().splitlines()) == 1
