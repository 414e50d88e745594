"""Kept embeddings: computed once, never trusted, never needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from agents.language.words.embedding_cache import CHECKED, embedded

WORDS = [f"word{number}" for number in range(100)]
ABOUT = {"model": "a"}


class Model:
    """Vectors of words, and how many words each call asked for."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        self.calls.append(len(words))
        return np.array([[len(word), int(word[4:]), 1.0] for word in words], np.float32)


def test_words_are_embedded_once(own_cache: Path) -> None:
    model = Model()
    first = embedded(WORDS, ABOUT, model)
    assert np.array_equal(embedded(WORDS, ABOUT, model), first)
    assert model.calls == [100, CHECKED]
    assert [path.suffix for path in own_cache.iterdir()] == [".safetensors"]
    embedded(WORDS[1:], ABOUT, model)
    embedded(WORDS, {"model": "b"}, model)
    assert model.calls[2:] == [99, 100]


def _shift(path: Path) -> None:
    save_file({"vectors": load_file(path)["vectors"] + 1}, path)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("damage", [_shift, _cut])
def test_what_is_damaged_is_made_anew(own_cache: Path, damage: Callable[[Path], None]) -> None:
    model = Model()
    first = embedded(WORDS, ABOUT, model)
    [path] = own_cache.iterdir()
    whole = path.read_bytes()
    damage(path)
    assert np.array_equal(embedded(WORDS, ABOUT, model), first)
    assert model.calls[-1] == 100
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(own_cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("no folder")
    with caplog.at_level(logging.WARNING, "turinglike.embeddings"):
        assert embedded(WORDS, ABOUT, Model()).shape == (100, 3)
    assert "cannot be written" in caplog.text
    assert own_cache.read_text() == "no folder"
