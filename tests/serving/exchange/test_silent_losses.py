"""Tables in which something would be lost or changed without a word."""

from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks

FORM = """\
name = "lab"
task = "word"
rows = ["{rows}"]

[columns]
subject = "vp"
stimulus = "reiz"
response = "antwort"
rt = "{rt}"
"""
TABLE = "vp,reiz,antwort,zeit,phase\n1,sun,hot,700,test\n2,sun,warm,800,test\n3,sun,cold,900,practice\n"


def form(folder: Path, *, rows: str = "phase!=practice", rt: str = "zeit") -> str:
    path = folder / "lab.toml"
    path.write_text(FORM.format(rows=rows, rt=rt))
    return str(path)


def test_a_form_that_names_a_column_which_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = imported(tmp_path, "a.csv", TABLE, "--form", form(tmp_path))
    assert [row["agent"] for row in found] == ["human:1", "human:2"]
    told = refusal(tmp_path, capsys, "a.csv", TABLE, "--form", form(tmp_path, rows="phse!=practice"))
    assert "has no column phse, which the rows of the form lab name" in told
    imported(tmp_path, "b.csv", TABLE.replace("sun", "sea"), "--form", form(tmp_path, rt="zeitt"))
    assert "no rt is read: the form names zeitt, and the table has none that is filled" in remarks(tmp_path)


@pytest.mark.parametrize("cell", ["4.917612345678901e+19", "1.234567890123457E+18", "4.91761E+11"])
def test_a_name_that_became_a_rounded_number_is_refused(
    cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refusal(tmp_path, capsys, "a.csv", f"vp,cue,response\n{cell},sun,hot\n", "--task", "word")
    assert "a spreadsheet has rounded it" in told


def test_rows_that_a_quotation_mark_swallows_are_told(tmp_path: Path) -> None:
    table = 'subject\tcue\tresponse\na\tsun\t"light\nb\tsun\tx\nc\tsea\tblue"\nd\tsea\twave\n'
    assert len(imported(tmp_path, "a.tsv", table, "--task", "word")) == 2
    assert "1 row with a cell of several lines and tabs, the first on line 2" in remarks(tmp_path)
    table = 'subject\tcue\tresponse\na\tmoon\t"light,\nlight"\n'
    imported(tmp_path, "b.tsv", table, "--task", "word")
    assert "of several lines" not in remarks(tmp_path)


def test_thousands_among_seconds_are_told(tmp_path: Path) -> None:
    table = "subject;cue;response;rt\na;sun;hot;1.234\na;sea;blue;2.500\na;sky;high;950\n"
    imported(tmp_path, "a.csv", table, "--task", "word")
    assert "column rt: 1 time of more than 5 minutes, the longest 950 s: look at its unit" in remarks(tmp_path)


def test_an_empty_table_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is empty: it has no row of names" in refusal(tmp_path, capsys, "a.csv", "", "--task", "word")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_our_own_table_is_known_after_a_spreadsheet_has_saved_it(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = imported(tmp_path, "a.csv", "subject,cue,response,rt\n1,sun,hot,700\n2,sun,warm,\n", "--task", "word")
    table = tmp_path / "table.csv"
    assert main(["export", str(tmp_path / "run"), "--format", "csv", "--out", str(table)]) == 0
    text = table.read_text("utf-8")
    assert '"' not in text.splitlines()[0]
    saved = tmp_path / "saved.csv"
    rows = [line.split(",") for line in text.splitlines()]
    saved.write_bytes("\r\n".join(";".join(cells) for cells in rows if len(cells) == len(rows[0])).encode(encoding))
    kept = [row for row in rows[1:] if len(row) == len(rows[0])]
    capsys.readouterr()
    assert main(["import", str(saved), "--task", "word", "--out", str(tmp_path / "again")]) == 0
    assert f"people: {len(kept)} answer" in capsys.readouterr().out
    assert len(before) == 2
