"""Reading scanpaths of other forms, and finding the stimuli that two sets share."""

import pytest
from run_folders import ANSWERS, record

from agents.attention.scanpath_sets import Read, Recorded, add_record, read_cells, read_coco, shared_stimuli
from agents.errors import Problem

TASK = "attention_prediction"
PLACE = Problem("file", 3, None, "")


def entry(**changes):
    base = {"name": "a.jpg", "subject": 4, "task": "bottle", "condition": "present"}
    return {**base, "X": [1, 2.5], "Y": [3, 4], "T": [200, 300], "length": 2, **changes}


def path(stimulus, *names, target=None):
    return Recorded(stimulus, "s", "s", ((1, 2),), (10, 10), names=names, target=target)


def coco(*entries, frames=None, frame=(100, 50), agents=None):
    return read_coco(entries, "file.json", frames or {}, frame, agents or {})


def test_coco_search18_entries():
    read = coco(entry(), entry(condition="freeview", task="none", T=None), entry(task="none", condition=None))
    first, second, third = read.paths
    assert (first.stimulus, first.target, first.subject, first.agent) == ("a.jpg [bottle]", "bottle", "4", "4")
    assert first.fixations == ((1, 3), (2.5, 4))
    assert (first.durations, first.frame, first.names) == ((200, 300), (100, 50), ("a",))
    assert (second.stimulus, second.target, second.durations) == ("a.jpg", "", None)
    assert (third.stimulus, third.target) == ("a.jpg", None)
    assert not read.problems


def test_frames_and_agents_of_a_side_car():
    frames = {("a.jpg", None): (640, 480), ("a.jpg", "5"): (320, 240)}
    read = coco(entry(), entry(subject=5), entry(name="b.jpg"), frames=frames, agents={"4": ("gbvs", 2)})
    assert [one.frame for one in read.paths] == [(640, 480), (320, 240), (100, 50)]
    assert [(one.agent, one.subject) for one in read.paths] == [("gbvs", "gbvs#2"), ("5", "5"), ("gbvs", "gbvs#2")]


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        (7, "[1]", "must be an object"),
        (entry(name=3), "[1].name", "must be text, is 3"),
        (entry(subject=None), "[1].subject", "must be a number or text"),
        (entry(subject=True), "[1].subject", "must be a number or text"),
        (entry(X="12"), "[1].X", "must be a list"),
        ({"name": "a", "subject": 1, "X": []}, "[1].Y", "is missing"),
        (entry(Y=[1]), "[1].Y", "has 1 numbers where X has 2"),
        (entry(task=5), "[1].task", "must be text"),
        (entry(X=[1, None]), "[1]", "None, which is no number"),
        (entry(X=[1, True]), "[1]", "True, which is no number"),
        (entry(Y=[1, float("inf")]), "[1]", "inf, which is no number"),
        (entry(T=[1]), "[1]", "has 1 durations for 2 fixations"),
        (entry(T=[1, "2"]), "[1]", "'2', which is no number"),
    ],
)
def test_every_wrong_entry_is_a_problem_with_its_place(wrong, field, message):
    read = coco(entry(), wrong, entry(), 5)
    assert len(read.paths) == 2
    first, second = read.problems
    assert (first.where, first.field) == ("file.json", field)
    assert message in first.message
    assert second.field == "[3]"


def test_without_a_frame_the_option_is_asked_for():
    read = coco(entry(), entry(), frame=None)
    assert not read.paths
    assert "2 of its paths are; give --frame" in read.problems[0].message


def test_a_path_without_a_fixation_is_counted():
    assert coco(entry(X=[], Y=[], T=[])).passed_over == {"paths without a fixation": 1}


def test_cells_become_their_centres():
    read = read_cells(
        [{"image": "x/a.jpg", "grid64": [1, 64, 65, 2016, 4096]}, {"image": "x/a.jpg", "grid64": [2]}], "f", None
    )
    first, second = read.paths
    assert first.fixations == ((10, 8), (1270, 8), (10, 24), (630, 504), (1270, 1016))
    assert (first.frame, first.names, first.subject, second.subject) == ((1280, 1024), ("a",), "#1", "#2")
    small = read_cells([{"image": "a", "grid64": [4096]}], "f", (128, 64))
    assert small.paths[0].fixations == ((127, 63.5),)


@pytest.mark.parametrize(
    "entries", [[3], [{"grid64": [1]}], *([{"image": "a", "grid64": g}] for g in (None, [0], [4097], [1.0], [True]))]
)
def test_cells_that_are_none(entries):
    read = read_cells(entries, "f", None)
    assert not read.paths
    assert read.problems[0].field.startswith("scanpaths[0]")


def test_a_record_becomes_a_path():
    row = {
        "image": "images/cat.png",
        "benchmark_id": "img004",
        "mode": "search",
        "target_image": "t/Cup.png",
        "pixels_per_degree": 30.0,
    }
    answer = {**ANSWERS[TASK], "durations_ms": [1, 2, 3]}
    read = Read()
    add_record(read, PLACE, record("set/s1", TASK, "gbvs", sample=2, answer=answer), row)
    (found,) = read.paths
    assert found == Recorded(
        "set/s1",
        "gbvs#2",
        "gbvs",
        ((320, 240), (0, 0), (639, 479)),
        (640, 480),
        (1, 2, 3),
        ("s1", "img004", "cat"),
        "cup",
        "machine",
        100,
        30.0,
    )


@pytest.mark.parametrize(
    ("row", "kind", "target"),
    [
        (None, "machine", None),
        (None, "human", ""),
        ({"mode": "free"}, "machine", ""),
        ({}, "published", ""),
        ({"mode": "search", "target_box": [1, 2, 3, 4]}, "machine", None),
        ({"mode": "search", "target_image": "x/Cup.png", "meta": {"target": "Mug"}}, "machine", "mug"),
    ],
)
def test_the_target_of_a_record(row, kind, target):
    read = Read()
    add_record(read, PLACE, record("s", TASK, "x", kind=kind), row)
    assert read.paths[0].target == target


@pytest.mark.parametrize(("agent", "subject"), [("human:05", "human:05"), ("human:unknown", "human:unknown#3")])
def test_people_with_a_name_are_one_subject(agent, subject):
    read = Read()
    add_record(read, PLACE, record("s", TASK, agent, kind="human", sample=3), None)
    assert read.paths[0].subject == subject


def test_records_that_are_no_scanpaths_are_counted_or_are_problems():
    read = Read()
    add_record(read, PLACE, record("s"), None)
    add_record(read, PLACE, record("s", TASK, status="failed", answer=None, error={"code": "x", "message": "y"}), None)
    add_record(read, PLACE, record("s", TASK, status="rejected"), None)
    add_record(read, PLACE, record("s", TASK, answer={**ANSWERS[TASK], "fixations": []}), None)
    assert read.passed_over == {
        "answers to other tasks": 1,
        "failed answers": 1,
        "rejected answers": 1,
        "paths without a fixation": 1,
    }
    add_record(read, PLACE, record("s", TASK, answer={**ANSWERS[TASK], "fixations": [[1]]}), None)
    add_record(read, PLACE, record("s", TASK, answer={**ANSWERS[TASK], "frame": [0, 5]}), None)
    add_record(read, PLACE, record("s", TASK, answer={**ANSWERS[TASK], "durations_ms": [1.0]}), None)
    assert [(problem.where, problem.line, problem.field) for problem in read.problems] == [
        ("file", 3, "answer.fixations.0"),
        ("file", 3, "answer"),
        ("file", 3, "answer"),
    ]
    assert "no area" in read.problems[1].message
    assert "1 durations for 3 fixations" in read.problems[2].message
    assert not read.paths


def test_a_path_is_scaled_side_by_side():
    one = Recorded("s", "a", "a", ((10, 10), (20, 5)), (100, 50))
    assert one.scaled((200, 25)) == ((20, 5), (40, 2.5))


@pytest.mark.parametrize(
    ("first", "second", "pairs", "ambiguous"),
    [
        ([path("a"), path("b")], [path("b"), path("c")], [("b", "b")], []),
        ([path("x/cat", "cat")], [path("cat.jpg", "cat")], [("x/cat", "cat.jpg")], []),
        ([path("s1", "s1", "img004", "cat")], [path("img004", "img004")], [("s1", "img004")], []),
        # An equal name comes before a shared one.
        (
            [path("a/1", "1"), path("b/1", "1")],
            [path("b/1", "1"), path("a/1", "1")],
            [("a/1", "a/1"), ("b/1", "b/1")],
            [],
        ),
        ([path("a/1", "1")], [path("b/1", "1"), path("c/1", "1")], [], ["a/1"]),
        ([path("b/1", "1"), path("c/1", "1")], [path("a/1", "1")], [], ["b/1", "c/1"]),
        # Search for different things, or for nothing, is not one stimulus; an unknown target may be any.
        ([path("a", target="cup")], [path("a", target="fork")], [], []),
        ([path("a", target="cup")], [path("a", target="")], [], []),
        ([path("a", target="cup")], [path("a", target=None)], [("a", "a")], []),
        (
            [path("a [cup]", "a", target="cup")],
            [path("a.jpg [fork]", "a", target="fork"), path("a.jpg [cup]", "a", target="cup")],
            [("a [cup]", "a.jpg [cup]")],
            [],
        ),
        ([path("gray004")], [path("img004")], [], []),
    ],
)
def test_shared_stimuli(first, second, pairs, ambiguous):
    assert shared_stimuli(first, second) == (pairs, ambiguous)
