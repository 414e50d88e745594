"""English words of the letters a to z, by wordfreq and WordNet 3.0 (licence: header of ``data/wordnet.txt``).

The papers' WordNetLemmatizer must be told whether a word is a noun or a verb, which an answer does not say. So
:func:`lemma` decides:

- A word that WordNet lacks is a plural if WordNet has its singular (bullets), else a verb's form (took).
- A word that WordNet has stays as it is: rose, saw, left.
- But a plural with a sense of its own (words) becomes singular if the singular is at least a tenth as frequent. A
  plural that is never used so in WordNet's marked texts (windows) becomes singular if the singular is used there.
- A verb's form that is no adjective, and is never used there as its own word, becomes the verb if that is (sang).
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

from agents.errors import UnavailableError

PACKAGE = "wordfreq"
"""The package with the frequencies."""
WORDNET = Path(__file__).parent / "data" / "wordnet.txt"
"""WordNet's words with what each can be, how often it is used in marked texts, and the irregular forms."""
WORDNET_VERSION = "3.0"
"""The version that the file was made from."""
TENTH = 1.0
"""A tenth of a frequency, as a difference of decimal logarithms."""
IN_DAILY_USE = 4.0
"""From this frequency on a word is spelled right even if WordNet lacks it: a word in 100,000, such as "smartphone", but
not "recieve"."""
USED = 10
"""How many marked uses a verb needs before an unused form is taken for its own."""
_WORD = re.compile("[a-z]+")

# WordNet's rules of detachment (morphy, in its manual): endings of plurals and of verbs' forms, and what they replace.
_PLURALS = (
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
    ("s", ""),
)
_VERBS = (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""))
# The two words in daily use that look like irregular plurals and are none (of colon and stamen).
_NO_PLURALS = ("cola", "stamina")


def most_frequent(count: int) -> tuple[str, ...]:
    """The ``count`` most frequent words, the most frequent first. Raises UnavailableError without the package."""
    return tuple(_frequencies())[:count]


def all_words() -> frozenset[str]:
    """All of wordfreq's English words. Raises UnavailableError without the package."""
    return frozenset(_frequencies())


def frequency_rank(word: str) -> int | None:
    """The word's place by frequency, from 0; None if it is unknown."""
    entry = _frequencies().get(word)
    return None if entry is None else entry[0]


def zipf(word: str) -> float:
    """The decimal logarithm of how often the word stands in a thousand million words: 7.73 for "the"; 0 if it is
    unknown."""
    entry = _frequencies().get(word)
    return 0.0 if entry is None else entry[1]


def describe(words: Iterable[str]) -> str:
    """The package's version and the hash of ``words``, for a record."""
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    return f"{PACKAGE} {metadata.version(PACKAGE)} sha256:{digest}"


@cache
def _frequencies() -> Mapping[str, tuple[int, float]]:
    """(rank, zipf frequency) by word."""
    try:
        from wordfreq import get_frequency_list
    except ImportError as error:
        raise UnavailableError(f"English words need the package {PACKAGE}: {error}") from None
    frequencies: dict[str, tuple[int, float]] = {}
    # One list for each step of a hundredth in the decimal logarithm, from a frequency of 1 down.
    for hundredths, words in enumerate(get_frequency_list("en", "large")):
        for word in words:
            if _WORD.fullmatch(word):
                frequencies[word] = len(frequencies), 9 - hundredths / 100
    return frequencies


# WordNet


def in_wordnet(word: str) -> bool:
    """Whether WordNet lists this very form, in small letters; "dogs" is none, though "dog" is."""
    return word in _tables().kinds


def is_spelled_right(word: str) -> bool:
    """Whether a word in small letters is WordNet's, a form of one, or in daily use. A word with hyphens is, if
    each of its parts is."""
    return all(in_wordnet(part) or bases(part) or zipf(part) >= IN_DAILY_USE for part in word.split("-"))


@lru_cache(1 << 16)
def lemma(word: str) -> str:
    """The base form of a word in small letters, or the word itself: "window" for "windows"."""
    base = _listed_base(word) if in_wordnet(word) else _unlisted_base(word)
    return word if base is None else lemma(base)


@lru_cache(1 << 16)
def bases(word: str) -> frozenset[str]:
    """WordNet's nouns and verbs that the word may be a form of: {"see"} for "saw"."""
    return frozenset([*_singulars(word), *_verbs(word)]) - {word}


def irregular_plurals(noun: str) -> tuple[str, ...]:
    """The irregular plurals that WordNet lists for a noun in small letters: ("mice",) for "mouse"."""
    return _irregular_plurals().get(noun, ())


@cache
def _irregular_plurals() -> Mapping[str, tuple[str, ...]]:
    plurals: dict[str, tuple[str, ...]] = {}
    for form, singulars in _tables().nouns.items():
        for noun in singulars:
            plurals[noun] = (*plurals.get(noun, ()), form)
    return plurals


def _unlisted_base(word: str) -> str | None:
    used = _tables().used
    noun = next(iter(_singulars(word)), None)
    verb = next(iter(_verbs(word)), None)
    # "Imagines" are hardly insects.
    if noun is not None and verb is not None and noun not in used and verb in used:
        return verb
    return noun or verb


def _listed_base(word: str) -> str | None:
    tables = _tables()
    unused = word not in tables.used
    for base in _singulars(word):
        if base != word and "n" in tables.kinds[base] and _is_plural(word, base, unused and base in tables.used):
            return base
    verb = next(iter(_verbs(word)), word)
    # "Compelling" is an adjective, and a name has no form of a verb but by chance.
    other = "a" in tables.kinds[word] or (tables.kinds[word] == "N" and word not in tables.verbs)
    return verb if verb != word and unused and not other and tables.used.get(verb, 0) >= USED else None


def _is_plural(word: str, base: str, base_alone_used: bool) -> bool:
    tables = _tables()
    if base_alone_used:
        return True
    if "n" not in tables.kinds[word] or (word in tables.used and base not in tables.used):
        return False
    # WordNet's list of irregular plurals has many a noun of another origin (dive, of diva; cola, of colon).
    rarer = zipf(word) - zipf(base)
    return rarer <= 0 if word in tables.nouns else rarer <= TENTH


def _singulars(word: str) -> list[str]:
    tables = _tables()
    if word in _NO_PLURALS:
        return []
    if word in tables.nouns:
        return [base for base in tables.nouns[word] if "n" in tables.kinds.get(base, "").lower()]
    if word.endswith("ss"):
        return []
    nouns = [base for base in _detached(word, _PLURALS) if len(base) > 2 and "n" in tables.kinds.get(base, "").lower()]
    # Of "cookies" cookie rather than cooky, of "corpses" corpse rather than corps.
    return sorted(nouns, key=lambda base: (-tables.used.get(base, 0), -zipf(base)))


def _verbs(word: str) -> list[str]:
    tables = _tables()
    candidates = [*tables.verbs.get(word, ()), *_detached(word, _VERBS)]
    return [base for base in candidates if "v" in tables.kinds.get(base, "")]


def _detached(word: str, endings: tuple[tuple[str, str], ...]) -> list[str]:
    return [word.removesuffix(ending) + base for ending, base in endings if word.endswith(ending) and word != ending]


@dataclass(slots=True)
class _Tables:
    kinds: dict[str, str] = field(default_factory=dict)  # what a word can be, as in the file's header
    used: dict[str, int] = field(default_factory=dict)  # how often it was marked
    nouns: dict[str, list[str]] = field(default_factory=dict)  # irregular forms with their bases
    verbs: dict[str, list[str]] = field(default_factory=dict)


@cache
def _tables() -> _Tables:
    tables = _Tables()
    lines = [line for line in WORDNET.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    between = lines.index("")
    for line in lines[:between]:
        word, kinds, *count = line.split()
        tables.kinds[word] = kinds
        if count:
            tables.used[word] = int(count[0])
    for line in lines[between + 1 :]:
        kind, form, *base_forms = line.split()
        (tables.nouns if kind == "n" else tables.verbs)[form] = base_forms
    return tables
