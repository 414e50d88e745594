"""What may be an answer in word association, by the papers' rules.

- ``letters``: only a to z, small, without accents
- ``lemma``: nouns in the singular, verbs' base forms
- ``stop_word``: none of NLTK's 179 stop words
- ``short``: at least three letters
- ``unknown``: in WordNet, or among wordfreq's most frequent
- ``overlap``: neither too similar to the cue nor a form of it

The papers say ">60 % of one word in the pair contains the other word", which can be read in two ways. By ``shorter``,
the longest run of letters that both words have, three at least, is measured against the shorter word. By
``containment``, a word that lies wholly within the other is measured against that other.
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
"""The rules that settings may turn off."""
Reading = Literal["shorter", "containment"]
"""How the papers' sentence on overlap is read."""

RULES: tuple[Rule, ...] = get_args(Rule)
"""All rules, in the order in which a record tells them."""
CUE = "cue"
"""The rule that holds whatever the settings: the cue itself is no answer."""
SHORTEST = 3
"""The fewest letters of an answer, and of a run that two words share."""
STOP_WORDS = Path(__file__).parent / "data" / "stop_words.txt"
"""NLTK's list of English stop words."""
_OTHERS = re.compile("[^a-z]+")
_CONTRACTION = re.compile(r"(\w+?)(?:['’ʼ](?:s|m|d|re|ll|ve)|n['’ʼ]t)", re.IGNORECASE)


class RuleSettings(Settings):
    """Which rules hold for answers, and how strict they are."""

    rules: tuple[Rule, ...] = RULES
    """The rules that hold: letters, lemma, stop_word, short, unknown, overlap; an empty list: none."""
    overlap: Reading = "shorter"
    """How likeness to the cue is measured: by the run of letters that both have, or by containment of a word."""
    overlap_limit: float = Field(0.6, ge=0, le=1)
    """The largest share that two words may have in common."""
    known_words: int = Field(25_000, ge=0, le=1_000_000)
    """How many of wordfreq's most frequent words are English beside WordNet's; typos begin at about rank 27,000."""


@dataclass(frozen=True, slots=True)
class JudgedWord:
    """An answer after the rules."""

    word: str
    """The word in the form that the rules give it: "dog" for "Dogs"."""
    rule: Rule | None = None
    """The rule that dropped it, or None."""


def apply_rules(text: str, cue: str, settings: RuleSettings) -> JudgedWord:
    """What the rules make of ``text`` as an answer to ``cue``: its form, and the first rule that it breaks."""
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
    """The letters a to z of a text, small and joined: "cafeaulait" for "Café au lait"."""
    return _OTHERS.sub("", unicodedata.normalize("NFKD", text).casefold())


def is_stop_word(word: str) -> bool:
    """Whether the word is one of NLTK's English stop words, or a contraction of one ("they're")."""
    contracted = _CONTRACTION.fullmatch(word.strip())
    stem = "" if contracted is None else letters(contracted[1])
    return stem == "let" or not _stop_words().isdisjoint((letters(word), stem, f"{stem}n"))


def is_known(word: str, most_frequent: int) -> bool:
    """Whether WordNet, or wordfreq's ``most_frequent`` words, have the word, which is in small letters."""
    if vocabulary.in_wordnet(word):
        return True
    rank = vocabulary.frequency_rank(word)
    return rank is not None and rank < most_frequent


def overlap(word: str, cue: str, reading: Reading) -> float:
    """How much two words have in common, from 0 to 1: "bookshelf" and "book" have 1 by ``shorter``, 4/9 by
    ``containment``."""
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
