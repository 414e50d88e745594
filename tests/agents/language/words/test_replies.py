"""How a reply to a cue word is read, and which of its words the rules leave."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.language.words.replies import no_word, word_answer
from agents.language.words.rules import RuleSettings
from agents.stimuli import WordStimulus

# What SmolLM2-135M-Instruct replied, cut at 10 tokens, to 40 cues in two forms and, as a completion, to 15.
MODEL_REPLIES = Path(__file__).parent / "data" / "model_replies.jsonl"
RULES = RuleSettings()


def stimulus(cue: str) -> WordStimulus:
    return WordStimulus(id="w", task="word_association", cue=cue)


def word(text: str, cue: str = "bread", *, cut: bool = False) -> str:
    return word_answer(stimulus(cue), text, RULES, cut=cut).word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Cat.", ["cat"]),
        ("The dog, the cat", ["dog", "cat"]),
        ("1) ice-cream, don't 42 naïve x", ["ice-cream", "don't", "naïve", "x"]),
        ("...", []),
        ("Cue: hot; Guess: cold Cue: bread; Guess: butter", ["butter"]),
        ("A sandwich", ["sandwich"]),
        ("I'm sorry, but I can't help with that.", []),
        ("As an AI, I have no associations.", []),
    ],
)
def test_words_of_a_reply(text: str, expected: list[str]) -> None:
    assert word_answer(stimulus("bread"), text, RuleSettings(rules=())).candidates == expected


@pytest.mark.parametrize(
    ("cue", "text", "candidates", "skipped"),
    [
        ("Dame", " Lady.", ["lady"], []),
        ("Dame", "Dame? Lady", ["lady"], [("dame", "cue")]),
        ("Dame", "Cue: dame; Guess: knights", ["knight"], []),
        ("grand", "Grandiose royal palaces", ["royal", "palace"], [("grandiose", "overlap")]),
        ("grand", "of xqzzt", [], [("of", "stop_word"), ("xqzzt", "unknown")]),
        ("sing", "ox sang choir", ["choir"], [("ox", "short"), ("sang", "overlap")]),
        ("sun", "Probably hot", ["hot"], [("probably", "prompt_word")]),
        ("question", "Answer.", ["answer"], []),  # a word of the question, but the entire reply
    ],
)
def test_the_first_word_that_keeps_the_rules_is_the_answer(
    cue: str, text: str, candidates: list[str], skipped: list[tuple[str, str]]
) -> None:
    answer = word_answer(stimulus(cue), text, RULES)
    assert (answer.word, answer.candidates) == ("".join(candidates[:1]), candidates)
    assert [(entry.word, entry.rule) for entry in answer.skipped] == skipped


def test_a_reply_without_an_acceptable_word_names_the_skipped_ones() -> None:
    verdict = no_word(word_answer(stimulus("grand"), "Of grandiose", RULES), "Of grandiose")
    assert verdict is not None
    assert (verdict.filter, verdict.rejected) == ("no_word", True)
    assert verdict.found == "Of grandiose [of (stop_word), grandiose (overlap)]"
    assert no_word(word_answer(stimulus("grand"), "piano", RULES), "piano") is None


BUTTER = [
    "🧈 Butter",
    "**Butter**",
    "`butter`",
    "“Butter”",
    "[butter]",
    "\\boxed{butter}",
    '{"word": "butter"}',
    "<answer>butter</answer>",
    "<think>The word is knife.</think>\n\nbutter",
    "1. Butter\n2. Jam",
    "**Answer:** Butter",
    "Q: Name a word that you associate with bread.\nA: Butter",
    "Name a word that you associate with [bread]. Please provide your answer with only one word.\n\nButter",
    "Bread → butter",
    "Bread butter",
    "It’s butter.",
    "I’d say “butter”",
    "When I hear bread, I think of butter.",
    "I associate bread with butter.",
    'A word associated with [bread] could be "butter".',
    'The first word that comes to mind when I hear "bread" is "butter".',
    'The word "butter" is strongly associated with bread.',
    "Butter comes to mind.",
    "Butter, because it is spread on bread.",
    "Butter. It is spread on bread.",
    "Of course, butter!",
    "Sure, here's a word: butter",
    "Great question! Butter",
    "Guess: butter Cue: unintentional; Gu",
    "butter\nCue: hot\nGuess: cold",
    "butter\n\nCue",
    "The first word is butter from bread",
    "Cue: hot; Guess: cold Cue: bread; Guess: butter Cue: see; Guess: look",
    "My guess: butter",
    "butter\n\nThis is a classic example of a",
]


NOTHING = [
    "The answer is: bread",
    'The word "bread" is a noun',
    "What can I say?",
    "I'm ready to help. What's the task?",
    "I have no words to respond to now.",
    "Please complete the prompt.\nCue: nearly",
    "Cue: nearly; Guess: half;",
    "Guess: here Cue: positive; Gu",
    "Please complete the prompt below:\n\nCue",
    'The word "bread" is derived from the',
    'The term "bread" was coined by John',
    "No idea.",
]


@pytest.mark.parametrize(
    ("text", "expected"), [*((text, "butter") for text in BUTTER), *((text, "") for text in NOTHING)]
)
def test_the_word_of_a_reply(text: str, expected: str) -> None:
    assert word(text) == expected


def test_a_reply_cut_in_a_phrase_has_no_word() -> None:
    text = "The word I associate with bread is a crusty old"
    assert (word(text), word(text, cut=True)) == ("crusty", "")


def test_no_word_of_the_task_is_taken_from_a_models_reply() -> None:
    task = "word associate term example cue guess answer one related provide please say think that thats cant what "
    task += "sentence task complete prompt mean yes alright is you me"
    for line in MODEL_REPLIES.read_text("utf-8").splitlines():
        reply = json.loads(line)
        assert word(reply["text"], reply["cue"], cut=True) not in task.split(), line


@pytest.mark.parametrize("piece", ["sure, ", "is ", "<a>", "“", "Cue: bread ", "a: "])
def test_a_long_reply_is_read(piece: str) -> None:
    """An expression that backtracks for ever would take longer than a test may."""
    assert word((piece * 20_000)[:30_000]) in ("", "sure")


@given(st.text(alphabet="[]{}()\"':,.-*#|\n 0123456789xyXYms redCue;", max_size=400))
def test_any_reply_is_read(text: str) -> None:
    word(text)
