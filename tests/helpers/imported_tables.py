"""Tables of other programs, written and imported in a test."""

import json
from pathlib import Path
from typing import Any

import pytest

from serving.cli import main
from tests.helpers.run_folders import read_back


def imported(folder: Path, name: str, text: str, *options: str) -> list[dict[str, Any]]:
    """The records of a file, which is written and imported."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    out = folder / "run"
    assert main(["import", str(path), "--out", str(out), *options]) == 0
    return read_back(out, "humans")


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, *options: str) -> str:
    """What is said of a file that is refused; nothing is written."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    assert main(["import", str(path), "--out", str(folder / "refused"), *options]) == 2
    assert not (folder / "refused").exists()
    return capsys.readouterr().err


def words(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["agent"], row["stimulus"], row["answer"]["word"]) for row in rows]


def remarks(folder: Path) -> str:
    """What ``import.json`` says of the last file."""
    source = json.loads((folder / "run" / "import.json").read_bytes())["sources"][-1]
    return "\n".join([*source["remarks"], *(f"{name}: {number}" for name, number in source["noticed"].items())])
