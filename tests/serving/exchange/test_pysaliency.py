"""Scanpaths for other programs, read back by plain readers that know the published forms and nothing of ours."""

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image as PILImage

from agents.errors import InputError, UnavailableError
from serving.cli import main
from serving.exchange.exporting.command import export_run
from serving.runs.records import people_record
from serving.runs.run import Run
from tests.helpers.run_folders import ANSWERS, agent_entry, failed, record, stimulus, write_run

GAZE = "attention_prediction"
COLOR = "color_estimation"
PEOPLE = {"kind": "human", "seed": None, "timing": None, "worker": None, "created": None, "stimulus_sha256": None}


def gaze(fixations: Sequence[Sequence[float]], frame: tuple[int, int] = (640, 480), **changes: Any) -> dict[str, Any]:
    return {**ANSWERS[GAZE], "fixations": fixations, "frame": list(frame), **changes}


def read_trains(path: Path) -> list[dict[str, Any]]:
    """A reader of ``FixationTrains`` 1.2: tables with a row per path, padded with NaN, and attributes in two groups."""
    with h5py.File(path, "r") as file:
        assert (file.attrs["type"], file.attrs["version"]) == (b"FixationTrains", b"1.2")
        assert json.loads(file.attrs["__attributes__"]) == []
        mapping = json.loads(file.attrs["scanpath_attribute_mapping"])
        groups = {}
        for group in ("scanpath_attributes", "scanpath_fixation_attributes"):
            names = json.loads(file[group].attrs["__attributes__"])
            assert sorted(file[group]) == names
            groups[group] = {name: file[group][name][...] for name in names}
        tables = {name: file[f"train_{name}s"][...] for name in ("x", "y", "t", "n", "subject")}
    paths = []
    for place in range(len(tables["x"])):
        there = ~np.isnan(tables["x"][place])
        length = int(there.sum())
        assert there[:length].all()
        for name in ("x", "y", "t"):
            assert np.isnan(tables[name][place, length:]).all()
        one: dict[str, Any] = {name: tables[name][place, :length].tolist() for name in ("x", "y", "t")}
        one |= {name: int(tables[name][place]) for name in ("n", "subject")}
        for name, values in groups["scanpath_attributes"].items():
            value = values[place]
            one[name] = value.decode() if isinstance(value, bytes) else value.tolist()
        for name, values in groups["scanpath_fixation_attributes"].items():
            one[mapping[name]] = values[place, :length].tolist()
        paths.append(one)
    return paths


def read_stimuli(path: Path) -> list[tuple[str, Path, tuple[int, ...]]]:
    """A reader of ``FileStimuli`` 2.1: (name, file, shape) of each image, files being relative to the HDF5 file."""
    with h5py.File(path, "r") as file:
        assert (file.attrs["type"], file.attrs["version"]) == (b"FileStimuli", b"2.1")
        assert json.loads(file.attrs["__attributes__"]) == ["name"]
        files = [(path.parent / text.decode()).resolve() for text in file["filenames"][...]]
        shapes = [tuple(shape.tolist()) for shape in file["shapes"][...]]
        names = [text.decode() for text in file["name"][...]]
        assert file.attrs["size"] == len(files) == len(shapes) == len(names)
    return list(zip(names, files, shapes, strict=True))


def _run(tmp_path: Path) -> Path:
    """Two agents, one that models durations in one answer, and imports; the third image is not on the disk."""
    for name, size in (("a/1.png", (640, 480)), ("b/2.png", (320, 200))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        PILImage.new("L" if name == "a/1.png" else "RGB", size).save(tmp_path / name)
    stimuli = [
        stimulus("c1", COLOR, image="c.png"),
        stimulus("free", GAZE, image="b/2.png", benchmark_id="672.jpg"),
        stimulus("cup é", GAZE, image="a/1.png", mode="search", target_box=[1, 2, 3, 4], meta={"target": "tässe"}),
        stimulus("gone", GAZE, image="a/1.png", mode="search", target_image="t/fork.png", target_present=False),
        stimulus("lost", GAZE, image="lost.png"),
        stimulus("unanswered", GAZE, image="other.png"),
    ]
    screen = gaze([[640, 512], [1279, -5]], (1280, 1024), fit="stretch")
    timed = gaze([[160, 100], [10.5, 20.25]], (320, 200), durations_ms=[200.0, 150.5])
    records = {
        "gbvs": [
            record("lost", GAZE, "gbvs", answer=gaze([[1, 1]], (1000, 500))),
            record("gone", GAZE, "gbvs", answer=gaze([[320, 240], [0, 479]])),
            record("cup é", GAZE, "gbvs", answer=gaze([[320, 240], [1, 2], [3, 4]])),
            failed("free", task=GAZE, agent="gbvs"),
        ],
        "dg": [
            record("free", GAZE, "dg", answer=timed),
            record("free", GAZE, "dg", sample=1, answer=gaze([], (320, 200))),
            record("c1", COLOR, "dg"),
        ],
        "humans": [
            record("672.jpg", GAZE, "human:05", answer=screen, **PEOPLE),
            record("9.jpg", GAZE, "human:05", answer=gaze([[640, 512]], (1280, 1024)), **PEOPLE),
        ],
    }
    return write_run(
        tmp_path / "run", stimuli, records, {"gbvs": agent_entry(GAZE), "dg": agent_entry(GAZE, COLOR)}, samples=2
    )


def test_pysaliency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "paths.hdf5"
    export_run(_run(tmp_path), "pysaliency", out)
    images = read_stimuli(tmp_path / "new" / "paths.hdf5.stimuli.hdf5")
    assert images == [  # in the order of the set, those without a path left out; what only people saw comes last
        ("b/2.png", tmp_path / "b" / "2.png", (200, 320, 3)),
        ("a/1.png", tmp_path / "a" / "1.png", (480, 640)),
        ("lost.png", tmp_path / "lost.png", (500, 1000)),
        ("9.jpg", tmp_path / "9.jpg", (1024, 1280)),
    ]
    assert images[0][1].is_file()
    paths = read_trains(out)
    shown = [(one["agent"], one["kind"], one["subject"], one["sample"], one["stimulus"], one["n"]) for one in paths]
    assert shown == [
        ("gbvs", "machine", 0, 0, "lost", 2),
        ("gbvs", "machine", 0, 0, "gone", 1),
        ("gbvs", "machine", 0, 0, "cup é", 1),
        ("dg", "machine", 1, 0, "free", 0),
        ("human:05", "human", 2, 0, "free", 0),
        ("human:05", "human", 2, 0, "9.jpg", 3),
    ]
    assert [one["mode"] for one in paths] == ["free", "search", "search", "free", "free", "free"]
    assert [one["task"] for one in paths] == ["none", "fork", "tässe", "none", "none", "none"]
    assert np.array_equal([one["target_present"] for one in paths], [np.nan, 0, 1] + [np.nan] * 3, equal_nan=True)
    assert paths[2]["target_bbox"] == [1, 2, 3, 4]
    assert np.isnan([paths[place]["target_bbox"] for place in (0, 1, 3, 4, 5)]).all()
    assert [one["frame"] for one in paths[2:5]] == [[640, 480], [320, 200], [1280, 1024]]
    assert (paths[2]["x"], paths[2]["y"], paths[2]["t"]) == ([320, 1, 3], [240, 2, 4], [0, 1, 2])
    assert (paths[3]["x"], paths[3]["y"], paths[3]["duration"]) == ([160, 10.5], [100, 20.25], [0.2, 0.1505])
    assert np.isnan(paths[2]["duration"]).all()
    assert paths[4]["x"] == [160, 1279 / 4]  # people's 1280 x 1024 on the picture's 320 x 200
    assert paths[4]["y"] == [100, -5 * 200 / 1024]
    about = json.loads((tmp_path / "new" / "paths.hdf5.export.json").read_text())
    assert about["subjects"]["2"] == {"agent": "human:05", "sample": 0}
    assert about["images"][0] == {"name": "b/2.png", "width": 320, "height": 200}
    assert about["sizes_not_from_the_image"] == ["lost.png", "9.jpg"]
    assert about["left_out"] == {"failed": 1, "without fixations": 1}
    assert about["records"] == {"gbvs": 3, "dg": 1, "human:05": 2}
    assert (tmp_path / "new" / "paths.hdf5.stimuli.jsonl").exists()
    said = capsys.readouterr().out
    assert "scaled from another frame to their image: 1 scanpath\n" in said
    assert "outside their image, kept: 1 fixation\n" in said
    assert (about["scaled"], about["fixations_outside_the_image"]) == (1, 1)
    assert "2 images not readable" in said


def test_pysaliency_by_the_package_itself(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other people's imports
        pysaliency = pytest.importorskip("pysaliency")
        out = tmp_path / "paths.hdf5"
        export_run(_run(tmp_path), "pysaliency", out)
        trains = pysaliency.read_hdf5(str(out))
        images = pysaliency.read_hdf5(f"{out}.stimuli.hdf5")
        plain = read_trains(out)
        for name in ("x", "y", "t", "duration"):
            wanted = [value for one in plain for value in one[name]]
            assert np.array_equal(getattr(trains, name), wanted, equal_nan=True)
        assert trains.n.tolist() == [one["n"] for one in plain for _ in one["x"]]
        assert trains.train_subjects.tolist() == [0, 0, 0, 1, 2, 2]
        assert trains.x_hist[2][0] == 320  # the second fixation of the second path knows the first
        people = trains[trains.kind == b"human"]
        assert len(people.x) == 3
        assert [tuple(map(int, size)) for size in images.sizes] == [(200, 320), (480, 640), (500, 1000), (1024, 1280)]
        assert images.stimuli[0].shape == (200, 320, 3)
        known = [str(tmp_path / name) for name in ("b/2.png", "a/1.png")]
        assert list(map(tuple, images.shapes[:2])) == pysaliency.FileStimuli(known).shapes
        assert list(images.attributes["name"]) == ["b/2.png", "a/1.png", "lost.png", "9.jpg"]


LETTERBOX = [[140, 0], [840, 525], [1540, 1050], [470, 250]]  # on a screen of 1680 x 1050 with bars of 140 pixels
PLACED: list[list[float]] = [[0, 0], [320, 240], [640, 480], [150.857, 114.286]]  # on a picture of 640 x 480


def _on_a_screen(tmp_path: Path, **fit: str) -> Path:
    """People's paths on a screen of another shape than the picture, and a machine's on the picture."""
    PILImage.new("RGB", (640, 480)).save(tmp_path / "cup.jpg")
    search = {"mode": "search", "target_box": [128, 91, 46, 46], "meta": {"target": "cup"}}
    stimuli = [stimulus("cup/1.jpg", GAZE, image="cup.jpg", **search)]
    answers = [gaze(LETTERBOX, (1680, 1050), **fit) for _ in range(7)]
    people = [record("cup/1.jpg", GAZE, f"human:{at}", answer=each, **PEOPLE) for at, each in enumerate(answers)]
    machine = [record("cup/1.jpg", GAZE, "gbvs", answer=gaze(PLACED))]
    return write_run(tmp_path / "run", stimuli, {"gbvs": machine, "humans": people}, {"gbvs": agent_entry(GAZE)})


def test_a_screen_with_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The picture's corners on the screen become its corners. The last pixel is before the side: x = 640 is outside,
    where pysaliency would find no value of a map."""
    export_run(_on_a_screen(tmp_path, fit="bars"), "pysaliency", tmp_path / "out")
    machine, *people = read_trains(tmp_path / "out")
    for path in (machine, *people):
        assert list(zip(path["x"], path["y"], strict=True)) == [pytest.approx(point, abs=0.001) for point in PLACED]
    assert [path["fit"] for path in (machine, people[0])] == ["", "bars"]
    assert people[0]["frame"] == [1680, 1050]
    assert "outside their image, kept: 8 fixations\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.export.json").read_text())["fixations_outside_the_image"] == 8


def test_a_list_of_coco_search18_on_pictures_without_bars(tmp_path: Path) -> None:
    """From the list to the export: the target's box and a person's path come to the picture of 640 x 480."""
    (tmp_path / "pic" / "cup").mkdir(parents=True)
    PILImage.new("RGB", (640, 480)).save(tmp_path / "pic" / "cup" / "1.jpg")
    xs, ys = zip(*LETTERBOX, strict=True)
    entry = {"name": "1.jpg", "subject": 1, "task": "cup", "condition": "present", "bbox": [420, 200, 100, 100]}
    (tmp_path / "list.json").write_text(json.dumps([{**entry, "X": xs, "Y": ys, "T": [200] * 4}]))
    made = ["set", str(tmp_path / "list.json"), "--images", str(tmp_path / "pic"), "--out", str(tmp_path / "set.jsonl")]
    assert main([*made, "--frame", "1680x1050", "--fit", "bars"]) == 0
    run = tmp_path / "run"
    assert main(["generate", str(tmp_path / "set.jsonl"), "--agents", "center", "--here", "--out", str(run)]) == 0
    screen = {**gaze(LETTERBOX, (1680, 1050), fit="bars"), "durations_ms": [200.0] * 4}
    person = {"task": GAZE, "stimulus": "cup/1.jpg", "agent": "human:01", "answer": screen}
    Run(run).write_records("humans", [people_record(Run(run).meta["run"], person)])
    export_run(run, "pysaliency", tmp_path / "out")
    machine, human = read_trains(tmp_path / "out")
    assert human["x"] == pytest.approx([0, 320, 640, 150.857], abs=0.001)
    assert human["y"] == pytest.approx([0, 240, 480, 114.286], abs=0.001)
    assert machine["target_bbox"] == human["target_bbox"] == pytest.approx([128, 91.4286, 45.7143, 45.7143], abs=0.001)
    assert human["duration"] == [0.2] * 4
    assert machine["frame"] == [640, 480]


def test_a_stretched_screen(tmp_path: Path) -> None:
    export_run(_on_a_screen(tmp_path, fit="stretch"), "pysaliency", tmp_path / "out")
    stretched = read_trains(tmp_path / "out")[1]
    assert stretched["x"] == pytest.approx([53.333, 320, 586.667, 179.048], abs=0.001)
    assert stretched["y"] == pytest.approx([0, 240, 480, 114.286], abs=0.001)


def test_a_screen_of_which_nothing_is_said_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _on_a_screen(tmp_path)
    assert main(["export", str(run), "--format", "pysaliency", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    who = f"{run}/records/humans.jsonl: human:0, stimulus 'cup/1.jpg'"
    assert f"{who}: its frame is 1680 x 1050, and the picture 640 x 480" in told
    assert told.count("its frame is") == 5
    assert "turinglike: 7 scanpaths cannot be placed on the picture (5 are named): the frame has another shape" in told
    assert "Import the answers again (`import`) with --fit bars" in told
    assert "--fit stretch" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cup.jpg", "run"]
    for form in ("jsonl", "csv", "parquet", "coco-search18"):  # which have the frame beside it, or machines alone
        export_run(run, form, tmp_path / form)


def test_without_the_picture_two_screens_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _on_a_screen(tmp_path, fit="bars")
    (tmp_path / "cup.jpg").unlink()
    assert main(["export", str(run), "--format", "pysaliency", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "its frame is 1680 x 1050, another answer's 640 x 480, and there is no picture" in told
    assert "Put the pictures where the run looks for them" in told


def test_pysaliency_without_h5py_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UnavailableError, match=r"pip install 'turinglike\[pysaliency\]'"):
        export_run(run, "pysaliency", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "answer",
    [
        gaze([[1, 1]], (0, 480)),
        gaze([[1]]),
        gaze([[1, 1]], durations_ms=[1.0, 2.0]),
        {"fixations": [[1, 1]]},
    ],
)
def test_what_is_no_scanpath_is_named(tmp_path: Path, answer: dict[str, Any]) -> None:
    (tmp_path / "images").mkdir()
    PILImage.new("RGB", (20, 10)).save(tmp_path / "images" / "g", "PNG")
    rows = [record("g", GAZE, "a", answer=answer)]
    run = write_run(tmp_path / "run", [stimulus("g", GAZE)], {"a": rows}, {"a": agent_entry(GAZE)})
    with pytest.raises(InputError, match="a, stimulus 'g': answer: not a scanpath"):
        export_run(run, "pysaliency", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "run"]
