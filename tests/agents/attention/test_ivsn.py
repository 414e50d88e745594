"""The agents ``ivsn``, ``ivsn-notarget`` and ``ivsn-layer``, against a slow version of one image at a time."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.attention.ivsn import IVSNAgent
from agents.attention.models import similarity
from agents.attention.models.fixations import Plan
from tests.agents.attention import ivsn_reference as reference
from tests.agents.attention.gaze_cases import answers, files, loaded, pixels, search, stimulus
from tests.agents.attention.path_reference import naive

NEAR = 3e-6  # of a map's range: fp32 beside float64; most seen was 1.3e-6
WHOLE = {"variant": "whole", "search_size": 128}
NO_TARGET = {"modulation": "none"}
CASES: dict[str, dict[str, Any]] = {
    "tiled, pool5": {},
    "tiled, pool3, as the original's pixels": {"target_layer": "pool3", "preprocessing": "caffe"},
    "tiled, target of 21 pixels": {"target_layer": "pool2", "target_size": 21},
    "tiled, no target": NO_TARGET,
    **{f"whole, pool{number}": {**WHOLE, "target_layer": f"pool{number}"} for number in (1, 5)},
    "whole, no target, relu4_3": {**WHOLE, **NO_TARGET, "bottom_up": "relu4_3"},
}


@pytest.fixture(scope="module")
def make(vgg_weights: Path) -> Callable[..., Any]:
    """Loaded agents, made once for the same settings."""
    return functools.cache(
        lambda case="tiled, pool5": loaded(IVSNAgent, "ivsn", checkpoint=str(vgg_weights), **CASES[case])
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A search image of two tiles, a smaller one, and a target."""
    return files(tmp_path_factory.mktemp("pictures"), [(150, 300), (60, 90), (80, 32)])


def plain_map(weights: Path, agent: Any, image: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    chosen = agent.settings
    features = reference.Features(weights, chosen.preprocessing)
    block = int(chosen.target_layer[-1])
    bottom_up = {"relu4_3": 4, "relu5_3": 5}[chosen.bottom_up] if chosen.modulation == "none" else None
    if chosen.variant == "tiled":
        return reference.tiled_map(features, image, target, block, chosen.target_size or 28, bottom_up)
    size = chosen.target_size or 32
    return reference.whole_map(features, image, target, block, size, bottom_up, chosen.search_size)


@pytest.mark.parametrize("case", CASES)
def test_maps_and_fixations_are_those_of_the_slow_version(
    case: str, make: Callable[..., Any], vgg_weights: Path, pictures: list[Path]
) -> None:
    agent = make(case)
    path, _, target = pictures
    shown, wanted, _ = agent.prepare(search(path, target))
    with torch.inference_mode():
        parts = similarity.responses(agent.features, [shown], [wanted], agent.method)
    [found] = similarity.paste(parts, shown.frame, agent.method).numpy()
    expected = plain_map(vgg_weights, agent, pixels(path), pixels(target))
    assert (expected.min(), expected.max()) == (0, 1)
    assert np.abs(found - expected).max() < (2e-5 if agent.settings.target_layer == "pool1" else NEAR)  # 16,384 terms
    [answer] = answers(agent, [search(path, target, window=40, max_fixations=12)])
    looked, _ = naive(expected, Plan((300, 150), 40, 12))
    assert answer["fixations"] == [list(point) for point in looked]


@pytest.mark.parametrize("case", ["tiled, pool5", "whole, pool5"])
def test_search_ends_where_that_of_the_slow_version_does(
    case: str, make: Callable[..., Any], vgg_weights: Path, pictures: list[Path]
) -> None:
    agent = make(case)
    box = (0.0, 0.0, 30.0, 60.0)
    [answer] = answers(agent, [search(pictures[1], pictures[2], window=20, target_box=box)])
    expected = plain_map(vgg_weights, agent, pixels(pictures[1]), pixels(pictures[2]))
    path, stop = naive(expected, Plan((90, 60), 20, 65, box, True))
    assert answer["fixations"] == [list(point) for point in path]
    assert (answer["found"], answer["stop"], stop) == (True, "target", "target")
    assert answer["found_at"] == len(answer["fixations"]) - 1 > 0


def test_tiles_are_cut_in_order_and_only_the_rest_is_stretched() -> None:
    image = np.random.default_rng(0).integers(0, 256, (300, 500, 3), np.uint8)
    tiles = similarity.search_image(image, similarity.Method()).tiles.permute(0, 2, 3, 1).numpy()
    assert tiles.shape == (6, 224, 224, 3)
    assert np.array_equal(tiles[0], image[:224, :224])
    assert np.array_equal(tiles[1], image[:224, 224:448])
    corner = image[224:, 448:]
    assert np.array_equal(tiles[5][[0, 0, -1, -1], [0, -1, 0, -1]], corner[[0, 0, -1, -1], [0, -1, 0, -1]])
    assert np.array_equal(tiles[2][:, [0, -1]], image[:224, [448, 499]])
    assert np.array_equal(tiles[4][[0, -1]], image[[224, 299], 224:448])


def test_without_a_target_none_is_looked_at(make: Callable[..., Any], pictures: list[Path]) -> None:
    path, _, target = pictures
    shown, hidden = answers(
        make("tiled, no target"), [search(path, target), stimulus(path, mode="search", target_box=(-5, -5, 6, 6))]
    )
    assert hidden["found"] is True
    assert hidden["fixations"] == shown["fixations"][: hidden["found_at"] + 1]
