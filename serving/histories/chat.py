"""What is read of a messenger's export, whichever it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from agents.errors import Problem

NOTICES = "media and notices"  # which the exports of some phones do not tell apart


@dataclass(frozen=True, slots=True)
class Said:
    """One message: by whom, when in the exporter's own time, and its text."""

    name: str
    at: datetime | None
    text: str


@dataclass(slots=True)
class Chat:
    """The messages of one file, oldest first. ``dropped`` counts what is no message of anybody's, by kind, and
    ``problems`` are of what cannot be read."""

    messages: list[Said] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
