"""The example set: complete, attributed, small, and with its authors."""

import json
from pathlib import Path

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
