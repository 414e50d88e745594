"""Our agents, which are the tables of ``built_in.toml``."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.contract import Entry

PROPRIETARY = "proprietary"
APART = ("family", "like", "settings", "tasks", "agent", "without")  # fields that are no Entry's as they are


def _read(path: Path) -> tuple[Entry, ...]:
    content = tomllib.loads(path.read_text("utf-8"))
    shared = content.pop("shared")
    families = content.pop("families")

    def settings(table: Mapping[str, Any]) -> dict[str, Any]:
        like = shared[table["like"]] if "like" in table else {}
        return {**like, **table.get("settings", {}), **dict.fromkeys(table.get("without", ()))}

    def entry(name: str, table: Mapping[str, Any]) -> Entry:
        family = families[table["family"]]
        fields = {field: value for field, value in {"ran": False, **family, **table}.items() if field not in APART}
        values = {**settings(family), **settings(table)}
        return Entry(name, f"agents.{family['agent']}", tuple(family["tasks"]), settings=values, **fields)

    return tuple(entry(name, table) for name, table in content.items())


BUILT_IN: tuple[Entry, ...] = _read(Path(__file__).with_suffix(".toml"))
