"""How somebody writes in a chat, in numbers: of one speaker's messages in a history."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agents.language.history import HistoryMessage, Speaker, turns

_PICTURE = "[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u3030\u303d\u203c\u2049]"
_JOINABLE = f"{_PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]*"
EMOJI = re.compile(f"[\U0001f1e6-\U0001f1ff]{{2}}|{_JOINABLE}(?:\u200d{_JOINABLE})*|[0-9#*]\ufe0f?\u20e3")
"""One emoji, however many characters it is made of: with a tone of skin, joined to others, a flag, a key."""
MARKS = ".!?\u2026"


@dataclass(frozen=True, slots=True)
class Style:
    """Of ``messages`` in ``turns``; all is null where there is nothing to count.

    Words are what spaces separate, letters all characters. ``ends_with_mark``, ``begins_with_capital`` are shares of
    the messages, ``punctuation`` and ``emoji`` counts per message; ``capitals`` is the share of capital letters.
    ``burstiness`` is B = (sd - mean) / (sd + mean) of the seconds between one's messages (Goh and Barabasi 2008): -1 is
    regular, 0 as by chance, 1 in bursts. ``gap_s`` is the median of seconds between the messages of a turn.
    """

    messages: int
    turns: int
    words_mean: float | None
    words_median: float | None
    letters_mean: float | None
    letters_median: float | None
    punctuation: float | None
    ends_with_mark: float | None
    begins_with_capital: float | None
    capitals: float | None
    emoji: float | None
    messages_per_turn: float | None
    burstiness: float | None
    gap_s: float | None


def measure(messages: Sequence[HistoryMessage], speaker: Speaker = "person") -> Style:
    """How ``speaker`` writes in ``messages``."""
    own_turns = [turn for turn in turns(messages) if turn[0].speaker == speaker]
    own = [one for turn in own_turns for one in turn]
    texts = [one.text for one in own]
    words, letters = [len(text.split()) for text in texts], [len(text) for text in texts]
    cased = [letter for text in texts for letter in text if letter.lower() != letter.upper()]
    first = [next((letter for letter in text if letter.lower() != letter.upper()), "") for text in texts]
    return Style(
        messages=len(own),
        turns=len(own_turns),
        words_mean=_mean(words),
        words_median=statistics.median(words) if words else None,
        letters_mean=_mean(letters),
        letters_median=statistics.median(letters) if letters else None,
        punctuation=_mean([_punctuation(text) for text in texts]),
        ends_with_mark=_mean([text.rstrip()[-1:] in MARKS for text in texts]),
        begins_with_capital=_mean([letter.isupper() for letter in first if letter]),
        capitals=_mean([letter.isupper() for letter in cased]),
        emoji=_mean([len(EMOJI.findall(text)) for text in texts]),
        messages_per_turn=len(own) / len(own_turns) if own_turns else None,
        burstiness=burstiness(_gaps(own)),
        gap_s=_median([gap for turn in own_turns for gap in _gaps(turn)]),
    )


def burstiness(gaps: Sequence[float]) -> float | None:
    """B of times between events; null of fewer than two, and where all are 0."""
    if len(gaps) < 2:
        return None
    mean, spread = statistics.fmean(gaps), statistics.pstdev(gaps)
    return (spread - mean) / (spread + mean) if spread + mean > 0 else None


def _gaps(messages: Sequence[HistoryMessage]) -> list[float]:
    """Seconds between messages, where both times are known and in order."""
    gaps = [
        (second.at - first.at).total_seconds()
        for first, second in pairwise(messages)
        if first.at is not None and second.at is not None
    ]
    return [gap for gap in gaps if gap >= 0]


def _punctuation(text: str) -> int:
    return sum(letter in ".,;:!?\u2026-\u2013\u2014()\"'\u201c\u201d\u2018\u2019/" for letter in text)


def _mean(numbers: Sequence[float]) -> float | None:
    return statistics.fmean(numbers) if numbers else None


def _median(numbers: Sequence[float]) -> float | None:
    return statistics.median(numbers) if numbers else None
