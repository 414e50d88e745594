"""docs/fidelity.md and the catalogue say the same of every agent."""

from __future__ import annotations

import re
from pathlib import Path

from agents import built_in

ROW = re.compile(r"^\| `(?P<name>[\w.-]+)` \| (?P<in_paper>\w+) \| (?P<ran>yes|never) \|", re.MULTILINE)


def test_every_agent_has_its_row() -> None:
    page = (Path(__file__).parents[2] / "docs/fidelity.md").read_text()
    told = [(row["name"], row["in_paper"], row["ran"]) for row in ROW.finditer(page)]
    known = [(e.name, e.in_paper, "yes" if e.ran else "never") for e in built_in.BUILT_IN if not e.hidden]
    assert told == known
