"""The example set: complete, attributed, small, and broken in exactly one place; and the demo that runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import demo
import pytest
from run_folders import agent_entry, failed, record, write_run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
ALL = [json.loads(line) for line in (EXAMPLES / "demo.jsonl").read_text(encoding="utf-8").splitlines()]
ROWS = [row for row in ALL if "image" in row]


def test_every_picture_has_its_author_and_licence_and_all_are_small() -> None:
    text = (EXAMPLES / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for path in (EXAMPLES / "images").iterdir():
        assert f"`images/{path.name}`" in text
    for row in ROWS:
        line = next(line for line in text.splitlines() if f"`{row['image']}`" in line)
        assert row["meta"]["author"] in line
        assert row["meta"]["licence"].replace("-", " ").lower() in line.replace("-", " ").lower()
    assert sum(path.stat().st_size for path in EXAMPLES.rglob("*") if path.is_file()) < 3_000_000


@pytest.fixture
def demo_run(tmp_path: Path) -> Path:
    """A run of the demo as it should come out."""
    agents: dict[str, dict[str, Any]] = {}
    records: dict[str, list[dict[str, Any]]] = {}
    for name, task in (
        ("mmcq", "color"), ("mmcq-lab", "color"), ("gbvs", "attention"), ("minilm", "word"), ("eliza~eliza", "talk")
    ):  # fmt: skip
        rows = [row for row in ALL if row["id"].startswith(task)]
        agents[name] = agent_entry(rows[0]["task"])
        records[name] = [
            failed(row["id"], task=row["task"], agent=name)
            if row["id"].endswith("broken")
            else record(row["id"], row["task"], name)
            for row in rows
        ]
    return write_run(tmp_path, ALL, records, agents, set={"root": str(EXAMPLES)})


def test_the_demo_expects_the_broken_picture_to_fail_and_nothing_else(demo_run: Path) -> None:
    assert demo.unexpected(demo_run, 1) == []
    assert len(demo.unexpected(demo_run, 0)) == 1
    path = demo_run / "records" / "gbvs.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[1:]))
    assert demo.unexpected(demo_run, 1) == ["gbvs: attention/astronaut has no record"]
    fails = lines[-1].replace("attention/broken", "attention/astronaut")
    path.write_text("".join([fails, *lines[1:]]))
    assert demo.unexpected(demo_run, 1) == ["gbvs: attention/astronaut failed: bad_image"]
