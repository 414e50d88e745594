"""What may be an answer in word association, by the papers' rules.

- ``letters``: only a to z, small, without accents
- ``lemma``: nouns in the singular, verbs' base forms
- ``stop_word``: none of NLTK's 179 stop words
- ``short``: at least three letters
- ``unknown``: in WordNet, or among wordfreq's most frequent
- ``overlap``: neither too similar to the cue nor a form of it

The papers say ">60 % of one word in the pair contains the other word". By ``shorter`` the longest shared run of three
letters or more exceeds this share of the shorter word; by ``containment`` the contained word does of the other.
"""

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
class JudgedWord:
    """A word after the rules, and the ``rule`` that dropped it."""

    word: str
    rule: Rule | None = None


def judge(text: str, cue: str, settings: RuleSettings) -> JudgedWord:
    """What the rules make of an answer to ``cue``."""
    rules = settings.rules
    word = letters(text) if "letters" in rules else text
    if not word:
        return JudgedWord(word, "letters")
    # Before lemmas too, which would make a doe of "does".
    if "stop_word" in rules and is_stop_word(text):
        return JudgedWord(word, "stop_word")
    if "lemma" in rules:
        word = vocabulary.lemma(word)
        if "stop_word" in rules and is_stop_word(word):
            return JudgedWord(word, "stop_word")
    if "short" in rules and len(word) < SHORTEST:
        return JudgedWord(word, "short")
    if "unknown" in rules and not is_known(word, settings.known_words):
        return JudgedWord(word, "unknown")
    if "overlap" in rules and (
        overlap(word, cue, settings.overlap) > settings.overlap_limit or letters(cue) in vocabulary.bases(word)
    ):
        return JudgedWord(word, "overlap")
    return JudgedWord(word)


def letters(text: str) -> str:
    """A text's letters a to z, small and joined; é counts as e."""
    return _OTHERS.sub("", unicodedata.normalize("NFKD", text).casefold())


def is_stop_word(word: str) -> bool:
    """Whether NLTK has the English stop word, or it is a contraction of such a word."""
    contracted = _CONTRACTION.fullmatch(word.strip())
    stem = "" if contracted is None else letters(contracted[1])
    return stem == "let" or not _stop_words().isdisjoint((letters(word), stem, f"{stem}n"))


def is_known(word: str, most_frequent: int) -> bool:
    """Whether WordNet or wordfreq's ``most_frequent`` have the word, in small letters."""
    if vocabulary.in_wordnet(word):
        return True
    rank = vocabulary.rank(word)
    return rank is not None and rank < most_frequent


def overlap(word: str, cue: str, reading: Reading) -> float:
    """The overlap by a reading, from 0 to 1."""
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
