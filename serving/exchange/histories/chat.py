"""A messenger's export, as messages."""

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from agents.errors import Problem

# Kinds of entries that are left out. The exports of some phones do not tell media from notices.
NOTICES = "media and notices"
EMPTY = "empty or deleted"
FORWARDED = "forwarded"
OF_BOTS = "written by a bot"
UNSEEN = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"

_NO_UNSEEN = dict.fromkeys(map(ord, UNSEEN))


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message that a person wrote; the messenger's own notices are none."""

    name: str
    """Who wrote it, by the name in the export; "" if the account is gone."""
    at: datetime | None
    """When, in the time zone of whoever exported it; None if the export does not say."""
    text: str
    """What was written."""
    account: str | None = None
    """The messenger's own id of who wrote it, which tells two people of one name apart; None if there is none."""

    @property
    def author(self) -> str:
        """Who wrote it: the account, or the name of somebody without one."""
        return self.account or self.name


@dataclass(slots=True)
class Chat:
    """What an export holds."""

    messages: list[ChatMessage] = field(default_factory=list)
    """The messages, oldest first."""
    dropped: Counter[str] = field(default_factory=Counter)
    """How many entries are left out, by their kind."""
    problems: list[Problem] = field(default_factory=list)
    """The entries that cannot be read."""


def same_name(name: str) -> str:
    """A name as it is compared: composed letters, single spaces, no unseen marks."""
    return " ".join(unicodedata.normalize("NFC", name).translate(_NO_UNSEEN).split())
