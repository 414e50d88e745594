"""Runs the agents. For programs: ``answer``, ``load`` (keeps agents loaded) and ``open_run`` (reads records)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serving.library.asking import answer, load
    from serving.library.typed_records import open_run

__all__ = ["answer", "load", "open_run"]

_HOME = {
    "answer": "serving.library.asking",
    "load": "serving.library.asking",
    "open_run": "serving.library.typed_records",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
