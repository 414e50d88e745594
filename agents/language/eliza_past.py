"""What has been said so far, as one of the two speakers sees it, and whether a reply would repeat any of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agents.language.eliza_engine import words
from agents.stimuli import ConversationStimulus

SIDES = ("A", "B")
REPEATED = 4  # shorter sentences may be said again, as people do ("Fair enough.")
_SENTENCE = re.compile(r"[^.!?…\n。！？]*[.!?…\n。！？]*")


def sentences(text: str) -> list[str]:
    """The sentences of a text with their stops; together they are the text."""
    return [match for match in _SENTENCE.findall(text) if match]


@lru_cache(maxsize=4096)  # the same texts are compared in every turn: the script's, and a conversation's own
def plain(text: str) -> str:
    """A text as its words between single spaces, one space around: what is compared, and searched for."""
    return f" {' '.join(words(text))} "


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``text`` as said, ``plain`` its words."""

    mine: bool
    text: str
    plain: str


class Past:
    """A history: ``messages`` in order, ``mine``, ``theirs`` and ``all`` their plain texts, to be searched."""

    def __init__(self, said: Sequence[tuple[bool, str]]) -> None:
        self.messages = [Message(mine, text, plain(text)) for mine, text in said]
        self.own = [message for message in self.messages if message.mine]
        self.others = [message for message in self.messages if not message.mine]
        self.mine = "\n".join(message.plain for message in self.own)
        self.theirs = "\n".join(message.plain for message in self.others)
        self.all = f"{self.mine}\n{self.theirs}"
        self._messages = {message.plain for message in self.messages}
        self._sentences = {_comparable(one) for message in self.messages for one in sentences(message.text)}
        self._sentences.discard(None)

    def is_fresh(self, text: str) -> bool:
        """Whether neither the message nor a sentence of at least :data:`REPEATED` words in it has been said, by
        anyone; case and punctuation make no difference."""
        return plain(text) not in self._messages and not any(
            _comparable(one) in self._sentences for one in sentences(text)
        )


def _comparable(sentence: str) -> str | None:
    said = plain(sentence)
    return said if said.count(" ") > REPEATED else None


def past(stimulus: ConversationStimulus, side: str) -> Past:
    """The conversation as speaker ``side`` ("A" or "B") sees it.

    An opener that the history does not hold yet comes first; it is the partner's, unless ``who_starts`` names this
    side. A speaker of the history is this side by its name, or by its letter where the names are others.
    """
    names = stimulus.names or SIDES
    own = {names[SIDES.index(side)], side} - {names[1 - SIDES.index(side)]}
    said = [(utterance.speaker in own, utterance.text) for utterance in stimulus.history]
    if stimulus.opener is not None and all(text != stimulus.opener for _, text in said):
        said.insert(0, (stimulus.who_starts == side, stimulus.opener))
    return Past(said)


def next_side(stimulus: ConversationStimulus) -> str:
    """Whose turn it is where nobody says so: that of the one who did not speak last, or of the one who starts."""
    names = stimulus.names or SIDES
    if not stimulus.history:
        return stimulus.who_starts or "A"
    last = stimulus.history[-1].speaker
    return "B" if last in (names[0], "A") and last != names[1] else "A"
