"""What is read of a messenger's export, whichever it is."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from agents.errors import Problem

NOTICES = "media and notices"  # which the exports of some phones do not tell apart
EMPTY = "empty or deleted"
FORWARDED = "forwarded"
OF_BOTS = "written by a bot"
UNSEEN = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
SHOWN = 60  # letters of a message that a list has

_NO_UNSEEN = dict.fromkeys(map(ord, UNSEEN))


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message: by whom, when in the exporter's own time, its text, and who that is where the export has ids."""

    name: str
    at: datetime | None
    text: str
    id: str | None = None


@dataclass(slots=True)
class Chat:
    """The messages of one file, oldest first.

    ``dropped`` is what is no message of anybody's, as (kind, where), ``doubtful`` where messages stand that were kept
    and look as if they were none; ``problems`` are of what cannot be read.
    """

    messages: list[ChatMessage] = field(default_factory=list)
    dropped: list[tuple[str, Problem]] = field(default_factory=list)
    doubtful: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def drop(self, kind: str, path: str, line: int | None, text: str, place: str | None = None) -> None:
        """Leave out the message at ``line`` or ``place``."""
        self.dropped.append((kind, Problem(path, line, place, f"{kind}: {shortened(text)}")))

    def counts(self) -> Counter[str]:
        """How much was dropped, by kind."""
        return Counter(kind for kind, _ in self.dropped)


def shortened(text: str) -> str:
    """The beginning of a message, on one line."""
    line = " ".join(text.translate(_NO_UNSEEN).split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def same_name(name: str) -> str:
    """A name as names are compared: composed (NFC), with plain spaces, without marks that nobody sees."""
    return " ".join(unicodedata.normalize("NFC", name).translate(_NO_UNSEEN).split())
