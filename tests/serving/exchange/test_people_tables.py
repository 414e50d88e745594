"""People's verdicts from jsPsych's data: what is a verdict, what it means, and what cannot be known."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from serving.cli import main
from tests.helpers.run_folders import read_back

ABOUT = {"trial_type": "html-keyboard-response", "trial_index": 4, "time_elapsed": 9000}
SCREENS: list[dict[str, Any]] = [
    {**ABOUT, "rt": 5000, "response": " ", "stimulus": "<p>Press space to begin</p>", "subject": "w1"},
    {**ABOUT, "rt": 812.4, "response": "f", "stimulus": "t0001", "subject": "w1"},
    {**ABOUT, "rt": 640, "response": "j", "stimulus": "t0002", "subject": "w1"},
    {**ABOUT, "rt": None, "response": None, "stimulus": "t0003", "subject": "w1"},
    {**ABOUT, "rt": 955, "response": "J", "stimulus": "t0001", "subject": "w2"},
    {**ABOUT, "rt": 700, "response": ["a"], "stimulus": ["a.png", "b.png"], "subject": "w2"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """As jsPsych writes them: in CSV what is no text is JSON, and what a row lacks is empty."""
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
        return path
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        for row in rows:
            writer.writerow({name: one if isinstance(one, str) else json.dumps(one) for name, one in row.items()})
    return path


def imported(path: Path, out: Path, *more: str) -> int:
    return main(["import", str(path), "--task", "judgement", "--out", str(out), *more])


def said(out: Path) -> list[tuple[str, str, str, Any]]:
    rows = read_back(out, "humans")
    return [(row["agent"], row["stimulus"], row["answer"]["verdict"], row["raw"]) for row in rows]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_keys_with_a_meaning(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / f"data.{form}", SCREENS)
    assert imported(path, tmp_path / "V", "--responses", "f=human,j=machine") == 0
    assert said(tmp_path / "V") == [
        ("human:w1", "t0001", "human", {"response": "f", "rt": 812.4}),
        ("human:w1", "t0002", "machine", {"response": "j", "rt": 640.0}),
        ("human:w2", "t0001", "machine", {"response": "J", "rt": 955.0}),
    ]
    told = capsys.readouterr().out
    assert "screens that name no trial: 2" in told
    assert "trials without a response: 1" in told


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_verdict_column_goes_before_the_key(form: str, tmp_path: Path) -> None:
    """Judges whose keys are counterbalanced: `verdict` says what each key meant; `trial` which trial a picture was."""
    rows = [
        {
            **ABOUT,
            "rt": 500,
            "response": 0,
            "stimulus": "media/s0001.png",
            "trial": "t0004",
            "participant": 7,
            "verdict": "Machine",
        },
        {
            **ABOUT,
            "rt": 600,
            "response": 0,
            "stimulus": "media/s0001.png",
            "trial": "t0005",
            "participant": 8,
            "verdict": "human",
        },
    ]
    path = write(tmp_path / f"data.{form}", rows)
    assert imported(path, tmp_path / "V", "--responses", "0=human,1=machine") == 0
    assert [one[:3] for one in said(tmp_path / "V")] == [
        ("human:7", "t0004", "machine"),
        ("human:8", "t0005", "human"),
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "data.csv:3: response: must be human or machine, or what --responses give a meaning, not 'f'"),
        ({"verdict": "maybe"}, "data.csv:3: verdict: must be human or machine"),
        ({"response": "human", "rt": "soon"}, "data.csv:3: rt: must be a number that is not below 0, not 'soon'"),
        ({"response": "human", "subject": ""}, "data.csv:3: subject: is empty"),
    ],
)
def test_what_cannot_be_known_is_refused(
    changed: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "data.csv", [{**SCREENS[0], **dict.fromkeys(changed, "")}, {**SCREENS[1], **changed}])
    assert imported(path, tmp_path / "V") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "V").exists()


def test_who_judged_must_be_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{name: one for name, one in row.items() if name != "subject"} for row in SCREENS]
    assert imported(write(tmp_path / "data.json", rows), tmp_path / "V", "--responses", "f=human,j=machine") == 2
    assert "data.json: does not say who judged: it has no column subject, participant" in capsys.readouterr().err
    assert imported(write(tmp_path / "rows.json", [{"rt": 1}]), tmp_path / "V") == 2
    assert "has no column that names the stimulus" in capsys.readouterr().err
    assert imported(write(tmp_path / "rows.json", [1]), tmp_path / "V") == 2  # type: ignore[list-item]
    assert "is a list, but not of rows" in capsys.readouterr().err
    assert imported(write(tmp_path / "data.csv", [{"judge": "a", "verdict": "human"}]), tmp_path / "V") == 2
    assert "has no column that names the stimulus" in capsys.readouterr().err
    assert imported(write(tmp_path / "data.csv", [{"judge": "a", "truth": "human"}]), tmp_path / "V") == 2
    assert "has no column stimulus and no column verdict" in capsys.readouterr().err


def test_numbers_of_judges_are_numbers_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**SCREENS[1], "subject": 1, "response": 0}, {**SCREENS[2], "subject": 1.0, "response": 1.0}]
    path = write(tmp_path / "data.json", rows)
    assert imported(path, tmp_path / "V", "--responses", "0=human,1=machine") == 0
    assert [one[:3] for one in said(tmp_path / "V")] == [
        ("human:1", "t0001", "human"),
        ("human:1", "t0002", "machine"),
    ]
    write(path, [{**SCREENS[1], "subject": True}])
    assert imported(path, tmp_path / "W", "--responses", "f=human") == 2
    assert "[0].subject: must be a name or a number, not" in capsys.readouterr().err
