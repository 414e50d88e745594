"""How a reply to a cue word is read, and which of its words the rules leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.language.words.replies import no_word, word_answer, words_said
from agents.language.words.rules import RuleSettings
from agents.stimuli import WordStimulus

# What SmolLM2-135M-Instruct said, cut at 10 tokens, to 40 cues in two forms and, as a completion, to 15.
MODEL_REPLIES = Path(__file__).parent / "data" / "model_replies.jsonl"
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


TOLD = [
    "Butter.",
    "butter!!!",
    "🧈 Butter",
    "**Butter**",
    "__butter__",
    "`butter`",
    "“Butter”",
    "‘butter’",
    "'Butter'.",
    "«butter»",
    "„Butter“",
    "[butter]",
    "<butter>",
    "{butter}",
    "\\boxed{butter}",
    '{"word": "butter"}',
    "<answer>butter</answer>",
    "<think>The word is knife.</think>\n\nbutter",
    "- Butter",
    "1. Butter\n2. Jam",
    "1) Butter 2) Jam",
    "Answer: Butter",
    "**Answer:** Butter",
    "Answer - butter",
    "Q: Name a word that you associate with bread.\nA: Butter",
    "Name a word that you associate with [bread]. Please provide your answer with only one word.\n\nButter",
    "bread = butter",
    "The word is butter",
    "It’s butter.",
    "It'd be butter.",
    "I would say butter.",
    "I’d say “butter”",
    "I'd go with butter.",
    "I think of butter",
    "How about butter?",
    "When I hear bread, I think of butter.",
    "I associate bread with butter.",
    'A word associated with [bread] could be "butter".',
    'The first word that comes to mind when I hear "bread" is "butter".',
    'The word "butter" is strongly associated with bread.',
    "Butter is a word I associate with bread.",
    "Butter comes to mind.",
    "Butter, because it is spread on bread.",
    "Butter. It is spread on bread.",
    "Butter (a spread)",
    "Sure! Butter",
    "Of course, butter!",
    "Certainly! The word is butter.",
    "Sure, here's a word: butter",
    "Great question! Butter",
    "Probably butter",
    "Guess: butter Cue: unintentional; Gu",
    "butter; Guess: knife; Guess: fork",
    "butter\nCue: hot\nGuess: cold",
    "Cue: bread\nGuess: butter",
    "Cue: hot; Guess: cold Cue: bread; Guess: butter Cue: see; Guess: look",
    "My guess: butter",
    "butter\n\nThis is a classic example of a",
]


@pytest.mark.parametrize("text", TOLD)
def test_the_word_that_a_reply_tells(text: str) -> None:
    assert word_answer(asked("bread"), text, RuleSettings()).word == "butter"


@pytest.mark.parametrize(
    "text",
    [
        "The answer is: bread",
        'The word "bread" refers to the',
        'The word "bread" is a noun',
        "The word is",
        "That's a classic example.",
        "That’s a classic example.",
        "You can't find one",
        "What can I say?",
        "I'm ready to help. What's the task?",
        "I have no words to respond to now.",
        "Please complete the prompt.\nCue: nearly",
        "Cue: nearly; Guess: half;",
        "Guess: here Cue: positive; Gu",
        "Cue:\n\nCue:",
        "Answer:",
        "No idea.",
    ],
)
def test_a_reply_that_tells_no_word(text: str) -> None:
    assert word_answer(asked("bread"), text, RuleSettings()).word == ""


def test_a_word_of_the_question_is_an_answer_where_it_is_all_that_is_said() -> None:
    assert word_answer(asked("question"), "Answer.", RuleSettings()).word == "answer"
    answer = word_answer(asked("sun"), "Probably hot", RuleSettings())
    assert [(one.word, one.rule) for one in answer.skipped] == [("probably", "prompt_word")]


def test_a_reply_cut_in_a_phrase_tells_no_word() -> None:
    text = "The word I associate with bread is a crusty old"
    assert word_answer(asked("bread"), text, RuleSettings()).word == "crusty"
    assert word_answer(asked("bread"), text, RuleSettings(), cut=True).word == ""


@pytest.mark.parametrize("reply", MODEL_REPLIES.read_text("utf-8").splitlines())
def test_no_word_of_the_task_is_taken_from_what_a_model_says(reply: str) -> None:
    said = json.loads(reply)
    own = "word associate term example cue guess answer one related provide please say think that thats cant what "
    own += "sentence task complete prompt mean yes alright is you me"
    taken = word_answer(asked(said["cue"]), said["text"], RuleSettings(), cut=True).word
    assert taken not in own.split()


def test_a_long_reply_is_read_in_no_time_that_grows_with_its_square() -> None:
    for text in ("sure, " * 5_000, "is " * 9_000, "<a>" * 9_000, "“" * 20_000, "Cue: bread " * 2_000, "a: " * 9_000):
        assert word_answer(asked("bread"), text, RuleSettings()).word in ("", "sure")
