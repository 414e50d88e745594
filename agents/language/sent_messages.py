"""What becomes of a generated message before it is sent: labels and quotation marks go, and it is cut to a drawn
length.

The 2025 paper (Methods) cuts replies to a drawn length in words "at the most appropriate punctuation mark". In its
programs this is the last full stop, exclamation mark or question mark within the length.
"""

import json
import random
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter

from agents.answers import TurnAnswer, WordAnswer, is_blank
from agents.contract import Draw, Finding, Reply, Settings
from agents.errors import InputError, short_text
from agents.language.prompts import GREETED, SPEAKER_LETTERS
from agents.language.pseudo_dialogue import read_messages
from agents.language.words.replies import no_word
from agents.stimuli import ConversationStimulus, Stimulus
from agents.word_boundaries import count_words

Fallback = Literal["empty", "whole"]
"""What is left of a message that has no such mark: nothing (``empty``), or all of it (``whole``)."""

_BEFORE = r"[\s*_>\[(#\"“'‘`-]{0,6}"
_AFTER = r"[*_\])\"”'’`]{0,3}\s{0,2}[:：][*_]{0,3}"
# Not "12:30", and no emoticon: ":D", ":p", "D:".
_NOBODY = re.compile(
    rf"{_BEFORE}(?:([A-Za-z]|\d{{1,2}}){_AFTER}(?!\d)(?![)(/|3])|[:：]\s*(?=[^\W\d_]{{2}}|[Ii]['’ ]))\s*"
)
_QUOTES = {'"': '"', "“": "”", "”": "”", "«": "»", "„": "“", "‘": "’", "「": "」"}
_MOST_LABELS = 3  # in a row
_MOST_MARKS = 3  # before a label, as words
_LONGEST = 100_000  # words
_MOST_DRAWS = 1000  # of a length
_LENGTHS = TypeAdapter(tuple[Annotated[int, Field(ge=0, le=_LONGEST)], ...])


class Label(NamedTuple):
    """A name or letter with a colon, at the beginning of a text."""

    whose: Literal["own", "other", "nobody"]
    """The speaker's own, the other's, or nobody's: a letter or number that names neither."""
    written: str
    """The label as it stands in the text, with its marks: "**Ann:**"."""
    end: int
    """The index in the text at which the message begins."""


def _labels_of(name: str, side: str | None = None) -> set[str]:
    words = name.split()
    return {name, side or name, *words[:1], *(word[:1].upper() for word in words[:1])}


def short_names(names: Sequence[str], speaker: str) -> tuple[set[str], set[str]]:
    """(labels of ``speaker``, labels of the other): the whole name, its first word, its initial, and the letter
    A or B."""
    sides = dict(zip(names, SPEAKER_LETTERS, strict=False))
    own = _labels_of(speaker, sides.get(speaker))
    others = [_labels_of(name, sides.get(name)) for name in names if name != speaker]
    return own, set().union(*others) - own


def leading_label(text: str, own: Collection[str], others: Collection[str]) -> Label | None:
    """The label that begins ``text``, or None. ``own`` and ``others`` are names that count, in any case of letters.

    "12:30 is fine" has none, and neither has an emoticon such as ":D" or "D:".
    """
    longest_first = sorted({*own, *others}, key=len, reverse=True)
    names = "|".join(re.escape(name) for name in longest_first if name.strip())
    match = re.match(rf"{_BEFORE}({names}){_AFTER}\s*", text, re.IGNORECASE) if names else None
    if match is not None:
        is_own = match[1].casefold() in {name.casefold() for name in own}
        return Label("own" if is_own else "other", match[0].strip(), match.end())
    match = _NOBODY.match(text)
    if match is None or (match[1] in ("D", "d") and (match[0][-1].isspace() or match.end() == len(text))):
        return None
    return Label("nobody", match[0].strip(), match.end())


def may_change(text: str) -> bool:
    r"""Whether what follows may still turn the beginning of an unfinished ``text`` into a label or a quotation. It may
    while there is a single word at most.

    Vowel signs and other marks are no letters to ``\w``. With them a name in Hindi would be several words, and would be
    sent as text before its colon is there.
    """
    if not text.isascii():
        text = "".join(letter for letter in text if not unicodedata.category(letter).startswith("M"))
    return text.lstrip(" *_")[:1] in _QUOTES or re.fullmatch(r"[\W_]*\w*[\W_]*", text) is not None


def spoken(stimulus: ConversationStimulus, text: str, name: str, other: str, *also: str) -> str:
    """What ``name``, also called ``also``, says in ``text``: a single line, or in a burst a line for each message. In a
    burst the text counts as far as it does not go on as ``other``."""
    if stimulus.mode == "burst":
        return own_part(stimulus, text, name, other)
    return unlabelled(stimulus, " ".join(text.split()), name, other, *also)


def own_part(stimulus: ConversationStimulus, text: str, name: str, other: str) -> str:
    """What ``name`` says in lines of the form "Name: message" before ``other`` does; a line for each message."""
    messages = read_messages(text, (name, other), name, stimulus.mode)
    own = takewhile(lambda message: message.speaker == name, messages)
    return "\n".join(filter(None, [unlabelled(stimulus, message.text, name, other) for message in own]))


def unlabelled(stimulus: ConversationStimulus, text: str, name: str, other: str, *also: str) -> str:
    """A message without the speaker's labels and without quotation marks around all of it.

    In conversations with people, the other's label and nobody's go, too; between machines they stay, so that a filter
    sees them.
    """
    text = _without_label(stimulus, text, name, other, *also)
    closing = _QUOTES.get(text[:1])
    within = text[1:-1]
    is_quoted = closing is not None and len(text) > 1 and text[-1] == closing and not {text[0], closing} & set(within)
    return within.strip() if is_quoted else text


def _without_label(stimulus: ConversationStimulus, text: str, name: str, other: str, *also: str) -> str:
    names = stimulus.names or (name, other)
    if name in names:
        own, others = short_names(names, name)
    else:
        own = _labels_of(name)
        others = _labels_of(other)
    for _ in range(_MOST_LABELS):
        label = leading_label(text, own.union(also), others)
        if label is None or (label.whose != "own" and stimulus.type == "MM"):
            break
        text = text[label.end :]
    return text


# lengths


class TruncationSettings(Settings):
    """How long a message may be, and how a longer one is cut."""

    shape: float = Field(2.09, ge=0.01, le=10_000)
    """The shape of lengths' Gamma distribution; with a scale of 7.0 it has people's mean and spread."""
    scale: float = Field(7.0, gt=0, le=10_000)
    """The scale, in words, of the Gamma distribution of lengths."""
    least: int = Field(1, ge=1)
    """The shortest length that is drawn, in words."""
    lengths: Path | None = None
    """A file of people's lengths, drawn instead: records of conversations (.jsonl), or a length a line."""
    people: bool = False
    """Whether messages to people are cut, too; the papers do so in their online test alone."""
    fallback: Fallback = "empty"
    """What is left where no mark stands within the length: empty (nothing, so that it is drawn again), or whole."""


def draw_length(seed: int, settings: TruncationSettings, lengths: Sequence[int] = (), at_least: int = 0) -> int:
    """A length in words, drawn by ``seed`` from ``lengths`` or else from the Gamma distribution.

    It is at least ``settings.least``. It is also at least ``at_least``, unless none of a thousand draws is.
    """
    numbers = random.Random(seed)
    for _ in range(_MOST_DRAWS):
        if lengths:
            length = lengths[int(numbers.random() * len(lengths))]
        else:
            length = round(min(_LONGEST, numbers.gammavariate(settings.shape, settings.scale)))
        length = max(settings.least, length)
        if length >= at_least:
            break
    return length


def target_length(
    stimulus: ConversationStimulus,
    draw: Draw,
    truncation: TruncationSettings | None,
    lengths: Sequence[int],
    min_words: int,
    line: int = 0,
) -> int | None:
    """The most words of line number ``line`` of a message, or None where it is not cut.

    Where every message of fewer than ``min_words`` would be drawn again, no length below that is drawn: it would be in
    vain.
    """
    if truncation is None or not (stimulus.type == "MM" or truncation.people):
        return None
    is_in_vain = stimulus.type == "MM" and stimulus.mode == "ping-pong" and truncation.fallback == "empty"
    return draw_length(draw.seed + line, truncation, lengths, min_words if is_in_vain else 0)


def length_check(
    stimulus: ConversationStimulus, length: int, fallback: Fallback, min_words: int, name: str, other: str, *also: str
) -> Callable[[str], bool]:
    """A function that says of an unfinished text whether generation may end, because it is longer than ``length``
    words.

    It says so only if nothing that follows can change what is sent: no label, quotation mark or fallback depends on it.
    If it said so too early, a message would depend on whether somebody listens.
    """
    names = (*(stimulus.names or ()), name, other, *also)
    longest = max(length, *(_MOST_MARKS + len(label.split()) for label in names))

    def is_enough(text: str) -> bool:
        if len(text.split()) <= longest:
            return False
        message = _without_label(stimulus, " ".join(text.split()), name, other, *also)
        if len(message.split()) <= longest or message[:1] in _QUOTES:
            return False
        return fallback == "empty" or (truncate(message, length) != "" and _word_count(text) >= min_words)

    return is_enough


def _peoples_lengths(record: str) -> list[int]:
    messages = (json.loads(record)["answer"] or {}).get("messages", ())
    return [len(message["text"].split()) for message in messages if (message.get("agent") or "").startswith("human")]


def read_message_lengths(settings: TruncationSettings | None) -> tuple[int, ...]:
    """The lengths in words that the settings' file holds; () without a file. In a file of records only people's
    messages count. Raises InputError."""
    path = None if settings is None else settings.lengths
    if path is None:
        return ()
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".jsonl":
            lengths = tuple(length for line in text.splitlines() for length in _peoples_lengths(line))
        else:
            lengths = _LENGTHS.validate_python(text.split())
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        lines = "records of conversations" if path.suffix == ".jsonl" else f"whole numbers from 0 to {_LONGEST}"
        raise InputError(f"{path}: cannot be read as {lines}: {short_text(error)}") from None
    if not lengths:
        raise InputError(f"{path}: holds no length")
    return lengths


def truncate(text: str, words: int, fallback: Fallback = "empty") -> str:
    """``text`` up to its last ``.``, ``!`` or ``?`` within ``words`` words; whole if it has no more words; else by
    ``fallback``.

    Example: ``truncate("I like it. And you do not", 5)`` is "I like it.".
    """
    parts = text.split()
    if len(parts) <= words:
        return text
    begins = " ".join(parts[:words])
    kept = begins[: max(begins.rfind(mark) for mark in ".!?") + 1]
    return text if fallback == "whole" and not kept else kept


def sent_message(
    stimulus: ConversationStimulus,
    text: str,
    draw: Draw,
    truncation: TruncationSettings | None,
    lengths: Sequence[int],
    min_words: int,
    lower_case: float,
) -> str:
    """The text with each line cut to its :func:`target_length`. ``lower_case`` is the share of messages that are put in
    small letters."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        length = target_length(stimulus, draw, truncation, lengths, min_words, index)
        if truncation is not None and length is not None:
            lines[index] = truncate(line, length, truncation.fallback)
    text = "\n".join(filter(None, lines))
    return text.lower() if random.Random(f"case {draw.seed}").random() < lower_case else text


def too_short(
    stimulus: Stimulus, reply: Reply, least: int, attempts: int, *, before_cut: bool = False
) -> Finding | None:
    """The filter of messages with fewer than ``least`` words, and of replies without a word.

    Before the last of ``attempts`` it rejects them. The last is kept, with a note, if it has any word. Messages to
    people are rejected only if they are empty (2025 paper, Methods). ``before_cut``: words are counted before the cut.
    """
    if isinstance(reply.answer, WordAnswer):
        return no_word(reply.answer, reply.raw if isinstance(reply.raw, str) else reply.raw["text"])
    if not isinstance(reply.answer, TurnAnswer) or reply.answer.finish == GREETED or reply.raw.get("pseudo"):
        return None
    beginning = reply.raw["text"][:200]
    if isinstance(stimulus, ConversationStimulus) and stimulus.type != "MM":
        return Finding("too_few_words", True, f"no text: {beginning}") if is_blank(reply.answer.text) else None
    text = reply.raw["text"] if before_cut else reply.answer.text
    count = _word_count(text)
    if count >= max(least, 1):
        return None
    is_last = reply.raw["attempt"] + 1 >= attempts
    return Finding("too_few_words", count == 0 or not is_last, f"{count} words: {beginning}")


def _word_count(text: str) -> int:
    """Words with a letter or a digit."""
    return count_words(" ".join(word for word in text.split() if any(map(str.isalnum, word))))
