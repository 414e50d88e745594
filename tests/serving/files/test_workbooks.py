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


PEOPLE: list[list[Cell]] = [["Participant", "Image", "Réponse"], ["P1", "a.png", "rouge"], ["P2", "a.png", "noir"]]
READ_ME: list[list[Cell]] = [["Données de l'expérience"], ["Contact : labo"]]


@pytest.mark.parametrize("options", [["--columns", "response=Réponse"], ["--columns", "response=Response"], []])
def test_the_sheet_whose_columns_fit_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """A page of remarks stands before the table. A name that is in no sheet is looked for where people are."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "couleurs.xlsx"
    write_workbook(path, {"Lisez-moi": READ_ME, "Données": PEOPLE})
    code = main(["import", str(path), "--task", "color", "--out", str(tmp_path / "run"), *options])
    said = capsys.readouterr()
    if options[-1:] == ["response=Réponse"]:
        assert code == 0
        assert [row["answer"]["color"] for row in read_back(tmp_path / "run", "humans")] == ["rouge", "noir"]
        assert "read from the sheet 'Données'" in said.out
        assert "1 other sheet of the workbook not read: Lisez-moi" in said.out
    else:
        assert code == 2
        assert "the columns are Participant, Image, Réponse" in said.err.replace("its", "the")
        assert "The sheet 'Données' was read; --sheet NAME chooses another: Lisez-moi" in said.err


def test_several_sheets_that_fit_are_named_and_one_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "couleurs.xlsx"
    other: list[list[Cell]] = [PEOPLE[0], ["P3", "a.png", "vert"]]
    write_workbook(path, {"Lisez-moi": READ_ME, "été": PEOPLE, "hiver": other})
    out = tmp_path / "run"
    command = ["import", str(path), "--task", "color", "--columns", "response=Réponse", "--out", str(out)]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "a workbook with 2 sheets that may be the table: été, hiver. Say which with --sheet 'été'" in said
    assert main([*command, "--sheet", "printemps"]) == 2
    said = capsys.readouterr().err
    assert "--sheet printemps: there is no such sheet with a filled cell; there are Lisez-moi, été, hiver" in said
    assert main([*command, "--sheet", "hiver"]) == 0
    assert [row["agent"] for row in read_back(out, "humans")] == ["human:P3"]
    assert main([*command, "--sheet", "e\u0301te\u0301"]) == 0  # as a Mac writes it
    assert [row["agent"] for row in read_back(out, "humans")] == ["human:P1", "human:P2"]
    form = tmp_path / "labo.toml"
    form.write_text('name = "Labo"\ntask = "color"\nsheet = "hiver"\n[columns]\nresponse = "Réponse"\n', "utf-8")
    assert main(["import", str(path), "--form", str(form), "--out", str(tmp_path / "by_form")]) == 0
    assert [row["agent"] for row in read_back(tmp_path / "by_form", "humans")] == ["human:P3"]
    table = tmp_path / "a.csv"
    table.write_text("subject,image,response\n1,a.png,red\n")
    capsys.readouterr()
    assert main(["import", str(table), "--task", "color", "--sheet", "x", "--out", str(tmp_path / "csv")]) == 0
    assert "--sheet is not used: these files are no workbooks" in capsys.readouterr().out


def test_the_sheet_of_a_set_is_the_one_with_a_sets_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "set.xlsx"
    sheets: dict[str, list[list[Cell]]] = {"Lisez-moi": READ_ME, "mots": [["cue"], ["sun"]]}
    write_workbook(path, sheets)
    assert [row.id for row in read_rows(path, "word_association")] == ["sun"]
    assert "the sheet 'mots' is read; not read: Lisez-moi" in capsys.readouterr().err
    write_workbook(path, {**sheets, "mots 2": [["cue"], ["sea"]]})
    with pytest.raises(InputError, match=r"several sheets that may be the set \(mots, mots 2\)"):
        list(read_rows(path, "word_association"))


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
