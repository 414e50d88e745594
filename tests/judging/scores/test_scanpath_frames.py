"""Judges and scores get people's paths where they looked at the picture, not where that was on their screen."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from serving.cli import main
from tests.helpers.run_folders import ANSWERS, agent_entry, record, stimulus, write_run

GAZE = "attention_prediction"
ON_SCREEN = [[840, 525], [140, 0], [1540, 1050], [470, 250]]  # of 1680 x 1050, between bars of 140 pixels
ON_PICTURE: list[list[float]] = [[320, 240], [0, 0], [640, 480], [150.857, 114.286]]  # of 640 x 480
PICTURES = 6
PERSON = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None}


def _runs(folder: Path, with_pictures: bool = True, **fit: str) -> Path:
    """People's paths on a screen, of three people each, and the same of a machine on the picture."""
    stimuli = []
    for at in range(PICTURES) if with_pictures else ():
        PILImage.new("RGB", (640, 480), (at, 90, 90)).save(folder / f"{at}.png")
        stimuli.append(stimulus(str(at), GAZE, image=f"{at}.png"))
    path: dict[str, Any] = {**ANSWERS[GAZE], "fixations": ON_PICTURE}
    seen: dict[str, Any] = {**ANSWERS[GAZE], "fixations": ON_SCREEN, "frame": [1680, 1050], **fit}
    machine = [record(str(at), GAZE, "gbvs", answer=path, seed=at) for at in range(PICTURES)]
    people = [
        record(str(at), GAZE, f"human:{who}", answer=seen, **PERSON) for at in range(PICTURES) for who in range(3)
    ]
    return write_run(folder / "run", stimuli, {"gbvs": machine, "humans": people}, {"gbvs": agent_entry(GAZE)})


def test_trials_show_where_people_looked_at_the_picture(tmp_path: Path) -> None:
    run = _runs(tmp_path, fit="bars")
    assert main(["trials", str(run), "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    shown = [json.loads(line)["answer"] for line in (tmp_path / "T" / "trials.jsonl").read_text().splitlines()]
    with (tmp_path / "T.key.csv").open() as file:
        assert {row["truth"] for row in csv.DictReader(file)} == {"human", "machine"}
    wanted = [[float(math.floor(value)) for value in point] for point in ON_PICTURE]  # the pixel in which it lies
    assert shown == [{"fixations": wanted, "frame": [640, 480]}] * len(shown)


def test_stretched_where_it_is_said(tmp_path: Path) -> None:
    run = _runs(tmp_path, fit="stretch")
    assert main(["trials", str(run), "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    shown = [
        json.loads(line)["answer"]["fixations"] for line in (tmp_path / "T" / "trials.jsonl").read_text().splitlines()
    ]
    assert [[320, 240], [53, 0], [586, 480], [179, 114]] in shown


@pytest.mark.parametrize("command", ["trials", "score"])
def test_a_screen_of_which_nothing_is_said_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run = _runs(tmp_path)
    assert main([command, str(run), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    place = f"{run}/records/humans.jsonl: human:0, stimulus '0'"
    assert f"{place}: its frame is 1680 x 1050, and the picture 640 x 480" in told
    assert told.count("its frame is") == 5
    assert "18 scanpaths cannot be placed on the picture (5 are named): the frame has another shape" in told
    assert (
        "Import the answers again (`import`) with --fit bars, if the screen had bars and the aspect ratio was kept"
        in told
    )
    assert not (tmp_path / "out").exists()


def test_scores_see_no_difference_where_there_is_none(tmp_path: Path) -> None:
    """The machine looks where people do: their fixations, in whole pixels, have the distance 0. Stretched, people's
    at the edges would lie 53 pixels nearer to the centre."""
    run = _runs(tmp_path, fit="bars")
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "populations.csv").open() as file:
        [energy] = [row for row in csv.DictReader(file) if row["measure"] == "energy distance of fixations"]
    assert float(energy["beside_people"]) == 0
    assert float(energy["difference"]) == 0


def test_without_the_picture_two_screens_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _runs(tmp_path, with_pictures=False, fit="bars")
    assert main(["score", str(run), "--out", str(tmp_path / "S")]) == 2
    assert "another answer's 640 x 480, and there is no picture" in capsys.readouterr().err


def test_a_frame_without_pixels_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PILImage.new("RGB", (640, 480)).save(tmp_path / "0.png")
    rows = [record("0", GAZE, "gbvs", answer={**ANSWERS[GAZE], "frame": [0, 480]})]
    run = write_run(tmp_path / "run", [stimulus("0", GAZE, image="0.png")], {"gbvs": rows}, {"gbvs": agent_entry(GAZE)})
    assert main(["trials", str(run), "--out", str(tmp_path / "T")]) == 2
    assert "gbvs, stimulus '0': answer: a frame of 0 x 480" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"target_present": True}, {"present": ["cup"]}),
        ({"target_present": None, "target_box": [1, 2, 3, 4]}, {"present": ["cup"]}),
        ({"target_present": False}, {}),
        ({}, {}),  # nobody says whether the target is there
        ({"present": [], "absent": ["fork"]}, {"absent": ["fork"]}),
    ],
)
def test_a_target_is_present_where_something_says_so(
    tmp_path: Path, fields: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """Control questions ask for it."""
    for name in ("a", "cup"):
        PILImage.new("RGB", (640, 480)).save(tmp_path / f"{name}.png")
    row = stimulus("0", GAZE, image="a.png", target_image="cup.png", mode="search", meta={"target": "cup"}, **fields)
    rows = {"gbvs": [record("0", GAZE, "gbvs")], "humans": [record("0", GAZE, "human:1", **PERSON)]}
    run = write_run(tmp_path / "run", [row], rows, {"gbvs": agent_entry(GAZE)})
    assert main(["trials", str(run), "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    with (tmp_path / "T.key.csv").open() as file:
        assert [json.loads(key["objects"]) for key in csv.DictReader(file)] == [wanted] * 2
