"""Trials of two folders tell whose answers stand in both, and which stimuli only people or only machines answered."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from judging.trial_sets.tells import tells
from serving.cli import main
from tests.helpers.plain_words import PLAIN_WORDS

CUES = [f"cue{at}" for at in range(6)]


def _table(path: Path, rows: Sequence[tuple[str, str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("subject", "stimulus", "response"), *rows])
    return path


def _machines(folder: Path, cues: Sequence[str]) -> Path:
    rows = {
        cue: [{"response": PLAIN_WORDS[20 + at], "groundtruth": "machine", "machine_groundtruth": "alpha"}]
        for at, cue in enumerate(cues)
    }
    (folder / "machine.json").write_text(json.dumps(rows))
    assert main(["import", str(folder / "machine.json"), "--task", "word", "--out", str(folder / "machine")]) == 0
    return folder / "machine"


def _people(folder: Path, name: str, rows: Sequence[tuple[str, str, str]]) -> Path:
    path = _table(folder / f"{name}.csv", rows)
    assert main(["import", str(path), "--task", "word", "--out", str(folder / name)]) == 0
    return folder / name


def test_a_copy_of_peoples_table_in_another_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three people; the second folder has two of them again, one with another word to one cue."""
    rows = [(f"p{who}", cue, PLAIN_WORDS[6 * who + at]) for who in range(3) for at, cue in enumerate(CUES)]
    again = [("p1", CUES[5], "window"), *reversed(rows[:11])]
    folders = [_people(tmp_path, "first", rows), _people(tmp_path, "second", again), _machines(tmp_path, CUES)]
    capsys.readouterr()
    assert main(["trials", *map(str, folders), "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    told = (
        f"human:p0 and 1 other answered the same stimuli in {folders[0]} and in {folders[1]}: 12 answers, 11 of them "
        "equal."
    )
    assert told in said


def test_other_people_are_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = _people(tmp_path, "first", [("p1", cue, PLAIN_WORDS[at]) for at, cue in enumerate(CUES)])
    second = _people(tmp_path, "second", [("p2", cue, PLAIN_WORDS[at]) for at, cue in enumerate(CUES)])
    folders = [str(first), str(second), str(_machines(tmp_path, CUES))]
    assert main(["trials", *folders, "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "answered the same stimuli" not in said
    assert "people alone" not in said


def test_stimuli_that_one_side_alone_answered_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People answered cues 0 to 4, the machine 2 to 5: two are people's alone, one is the machine's alone."""
    people = _people(tmp_path, "people", [("p1", cue, PLAIN_WORDS[at]) for at, cue in enumerate(CUES[:5])])
    folders = [str(people), str(_machines(tmp_path, CUES[2:]))]
    assert main(["trials", *folders, "--every", "--out", str(tmp_path / "T"), "--seed", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "only people answered 2 stimuli, and only machines 1." in said
    about = json.loads((tmp_path / "T.trials.json").read_text())
    assert about["tasks"]["word_association"]["stimuli_of_one_side"] == {"people": 2, "machines": 1}
    assert main(["trials", *folders, "--every", "--common", "--out", str(tmp_path / "C"), "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "people alone" not in said
    assert "  3 of 6 stimuli are common (--common): people and every agent answered them\n" in said


def test_common_tells_how_many_stimuli_are_left_in_one_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People answered cues 0 to 4 and the machine 3 to 5, in one run: two of six cues are common."""
    run = _machines(tmp_path, CUES[3:])
    people = _table(tmp_path / "people.csv", [("p1", cue, PLAIN_WORDS[at]) for at, cue in enumerate(CUES[:5])])
    assert main(["import", str(people), "--task", "word", "--out", str(run)]) == 0
    for more, told in ([], False), (["--common"], True):
        capsys.readouterr()
        assert main(["trials", str(run), "--out", str(tmp_path / f"T{told}"), "--seed", "1", *more]) == 0
        assert ("  2 of 6 stimuli are common" in capsys.readouterr().out) is told
    about = json.loads((tmp_path / "TTrue.trials.json").read_text())
    assert about["tasks"]["word_association"]["stimuli_in_common"] == {"common": 2, "all": 6}


def test_who_speaks_first_is_a_tell() -> None:
    """Where machines always begin, the first message alone says who is who."""
    messages = [{"speaker": "A", "text": "hello"}, {"speaker": "B", "text": "hello"}]
    trials = [
        {"asked": "conversation", "answer": {"messages": messages}, "speaker": "A" if at % 2 else "B"}
        for at in range(60)
    ]
    is_machine = np.array([at % 2 == 1 for at in range(60)])
    assert tells(trials, is_machine) == [{"tell": "speaks first", "people": 0.0, "machines": 1.0}]
    mixed = np.array([at % 4 < 2 for at in range(60)])
    assert tells(trials, mixed) == []
