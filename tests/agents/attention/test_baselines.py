"""The agents ``center`` and ``random``."""

import math
from statistics import NormalDist

import gaze_cases
import numpy as np
import pytest
from gaze_cases import answers, files, loaded
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.attention.baselines import CenterAgent, RandomAgent
from agents.attention.models.fixations import Plan
from agents.contract import Draw

NAMES = ["center", "random"]
MANY = 10_000  # draws, one path long


def agent(name, **chosen):
    return loaded({"center": CenterAgent, "random": RandomAgent}[name], name, **chosen)


def stimulus(folder, width, height, **fields):
    [path] = files(folder, [(height, width)])
    return gaze_cases.stimulus(path, **fields)


def distance(values, curve):
    """Kolmogorov and Smirnov's: the largest difference of a sample's distribution from ``curve``. Pixels are whole
    numbers, so both are compared between two of them."""
    values = np.sort(np.asarray(values) + 0.5)
    places = np.unique(values) + 0.5
    return max(abs((values < place).mean() - curve(place)) for place in places)


@pytest.mark.parametrize(("width", "height"), [(640, 480), (300, 900)])
def test_random_is_uniform(tmp_path, width, height):
    item = stimulus(tmp_path, width, height, max_fixations=MANY)
    [answer] = answers(agent("random"), [item], [3])
    drawn = np.array(answer["fixations"][1:])
    limit = 1.95 / math.sqrt(len(drawn))  # exceeded by one sample in a thousand
    assert distance(drawn[:, 0], lambda place: place / width) < limit
    assert distance(drawn[:, 1], lambda place: place / height) < limit
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.04
    assert abs(np.corrcoef(drawn[1:, 0], drawn[:-1, 0])[0, 1]) < 0.04


@pytest.mark.parametrize(("width", "height"), [(640, 480), (300, 900)])
@pytest.mark.parametrize("chosen", [{}, {"variance": 0.01}, {"variance": 4.0, "ratio": 2.0}])
def test_center_is_a_normal_distribution_cut_off_at_the_frame(tmp_path, width, height, chosen):
    item = stimulus(tmp_path, width, height, max_fixations=MANY)
    [answer] = answers(agent("center", **chosen), [item], [4])
    drawn = np.array(answer["fixations"][1:])
    across = math.sqrt(chosen.get("variance", 0.23)) * width / 2
    down = math.sqrt(chosen.get("variance", 0.23) * chosen.get("ratio", 0.45)) * width / 2
    for values, side, deviation in ((drawn[:, 0], width, across), (drawn[:, 1], height, down)):
        curve = NormalDist(side / 2, deviation)
        low, high = curve.cdf(0), curve.cdf(side)

        def cut(place, curve=curve, low=low, high=high):
            return (curve.cdf(place) - low) / (high - low)

        assert distance(values, cut) < 1.95 / math.sqrt(len(values))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(width=st.integers(1, 3000), height=st.integers(1, 3000), seed=st.integers(0, 2**53 - 1))
def test_never_off_the_frame(name, width, height, seed):
    made = agent(name, max_free=40)
    task = Plan((width, height), 10, 40)
    [reply] = made.respond([task], [Draw(seed=seed)])
    path = reply.answer.fixations
    assert len(path) == 40
    assert all(0 <= x < width and 0 <= y < height for x, y in path)
