"""Words in any script: against uniseg, against spaces, and English as it was always counted."""

import json
import re
import string
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import word_boundaries
from agents.word_boundaries import count_words, words

# By uniseg 0.10.1, which passes Unicode's WordBreakTest: the parts of a text (NFKC, casefold, straight apostrophes)
# that hold a letter or a digit.
BY_UNISEG = json.loads((Path(__file__).parent / "words_by_uniseg.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BY_UNISEG)
def test_words_are_those_of_uniseg(name: str) -> None:
    assert words(BY_UNISEG[name]["text"]) == BY_UNISEG[name]["words"]


@pytest.mark.parametrize(
    "text",
    [
        "मुझे चाय बहुत पसंद है और तुम क्या पीते हो",
        "நான் தமிழ் பேசுகிறேன் இன்று",
        "كِتَابٌ جَمِيلٌ جِدًّا",
        "আমি প্রতিদিন সকালে নদীর ধারে হাঁটি",
        "می\u200cخواهم کتاب\u200cها را",
        unicodedata.normalize("NFD", "café naïve à Noël"),
    ],
)
def test_scripts_with_spaces_have_a_word_between_them(text: str) -> None:
    assert words(text) == [unicodedata.normalize("NFKC", word).casefold() for word in text.split()]
    assert count_words(text) == len(text.split())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Don't, it’s 'quoted' rock'n'roll", "don't it's quoted rock'n'roll"),
        ("a well-known mother-in-law - yes", "a well-known mother-in-law yes"),
        ("3.5 or 1,000 at 5:30, 1-2 of the 80's, 5'10", "3.5 or 1,000 at 5:30 1-2 of the 80's 5'10"),
        ("e.g. in the U.S., end.Start and/or a_b; R&B", "e g in the u s end start and or a b r b"),
        ("#tag @me http://a.b/c?d=1", "tag me http a b c d 1"),
        ("x² and ½ cup, 1st ①", "x2 and 1⁄2 cup 1st 1"),
        (
            "naïve café – it’s 3.5 km, e.g. the 80’s “well‐known” é;é é:é é_é",
            "naïve café it's 3.5 km e g the 80's well‐known é é é é é é",
        ),
        ("😀 👍🏽 …", ""),
        ("🇬🇧hello \u200ehello", "hello hello"),
    ],
)
def test_the_choices_that_unicode_leaves_open(text: str, found: str) -> None:
    assert words(text) == found.split()


@given(st.text(alphabet=string.ascii_letters + string.digits + " .,:;'-_!?\"/#\n", max_size=60))
def test_ascii_has_the_words_of_the_general_rules(text: str) -> None:
    """And those by which English was counted before Unicode's rules were used."""
    before = re.compile(r"[^\W_]+(?:(?:['’\-]|(?<=\d)[.,:](?=\d))[^\W_]+)*")
    assert words(text) == before.findall(text.casefold())
    assert words(text) == word_boundaries._any_word().findall(text.casefold())
    assert count_words(text) == len(text.split())


def test_scripts_without_spaces() -> None:
    """A character of Chinese and Hiragana is a word, a run of Katakana too; Thai would take a dictionary."""
    assert words("我喜欢咖啡") == list("我喜欢咖啡")
    assert words("コーヒーを飲む") == ["コーヒー", "を", "飲", "む"]
    assert words("ภาษาไทย สวัสดีครับ ราคา ๑๒") == ["ภาษาไทย", "สวัสดีครับ", "ราคา", "๑๒"]
    assert count_words("我喜欢 pizza - 😀。") == 3 + 1 + 1 + 1
    assert count_words("ภาษาไทย สวัสดี") == 2


def test_english_between_spaces_is_counted_as_the_papers_programs_do() -> None:
    for text in ("well - and/or “this”…", "naïve café :) 😀 e.g. it’s", "", "  two   words\n"):
        assert count_words(text) == len(text.split())
