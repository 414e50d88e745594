"""scripts/osie_scanpaths.py: a small file of Matlab in the form of OSIE's, read back by the program's own commands."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import osie_scanpaths
import pytest
from PIL import Image
from scipy.io import savemat

from agents.attention.scanpath_files import read_lengths
from serving.cli import main

Fixation = tuple[float, float, int]  # x, y, milliseconds
# Three pictures, two participants. A path of a single fixation is a number in Matlab, and no list.
PATHS: Mapping[str, Sequence[Sequence[Fixation]]] = {
    "1001.jpg": (((395.5, 265.7, 246), (390.6, 326.4, 136), (12, 599.2, 20)), ((1.2, 1.2, 301),)),
    "1002.jpg": (((400, 300, 180), (799.2, 20.1, 99)), ((35.3, 40.5, 1975), (36, 41, 77))),
    "1003.jpg": (((70.1, 80.2, 210),), ((90.3, 10.4, 150), (91, 11, 160), (92, 12, 170), (93, 13, 180))),
}


def cells(values: Sequence[Any]) -> Any:
    """A column of cells, as Matlab's ``{a; b}``."""
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    return column


def subject(path: Sequence[Fixation]) -> dict[str, Any]:
    xs, ys, times = zip(*path, strict=True)
    return {"fix_x": list(xs), "fix_y": list(ys), "fix_duration": np.array(times, dtype=np.uint16)}


def write(folder: Path, pictures: Sequence[tuple[str, Sequence[Any]]]) -> Path:
    """A folder as OSIE's: its file of fixations, and a white picture of each name."""
    file = folder / "data" / "eye" / "fixations.mat"
    file.parent.mkdir(parents=True)
    entries = [{"img": name, "subjects": cells(subjects)} for name, subjects in pictures]
    savemat(file, {"fixations": cells(entries)})
    stimuli = folder / "data" / "stimuli"
    stimuli.mkdir()
    for name, _ in pictures:
        Image.new("RGB", (800, 600), "white").save(stimuli / name)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "osie", [(name, [subject(path) for path in paths]) for name, paths in PATHS.items()])


def test_each_fixation_is_a_row(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "paths"
    assert osie_scanpaths.main([str(source), "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == {"pictures": 3, "participants": 2, "scanpaths": 6, "fixations": 13}
    with (out / "scanpaths.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    expected: list[tuple[Any, ...]] = []
    for name, paths in PATHS.items():
        for seat, path in enumerate(paths, start=1):
            expected += [(f"p0{seat}", name, str(number), *fixation) for number, fixation in enumerate(path, start=1)]
    numbers = ("x", "y", "duration")
    found = [
        (row["participant"], row["stimulus"], row["fixation"], *(float(row[name]) for name in numbers)) for row in rows
    ]
    assert found == expected
    assert not (out / "lengths.txt").exists()  # no picture is left out


def test_people_and_agents_share_the_pictures(source: Path, tmp_path: Path) -> None:
    """The table is imported, and the set answered, with the lengths of the picture that is left out."""
    out = tmp_path / "paths"
    assert osie_scanpaths.main([str(source), "--every", "2", "--out", str(out)]) == 0
    assert read_lengths(out / "lengths.txt") == (2, 2)
    people = tmp_path / "people"
    table = str(out / "scanpaths.csv")
    assert main(["import", table, "--task", "attention", "--frame", "800x600", "--out", str(people)]) == 0
    found: dict[str, dict[str, Any]] = {}
    for line in (people / "records" / "humans.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found.setdefault(record["stimulus"], {})[record["agent"]] = record["answer"]
    assert found.keys() == {"1001.jpg", "1003.jpg"}
    for name, answers in found.items():
        for seat, path in enumerate(PATHS[name], start=1):
            answer = answers[f"human:p0{seat}"]
            assert answer["fixations"] == [[x, y] for x, y, _ in path]
            assert answer["durations_ms"] == [time for _, _, time in path]
            assert answer["frame"] == [800, 600]
    run = tmp_path / "run"
    lengths = f"center.lengths={out / 'lengths.txt'}"
    asked = ["generate", str(out / "pictures.jsonl"), "--agents", "center", "--set", lengths, "--seed", "0", "--here"]
    assert main([*asked, "--out", str(run)]) == 0
    records = [json.loads(line) for line in (run / "records" / "center.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {record["stimulus"] for record in records} == found.keys()
    for record in records:
        assert len(record["answer"]["fixations"]) == 2
        assert record["answer"]["frame"] == [800, 600]


def test_all_problems_are_told_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = {**subject(PATHS["1001.jpg"][0]), "fix_y": [1.0, 2.0]}
    timeless = {"fix_x": [1.0], "fix_y": [2.0]}
    nowhere = {**subject(PATHS["1001.jpg"][1]), "fix_x": [float("nan")]}
    empty: dict[str, Any] = {"fix_x": [], "fix_y": [], "fix_duration": []}
    good = subject(PATHS["1002.jpg"][0])
    pictures = [("1001.jpg", [short, timeless]), ("1002.jpg", [good, nowhere]), ("1003.jpg", [good, empty, good])]
    source = write(tmp_path / "osie", pictures)
    out = tmp_path / "paths"
    assert osie_scanpaths.main([str(source), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    places = (
        "1001.jpg, participant 1",
        "1001.jpg, participant 2",
        "1002.jpg, participant 2",
        "1003.jpg, participant 2",
    )
    for place in places:
        assert f"fixations.mat: {place}: must have numbers in fix_x, fix_y, fix_duration" in told
    assert "fixations.mat: 1003.jpg: has 3 participants, but the first picture has 2" in told
    assert told.count("osie_scanpaths: ") == 6  # the problems, and that nothing was written
    assert not out.exists()


def test_a_picture_that_is_not_there_is_named(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("1001.jpg", "1002.jpg"):
        (source / "data" / "stimuli" / name).unlink()
    out = tmp_path / "paths"
    assert osie_scanpaths.main([str(source), "--every", "2", "--out", str(out)]) == 2  # 1002.jpg is not asked for
    told = capsys.readouterr().err
    assert "1001.jpg: there is no such picture" in told
    assert "1002.jpg" not in told
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        (
            b"no file of Matlab at all, but a text that is long enough for a header of 128 bytes, and then some" * 2,
            "cannot",
        ),
        (b"", "cannot be read as a file of Matlab: "),
        ({"eye": [1.0]}, "has no variable fixations"),
        ({"fixations": cells([{"name": "1001.jpg"}])}, "picture 1: must have img, a file name, and subjects"),
        ({"fixations": np.empty((0, 1), dtype=object)}, "has no scanpath"),
    ],
)
def test_another_file_is_refused(
    content: bytes | dict[str, Any] | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "osie" / "data" / "eye" / "fixations.mat"
    file.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        savemat(file, content)
    assert osie_scanpaths.main([str(tmp_path / "osie"), "--out", str(tmp_path / "paths")]) == 2
    told = capsys.readouterr().err
    assert f"{file}: {said}" in told


def test_every_is_at_least_one(source: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        osie_scanpaths.main([str(source), "--every", "0", "--out", str(tmp_path / "paths")])
    assert end.value.code == 2


def test_a_folder_that_is_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of an earlier choice would stay beside the new ones."""
    (tmp_path / "paths").mkdir()
    (tmp_path / "paths" / "lengths.txt").write_text("9\n")
    (tmp_path / "file").write_text("")
    for out in ("paths", "file"):
        assert osie_scanpaths.main([str(tmp_path / "osie"), "--out", str(tmp_path / out)]) == 2
        assert "is there already, and no empty folder" in capsys.readouterr().err
    assert osie_scanpaths.main([str(tmp_path / "osie"), "--out", str(tmp_path / "file" / "x")]) == 2
    assert (tmp_path / "paths" / "lengths.txt").read_text() == "9\n"
