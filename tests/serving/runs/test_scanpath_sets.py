"""The forms of sets of scanpaths: read from files, with every problem named."""

import json
from collections import Counter

import numpy as np
import pytest
from run_folders import ANSWERS, agent_entry, failed, line, record, stimulus, write_run

from agents.attention.scanpath_comparison import shared_stimuli
from agents.errors import InputError
from serving.export.registry import export
from serving.runs.scanpath_sets import read_set, split

TASK = "attention_prediction"


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
    records = {
        "gbvs": [
            *(scan(f"set/{name}.png", seed=seed) for seed, name in enumerate("abc")),
            failed("set/d.png", task=TASK, agent="gbvs"),
        ],
        "ivsn": [scan(f"set/{name}.png", "ivsn", seed=9 + seed) for seed, name in enumerate("abc")],
        "mmcq": [record("set/a.png")],
        "catch": [scan("set/a.png", "catch", kind="control")],
    }
    agents = {name: agent_entry(TASK, kind="control" if name == "catch" else "machine") for name in records}
    return write_run(tmp_path / "run", stimuli, records, agents)


def about(read):
    return Counter(path.agent for path in read.paths)


def names(read):
    return [(path.agent, path.stimulus) for path in read.paths]


def test_a_run_folder(run):
    read = read_set(str(run))
    assert about(read) == {"gbvs": 3, "ivsn": 3}
    assert read.passed_over == {"failed answers": 1, "answers to other tasks": 1, "paths of controls": 1}
    first, *_, third = read_set(f"{run}:gbvs").paths
    assert (first.target, first.names[-1], first.window) == ("", "a", 100)
    assert (third.target, third.pixels_per_degree, third.names) == ("cup", 20.0, ("c", "img003", "c"))
    assert names(read_set(f"{run}:catch")) == [("catch", "set/a.png")]
    assert about(read_set(f"{run}:machines")) == {"gbvs": 3, "ivsn": 3}
    with pytest.raises(InputError, match=r"holds no scanpaths of 'nobody'; it has those of gbvs, ivsn, catch"):
        read_set(f"{run}:nobody")


def test_exports_are_the_run_again(run, tmp_path):
    made = {(path.agent, path.stimulus): path for path in read_set(str(run)).paths}
    export(run, "jsonl", tmp_path / "all.jsonl")
    again = read_set(str(tmp_path / "all.jsonl"))
    assert {(path.agent, path.stimulus): path for path in again.paths} == made
    export(run, "coco-search18", tmp_path / "scan.json")
    listed = read_set(f"{tmp_path / 'scan.json'}:ivsn").paths
    assert len(listed) == 3
    for path, name in zip(listed, "abc", strict=True):
        same = made["ivsn", f"set/{name}.png"]
        for field in ("fixations", "frame", "subject", "target"):
            assert getattr(path, field) == getattr(same, field)


def test_the_last_line_of_a_key_counts_and_a_bad_line_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(map(line, [scan("a", seed=1), scan("a", seed=2)])))
    (found,) = read_set(str(path)).paths
    assert [list(point) for point in found.fixations] == points(2)
    wrong = record("b", TASK, "gbvs", answer={**answer(points(1)), "fixations": [[1, "2"]]})
    path.write_bytes(line(scan("a")) + b"{\n" + line([]) + line({"schema": "x"}) + line(wrong))
    with pytest.raises(InputError) as error:
        read_set(str(path))
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 5]


def test_the_published_form(tmp_path):
    path = tmp_path / "fv.json"
    said = {"response": [[1, 2], [3, 4]], "groundtruth": "human", "machine_groundtruth": ""}
    rows = [{**said, "human_groundtruth": who} for who in ("05", "", "")]
    rows.append({"response": [[5, 6]], "groundtruth": "machine", "machine_groundtruth": "ivsn"})
    path.write_text(json.dumps({"img001": rows}))
    with pytest.raises(InputError, match=rf"several kinds; give one of {path}:humans, {path}:published"):
        read_set(str(path))
    people = read_set(f"{path}:humans").paths
    assert [one.subject for one in people] == ["human:05", "human:unknown#0", "human:unknown#1"]
    assert {(one.frame, one.target) for one in people} == {((1280, 1024), "")}
    assert names(read_set(f"{path}:human:05")) == [("human:05", "img001")]
    assert names(read_set(f"{path}:published:ivsn")) == [("published:ivsn", "img001")]
    path.write_text(json.dumps({"img001": [[1, 2]], "img002": [[3, 4], [5, 6]]}))
    assert names(read_set(str(path))) == [("published:fv", "img001"), ("published:fv", "img002")]


def test_imports_find_their_stimulus_by_the_benchmarks_id(run, tmp_path):
    human = scan("img003", "human:05", kind="human", seed=4)
    (run / "records" / "humans.jsonl").write_bytes(line(human))
    (found,) = read_set(f"{run}:humans").paths
    assert (found.target, found.pixels_per_degree) == ("cup", 20.0)
    export(run, "jsonl", tmp_path / "all.jsonl")
    assert read_set(f"{tmp_path / 'all.jsonl'}:human:05").paths == [found]
    with pytest.raises(InputError, match="several kinds"):
        read_set(str(run))


def test_grid_cells(tmp_path):
    path = tmp_path / "cells.json"
    path.write_text(json.dumps({"source": "x", "scanpaths": [{"image": "a.jpg", "grid64": [2016, 1]}] * 2}))
    read = read_set(str(path))
    assert {path.stimulus for path in read.paths} == {"a.jpg"}
    assert {one.fixations for one in read.paths} == {((630.0, 504.0), (10.0, 8.0))}
    assert about(read) == {None: 2}


@pytest.mark.parametrize(
    ("content", "words"), [("", "is not JSON"), ("5", "must be a JSON list or object"), ("[]", "holds no scanpaths")]
)
def test_files_that_are_no_set(tmp_path, content, words):
    path = tmp_path / "odd.json"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        read_set(str(path), (10, 10))
    assert words in " ".join(map(str, [error.value, *error.value.problems]))


def test_a_damaged_side_car_is_named(tmp_path):
    path = tmp_path / "scan.json"
    path.write_text("[]")
    (tmp_path / "scan.json.export.json").write_text('{"frames": {"a": 5}}')
    with pytest.raises(InputError, match=r"scan.json.export.json is not the side-car"):
        read_set(str(path))


def test_who_is_what_follows_a_path_that_exists(tmp_path):
    path = tmp_path / "a:b.json"
    path.write_text("[]")
    assert split(str(path)) == (path, None)
    assert split(f"{path}:human:05") == (path, "human:05")
    assert split(f"{path}:") == (path, None)
    with pytest.raises(InputError, match="no such file or folder"):
        split(str(tmp_path / "b.json:x"))


def entry(**changes):
    base = {"name": "a.jpg", "subject": 4, "task": "bottle", "condition": "present"}
    return {**base, "X": [1, 2.5], "Y": [3, 4], "T": [200, 300], "length": 2, **changes}


def listed(folder, *entries, frame=(100, 50)):
    (folder / "list.json").write_text(json.dumps(entries))
    return read_set(str(folder / "list.json"), frame)


def test_coco_search18_entries(tmp_path):
    read = listed(
        tmp_path,
        entry(),
        entry(condition="freeview", task="none", T=None),
        entry(task="none", condition=None),
        entry(X=[], Y=[], T=[]),
    )
    first, second, third = read.paths
    assert (first.stimulus, first.target, first.subject, first.agent) == ("a.jpg [bottle]", "bottle", "4", "4")
    assert first.fixations == ((1, 3), (2.5, 4))
    assert (first.durations, first.frame, first.names) == ((200, 300), (100, 50), ("a",))
    assert (second.stimulus, second.target, second.durations) == ("a.jpg", "", None)
    assert (third.stimulus, third.target) == ("a.jpg", None)
    assert read.passed_over == {"paths without a fixation": 1}


def test_frames_and_agents_of_a_side_car(tmp_path):
    frames = {"frames": {"a.jpg": [640, 480]}, "other_frames": [{"name": "a.jpg", "subject": 5, "frame": [320, 240]}]}
    side = {**frames, "subjects": {"4": {"agent": "gbvs", "sample": 2}}}
    (tmp_path / "list.json.export.json").write_text(json.dumps(side))
    read = listed(tmp_path, entry(), entry(subject=5), entry(name="b.jpg"))
    assert [one.frame for one in read.paths] == [(640, 480), (320, 240), (100, 50)]
    assert [(one.agent, one.subject) for one in read.paths] == [("gbvs", "gbvs#2"), ("5", "5"), ("gbvs", "gbvs#2")]


def test_every_wrong_entry_is_a_problem_with_its_place(tmp_path):
    wrong = [7, entry(name=3), {"name": "a", "subject": 1, "X": []}, entry(Y=[1]), entry(X=[1, True]), entry(T=[1])]
    with pytest.raises(InputError, match="problem") as caught:
        listed(tmp_path, *wrong, entry())
    assert [problem.field for problem in caught.value.problems] == ["0", "1.name", "2.Y", "3", "4.X.1", "5"]


def test_without_a_frame_the_option_is_asked_for(tmp_path):
    with pytest.raises(InputError) as caught:
        listed(tmp_path, entry(), entry(), frame=None)
    assert "2 of its paths are; give --frame" in caught.value.problems[0].message


def test_cells_that_are_none(tmp_path):
    entries = [{"grid64": [1]}, *({"image": "a", "grid64": cells} for cells in ([0], [4097], [True]))]
    (tmp_path / "cells.json").write_text(json.dumps({"scanpaths": entries}))
    with pytest.raises(InputError) as caught:
        read_set(str(tmp_path / "cells.json"))
    places = ["0.image", "1.grid64.0", "2.grid64.0", "3.grid64.0"]
    assert [problem.field for problem in caught.value.problems] == places


@pytest.mark.parametrize(
    ("row", "kind", "target"),
    [
        ({"mode": "free"}, "machine", ""),
        ({"mode": "search", "target_box": [1, 2, 3, 4]}, "machine", None),
        ({"mode": "search", "target_image": "x/Cup.png", "meta": {"target": "Mug"}}, "machine", "mug"),
        (None, "machine", None),
        (None, "human", ""),
    ],
)
def test_the_target_of_a_record(tmp_path, row, kind, target):
    path = tmp_path / "records.jsonl"
    path.write_bytes(line(record("s", TASK, "human:05" if kind == "human" else "x", kind=kind)))
    if row is not None:
        (tmp_path / "records.jsonl.stimuli.jsonl").write_text(json.dumps({"id": "s", "task": TASK, **row}))
    assert read_set(str(path)).paths[0].target == target


@pytest.mark.parametrize(
    "wrong", [{"fixations": [[1]]}, {"frame": [0, 5]}, {"durations_ms": [1.0]}], ids=["point", "frame", "durations"]
)
def test_records_that_are_no_scanpaths_are_problems(tmp_path, wrong):
    path = tmp_path / "records.jsonl"
    path.write_bytes(line(record("s", TASK, answer={**ANSWERS[TASK], **wrong})))
    with pytest.raises(InputError) as caught:
        read_set(str(path))
    assert caught.value.problems[0].line == 1


def test_a_name_with_a_point_is_whole(tmp_path):
    """img.1 goes with img.1.png, and not with img.png."""

    def paths(file, *names):
        entries = [{"name": name, "subject": 1, "X": [1], "Y": [2], "condition": "freeview"} for name in names]
        (tmp_path / file).write_text(json.dumps(entries))
        return read_set(str(tmp_path / file), (10, 10)).paths

    ours, theirs = paths("a.json", "img.1", "img.2"), paths("b.json", "img.png", "img.2.png")
    assert shared_stimuli(ours, theirs) == ([("img.2", "img.2.png")], [])
