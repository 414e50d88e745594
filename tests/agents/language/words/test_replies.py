"""How a reply to a cue word is read, and which of its words the rules leave."""

from __future__ import annotations

import pytest

from agents.language.words.replies import no_word, word_answer, words_said
from agents.language.words.rules import RuleSettings
from agents.stimuli import WordStimulus

APOLOGIES = ["I'm sorry, but I can't help with that.", "As an AI, I have no associations.", "Sorry, no."]


def asked(cue: str) -> WordStimulus:
    return WordStimulus(id="w", task="word_association", cue=cue)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Cat.", ["cat"]),
        ("The dog, the cat", ["dog", "cat"]),
        ("1) ice-cream, don't 42 naïve x", ["ice-cream", "don't", "naïve", "x"]),
        ("...", []),
        ("**Butter**", ["butter"]),
        ("A word I associate with bread is butter.", ["butter"]),
        ("The word is: butter", ["butter"]),
        ("Bread → butter", ["butter"]),
        ("Bread butter", ["bread", "butter"]),
        ("Cue: bread; Guess: butter", ["butter"]),
        ("Cue: hot; Guess: cold Cue: bread; Guess: butter", ["butter"]),
        ("A sandwich", ["sandwich"]),
        ("Sorrow", ["sorrow"]),
        *((text, []) for text in APOLOGIES),
    ],
)
def test_words_of_a_reply(text: str, expected: list[str]) -> None:
    assert words_said(text, "bread") == expected


@pytest.mark.parametrize(
    ("cue", "text", "word", "candidates", "skipped"),
    [
        ("Dame", " Lady.", "lady", ["lady"], []),
        ("Dame", "Dame? Lady", "lady", ["lady"], [("dame", "cue")]),
        ("Dame", "Cue: dame; Guess: knights", "knight", ["knight"], []),
        ("grand", "Grandiose royal palaces", "royal", ["royal", "palace"], [("grandiose", "overlap")]),
        ("grand", "of xqzzt", "", [], [("of", "stop_word"), ("xqzzt", "unknown")]),
        ("sing", "ox sang choir", "choir", ["choir"], [("ox", "short"), ("sang", "overlap")]),
    ],
)
def test_the_first_word_that_keeps_the_rules_is_the_answer(
    cue: str, text: str, word: str, candidates: list[str], skipped: list[tuple[str, str]]
) -> None:
    answer = word_answer(asked(cue), text, RuleSettings())
    assert (answer.word, answer.candidates) == (word, candidates)
    assert [(one.word, one.rule) for one in answer.skipped] == skipped


def test_without_rules_only_the_cue_goes() -> None:
    answer = word_answer(asked("grand"), "Grand grandiose", RuleSettings(rules=()))
    assert (answer.word, [(one.word, one.rule) for one in answer.skipped]) == ("grandiose", [("grand", "cue")])


def test_a_reply_without_an_acceptable_word_says_what_was_passed_over() -> None:
    answer = word_answer(asked("grand"), "Of grandiose", RuleSettings())
    verdict = no_word(answer, "Of grandiose")
    assert verdict is not None
    assert (verdict.filter, verdict.rejected) == ("no_word", True)
    assert verdict.found == "Of grandiose [of (stop_word), grandiose (overlap)]"
    assert no_word(word_answer(asked("grand"), "piano", RuleSettings()), "piano") is None
