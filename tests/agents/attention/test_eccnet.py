"""The agent ``eccnet`` against a slow version that makes whole views of one image, and what its paths must have."""

import importlib.util
import itertools
import subprocess
import sys
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
from safetensors.torch import load_file, save_file

from agents.answers import ScanpathAnswer, plain
from agents.attention.eccnet import EccNetAgent
from agents.attention.models.eccnet import Gaze, Scene, similarity
from agents.attention.models.fixations import Plan
from agents.contract import Draw, Reply
from agents.errors import AnswerError, ImageError, UnavailableError
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
    "windows grow in no pool": {"slopes": (0, 0, 0, 0, 0)},
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
    image, target, task = agent.prepare(stimulus(*pictures[0], window=11, max_fixations=3))
    kernels = slow.kernels(target)
    height, width = image.shape[:2]
    scene = Scene(agent.preprocessed(image), agent.net.black)
    for x, y in ((0, 0), (width - 1, height // 2 + 3), (17, height - 2)):
        found, expected = found_map(agent, image, target, x, y, scene), slow.map(image, kernels, x, y)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < NEAR * (expected.max() - expected.min())
    [reply] = agent.respond([(image, target, task)], [Draw(seed=1)])
    path, stop = slow.path(image, target, (100, 80), 11, 3, agent.settings.inhibition)
    assert reply.answer.fixations == [list(point) for point in path]
    assert (len(path), reply.answer.stop) == (3, stop)


@pytest.mark.parametrize("case", ["as published", "windows grow in every pool", "an image larger than what is seen"])
def test_what_is_kept_of_a_scene_does_not_show(case, make, pictures, monkeypatch):
    """At six places among groups of 4 x 4 pixels, more than are kept, and with the view's edge on the image."""
    agent = make(**CASES[case])
    image, target, _ = agent.prepare(stimulus(*pictures[1]))
    scene = Scene(agent.preprocessed(image), agent.net.black)
    height, width = image.shape[:2]
    assert agent.net.still == (case != "windows grow in every pool")
    net, made = agent.net, []
    monkeypatch.setattr(net, "_first", lambda *way: made.append(way[1]) or type(net)._first(net, *way))
    half = width // 2, height // 2
    for x, y in ((width - 1, 0), (half[0], half[1] + 1), (2, height - 2), (9, 0), half, (2, half[1])):
        kept, fresh = found_map(agent, image, target, x, y, scene), found_map(agent, image, target, x, y)
        assert np.abs(kept - fresh).max() <= 1e-9 * (fresh.max() - fresh.min())
    assert len(scene.kept) == (4 if net.still else 0)
    made.clear()
    for x, y in ((1, 1), (5, -7), (1, 1)):
        found_map(agent, image, target, half[0] + x, half[1] + y, scene)
    views = [part for part in made if part.bottom - part.top == net.side == part.right - part.left]
    beyond = len(made) - len(views)
    assert beyond == (1 if net.still else 0)  # once for all three


def test_strips_do_not_show(make, pictures, monkeypatch):
    agent = make()
    image, target, _ = agent.prepare(stimulus(*pictures[0]))
    whole = found_map(agent, image, target, 30, 20)
    monkeypatch.setattr("agents.attention.models.eccnet.CELLS_AT_ONCE", 100)
    assert np.abs(found_map(agent, image, target, 30, 20) - whole).max() < NEAR * (whole.max() - whole.min())


def test_a_black_image_is_no_image(make):
    net = make().net
    black = Scene(net.black.expand(1, 3, 70, 50).clone(), net.black)
    for found, empty in zip(net.features(black, 20, 30), net.empty.compared, strict=True):
        assert (found - empty).abs().max() < 1e-5 * empty.abs().max()
    with pytest.raises(ValueError, match="nothing of the image is seen"):
        net.features(black, 1000, 30)


@pytest.mark.parametrize("device", DEVICES)
def test_answers_do_not_depend_on_the_batch(make, pictures, device):
    agent = make(device)
    stimuli = [stimulus(*pair, max_fixations=4) for pair in pictures]
    alone = answers(agent, stimuli, 1)
    assert answers(agent, stimuli, 3) == alone
    assert answers(agent, stimuli[::-1], 2)[::-1] == alone
    assert len({str(answer["fixations"]) for answer in alone}) == 3
    for answer, (height, width) in zip(alone, SIZES, strict=True):
        ScanpathAnswer.model_validate(answer)
        assert answer["fixations"][0] == [width // 2, height // 2]
        assert answer["frame"] == [width, height]
        assert answer["selection"] == "maximum, square inhibition"
    assert list(agent.respond([], [])) == []


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


def test_most_fixations_and_windows_are_those_of_the_papers(make, pictures):
    agent = make()
    natural = agent.prepare(stimulus(*pictures[0]))[2]
    waldo = agent.prepare(stimulus(*pictures[0], dataset="Waldo"))[2]
    assert (natural.maximum, natural.window) == (65, round(200 * 100 / 1280))
    assert (waldo.maximum, waldo.window) == (80, 8)
    [answer] = answers(agent, [stimulus(*pictures[0], window=100)])
    assert (answer["stop"], answer["fixations"]) == ("exhausted", [[50, 40]])
    [answer] = answers(agent, [stimulus(*pictures[0], window=99)])  # the first column is left
    assert answer["stop"] == "exhausted"
    assert {x for x, _ in answer["fixations"][1:]} == {0}


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


@pytest.mark.parametrize("value", [0, 128, 255])
def test_flat_images_and_a_target_that_is_the_image(value, make, tmp_path):
    path = tmp_path / "flat.png"
    PILImage.new("L", (60, 50), value).save(path)
    [answer] = answers(make(), [stimulus(path, path, max_fixations=4, window=9)])
    assert (len({tuple(point) for point in answer["fixations"]}), answer["stop"]) == (4, "maximum")


def test_weights_that_are_not_numbers_fail_each_answer(weights, pictures, tmp_path):
    spoiled = load_file(weights)
    spoiled["features.28.bias"][3] = float("nan")
    save_file(spoiled, tmp_path / "vgg16.safetensors")
    agent = EccNetAgent(EccNetAgent.Settings(checkpoint=str(tmp_path / "vgg16.safetensors"), **SMALL), "eccnet")
    agent.load("cpu")
    replies = agent.respond([agent.prepare(stimulus(*pair)) for pair in pictures], [Draw(seed=1)] * 3)
    assert [(type(reply), reply.code) for reply in replies] == [(AnswerError, "bad_map")] * 3
    agent.close()
    assert not {"net", "features"} & vars(agent).keys()


def test_what_cannot_be_prepared_says_why(make, pictures, tmp_path):
    agent = make()
    with pytest.raises(AnswerError, match="eccnet looks for a picture: give it as target_image") as caught:
        agent.prepare(stimulus(pictures[0][0], target_box=(1, 1, 5, 5)))
    assert caught.value.code == "no_target_image"
    with pytest.raises(ImageError):
        agent.prepare(stimulus(pictures[0][0], tmp_path / "none.png"))
    with pytest.raises(AnswerError, match="outside the frame"):
        agent.prepare(stimulus(*pictures[0], target_box=(100, 0, 5, 5)))


def test_missing_weights_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    agent = EccNetAgent(EccNetAgent.Settings(), "eccnet")
    with pytest.raises(UnavailableError, match="run `turinglike fetch eccnet`"):
        agent.load("cpu")


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


def test_the_agents_file_needs_no_torch():
    code = (
        "import sys, agents.attention.eccnet as e; e.EccNetAgent.Settings(); "
        "print({'torch', 'numpy', 'cv2'} & sys.modules.keys())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "set()"
