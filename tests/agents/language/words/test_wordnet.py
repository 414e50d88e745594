"""The packaged words of WordNet."""

from __future__ import annotations

from agents.language.words.vocabulary import WORDNET


def test_the_shipped_words_are_wordnets() -> None:
    lines = [line for line in WORDNET.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    between = lines.index("")
    # What WordNet 3.0 has of words of letters alone.
    assert between == 77_503
    assert sum("n" in line.split()[1].lower() for line in lines[:between]) == 55_191
    assert sum("v" in line.split()[1] for line in lines[:between]) == 8_429
