"""The judges of ``built_in.toml`` as attributes."""

import tomllib
from pathlib import Path
from typing import Any

from agents.contract import Entry

JUDGE_PRESETS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("built_in.toml").read_text("utf-8"))


def __getattr__(name: str) -> Entry:
    if name not in JUDGE_PRESETS:
        raise AttributeError(f"built_in.toml has no {name}")
    return Entry(tasks=("judgement",), **JUDGE_PRESETS[name])
