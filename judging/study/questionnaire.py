"""What judges are asked about themselves. The values of the first fields are those of the papers' forms, with an age
above 50, which theirs lacked; nobody must answer any of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

OPTIONS: Mapping[str, Sequence[str]] = {
    "age": ("18-20", "21-25", "26-30", "31-35", "36-40", "41-45", "46-50", ">50"),
    "gender": ("female", "male", "non_binary"),
    "education": ("middle school", "high school", "bachelor", "master", "pg"),
    "native_language": ("yes", "no"),
    "ai_experience": ("none", "user", "expert"),
    "engaging": tuple(map(str, range(11))),
    "difficult": tuple(map(str, range(11))),
}
"""Of the 2022 and 2025 papers' pages; ``country`` and ``comments`` are free text."""
LONGEST = {"country": 60, "comments": 4000}
NOBODY = re.compile(r".*[{}\[\]<>$].*|%.*%|undefined|null|none|nan|n/?a|", re.IGNORECASE | re.DOTALL)


def panel_id(given: str | None, parameter: str) -> str:
    """The id that a panel put into the address's ``parameter``; "" where there is none, or it was not filled in:
    "{{%PROLIFIC_PID%}}", "${e://Field/PROLIFIC_PID}", "[worker_id]", "undefined", the parameter's own name."""
    worker = (given or "").strip()[:200]
    is_nobody = not parameter or NOBODY.fullmatch(worker) or _letters(worker) == _letters(parameter)
    return "" if is_nobody else worker


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def read_questions(fields: Sequence[str], said: Any) -> dict[str, str]:
    """What was said of ``fields``, without what was left out. Raises ValueError for anything else."""
    if not isinstance(said, dict) or not said.keys() <= set(fields):
        raise ValueError("answers to other questions")
    found = {}
    for name, value in said.items():
        if value in (None, ""):
            continue
        options = OPTIONS.get(name)
        if not isinstance(value, str) or (options is not None and value not in options):
            raise ValueError(f"{name}: no such answer")
        if len(value) > LONGEST.get(name, 100):
            raise ValueError(f"{name}: too long")
        found[name] = value.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be written
    return found
