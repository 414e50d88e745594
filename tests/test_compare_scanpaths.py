"""``scripts/compare_scanpaths.py`` from files to files, and the forms of sets that it reads."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PILImage
from run_folders import agent_entry, record, stimulus, write_run

from serving.export.registry import export

ROOT = Path(__file__).resolve().parent.parent
TASK = "attention_prediction"


@pytest.fixture(scope="module")
def script():
    for package in ("multimatch_gaze", "matplotlib"):
        pytest.importorskip(package)
    import compare_scanpaths

    return compare_scanpaths


def answer(points, frame=(640, 480), **changes):
    base = {"window": 100, "stop": None, "found": None, "found_at": None, "forced_first": None, "selection": None}
    return {"fixations": points, "frame": list(frame), **base, "durations_ms": None, **changes}


def points(seed, length=6, frame=(640, 480)):
    chance = np.random.default_rng(seed)
    return [[int(x), int(y)] for x, y in chance.random((length, 2)) * frame]


def scan(name, agent="gbvs", seed=0, **changes):
    return record(name, TASK, agent, answer=answer(points(seed)), **changes)


@pytest.fixture
def run(tmp_path):
    """A run of two attention agents and a control, with answers to another task and a failure."""
    stimuli = [stimulus(f"set/{name}.png", TASK) for name in "abc"]
    stimuli[2] |= {"mode": "search", "target_image": "t/cup.png", "pixels_per_degree": 20.0, "benchmark_id": "img003"}
    error = {"code": "bad_image", "message": "it is broken"}
    records = {
        "gbvs": [
            *(scan(f"set/{name}.png", seed=seed) for seed, name in enumerate("abc")),
            record("set/d.png", TASK, "gbvs", status="failed", answer=None, error=error),
        ],
        "ivsn": [scan(f"set/{name}.png", "ivsn", seed=9 + seed) for seed, name in enumerate("abc")],
        "mmcq": [record("set/a.png")],
        "catch": [scan("set/a.png", "catch", kind="control")],
    }
    kinds = {"catch": "control"}
    agents = {name: agent_entry(TASK, kind=kinds.get(name, "machine")) for name in records}
    return write_run(tmp_path / "run", stimuli, records, agents)


@pytest.fixture
def people(tmp_path):
    """COCO-Search18's form: three people on three stimuli of another size."""
    path = tmp_path / "people.json"
    entries = []
    for place, name in enumerate("abx"):
        for subject in range(3):
            xs, ys = zip(*points(100 + 10 * place + subject, 5, (320, 240)), strict=True)
            entries.append(
                {"name": f"{name}.jpg", "subject": subject, "task": "none", "condition": "freeview", "X": xs, "Y": ys}
            )
    path.write_text(json.dumps(entries))
    return path


def test_from_files_to_files(script, run, people, tmp_path, capsys):
    out = tmp_path / "out"
    code = script.main([f"{run}:gbvs", str(people), "--frame", "320x240", "--out", str(out), "--resamples", "100"])
    text = capsys.readouterr().out
    assert code == 0
    last = json.loads(text.splitlines()[-1])
    result = json.loads((out / "comparison.json").read_bytes())
    assert last["comparison"] == str(out / "comparison.json")
    assert result["stimuli"] == ["set/a.png", "set/b.png"]
    assert last["stimuli"] == 2
    assert "2 stimuli that both sets have; left out: 1 of the first and 1 of the second" in text
    assert "passed over: 1 failed answers" in text
    conditions = {row["condition"]: row for row in result["similarity"]}
    assert list(conditions) == [
        "first : second",
        "first, other stimulus : second",
        "random : second",
        "second : second",
    ]
    assert conditions["first : second"]["pairs"] == 6
    for condition, row in conditions.items():
        assert condition in text
        assert last["similarity"][condition] == {
            score: round(figure["mean"], 4) for score, figure in row["scores"].items()
        }
    assert result["figures"].keys() == {"first", "second", "random"}
    assert last["return_rate"]["first"] == result["figures"]["first"]["return_rate"]["rate"]
    # The warning is in both, and says why.
    assert result["warning"] in text
    for words in ("rank models poorly", "2102.12239", "Yang et al. 2020", "0.87/0.56/0.85/0.85", "0.90/0.74/0.88/0.91"):
        assert words in result["warning"]
    assert last["similarity_ranks_models"] is False
    with PILImage.open(out / "figures.png") as picture:
        assert picture.format == "PNG"
        assert len(picture.convert("L").getcolors(256)) > 10


def test_the_same_seed_gives_the_same_bytes(script, run, people, tmp_path):
    def result(out, *more):
        command = [f"{run}:gbvs", str(people), "--frame", "320x240", "--out", str(out), "--resamples", "100", *more]
        assert script.main(command) == 0
        return {file.name: file.read_bytes() for file in out.iterdir()}

    one = result(tmp_path / "one")
    assert one == result(tmp_path / "two")
    assert one["comparison.json"] != result(tmp_path / "three", "--seed", "5")["comparison.json"]


def test_a_set_of_one_subject_has_figures_and_no_similarity(script, run, tmp_path, capsys):
    assert script.main([f"{run}:gbvs", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "no similarity: no stimulus has paths of two subjects" in text
    assert "rank models poorly" in text


def test_an_earlier_comparison_is_replaced_only_with_force(script, run, tmp_path, capsys):
    out, other = tmp_path / "out", tmp_path / "other"
    command = [f"{run}:gbvs", "--out"]
    assert script.main([*command, str(out)]) == 0
    before = (out / "comparison.json").stat().st_mtime_ns
    assert script.main([*command, str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert (out / "comparison.json").stat().st_mtime_ns == before
    assert script.main([*command, str(out), "--force"]) == 0
    assert (out / "comparison.json").stat().st_mtime_ns != before
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    assert script.main([*command, str(other), "--force"]) == 2
    assert (other / "thesis.txt").read_text() == "mine"


def test_a_missing_package_is_one_sentence(script, run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "multimatch_gaze", None)
    assert script.main([f"{run}:gbvs", "--out", str(tmp_path / "out")]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert "pip install 'turinglike[compare]'" in message
    assert not (tmp_path / "out").exists()


def test_every_problem_of_both_sets_is_told_up_to_twenty(script, tmp_path, capsys):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps([{"name": "a"}] * 30))
    other.write_text("[")
    assert script.main([str(one), str(other), "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{one}: 0.subject: is missing"
    assert lines[20] == "… and 70 more"
    assert "90 problems" in lines[21]
    assert f"{other} is not JSON" in lines[21]
    assert len(lines) == 22


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--frame", "1x1", "--frame", "1x1", "--frame", "1x1"], "--frame is given 3 times for 2 sets"),
        (["--frame", "640x480", "--return-radius", "0"], "return-radius"),
        (["--frame", "640x480"], "no stimulus in common: 'set/a.png', 'set/b.png', 'set/c.png' in the first, 'zz'"),
        (["--pairs", "0"], "--pairs: "),
        (["--window", "x"], "--window: "),
    ],
)
def test_wrong_usage(script, run, tmp_path, capsys, more, words):
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{"name": "zz", "subject": 1, "X": [1, 9], "Y": [1, 9]}]))
    assert script.main([f"{run}:gbvs", str(other), "--out", str(tmp_path / "out"), *more]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_frame_that_is_not_used_is_said(script, run, people, tmp_path, capsys):
    export(run, "coco-search18", tmp_path / "scan.json")
    sets = [f"{tmp_path / 'scan.json'}:gbvs", str(people)]
    out = ["--out", str(tmp_path / "out"), "--resamples", "100", "--force"]
    said = f"{sets[0]}: 3 paths stay in the frame that the set or its side-car states; --frame 320x240 is for"
    for given, expected in ((["320x240"], [said]), (["640x480", "320x240"], [])):
        frames = [word for frame in given for word in ("--frame", frame)]
        assert script.main([*sets, *out, *frames]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert [line[: len(said)] for line in lines if "--frame" in line] == expected
