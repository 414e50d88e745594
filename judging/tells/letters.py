"""Capitals, punctuation marks, and inflected words."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from agents.language.words import vocabulary
from agents.language.words.rules import SHORTEST, is_stop_word, letters
from judging.tells.seen import TEXTS, SeenAnswer, end_mark, is_mark, without_end_mark
from judging.tells.transformation import Planted, Target, Transformation, refuse_unless, share

LETTERS = r"[^\W\d_]"
# What is one word: an abbreviation with full stops, such as "U.S.", or letters with apostrophes between, as in "don't".
WORD = re.compile(rf"(?<!{LETTERS})(?:{LETTERS}\.){{2,}}|{LETTERS}+(?:['’‘`]{LETTERS}+)*")
_PLAIN = re.compile("[A-Za-z]+")
_JOINING = str.maketrans("", "", ".'’‘`")


def _changed(seen: SeenAnswer, change: Callable[[str], str]) -> SeenAnswer:
    return seen.with_texts([change(text) for text in seen.texts()])


class Case(Transformation):
    """All letters become small."""

    name = "case"
    tasks = TEXTS
    takes = "capital letters: all letters become small"
    keeps = "letters (but for their case), marks, blanks, their order"
    measures = "capitals as a share of letters"
    plants = "the case of a participant's text: small, the first letter large, or capitals"
    plant_tasks = TEXTS

    def measure(self, seen: SeenAnswer) -> float:
        """Capitals as a share of letters, 0 to 1."""
        text = "".join(seen.texts())
        return share(sum(map(str.isupper, text)), sum(map(str.isalpha, text)))

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """All small."""
        return _changed(seen, str.lower)

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """The texts must be equal but for their case."""
        for first, second in zip(before.texts(), after.texts(), strict=True):
            refuse_unless(first.casefold() == second.casefold(), self.name, first, second)

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """Each text gets the style of one of the donor's texts, which are taken in turn."""
        styles = [_style(text) for text in donor.texts()]
        is_reached = True
        texts = []
        for number, text in enumerate(seen.texts()):
            styled = _in_style(text, styles[number % len(styles)])
            if styled.casefold() != text.casefold():  # of a letter without a capital of its own
                styled = text
                is_reached = False
            texts.append(styled)
        return Planted(seen.with_texts(texts), is_reached)


def _style(text: str) -> str:
    alphabetic = [letter for letter in text if letter.isalpha()]
    capitals = sum(map(str.isupper, alphabetic))
    if capitals > 1 and capitals == len(alphabetic):
        return "capitals"
    return "first" if alphabetic and alphabetic[0].isupper() else "small"


def _in_style(text: str, style: str) -> str:
    if style == "capitals":
        return text.upper()
    if style == "small":
        return text.lower()
    if _style(text) == "capitals":
        text = text.lower()
    first = next((place for place, letter in enumerate(text) if letter.isalpha()), None)
    return text if first is None else text[:first] + text[first].upper() + text[first + 1 :]


class Punctuation(Transformation):
    """Marks go; those that stand between two words become a blank."""

    name = "punctuation"
    tasks = TEXTS
    takes = "punctuation marks: apostrophes go, and other marks become a blank"
    keeps = "letters, digits and all other signs, their order"
    measures = "marks as a share of characters"
    plants = "the marks at the end of a participant's text, or none"
    plant_tasks = TEXTS

    def measure(self, seen: SeenAnswer) -> float:
        """Marks as a share of the characters, 0 to 1."""
        text = "".join(seen.texts())
        return share(sum(map(is_mark, text)), len(text))

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """Without marks."""
        return _changed(seen, _without_marks)

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """What is neither a mark nor a blank must be the same, in the same order."""
        for first, second in zip(before.texts(), after.texts(), strict=True):
            refuse_unless(_signs(first) == _signs(second), self.name, first, second)

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """Each text gets the end marks of one of the donor's texts, which are taken in turn."""
        ends = [end_mark(text) for text in donor.texts()]
        texts = []
        is_reached = True
        for number, text in enumerate(seen.texts()):
            bare = without_end_mark(text)
            end = ends[number % len(ends)]
            is_reached = is_reached and (not bare or not is_mark(bare[-1]))  # a last word of marks alone has no end
            texts.append(f"{bare}{end}" if not bare or not is_mark(bare[-1]) else text)
        return Planted(seen.with_texts(texts), is_reached)


def _without_marks(text: str) -> str:
    joined = WORD.sub(lambda word: word[0].translate(_JOINING), text)
    return " ".join("".join(" " if is_mark(letter) else letter for letter in joined).split())


def _signs(text: str) -> list[str]:
    return [letter for letter in text if not letter.isspace() and not is_mark(letter)]


class Inflection(Transformation):
    """Each word becomes its lemma."""

    name = "inflection"
    tasks = TEXTS
    takes = "inflection: each English word becomes its lemma, as in a dictionary"
    keeps = "the number and the order of words, each word's lemma, all between words; what is no known form"
    measures = "words that are a form of another word, as a share of words"
    plants = "participants' share of plurals"
    plant_tasks = ("object_detection", "word_association")
    package = vocabulary.PACKAGE

    def measure(self, seen: SeenAnswer) -> float:
        """Words that are a form of another one, as a share of all words, 0 to 1."""
        words = [word for text in seen.texts() for word in WORD.findall(text)]
        return share(sum(base_of(word) is not None for word in words), len(words))

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """Lemmas in place of words."""
        return _changed(seen, lambda text: WORD.sub(lambda word: _in_place_of(word[0], base_of(word[0])), text))

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """Each word must have the same lemma, and what stands between words must be the same."""
        for first, second in zip(before.texts(), after.texts(), strict=True):
            is_kept = WORD.split(first) == WORD.split(second)
            is_kept = is_kept and _lemmas(first) == _lemmas(second)
            refuse_unless(is_kept, self.name, first, second)

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """Each text's last word is plural where that of the donor's text is, and else its lemma."""
        plurals = [_is_plural(text) for text in donor.texts()]
        texts = []
        is_reached = True
        for number, text in enumerate(seen.texts()):
            wants_plural = plurals[number % len(plurals)]
            if wants_plural == _is_plural(text):
                texts.append(text)
                continue
            changed = _with_last(text, _plural if wants_plural else base_of)
            is_reached = is_reached and changed != text
            texts.append(changed)
        return Planted(seen.with_texts(texts), is_reached)


@lru_cache(1 << 16)
def base_of(word: str) -> str | None:
    """The lemma, in small letters, of a word with or without apostrophes; None where it is no form of another word.

    Stop words stay, as the papers' rules leave them: the lemma of "was" is "be", which stands in no text for it. Words
    with letters beyond a to z stay, as the vocabulary is English."""
    bare = word.translate(_JOINING)
    if _PLAIN.fullmatch(bare) is None:
        return None
    small = letters(bare)
    if len(small) < SHORTEST or is_stop_word(small):
        return None
    base = vocabulary.lemma(small)
    return None if base == small or is_stop_word(base) else base


def _in_place_of(word: str, base: str | None) -> str:
    if base is None:
        return word
    bare = word.translate(_JOINING)
    if bare.isupper():
        return base.upper()
    return base.capitalize() if bare[:1].isupper() else base


def _lemmas(text: str) -> list[str]:
    return [base_of(word) or word.casefold() for word in WORD.findall(text)]


def _last_word(text: str) -> re.Match[str] | None:
    found = list(WORD.finditer(text))
    return found[-1] if found else None


def _is_plural(text: str) -> bool:
    word = _last_word(text)
    if word is None:
        return False
    base = base_of(word[0])
    return base is not None and letters(word[0]) in _plurals(base)


def _with_last(text: str, change: Callable[[str], str | None]) -> str:
    word = _last_word(text)
    if word is None:
        return text
    return text[: word.start()] + _in_place_of(word[0], change(word[0])) + text[word.end() :]


def _plural(word: str) -> str | None:
    """The plural of a noun, of which the vocabulary knows that it is one of this noun; None where it knows none."""
    small = letters(word)
    if _PLAIN.fullmatch(word) is None or base_of(word) is not None:
        return None
    return next((plural for plural in _plurals(small) if base_of(plural) == small and vocabulary.zipf(plural)), None)


def _plurals(noun: str) -> tuple[str, ...]:
    """What may be the plural of a noun: irregular ones that WordNet lists, then those by English spelling."""
    irregular = vocabulary.irregular_plurals(noun)
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return (*irregular, f"{noun}es")
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return (*irregular, f"{noun[:-1]}ies")
    if noun.endswith("man"):
        return (*irregular, f"{noun[:-3]}men", f"{noun}s")
    return (*irregular, f"{noun}s", f"{noun}es")
