"""The agents ``ivsn``, ``ivsn-notarget`` and ``ivsn-layer``, against a slow version of one image at a time."""

import importlib.util
import os
import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest
import tiny_vgg
import torch
from PIL import Image as PILImage
from safetensors.torch import load_file, save_file

from agents.answers import ScanpathAnswer, plain
from agents.attention.ivsn import IVSNAgent
from agents.attention.models import similarity
from agents.contract import Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.stimuli import AttentionStimulus

spec = importlib.util.spec_from_file_location("ivsn_reference", Path(__file__).with_name("ivsn_reference.py"))
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

SIZES = [(224, 224), (1, 1), (150, 300), (230, 60), (60, 90), (225, 226)]  # height, width; the last has four tiles
NEAR = 3e-6  # of a map's range: fp32 beside float64; most seen was 1.3e-6
WHOLE = {"variant": "whole", "search_size": 128}
NO_TARGET = {"modulation": "none"}
CASES = {
    "tiled, pool5": {},
    "tiled, pool3": {"target_layer": "pool3"},
    "tiled, target of 21 pixels": {"target_layer": "pool2", "target_size": 21},
    "tiled, no target": NO_TARGET,
    "tiled, as the original's pixels": {"preprocessing": "caffe"},
    **{f"whole, pool{number}": {**WHOLE, "target_layer": f"pool{number}"} for number in (1, 2, 4, 5)},
    "whole, no target": {**WHOLE, **NO_TARGET},
    "whole, no target, relu4_3": {**WHOLE, **NO_TARGET, "bottom_up": "relu4_3"},
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_vgg.weights(tmp_path_factory.mktemp("vgg"))


@pytest.fixture(scope="module")
def plain_features(weights):
    return reference.Features(weights)


@pytest.fixture(scope="module")
def make(weights):
    """Loaded agents, made once for the same settings."""
    made = {}

    def build(device="cpu", **chosen):
        key = (device, repr(chosen))
        if key not in made:
            agent = IVSNAgent(IVSNAgent.Settings(checkpoint=str(weights), **chosen), "ivsn")
            agent.open()
            agent.load(device)
            if made:  # the same weights in memory once
                first = next(iter(made.values()))
                agent.features = first.features if first.device == agent.device else agent.features
            made[key] = agent
        return made[key]

    return build


def picture(rng, height, width, grain=20):
    small = rng.integers(0, 256, (max(1, height // grain), max(1, width // grain), 3), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR).reshape(height, width, 3)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Files of search images and of targets, and their pixels."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    found = []
    for index, (height, width) in enumerate(SIZES):
        image, target = picture(rng, height, width), picture(rng, 20 + 30 * index, 50 - 9 * index, 7)
        paths = folder / f"{index}.png", folder / f"target{index}.png"
        for path, pixels in zip(paths, (image, target), strict=True):
            PILImage.fromarray(pixels).save(path)
        found.append((*paths, image, target))
    return found


def stimulus(image, target=None, **fields):
    row = {"id": str(image.name), "task": "attention_prediction", "mode": "search", "image": str(image)}
    row |= {"target_image": str(target)} if target else {}
    return AttentionStimulus.model_validate(row | fields)


def respond(agent, stimuli):
    return agent.respond([agent.prepare(item) for item in stimuli], [Draw(seed=1)] * len(stimuli))


def answers(agent, stimuli):
    replies = respond(agent, stimuli)
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [plain(reply.answer) for reply in replies]


def plain_map(features, agent, image, target):
    chosen = agent.settings
    features.preprocessing = chosen.preprocessing
    block = int(chosen.target_layer[-1])
    bottom_up = {"relu4_3": 4, "relu5_3": 5}[chosen.bottom_up] if chosen.modulation == "none" else None
    if chosen.variant == "tiled":
        return reference.tiled_map(features, image, target, block, chosen.target_size or 28, bottom_up)
    size = chosen.target_size or 32
    return reference.whole_map(features, image, target, block, size, bottom_up, chosen.search_size)


@pytest.mark.parametrize("case", CASES)
def test_maps_and_fixations_are_those_of_the_slow_version(case, make, plain_features, pictures):
    agent = make(**CASES[case])
    path, target_path, image, target = pictures[2]
    item, search = agent.prepare(stimulus(path, target_path)), similarity.search_image(image, agent.method)
    assert torch.equal(item[0].tiles, search.tiles)
    [found] = similarity.similarity_maps(agent.features, [search], [item[1]], agent.method).numpy()
    expected = plain_map(plain_features, agent, image, target)
    assert expected.min() == 0
    assert expected.max() == 1
    assert np.abs(found - expected).max() < (2e-5 if agent.settings.target_layer == "pool1" else NEAR)  # 16,384 terms
    [answer] = answers(agent, [stimulus(path, target_path, window=40, max_fixations=12)])
    assert answer["fixations"] == [list(point) for point in reference.fixations(expected, 40, 12)]


@pytest.mark.parametrize("settings_", [{}, WHOLE], ids=["tiled", "whole"])
def test_a_batch_of_sizes_is_that_of_the_slow_version(settings_, make, plain_features, pictures):
    agent = make(**settings_)
    box = {2: (150.0, 75.0, 9.0, 9.0), 3: (0.0, 0.0, 30.0, 90.0)}  # found at once, and later
    stimuli = [
        stimulus(path, target, window=50, max_fixations=9, **({"target_box": box[index]} if index in box else {}))
        for index, (path, target, _, _) in enumerate(pictures[:5])
    ]
    found = answers(agent, stimuli)
    for index, (answer, (_, _, image, target)) in enumerate(zip(found, pictures[:5], strict=True)):
        expected = plain_map(plain_features, agent, image, target)
        path = reference.fixations(expected, 50, 9, box.get(index))
        assert answer["fixations"] == [list(point) for point in path]
        ScanpathAnswer.model_validate(answer)
    assert (found[2]["found"], found[2]["found_at"], found[2]["stop"]) == (True, 0, "target")
    assert (found[3]["found"], found[3]["stop"]) == (True, "target")
    assert found[3]["found_at"] == len(found[3]["fixations"]) - 1 > 0
    assert (found[0]["found"], found[0]["selection"]) == (None, "maximum, square inhibition")


def test_images_are_scaled_as_worked_out_by_hand():
    def scaled(values, length):
        pixels = np.array(values, np.uint8)[:, None, None]
        return similarity.target_image(pixels, similarity.Method(target_size=length))[0, :, 0].tolist()

    assert scaled([0, 10], 3) == pytest.approx([0, 5, 10])  # corner to corner
    assert scaled([0, 60, 120], 2) == pytest.approx([20, 100])  # (0 + 60 / 2) / 1.5, (60 / 2 + 120) / 1.5
    assert scaled([1, 2, 3, 10], 1) == pytest.approx([4])
    assert scaled([7], 3) == [7, 7, 7]
    assert scaled([9, 8], 2) == [9, 8]


def test_tiles_are_cut_in_order_and_only_the_rest_is_stretched():
    image = np.random.default_rng(0).integers(0, 256, (300, 500, 3), np.uint8)
    tiles = similarity.search_image(image, similarity.Method()).tiles.permute(0, 2, 3, 1).numpy()
    assert tiles.shape == (6, 224, 224, 3)
    assert np.array_equal(tiles[0], image[:224, :224])
    assert np.array_equal(tiles[1], image[:224, 224:448])
    corner = image[224:, 448:]
    assert np.array_equal(tiles[5][[0, 0, -1, -1], [0, -1, 0, -1]], corner[[0, 0, -1, -1], [0, -1, 0, -1]])
    assert np.array_equal(tiles[2][:, [0, -1]], image[:224, [448, 499]])
    assert np.array_equal(tiles[4][[0, -1]], image[[224, 299], 224:448])


def test_the_target_decides_unless_there_is_none(make, pictures):
    path, first, _, _ = pictures[2]
    agent, without = make(), make(**NO_TARGET)
    one, other = answers(agent, [stimulus(path, first), stimulus(path, pictures[4][1])])
    assert one != other
    shown, hidden = answers(without, [stimulus(path, first), stimulus(path, target_box=(-5, -5, 6, 6))])
    assert hidden["found"] is True
    assert hidden["fixations"] == shown["fixations"][: hidden["found_at"] + 1]
    assert agent.modes == without.modes == ("search",)


def unloaded(path):
    return IVSNAgent(IVSNAgent.Settings(checkpoint=str(path)), "ivsn")


def test_checkpoints_that_are_none_are_one_sentence(weights, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "nothing"))
    published = IVSNAgent(IVSNAgent.Settings(), "ivsn-layer")
    with pytest.raises(
        UnavailableError, match=r"vgg16-397923af\.pth are not on this machine: run `turinglike fetch ivsn-layer`"
    ):
        published.load("cpu")
    with pytest.raises(UnavailableError, match=r"none\.pth: no such file"):
        unloaded(tmp_path / "none.pth").load("cpu")
    state = load_file(weights)
    save_file({**state, "features.0.weight": torch.zeros(64, 1, 3, 3)}, tmp_path / "shape.safetensors")
    save_file({name: value for name, value in state.items() if ".28." not in name}, tmp_path / "short.safetensors")
    for name, says in (("shape", r"is not a checkpoint of this architecture: .*0\.weight"), ("short", r".*28\.weight")):
        with pytest.raises(UnavailableError, match=rf"{name}\.safetensors {says}"):
            unloaded(tmp_path / f"{name}.safetensors").load("cpu")


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Touch:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "code.pth").write_bytes(pickle.dumps({"features.0.weight": Touch()}, protocol=2))
    with pytest.raises(UnavailableError, match="it was not executed"):
        unloaded(tmp_path / "code.pth").load("cpu")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("settings_", [{}, WHOLE, NO_TARGET], ids=["tiled", "whole", "no target"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_fail_each_stimulus(settings_, value, make, pictures):
    agent = make(**settings_)
    bias = agent.features[28].bias
    kept = bias.clone()
    try:
        bias[7] = value
        replies = respond(agent, [stimulus(path, target) for path, target, _, _ in (pictures[4], pictures[1])])
    finally:
        bias.copy_(kept)
    assert [(type(reply), reply.code) for reply in replies] == [(AnswerError, "bad_map")] * 2
