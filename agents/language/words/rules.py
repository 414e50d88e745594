"""What may be an answer in word association: for machines' and people's words alike.

The papers' rules, each with a name. The first two change a word, the others drop it:

- ``letters``: all but the letters a to z goes, accents first, capitals become small; nothing left drops the word
- ``lemma``: plural nouns become singular, forms of verbs the verb (:func:`agents.language.words.vocabulary.lemma`)
- ``stop_word``: none of NLTK's 179 stop words
- ``short``: at least three letters
- ``unknown``: in the English vocabulary, so that typos go: WordNet has it, or it is among wordfreq's most frequent
- ``overlap``: not too similar to the cue

For the last the papers say ">60 % of one word in the pair contains the other word", and grand/grandiose must go. Read
as ``shorter``, the longest run of letters that both share, if it has at least three, is more than that of the shorter
word; grandiose goes, and so does synapse for synaptic. Read as ``containment``, one word stands whole in the other and
is more than that of it: bright goes for brighton, grandiose (5 of 9) does not. In both readings a form of the cue goes
too, even where it is a word of its own: fell for fall, sang for sing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from agents.contract import Settings
from agents.language.words import vocabulary

Rule = Literal["letters", "lemma", "stop_word", "short", "unknown", "overlap"]
Reading = Literal["shorter", "containment"]

RULES: tuple[Rule, ...] = get_args(Rule)
CUE = "cue"  # the rule that holds whatever the settings: the cue itself is no answer
SHORTEST = 3  # letters of an answer, and of a run that two words share
STOP_WORDS = Path(__file__).parent / "data" / "stop_words.txt"
_OTHERS = re.compile("[^a-z]+")
_CONTRACTION = re.compile(r"(\w+?)(?:['’ʼ](?:s|m|d|re|ll|ve)|n['’ʼ]t)", re.IGNORECASE)


class RuleSettings(Settings):
    """Which rules hold for answers."""

    rules: tuple[Rule, ...] = RULES
    """The rules that hold: letters, lemma, stop_word, short, unknown, overlap; an empty list: none."""
    overlap: Reading = "shorter"
    """How an answer is too like the cue: by the run shared over the shorter word, or by containment of one in other."""
    overlap_limit: float = Field(0.6, ge=0, le=1)
    """The largest share that two words may have in common."""
    known_words: int = Field(25_000, ge=0, le=1_000_000)
    """So many of wordfreq's most frequent words are English beside WordNet's; typos begin at about rank 27,000."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A word after the rules. ``rule`` is the rule that dropped it, None if it stands."""

    word: str
    rule: Rule | None = None


def judge(text: str, cue: str, settings: RuleSettings) -> Judged:
    """What the rules make of the answer ``text`` to ``cue``."""
    rules = settings.rules
    word = letters(text) if "letters" in rules else text
    if not word:
        return Judged(word, "letters")
    # Before lemmas too, which would make a doe of "does".
    if "stop_word" in rules and is_stop_word(text):
        return Judged(word, "stop_word")
    if "lemma" in rules:
        word = vocabulary.lemma(word)
        if "stop_word" in rules and is_stop_word(word):
            return Judged(word, "stop_word")
    if "short" in rules and len(word) < SHORTEST:
        return Judged(word, "short")
    if "unknown" in rules and not is_known(word, settings.known_words):
        return Judged(word, "unknown")
    if "overlap" in rules and (
        overlap(word, cue, settings.overlap) > settings.overlap_limit or letters(cue) in vocabulary.bases(word)
    ):
        return Judged(word, "overlap")
    return Judged(word)


def letters(text: str) -> str:
    """The letters a to z of a text, small and joined; é counts as e. "Ice-cream" becomes "icecream"."""
    return _OTHERS.sub("", unicodedata.normalize("NFKD", text).casefold())


def is_stop_word(word: str) -> bool:
    """Whether the word is among NLTK's English stop words, or a contraction of such a word ("that's", "I've")."""
    contracted = _CONTRACTION.fullmatch(word.strip())
    stem = "" if contracted is None else letters(contracted[1])
    return stem == "let" or not _stop_words().isdisjoint((letters(word), stem, f"{stem}n"))


def is_known(word: str, most_frequent: int) -> bool:
    """Whether the word, in small letters, is in WordNet or among the ``most_frequent`` of wordfreq."""
    if vocabulary.in_wordnet(word):
        return True
    rank = vocabulary.rank(word)
    return rank is not None and rank < most_frequent


def overlap(word: str, cue: str, reading: Reading) -> float:
    """How like the cue a word is by its letters, from 0 to 1, in one of the two readings above."""
    short, long = sorted((letters(word), letters(cue)), key=len)
    if not short:
        return 0.0
    if reading == "containment":
        return len(short) / len(long) if short in long else 0.0
    run = SequenceMatcher(None, short, long, autojunk=False).find_longest_match().size
    return run / len(short) if run >= SHORTEST else 0.0


@cache
def _stop_words() -> frozenset[str]:
    lines = STOP_WORDS.read_text(encoding="utf-8").splitlines()
    return frozenset(letters(line) for line in lines if not line.startswith("#"))
