"""Workbooks come in as the same table in CSV would."""

import sys
from pathlib import Path

import pytest

from agents.errors import InputError
from serving.cli import main
from serving.files.workbooks import read_workbook
from serving.sets.stimulus_set import read_rows
from tests.helpers.run_folders import read_back
from tests.helpers.workbooks import Cell, write_workbook

TABLE: list[list[Cell]] = [
    ["vp", "cue", "response", "rt", "right"],
    [7, "sun", "moon; star", 734.5, True],
    [],
    [8.0, "Bär", "<Größe>", 1250, False],
    [9, "sea", None, None, None],
]


def test_a_workbook_is_the_table_of_its_first_filled_sheet(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "daten.xlsx"
    sheets: dict[str, list[list[Cell]]] = {"old": [["x"]], "empty": [], "Tabelle1": TABLE, "notes": [["n"], ["y"]]}
    write_workbook(path, sheets, hidden="old")
    table = read_workbook(path.read_bytes(), "daten.xlsx")
    assert table.names == ["vp", "cue", "response", "rt", "right"]
    assert [(line, list(cells.values())) for line, cells in table.rows] == [
        (2, ["7", "sun", "moon; star", "734.5", "true"]),
        (4, ["8", "Bär", "<Größe>", "1250", "false"]),
        (5, ["9", "sea", "", "", ""]),
    ]
    assert table.remarks == ["read from the sheet 'Tabelle1'", "1 other sheet of the workbook not read: notes"]


def test_a_workbook_is_imported(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "daten.xlsx"
    write_workbook(path, {"Tabelle1": TABLE})
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 0
    rows = read_back(tmp_path / "run", "humans")
    assert [(row["agent"], row["stimulus"], row["answer"]["word"], row["raw"]["rt"]) for row in rows] == [
        ("human:7", "sun", "moon; star", 734.5),
        ("human:8", "Bär", "<Größe>", 1250),
    ]


def test_numbers_kept_as_text_with_decimal_commas(tmp_path: Path) -> None:
    """Cells that were pasted as texts keep their comma; those that are numbers have none in the file."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "daten.xlsx"
    times: list[Cell] = ["2,5", 1.25, "0,734", "1\u202f250,5", 3]
    rows: list[list[Cell]] = [["vp", "cue", "response", "rt"]]
    rows += [[1, f"cue{at}", "moon", time] for at, time in enumerate(times)]
    write_workbook(path, {"Tabelle1": rows})
    command = ["import", str(path), "--task", "word", "--rt", "seconds", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    assert [row["raw"]["rt"] for row in read_back(tmp_path / "run", "humans")] == [2500, 1250, 734, 1250500, 3000]


def test_texts_that_may_be_thousands_are_refused_in_a_workbook(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "daten.xlsx"
    write_workbook(path, {"Tabelle1": [["vp", "cue", "response", "rt"], [1, "sun", "moon", "1,234"]]})
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 2
    assert "daten.xlsx:2: rt: must be a number that is not below 0, not '1,234'" in capsys.readouterr().err


def test_a_workbook_is_a_set(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "set.xlsx"
    write_workbook(path, {"Sheet1": [["id", "task", "cue"], ["w1", "word_association", "sun"], [2, None, "sea"]]})
    rows = list(read_rows(path, "word_association"))
    assert [(row.line, row.id, row.problems) for row in rows] == [(2, "w1", ()), (3, "2", ())]


def test_what_is_no_workbook(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    with pytest.raises(InputError, match="is no workbook that can be read") as caught:
        read_workbook(b"PK\x03\x04 broken", "data.xlsx")
    assert [problem.where for problem in caught.value.problems] == ["data.xlsx"]
    write_workbook(tmp_path / "two.xlsx", {"a": [["cue", "cue"], ["sun", "moon"]]})
    with pytest.raises(InputError, match="the header cannot be used"):
        read_workbook((tmp_path / "two.xlsx").read_bytes(), "two.xlsx")


def test_without_the_package_a_sentence_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    path = tmp_path / "daten.xlsx"
    write_workbook(path, {"Tabelle1": TABLE})
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) != 0
    assert "pip install 'turinglike[excel]'. Or save the table as CSV" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
