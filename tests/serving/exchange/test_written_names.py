"""Names and files as people write them: accents of both kinds, editors of Windows, folders and other programs' logs."""

import json
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported, refusal, words

COMPOSED = "R\u00e9ponse"
PARTED = "Re\u0301ponse"


@pytest.mark.parametrize("of_table", [COMPOSED, PARTED])
@pytest.mark.parametrize("given", [COMPOSED, PARTED])
def test_both_ways_to_type_an_accent_are_one_name(tmp_path: Path, of_table: str, given: str) -> None:
    """A Mac parts the accent from its letter; nobody sees which of the two a name is."""
    table = f"subject,cue,{of_table},phase\n1,sun,lune,\u00e9tude\n1,sea,eau,essai\n"
    phase = "e\u0301tude" if given == PARTED else "\u00e9tude"
    options = ("--task", "word", "--columns", f"response={given}", "--rows", f"phase={phase}")
    assert words(imported(tmp_path, "a.csv", table, *options)) == [("human:1", "sun", "lune")]
    form = tmp_path / "lab.toml"
    content = f'name = "Lab"\ntask = "word"\nrows = ["phase={phase}"]\n[columns]\nresponse = "{given}"\n'
    form.write_text(content, "utf-8")
    for folder in ("form", "json", "wide"):
        (tmp_path / folder).mkdir()
    right = [("human:1", "sun", "lune")]
    assert words(imported(tmp_path / "form", "a.csv", table, "--form", str(form))) == right
    rows = json.dumps([{"subject": "1", "cue": "sun", of_table: "lune"}])
    of_json = ("--task", "word", "--columns", f"response={given}")
    assert words(imported(tmp_path / "json", "a.json", rows, *of_json)) == right
    wide = f"subject,{of_table}_sun\n1,lune\n"
    assert words(imported(tmp_path / "wide", "a.csv", wide, "--task", "word", "--wide", f"{given}_*")) == right


def test_a_form_saved_by_a_windows_editor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "subject,cue,R\u00e9ponse\n1,sun,lune\n"
    text = 'name = "Lab"\r\ntask = "word"\r\n[columns]\r\nresponse = "R\u00e9ponse"\r\n'
    form = tmp_path / "lab.toml"
    form.write_bytes(text.encode("utf-8-sig"))
    assert words(imported(tmp_path, "a.csv", table, "--form", str(form))) == [("human:1", "sun", "lune")]
    form.write_bytes(text.encode("cp1252"))
    assert "line 4 is not UTF-8; save the file as UTF-8" in refusal(
        tmp_path, capsys, "a.csv", table, "--form", str(form)
    )
    form.write_bytes(text.encode("utf-16"))
    assert "is UTF-16; save it as UTF-8" in refusal(tmp_path, capsys, "a.csv", table, "--form", str(form))


def test_what_is_no_file_of_answers_is_told_by_its_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = refusal(tmp_path, capsys, "P01.log", "0.1234 \tEXP \tCreated trials\n", "--task", "word")
    assert ".log is no kind of file that import knows: tables are .csv, .tsv" in log
    (tmp_path / "mixed").mkdir()
    out = ["--task", "word", "--out", str(tmp_path / "run")]
    assert main(["import", str(tmp_path / "mixed"), *out]) == 2
    assert f"is a folder; give the files in it, such as {tmp_path / 'mixed'}/*.csv" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "mixed" / "*.csv"), *out]) == 2
    assert "leave the quotation marks out" in capsys.readouterr().err
