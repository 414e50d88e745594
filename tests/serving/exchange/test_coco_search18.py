"""Scanpaths in the form of COCO-Search18, read after the data set's own description."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PILImage

from agents.errors import InputError
from serving.exchange.exporting.command import export_run
from tests.helpers.run_folders import ANSWERS, agent_entry, failed, record, stimulus, write_run

GAZE = "attention_prediction"
COLOR = "color_estimation"


def gaze(fixations: list[list[float]], **changes: Any) -> dict[str, Any]:
    return {**ANSWERS[GAZE], "fixations": fixations, "frame": [640, 480], **changes}


def test_names_subjects_and_conditions(tmp_path: Path) -> None:
    timed = {**ANSWERS[GAZE], "durations_ms": [200.0, 150.5, 90.0], "frame": [1680, 1050]}
    search = {"mode": "search", "target_image": "targets/bottle.png"}
    stimuli = [
        stimulus("g1", GAZE, image="a/1.jpg"),
        stimulus("g2", GAZE, image="b/2.jpg", target_present=False, **search),
        stimulus("g3", GAZE, image="b/3.jpg", meta={"target": "cup"}, mode="search", target_box=[1, 1, 2, 2]),
        stimulus("g4", GAZE, image="b/4.jpg", **search),
        stimulus("c1", COLOR),
    ]
    records = {
        "gbvs": [record(f"g{number}", GAZE, "gbvs") for number in (1, 2, 3, 4)],
        "dg": [
            *(record("g1", GAZE, "dg", sample=sample, answer=timed) for sample in (0, 1)),
            record("c1", COLOR, "dg"),
            failed("g2", task=GAZE, agent="dg"),
        ],
    }
    out = tmp_path / "c.json"
    agents = {"gbvs": agent_entry(GAZE), "dg": agent_entry(GAZE, COLOR)}
    export_run(write_run(tmp_path / "run", stimuli, records, agents), "coco-search18", out)
    items = json.loads(out.read_bytes())
    first = {"name": "1.jpg", "subject": 1, "task": "none", "condition": "freeview"}
    assert items[0] == {**first, "X": [320, 0, 639], "Y": [240, 0, 479], "T": None, "length": 3}
    assert [(item["name"], item["subject"], item["task"], item["condition"]) for item in items[1:]] == [
        ("2.jpg", 1, "bottle", "absent"),
        ("3.jpg", 1, "cup", "present"),
        ("4.jpg", 1, "bottle", None),
        ("1.jpg", 2, "none", "freeview"),
        ("1.jpg", 3, "none", "freeview"),
    ]
    assert items[4]["T"] == [200.0, 150.5, 90.0]
    about = json.loads((tmp_path / "c.json.export.json").read_text())
    assert about["subjects"]["3"] == {"agent": "dg", "sample": 1}
    assert about["frames"]["1.jpg"] == {"1": [640, 480], "2": [1680, 1050], "3": [1680, 1050]}
    assert about["left_out"] == {"failed": 1}


@pytest.mark.parametrize(
    ("fixations", "lands"),
    [
        ([[320, 240], [100, 50]], True),  # the box's first pixel
        ([[129.9, 69.9]], True),
        ([[130, 60], [110, 70], [99.9, 60], [110, 49.9]], False),  # just outside
        ([], False),
    ],
)
def test_what_is_known_of_the_target(tmp_path: Path, fixations: list[list[float]], lands: bool) -> None:
    box = {"mode": "search", "target_box": [100, 50, 30, 20]}
    stimuli = [
        stimulus("there", GAZE, image="a/1.png", **box),
        stimulus("gone", GAZE, image="b/1.png", target_present=False, **box),  # two images of one file name
        stimulus("unknown", GAZE, image="c", mode="search", target_image="cup.png"),
        stimulus("masked", GAZE, image="d", mode="search", target_mask="mask.png", target_present=True),
    ]
    rows = [
        record("there", GAZE, "a", answer=gaze(fixations, found=True)),
        record("gone", GAZE, "a", answer=gaze(fixations, found=False)),
        record("unknown", GAZE, "a", answer=gaze(fixations)),
        record("masked", GAZE, "a", answer=gaze(fixations, found=False)),
    ]
    export_run(
        write_run(tmp_path / "run", stimuli, {"a": rows}, {"a": agent_entry(GAZE)}), "coco-search18", tmp_path / "out"
    )
    items = {item["name"]: item for item in json.loads((tmp_path / "out").read_bytes())}
    known = {
        name: tuple(item[key] for key in ("condition", "bbox", "fixOnTarget", "correct"))
        for name, item in items.items()
    }
    assert known == {
        "a/1.png": ("present", [100, 50, 30, 20], lands, 1),
        "b/1.png": ("absent", None, False, None),
        "c": (None, None, None, None),
        "d": ("present", None, None, 0),
    }


def test_a_frame_is_brought_to_the_picture_in_which_the_box_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One path in three frames: the picture's, one half as large, and a screen with bars of 140 pixels."""
    PILImage.new("RGB", (640, 480)).save(tmp_path / "1.png")
    on_picture = [[128, 96], [640, 0]]
    frames: dict[str, dict[str, Any]] = {
        "own": {"fixations": on_picture},
        "half": {"fixations": [[64, 48], [320, 0]], "frame": [320, 240]},
        "screen": {"fixations": [[420, 210], [1540, 0]], "frame": [1680, 1050], "fit": "bars"},
    }
    stimuli = [stimulus("s", GAZE, image="1.png", mode="search", target_box=[128, 96, 40, 40])]
    rows = {name: [record("s", GAZE, name, answer=gaze(**path))] for name, path in frames.items()}
    run = write_run(tmp_path / "run", stimuli, rows, {name: agent_entry(GAZE) for name in rows})
    export_run(run, "coco-search18", tmp_path / "out")
    for item in json.loads((tmp_path / "out").read_bytes()):
        assert [list(point) for point in zip(item["X"], item["Y"], strict=True)] == on_picture
        assert (item["bbox"], item["fixOnTarget"]) == ([128, 96, 40, 40], True)
    about = json.loads((tmp_path / "out.export.json").read_text())
    assert about["frames"] == {"1.png": {subject: [640, 480] for subject in "123"}}
    assert (about["scaled"], about["fixations_outside_the_image"]) == (2, 3)
    said = capsys.readouterr().out
    assert "scaled from another frame to their image: 2 scanpaths\n" in said
    assert "outside their image, kept: 3 fixations\n" in said  # x = 640 is behind the last pixel


def test_an_agent_that_does_not_say_how_its_frame_was_filled(tmp_path: Path) -> None:
    PILImage.new("RGB", (640, 480)).save(tmp_path / "1.png")
    rows = [record("s", GAZE, "square", answer=gaze([[5, 5]], frame=[224, 224]))]
    run = write_run(
        tmp_path / "run", [stimulus("s", GAZE, image="1.png")], {"square": rows}, {"square": agent_entry(GAZE)}
    )
    for form in ("coco-search18", "pysaliency", "turingtest"):
        with pytest.raises(InputError, match=r'An agent says it in its answer: .*fit="stretch"') as refused:
            export_run(run, form, tmp_path / "out")
        [problem] = refused.value.problems
        assert str(problem).startswith(f"{run}/records/square.jsonl: square, stimulus 's': its frame is 224 x 224")
