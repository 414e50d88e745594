"""Colour names: the standard's values, the hand-made map's own rules, and both distances."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageColor

from agents.vision.colors import ALIASES, CSS3, FOCAL, PALE, WORD, WORDS, lab, nearest_rgb, nearest_word, word_of

RGBS = st.tuples(*[st.integers(0, 255)] * 3)


def test_names_and_values_are_those_of_css3() -> None:
    """Pillow knows the names of CSS level 4: those of level 3 and one more."""
    ours = dict(CSS3) | {alias: CSS3[name] for alias, name in ALIASES.items()}
    assert len(CSS3) == 138
    assert len(ours) == 147
    assert ours == {name: ImageColor.getrgb(name) for name in set(ImageColor.colormap) - {"rebeccapurple"}}
    assert list(CSS3) == sorted(CSS3)
    assert len(set(CSS3.values())) == 138


def test_every_name_means_one_of_the_eleven_words() -> None:
    assert set(WORD) == set(CSS3)
    assert set(WORD.values()) == set(WORDS)
    assert all(word_of(word) == word for word in WORDS)
    assert word_of("slategrey") == word_of("slategray") == "gray"
    assert word_of("darkslategrey") == word_of("darkslategray") == "green"  # as in the published answers
    with pytest.raises(KeyError):
        word_of("rebeccapurple")


def test_a_name_that_ends_in_a_word_means_that_word() -> None:
    otherwise = {
        name: word for name, word in WORD.items() for suffix in WORDS if name.endswith(suffix) and word != suffix
    }
    assert otherwise == {
        "aliceblue": "white",
        "darkslategray": "green",
        "greenyellow": "green",
        "mediumvioletred": "pink",
        "navajowhite": "orange",
        "orangered": "orange",
        "palevioletred": "pink",
        "sandybrown": "orange",
    }


def test_pale_names_are_the_tints_of_white() -> None:
    """Every one is very light and has little chroma; the neutral ones, which are named by lightness, are kept."""
    assert len(PALE) == 22
    assert not {"white", "whitesmoke", "snow", "gainsboro", "lightgray"} & PALE
    assert {"ivory", "mintcream", "aliceblue", "lavender", "lightcyan", "beige"} <= PALE
    for name in PALE:
        lightness, a, b = lab(CSS3[name])
        assert lightness > 90, name
        assert (a * a + b * b) ** 0.5 < 26, name
    assert {word_of(nearest_rgb(CSS3[name], PALE)) for name in PALE} == {"white", "orange"}


@given(RGBS)
def test_nearest_by_rgb(rgb: tuple[int, int, int]) -> None:
    names = list(CSS3)
    distances = np.linalg.norm(np.array([CSS3[name] for name in names], dtype=np.float64) - rgb, axis=1)
    assert nearest_rgb(rgb) == names[int(distances.argmin())]
    kept = [name not in PALE for name in names]
    assert nearest_rgb(rgb, PALE) == names[int(np.where(kept, distances, np.inf).argmin())]


@pytest.mark.parametrize(
    ("rgb", "expected"),
    [
        ((255, 255, 255), (100.0, 0.0, 0.0)),
        ((0, 0, 0), (0.0, 0.0, 0.0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((119, 119, 119), (50.03, 0.0, 0.0)),
    ],
)
def test_lab_of_known_colors(rgb: tuple[int, int, int], expected: tuple[float, float, float]) -> None:
    np.testing.assert_allclose(lab(rgb), expected, atol=0.01)


@given(RGBS)
def test_nearest_word_by_lab(rgb: tuple[int, int, int]) -> None:
    words = [*(WORD | {"darkslategray": "gray"}).values(), *FOCAL]
    table = np.array([*(lab(CSS3[name]) for name in WORD), *FOCAL.values()])
    distances = np.linalg.norm(table - lab(rgb), axis=1)
    assert nearest_word(rgb) in {
        word for word, distance in zip(words, distances, strict=True) if distance < distances.min() + 1e-9
    }


def test_grays_are_black_gray_or_white() -> None:
    grays = [nearest_word((value, value, value)) for value in range(256)]
    assert [word for word, _ in groupby(grays)] == ["black", "gray", "white"]
    assert nearest_word((45, 55, 78)) == "gray"  # no night is green


def test_focal_colors_are_those_of_the_munsell_chips() -> None:
    """A Munsell value V is a luminance factor (the polynomial of 1943), which alone decides L*."""
    values = {"red": 4, "pink": 8, "orange": 6, "yellow": 8, "purple": 3, "green": 5, "blue": 5, "brown": 3}
    assert set(FOCAL) == set(values) == set(WORDS) - {"black", "gray", "white"}
    for word, v in values.items():
        luminance = 1.2219 * v - 0.23111 * v**2 + 0.23951 * v**3 - 0.021009 * v**4 + 0.0008404 * v**5
        # The renotation's factors are relative to magnesium oxide, of which a perfect diffuser is 1 / 0.975.
        lightness = 116 * (luminance * 0.975 / 100) ** (1 / 3) - 16
        assert FOCAL[word][0] == pytest.approx(lightness, abs=0.25), word


@pytest.mark.parametrize(
    ("seen", "rgb", "word"),
    [
        ("clear sky", (120, 170, 220), "blue"),
        ("grass", (90, 130, 50), "green"),
        ("dark wood", (101, 67, 33), "brown"),
        ("concrete", (140, 140, 138), "gray"),
        ("snow in the sun", (244, 246, 250), "white"),
        ("night", (12, 12, 14), "black"),
        ("fire engine", (206, 22, 32), "red"),
        ("an orange", (245, 130, 20), "orange"),
        ("a lemon", (250, 225, 60), "yellow"),
        ("cherry blossom", (250, 190, 200), "pink"),
        ("an aubergine", (70, 20, 90), "purple"),
    ],
)
def test_things_have_the_words_that_people_use(seen: str, rgb: tuple[int, int, int], word: str) -> None:
    assert word_of(nearest_rgb(rgb)) == word, seen
    assert nearest_word(rgb) == word, seen
