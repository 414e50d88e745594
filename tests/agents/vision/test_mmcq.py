"""The colour agents: median cut beside the package whose colours the published agents gave, and the words."""

import io
from pathlib import Path
from typing import Any

import colorthief
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import ColorAnswer, plain
from agents.contract import Agent, Draw, Verdict
from agents.images import Image
from agents.stimuli import ColorStimulus
from agents.vision.mmcq import WHITE, histogram, palette
from tests.helpers.bad_images import encoded

# The reference asks Pillow for its pixels in a way that newer versions of Pillow call deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*getdata.*:DeprecationWarning")
Pixels = NDArray[np.uint8]
PHOTOGRAPHS = sorted((Path(__file__).parents[3] / "examples" / "images").glob("c*.*"))


def png(pixels: Pixels) -> bytes:
    return encoded(PILImage.fromarray(pixels), compress_level=0)


def reference_palette(pixels: Pixels, n: int, quality: int) -> list[tuple[tuple[int, int, int], int]]:
    """ColorThief's colours, with populations and without its empty boxes; no entry where it raises."""
    made = []
    original = colorthief.MMCQ.quantize

    def spy(*arguments: object) -> object:
        made.append(original(*arguments))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(colorthief.MMCQ, "quantize", staticmethod(spy))
        thief = colorthief.ColorThief(io.BytesIO(png(pixels)))
        if not reference_histogram(pixels, quality).any():
            with pytest.raises(Exception, match="Empty pixels"):
                thief.get_palette(n, quality)
            return []
        colors = thief.get_palette(n, quality)
    boxes = made[0].vboxes.contents
    assert [box["color"] for box in boxes] == colors
    return [(box["color"], box["vbox"].count) for box in boxes if box["vbox"].count]


def reference_histogram(pixels: Pixels, quality: int) -> NDArray[np.int64]:
    """The rule, pixel by pixel."""
    counts = np.zeros((32, 32, 32), dtype=np.int64)
    for red, green, blue in pixels.reshape(-1, 3)[::quality].tolist():
        if not (red > 250 and green > 250 and blue > 250):
            counts[red // 8, green // 8, blue // 8] += 1
    return counts


@st.composite
def images(draw: st.DrawFn, largest: int = 24) -> Pixels:
    """Small images of the kinds that exercise different parts: many bins, few bins, ties, whites."""
    height = draw(st.integers(1, largest))
    width = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["noise", "cluster", "solid", "near white", "ties"]))
    shape = (height, width, 3)
    if kind == "noise":
        pixels = rng.integers(0, 256, shape)
    elif kind == "cluster":
        pixels = np.clip(rng.normal(rng.integers(0, 256, 3), rng.uniform(1, 60), shape), 0, 255)
    elif kind == "ties":
        few = rng.integers(0, 256, (int(rng.integers(1, 9)), 3))
        pixels = few[np.arange(height * width) % len(few)].reshape(shape)
    elif kind == "solid":
        pixels = np.broadcast_to(rng.integers(0, 256, 3), shape)
    else:
        pixels = rng.integers(247, 256, shape)
    return np.ascontiguousarray(pixels.astype(np.uint8))


@settings(max_examples=15)
@given(images(), st.sampled_from([*range(2, 11), 24, 33, 256]), st.sampled_from([1, 1, 2, 3, 10]))
def test_palettes_equal_the_reference(pixels: Pixels, n: int, quality: int) -> None:
    np.testing.assert_array_equal(histogram(pixels, quality), reference_histogram(pixels, quality))
    assert palette(pixels, n, quality) == (reference_palette(pixels, n, quality) or [(WHITE, 0)])


# the agents


def answer(data: bytes, name: str = "mmcq", **overrides: Any) -> ColorAnswer:
    return judged(data, name, **overrides)[0]


def judged(data: bytes, name: str = "mmcq", **overrides: Any) -> tuple[ColorAnswer, list[Verdict]]:
    """The answer, and what the agent's filters found in it."""
    agent: Agent[Any] = catalogue.get(name).make(overrides)
    agent.open()
    agent.load("cpu")
    stimulus = ColorStimulus(id="picture", task="color_estimation", image=Image("picture.png", data=data))
    [reply] = agent.respond([agent.prepare(stimulus)], [Draw(seed=1)])
    assert not isinstance(reply, Exception)
    assert isinstance(reply.answer, ColorAnswer)
    verdicts = [judge(stimulus, reply) for judge in agent.declaration().filters]
    return reply.answer, [verdict for verdict in verdicts if verdict is not None]


def solid(color: tuple[int, ...]) -> Pixels:
    return np.full((20, 20, len(color)), color, dtype=np.uint8)


@pytest.mark.parametrize("path", PHOTOGRAPHS, ids=lambda path: path.stem)
def test_photographs_equal_the_reference(path: Path) -> None:
    with PILImage.open(path) as image:
        picture = image.convert("RGB")
    picture.thumbnail((160, 160))
    pixels = np.asarray(picture)
    assert palette(pixels)[0][0] == colorthief.ColorThief(io.BytesIO(png(pixels))).get_color(quality=1)


def test_an_answer_has_the_word_the_name_and_the_palette() -> None:
    pixels = solid((255, 0, 0))
    pixels[:5] = (0, 0, 255)
    assert plain(answer(png(pixels))) == {
        "color": "blue",
        "css_name": "blue",
        "rgb": [4, 4, 252],
        "palette": [{"rgb": [4, 4, 252], "population": 100}, {"rgb": [252, 4, 4], "population": 300}],
    }


def test_a_white_image_is_white_and_so_is_a_transparent_image() -> None:
    white = {"color": "white", "css_name": "white", "rgb": [255] * 3, "palette": [{"rgb": [255] * 3, "population": 0}]}
    assert plain(answer(png(solid((255, 255, 255))))) == white
    assert plain(answer(png(solid((0, 0, 200, 0))))) == white


@pytest.mark.parametrize(
    ("rgb", "settings", "css_name", "color"),
    [
        # Dark wood: darkolivegreen is the nearest CSS3 colour in RGB; seen, it is brown.
        ((84, 60, 36), {}, "darkolivegreen", "green"),
        ((84, 60, 36), {"name": "mmcq-lab"}, "darkolivegreen", "brown"),
        # Pale names are taken out before the nearest is sought, as in the published program.
        ((228, 228, 244), {}, "whitesmoke", "white"),
        ((228, 228, 244), {"names": "all"}, "lavender", "purple"),
        ((47, 79, 79), {}, "darkslategray", "green"),  # as in the published answers
    ],
)
def test_how_a_colour_is_named(rgb: tuple[int, int, int], settings: dict[str, Any], css_name: str, color: str) -> None:
    found = answer(png(solid(rgb)), **settings)
    assert (found.css_name, found.color) == (css_name, color)


def test_a_gray_that_is_called_a_hue_is_noted_and_stands() -> None:
    """Of all grays those from 36 to 83, by bins of 8: 40 to 80; a dark blue is green, too, and no gray."""
    noted = {}
    for level in range(4, 256, 8):
        found, verdicts = judged(png(solid((level, level, level))))
        if verdicts:
            [verdict] = verdicts
            noted[level] = found.color
            assert (verdict.filter, verdict.rejected) == ("gray_with_a_hue", False)
            assert f"({level}, {level}, {level}) is a neutral gray" in verdict.found
            of_lab, of_its_filters = judged(png(solid((level, level, level))), "mmcq-lab")
            assert verdict.found.endswith(f"mmcq-lab says {of_lab.color}")
            assert of_its_filters == []
    assert noted == dict.fromkeys(range(36, 84, 8), "green")
    assert judged(png(solid((45, 55, 78))))[0].color == "green"
    assert judged(png(solid((45, 55, 78))))[1] == []


def test_a_picture_of_grays_from_black_to_white_is_noted() -> None:
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], 3, axis=2)
    found, verdicts = judged(png(np.ascontiguousarray(np.repeat(ramp, 4, axis=1))))
    assert found.color == "green"
    assert [verdict.filter for verdict in verdicts] == ["gray_with_a_hue"]
