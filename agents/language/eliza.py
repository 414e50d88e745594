"""The agent ``eliza``: conversation by keywords, after J. Weizenbaum, "ELIZA", CACM 9(1), 1966.

It looks for the first clause with a keyword, and takes the clause's highest keyword. A keyword has rules. The first
rule whose decomposition fits takes the clause apart, and its reassemblies reply in turn.

- In a decomposition "0" stands for any number of words, another numeral for that many words, "(a|b)" for one of these
  words, and "/class" for a word of a class.
- In a reassembly "(3)" stands for what the third element matched. "=word" means another keyword's rules, "newkey" the
  next keyword of the clause.

The original counts how often a rule was used. This program keeps no counts, so that a message depends on the history
alone; instead it repeats no message, and no sentence of four words or more.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, product
from pathlib import Path
from typing import Any

from agents.answers import TurnAnswer
from agents.contract import MIB, Agent, Declaration, Draw, Reply, Settings
from agents.language.prompts import SPEAKER_LETTERS, speakers
from agents.stimuli import ConversationStimulus, Stimulus

SCRIPT = Path(__file__).parent / "eliza_script.json"
"""The script: keywords with ranks and rules, classes of words, substitutions, reflections, and what to say without a
keyword."""
READ = 2000
"""Characters of a message that are read."""
CLAUSE_WORDS = 60
"""Words of a clause that are read."""
QUOTED_WORDS = 10
"""A component with more words is not repeated to the speaker."""
LINKS = 4
"""How many times in a row "=word" is followed; a script that goes round in a circle ends so."""
MEMORY_TURN = 4
"""Where no keyword is found, every fourth reply comes from memory."""
REPEATED = 4
"""Sentences with fewer words may be repeated."""
TOPIC = 30
"""The longest topic, in characters, that an opening names."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_STOPS = re.compile(r"[.,;:!?…()\n—。、？！，]+|\bbut\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?…\n。！？]+")
_ELEMENT = re.compile(r"\([^)]*\)|\S+")
_SLOT = re.compile(r"\((\d)\)")

ScriptRule = tuple[re.Pattern[str], Sequence[str]]
"""A decomposition, and its reassemblies as the script has them."""


class Script:
    """A script whose decompositions are compiled; it keeps nothing of a conversation. ``script`` is the content of
    :data:`SCRIPT`."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._script = script
        self.keywords: dict[str, tuple[int, list[ScriptRule]]] = {}  # (rank, rules) by word
        for entry in script["keywords"]:
            keyword = (entry["rank"], self._rules(entry["rules"]))
            self.keywords.update(dict.fromkeys(entry["words"].split(), keyword))
        self._memory_word: str = script["memory"]["word"]
        self._memory_rules = self._rules(script["memory"]["rules"])

    def _rules(self, rules: Sequence[tuple[str, Sequence[str]]]) -> list[ScriptRule]:
        return [(self.decomposition(pattern), replies) for pattern, replies in rules]

    def decomposition(self, pattern: str) -> re.Pattern[str]:
        """The regular expression of a decomposition. It matches words with a space after each, and has a group for each
        element.

        Example: "0 my 2" matches "it is my old dog ", with the groups "it is ", "my " and "old dog ".
        """
        groups = []
        for element in _ELEMENT.findall(pattern):
            if element.isdigit():
                groups.append(rf"((?:\S+ ){{{element}}})" if int(element) else r"((?:\S+ )*?)")
            elif element.startswith("/"):
                groups.append(rf"((?:{'|'.join(self._script['classes'][element[1:]].split())}) )")
            else:
                groups.append(rf"((?:{element.strip('()')}) )")
        return re.compile("".join(groups), re.IGNORECASE)

    def clauses(self, text: str) -> list[list[str]]:
        """The words of each clause, contractions written out. Full stops, commas and "but" part clauses (Weizenbaum,
        page 37)."""
        clauses = []
        for clause in _STOPS.split(text[:READ].replace("’", "'")):
            words = _WORD.findall(clause)[:CLAUSE_WORDS]
            clauses.append(" ".join(self._script["substitutions"].get(word.casefold(), word) for word in words).split())
        return [clause for clause in clauses if clause]

    def turned(self, clause: Sequence[str]) -> str:
        """The clause as the other speaker would say it, with a space after each word: "you are my friend" becomes "I am
        your friend "."""
        lower = [word.casefold() for word in clause]
        words = list(clause)
        for index, word in enumerate(lower):
            before = lower[index - 1] if index > 0 else None
            after = lower[index + 1] if index + 1 < len(lower) else None
            if word == "you":
                is_object = before in self._script["object_after"] or (index > 0 and after is None)
                words[index] = "me" if is_object else "I"
            elif word in self._script["agreement"]:
                subject, form = self._script["agreement"][word]
                words[index] = form if subject in (before, after) else word
            else:
                as_written = words[index] if index > 0 else word
                words[index] = self._script["reflections"].get(word, as_written)
        return "".join(f"{word} " for word in words)

    def stack(self, clause: Sequence[str]) -> list[str]:
        """The clause's keywords, the one to be tried first at the top. A word that outranks the top is put on top, any
        other at the bottom."""
        stack: list[str] = []
        for word in dict.fromkeys(word.casefold() for word in clause):
            if word in self.keywords:
                above = not stack or self.keywords[word][0] > self.keywords[stack[0]][0]
                stack.insert(0 if above else len(stack), word)
        return stack

    def replies(self, turned: str, rules: Sequence[ScriptRule], used: str, links: int = LINKS) -> Iterator[str]:
        """What ``rules`` say to a ``turned`` clause; of the rule that fits, the reassembly that was used least comes
        first.

        ``used`` holds the speaker's own messages as :func:`spaced_words` text. ``links`` is how many more times "=word"
        may be followed.
        """
        for pattern, texts in rules:
            match = pattern.fullmatch(turned)
            if match is None:
                continue
            for text in sorted(texts, key=lambda text: used.count(_fixed_part(text))):
                if text == "newkey":
                    return
                if text.startswith("="):
                    if links:
                        yield from self.replies(turned, self.keywords[text[1:]][1], used, links - 1)
                elif (filled := _filled(text, match)) is not None:
                    yield filled

    def remembered(self, texts: Sequence[str]) -> Iterator[str]:
        """A reply to each of ``texts``, the partner's earlier messages, that says something about "my". A hash of its
        words draws the reassembly, so that it is the same at every turn."""
        for text in texts:
            for clause in self.clauses(text):
                if self.stack(clause)[:1] == [self._memory_word]:
                    turned = self.turned(clause)
                    pattern, replies = next(rule for rule in self._memory_rules if rule[0].fullmatch(turned))
                    yield from self.replies(turned, [(pattern, [random.Random(turned).choice(replies)])], "")

    def candidates(
        self, messages: Sequence[str], partners: Sequence[str], topic: str | None, seed: int
    ) -> Iterator[str]:
        """All next messages, the best first; there is no end of them.

        - ``messages`` are the speaker's own, ``partners`` the other's, both in order of time
        - ``topic`` may be named by an opening
        - ``seed`` draws the order of openings and of the remarks that nothing prompted
        """
        used = "\n".join(map(spaced_words, messages))
        if not messages and not partners:
            yield from self._openings(topic, seed)
        clauses = self.clauses(partners[-1]) if partners else []
        clause = next((clause for clause in clauses if self.stack(clause)), [])
        for word in self.stack(clause):
            _, rules = self.keywords[word]
            yield from self.replies(self.turned(clause), rules, used)
        if clause or len(messages) % MEMORY_TURN == MEMORY_TURN - 1:
            yield from self.remembered(partners[:-1])
        yield from sorted(self._script["none"], key=lambda text: used.count(spaced_words(text)))
        for begin, end in _shuffled(list(product(self._script["begin"], self._script["end"])), seed):
            yield f"{begin}, and {end}?"
        yield from (f"Matter {number}, then: please continue." for number in count(len(messages) + 1))

    def _openings(self, topic: str | None, seed: int) -> Iterator[str]:
        """First messages in the seed's order: those that name the topic, if it is short and has a word."""
        is_named = bool(topic and topic.isprintable() and len(topic) <= TOPIC and _WORD.search(topic))
        openings = [text for text in self._script["openings"] if ("{topic}" in text) == is_named]
        for text in _shuffled(openings, seed):
            yield text.replace("{topic}", topic or "")


class ElizaAgent(Agent[Settings]):
    """Converses by the script. A message depends on the history, the speaker and the seed alone."""

    declares = Declaration(
        tasks=("conversation",),
        memory=128 * MIB,
        batch_size=64,
        parallel=False,
    )
    Settings = Settings

    def open(self) -> None:
        """Read the script."""
        self._script = Script(json.loads(SCRIPT.read_text("utf-8")))

    def respond(self, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """For each conversation the best candidate that repeats nothing."""
        return [self._reply(stimulus, draw) for stimulus, draw in zip(batch, draws, strict=True)]

    def _reply(self, stimulus: Stimulus, draw: Draw) -> Reply:
        assert isinstance(stimulus, ConversationStimulus)
        history = _messages(stimulus, draw.options)
        repeated = {part for _, text in history for part in _comparable(text)}
        messages = [text for is_speaker, text in history if is_speaker]
        partners = [text for is_speaker, text in history if not is_speaker]
        candidates = self._script.candidates(messages, partners, stimulus.topic, draw.seed)
        text = next(text for text in candidates if repeated.isdisjoint(_comparable(text)))
        return Reply(TurnAnswer(text=text[0].upper() + text[1:], finish="stop"))


def spaced_words(text: str) -> str:
    """A text's words in small letters, with a space before, between and after them, so that a phrase can be
    looked for."""
    return f" {' '.join(_WORD.findall(text.replace('’', chr(39)).casefold()))} "


def _messages(stimulus: ConversationStimulus, options: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """(is the next speaker's, text), with any opener."""
    name, other = speakers(stimulus, options)
    side = SPEAKER_LETTERS[(stimulus.names or SPEAKER_LETTERS).index(name)]
    labels = {name, side} - {other}
    messages = [(utterance.speaker in labels, utterance.text) for utterance in stimulus.history]
    if stimulus.opener is not None and all(text != stimulus.opener for _, text in messages):
        messages.insert(0, (stimulus.who_starts == side, stimulus.opener))
    return messages


def _comparable(text: str) -> set[str]:
    sentences = {spaced_words(sentence) for sentence in _SENTENCE.findall(text)}
    return {spaced_words(text), *(sentence for sentence in sentences if len(sentence.split()) >= REPEATED)}


def _filled(text: str, match: re.Match[str]) -> str | None:
    parts = [match[int(slot)].strip() for slot in _SLOT.findall(text)]
    if not all(0 < len(part.split()) <= QUOTED_WORDS for part in parts):
        return None
    return _SLOT.sub(lambda _: parts.pop(0), text)


def _fixed_part(text: str) -> str:
    """The longest piece between slots."""
    return max((spaced_words(piece).strip() for piece in _SLOT.split(text)), key=len)


def _shuffled(items: Sequence[Any], seed: int) -> list[Any]:
    return random.Random(seed).sample(items, len(items))
