"""Base forms of English words by WordNet 3.0: singular nouns and base verbs.

``data/wordnet.txt`` holds WordNet's words and irregular forms; its header names the source and the licence. It is
rebuilt by ``scripts/make_wordnet.py``.

The papers used NLTK's WordNetLemmatizer, which is told whether a word is a noun or a verb. An answer of one word does
not say it, and NLTK's shortest base makes of "species" specie, of "physics" physic and of "boss" bos. So:

- A word that WordNet does not have is a plural noun if WordNet has its singular (bullets, feet), else a verb's form if
  WordNet has the verb (took), else it stays.
- A word that WordNet has is taken for itself: rose, saw, left, building, forbidden, evening stay.
- But a plural with a sense of its own (words, glasses, arms) becomes singular if the singular is not rare beside it:
  at least a tenth as frequent. Physics, species, pants, graffiti stay, and so do names (Mars, Wales). One that is
  never used in the sense of its own (windows, which is a name too), in the texts whose words WordNet's authors marked
  with their senses, becomes singular if that is used.
- And a verb's form that is no adjective and never used there in a sense of its own becomes the verb if that is (sang,
  which WordNet has as a root of ginseng; getting).

Nothing is done to adjectives (better, biggest).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from agents.language.words import vocabulary

FILE = Path(__file__).parent / "data" / "wordnet.txt"
VERSION = "3.0"
TENTH = 1.0  # of a frequency, as a difference of decimal logarithms
USED = 10  # so often at least was a verb marked that forms of no own use are taken for

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


@dataclass(frozen=True, slots=True)
class _Tables:
    """``kinds``: what a word can be, as in the file's header, and ``used`` how often; ``nouns`` and ``verbs``:
    irregular forms with their bases."""

    kinds: dict[str, str]
    used: dict[str, int]
    nouns: dict[str, list[str]]
    verbs: dict[str, list[str]]


def has(word: str) -> bool:
    """Whether WordNet has the word as it stands."""
    return word in _tables().kinds


@lru_cache(1 << 16)
def lemma(word: str) -> str:
    """The base form of a word in small letters; the word itself if it is one, or if nothing is known of it."""
    base = _own_base(word) if has(word) else _unlisted_base(word)
    return word if base is None else lemma(base)


@lru_cache(1 << 16)
def bases(word: str) -> frozenset[str]:
    """All nouns and verbs of WordNet that the word may be a form of, itself aside: of "fell" fall, of "saw" see."""
    return frozenset([*_singulars(word), *_verbs(word)]) - {word}


def _unlisted_base(word: str) -> str | None:
    """Of a word that WordNet does not have."""
    used = _tables().used
    noun, verb = next(iter(_singulars(word)), None), next(iter(_verbs(word)), None)
    # "Imagines" are hardly insects.
    if noun is not None and verb is not None and noun not in used and verb in used:
        return verb
    return noun or verb


def _own_base(word: str) -> str | None:
    """Of a word that WordNet has; None if it is to be taken for itself."""
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
    """Whether a word that WordNet has is rather the plural of the noun ``base``."""
    tables = _tables()
    if base_alone_used:
        return True
    if "n" not in tables.kinds[word] or (word in tables.used and base not in tables.used):
        return False
    # WordNet's list of irregular plurals has many a noun of another origin (dive, of diva; cola, of colon).
    rarer = vocabulary.zipf(word) - vocabulary.zipf(base)
    return rarer <= 0 if word in tables.nouns else rarer <= TENTH


def _singulars(word: str) -> list[str]:
    """Nouns that the word may be the plural of, the likeliest first."""
    tables = _tables()
    if word in _NO_PLURALS:
        return []
    if word in tables.nouns:
        return [base for base in tables.nouns[word] if "n" in tables.kinds.get(base, "").lower()]
    if word.endswith("ss"):
        return []
    found = [one for one in _detached(word, _PLURALS) if len(one) > 2 and "n" in tables.kinds.get(one, "").lower()]
    # Of "cookies" cookie rather than cooky, of "corpses" corpse rather than corps.
    return sorted(found, key=lambda base: (-tables.used.get(base, 0), -vocabulary.zipf(base)))


def _verbs(word: str) -> list[str]:
    """Verbs that the word may be a form of, the likeliest first."""
    tables = _tables()
    found = [*tables.verbs.get(word, ()), *_detached(word, _VERBS)]
    return [base for base in found if "v" in tables.kinds.get(base, "")]


def _detached(word: str, endings: tuple[tuple[str, str], ...]) -> list[str]:
    return [word.removesuffix(ending) + base for ending, base in endings if word.endswith(ending) and word != ending]


@cache
def _tables() -> _Tables:
    tables = _Tables({}, {}, {}, {})
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    between = lines.index("")
    for line in lines[:between]:
        word, kinds, *count = line.split()
        tables.kinds[word] = kinds
        if count:
            tables.used[word] = int(count[0])
    for line in lines[between + 1 :]:
        kind, form, *bases = line.split()
        (tables.nouns if kind == "n" else tables.verbs)[form] = bases
    return tables
