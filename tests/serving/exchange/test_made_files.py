"""Files that the programs themselves made, by the scripts in ``made_by``: each comes in by one command.

A file's name has the program's version; ``label-studio-json.json`` has none, as it was written by hand. Files of other
programs are in ``test_forms.py``.
"""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from serving.cli import main
from serving.files.csv_tables import read_table
from tests.helpers.imported_tables import remarks
from tests.helpers.run_folders import read_back

FILES = Path(__file__).parent / "made_by" / "files"
BLUE = 'fish, "blue"'


class Made(NamedTuple):
    """A made file, and what is right for it: who, the stimulus, the word, milliseconds."""

    form: str
    answers: Sequence[tuple[str, str, str, float | None]]
    told: str = ""
    options: tuple[str, ...] = ()


LABELS = [
    ("human:1", "table", "chair", 32500),
    ("human:2", "table", 'he said "leg"', 33500),
    ("human:1", "deep, sea", "fish, blue", 34500),
    ("human:2", "deep, sea", "whale", 35500),
    ("human:2", "Müll", "rubbish", 37500),
]
JSPSYCH = [("human:5f3", "table", "chair", 420), ("human:5f3", "deep, sea", BLUE, 379)]
INSPECT = [
    ("published:mockllm/model", "table", "chair", None),
    ("published:mockllm/model", "deep, sea", BLUE, None),
]
MADE = {
    "expyriment-1.0.1.xpd": Made(
        "expyriment",
        [
            ("human:7", "table", "chair", 734),
            ("human:7", "dark", 'he said "night"', 1250),
            ("human:7", "deep, sea", BLUE, 901),
        ],
        "1 row (at 17) with `None` in column response",
    ),
    "inspect-0.3.285.eval": Made("inspect", INSPECT, "1 row (at [2]) without an answer"),
    "inspect-0.3.285.json": Made("inspect", INSPECT, "1 row (at [2]) without an answer"),
    "jspsych-8.3.0.csv": Made("jspsych", JSPSYCH, "1 row (at 6) without an answer", ("--rows", "phase=test")),
    "jspsych-8.3.0.json": Made("jspsych", JSPSYCH, "1 row (at [4]) without an answer", ("--rows", "phase=test")),
    "lab.js-20.2.4.csv": Made(
        "lab_js",
        [("human:p1", "table", "chair", 113.6), ("human:p1", "deep, sea", BLUE, 284.8)],
        "1 row (at 5) without an answer",
    ),
    "label-studio-json.json": Made("label_studio_json", LABELS, "rows_that_rules_for_the_program_leave_out: 1"),
    "label-studio-sdk-2.1.2-min.json": Made("label_studio", LABELS),
    "label-studio-sdk-2.1.2.csv": Made("label_studio", LABELS),
    "lm-eval-0.4.13.jsonl": Made(
        "lm_eval",
        [("published:tiny", cue, "lol", None) for cue in ("table", "deep, sea", "Müll")],
        options=("--name", "tiny"),
    ),
    "opensesame-4.1.22.csv": Made(
        "opensesame",
        [
            ("human:7", "table", "chair", 812.4),
            ("human:7", "dark", "light", 812.4),
            ("human:7", "deep, sea", "fish, blue", 812.4),
        ],
        "1 row (at 5) with `None` in column response",
    ),
    "otree-6.0.15.csv": Made(
        "otree",
        [
            ("human:0v3gf0nt", "table", "chair", 801),
            ("human:hnl4g498", "table", 'he said "leg"', 801),
            ("human:0v3gf0nt", "deep, sea", "fish, blue", 802),
            ("human:hnl4g498", "deep, sea", "whale", 802),
            ("human:hnl4g498", "Müll", "rubbish", 803),
        ],
        "1 row (at 6) without an answer",
    ),
    "psychopy-2026.2.5.csv": Made(
        "psychopy",
        [("human:007", "table", "chair", 734), ("human:007", "deep, sea", BLUE, 1250)],
        "1 row (at 5) without an answer",
    ),
}
REFUSED = {
    "otree-6.0.15-wide.csv": "download the table of the app",
}


def test_each_made_file_has_a_case() -> None:
    assert {path.name for path in FILES.iterdir()} == {*MADE, *REFUSED}


@pytest.mark.parametrize("name", MADE)
def test_a_made_file(name: str, tmp_path: Path) -> None:
    made = MADE[name]
    assert main(["import", str(FILES / name), "--task", "word", *made.options, "--out", str(tmp_path / "run")]) == 0
    kind = "humans" if made.answers[0][0].startswith("human:") else "published"
    found = []
    for row in read_back(tmp_path / "run", kind):
        time = row["raw"].get("rt") if isinstance(row["raw"], dict) else None
        rounded = None if time is None else round(time, 6)
        found.append((row["agent"], row["stimulus"], row["answer"]["word"], rounded))
    assert found == made.answers
    assert made.told in remarks(tmp_path)
    [source] = json.loads((tmp_path / "run" / "import.json").read_bytes())["sources"]
    assert source["form"] == made.form


def test_logs_of_inspect_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An archive without a header, a file that is no archive, and a log that is packed as older versions did."""
    path = tmp_path / "log.eval"
    command = ["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]
    path.write_bytes(b"none")
    assert main(command) == 2
    assert "is no log of Inspect that can be read" in capsys.readouterr().err
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "{}")
    assert main(command) == 2
    assert "the archive has no header.json" in capsys.readouterr().err
    whole = json.loads((FILES / "inspect-0.3.285.json").read_bytes())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, sample in enumerate(whole.pop("samples"), start=1):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(whole), zipfile.ZIP_STORED)
    assert main(command) == 0
    found = [row["answer"]["word"] for row in read_back(tmp_path / "run", "published")]
    assert found == ["chair", BLUE]


@pytest.mark.parametrize("name", REFUSED)
def test_a_made_file_that_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(FILES / name), "--task", "word", "--out", str(tmp_path / "run")]) == 2
    assert REFUSED[name] in capsys.readouterr().err


def test_quotation_marks_that_are_not_doubled() -> None:
    """As PsychoPy writes them: it puts marks around a cell with a comma or a line break, and changes nothing in it."""
    cells = ['say "a, b" twice', '"q" x', '"night"', '5" tv', "two\nlines", "", 'x, "']
    rows = []
    for cell in cells:
        rows.append(f'"{cell}",1,\n' if "," in cell or "\n" in cell else f"{cell},1,\n")
    table = read_table(f"a,b,\n{''.join(rows)}".encode(), "made", bare_quotes=True)
    assert table.problems == []
    assert [row["a"] for _, row in table.rows] == cells
    assert [line for line, _ in table.rows] == [2, 3, 4, 5, 6, 8, 9]
