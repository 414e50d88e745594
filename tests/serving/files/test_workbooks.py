"""Workbooks come in as the same table in CSV would. The workbooks are written here, part by part, after ECMA-376."""

import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from agents.errors import InputError
from serving.cli import main
from serving.files.workbooks import read_workbook
from serving.sets.stimulus_set import read_rows
from tests.helpers.run_folders import read_back

Cell = str | float | bool | None
NAMESPACE = "http://schemas.openxmlformats.org"
TABLE: list[list[Cell]] = [
    ["vp", "cue", "response", "rt", "right"],
    [7, "sun", "moon; star", 734.5, True],
    [],
    [8.0, "Bär", "<Größe>", 1250, False],
    [9, "sea", None, None, None],
]


def cell(place: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def write_workbook(path: Path, sheets: dict[str, list[list[Cell]]], hidden: str = "") -> None:
    """Write an .xlsx with the sheets, of which one may be hidden."""
    parts = {"[Content_Types].xml": "", "_rels/.rels": "", "xl/workbook.xml": "", "xl/_rels/workbook.xml.rels": ""}
    types = ""
    listed = ""
    links = ""
    for number, (name, rows) in enumerate(sheets.items(), start=1):
        lines = ""
        for line, row in enumerate(rows, start=1):
            cells = "".join(cell(f"{chr(65 + at)}{line}", value) for at, value in enumerate(row))
            lines += f'<row r="{line}">{cells}</row>'
        sheet = f'<worksheet xmlns="{NAMESPACE}/spreadsheetml/2006/main"><sheetData>{lines}</sheetData></worksheet>'
        parts[f"xl/worksheets/sheet{number}.xml"] = sheet
        state = ' state="hidden"' if name == hidden else ""
        listed += f'<sheet name="{name}" sheetId="{number}"{state} r:id="r{number}"/>'
        kind = f"{NAMESPACE}/officeDocument/2006/relationships/worksheet"
        links += f'<Relationship Id="r{number}" Type="{kind}" Target="worksheets/sheet{number}.xml"/>'
        what = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
        types += f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{what}"/>'
    book = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    types += f'<Override PartName="/xl/workbook.xml" ContentType="{book}"/>'
    relation = "application/vnd.openxmlformats-package.relationships+xml"
    types += f'<Default Extension="rels" ContentType="{relation}"/>'
    parts["[Content_Types].xml"] = f'<Types xmlns="{NAMESPACE}/package/2006/content-types">{types}</Types>'
    relations = f'<Relationships xmlns="{NAMESPACE}/package/2006/relationships">'
    document = f"{NAMESPACE}/officeDocument/2006/relationships/officeDocument"
    parts["_rels/.rels"] = (
        f'{relations}<Relationship Id="r1" Type="{document}" Target="xl/workbook.xml"/></Relationships>'
    )
    parts["xl/_rels/workbook.xml.rels"] = f"{relations}{links}</Relationships>"
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{NAMESPACE}/spreadsheetml/2006/main" '
        f'xmlns:r="{NAMESPACE}/officeDocument/2006/relationships"><sheets>{listed}</sheets></workbook>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)


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
