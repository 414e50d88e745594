"""Whether a run's records are still those that it wrote: a checksum of each record file in ``run.json``.

It covers what the file held when a call of ``generate`` last ended in order; what was appended since is not covered.
It tells edits and damage. It is no seal: who can write the records can write ``run.json`` too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PIECE = 1 << 20


def checksum(path: Path) -> dict[str, Any]:
    """What ``run.json`` keeps of a record file: its ``bytes`` and their ``sha256``."""
    size = path.stat().st_size
    return {"bytes": size, "sha256": _sha256(path, size)}


def is_changed(path: Path, kept: Mapping[str, Any] | None) -> bool:
    """Whether the file, if there is one, no longer begins with what ``kept`` stands for."""
    return kept is not None and path.exists() and _sha256(path, kept["bytes"]) != kept["sha256"]


def _sha256(path: Path, size: int) -> str | None:
    """Of the first ``size`` bytes; None if there are fewer."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while size and (piece := file.read(min(size, PIECE))):
            found.update(piece)
            size -= len(piece)
    return None if size else found.hexdigest()
