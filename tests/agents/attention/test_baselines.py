"""The agents ``center`` and ``random``."""

import math
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.attention.baselines import CenterAgent, RandomAgent
from agents.attention.models.fixations import Plan
from agents.contract import Draw
from agents.stimuli import AttentionStimulus
from tests.agents.attention import gaze_cases
from tests.agents.attention.gaze_cases import answers, files, loaded

NAMES = ["center", "random"]
MANY = 10_000  # draws, one path long


def agent(name: str, **chosen: Any) -> Any:
    return loaded({"center": CenterAgent, "random": RandomAgent}[name], name, **chosen)


def stimulus(folder: Path, width: int, height: int, **fields: Any) -> AttentionStimulus:
    [path] = files(folder, [(height, width)])
    return gaze_cases.stimulus(path, **fields)


def distance(values: NDArray[Any], curve: Callable[[float], float]) -> float:
    """Kolmogorov and Smirnov's: the largest difference of a sample's distribution from ``curve``. Pixels are whole
    numbers, so both are compared between two of them."""
    values = np.sort(np.asarray(values) + 0.5)
    places = np.unique(values) + 0.5
    return max(abs((values < place).mean() - curve(place)) for place in places)


def normal(side: int, deviation: float) -> Callable[[float], float]:
    """A normal distribution about the middle, cut off at both ends."""
    curve = NormalDist(side / 2, deviation)
    return lambda place: (curve.cdf(place) - curve.cdf(0)) / (curve.cdf(side) - curve.cdf(0))


@pytest.mark.parametrize(("width", "height"), [(640, 480), (300, 900)])
@pytest.mark.parametrize("chosen", [None, {}, {"variance": 0.01}, {"variance": 4.0, "ratio": 2.0}])
def test_random_is_uniform_and_center_is_normal_up_to_the_edge(
    tmp_path: Path, width: int, height: int, chosen: dict[str, Any] | None
) -> None:
    item = stimulus(tmp_path, width, height, max_fixations=MANY)
    made = agent("random") if chosen is None else agent("center", **chosen)
    [answer] = answers(made, [item], [4])
    drawn = np.array(answer["fixations"][1:])
    if chosen is None:
        curves = [lambda place: place / width, lambda place: place / height]
    else:
        across = math.sqrt(chosen.get("variance", 0.23)) * width / 2
        curves = [normal(width, across), normal(height, across * math.sqrt(chosen.get("ratio", 0.45)))]
    limit = 1.95 / math.sqrt(len(drawn))  # exceeded by one sample in a thousand
    assert all(distance(values, curve) < limit for values, curve in zip(drawn.T, curves, strict=True))
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.04
    assert abs(np.corrcoef(drawn[1:, 0], drawn[:-1, 0])[0, 1]) < 0.04


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(width=st.integers(1, 3000), height=st.integers(1, 3000), seed=st.integers(0, 2**53 - 1))
def test_never_off_the_frame(name: str, width: int, height: int, seed: int) -> None:
    made = agent(name, max_free=40)
    task = Plan((width, height), 10, 40)
    [reply] = made.respond([task], [Draw(seed=seed)])
    path = reply.answer.fixations
    assert len(path) == 40
    assert all(0 <= x < width and 0 <= y < height for x, y in path)
