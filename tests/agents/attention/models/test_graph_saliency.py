"""Graph-based visual saliency against plain power iteration, other libraries' resizing, and its own symmetries."""

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.attention.models import graph_saliency as gbvs
from tests.agents.attention import gbvs_reference as reference
from tests.agents.attention.gaze_cases import DEVICES


def scene(height: int, width: int, seed: int = 0) -> NDArray[Any]:
    """A smooth random background with a few hard objects: something like a photograph."""
    rng = np.random.default_rng(seed)
    small = rng.random((max(2, height // 16), max(2, width // 16), 3)).astype(np.float32)
    image = (cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR) * 120 + 60).astype(np.uint8)
    for _ in range(4):
        place = int(rng.integers(0, width)), int(rng.integers(0, height))
        colour = [int(value) for value in rng.integers(0, 256, 3)]
        cv2.circle(image, place, max(2, min(height, width) // 12), colour, -1)
    return image


def run(*images: NDArray[Any], device: str = "cpu", **options: Any) -> NDArray[Any]:
    return gbvs.saliency(torch.from_numpy(np.stack(images)).to(device), **options).cpu().numpy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("normalisation", "program"), [("power", "ours"), ("graph", "ours"), ("power", "harel")])
@pytest.mark.parametrize(("height", "width"), [(48, 205), (303, 75)])
def test_the_map_is_the_plain_pipelines(height: int, width: int, normalisation: str, program: str, device: str) -> None:
    image = scene(height, width, seed=height)
    expected = reference.saliency(image, normalisation, 1e-12, program)
    found = run(image, device=device, normalisation=normalisation, program=program)[0]
    assert np.abs(found - expected).max() < 1e-8


@pytest.mark.parametrize("shape", [(96, 128), (1, 1)])
def test_a_uniform_image_has_no_saliency(shape: tuple[int, ...]) -> None:
    assert not run(np.full((*shape, 3), 127, np.uint8)).any()


@pytest.mark.parametrize("shape", [(2, 3), (1, 40), (12, 13), (5000, 3), (31, 33), (50, 700)])
@pytest.mark.parametrize("normalisation", ["power", "graph"])
def test_every_size_has_a_map(shape: tuple[int, ...], normalisation: str) -> None:
    found = run(np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8), normalisation=normalisation)[0]
    assert found.shape == shape
    assert np.isfinite(found).all()
    assert (found.min(), found.max()) == (0, 1)


def test_weights_choose_channels() -> None:
    image = scene(96, 128, seed=11)
    brightest = run(
        np.repeat(image.max(2, keepdims=True), 3, 2), weights=(0.0, 1.0, 0.0)
    )  # intensity is the largest of red, green and blue
    assert np.abs(run(image, weights=(0.0, 1.0, 0.0)) - brightest).max() < 1e-12
    assert np.abs(run(image, weights=(1.0, 0.0, 0.0)) - brightest).max() > 0.1
    assert not run(image, weights=(0.0, 0.0, 0.0)).any()


# --- what must not change a map ---


@pytest.mark.parametrize("shape", [(75, 101), (160, 320)])
def test_a_map_does_not_depend_on_its_batch_or_on_threads(shape: tuple[int, ...]) -> None:
    images = [scene(shape[0], shape[1], seed) for seed in range(4)]
    images[2] = np.zeros_like(images[2])
    before = torch.get_num_threads()
    maps = []
    try:
        for threads in (2, 1):
            torch.set_num_threads(threads)
            maps += [np.concatenate([run(image) for image in images]), run(*images)]
    finally:
        torch.set_num_threads(before)
    for other in maps[1:]:
        assert np.abs(other - maps[0]).max() < 1e-11  # a millionth of a rounding step of the scanpath
        assert (np.rint(other * 2**20) == np.rint(maps[0] * 2**20)).all()
