"""How WordNet's words are taken out of its database."""

from __future__ import annotations

from pathlib import Path

import make_wordnet
import pytest

from agents.language.words.vocabulary import WORDNET

LICENCE = "  1 This software and database is being provided to you\n"
FILES = {
    "index.noun": "dog n 7 5 @ ~ 7 1 0\nhot_dog n 3\nmars n 2\nt-shirt n 1\nfoot n 11\n",
    "index.verb": "dog v 1 2 @ 1 1 0\ntake v 42\n",
    "index.adj": "hot a 21\n",
    "index.adv": "hot r 1\n",
    "data.noun": "00000001 05 n 03 dog 0 domestic_dog 0 Canis 0 002 @ 00000002 n 0000\n"
    "00000002 17 n 02 Mars 0 Red_Planet 0 001 @i\n00000003 08 n 0a foot 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 000\n",
    "cntlist.rev": "dog%1:05:00:: 1 42\ndog%2:38:00:: 1 2\nhot_dog%1:13:01:: 1 9\ntake%2:30:01:: 3 7\n",
    "noun.exc": "feet foot\nhot_dogs hot_dog\ngas gas\n",
    "verb.exc": "took take\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        own = LICENCE if name.startswith(("index", "data")) else ""
        (tmp_path / name).write_text(own + text)
    return tmp_path


def test_words_of_letters_with_kinds_counts_and_irregular_forms(folder: Path) -> None:
    lines = [line for line in make_wordnet.build(folder, "# header\n").splitlines() if not line.startswith("#")]
    assert lines == ["dog nv 44", "foot n", "hot a", "mars N", "take v 7", "", "n feet foot", "v took take"]


def test_the_shipped_words_are_wordnets() -> None:
    lines = [line for line in WORDNET.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    between = lines.index("")
    # What WordNet 3.0 has of words of letters alone.
    assert between == 77_503
    assert sum("n" in line.split()[1].lower() for line in lines[:between]) == 55_191
    assert sum("v" in line.split()[1] for line in lines[:between]) == 8_429
