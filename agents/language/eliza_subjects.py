"""What ELIZA has to say itself: subjects of each topic, each a short exchange of lines by two speakers in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.language.eliza_engine import words
from agents.language.eliza_past import REPEATED, Past, plain, sentences

LOOK_BACK = 4  # messages after which a subject is forgotten
NAME_LENGTH = 30  # a longer name or topic is not said
NAME_WORDS = 5
ANY = "*"  # the topic of the subjects that fit any: "{topic}" stands in their lines


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a subject. ``trace``: its first sentences as plain text, as far as they tell it from others."""

    text: str
    trace: str


@dataclass(frozen=True, slots=True)
class Subject:
    """An exchange of lines by two speakers in turn. ``keys``: words that bring it up."""

    topic: str
    keys: frozenset[str]
    lines: tuple[Line, ...]

    def said(self, text: str) -> list[int]:
        """Which of its lines a plain text holds."""
        return [number for number, line in enumerate(self.lines) if line.trace in text]

    def begun(self, text: str) -> bool:
        """Whether a plain text holds any of its lines."""
        return any(line.trace in text for line in self.lines)

    def next(self, past: Past) -> Line | None:
        """The line that comes next for this speaker: every second one, from the first for who began."""
        mine, theirs = self.said(past.mine), self.said(past.theirs)
        begun = 1 - theirs[-1] % 2 if theirs else 0
        at = mine[-1] + 2 if mine else begun
        # Somebody who says the other lines is waited for; somebody who says what he likes is not.
        due = not theirs or at - 1 in theirs
        return self.lines[at] if due and at < len(self.lines) else None


class Table:
    """All subjects. ``topics``: for each topic ``words`` and ``subjects``, for each of these ``keys`` and ``lines``."""

    def __init__(self, topics: Mapping[str, Any]) -> None:
        self._words = {name: frozenset([*words(name), *entry["words"].split()]) for name, entry in topics.items()}
        self._any: list[dict[str, Any]] = topics[ANY]["subjects"]
        self._subjects = [
            _subject(name, subject, None)
            for name, entry in topics.items()
            if name != ANY
            for subject in entry["subjects"]
        ]

    def subjects(self, topic: str | None) -> tuple[list[Subject], list[Subject]]:
        """(those of the topic, all others). For a topic that the table does not know, the former are those that fit
        any, with its name put in."""
        wanted = set(words(topic or ""))
        known = {name for name, about in self._words.items() if wanted & about}
        if topic is not None and not known:
            return [_subject(ANY, subject, topic) for subject in self._any], self._subjects
        return (
            [subject for subject in self._subjects if subject.topic in known],
            [subject for subject in self._subjects if subject.topic not in known],
        )


def _subject(name: str, subject: Mapping[str, Any], topic: str | None) -> Subject:
    lines = [text.replace("{topic}", spoken(topic) or "all this") for text in subject["lines"]]
    return Subject(name, frozenset(subject["keys"].split()), tuple(map(_line, lines)))


def _line(text: str) -> Line:
    said = ""
    for sentence in sentences(text):
        said += sentence
        if len(words(said)) >= REPEATED:
            break
    return Line(text, plain(said))


def spoken(name: str | None) -> str | None:
    """A name or a topic as it can stand in a sentence, or None."""
    if name is None or not name.isprintable() or len(name) > NAME_LENGTH or len(name.split()) > NAME_WORDS:
        return None
    return name if words(name) else None


def in_hand(past: Past, known: Sequence[Subject]) -> Subject | None:
    """The subject of which a line was said last; but one whose keys the partner names just now goes first, unless the
    partner has said lines too and the exchange is not at its end."""
    latest = reversed(past.messages[-LOOK_BACK:])
    recent = next((one for message in latest for one in known if one.begun(message.plain)), None)
    heard = set(past.others[-1].plain.split()) if past.others else set()
    named = [one for one in known if one.keys & heard]
    if recent and (not named or (recent.begun(past.theirs) and recent.next(past))):
        return recent
    return max(named, key=lambda one: len(one.keys & heard), default=None)
