"""The rules for answers: each by itself, on the words of the papers, and whatever the word."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wordfreq import zipf_frequency

from agents.language.words import vocabulary
from agents.language.words.rules import (
    STOP_WORDS,
    JudgedWord,
    RuleSettings,
    apply_rules,
    is_known,
    is_stop_word,
    letters,
    overlap,
)

ALL = RuleSettings()


@pytest.mark.parametrize(
    ("text", "word"),
    [("Dog", "dog"), (" ice-cream ", "icecream"), ("New York", "newyork"), ("café", "cafe"), ("42", ""), ("犬", "")],
)
def test_letters_alone_remain(text: str, word: str) -> None:
    assert letters(text) == word


def test_there_are_179_stop_words() -> None:
    words = [line for line in STOP_WORDS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(set(words)) == len(words) == 179
    assert all(map(is_stop_word, ["the", "Here", "don't", "dont", "can", "that's", "That’s", "I'll", "let's", "who'd"]))
    assert not any(map(is_stop_word, ["give", "many", "well", "ill", "baker's"]))


# Written by hand. The base forms are what NLTK's two lemmatizers, or another choice, would make wrong.
LEMMAS = """
dogs dog; bullets bullet; ideas idea; feet foot; men man; women woman; children child; mice mouse; teeth tooth
leaves leaf; lives life; wolves wolf; cookies cookie; boxes box; heroes hero; knives knife; taxes tax; geese goose
oxen ox; corpses corpse; lenses lens; uses use; senses sense; eyes eye; shoes shoe; words word; wings wing
windows window; laws law; spirits spirit; glasses glass; kisses kiss
boss boss; puss puss; canvass canvass
glass glass; bus bus; gas gas; news news; physics physics; species species; series series; lens lens
pants pants; clothes clothes; data data; stamina stamina; cola cola; bias bias; sheep sheep; famous famous
mars mars; texas texas; paris paris; james james; kansas kansas; wales wales; alps alps; kent kent; johnny johnny
took take; went go; gave give; ran run; told tell; brought bring; caught catch; jumped jump; ate eat; sang sing
getting get; drove drive; imagines imagine
rose rose; saw saw; left left; felt felt; bed bed; seed seed; evening evening; building building; wedding wedding
broken broken; forbidden forbidden; organized organized; growing growing; tired tired; compelling compelling
better better; biggest biggest; alas alas; ussr ussr; xyzzies xyzzies
"""


def test_base_forms() -> None:
    pairs = [pair.split() for pair in LEMMAS.replace("\n", ";").split(";") if pair]
    assert [(word, vocabulary.lemma(word)) for word, _ in pairs] == [(word, base) for word, base in pairs]


def test_the_shipped_words_are_those_of_wordnet_3_0() -> None:
    lines = [line for line in vocabulary.WORDNET.read_text("utf-8").splitlines() if not line.startswith("#")]
    marks = [line.split()[1] for line in lines[: lines.index("")]]
    assert len(marks) == 77_503  # of letters alone
    assert sum("n" in mark.lower() for mark in marks) == 55_191
    assert sum("v" in mark for mark in marks) == 8_429


def test_a_base_form_is_its_own_base_form() -> None:
    bases = {vocabulary.lemma(word) for word in vocabulary.most_frequent(100_000)}
    assert [base for base in bases if vocabulary.lemma(base) != base] == []


def test_rare_words_and_names_are_known_and_typos_are_not() -> None:
    known = ["gubernatorial", "toboggan", "hither", "mayweather", "ussr", "harvard"]
    typos = ["discect", "snimal", "bluelight", "teh", "recieve", "definately"]
    assert [word for word in known + typos if is_known(word, ALL.known_words)] == known
    words = vocabulary.most_frequent(30_000)
    place = next(place for place in range(26_000, 30_000) if not vocabulary.in_wordnet(words[place]))
    assert not is_known(words[place], place)
    assert is_known(words[place], place + 1)


@pytest.mark.parametrize(
    ("word", "cue", "shorter", "containment"),
    [
        ("grandiose", "grand", 1.0, 5 / 9),
        ("grand", "grandiose", 1.0, 5 / 9),
        ("synapse", "synaptic", 5 / 7, 0.0),
        ("foot", "feet", 0.0, 0.0),  # "t" alone is shared
        ("ice", "ice-cream", 1.0, 3 / 8),
        ("", "dog", 0.0, 0.0),
    ],
)
def test_overlap_in_both_readings(word: str, cue: str, shorter: float, containment: float) -> None:
    assert overlap(word, cue, "shorter") == shorter
    assert overlap(word, cue, "containment") == containment


def runs(word: str) -> set[str]:
    return {word[start:end] for start, end in combinations(range(len(word) + 1), 2)} | {""}


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_the_longest_run_is_that_of_all_runs(first: str, second: str) -> None:
    longest = max(map(len, runs(first) & runs(second)))
    if first and second:
        share = longest / min(len(first), len(second)) if longest >= 3 else 0
        assert overlap(first, second, "shorter") == overlap(second, first, "shorter") == share


def test_exactly_the_limit_is_kept() -> None:
    assert apply_rules("towel", "towns", ALL).rule is None  # 3 of 5 letters
    assert apply_rules("towel", "towns", RuleSettings(overlap_limit=0.59)).rule == "overlap"


@pytest.mark.parametrize(
    ("text", "cue", "judged"),
    [
        ("Dogs", "puppy", JudgedWord("dog")),
        ("42", "puppy", JudgedWord("", "letters")),
        ("does", "puppy", JudgedWord("does", "stop_word")),  # and no doe
        ("Don't", "puppy", JudgedWord("dont", "stop_word")),
        ("oxen", "puppy", JudgedWord("ox", "short")),
        ("snimal", "puppy", JudgedWord("snimal", "unknown")),
        ("puppies", "puppy", JudgedWord("puppy", "overlap")),
        ("fell", "fall", JudgedWord("fell", "overlap")),
        ("took", "take", JudgedWord("take", "overlap")),
        ("fell", "stumble", JudgedWord("fell")),
    ],
)
def test_judged_by_all_rules(text: str, cue: str, judged: JudgedWord) -> None:
    assert apply_rules(text, cue, ALL) == judged


def test_the_vocabulary_is_letters_in_the_order_of_frequency() -> None:
    words = vocabulary.most_frequent(20_000)
    assert len(set(words)) == 20_000
    assert all(word == letters(word) for word in words)
    assert words[:3] == ("the", "to", "and")
    frequencies = [vocabulary.zipf(word) for word in words]
    assert frequencies == sorted(frequencies, reverse=True)
    assert vocabulary.zipf("toboggan") == pytest.approx(zipf_frequency("toboggan", "en", "large"), abs=0.011)
    assert [vocabulary.frequency_rank(words[place]) for place in (0, 777, 19_999)] == [0, 777, 19_999]
    assert (vocabulary.frequency_rank("snimal"), vocabulary.zipf("snimal")) == (None, 0)


def test_what_the_default_reading_of_overlap_costs_is_what_the_docs_say() -> None:
    """Counted on people's answers, and on pairs of words that only share letters."""
    examples = Path(__file__).parents[4] / "examples" / "people_words.json"
    answers = [(cue, row["response"]) for cue, rows in json.loads(examples.read_text()).items() for row in rows]
    dropped = {
        reading: Counter(
            f"{cue}/{word}"
            for cue, word in answers
            if apply_rules(word, cue, RuleSettings(overlap=reading)).rule == "overlap"
        )
        for reading in ("shorter", "containment")
    }
    once = ("man/human", "woman/man", "comfort/uncomfortable", "butterfly/fly")
    assert len(answers) == 150
    assert dropped == {"shorter": Counter({"man/woman": 3, **dict.fromkeys(once, 1)}), "containment": Counter()}
    for cue, word in (("man", "woman"), ("night", "light"), ("king", "ring"), ("hand", "sand"), ("mouse", "house")):
        assert apply_rules(word, cue, RuleSettings(overlap="shorter")).rule == "overlap"
        assert apply_rules(word, cue, RuleSettings(overlap="containment")).rule is None
