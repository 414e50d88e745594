"""Run folders from anywhere: what is in one is looked at before it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from run_folders import agent_entry, record, stimulus, write_run

from serving.cli import main
from serving.runs.run_json import FOLDERS, OWN

NAMES = [*OWN, "records/null.jsonl", "turns/null~null.jsonl"]


def call(command: str, run: Path, tmp_path: Path) -> int:
    source = tmp_path / "set.jsonl"
    source.write_text('{"id": "a", "task": "word_association", "cue": "tea"}\n')
    if command == "generate":
        return main(["generate", str(source), "--agents", "null", "--out", str(run)])
    (tmp_path / "words.json").write_text('{"a": "cup"}')
    return main(
        ["import", str(tmp_path / "words.json"), "--task", "word_association", "--name", "x", "--out", str(run)]
    )


@pytest.mark.parametrize("target", ["file", "hard", "folder", "nothing"])
@pytest.mark.parametrize(("command", "name"), [*(("generate", name) for name in NAMES), ("import", "records")])
def test_nothing_is_written_through_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str, target: str
) -> None:
    run = write_run(tmp_path / "run", [stimulus("a")], {})
    (run / "turns").mkdir()
    other = tmp_path / "other"
    if target in ("file", "hard"):
        other.write_text("precious")
    if target == "folder":
        other.mkdir()
        (other / ".run.12345678").write_text("precious")
    path = run / name
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    if target == "hard":
        path.hardlink_to(other)
    else:
        path.symlink_to(other)
    assert call(command, run, tmp_path) == 2
    assert f"{path}: must be a {'folder' if name in FOLDERS else 'file'}, is " in capsys.readouterr().err
    assert other.exists() == (target != "nothing")
    if target in ("file", "hard"):
        assert other.read_text() == "precious"
    if target == "folder":
        assert [one.read_text() for one in other.iterdir()] == ["precious"]


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "the other": lambda path: path.write_text("x") if path.name in FOLDERS else path.mkdir(),
    "loop": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("command", "name"), [*(("status", name) for name in NAMES), ("report", "records")])
def test_what_is_no_file_is_not_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str, make: Callable[[Path], None]
) -> None:
    run = write_run(tmp_path / "run", [stimulus("a")], {})
    (run / "turns").mkdir()
    path = run / name
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    make(path)
    assert main([command, str(run)]) == 2
    assert str(path) in capsys.readouterr().err


def test_readers_follow_links_to_files(tmp_path: Path) -> None:
    """As data sets under version control have them."""
    run = write_run(tmp_path / "run", [stimulus("a")], {"mmcq": [record("a")]})
    for name in ("run.json", "stimuli.jsonl", "records"):
        (run / name).rename(tmp_path / name)
        (run / name).symlink_to(tmp_path / name)
    assert main(["status", str(run)]) == 0


def test_run_json_is_limited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [stimulus("a")], {}, more="x" * (16 << 20))
    assert main(["status", str(run)]) == 2
    assert "run.json is larger than 16 MiB" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\nb: 3 records", "A", "a~b~c", "../a", ""])
def test_agents_have_names_that_agents_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    known = write_run(tmp_path / "known", [], {}, {name: agent_entry()})
    assert main(["status", str(known)]) == 2
    if "/" not in name:
        file = write_run(tmp_path / "file", [], {})
        (file / "records" / f"{name}.jsonl").write_text("")
        assert main(["status", str(file)]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert all(line.startswith("turinglike: ") or str(tmp_path) in line for line in said.splitlines())
