"""The filters of conversations: pure functions of texts and thresholds, linear in the text's length.

``_OF_MESSAGES`` look at a message by itself, ``_OF_CONVERSATIONS`` at a message after those before it. Which of them
reject is for :mod:`agents.language.filters.policies`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from pydantic import Field

from agents.contract import Settings
from agents.language.filters.texts import disclosures, farewell, key, labels, quoted_beginning
from agents.language.sent_messages import leading_label, short_names
from agents.sentence_boundaries import sentence_ends, sentences
from agents.word_boundaries import words


class FilterSettings(Settings):
    """The thresholds: a filter has a finding at its threshold, and none below. Lengths are in words unless stated."""

    repeated_sentence: int = Field(3, ge=2)
    """The same sentence in this many messages of a speaker."""
    sentence_words: int = Field(4, ge=1)
    """A sentence with fewer words may be repeated."""
    repeated_block: int = Field(2, ge=1, le=100)
    """This many messages in a row, repeated in their order by the same speakers."""
    same_message: int = Field(3, ge=2)
    """The same message this many times from a speaker, whatever its length."""
    word_loop: int = Field(4, ge=2)
    """A word, or the same few, this many times in a row in a message."""
    early_exit: int = Field(3, ge=0)
    """A farewell before this many last messages, which may take leave."""
    empty: int = Field(1, ge=1)
    """Fewer characters in a message; spaces, dots, dashes and quotation marks do not count."""
    other_speaker: int = Field(1, ge=1)
    """This many labels of the other speaker ("Alice:") in a message."""
    prompt_echo: int = Field(8, ge=2)
    """This many words in a row of the prompt, in a message."""
    too_long: int = Field(66, ge=1)
    """More words in a message; the drawn lengths of people's messages exceed 66 once in 1,000."""
    list_lines: int = Field(3, ge=2)
    """This many items on lines of their own, or numbered within the text."""
    list_items: int = Field(8, ge=2)
    """This many things in a row, one to three words each between commas."""
    too_short: int = Field(1, ge=0)
    """Fewer words in a message."""
    self_disclosure: int = Field(1, ge=1)
    """This many sentences in a message that say that the speaker is a machine."""
    partner_echo: int = Field(8, ge=2)
    """This many words in a row of the other speaker's last messages."""
    cut_off: int = Field(1, ge=1)
    """This many words after the last sentence of a text that ended at its limit of tokens."""


class Match(NamedTuple):
    """What a filter matched in a message."""

    size: int
    """How much of it: times that something came, or messages; 0 where there is nothing to count."""
    text: str
    """What it was, for a reader."""


@dataclass(frozen=True, slots=True)
class JudgedMessages:
    """What the filters look at: the messages from ``first`` on, in view of all before them."""

    messages: Sequence[tuple[str, str]]
    """(speaker, text) of every message, in order."""
    first: int
    """The index of the first message that is judged."""
    settings: FilterSettings
    """The thresholds."""
    names: Collection[str]
    """Further names that may be labels, also of speakers who have not spoken yet."""
    prompts: Mapping[str, str | None]
    """By speaker the instructions that a model should not repeat; None for a person."""
    total: int
    """How many messages are planned."""
    ended_at_limit: Collection[int]
    """Indices of texts that had all their tokens."""

    def findings(self, name: str) -> dict[int, Match]:
        """What the filter ``name`` finds, by the message's index."""
        if name in _OF_CONVERSATIONS:
            return _OF_CONVERSATIONS[name](self)
        findings = {}
        for index in range(self.first, len(self.messages)):
            text = _OF_MESSAGES[name](self, *self.messages[index])
            if text is not None:
                findings[index] = Match(0, text)
        return findings


# Filters of a single message: its speaker and text.

# What a message may consist of and still be empty: dots, dashes, quotation marks, asterisks.
_EMPTY = frozenset(".…·•。．｡-‐‑‒–—―_~*`'\"‘’“”«»,;|/\\\u115f\u1160\u2800\u3164")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_LONGEST_LOOP = 20
_PARTNERS_LAST = 3  # messages that a message may echo
_MARKED = re.compile(r"\s{0,20}(?:[-*+•‣◦▪–—·]|\(?\d{1,3}[.):]|\(?[A-Za-z][.)])\s{1,20}\S")
_INLINE_NUMBER = re.compile(r"(?<!\S)\(?(\d{1,2})[.)](?!\S)")
_BETWEEN_ITEMS = re.compile(r"[,;、，；]")
_ITEM_WORDS = 3
_ROLES = ("assistant", "user", "system", "human", "AI", "chatbot", "bot")
_TEMPLATE = re.compile(
    r"<\|[\w ]{1,40}\|>|\[/?(?:INST|SYS)\]|<</?SYS>>|</?s>|^#{2,4} ?(?:instruction|response|input)s?\b:?",
    re.IGNORECASE | re.MULTILINE,
)
# "[your name]", "<name>", "{topic}", "[insert city here]".
_PLACEHOLDER = re.compile(
    r"[\[{<]{1,2}\s?(?:(?:insert|enter|add|your|my|user'?s?|friend'?s?|partner'?s?|the|other|first|last|full)"
    r"[ _-]){0,4}(?:name|username|user|age|topic|persona|friend|city|place|location|country|date|time|job|hobby"
    r"|number|message)(?:[ _-]here)?\s?[\]}>]{1,2}|[\[{<](?:insert|enter|your)[ _-][^\[\]{}<>\n]{1,40}[\]}>]",
    re.IGNORECASE,
)


def _empty(judged: JudgedMessages, _: str, text: str) -> str | None:
    count = sum(letter not in _EMPTY and unicodedata.category(letter) not in _INVISIBLE for letter in text)
    if count >= judged.settings.empty:
        return None
    return quoted_beginning(text) if text.strip() else "no text"


def _too_short(judged: JudgedMessages, _: str, text: str) -> str | None:
    count = len(words(text))
    least = judged.settings.too_short
    if count >= least:
        return None
    return f"{count} {'word' if count == 1 else 'words'}, of at least {least}"


def _too_long(judged: JudgedMessages, _: str, text: str) -> str | None:
    count = len(words(text))
    most = judged.settings.too_long
    return f"{count} words, of at most {most}" if count > most else None


def _word_loop(judged: JudgedMessages, _: str, text: str) -> str | None:
    spoken = words(text)
    times = judged.settings.word_loop
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(word, len(numbers)) for word in spoken]
    for length in range(1, min(_LONGEST_LOOP, len(codes) // times) + 1):
        start = 0
        for same, run in groupby(a == b for a, b in zip(codes, codes[length:], strict=False)):
            equal = sum(1 for _ in run)
            if same and equal >= length * (times - 1):
                phrase = " ".join(spoken[start : start + length])
                return f"{quoted_beginning(phrase)} {equal // length + 1} times in a row"
            start += equal
    return None


def _list(judged: JudgedMessages, _: str, text: str) -> str | None:
    lines = judged.settings.list_lines
    items = judged.settings.list_items
    marked = sum(1 for line in text.splitlines() if _MARKED.match(line))
    if marked >= lines:
        return f"{marked} lines with bullets or numbers"
    if (most := _lines_after_colon(text)) >= lines:
        return f"{most} items on lines of their own"
    counted = 0
    for number in _INLINE_NUMBER.finditer(text):
        if int(number.group(1)) == counted + 1:
            counted += 1
    if counted >= lines:
        return f"items numbered from 1 to {counted}"
    if (named := max(map(_items, sentences(text)), default=0)) >= items:
        return f"{named} things named in a row"
    return None


def _lines_after_colon(text: str) -> int:
    most = 0
    count = 0
    is_within = False
    for line in text.splitlines():
        bare = line.rstrip()
        if not words(bare):
            continue
        if bare.endswith((":", "：")):
            is_within = True
            count = 0
        elif is_within and not bare.endswith((".", "!", "?", "。", "！", "？")):
            count += 1
            most = max(most, count)
        else:
            is_within = False
    return most


def _items(sentence: str) -> int:
    """The most comma-separated things in a row."""
    most = 0
    count = 0
    for piece in _BETWEEN_ITEMS.split(sentence):
        count = count + 1 if 1 <= len(words(piece)) <= _ITEM_WORDS else 0
        most = max(most, count)
    return most


def _other_speaker(judged: JudgedMessages, speaker: str, text: str) -> str | None:
    speakers = {*judged.names, *(name for name, _ in judged.messages)}
    others = labels(text, speakers - {speaker})
    if len(others) >= judged.settings.other_speaker:
        return f"{quoted_beginning(f'{others[0]}:')} {'once' if len(others) == 1 else f'{len(others)} times'}"
    return _short_label(judged, speaker, text, ("other", "nobody"))


def _prompt_echo(judged: JudgedMessages, speaker: str, text: str) -> str | None:
    if (mark := _TEMPLATE.search(text)) is not None:
        return f"{quoted_beginning(mark.group())} of a chat template"
    if (place := _PLACEHOLDER.search(text)) is not None:
        return f"the placeholder {quoted_beginning(place.group())}"
    if named := labels(text, [speaker, *_ROLES]):
        return f"the label {quoted_beginning(f'{named[0]}:')}"
    if echo := _echo(text, [judged.prompts.get(speaker) or ""], judged.settings.prompt_echo):
        return f"{quoted_beginning(echo)} of the prompt"
    return _short_label(judged, speaker, text, ("own",))


def _echo(text: str, sources: Sequence[str], run: int) -> str | None:
    """The first ``run`` words in a row of ``text`` that stand in a source, too."""
    spelt = [words(source) for source in sources]
    runs = {tuple(source[i : i + run]) for source in spelt for i in range(len(source) - run + 1)}
    spoken = words(text) if runs else []
    return next((" ".join(part) for i in range(len(spoken)) if (part := tuple(spoken[i : i + run])) in runs), None)


def _short_label(judged: JudgedMessages, speaker: str, text: str, whose: Collection[str]) -> str | None:
    names = list(judged.names) if isinstance(judged.names, Sequence) else []
    label = leading_label(text, *short_names(names, speaker))
    return f"the label {quoted_beginning(label.written)}" if label is not None and label.whose in whose else None


def _self_disclosure(judged: JudgedMessages, _: str, text: str) -> str | None:
    pieces = disclosures(text)
    return quoted_beginning(pieces[0]) if len(pieces) >= judged.settings.self_disclosure else None


_OF_MESSAGES: Mapping[str, Callable[[JudgedMessages, str, str], str | None]] = {
    "word_loop": _word_loop,
    "empty": _empty,
    "other_speaker": _other_speaker,
    "prompt_echo": _prompt_echo,
    "too_long": _too_long,
    "list": _list,
    "too_short": _too_short,
    "self_disclosure": _self_disclosure,
}


# Filters in view of the messages before.


def _repeated_sentence(judged: JudgedMessages) -> dict[int, Match]:
    times = judged.settings.repeated_sentence
    least = judged.settings.sentence_words
    counts: Counter[tuple[str, str]] = Counter()
    findings: dict[int, Match] = {}
    for i, (speaker, text) in enumerate(judged.messages):
        here: dict[tuple[str, str], str] = {}
        for sentence in sentences(text):
            spoken = words(sentence)
            if len(spoken) >= least:
                here.setdefault((speaker, " ".join(spoken)), sentence)
        counts.update(here.keys())
        if here and counts[most := max(here, key=counts.__getitem__)] >= times:
            findings[i] = Match(
                counts[most], f"{quoted_beginning(here[most])} in {counts[most]} messages from {speaker}"
            )
    return findings


def _repeated_block(judged: JudgedMessages) -> dict[int, Match]:
    length = judged.settings.repeated_block
    numbers: dict[tuple[str, str], int] = {}
    codes = [numbers.setdefault((speaker, key(text)), len(numbers)) for speaker, text in judged.messages]
    first_end: dict[tuple[int, ...], int] = {}
    findings: dict[int, Match] = {}
    before = -1
    run = 0
    for i in range(length - 1, len(codes)):
        end = first_end.setdefault(tuple(codes[i - length + 1 : i + 1]), i)
        if i - end < length:
            before = -1
            run = 0
            continue
        # The block is as long as the messages go on together, up to where it would overlap itself.
        run = min(run + 1, i - end) if before >= 0 and end == before + 1 else length
        before = end
        findings[i] = Match(run, f"{_span(i, run)} as {_span(end, run)}")
    return findings


def _span(end: int, length: int) -> str:
    return f"message {end + 1}" if length == 1 else f"messages {end + 2 - length} to {end + 1}"


def _same_message(judged: JudgedMessages) -> dict[int, Match]:
    counts: Counter[tuple[str, str]] = Counter()
    findings: dict[int, Match] = {}
    for i, (speaker, text) in enumerate(judged.messages):
        message = (speaker, key(text))
        counts[message] += 1
        if counts[message] >= judged.settings.same_message:
            findings[i] = Match(counts[message], f"{quoted_beginning(text)} {counts[message]} times from {speaker}")
    return findings


def _early_exit(judged: JudgedMessages) -> dict[int, Match]:
    last = min(len(judged.messages), judged.total - judged.settings.early_exit)
    return {
        index: Match(0, f"{quoted_beginning(leave)}, {judged.total - index - 1} messages before the end")
        for index in range(judged.first, last)
        if (leave := farewell(judged.messages[index][1])) is not None
    }


def _partner_echo(judged: JudgedMessages) -> dict[int, Match]:
    findings = {}
    for index in range(judged.first, len(judged.messages)):
        speaker, text = judged.messages[index]
        others = [line for name, line in judged.messages[:index] if name != speaker][-_PARTNERS_LAST:]
        if echo := _echo(text, others, judged.settings.partner_echo):
            findings[index] = Match(0, f"{quoted_beginning(echo)} of the other speaker")
    return findings


def _cut_off(judged: JudgedMessages) -> dict[int, Match]:
    findings = {}
    for index in judged.ended_at_limit:
        text = judged.messages[index][1].rstrip()
        rest = text[max(sentence_ends(text), default=0) :]
        if len(words(rest)) >= judged.settings.cut_off and not rest.endswith(")"):  # "(laughs)" is complete
            findings[index] = Match(0, f"{quoted_beginning(rest.strip())} at the limit of tokens")
    return findings


_OF_CONVERSATIONS: Mapping[str, Callable[[JudgedMessages], dict[int, Match]]] = {
    "repeated_sentence": _repeated_sentence,
    "repeated_block": _repeated_block,
    "same_message": _same_message,
    "early_exit": _early_exit,
    "partner_echo": _partner_echo,
    "cut_off": _cut_off,
}
