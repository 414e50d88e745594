"""Stimuli of several folders meet by one rule, in the viewer, in trials and in exports."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import orjson
import pytest

from judging.trial_sets.candidates import AnswerReader
from judging.trial_sets.same_rules import SameRules
from serving.cli import main
from serving.runs.run import Run
from serving.runs.stimulus_lookup import StimulusLookup, common_stimuli
from serving.viewer.data import gathered

WORD = "word_association"


def run_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    source = folder.with_suffix(".jsonl")
    source.write_bytes(b"".join(orjson.dumps({"task": WORD, **row}) + b"\n" for row in rows))
    assert main(["generate", str(source), "--agents", "null", "--out", str(folder), "-q", "--here"]) == 0
    return folder


def people(folder: Path, text: str) -> Path:
    folder.with_suffix(".csv").write_text(text)
    assert main(["import", str(folder.with_suffix(".csv")), "--task", "word", "--unnamed", "--out", str(folder)]) == 0
    return folder


def joined(*paths: Path) -> list[set[str]]:
    """The names under which the viewer and trials take stimuli to be one, which must be the same."""
    with gathered([Run(path) for path in paths]) as data:
        alike: dict[int, set[str]] = {}
        for (_, _, name), place in data._page_rows._places.items():
            alike.setdefault(place, set()).add(name)
    answers = AnswerReader([*paths], [], SameRules(as_written=True)).candidates([WORD], [])
    shown: dict[str, set[str]] = {}
    for one in answers:
        shown.setdefault(one.stimulus.id, set()).add(one.agent)
    assert len(shown) == len(alike)
    return sorted(alike.values(), key=min)


def test_a_csv_with_a_free_column_and_people_by_cue_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = tmp_path / "words.csv"
    words.write_text("cue,age\nsun,3\nmoon,4\n")
    assert main(["generate", str(words), "--agents", "null", "--out", str(tmp_path / "W"), "-q", "--here"]) == 0
    of_people = people(tmp_path / "P", "participant,cue,response,rt\np1,sun,day,800\np2,moon,night,900\n")
    capsys.readouterr()
    assert joined(tmp_path / "W", of_people) == [{"moon"}, {"sun"}]
    assert f"2 of 2 stimuli are in both {tmp_path / 'W'} and {of_people}" in capsys.readouterr().err
    assert main(["trials", str(tmp_path / "W"), "--people", str(of_people), "--out", str(tmp_path / "T")]) == 0
    assert "2 of 2 stimuli are in both" in capsys.readouterr().out


def test_ids_meet_then_public_names_then_cues(tmp_path: Path) -> None:
    first = run_of(tmp_path / "A", [{"id": "a1", "cue": "sun"}, {"id": "a2", "benchmark_id": "m", "cue": "moon"}])
    second = run_of(tmp_path / "B", [{"id": "b1", "cue": "sun", "meta": {"age": 3}}, {"id": "a2", "cue": "moon"}])
    third = people(tmp_path / "P", "cue,response\nSun,day\nm,night\nother,x\n")
    for paths in ((first, second, third), (second, first, third), (third, second, first)):
        own = "b1" if paths[0] is second or (paths[1] is second and paths[0] is third) else "a1"
        other = "a1" if own == "b1" else "b1"
        assert joined(*paths) == sorted([{"Sun", own}, {other}, {"a2", "m"}, {"other"}], key=min)


def test_folders_that_share_nothing_or_mean_other_things_are_warned_of(tmp_path: Path) -> None:
    first = run_of(tmp_path / "A", [{"id": "w1", "cue": "sun"}])
    second = run_of(tmp_path / "B", [{"id": "w1", "cue": "moon"}])
    third = people(tmp_path / "P", "cue,response\nsea,wave\n")
    with gathered([Run(first), Run(second)]) as data:
        assert data.common == [
            f"1 of 1 stimulus are in both {first} and {second}",
            f"warning: 1 id of {first} and {second} mean different stimuli: 'w1'",
        ]
    with gathered([Run(first), Run(third)]) as data:
        assert data.common == [
            f"0 of 2 stimuli are in both {first} and {third}",
            f"warning: no stimulus of {first} is in another folder; it has w1",
        ]
        assert any(line.startswith("No stimulus of") for line in data._notices())
    assert [*common_stimuli(["A", "B", "C"], [{1: "x"}, {1: "x", 2: "y"}, {3: "z"}])] == [
        "warning: no stimulus of C is in another folder; it has z"
    ]
    assert len([*StimulusLookup(Run(first), Run(second)).differing()]) == 1


def test_the_same_pictures_in_two_tasks_are_said_to_be_so() -> None:
    """As in two runs over one folder, with an agent for colours and one for captions."""
    tasks = ("color_estimation", "image_captioning")
    names: list[dict[Hashable, str]] = [{(task, name): name for name in ("a.jpg", "b.jpg")} for task in tasks]
    assert [*common_stimuli(["A", "B"], names)] == [
        "0 of 4 stimuli are in both A and B",
        "A has 2 ids of another folder, but for another task: a.jpg, b.jpg",
    ]
