"""The agent ``eccnet`` against a slow version that makes whole views of one image, and what its paths must have."""

import importlib.util
import itertools
from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny_vgg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image as PILImage
from pydantic import ValidationError

from agents.answers import plain
from agents.attention.eccnet import EccNetAgent
from agents.attention.models.eccnet import Gaze, Scene, similarity
from agents.attention.models.fixations import Plan
from agents.contract import Draw, Reply
from agents.stimuli import AttentionStimulus

spec = importlib.util.spec_from_file_location("eccnet_reference", Path(__file__).with_name("eccnet_reference.py"))
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
SIZES = [(80, 100), (150, 90), (40, 40)]  # height, width of the frames
NEAR = 3e-6  # of a map's range: fp32 beside float64; most seen was 9e-7
# A view of 160 pixels, with scales at which windows grow within it.
SMALL = {"long_side": 96, "radius": 64, "margin": 16, "deg2px": (8, 4, 3, 2, 2), "fovea": 2}
CASES = {
    "as published": {},
    "caffe, box": {"preprocessing": "caffe", "resampling": "box"},
    "windows grow in every pool": {"slopes": (0.05, 0.1, 0.07, 0.16, 0.32)},
    "windows of three cells, a target of 64 pixels": {"rf_min": 3, "target_side": 64},
    "an image larger than what is seen": {"long_side": 192, "radius": 40, "margin": 8},
    "gaussian": {"inhibition": "gaussian"},
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_vgg.weights(tmp_path_factory.mktemp("vgg"))


@pytest.fixture(scope="module")
def make(weights):
    """Loaded agents, made once for the same settings."""
    made = {}

    def build(device="cpu", **chosen):
        key = (device, repr(chosen))
        if key not in made:
            agent = EccNetAgent(EccNetAgent.Settings(checkpoint=str(weights), **{**SMALL, **chosen}), "eccnet")
            agent.open()
            agent.load(device)
            made[key] = agent
        return made[key]

    return build


def picture(rng, height, width, grain):
    small = rng.integers(0, 256, (max(1, height // grain), max(1, width // grain), 3), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR).reshape(height, width, 3)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Files of search images and of targets."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for index, (height, width) in enumerate(SIZES):
        PILImage.fromarray(picture(rng, height, width, 16)).save(folder / f"{index}.png")
        PILImage.fromarray(picture(rng, 50 - 9 * index, 40 + 9 * index, 8)).save(folder / f"target{index}.png")
    return [(folder / f"{index}.png", folder / f"target{index}.png") for index in range(len(SIZES))]


def stimulus(image, target=None, **fields):
    row = {"id": str(image.name), "task": "attention_prediction", "mode": "search", "image": str(image)}
    row |= {"target_image": str(target)} if target else {}
    return AttentionStimulus.model_validate(row | fields)


def answers(agent, stimuli, size=8):
    prepared = [agent.prepare(item) for item in stimuli]
    replies = []
    for start in range(0, len(prepared), size):
        part = prepared[start : start + size]
        replies += agent.respond(part, [Draw(seed=1)] * len(part))
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [plain(reply.answer) for reply in replies]


def found_map(agent, image, target, x, y, scene=None):
    net = agent.net
    scene = scene or Scene(agent.preprocessed(image), net.black)
    return similarity(net.features(scene, x, y), net.kernels(agent.preprocessed(target))).cpu().numpy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_maps_and_fixations_are_those_of_the_slow_version(case, make, weights, pictures, device):
    agent = make(device, **CASES[case])
    slow = reference.EccNet(weights, agent.settings)
    image, target, task = agent.prepare(stimulus(*pictures[0], window=11, max_fixations=2))
    kernels = slow.kernels(target)
    height, width = image.shape[:2]
    scene = Scene(agent.preprocessed(image), agent.net.black)
    for x, y in ((0, 0), (width - 1, height // 2 + 3)):
        found, expected = found_map(agent, image, target, x, y, scene), slow.map(image, kernels, x, y)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < NEAR * (expected.max() - expected.min())
    [reply] = agent.respond([(image, target, task)], [Draw(seed=1)])
    path, stop = slow.path(image, target, (100, 80), 11, 2, agent.settings.inhibition)
    assert reply.answer.fixations == [list(point) for point in path]
    assert (len(path), reply.answer.stop) == (2, stop)


def test_a_black_image_is_no_image(make):
    net = make().net
    black = Scene(net.black.expand(1, 3, 70, 50).clone(), net.black)
    for found, empty in zip(net.features(black, 20, 30), net.empty.compared, strict=True):
        assert (found - empty).abs().max() < 1e-5 * empty.abs().max()
    with pytest.raises(ValueError, match="nothing of the image is seen"):
        net.features(black, 1000, 30)


@st.composite
def walks(draw):
    rows, columns = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    frame = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    cells = draw(st.integers(3, 6))
    radius = draw(st.integers(1, 8 * cells))
    maps = draw(hnp.arrays(np.float64, (4, cells, cells), elements=st.integers(0, 5).map(float)))
    box = draw(
        st.none() | st.tuples(st.integers(0, frame[0] - 1), st.integers(0, frame[1] - 1), *[st.integers(1, 5)] * 2)
    )
    return (rows, columns), frame, radius, maps, draw(st.integers(1, 30)), draw(st.integers(1, 12)), box


@settings(max_examples=150, deadline=None)
@given(walks(), st.sampled_from(["square", "gaussian"]))
def test_every_path_is_the_plain_loops(walk, inhibition):
    """On maps that are given, a few in turn, with many ties."""
    shape, frame, radius, maps, window, maximum, box = walk
    plan = Plan(frame, window, maximum, box, box is not None)
    turns = itertools.cycle(maps)
    expected, stop = reference.walk(lambda x, y: next(turns), shape, frame, window, maximum, radius, inhibition, box)
    gaze = Gaze(plan, shape, inhibition, radius, torch.device("cpu"))
    turns = itertools.cycle(maps)
    while gaze.going():
        gaze.look(torch.from_numpy(next(turns)))
    [path] = gaze.results()
    assert (path.fixations, path.stop) == (expected, stop)
    assert path.found == (None if box is None else stop == "target")
    if inhibition == "square":
        for first, second in itertools.combinations(path.fixations, 2):
            assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > window // 2


def test_search_ends_at_the_target(make, weights, pictures):
    agent = make()
    [free] = answers(agent, [stimulus(*pictures[0], window=15, max_fixations=6)])
    assert (free["found"], free["stop"], len(free["fixations"])) == (None, "maximum", 6)
    x, y = free["fixations"][3]
    [found] = answers(agent, [stimulus(*pictures[0], window=15, max_fixations=6, target_box=(x, y, 1, 1))])
    at = next(index for index, point in enumerate(free["fixations"]) if max(abs(point[0] - x), abs(point[1] - y)) <= 7)
    assert (found["found_at"], found["stop"], found["found"]) == (at, "target", True)
    assert found["fixations"] == free["fixations"][: at + 1]
    partly_outside = (40, 70, 30, 500)
    path, stop = reference.EccNet(weights, agent.settings).path(
        *agent.prepare(stimulus(*pictures[0]))[:2], (100, 80), 15, 6, target_box=partly_outside
    )
    [answer] = answers(agent, [stimulus(*pictures[0], window=15, max_fixations=6, target_box=partly_outside)])
    assert (answer["fixations"], answer["stop"]) == ([list(point) for point in path], stop)
    [centre] = answers(agent, [stimulus(*pictures[0], window=15, target_box=(30, 30, 40, 40))])
    assert (centre["fixations"], centre["found_at"]) == ([[50, 40]], 0)


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ((1280, 1024), (896, 736)),
        ((1024, 1280), (736, 896)),
        ((640, 480), (896, 672)),
        ((1000, 1000), (896, 896)),
        ((1, 1), (896, 896)),
        ((300, 3), (896, 32)),
    ],
)
def test_the_published_geometry(frame, shown, tmp_path):
    """1600 pixels are seen; the papers' frame becomes 896 x 736, every other one as large as its aspect gives."""
    agent = EccNetAgent(EccNetAgent.Settings(), "eccnet")
    assert agent.settings.view == 1600
    values = np.random.default_rng(0).integers(0, 256, (frame[1], frame[0], 3), np.uint8)
    PILImage.fromarray(values).save(tmp_path / "frame.png")
    image, target, task = agent.prepare(stimulus(tmp_path / "frame.png", tmp_path / "frame.png"))
    assert (image.shape, target.shape, task.frame) == ((shown[1], shown[0], 3), (32, 32, 3), frame)
    places = [(np.arange(cells) + 0.5) * side / cells for side, cells in zip(frame[::-1], shown[::-1], strict=True)]
    clear = np.ix_(*(place % 1 != 0 for place in places))  # not between two pixels
    assert image[clear].size > image.size / 2
    assert (image[clear] == values[np.ix_(*(place.astype(int) for place in places))][clear]).all()


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (2, 300), (400, 1)])
def test_tiny_and_thin_images(size, make, tmp_path):
    height, width = size
    PILImage.fromarray(picture(np.random.default_rng(3), height, width, 2)).save(tmp_path / "thin.png")
    [answer] = answers(make(), [stimulus(tmp_path / "thin.png", tmp_path / "thin.png", max_fixations=3, window=1)])
    assert answer["fixations"][0] == [width // 2, height // 2]
    assert all(0 <= x < width and 0 <= y < height for x, y in answer["fixations"])
    assert (answer["stop"], len(answer["fixations"])) == (("exhausted", 1) if size == (1, 1) else ("maximum", 3))


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"margin": 63}, "multiple of 16"),
        ({"radius": 16, "margin": 0}, "at least 48"),
        ({"deg2px": (30, 15, 8, 4, 1)}, "one cell wide"),
        ({"rf_min": 1}, "greater than or equal to 2"),
        ({"target_side": 40}, "multiple of 32"),
        ({"slopes": (0, 0, 0, 0, -1)}, "greater than or equal to 0"),
    ],
)
def test_settings_that_cannot_be(chosen, says):
    with pytest.raises(ValidationError, match=says):
        EccNetAgent.Settings(**chosen)
