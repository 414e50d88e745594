"""The word of the hidden instruction: which one somebody gets, and whether a text has it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

from agents.stimuli import as_dict
from judging.study.pages.material import Material
from judging.study.pages.stimulus_material import SetMaterial

UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Signs of scripts that put no blanks between words (Chinese, Japanese), where no sign tells where a word ends."""


def plain(text: str) -> str:
    """The text in the one form in which texts are compared: capitals and the way of writing accents do not count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def has_word(text: str, word: str) -> bool:
    """Whether a text has a word as a whole: "pendulums" is another word than "pendulum".

    In scripts without blanks a word counts wherever its signs stand beside each other.
    """
    word = plain(word)
    if UNSPACED.search(word):
        return word in plain(text)
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", plain(text)) is not None


def fit_words(words: Sequence[str], material: Material) -> list[str]:
    """The words that a study may draw: those that stand nowhere in its set and its own texts.

    Otherwise participants would write them of themselves: whoever describes a clock names its parts. A part of another
    word is enough to leave a word out.
    """
    texts = [material.settings.model_dump_json()]
    if isinstance(material, SetMaterial):
        texts += [json.dumps(as_dict(stimulus), ensure_ascii=False) for stimulus in material.stimuli.values()]
    everything = plain(" ".join(texts))
    return [word for word in words if plain(word) not in everything]
