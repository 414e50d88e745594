"""The colour agent, through the catalogue and the contract."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
from agents.vision.colors import WORDS, word_of

PHOTOGRAPHS = sorted((Path(__file__).parents[3] / "examples").glob("**/*.jpg"))


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


def test_a_single_pixel() -> None:
    assert answer(make(), png(solid((10, 200, 30), (1, 1)))).rgb == [12, 204, 28]


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


@pytest.mark.parametrize("path", PHOTOGRAPHS, ids=lambda path: path.stem)
def test_photographs_have_words(path: Path) -> None:
    data = path.read_bytes()
    for name in ("mmcq", "mmcq-lab"):
        agent = make(name)
        try:
            seen = answer(agent, data)
        except ImageError:
            assert path.stem == "broken"
            continue
        assert seen.color in WORDS
        assert seen.css_name is not None
        assert name == "mmcq-lab" or word_of(seen.css_name) == seen.color
        assert seen.palette is not None
        assert seen.rgb == seen.palette[0].rgb
        assert sum(swatch.population for swatch in seen.palette) <= np.prod(Image("x", data=data).decode().shape[:2])
        json.dumps(plain(seen), allow_nan=False)


def test_the_two_namings_can_differ() -> None:
    """Dark wood: darkolivegreen is the nearest CSS3 colour in RGB; seen, it is brown."""
    data = png(solid((84, 60, 36)))
    css, lab = answer(make(), data), answer(make("mmcq-lab"), data)
    assert css.rgb == lab.rgb == [84, 60, 36]
    assert css.css_name == lab.css_name == "darkolivegreen"
    assert (css.color, lab.color) == ("green", "brown")


@pytest.mark.parametrize("data", [b"", b"no image", png(solid((1, 2, 3)))[:60]], ids=["empty", "text", "cut"])
def test_a_broken_image_fails_alone(data: bytes) -> None:
    with pytest.raises(ImageError) as raised:
        make().prepare(stimulus(data))
    assert raised.value.code == "bad_image"


@pytest.mark.parametrize(
    "setting", [{"quality": 0}, {"colors": 1}, {"colors": 257}, {"order": "size"}, {"naming": "x11"}, {"colour": 5}]
)
def test_bad_settings_are_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError) as raised:
        catalogue.get("mmcq").make(setting)
    [problem] = raised.value.problems
    assert problem.field == f"mmcq.{next(iter(setting))}"


def test_importing_the_agent_imports_nothing_heavy() -> None:
    code = "import sys, agents.vision.mmcq; print([m for m in ('cv2', 'numpy', 'torch', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
