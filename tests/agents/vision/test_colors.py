"""Colour names: the standard's values, the hand-made map's own rules, and both distances."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageColor

from agents.answers import COLORS
from agents.vision.colors import ALIASES, CSS3, FOCAL, PALE, WORD, lab, nearest_rgb, nearest_word, word_of

RGBS = st.tuples(*[st.integers(0, 255)] * 3)


def test_names_and_values_are_those_of_css3() -> None:
    """Pillow knows the names of CSS level 4: those of level 3 and one more."""
    ours = dict(CSS3) | {alias: CSS3[name] for alias, name in ALIASES.items()}
    assert len(CSS3) == 138
    assert len(ours) == 147
    assert ours == {name: ImageColor.getrgb(name) for name in set(ImageColor.colormap) - {"rebeccapurple"}}
    assert list(CSS3) == sorted(CSS3)
    assert len(PALE) == 22


def test_every_name_means_one_of_the_eleven_words() -> None:
    assert set(WORD) == set(CSS3)
    assert set(WORD.values()) == set(COLORS)
    assert all(word_of(word) == word for word in COLORS)
    assert word_of("slategrey") == word_of("slategray") == "gray"
    assert word_of("darkslategrey") == word_of("darkslategray") == "green"  # as in the published answers
    with pytest.raises(KeyError):
        word_of("rebeccapurple")


@given(RGBS)
def test_nearest_by_rgb(rgb: tuple[int, int, int]) -> None:
    names = list(CSS3)
    distances = np.linalg.norm(np.array([CSS3[name] for name in names], dtype=np.float64) - rgb, axis=1)
    assert nearest_rgb(rgb) == names[int(distances.argmin())]
    kept = [name not in PALE for name in names]
    assert nearest_rgb(rgb, PALE) == names[int(np.where(kept, distances, np.inf).argmin())]


def test_lab_of_known_colors() -> None:
    np.testing.assert_allclose(lab((255, 0, 0)), (53.24, 80.09, 67.20), atol=0.01)
    np.testing.assert_allclose(lab((0, 0, 255)), (32.30, 79.19, -107.86), atol=0.01)


@given(RGBS)
def test_nearest_word_by_lab(rgb: tuple[int, int, int]) -> None:
    words = [*{**WORD, "darkslategray": "gray"}.values(), *FOCAL]
    table = np.array([*(lab(CSS3[name]) for name in WORD), *FOCAL.values()])
    distances = np.linalg.norm(table - lab(rgb), axis=1)
    assert nearest_word(rgb) in {
        word for word, distance in zip(words, distances, strict=True) if distance < distances.min() + 1e-9
    }


def test_grays_are_black_gray_or_white() -> None:
    grays = [nearest_word((value, value, value)) for value in range(256)]
    assert [word for word, _ in groupby(grays)] == ["black", "gray", "white"]
    assert nearest_word((45, 55, 78)) == "gray"  # no night is green


@pytest.mark.parametrize(
    ("rgb", "word"),
    [
        ((120, 170, 220), "blue"),  # clear sky
        ((90, 130, 50), "green"),  # grass
        ((101, 67, 33), "brown"),  # dark wood
        ((140, 140, 138), "gray"),  # concrete
        ((244, 246, 250), "white"),  # snow in the sun
        ((12, 12, 14), "black"),  # night
        ((206, 22, 32), "red"),  # fire engine
        ((245, 130, 20), "orange"),  # an orange
        ((250, 225, 60), "yellow"),  # a lemon
        ((250, 190, 200), "pink"),  # cherry blossom
        ((70, 20, 90), "purple"),  # an aubergine
    ],
)
def test_things_have_the_words_that_people_use(rgb: tuple[int, int, int], word: str) -> None:
    assert word_of(nearest_rgb(rgb)) == nearest_word(rgb) == word
