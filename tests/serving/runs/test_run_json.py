"""Run folders from anywhere: what is in one is looked at before it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_folders import agent_entry, write_run

from serving.cli import main


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\nb: 3 records", "A", "a~b~c", "../a", ""])
def test_agents_have_names_that_agents_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    known = write_run(tmp_path / "known", [], {}, {name: agent_entry()})
    assert main(["status", str(known)]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert all(line.startswith("turinglike: ") or str(tmp_path) in line for line in said.splitlines())
