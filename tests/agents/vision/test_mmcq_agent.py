"""The colour agent, through the catalogue and the contract."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import ColorAnswer, plain
from agents.contract import Agent, Draw
from agents.errors import ImageError, InputError
from agents.images import Image
from agents.stimuli import ColorStimulus


def make(name: str = "mmcq", **overrides: Any) -> Agent[Any]:
    agent = catalogue.get(name).make(overrides)
    agent.open()
    agent.load("cpu")
    return agent


def stimulus(data: bytes, name: str = "image.png") -> ColorStimulus:
    return ColorStimulus(id=name, task="color_estimation", image=Image(name, data=data))


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    PILImage.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def answer(agent: Agent[Any], data: bytes) -> ColorAnswer:
    [reply] = agent.respond([agent.prepare(stimulus(data))], [Draw(seed=1)])
    assert not isinstance(reply, Exception)
    assert isinstance(reply.answer, ColorAnswer)
    return reply.answer


def solid(color: tuple[int, ...], size: tuple[int, int] = (20, 20)) -> np.ndarray:
    return np.full((*size, len(color)), color, dtype=np.uint8)


def test_the_whole_answer() -> None:
    pixels = solid((255, 0, 0))
    pixels[:5] = (0, 0, 255)
    assert plain(answer(make(), png(pixels))) == {
        "color": "blue",
        "css_name": "blue",
        "rgb": [4, 4, 252],
        "palette": [{"rgb": [4, 4, 252], "population": 100}, {"rgb": [252, 4, 4], "population": 300}],
    }
    assert answer(make(order="population"), png(pixels)).color == "red"


@pytest.mark.parametrize("name", ["mmcq", "mmcq-lab"])
def test_a_white_image_is_white(name: str) -> None:
    white = answer(make(name), png(solid((255, 255, 255))))
    assert plain(white) == {
        "color": "white",
        "css_name": "white",
        "rgb": [255, 255, 255],
        "palette": [{"rgb": [255, 255, 255], "population": 0}],
    }


def test_a_transparent_image_is_seen_on_white() -> None:
    pixels = solid((0, 0, 200, 0))
    assert answer(make(), png(pixels)).color == "white"
    pixels[:4, :, 3] = 255
    seen = answer(make(), png(pixels))
    assert seen.color == "blue"
    assert seen.palette is not None
    assert [swatch.population for swatch in seen.palette] == [80]


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "I;16", "1"])
def test_images_of_other_modes(mode: str) -> None:
    image = PILImage.new(mode, (9, 7)) if mode != "CMYK" else PILImage.new(mode, (9, 7), (0, 0, 0, 255))
    file = io.BytesIO()
    image.save(file, "JPEG" if mode == "CMYK" else "PNG")
    assert answer(make(), file.getvalue()).color == "black"


@pytest.mark.parametrize("name", ["mmcq", "mmcq-lab"])
def test_a_batch_answers_as_its_items_do(name: str) -> None:
    agent = make(name)
    rng = np.random.default_rng(5)
    shapes = [(1, 1, 3), (30, 40, 3), (17, 5, 4), (64, 64, 3), (3, 200, 3)]
    files = [png(rng.integers(0, 256, shape, dtype=np.uint8)) for shape in shapes]
    with ThreadPoolExecutor(4) as threads:
        prepared = list(threads.map(agent.prepare, [stimulus(data) for data in files * 8]))
    replies = agent.respond(prepared, [Draw(seed=seed) for seed in range(len(prepared))])
    assert [getattr(reply, "answer", reply) for reply in replies] == [answer(agent, data) for data in files * 8]
    assert agent.respond([], []) == []


def test_the_two_namings_can_differ() -> None:
    """Dark wood: darkolivegreen is the nearest CSS3 colour in RGB; seen, it is brown."""
    data = png(solid((84, 60, 36)))
    css, lab = answer(make(), data), answer(make("mmcq-lab"), data)
    assert css.rgb == lab.rgb == [84, 60, 36]
    assert css.css_name == lab.css_name == "darkolivegreen"
    assert (css.color, lab.color) == ("green", "brown")


def test_pale_names_are_taken_out_before_the_nearest_is_sought() -> None:
    """As the published program does with those of which its map says "none"."""
    data = png(solid((228, 228, 244)))
    left, every = answer(make(), data), answer(make(names="all"), data)
    assert (every.css_name, every.color) == ("lavender", "purple")
    assert (left.css_name, left.color) == ("whitesmoke", "white")


def test_dark_slate_is_green_as_in_the_published_answers() -> None:
    dark = answer(make(), png(solid((47, 79, 79))))
    assert (dark.css_name, dark.color) == ("darkslategray", "green")


def test_a_broken_image_fails_alone() -> None:
    with pytest.raises(ImageError) as raised:
        make().prepare(stimulus(png(solid((1, 2, 3)))[:60]))
    assert raised.value.code == "bad_image"


@pytest.mark.parametrize(
    "setting", [{"quality": 0}, {"colors": 1}, {"colors": 257}, {"order": "size"}, {"naming": "x11"}, {"colour": 5}]
)
def test_bad_settings_are_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError) as raised:
        catalogue.get("mmcq").make(setting)
    [problem] = raised.value.problems
    assert problem.field == f"mmcq.{next(iter(setting))}"
