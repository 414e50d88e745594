"""Tables in the encodings, with the separators and the numbers of other programs come in as they would in plain CSV."""

import json
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, remarks, words
from tests.helpers.run_folders import read_back

GERMAN = "vp;reiz;antwort;rt\nJörg;Bär;Größe;0,734\nJörg;Nuß;Käse;1,25\n"
COLUMNS = ("--task", "word", "--columns", "stimulus=reiz,response=antwort")
RIGHT = [("human:Jörg", "Bär", "Größe"), ("human:Jörg", "Nuß", "Käse")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_a_german_table(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "daten.csv"
    path.write_bytes(GERMAN.encode(encoding))
    assert main(["import", str(path), *COLUMNS, "--out", str(tmp_path / "run")]) == 0
    rows = read_back(tmp_path / "run", "humans")
    assert words(rows) == RIGHT
    assert [row["raw"]["rt"] for row in rows] == [734, 1250]
    told = remarks(tmp_path)
    assert "numbers have decimal commas, in rt" in told
    assert ("was read as Windows-1252: line 2 has 'Jörg'" in told) == (encoding == "cp1252")


def test_a_damaged_file_is_not_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with letters in UTF-8 and one broken byte is no file of Windows."""
    path = tmp_path / "daten.csv"
    path.write_bytes("vp,cue,response\nJörg,Bär,Gr\n".encode().replace(b"Gr", b"Gr\xf6"))
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "run")]) == 2
    assert "daten.csv:2: response: is not UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_thousands_are_no_decimals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1,234 is a second and more where a comma is decimal, and a thousand in English: only semicolons say which."""
    rows = imported(tmp_path, "a.csv", "vp;cue;response;rt\n1;sun;moon;1,234\n", "--task", "word")
    assert rows[0]["raw"]["rt"] == 1234
    path = tmp_path / "b.tsv"
    path.write_text("vp\tcue\tresponse\trt\n1\tsun\tmoon\t1,234\n")
    assert main(["import", str(path), "--task", "word", "--out", str(tmp_path / "other")]) == 2
    assert "b.tsv:2: rt: must be a number that is not below 0, not '1,234'" in capsys.readouterr().err


FRENCH = "vp;cue;response;rt\n1;sun;moon;1,091\n1;sea;blue;2,497\n1;tea;;{left_out}\n1;sky;{last}\n"


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1 250,500", 1250.5),
        ("1\u00a0250,500", 1250.5),
        ("1\u202f250,5", 1250.5),
        ("12\u2009250", 12250),
        ("1'250,5", 1250.5),
        ("1\u2019250\u2019100", 1250100),
        ("1.250,5", 1250.5),
    ],
)
def test_marks_between_thousands(tmp_path: Path, written: str, seconds: float) -> None:
    """In a row with an answer the number is read, and in one without it does no harm to the others."""
    rows = imported(tmp_path, "a.csv", FRENCH.format(left_out=written, last="hot;0,9"), "--task", "word")
    assert [row["raw"]["rt"] for row in rows] == [1091, 2497, 900]
    rows = imported(tmp_path, "a.csv", FRENCH.format(left_out="", last=f"hot;{written}"), "--task", "word")
    assert [row["raw"]["rt"] for row in rows] == [1091, 2497, 1000 * seconds]
    told = remarks(tmp_path)
    assert "numbers have decimal commas, in rt" in told
    plain = " ".join(written.split())
    assert f"column rt: 1 number (at 5) with marks between thousands: {plain!r} is read as {seconds}" in told


def test_milliseconds_of_a_french_excel(tmp_path: Path) -> None:
    """A space that breaks no line stands between thousands without any decimal, too."""
    table = "vp;cue;response;rt\n1;sun;moon;1\u00a0250\n1;sea;blue;930\n"
    assert [row["raw"]["rt"] for row in imported(tmp_path, "a.csv", table, "--task", "word")] == [1250, 930]


@pytest.mark.parametrize("wrong", ["d\u00e9lai", "1?250,5", "12,34,5", "1 25,5"])
def test_a_cell_that_is_no_number_is_named_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    rows = imported(tmp_path, "a.csv", FRENCH.format(left_out=wrong, last="hot;0,9"), "--task", "word")
    assert [row["raw"]["rt"] for row in rows] == [1091, 2497, 900]
    said = refusal(tmp_path, capsys, "a.csv", FRENCH.format(left_out="", last=f"hot;{wrong}"), "--task", "word")
    assert f"a.csv:5: rt: must be a number that is not below 0, not {wrong!r}" in said
    assert "1 problem" in said
    assert "a.csv:2" not in said


def test_decimal_commas_beside_a_decimal_point_are_refused_with_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(tmp_path, capsys, "a.csv", FRENCH.format(left_out="0,7", last="hot;1.250"), "--task", "word")
    assert "column rt has decimal commas in 3 rows, and decimal points in 1 row, at 5 ('1.250')" in said


def test_two_times_in_a_cell_are_no_thousands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "vp;cue;response;rt\n1;sun;moon;812 640\n1;sea;blue;930\n"
    said = refusal(tmp_path, capsys, "a.csv", table, "--task", "word")
    assert "a.csv:2: rt: must be a number that is not below 0, not '812 640'" in said


def test_fixations_with_decimal_commas(tmp_path: Path) -> None:
    table = "vp\timage\tx\ty\tduration\n1\ta.png\t300,5\t200\t210\n1\ta.png\t140,0\t150\t180\n"
    options = ("--task", "attention", "--frame", "600x400")
    [row] = imported(tmp_path, "a.txt", table, *options)
    assert row["answer"]["fixations"] == [[300.5, 200], [140, 150]]


def test_names_with_commas_stay(tmp_path: Path) -> None:
    table = "vp;cue;response\nSmith, J.;3,5;two, three\n1;4,5;four\n"
    rows = imported(tmp_path, "a.csv", table, "--task", "word")
    assert rows[0]["agent"] == "human:Smith, J."
    assert [(row["stimulus"], row["answer"]["word"]) for row in rows] == [("3,5", "two, three"), ("4,5", "four")]


def test_json_in_a_text_file(tmp_path: Path) -> None:
    """JATOS saves the data of jsPsych as .txt."""
    row = {"trial_type": "survey-text", "trial_index": 0, "subject": "p1", "cue": "sun", "response": {"Q0": "moon"}}
    rows = imported(tmp_path, "results.txt", json.dumps([row]), "--task", "word")
    assert words(rows) == [("human:p1", "sun", "moon")]
