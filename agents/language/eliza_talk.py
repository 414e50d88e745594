"""What ELIZA says next: two ways to hold a conversation with the keywords of :mod:`agents.language.eliza_engine`.

"doctor" only ever speaks of what the partner said, as the program of 1966 did. "chat" has something to say itself: for
each topic a few subjects (:mod:`agents.language.eliza_subjects`), whose lines are said when they come up; keywords
interrupt where they weigh more. Nothing is remembered between two
calls: which rule's turn it is, what the partner once said with "my" and how far a subject has come are read from the
history.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from agents.language.eliza_engine import Clause, Engine, Keyword, Reassembly, words
from agents.language.eliza_past import REPEATED, Past, plain, sentences
from agents.language.eliza_subjects import Subject, Table, in_hand, spoken

MEMORY_TURN = 4  # the doctor looks into its memory in every fourth reply
INTERRUPTS = 5  # a keyword of this rank stops a subject for one exchange
USED = 2  # what one use of a keyword's rules takes off its rank
ASKED = 3  # what a question mark adds


@dataclass(frozen=True, slots=True)
class Scene:
    """Who speaks with whom, and about what. ``side`` is "A" or "B"; ``partner`` and ``topic`` may be unknown."""

    side: str
    partner: str | None = None
    topic: str | None = None


class Talk(ABC):
    """A way to talk, ready to be used. ``script`` is its part of the script file, ``shared`` the whole file."""

    def __init__(self, script: Mapping[str, Any], shared: Mapping[str, Any], max_words: int) -> None:
        self.engine = Engine(script, shared)
        self._script = script
        self._max_words = max_words
        memory = script["memory"]
        self._memory_keyword = self.engine.keywords[memory["word"]]
        self._memory_rules = [self.engine.rule(pattern, replies) for pattern, replies in memory["rules"]]

    def say(self, past: Past, scene: Scene, seed: int) -> str:
        """The next message of the speaker whose past it is: the first candidate that is short enough and repeats
        nothing."""
        for text in self._candidates(past, scene, seed):
            said = self._cut(_capital(text))
            if said is not None and past.is_fresh(said):
                return said
        number = len(past.messages) + 1
        while not past.is_fresh(text := self._script["count"][0].format(n=number)):
            number += 1
        return text

    @abstractmethod
    def _candidates(self, past: Past, scene: Scene, seed: int) -> Iterator[str]:
        """What may be said next, the best first; any number of texts, which may be too long or said before."""

    def _cut(self, text: str) -> str | None:
        """As many whole sentences as there is room for, or None if not even one that says something fits."""
        said = ""
        for sentence in sentences(text):
            if len(words(said + sentence)) > self._max_words:
                break
            said += sentence
        return said.strip() if said == text or len(words(said)) >= REPEATED else None

    def _openings(self, scene: Scene, seed: int) -> list[str]:
        topic = spoken(scene.topic)
        texts = [text for text in self._script["openings"] if ("{topic}" in text) == (topic is not None)]
        return [self._named(text, scene) for text in _shuffled(texts, seed)]

    def _named(self, text: str, scene: Scene) -> str:
        partner = spoken(scene.partner)
        return text.format(topic=spoken(scene.topic), partner="" if partner is None else f" {partner}")

    def _remembered(self, past: Past) -> Iterator[str]:
        """What the partner said with "my" before its last message, oldest first; a hash of a statement's words draws
        the one reply to it, as in 1966, so that it is recalled once."""
        for message in past.others[:-1]:
            for clause in self.engine.clauses(message.text):
                found = self.engine.found(clause)
                if clause.asked or not found or found[0] is not self._memory_keyword:
                    continue
                for rule in self._memory_rules:
                    parts = rule.pattern.match(clause.turned)
                    text = None if parts is None else rule.replies[_hash(clause.heard) % len(rule.replies)].fill(parts)
                    if text is not None:
                        yield text
                        break

    def _last_resort(self, past: Past, seed: int) -> Iterator[str]:
        """Replies that fit anything: the listed ones in turn, then one half of each of two lists."""
        yield from sorted(self._script["none"], key=lambda text: past.mine.count(plain(text)))
        pairs = list(product(self._script["begin"], self._script["end"]))
        for begin, end in _shuffled(pairs, seed):
            yield self._script["joined"].format(begin=begin, end=end)


class Doctor(Talk):
    """In the manner of 1966: rules in strict rotation, the first clause with a keyword, a memory that is looked into in
    every fourth reply."""

    def _candidates(self, past: Past, scene: Scene, seed: int) -> Iterator[str]:
        if not past.messages:
            yield from self._openings(scene, seed)
        clause, stack = self._heard(past)
        if clause is not None:
            for keyword in stack:
                yield from self.engine.replies(clause, keyword, lambda replies: self._rotated(replies, past))
        if stack or len(past.own) % MEMORY_TURN == MEMORY_TURN - 1:
            yield from self._remembered(past)
        yield from self._last_resort(past, seed)

    def _heard(self, past: Past) -> tuple[Clause | None, list[Keyword]]:
        """The first clause of the partner's last message that has a keyword, and its keywords."""
        for clause in self.engine.clauses(past.others[-1].text) if past.others else []:
            if stack := self.engine.found(clause):
                return clause, stack
        return None, []

    def _rotated(self, replies: Sequence[Reassembly], past: Past) -> list[Reassembly]:
        """Least used first, else as listed; a link was used as often as its target, "newkey" comes where it stands."""

        def uses(reply: Reassembly) -> int:
            traces = self.engine.keywords[reply.goto].traces if reply.goto is not None else (reply.trace,)
            return sum(past.mine.count(trace) for trace in traces if trace)

        return list(replies) if any(reply.newkey for reply in replies) else sorted(replies, key=uses)


class Chat(Talk):
    """With lines of its own by topic; ``topics`` is the table of them."""

    def __init__(
        self, script: Mapping[str, Any], shared: Mapping[str, Any], max_words: int, topics: Mapping[str, Any]
    ) -> None:
        super().__init__(script, shared, max_words)
        self._table = Table(topics)

    def _candidates(self, past: Past, scene: Scene, seed: int) -> Iterator[str]:
        chosen, others = self._table.subjects(scene.topic)
        traces = [line.trace for subject in [*chosen, *others] for line in subject.lines]
        if not past.messages:
            lines = list(self._new(past, chosen, others, seed))
            begun = [f"{opening} {line}" for opening in self._openings(scene, seed) for line in lines]
            yield from sorted(begun, key=lambda text: len(words(text)) > self._max_words)  # whole ones first
        last = past.others[-1] if past.others else None
        clauses = [] if last is None else self.engine.clauses(last.text)
        asked = any(clause.asked and (clause is clauses[-1] or len(clause.heard) >= REPEATED) for clause in clauses)
        scripted = last is not None and _holds(last.plain, traces)
        greeting = "" if past.own else f"{self._named(self._least(past, 'greetings', scene, seed), scene)} "

        by_keyword = self._by_keyword(past, clauses, seed, INTERRUPTS if scripted else None)
        on_subject = self._on_subject(past, scene, seed, chosen, others, continues=scripted or not past.own)
        recent = [_holds(message.plain, traces) for message in past.own[-3:]]
        if asked:
            keyword_first = not scripted
        elif scripted:
            keyword_first = len(recent) > 1 and all(recent[-2:])
        elif _holds(past.theirs, traces):  # the partner has the same lines, and waits for their end
            keyword_first = not recent or recent[-1]
        else:
            keyword_first = not recent or any(recent)
        ways = [by_keyword, on_subject] if keyword_first else [on_subject, by_keyword]
        if asked and not scripted:
            ways.insert(1, iter(_shuffled(self._script["questions"], seed)))
        elif keyword_first and not scripted:
            ways.insert(1, self._remembered(past))
            if _hash(seed) % 3 == 0:
                ways.insert(2, self._last_resort(past, seed))
        for way in ways:
            yield from (f"{greeting}{text}" for text in way)
        yield from self._last_resort(past, seed)

    def _by_keyword(self, past: Past, clauses: Sequence[Clause], seed: int, least: int | None) -> Iterator[str]:
        """What the keywords of all clauses say, the highest rank first; with ``least`` only questions, and those of at
        least this rank, which falls with each use of the keyword by either speaker. What is asked ranks higher."""

        def order(replies: Sequence[Reassembly]) -> list[Reassembly]:
            if any(reply.newkey for reply in replies):
                return list(replies)
            return sorted(
                replies, key=lambda one: (past.all.count(one.trace) if one.trace else 0, _hash(seed, one.text))
            )

        ranked: list[tuple[int, int, Keyword]] = []
        for number, clause in enumerate(clauses):
            for keyword in self.engine.found(clause):
                rank = keyword.rank
                if least is not None:
                    rank -= USED * sum(past.all.count(trace) for trace in keyword.traces)
                ranked.append((rank + ASKED * clause.asked, number, keyword))
        ranked.sort(key=lambda one: (-one[0], -one[1]))
        for rank, number, keyword in ranked:
            if least is None or rank >= least:
                for text in self.engine.replies(clauses[number], keyword, order):
                    if least is None or text.endswith("?"):
                        yield text

    def _on_subject(
        self, past: Past, scene: Scene, seed: int, chosen: list[Subject], others: list[Subject], *, continues: bool
    ) -> Iterator[str]:
        """The next line of the subject in hand, and then the first of another."""
        subject = in_hand(past, [*chosen, *others])
        if subject is not None and (line := subject.next(past)) is not None:
            lead = "" if continues else f"{self._least(past, 'returns', scene, seed)} "
            yield f"{lead}{line.text}"
        for text in self._new(past, chosen, others, seed):
            lead = self._least(past, "transitions", scene, seed) if past.own else ""
            yield _joined(lead, text)

    def _new(self, past: Past, chosen: list[Subject], others: list[Subject], seed: int) -> Iterator[str]:
        """First lines of subjects that nobody has begun: the topic's own, then those of a topic once touched, then
        all others."""
        for subject in _shuffled(chosen, seed, lambda one: one.lines[0].text):
            if not subject.begun(past.all):
                yield subject.lines[0].text
        begun = [subject.begun(past.all) for subject in others]
        touched = {subject.topic for subject, has in zip(others, begun, strict=True) if has}
        fresh = [subject for subject, has in zip(others, begun, strict=True) if not has]
        for near in (True, False):
            group = [subject for subject in fresh if (subject.topic in touched) == near]
            for subject in _shuffled(group, seed, lambda one: one.lines[0].text):
                yield subject.lines[0].text

    def _least(self, past: Past, name: str, scene: Scene, seed: int) -> str:
        """Of a list of this side's, an entry that was said least often."""
        texts: list[str] = self._script[name][scene.side]
        return min(texts, key=lambda text: (past.mine.count(plain(text.format(partner=""))), _hash(seed, text)))


def _holds(text: str, traces: Sequence[str]) -> bool:
    return any(trace in text for trace in traces)


def _joined(lead: str, text: str) -> str:
    """A line after a lead; after a comma or a colon it goes on in small letters."""
    keeps = not lead.endswith((",", ":")) or text.split()[0].split("'")[0] == "I"
    return f"{lead} {text if keeps else text[0].lower() + text[1:]}".strip()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _hash(*parts: object) -> int:
    return zlib.crc32(repr(parts).encode("utf-8", "backslashreplace"))


def _shuffled(items: Sequence[Any], seed: int, key: Any = repr) -> list[Any]:
    """The items in an order that the seed alone decides."""
    return sorted(items, key=lambda item: _hash(seed, key(item)))
