"""Files that are imported again: read with other options, corrected in part, moved, or of a machine."""

from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.imported_tables import imported
from tests.helpers.run_folders import read_back

HEAD = "subject,cue,response\n"


def rows(person: str, cues: range, word: str = "a") -> str:
    return "".join(f"{person},c{at},{word}\n" for at in cues)


def test_answers_that_another_option_takes_out_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "subject,cue,word1,word2\n1,sun,hot,bright\n1,sea,blue,blue\n"
    imported(tmp_path, "two.csv", table, "--task", "word", "--columns", "response=word1")
    assert "takes out" not in capsys.readouterr().out
    found = imported(tmp_path, "two.csv", table, "--task", "word", "--columns", "response=word2")
    assert [row["answer"]["word"] for row in found] == ["bright", "blue"]
    told = "takes out 1 answer of an earlier import of this file, which had other options"
    assert told in capsys.readouterr().out
    imported(tmp_path, "two.csv", table, "--task", "word", "--columns", "response=word2", "--rt", "ms")
    assert "takes out" not in capsys.readouterr().out


def test_replacing_takes_out_only_what_the_file_succeeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that shares one answer of fifty stays, and a table with one row is no correction of a whole one."""
    imported(tmp_path, "day1.csv", HEAD + rows("a", range(10)), "--task", "word")
    second = HEAD + rows("a", range(1)) + rows("b", range(50))
    imported(tmp_path, "day2.csv", second, "--task", "word", "--add")
    fixed = HEAD + rows("a", range(8), "b")
    found = imported(tmp_path, "day1fixed.csv", fixed, "--task", "word", "--replace")
    assert len(found) == 51 + 8
    printed = capsys.readouterr().out
    assert f"replaces {tmp_path / 'day1.csv'} (10 answers; 2 answers of it have none here)" in printed
    assert "day2.csv (" not in printed

    row = tmp_path / "row.csv"
    row.write_text(HEAD + rows("b", range(1), "fixed"))
    assert main(["import", str(row), "--task", "word", "--replace", "--out", str(tmp_path / "run")]) == 2
    refused = capsys.readouterr().err
    assert "--replace: this file is no whole successor" in refused
    assert "day2.csv has 51 answers, of which 1 are here, too" in refused
    assert len(read_back(tmp_path / "run", "humans")) == 59


def test_a_folder_that_was_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A project on another disk: the file is the same one, with a row more, at another place."""
    before = tmp_path / "before"
    before.mkdir()
    imported(before, "people.csv", HEAD + rows("a", range(4)), "--task", "word")
    after = before.rename(tmp_path / "after")
    found = imported(after, "people.csv", HEAD + rows("a", range(5)), "--task", "word")
    assert len(found) == 5
    assert f"replaces {before / 'people.csv'}, which is no longer there (4 answers)" in capsys.readouterr().out
    last = after.rename(tmp_path / "last")
    assert main(["import", "--undo", str(last / "people.csv"), "--out", str(last / "run")]) == 0
    assert read_back(last / "run", "humans") == []

    # A file of the same name at another place is another one while the first is there.
    imported(last, "people.csv", HEAD + rows("a", range(4)), "--task", "word")
    other = tmp_path / "other"
    other.mkdir()
    (other / "people.csv").write_text(HEAD + rows("a", range(4), "b"))
    assert main(["import", str(other / "people.csv"), "--task", "word", "--out", str(last / "run")]) == 2
    assert f"were answered in {last / 'people.csv'}, too" in capsys.readouterr().err


def test_a_corrected_table_of_a_machine_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path, word in zip(paths, "ab", strict=True):
        path.write_text("cue,response\n" + "".join(f"c{at},{word}\n" for at in range(4)))
    call = ["--task", "word", "--name", "gpt", "--out", out]
    assert main(["import", str(paths[0]), *call]) == 0
    assert main(["import", str(paths[1]), *call]) == 2
    assert "4 answers of 1 machine to stimuli that were answered in one.csv, too" in capsys.readouterr().err
    assert main(["import", str(paths[1]), *call, "--replace"]) == 0
    assert [row["answer"]["word"] for row in read_back(tmp_path / "run", "published")] == ["b"] * 4


def test_undo_tells_which_file_was_imported_without_the_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, "one.csv", HEAD + rows("a", range(3)), "--task", "word")
    imported(tmp_path, "two.csv", HEAD + rows("a", range(4)), "--task", "word", "--drop-equal")
    capsys.readouterr()
    assert main(["import", "--undo", str(tmp_path / "one.csv"), "--out", str(tmp_path / "run")]) == 0
    told = f"{tmp_path / 'two.csv'} was imported without the answers that are equal to answers in this file"
    assert told in capsys.readouterr().out
    assert main(["import", str(tmp_path / "two.csv"), "--task", "word", "--out", str(tmp_path / "run")]) == 0
    assert len(read_back(tmp_path / "run", "humans")) == 4
